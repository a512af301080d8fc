/* SPDX-License-Identifier: Apache-2.0
 *
 * What each engine does in its own way: one table of functions an engine, in its own file. plan.c calls them in this order. Internal to
 * src/serve.
 */
#ifndef TN_SERVE_RULES_H
#define TN_SERVE_RULES_H

#include "serve/serve.h"

struct tn_engine_rules {
	/* Why the engine does not serve the model, in words; NULL where it does. */
	const char *(*refuses)(const struct tn_served_model *model);
	/* Fills in what was not asked for; request->gpu is there. */
	void (*defaults)(const struct tn_served_model *model, struct tn_serve_request *request);
	/* Makes vLLM's layout its own; false with layout->problem. NULL: it is vLLM's. */
	bool (*layout)(const struct tn_served_model *model, const struct tn_cache_request *request,
	               struct tn_cache_layout *layout);
	/* Are CUDA graphs taken off the cache's memory? */
	bool (*counts_graphs)(const struct tn_served_model *model);
	/* requested_bytes and available, from weights, activations and so on. */
	void (*available)(const struct tn_served_model *model, struct tn_serve_plan *plan);
	/* What fits into `available`, and what one sequence needs. */
	void (*capacity)(const struct tn_served_model *model, struct tn_serve_plan *plan);
	/* Blocks, or tokens, in so many bytes. */
	int64_t (*count)(const struct tn_serve_plan *plan, int64_t bytes);
};

extern const struct tn_engine_rules tn__vllm_rules, tn__sglang_rules, tn__lmdeploy_rules;

static inline int64_t
tn__smaller(int64_t first, int64_t second)
{
	return first < second ? first : second;
}

#endif
