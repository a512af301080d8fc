/* SPDX-License-Identifier: Apache-2.0
 *
 * vLLM's layout of the cache (0.26.0): v1/kv_cache_interface.py (pages), v1/core/kv_cache_utils.py (groups, blocks, what a sequence needs),
 * platforms/interface.py, _align_hybrid_block_size (blocks of hybrid models).
 */
#include "serve/kv_cache.h"

#include <stdio.h>
#include <string.h>

#define BLOCK_TOKENS 16

static int64_t
divide_up(int64_t number, int64_t by)
{
	return (number + by - 1) / by;
}

/* Tokens of a block by the kernels that vLLM takes on this card: platforms/cuda.py, _get_backend_priorities, and the backends'
 * get_supported_kernel_block_sizes. */
static int64_t
first_block(const struct tn_served_model *model, const struct tn_cache_request *request)
{
	bool latent = model->latent > 0;
	if (latent && request->compute_major == 10)
		return 32; /* FLASHINFER_MLA */
	if (latent && request->compute_major == 9 && request->number_bytes == 1)
		return 64; /* FLASHMLA: FlashAttention's has no 8 bits */
	return BLOCK_TOKENS;
}

static int64_t
token_bytes_of(const struct tn_model_layer *layer, const struct tn_cache_request *request)
{
	int64_t heads = layer->kv_heads > request->ranks ? layer->kv_heads / request->ranks : 1;
	return heads * (layer->key_size + layer->value_size) * request->number_bytes;
}

static struct tn_cache_layers *
find_kind(struct tn_cache_layout *layout, enum tn_cache_kind cache, int32_t window, int64_t token_bytes)
{
	for (int i = 0; i < layout->kind_count; i++) {
		struct tn_cache_layers *kind = &layout->kinds[i];
		if (kind->cache == cache && kind->window == window && kind->token_bytes == token_bytes)
			return kind;
	}
	if (layout->kind_count == TN_CACHE_GROUP_KINDS)
		return NULL;
	struct tn_cache_layers *kind = &layout->kinds[layout->kind_count++];
	*kind = (struct tn_cache_layers){ .cache = cache, .window = window, .token_bytes = token_bytes };
	return kind;
}

static bool
count_layers(const struct tn_served_model *model, const struct tn_cache_request *request,
             struct tn_cache_layout *layout)
{
	int64_t state = tn__state_bytes(&model->state, request->ranks);
	for (int32_t i = 0; i < model->layer_count; i++) {
		const struct tn_model_layer *layer = &model->layers[i];
		if (layer->cache != TN_CACHE_NONE) {
			bool windowed = layer->cache == TN_CACHE_WINDOW || layer->cache == TN_CACHE_CHUNK;
			struct tn_cache_layers *kind = find_kind(layout, layer->cache, windowed ? layer->window : 0,
			                                         token_bytes_of(layer, request));
			if (kind == NULL)
				return false;
			kind->layers++;
			if (windowed)
				layout->window_bytes += kind->token_bytes * layer->window;
			else
				layout->token_bytes += kind->token_bytes;
		}
		if (layer->state) {
			struct tn_cache_layers *kind = find_kind(layout, TN_CACHE_NONE, 0, 0);
			if (kind == NULL)
				return false;
			kind->layers++;
			layout->state_bytes += state;
		}
	}
	return true;
}

static int64_t
largest_token(const struct tn_cache_layout *layout)
{
	int64_t largest = 0;
	for (int i = 0; i < layout->kind_count; i++)
		if (layout->kinds[i].token_bytes > largest)
			largest = layout->kinds[i].token_bytes;
	return largest;
}

/* Hybrid models: the block grows until an attention page holds a state, whose page is padded to it. */
static void
set_pages(const struct tn_served_model *model, const struct tn_cache_request *request, struct tn_cache_layout *layout)
{
	int64_t block = first_block(model, request), state = tn__state_bytes(&model->state, request->ranks),
			token = largest_token(layout);
	if (state > 0 && token > 0)
		block *= divide_up(state, block * token);
	layout->block_tokens = block;
	for (int i = 0; i < layout->kind_count; i++) {
		struct tn_cache_layers *kind = &layout->kinds[i];
		kind->block_tokens = block;
		kind->page_bytes = kind->cache != TN_CACHE_NONE ? block * kind->token_bytes : token > 0 ? block * token : state;
	}
}

/* Every kind grows with the sequence, without a window. */
static bool
all_grow(const struct tn_cache_layout *layout)
{
	for (int i = 0; i < layout->kind_count; i++)
		if (layout->kinds[i].cache != TN_CACHE_FULL && layout->kinds[i].cache != TN_CACHE_LATENT)
			return false;
	return true;
}

/* One page for all kinds: smaller ones take more tokens to a block, or are padded. */
static void
unify_pages(struct tn_cache_layout *layout)
{
	int64_t largest = 0;
	for (int i = 0; i < layout->kind_count; i++)
		if (layout->kinds[i].page_bytes > largest)
			largest = layout->kinds[i].page_bytes;
	for (int i = 0; i < layout->kind_count; i++) {
		struct tn_cache_layers *kind = &layout->kinds[i];
		if (kind->cache != TN_CACHE_NONE && largest % kind->page_bytes == 0)
			kind->block_tokens *= largest / kind->page_bytes;
		kind->page_bytes = largest;
	}
}

/* The kind with the fewest layers sets how many a group has; with the most, when that is less than half more. */
static void
set_groups(struct tn_cache_layout *layout)
{
	int32_t fewest = INT32_MAX, most = 0;
	for (int i = 0; i < layout->kind_count; i++) {
		int32_t layers = layout->kinds[i].layers;
		fewest = layers < fewest ? layers : fewest;
		most = layers > most ? layers : most;
	}
	layout->group_layers = 2 * (int64_t)most < 3 * (int64_t)fewest ? most : fewest;
	for (int i = 0; i < layout->kind_count; i++)
		layout->kinds[i].groups = (int)divide_up(layout->kinds[i].layers, layout->group_layers);
	layout->block_bytes = layout->group_layers * layout->kinds[0].page_bytes;
}

/* One group, of layers that may differ in size. */
static void
set_one_group(struct tn_cache_layout *layout)
{
	for (int i = 0; i < layout->kind_count; i++) {
		layout->kinds[i].groups = i == 0;
		layout->group_layers += layout->kinds[i].layers;
		layout->block_bytes += layout->kinds[i].layers * layout->kinds[i].page_bytes;
	}
}

bool
tn__cache_layout(const struct tn_served_model *model, const struct tn_cache_request *request,
                 struct tn_cache_layout *layout)
{
	*layout = (struct tn_cache_layout){ 0 };
	if (model->missing[0] != '\0')
		snprintf(layout->problem, sizeof(layout->problem), "not known: %.140s", model->missing);
	else if (!count_layers(model, request, layout))
		snprintf(layout->problem, sizeof(layout->problem), "more than %d kinds of layers", TN_CACHE_GROUP_KINDS);
	else if (layout->kind_count == 0)
		snprintf(layout->problem, sizeof(layout->problem), "no layer caches anything");
	if (layout->problem[0] != '\0')
		return false;
	set_pages(model, request, layout);
	layout->unified = layout->kind_count > 1 && !all_grow(layout);
	if (layout->unified) {
		unify_pages(layout);
		set_groups(layout);
	} else {
		set_one_group(layout);
	}
	return true;
}

/* Blocks of one group. */
static int64_t
blocks_of_kind(const struct tn_cache_layers *kind, const struct tn_cache_request *request, int64_t tokens)
{
	int64_t held;
	switch (kind->cache) {
	case TN_CACHE_WINDOW: /* a window may begin inside a block, hence one more */
		held = kind->window - 1 + request->in_flight;
		return divide_up(held < tokens ? held : tokens, kind->block_tokens) + 1;
	case TN_CACHE_CHUNK:
		held = kind->window + request->in_flight;
		return divide_up(held < tokens ? held : tokens, kind->block_tokens);
	case TN_CACHE_NONE:
		return request->prefix_caching ? 2 : 1;
	default:
		return divide_up(tokens, kind->block_tokens);
	}
}

int64_t
tn__cache_blocks_of(const struct tn_cache_layout *layout, const struct tn_cache_request *request, int64_t tokens)
{
	int64_t blocks = 0;
	for (int i = 0; i < layout->kind_count; i++)
		blocks += layout->kinds[i].groups * blocks_of_kind(&layout->kinds[i], request, tokens);
	return blocks;
}

int64_t
tn__cache_blocks_in(const struct tn_cache_layout *layout, int64_t bytes)
{
	return bytes > 0 && layout->block_bytes > 0 ? bytes / layout->block_bytes : 0;
}

int64_t
tn__cache_longest(const struct tn_cache_layout *layout, const struct tn_cache_request *request, int64_t blocks,
                  int64_t most)
{
	int64_t low = 0, high = most;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;
		if (tn__cache_blocks_of(layout, request, middle) <= blocks)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}
