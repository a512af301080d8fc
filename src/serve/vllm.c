/* SPDX-License-Identifier: Apache-2.0
 *
 * vLLM 0.26.0: what it sets by itself, what it finds for its cache, and what that holds. The layout of the cache is in kv_cache.c.
 */
#include <math.h>
#include <string.h>

#include "serve/rules.h"

#define GIB (INT64_C(1) << 30)
#define UTILIZATION 0.92 /* config/cache.py */

/* What `vllm serve` sets by itself: engine/arg_utils.py, get_batch_defaults and _set_default_max_num_seqs_and_batched_tokens_args. */
static void
defaults(const struct tn_served_model *model, struct tn_serve_request *request)
{
	(void)model;
	const struct tn_gpu_figures *gpu = &request->gpu->figures;
	bool large = gpu->total_bytes >= 70 * (uint64_t)GIB && strstr(gpu->name, "A100") == NULL;
	bool own_tokens = request->max_num_batched_tokens > 0, own_sequences = request->max_num_seqs > 0;
	if (!own_sequences)
		request->max_num_seqs = large ? 1024 : 256;
	if (!own_tokens)
		request->max_num_batched_tokens = tn__smaller(large ? 8192 : 2048,
		                                              request->max_num_seqs * request->max_model_len);
	if (!own_sequences)
		request->max_num_seqs = tn__smaller(request->max_num_seqs, request->max_num_batched_tokens);
	if (request->utilization <= 0)
		request->utilization = UTILIZATION;
}

static bool
counts_graphs(const struct tn_served_model *model)
{
	return !tn__second_runner(model);
}

/* gpu_worker.py, determine_available_memory. */
static void
available(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	(void)model;
	const struct tn_serve_figure *graphs = &plan->graphs, none = { 0 };
	if (!plan->graphs_counted)
		graphs = &none;
	plan->requested_bytes = (int64_t)ceil((double)plan->total_bytes * plan->request.utilization);
	plan->available.bytes = plan->requested_bytes - plan->weights.bytes - plan->activations.bytes - plan->other.bytes -
	                        graphs->bytes;
	plan->available.highest = plan->requested_bytes - plan->weights.lowest - plan->activations.lowest -
	                          plan->other.lowest - graphs->lowest;
	plan->available.lowest = plan->requested_bytes - plan->weights.highest - plan->activations.highest -
	                         plan->other.highest - graphs->highest;
	plan->available.source = "what is requested, less weights, activations and libraries";
}

static int64_t
count(const struct tn_serve_plan *plan, int64_t bytes)
{
	return tn__cache_blocks_in(&plan->layout, bytes);
}

static void
capacity(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	int64_t length = plan->request.max_model_len;
	plan->needed_blocks = tn__cache_blocks_of(&plan->layout, &plan->cache, length);
	plan->needed_bytes = plan->needed_blocks * plan->layout.block_bytes;
	plan->sequences = plan->needed_blocks > 0 ? (double)plan->blocks / (double)plan->needed_blocks : 0;
	plan->tokens = (int64_t)(plan->sequences * (double)length);
	plan->longest = tn__cache_longest(&plan->layout, &plan->cache, plan->blocks,
	                                  model->context > length ? model->context : length);
}

const struct tn_engine_rules tn__vllm_rules = {
	.defaults = defaults, .counts_graphs = counts_graphs, .available = available, .capacity = capacity, .count = count
};
