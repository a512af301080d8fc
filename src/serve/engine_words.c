/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/engine_words.h"

#include <stddef.h>
#include <string.h>

static const struct tn_engine_words engines[TN_ENGINES] = {
	[TN_ENGINE_VLLM] = { .name = "vllm",
	                     .title = "vLLM",
	                     .version = "0.26.0",
	                     .command = "vllm serve",
	                     .cards = "tensor-parallel-size",
	                     .length = "max-model-len",
	                     .sequences = "max-num-seqs",
	                     .tokens = "max-num-batched-tokens",
	                     .utilization = "gpu-memory-utilization",
	                     .cache_bytes = "kv-cache-memory-bytes",
	                     .eager = "enforce-eager",
	                     .prefix = "enable-prefix-caching",
	                     .cache_type = "kv-cache-dtype",
	                     .blocks = true,
	                     .profiles = true },
	[TN_ENGINE_SGLANG] = { .name = "sglang",
	                       .title = "SGLang",
	                       .version = "0.5.23",
	                       .command = "python -m sglang.launch_server --model-path",
	                       .cards = "tp-size",
	                       .length = "context-length",
	                       .sequences = "max-running-requests",
	                       .tokens = "chunked-prefill-size",
	                       .utilization = "mem-fraction-static",
	                       .eager = "disable-cuda-graph",
	                       .cache_type = "kv-cache-dtype",
	                       .fp8 = "fp8_e4m3" },
	[TN_ENGINE_LMDEPLOY] = { .name = "lmdeploy",
	                         .title = "LMDeploy",
	                         .version = "0.18.0",
	                         .command = "lmdeploy serve api_server --backend pytorch",
	                         .cards = "tp",
	                         .length = "session-len",
	                         .sequences = "max-batch-size",
	                         .tokens = "max-prefill-token-num",
	                         .utilization = "cache-max-entry-count",
	                         .eager = "eager-mode",
	                         .prefix = "enable-prefix-caching",
	                         .cache_type = "quant-policy",
	                         .fp8 = "16",
	                         .fp8_e5m2 = "17",
	                         .blocks = true,
	                         .profiles = true },
};

const struct tn_engine_words *
tn__engine_words(enum tn_engine engine)
{
	return &engines[engine];
}

bool
tn__engine_find(const char *name, enum tn_engine *engine)
{
	for (int i = 0; i < TN_ENGINES; i++)
		if (strcmp(engines[i].name, name) == 0) {
			*engine = (enum tn_engine)i;
			return true;
		}
	return false;
}
