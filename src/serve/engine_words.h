/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines whose rules are known: their names, releases, and what each calls the options that decide its cache. The same option of
 * an engine's Python interface has the same name with '_' for '-' (kit/serve_probe.py is called with those).
 */
#ifndef TN_SERVE_ENGINE_WORDS_H
#define TN_SERVE_ENGINE_WORDS_H

#include <stdbool.h>

enum tn_engine { TN_ENGINE_VLLM, TN_ENGINE_SGLANG, TN_ENGINE_LMDEPLOY, TN_ENGINES };

/* Options are without their dashes; NULL where the engine has none. */
struct tn_engine_words {
	const char *name, *title; /* "vllm", "vLLM" */
	const char *version;      /* whose rules */
	const char *command;      /* what the folder follows */
	const char *cards, *length, *sequences, *tokens, *utilization, *cache_bytes, *eager, *prefix;
	const char *cache_type, *fp8, *fp8_e5m2; /* how it spells 8 bits; NULL: as vLLM does */
	bool blocks;                             /* it counts blocks; otherwise tokens */
	bool profiles;                           /* a smaller batch leaves more for the cache */
};

const struct tn_engine_words *tn__engine_words(enum tn_engine engine);
/* False where there is no engine of that name. */
bool tn__engine_find(const char *name, enum tn_engine *engine);

#endif
