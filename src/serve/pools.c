/* SPDX-License-Identifier: Apache-2.0
 *
 * SGLang's pools (0.5.23): tokens by model_executor/pool_configurator.py, states by mem_cache/kv_cache_configurator.py
 * (_handle_max_mamba_cache), with their default ratios.
 */
#include "serve/kv_cache.h"

#define WINDOW_RATIO 0.8 /* tokens of windows to tokens of other layers: --swa-full-tokens-ratio */
#define STATE_RATIO 0.9  /* memory of states to memory of tokens: --mamba-full-memory-ratio */

/* Their share, less one state that no sequence gets; tokens get what is left of all. */
static double
take_states(const struct tn_cache_layout *layout, double bytes, struct tn_pools *pools)
{
	double each = (double)layout->state_bytes;
	pools->states = (int64_t)((bytes * STATE_RATIO / (1 + STATE_RATIO) - each) / each);
	if (pools->states <= 0) {
		pools->states = 0;
		return 0;
	}
	return bytes - (double)(pools->states + 1) * each;
}

struct tn_pools
tn__pools_in(const struct tn_cache_layout *layout, int64_t bytes)
{
	struct tn_pools pools = { 0 };
	int64_t window_token = 0;
	for (int i = 0; i < layout->kind_count; i++)
		if (layout->kinds[i].cache == TN_CACHE_WINDOW || layout->kinds[i].cache == TN_CACHE_CHUNK)
			window_token += layout->kinds[i].layers * layout->kinds[i].token_bytes;
	pools.token_bytes = layout->token_bytes;
	if (bytes <= 0)
		return pools;
	double rest = (double)bytes;
	int64_t page = layout->page_tokens > 0 ? layout->page_tokens : 1;
	if (layout->state_bytes > 0)
		rest = take_states(layout, rest, &pools);
	if (rest <= 0)
		return pools;
	if (window_token > 0 && layout->token_bytes > 0) {
		pools.tokens = (int64_t)(rest / ((double)layout->token_bytes + WINDOW_RATIO * (double)window_token)) / page *
		               page;
		pools.window_tokens = (int64_t)(WINDOW_RATIO * (double)pools.tokens) / page * page;
	} else if (layout->token_bytes + window_token > 0) {
		pools.tokens = (int64_t)(rest / (double)(layout->token_bytes + window_token)) / page * page;
	}
	return pools;
}
