/* SPDX-License-Identifier: Apache-2.0
 *
 * Will an inference engine start? What the engines of engine_words.c compute when they start, from a checkpoint's configuration and headers.
 * Pure but for reading the folder: no output, no engine, no card. doc/design/0029-serve-plan.md says which figures are exact.
 */
#ifndef TN_SERVE_SERVE_H
#define TN_SERVE_SERVE_H

#include "gpu/catalogue.h"
#include "serve/engine_words.h"
#include "serve/kv_cache.h"
#include "serve/tensors.h"

#define TN_SERVE_CHANGES 8
#define TN_SERVE_DEGREES 4

/* What is asked for. 0 (and NULL) leave it to the engine's default. */
struct tn_serve_request {
	enum tn_engine engine;
	const struct tn_gpu_row *gpu;
	int gpus; /* tensor-parallel degree, from 1 on */
	int64_t max_model_len, max_num_seqs, max_num_batched_tokens;
	int64_t concurrency; /* sequences of the whole length at once; 0: one */
	int64_t cache_bytes; /* --kv-cache-memory-bytes: what the engine is told to take, whatever is free */
	double utilization;  /* the share of the card, or of what is free, that the engine takes */
	enum tn_cache_type cache_type;
	const char *cache_type_name; /* as it was written, or NULL */
	bool eager, prefix_caching;
};

/* A figure that may be a model's. */
struct tn_serve_figure {
	int64_t lowest, bytes, highest;
	const char *source;
};

enum tn_serve_verdict { TN_SERVE_UNDECIDED, TN_SERVE_STARTS, TN_SERVE_NARROW, TN_SERVE_FAILS };

/* Why it does not start. */
enum tn_serve_limit {
	TN_SERVE_LIMIT_NONE,
	TN_SERVE_LIMIT_UTILIZATION, /* more is asked for than is free when it starts */
	TN_SERVE_LIMIT_WEIGHTS,     /* weights leave nothing for the cache */
	TN_SERVE_LIMIT_LENGTH,      /* not one sequence of the length fits */
	TN_SERVE_LIMIT_CONCURRENCY, /* not so many sequences as wanted */
	TN_SERVE_LIMIT_DEGREE,      /* the heads cannot be divided so */
	TN_SERVE_LIMIT_CONTEXT,     /* longer than the model was made for */
	TN_SERVE_LIMIT_MODEL        /* the engine has no such model */
};

struct tn_serve_plan {
	struct tn_serve_request request; /* with the engine's defaults */
	enum tn_serve_verdict verdict;
	enum tn_serve_limit limit;
	char reason[192];                                           /* of undecided, or of a degree */
	struct tn_serve_figure weights, activations, graphs, other; /* of one rank */
	int64_t total_bytes, context_bytes, requested_bytes;
	struct tn_serve_figure available; /* for the cache */
	struct tn_cache_layout layout;
	struct tn_cache_request cache;
	int64_t blocks, lowest_blocks, highest_blocks;
	int64_t needed_blocks, needed_bytes; /* of one sequence of the length */
	int64_t kept_blocks;                 /* that hold no sequence */
	int64_t tokens;                      /* as the engine prints it */
	int64_t longest;                     /* sequence that fits, at most the model's own */
	double sequences;                    /* of the whole length */
	struct tn_pools pools;               /* SGLang */
	bool graphs_counted;                 /* the engine takes them off the cache's memory */
};

/* One option that makes it start. */
struct tn_serve_change {
	char option[40]; /* "--max-model-len" */
	char value[40];  /* "40960", or "" */
	char effect[96]; /* what it costs or gives */
	int64_t longest;
	double sequences;
};

/* Degrees on the named card, and the smallest card for one. */
struct tn_serve_option {
	const struct tn_gpu_row *gpu;
	int gpus;
	enum tn_serve_verdict verdict;
	int64_t tokens;
	double sequences;
};

struct tn_serving {
	struct tn_served_model model;
	struct tn_weights_list weights;
	struct tn_serve_plan plan;
	bool starts[TN_ENGINES]; /* each engine, asked the same */
	struct tn_serve_change changes[TN_SERVE_CHANGES];
	int change_count;
	struct tn_serve_option degrees[TN_SERVE_DEGREES]; /* of the card that was named */
	int degree_count;
	struct tn_serve_option smallest; /* the smallest card that starts it; gpu NULL: none */
};

/* Reads the folder and plans. Errors as tn__model_read and tn__weights_read. Released with tn__serving_free, also after an error. */
tn_status tn__serve(const char *folder, const struct tn_serve_request *request, struct tn_serving *out);
void tn__serving_free(struct tn_serving *serving);

/* Plans once more with another request: for trying changes. */
void tn__serve_compute(const struct tn_served_model *model, const struct tn_weights_list *weights,
                       const struct tn_serve_request *request, struct tn_serve_plan *plan);

/* Blocks, or tokens where the engine counts those, in so many bytes. */
int64_t tn__serve_count(const struct tn_serve_plan *plan, int64_t bytes);

/* The command line that starts an engine as it was asked for (without this engine's defaults), ended by a zero. */
void tn__serve_command(const struct tn_serve_request *asked, const char *folder, enum tn_engine engine, char *text,
                       size_t room);
/* How an engine spells a type of the cache that we call `name`. */
const char *tn__cache_type_word(const struct tn_engine_words *words, const char *name);

/* ---- activations.c ---- */

struct tn_serve_figure tn__activations(const struct tn_served_model *model, const struct tn_serve_request *request,
                                       bool second_runner);
/* Does vLLM run this model with its second model runner? It samples with less memory and does not count graphs. */
bool tn__second_runner(const struct tn_served_model *model);
/* What an engine keeps beside a checkpoint's tensors: tables of rotations, copies of latent projections. */
int64_t tn__loaded_extras(const struct tn_served_model *model, int ranks);

/* ---- changes.c ---- */

void tn__serve_changes(struct tn_serving *serving);
/* Other degrees of the card that was named, and the smallest card; `asked` is the request without defaults. */
void tn__serve_options(struct tn_serving *serving, const struct tn_serve_request *asked);

#endif
