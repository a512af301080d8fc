/* SPDX-License-Identifier: Apache-2.0
 *
 * Will an inference engine start?
 */
#ifndef TONNAGE_SERVE_H
#define TONNAGE_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is 0 or NULL is left to the engine. */
struct tn_serve_plan_options {
	const char *folder; /* of a checkpoint: config.json, and headers or whole safetensors files */
	const char *gpu;    /* name or alias of a card; NULL: what does not depend on one */
	int gpus;           /* tensor-parallel degree */
	const char *engine; /* whose rules: "vllm", "sglang" or "lmdeploy"; NULL: vLLM's */
	int64_t max_model_len, max_num_seqs, max_num_batched_tokens, concurrency;
	uint64_t kv_cache_memory_bytes;
	double utilization;
	const char *kv_cache_dtype;
	bool enforce_eager, prefix_caching;
	bool verify;        /* start the engine on a virtual card, too */
	const char *python; /* that has the engine; NULL: python3 on the PATH */
	bool json;          /* doc/format/serve-plan.schema.json */
	FILE *output;
};

enum tn_serve_result {
	TN_SERVE_RESULT_STARTS,
	TN_SERVE_RESULT_FAILS,
	TN_SERVE_RESULT_UNDECIDED,
	TN_SERVE_RESULT_DIFFERS
};

/* Plans and writes. TN_NOT_FOUND, TN_FORMAT, TN_INVALID and TN_UNSUPPORTED come with words for the person who asked. Not thread-safe. */
tn_status tn_serve_plan(const struct tn_serve_plan_options *options, enum tn_serve_result *result);

#ifdef __cplusplus
}
#endif
#endif
