/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: what the engine may use, what it needs before the cache, what is left, and whether that is enough.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/figure.h"
#include "serve/architecture.h"
#include "serve/serve.h"

#define GIB (INT64_C(1) << 30)
#define MIB (INT64_C(1) << 20)
#define VLLM_UTILIZATION 0.92 /* config/cache.py */

static int64_t
smaller(int64_t first, int64_t second)
{
	return first < second ? first : second;
}

/* What `vllm serve` sets by itself: engine/arg_utils.py, get_batch_defaults and _set_default_max_num_seqs_and_batched_tokens_args. */
static void
vllm_defaults(struct tn_serve_request *request, const struct tn_gpu_figures *gpu)
{
	bool large = gpu->total_bytes >= 70 * (uint64_t)GIB && strstr(gpu->name, "A100") == NULL;
	bool own_tokens = request->max_num_batched_tokens > 0, own_sequences = request->max_num_seqs > 0;
	if (!own_sequences)
		request->max_num_seqs = large ? 1024 : 256;
	if (!own_tokens)
		request->max_num_batched_tokens = smaller(large ? 8192 : 2048, request->max_num_seqs * request->max_model_len);
	if (!own_sequences)
		request->max_num_seqs = smaller(request->max_num_seqs, request->max_num_batched_tokens);
	if (request->utilization <= 0)
		request->utilization = VLLM_UTILIZATION;
}

/* SGLang's chunk of a prefill and largest batch with a graph, by the card's memory: arg_groups/memory_hook.py. */
static void
sglang_defaults(struct tn_serve_request *request, const struct tn_gpu_figures *gpu, bool latent)
{
	static const struct {
		int64_t below_mib, chunk, batch, batch_of_four;
	} steps[] = { { 20 * 1024, 2048, 8, 8 },      { 35 * 1024, 4096, 48, 160 },   { 60 * 1024, 4096, 32, 160 },
		          { 160 * 1024, 8192, 256, 512 }, { INT64_MAX, 16384, 512, 512 } };
	int64_t memory = (int64_t)(gpu->total_bytes / (uint64_t)MIB), batch = 0, reserved;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (memory < steps[i].below_mib) {
			if (request->max_num_batched_tokens <= 0)
				request->max_num_batched_tokens = steps[i].chunk;
			batch = request->gpus < 4 ? steps[i].batch : steps[i].batch_of_four;
			break;
		}
	if (request->max_num_seqs <= 0)
		request->max_num_seqs = batch;
	/* Pools are sized after graphs are captured, but for latent attention, where room for them is set aside. */
	reserved = 1536;
	if (latent) {
		int64_t tokens = request->max_num_batched_tokens > 2048 ? request->max_num_batched_tokens : 2048;
		reserved = 512 + tokens * 3 / 2 + (request->eager ? 0 : batch * 2 + 1536);
	}
	reserved += (int64_t)request->gpus * 1024 / 8;
	if (latent && memory > 60 * 1024 && reserved < 10 * 1024)
		reserved = 10 * 1024;
	if (request->utilization <= 0)
		request->utilization = round((double)(memory - reserved) / (double)memory * 1000.0) / 1000.0;
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
	bool fits = divides(model->heads, ranks) && (model->kv_heads <= 0 || model->kv_heads % ranks == 0 || ranks % model->kv_heads == 0) &&
	            divides(model->intermediate, ranks) && divides(model->state.heads, ranks) && divides(model->state.value_heads, ranks) &&
	            divides(model->state.key_heads, ranks) && divides(model->state.inner, ranks);
	if (fits)
		return true;
	snprintf(plan->reason, sizeof(plan->reason), "%d cards cannot share this model's heads (%" PRId64 " heads, %" PRId64 " KV heads, %" PRId64 " wide)", ranks,
	         model->heads, model->kv_heads, model->intermediate);
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
	plan->cache = (struct tn_cache_request){ .ranks = request->gpus, .number_bytes = cache_number_bytes(model, request),
		                                     .in_flight = 2 * request->max_num_batched_tokens,
		                                     .compute_major = request->gpu != NULL ? request->gpu->figures.compute_major : 0 };
	plan->cache.prefix_caching = model->state.kind != TN_STATE_NONE && request->prefix_caching;
	if (!tn__cache_layout(model, &plan->cache, &plan->layout))
		snprintf(plan->reason, sizeof(plan->reason), "the cache is %s", plan->layout.problem);
}

/* Libraries' kernels and buffers that load during the profile run; with several ranks those of the all-reduce, too. Seen in published
 * logs: 0.03 to 0.6 GiB on one card, up to 1.8 GiB on several. */
static struct tn_serve_figure
other_memory(int ranks)
{
	return (struct tn_serve_figure){ .lowest = 20 * MIB, .bytes = ranks > 1 ? 400 * MIB : 120 * MIB, .highest = ranks > 1 ? 1800 * MIB : 600 * MIB,
		                             .source = "published start-up logs" };
}

static struct tn_serve_figure
graph_memory(const struct tn_serve_request *request)
{
	if (request->eager)
		return (struct tn_serve_figure){ .source = "no CUDA graphs are captured" };
	return (struct tn_serve_figure){ .lowest = 50 * MIB, .bytes = 400 * MIB, .highest = 1536 * MIB, .source = "published start-up logs" };
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
	plan->weights.source = weights->source == TN_WEIGHTS_HEADERS ? "headers of the safetensors files"
	                       : weights->source == TN_WEIGHTS_INDEX ? "index and architecture, whose sums agree"
	                       : weights->source == TN_WEIGHTS_TOTAL ? "total_size of the index"
	                       : weights->source == TN_WEIGHTS_ARCHITECTURE ? "config.json and architecture"
	                                                                    : "not known";
	plan->activations = tn__activations(model, &plan->request, second);
	plan->graphs = graph_memory(&plan->request);
	plan->other = other_memory(ranks);
	plan->graphs_counted = plan->request.engine == TN_ENGINE_SGLANG ? model->latent <= 0 : !second;
}

/* vLLM: gpu_worker.py, determine_available_memory. */
static void
vllm_available(struct tn_serve_plan *plan)
{
	const struct tn_serve_figure *graphs = &plan->graphs, none = { 0 };
	if (!plan->graphs_counted)
		graphs = &none;
	plan->requested_bytes = (int64_t)ceil((double)plan->total_bytes * plan->request.utilization);
	plan->available.bytes = plan->requested_bytes - plan->weights.bytes - plan->activations.bytes - plan->other.bytes - graphs->bytes;
	plan->available.highest = plan->requested_bytes - plan->weights.lowest - plan->activations.lowest - plan->other.lowest - graphs->lowest;
	plan->available.lowest = plan->requested_bytes - plan->weights.highest - plan->activations.highest - plan->other.highest - graphs->highest;
	plan->available.source = "what is requested, less weights, activations and libraries";
}

/* SGLang: mem_cache/kv_cache_configurator.py, _profile_available_bytes. */
static void
sglang_available(struct tn_serve_plan *plan)
{
	const struct tn_serve_figure *graphs = &plan->graphs, none = { 0 };
	int64_t before = plan->total_bytes - plan->context_bytes, slack = (int64_t)((double)before * (1.0 - plan->request.utilization));
	if (!plan->graphs_counted)
		graphs = &none;
	plan->requested_bytes = before - slack;
	plan->available.bytes = plan->requested_bytes - plan->weights.bytes - plan->other.bytes - graphs->bytes;
	plan->available.highest = plan->requested_bytes - plan->weights.lowest - plan->other.lowest - graphs->lowest;
	plan->available.lowest = plan->requested_bytes - plan->weights.highest - plan->other.highest - graphs->highest;
	plan->available.source = "what is free after loading, less the share that is kept free";
}

static void
set_available(struct tn_serve_plan *plan)
{
	const struct tn_serve_request *request = &plan->request;
	plan->total_bytes = (int64_t)request->gpu->figures.total_bytes;
	plan->context_bytes = (int64_t)request->gpu->figures.context_bytes;
	if (request->engine == TN_ENGINE_VLLM)
		vllm_available(plan);
	else
		sglang_available(plan);
	if (request->cache_bytes > 0)
		plan->available = (struct tn_serve_figure){ request->cache_bytes, request->cache_bytes, request->cache_bytes, "--kv-cache-memory-bytes" };
}

/* ---- what the memory holds ---- */

static void
vllm_capacity(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	int64_t length = plan->request.max_model_len;
	plan->blocks = tn__cache_blocks_in(&plan->layout, plan->available.bytes);
	plan->lowest_blocks = tn__cache_blocks_in(&plan->layout, plan->available.lowest);
	plan->highest_blocks = tn__cache_blocks_in(&plan->layout, plan->available.highest);
	plan->needed_blocks = tn__cache_blocks_of(&plan->layout, &plan->cache, length);
	plan->needed_bytes = plan->needed_blocks * plan->layout.block_bytes;
	plan->sequences = plan->needed_blocks > 0 ? (double)plan->blocks / (double)plan->needed_blocks : 0;
	plan->tokens = (int64_t)(plan->sequences * (double)length);
	plan->longest = tn__cache_longest(&plan->layout, &plan->cache, plan->blocks, model->context > length ? model->context : length);
}

static int64_t
sglang_longest(const struct tn_pools *pools)
{
	return pools->states == 0 && pools->token_bytes == 0 ? 0 : pools->tokens;
}

static void
sglang_capacity(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	int64_t length = plan->request.max_model_len, most = model->context > length ? model->context : length;
	plan->pools = tn__pools_in(&plan->layout, plan->available.bytes);
	plan->tokens = plan->pools.tokens;
	plan->needed_blocks = length;
	plan->needed_bytes = length * plan->layout.token_bytes + plan->layout.window_bytes + plan->layout.state_bytes;
	plan->longest = smaller(sglang_longest(&plan->pools), most);
	plan->sequences = length > 0 ? (double)plan->tokens / (double)length : 0;
	plan->blocks = plan->pools.tokens;
	plan->lowest_blocks = tn__pools_in(&plan->layout, plan->available.lowest).tokens;
	plan->highest_blocks = tn__pools_in(&plan->layout, plan->available.highest).tokens;
	if (plan->layout.token_bytes == 0) { /* states alone */
		plan->sequences = (double)plan->pools.states;
		plan->longest = plan->pools.states > 0 ? most : 0;
		plan->needed_blocks = 1;
		plan->blocks = plan->pools.states;
		plan->lowest_blocks = tn__pools_in(&plan->layout, plan->available.lowest).states;
		plan->highest_blocks = tn__pools_in(&plan->layout, plan->available.highest).states;
	}
}

/* ---- the verdict ---- */

static bool
holds(const struct tn_serve_plan *plan, int64_t blocks)
{
	int64_t sequences = plan->request.concurrency > 0 ? plan->request.concurrency : 1;
	return blocks >= plan->needed_blocks * sequences;
}

static enum tn_serve_limit
name_limit(const struct tn_serve_plan *plan)
{
	if (plan->available.bytes <= 0)
		return TN_SERVE_LIMIT_WEIGHTS;
	return plan->blocks >= plan->needed_blocks ? TN_SERVE_LIMIT_CONCURRENCY : TN_SERVE_LIMIT_LENGTH;
}

static void
judge(struct tn_serve_plan *plan)
{
	int64_t free_at_start = plan->total_bytes - plan->context_bytes;
	if (plan->request.engine == TN_ENGINE_VLLM && plan->request.cache_bytes <= 0 && plan->requested_bytes > free_at_start) {
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
	snprintf(plan->reason, sizeof(plan->reason), "the model was made for %" PRId64 " tokens; engines refuse a longer --max-model-len", model->context);
	plan->verdict = TN_SERVE_FAILS;
	plan->limit = TN_SERVE_LIMIT_CONTEXT;
	return false;
}

void
tn__serve_compute(const struct tn_served_model *model, const struct tn_weights_list *weights, const struct tn_serve_request *request,
                  struct tn_serve_plan *plan)
{
	*plan = (struct tn_serve_plan){ .request = *request };
	if (!set_length(model, plan) || !check_degree(model, plan))
		return;
	if (request->gpu != NULL && request->engine == TN_ENGINE_VLLM)
		vllm_defaults(&plan->request, &request->gpu->figures);
	else if (request->gpu != NULL)
		sglang_defaults(&plan->request, &request->gpu->figures, model->latent > 0);
	set_cache(model, plan);
	if (request->gpu == NULL)
		plan->request.max_num_batched_tokens = plan->request.max_num_batched_tokens > 0 ? plan->request.max_num_batched_tokens : 2048;
	if (model->hidden > 0 && model->vocabulary > 0)
		set_needs(model, weights, plan);
	if (request->gpu == NULL || plan->layout.problem[0] != '\0')
		return;
	if (weights->source == TN_WEIGHTS_UNKNOWN && request->cache_bytes <= 0) {
		snprintf(plan->reason, sizeof(plan->reason), "%s", weights->problem[0] != '\0' ? weights->problem : "the size of the weights is not known");
		return;
	}
	set_available(plan);
	if (request->engine == TN_ENGINE_VLLM)
		vllm_capacity(model, plan);
	else
		sglang_capacity(model, plan);
	judge(plan);
}
