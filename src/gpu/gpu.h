/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of one card, as they stand in the catalogue (src/gpu/gpus.csv) or as the options of a run change them.
 * Plain data of fixed size, so that it can lie in the shared ledger.
 */
#ifndef TN_GPU_GPU_H
#define TN_GPU_GPU_H

#include <stdint.h>

#define TN_UNLIMITED_CARD (UINT64_C(1) << 40) /* 1 TiB: a card that is never full */

struct tn_gpu_figures {
	char name[96];  /* as cudaGetDeviceProperties names it */
	char alias[32]; /* first alias: what a person types */
	int32_t compute_major, compute_minor;
	int32_t sm_count;
	int32_t shared_memory_optin_bytes; /* per block, opt-in */
	int32_t max_threads_per_sm;
	int32_t max_blocks_per_sm;
	int32_t sm_clock_khz, memory_clock_khz;
	uint64_t total_bytes;   /* what cudaMemGetInfo calls total */
	uint64_t context_bytes; /* gone before the first tensor */
	uint64_t l2_bytes;
	double memory_gbps;                           /* 10^9 bytes a second */
	double bf16_tflops, tf32_tflops, fp32_tflops; /* dense */
};

#endif
