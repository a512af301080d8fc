/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue: the cards of gpus.csv, looked up by name or alias.
 *
 * The text is embedded into the library and parsed once; rows live as long as the program and never change, so every
 * function here is thread-safe and pointers may be kept. A figure that the file leaves empty is 0 here and means
 * unknown.
 */
#ifndef TN_GPU_CATALOGUE_H
#define TN_GPU_CATALOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"        /* tn_gpu_figures */
#include "tonnage/status.h" /* tn_status */

#define TN_GPU_ALIASES 4

enum tn_certainty { TN_CERTAINTY_EXACT, TN_CERTAINTY_NEAR, TN_CERTAINTY_GUESS };

/* The columns of the file that are figures, in its order. */
#define TN_GPU_FIGURES(X)                       \
	X(COMPUTE_CAPABILITY, "compute_capability") \
	X(SM_COUNT, "sm_count")                     \
	X(TOTAL, "total_mib")                       \
	X(CONTEXT, "context_mib")                   \
	X(L2, "l2_bytes")                           \
	X(SHARED_OPTIN, "smem_optin_bytes")         \
	X(MAX_THREADS, "max_threads_per_sm")        \
	X(MAX_BLOCKS, "max_ctas_per_sm")            \
	X(SM_CLOCK, "sm_clock_khz")                 \
	X(MEMORY_CLOCK, "mem_clock_khz")            \
	X(BANDWIDTH, "mem_gbps")                    \
	X(BF16, "bf16_tflops")                      \
	X(TF32, "tf32_tflops")                      \
	X(FP32, "fp32_tflops")
enum tn_gpu_figure {
#define TN_GPU_FIGURE_ENUM(name, column) TN_GPU_FIGURE_##name,
	TN_GPU_FIGURES(TN_GPU_FIGURE_ENUM)
#undef TN_GPU_FIGURE_ENUM
		TN_GPU_FIGURE_COUNT
};

struct tn_gpu_row {
	struct tn_gpu_figures figures;
	char aliases[TN_GPU_ALIASES][32];
	int alias_count;
	char evidence[512];
	enum tn_certainty certainty; /* of the row, the total before all */
	uint32_t guessed;            /* bit n: figure n is a guess, whatever the row is */
};

/* How many cards there are, and each of them in the file's order; NULL when the index is out of range. */
int tn__gpu_count(void);
const struct tn_gpu_row *tn__gpu_row(int index);
/* The card with this name or alias, case ignored, "NVIDIA" and "GeForce" optional; NULL when there is none. */
const struct tn_gpu_row *tn__gpu_find(const char *name);
/* The same; where there is none, TN_NOT_FOUND with a message that names the nearest aliases. */
tn_status tn__gpu_named(const char *name, const struct tn_gpu_row **out);
/* The smallest card that holds a peak: of those whose total minus its own context is at least `device_peak` minus
 * `context`, the one with the lowest total. NULL when no card does. */
const struct tn_gpu_row *tn__gpu_smallest(uint64_t device_peak, uint64_t context);

/* Where a figure comes from and how sure it is. Rule: figures named in the file's column `guessed` are guesses;
 * limits that follow from the compute capability are exact; the context and what a data sheet says (clocks,
 * bandwidth, TFLOPS) are never better than near; everything else is as sure as its row. */
const char *tn__gpu_figure_source(const struct tn_gpu_row *row, enum tn_gpu_figure figure);
enum tn_certainty tn__gpu_figure_certainty(const struct tn_gpu_row *row, enum tn_gpu_figure figure);
/* How far a context of this certainty may be from its figure, as a share of it. */
double tn__gpu_context_share(enum tn_certainty certainty);
/* "exact", "near" or "guess". */
const char *tn__certainty_text(enum tn_certainty certainty);

/* Parses a file of this form into rows; TN_FORMAT names the line. For the embedded text and for tests. */
tn_status tn__gpu_parse(const char *text, struct tn_gpu_row *rows, int capacity, int *count);

#endif
