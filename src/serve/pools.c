/* SPDX-License-Identifier: Apache-2.0
 *
 * SGLang's pools (0.5.23): tokens by model_executor/pool_configurator.py, states by mem_cache/kv_cache_configurator.py
 * (_handle_max_mamba_cache), with their default ratios.
 */
#include "serve/kv_cache.h"

#define WINDOW_RATIO 0.8 /* tokens of windows to tokens of other layers: --swa-full-tokens-ratio */
#define STATE_RATIO 0.9  /* memory of states to memory of tokens: --mamba-full-memory-ratio */

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
	if (layout->state_bytes > 0) {
		double states = layout->token_bytes + window_token > 0 ? rest * STATE_RATIO / (1 + STATE_RATIO) : rest;
		pools.states = (int64_t)(states / (double)layout->state_bytes);
		rest -= states;
	}
	if (window_token > 0 && layout->token_bytes > 0) {
		pools.tokens = (int64_t)(rest / ((double)layout->token_bytes + WINDOW_RATIO * (double)window_token));
		pools.window_tokens = (int64_t)(WINDOW_RATIO * (double)pools.tokens);
	} else if (layout->token_bytes + window_token > 0) {
		pools.tokens = (int64_t)(rest / (double)(layout->token_bytes + window_token));
	}
	return pools;
}
