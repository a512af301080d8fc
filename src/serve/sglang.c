/* SPDX-License-Identifier: Apache-2.0
 *
 * SGLang 0.5.23: what it sets by itself (arg_groups/memory_hook.py, arg_groups/overrides.py), what it finds for its cache
 * (mem_cache/kv_cache_configurator.py), and what that holds (pools.c).
 */
#include <math.h>

#include "serve/architecture.h"
#include "serve/rules.h"

#define MIB (INT64_C(1) << 20)
#define LARGE_MIB (60 * 1024) /* cards above this keep 10 GiB free for activations */
#define BLACKWELL_PAGE 64     /* trtllm_mha, trtllm_mla */
#define PICTURES_MIB 100      /* SGLANG_VLM_CACHE_SIZE_MB */

/* A chunk of a prefill and the largest batch with a graph, by the card's memory. */
static void
batch_of(const struct tn_serve_request *request, int64_t *chunk, int64_t *batch)
{
	static const struct {
		int64_t below_mib, chunk, batch, batch_of_four;
	} steps[] = { { 20 * 1024, 2048, 8, 8 },
		          { 35 * 1024, 4096, 48, 160 },
		          { 60 * 1024, 4096, 32, 160 },
		          { 160 * 1024, 8192, 256, 512 },
		          { INT64_MAX, 16384, 512, 512 } };
	int64_t memory = (int64_t)(request->gpu->figures.total_bytes / (uint64_t)MIB);
	size_t i = 0;
	while (memory >= steps[i].below_mib)
		i++;
	*chunk = request->max_num_batched_tokens > 0 ? request->max_num_batched_tokens : steps[i].chunk;
	*batch = request->gpus < 4 ? steps[i].batch : steps[i].batch_of_four;
	if (request->max_num_seqs > 0)
		*batch = tn__smaller(*batch, request->max_num_seqs);
}

/* overrides.py, post_capture_kv_sizing_planned: are pools sized after CUDA graphs are captured? */
static bool
sized_after_graphs(const struct tn_served_model *model, const struct tn_serve_request *request)
{
	return model->latent <= 0 && !request->eager;
}

/* pre_capture_activation_reserve_mb: what a prefill without a graph works in. */
static int64_t
working_mib(const struct tn_serve_request *request, int64_t chunk)
{
	int64_t memory = (int64_t)(request->gpu->figures.total_bytes / (uint64_t)MIB), tokens = chunk > 2048 ? chunk : 2048;
	int64_t reserved = 512 + tokens * 3 / 2 + (int64_t)request->gpus * 1024 / 8;
	return memory > LARGE_MIB && reserved < 10 * 1024 ? 10 * 1024 : reserved;
}

/* handle_gpu_memory_settings: what mem_fraction_static leaves out. */
static int64_t
reserved_mib(const struct tn_served_model *model, const struct tn_serve_request *request, int64_t chunk, int64_t batch)
{
	int64_t memory = (int64_t)(request->gpu->figures.total_bytes / (uint64_t)MIB), tokens = chunk > 2048 ? chunk : 2048;
	if (sized_after_graphs(model, request))
		return 1536 + (int64_t)request->gpus * 1024 / 8;
	int64_t reserved = 512 + tokens * 3 / 2 + (int64_t)request->gpus * 1024 / 8 +
	                   (request->eager ? 0 : batch * 2 + 1536);
	return memory > LARGE_MIB && reserved < 10 * 1024 ? 10 * 1024 : reserved;
}

static void
defaults(const struct tn_served_model *model, struct tn_serve_request *request)
{
	int64_t memory = (int64_t)(request->gpu->figures.total_bytes / (uint64_t)MIB), chunk, batch;
	batch_of(request, &chunk, &batch);
	request->max_num_batched_tokens = chunk;
	if (request->utilization <= 0)
		request->utilization = round((double)(memory - reserved_mib(model, request, chunk, batch)) / (double)memory *
		                             1000.0) /
		                       1000.0;
}

/* configs/model_config.py, is_hybrid_swa_model: only some architectures have a pool for windows; the other layers with a window keep all
 * tokens. */
static void
keep_all_tokens(struct tn_cache_layout *layout)
{
	for (int i = 0; i < layout->kind_count; i++) {
		struct tn_cache_layers *kind = &layout->kinds[i];
		if (kind->cache != TN_CACHE_WINDOW && kind->cache != TN_CACHE_CHUNK)
			continue;
		layout->token_bytes += kind->layers * kind->token_bytes;
		kind->cache = TN_CACHE_FULL;
		kind->window = 0;
	}
	layout->window_bytes = 0;
}

/* Tokens of a page: 1, but for the kernels that Blackwell's large cards have (model_override_base.py, overrides.py). */
static bool
layout(const struct tn_served_model *model, const struct tn_cache_request *request, struct tn_cache_layout *layout)
{
	layout->page_tokens = request->compute_major == 10 ? BLACKWELL_PAGE : 1;
	if (model->known == NULL || (model->known->flags & TN_ARCH_WINDOW_POOL) == 0)
		keep_all_tokens(layout);
	return true;
}

static bool
counts_graphs(const struct tn_served_model *model)
{
	return model->latent <= 0;
}

/* _profile_available_bytes. */
static void
available(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	const struct tn_serve_figure *graphs = &plan->graphs, none = { 0 };
	int64_t before = plan->total_bytes - plan->context_bytes,
			slack = (int64_t)((double)before * (1.0 - plan->request.utilization));
	if (model->state.kind != TN_STATE_NONE && sized_after_graphs(model, &plan->request)) {
		int64_t working = working_mib(&plan->request, plan->request.max_num_batched_tokens) * MIB;
		slack = slack > working ? slack : working;
	}
	if (model->multimodal)
		slack += PICTURES_MIB * MIB;
	if (!plan->graphs_counted)
		graphs = &none;
	plan->requested_bytes = before - slack;
	plan->available.bytes = plan->requested_bytes - plan->weights.bytes - plan->other.bytes - graphs->bytes;
	plan->available.highest = plan->requested_bytes - plan->weights.lowest - plan->other.lowest - graphs->lowest;
	plan->available.lowest = plan->requested_bytes - plan->weights.highest - plan->other.highest - graphs->highest;
	plan->available.source = "what is free after loading, less the share that is kept free";
}

/* Sequences with a state where there is nothing else, otherwise tokens. */
static int64_t
count(const struct tn_serve_plan *plan, int64_t bytes)
{
	struct tn_pools pools = tn__pools_in(&plan->layout, bytes);
	return plan->layout.token_bytes > 0 ? pools.tokens : pools.states;
}

static void
capacity(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	int64_t length = plan->request.max_model_len, most = model->context > length ? model->context : length;
	plan->pools = tn__pools_in(&plan->layout, plan->available.bytes);
	plan->tokens = plan->pools.tokens;
	plan->needed_blocks = length;
	plan->needed_bytes = length * plan->layout.token_bytes + plan->layout.window_bytes + plan->layout.state_bytes;
	plan->longest = tn__smaller(plan->pools.tokens, most);
	plan->sequences = length > 0 ? (double)plan->tokens / (double)length : 0;
	if (plan->layout.token_bytes == 0) { /* states alone */
		plan->sequences = (double)plan->pools.states;
		plan->longest = plan->pools.states > 0 ? most : 0;
		plan->needed_blocks = 1;
	}
}

const struct tn_engine_rules tn__sglang_rules = { .defaults = defaults,
	                                              .layout = layout,
	                                              .counts_graphs = counts_graphs,
	                                              .available = available,
	                                              .capacity = capacity,
	                                              .count = count };
