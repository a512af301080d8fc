/* SPDX-License-Identifier: Apache-2.0
 *
 * How an engine lays a model's cache out on one rank: kinds of layers, the size of a block, blocks for a sequence, blocks in a given
 * amount of memory. Exact, by the engine's own rule.
 */
#ifndef TN_SERVE_KV_CACHE_H
#define TN_SERVE_KV_CACHE_H

#include "serve/served_model.h"

#define TN_CACHE_GROUP_KINDS 8

/* Layers that cache alike. */
struct tn_cache_layers {
	enum tn_cache_kind cache; /* TN_CACHE_NONE: a state */
	int32_t window;
	int32_t layers;
	int64_t token_bytes; /* of one layer; 0 for a state */
	int64_t page_bytes;  /* of one block of one layer */
	int64_t block_tokens;
	int groups; /* block tables that they need */
};

struct tn_cache_layout {
	struct tn_cache_layers kinds[TN_CACHE_GROUP_KINDS];
	int kind_count;
	int64_t block_tokens; /* of a layer that sees all tokens */
	int64_t block_bytes;  /* of one block of all layers of a group, all kinds sharing it */
	int32_t group_layers;
	int64_t page_tokens;  /* SGLang rounds a pool down to so many */
	int64_t token_bytes;  /* that one more token of a long sequence takes: layers that see all tokens */
	int64_t window_bytes; /* that windows take of one sequence at most, without what is in flight */
	int64_t state_bytes;  /* states of one sequence, without padding */
	bool unified;         /* kinds differ and share one pool */
	char problem[160];    /* why there is no layout */
};

enum tn_cache_type { TN_CACHE_TYPE_AUTO, TN_CACHE_TYPE_16, TN_CACHE_TYPE_8 };

struct tn_cache_request {
	int ranks;
	int32_t number_bytes; /* of a key's number */
	int64_t in_flight;    /* tokens that are scheduled and not settled */
	int compute_major;    /* of the card: which kernels there are; 0: not known */
	bool prefix_caching;
};

/* vLLM's. False with layout->problem where the model's cache has no rule. */
bool tn__cache_layout(const struct tn_served_model *model, const struct tn_cache_request *request,
                      struct tn_cache_layout *layout);
/* Blocks that one sequence of so many tokens needs. */
int64_t tn__cache_blocks_of(const struct tn_cache_layout *layout, const struct tn_cache_request *request,
                            int64_t tokens);
/* Blocks in so many bytes. */
int64_t tn__cache_blocks_in(const struct tn_cache_layout *layout, int64_t bytes);
/* The longest sequence up to `most` that so many blocks hold; 0. */
int64_t tn__cache_longest(const struct tn_cache_layout *layout, const struct tn_cache_request *request, int64_t blocks,
                          int64_t most);

/* ---- pools.c: SGLang's ---- */

struct tn_pools {
	int64_t tokens;        /* of layers that see all */
	int64_t window_tokens; /* of layers with a window; 0: no such pool */
	int64_t states;        /* sequences that have room for a state; 0: no such pool */
	int64_t token_bytes;
};

struct tn_pools tn__pools_in(const struct tn_cache_layout *layout, int64_t bytes);

#endif
