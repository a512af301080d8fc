/* SPDX-License-Identifier: Apache-2.0
 *
 * LMDeploy 0.18.0, its PyTorch engine: what it sets by itself (utils.py, messages.py), what it finds for its cache and what that holds
 * (pytorch/engine/executor/base.py, pytorch/engine/cache_engine).
 */
#include <string.h>

#include "serve/architecture.h"
#include "serve/rules.h"

#define UTILIZATION 0.8
#define PREFILL 8192
#define BLOCK_TOKENS 64
#define WIDE_BLOCK_TOKENS 32 /* _adjust_block_size: keys of 512 numbers and more, without the package flash_mla */
#define WIDE_KEY 512
#define FEWEST_BLOCKS 16 /* _get_runtime_size */

static const char *
refuses(const struct tn_served_model *model)
{
	if (model->known != NULL && (model->known->flags & TN_ARCH_LMDEPLOY) == 0)
		return "LMDeploy does not serve this architecture";
	return NULL;
}

/* utils.py, get_max_batch_size: by the card's name. */
static int64_t
batch_of(const char *card)
{
	static const struct {
		const char *card;
		int64_t batch;
	} rows[] = { { "A100", 384 },  { "A800", 384 },  { "H100", 1024 },
		         { "H800", 1024 }, { "L20Y", 1024 }, { "H200", 1024 } };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strstr(card, rows[i].card) != NULL)
			return rows[i].batch;
	return 128;
}

static void
defaults(const struct tn_served_model *model, struct tn_serve_request *request)
{
	(void)model;
	if (request->max_num_seqs <= 0)
		request->max_num_seqs = batch_of(request->gpu->figures.name);
	if (request->max_num_batched_tokens <= 0)
		request->max_num_batched_tokens = PREFILL;
	if (request->utilization <= 0)
		request->utilization = UTILIZATION;
}

/* One table of blocks; every layer keeps all tokens, with a window or without. */
static bool
layout(const struct tn_served_model *model, const struct tn_cache_request *request, struct tn_cache_layout *layout)
{
	(void)request;
	int64_t block = BLOCK_TOKENS, token = layout->kinds[0].token_bytes;
	for (int32_t i = 0; i < model->layer_count; i++)
		if (model->layers[i].key_size >= WIDE_KEY)
			block = WIDE_BLOCK_TOKENS;
	for (int i = 0; i < layout->kind_count; i++)
		if (layout->kinds[i].cache == TN_CACHE_NONE || layout->kinds[i].token_bytes != token) {
			*layout = (struct tn_cache_layout){
				.problem = "not known: LMDeploy's for layers with a state, or of several sizes"
			};
			return false;
		}
	layout->block_tokens = block;
	layout->group_layers = 0;
	for (int i = 0; i < layout->kind_count; i++) {
		struct tn_cache_layers *kind = &layout->kinds[i];
		kind->block_tokens = block;
		kind->page_bytes = block * token;
		kind->groups = i == 0;
		layout->group_layers += kind->layers;
	}
	layout->unified = false;
	layout->window_bytes = 0;
	layout->token_bytes = layout->group_layers * token;
	layout->block_bytes = block * layout->token_bytes;
	return true;
}

static bool
counts_graphs(const struct tn_served_model *model)
{
	(void)model;
	return false; /* graphs are captured after the cache is there */
}

static int64_t
count(const struct tn_serve_plan *plan, int64_t bytes)
{
	return tn__cache_blocks_in(&plan->layout, bytes);
}

/* _get_runtime_size: room for a prefill's logits in 16 bits is set aside; for a smaller prefill where too little is left. */
static int64_t
share_of(const struct tn_served_model *model, const struct tn_serve_plan *plan, int64_t free_bytes)
{
	int64_t tokens = plan->request.max_num_batched_tokens, share = 0;
	for (; tokens > 0; tokens /= 2) {
		int64_t logits = (tokens + 2 * plan->request.max_num_seqs) * model->vocabulary * 2;
		share = (int64_t)((double)(free_bytes - logits) * plan->request.utilization);
		if (count(plan, share) >= FEWEST_BLOCKS)
			break;
	}
	return share;
}

static void
available(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	int64_t before = plan->total_bytes - plan->context_bytes;
	plan->requested_bytes = before;
	plan->available.bytes = share_of(model, plan, before - plan->weights.bytes - plan->other.bytes);
	plan->available.highest = share_of(model, plan, before - plan->weights.lowest - plan->other.lowest);
	plan->available.lowest = share_of(model, plan, before - plan->weights.highest - plan->other.highest);
	plan->available.source = "a share of what is free after loading, less a prefill's logits";
}

/* One block is the engine's own. */
static void
capacity(const struct tn_served_model *model, struct tn_serve_plan *plan)
{
	int64_t length = plan->request.max_model_len, block = plan->layout.block_tokens,
			most = model->context > length ? model->context : length;
	int64_t usable = plan->blocks > 1 ? plan->blocks - 1 : 0;
	plan->kept_blocks = 1;
	plan->needed_blocks = (length + block - 1) / block;
	plan->needed_bytes = plan->needed_blocks * plan->layout.block_bytes;
	plan->sequences = (double)usable / (double)plan->needed_blocks;
	plan->tokens = usable * block;
	plan->longest = tn__smaller(usable * block, most);
}

const struct tn_engine_rules tn__lmdeploy_rules = { .refuses = refuses,
	                                                .defaults = defaults,
	                                                .layout = layout,
	                                                .counts_graphs = counts_graphs,
	                                                .available = available,
	                                                .capacity = capacity,
	                                                .count = count };
