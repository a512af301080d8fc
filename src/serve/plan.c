/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: what the engine may use, what it needs before the cache, what is left, and whether that is enough. What engines do each in its
 * own way stands in vllm.c, sglang.c and lmdeploy.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/figure.h"
#include "serve/rules.h"

#define MIB (INT64_C(1) << 20)

static const struct tn_engine_rules *
rules_of(enum tn_engine engine)
{
	static const struct tn_engine_rules *const rules[TN_ENGINES] = { [TN_ENGINE_VLLM] = &tn__vllm_rules,
		                                                             [TN_ENGINE_SGLANG] = &tn__sglang_rules,
		                                                             [TN_ENGINE_LMDEPLOY] = &tn__lmdeploy_rules };
	return rules[engine];
}

static bool
divides(int64_t heads, int ranks)
{
	return heads <= 0 || heads % ranks == 0;
}

/* Heads are divided whole; KV heads are divided or repeated. */
static bool
check_degree(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	int ranks = plan->request.gpus;
	bool fits = divides(model->heads, ranks) &&
	            (model->kv_heads <= 0 || model->kv_heads % ranks == 0 || ranks % model->kv_heads == 0) &&
	            divides(model->intermediate, ranks) && divides(model->state.heads, ranks) &&
	            divides(model->state.value_heads, ranks) && divides(model->state.key_heads, ranks) &&
	            divides(model->state.inner, ranks);
	if (fits)
		return true;
	snprintf(plan->reason, sizeof(plan->reason),
	         "%d cards cannot share this model's heads (%" PRId64 " heads, %" PRId64 " KV heads, %" PRId64 " wide)",
	         ranks, model->heads, model->kv_heads, model->intermediate);
	plan->verdict = TN_SERVE_FAILS;
	plan->limit = TN_SERVE_LIMIT_DEGREE;
	return false;
}

static int32_t
cache_number_bytes(const struct tn_served_model *model, const struct tn_serve_request *request)
{
	if (request->cache_type == TN_CACHE_TYPE_8 || (request->cache_type == TN_CACHE_TYPE_AUTO && model->quant.cache_fp8))
		return 1;
	return request->cache_type == TN_CACHE_TYPE_16 ? 2 : model->bytes;
}

static void
set_cache(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	const struct tn_serve_request *request = &plan->request;
	plan->cache = (struct tn_cache_request){ .ranks = request->gpus,
		                                     .number_bytes = cache_number_bytes(model, request),
		                                     .in_flight = 2 * request->max_num_batched_tokens,
		                                     .compute_major = request->gpu != NULL ? request->gpu->figures.compute_major
		                                                                           : 0 };
	plan->cache.prefix_caching = model->state.kind != TN_STATE_NONE && request->prefix_caching;
	const struct tn_engine_rules *rules = rules_of(request->engine);
	if (!tn__cache_layout(model, &plan->cache, &plan->layout) ||
	    (rules->layout != NULL && !rules->layout(model, &plan->cache, &plan->layout)))
		snprintf(plan->reason, sizeof(plan->reason), "the cache is %s", plan->layout.problem);
}

/* Libraries' kernels and buffers that load during the profile run; with several ranks those of the all-reduce, too. Seen in published
 * logs: 0.03 to 0.6 GiB on one card, up to 1.8 GiB on several. */
static struct tn_serve_figure
other_memory(int ranks)
{
	return (struct tn_serve_figure){ .lowest = 20 * MIB,
		                             .bytes = ranks > 1 ? 400 * MIB : 120 * MIB,
		                             .highest = ranks > 1 ? 1800 * MIB : 600 * MIB,
		                             .source = "published start-up logs" };
}

static struct tn_serve_figure
graph_memory(const struct tn_serve_request *request)
{
	if (request->eager)
		return (struct tn_serve_figure){ .source = "no CUDA graphs are captured" };
	return (struct tn_serve_figure){
		.lowest = 50 * MIB, .bytes = 400 * MIB, .highest = 1536 * MIB, .source = "published start-up logs"
	};
}

static void
set_needs(const struct tn_served_model *model, const struct tn_weights_list *weights, struct tn_serve_plan *plan)
{
	int ranks = plan->request.gpus;
	int64_t extras = tn__loaded_extras(model, ranks);
	bool second = plan->request.engine == TN_ENGINE_VLLM && tn__second_runner(model);
	if (weights->source != TN_WEIGHTS_UNKNOWN) {
		plan->weights.bytes = tn__weights_of_rank(weights, model, ranks, &plan->weights.highest) + extras;
		plan->weights.highest += extras;
		plan->weights.lowest = plan->weights.bytes;
	}
	plan->weights.source = weights->source == TN_WEIGHTS_HEADERS        ? "headers of the safetensors files"
	                       : weights->source == TN_WEIGHTS_INDEX        ? "index and architecture, whose sums agree"
	                       : weights->source == TN_WEIGHTS_TOTAL        ? "total_size of the index"
	                       : weights->source == TN_WEIGHTS_ARCHITECTURE ? "config.json and architecture"
	                                                                    : "not known";
	plan->activations = tn__activations(model, &plan->request, second);
	plan->graphs = graph_memory(&plan->request);
	plan->other = other_memory(ranks);
	plan->graphs_counted = rules_of(plan->request.engine)->counts_graphs(model);
}

static void
set_available(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	const struct tn_serve_request *request = &plan->request;
	plan->total_bytes = (int64_t)request->gpu->figures.total_bytes;
	plan->context_bytes = (int64_t)request->gpu->figures.context_bytes;
	rules_of(request->engine)->available(model, plan);
	if (request->cache_bytes > 0)
		plan->available = (struct tn_serve_figure){ request->cache_bytes, request->cache_bytes, request->cache_bytes,
			                                        "--kv-cache-memory-bytes" };
}

/* ---- the verdict ---- */

static bool
holds(const struct tn_serve_plan *plan, int64_t blocks)
{
	int64_t sequences = plan->request.concurrency > 0 ? plan->request.concurrency : 1;
	return blocks - plan->kept_blocks >= plan->needed_blocks * sequences;
}

static enum tn_serve_limit
name_limit(const struct tn_serve_plan *plan)
{
	if (plan->available.bytes <= 0)
		return TN_SERVE_LIMIT_WEIGHTS;
	return plan->blocks - plan->kept_blocks >= plan->needed_blocks ? TN_SERVE_LIMIT_CONCURRENCY : TN_SERVE_LIMIT_LENGTH;
}

static void
judge(struct tn_serve_plan *plan)
{
	int64_t free_at_start = plan->total_bytes - plan->context_bytes;
	if (plan->request.engine == TN_ENGINE_VLLM && plan->request.cache_bytes <= 0 &&
	    plan->requested_bytes > free_at_start) {
		plan->verdict = TN_SERVE_FAILS; /* v1/worker/utils.py, request_memory */
		plan->limit = TN_SERVE_LIMIT_UTILIZATION;
	} else if (holds(plan, plan->lowest_blocks)) {
		plan->verdict = TN_SERVE_STARTS;
	} else {
		plan->verdict = holds(plan, plan->highest_blocks) ? TN_SERVE_NARROW : TN_SERVE_FAILS;
		plan->limit = name_limit(plan);
	}
}

/* The length is the model's own unless one is named; a longer one is refused by engines. */
static bool
set_length(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	struct tn_serve_request *request = &plan->request;
	if (request->max_model_len <= 0)
		request->max_model_len = model->context;
	if (request->max_model_len <= 0) {
		snprintf(plan->reason, sizeof(plan->reason), "config.json names no longest sequence: give --max-model-len");
		return false;
	}
	if (model->context <= 0 || request->max_model_len <= model->context)
		return true;
	snprintf(plan->reason, sizeof(plan->reason),
	         "the model was made for %" PRId64 " tokens; engines refuse a longer --max-model-len", model->context);
	plan->verdict = TN_SERVE_FAILS;
	plan->limit = TN_SERVE_LIMIT_CONTEXT;
	return false;
}

static bool
set_served(const struct tn_served_model *model, const struct tn_engine_rules *rules, struct tn_serve_plan *plan)
{
	const char *reason = rules->refuses != NULL ? rules->refuses(model) : NULL;
	if (reason == NULL)
		return true;
	snprintf(plan->reason, sizeof(plan->reason), "%s", reason);
	plan->verdict = TN_SERVE_FAILS;
	plan->limit = TN_SERVE_LIMIT_MODEL;
	return false;
}

int64_t
tn__serve_count(const struct tn_serve_plan *plan, int64_t bytes)
{
	return rules_of(plan->request.engine)->count(plan, bytes);
}

void
tn__serve_compute(const struct tn_served_model *model, const struct tn_weights_list *weights,
                  const struct tn_serve_request *request, struct tn_serve_plan *plan)
{
	const struct tn_engine_rules *rules = rules_of(request->engine);
	*plan = (struct tn_serve_plan){ .request = *request };
	if (!set_length(model, plan) || !check_degree(model, plan))
		return;
	if (!set_served(model, rules, plan))
		return;
	if (request->gpu != NULL)
		rules->defaults(model, &plan->request);
	set_cache(model, plan);
	if (request->gpu == NULL)
		plan->request.max_num_batched_tokens = plan->request.max_num_batched_tokens > 0
		                                           ? plan->request.max_num_batched_tokens
		                                           : 2048;
	if (model->hidden > 0 && model->vocabulary > 0)
		set_needs(model, weights, plan);
	if (request->gpu == NULL || plan->layout.problem[0] != '\0')
		return;
	if (weights->source == TN_WEIGHTS_UNKNOWN && request->cache_bytes <= 0) {
		snprintf(plan->reason, sizeof(plan->reason), "%s",
		         weights->problem[0] != '\0' ? weights->problem : "the size of the weights is not known");
		return;
	}
	set_available(model, plan);
	plan->blocks = rules->count(plan, plan->available.bytes);
	plan->lowest_blocks = rules->count(plan, plan->available.lowest);
	plan->highest_blocks = rules->count(plan, plan->available.highest);
	rules->capacity(model, plan);
	judge(plan);
}
