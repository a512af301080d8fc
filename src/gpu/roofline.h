/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program's step does, in figures that know no card, and how long a card takes for it by the roofline model
 * (doc/design/0012-step-time.md).
 *
 * The virtual GPU adds up (struct tn_work), the supervisor asks for seconds. Kernels are kept by unit of arithmetic and by
 * operations a byte, in powers of two: enough to take the larger of arithmetic and traffic for any card, and of fixed
 * size whatever the shapes. Plain data; nothing here allocates or locks.
 */
#ifndef TN_GPU_ROOFLINE_H
#define TN_GPU_ROOFLINE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"

/* Raised when kernels take other times than before: what programs tuned by the older ones is not kept. */
#define TN_ROOFLINE_MODEL "2"

/* Which unit computes. */
enum tn_math { TN_MATH_FP64, TN_MATH_FP32, TN_MATH_TF32, TN_MATH_HALF, TN_MATHS };

/* What one piece of work on a stream comes to. */
enum tn_effort_kind {
	TN_EFFORT_NONE,
	TN_EFFORT_KERNEL,  /* `flops` and `bytes` are known from shapes */
	TN_EFFORT_GUESSED, /* `bytes` follow from the number of threads alone */
	TN_EFFORT_TO_DEVICE,
	TN_EFFORT_TO_HOST
};
struct tn_effort {
	enum tn_effort_kind kind;
	enum tn_math math;
	double flops, bytes;
};

#define TN_WORK_BINS 20 /* bin 0: less than one operation a byte; bin b: 2^(b-1) to 2^b; the last: all above */

struct tn_work_sum {
	double count, flops, bytes;
};

/* All fields are doubles, so that two of them are added and subtracted field by field. */
struct tn_work {
	struct tn_work_sum kernels[TN_MATHS][TN_WORK_BINS];
	struct tn_work_sum guessed;
	struct tn_work_sum to_device, to_host;
	double host_bytes; /* that the host's arithmetic would move, where a trial leaves it out */
	double launches;   /* calls of the host that put work on a stream; a graph is one */
};

static inline int
tn__work_bin(double flops, double bytes)
{
	int exponent = 0;
	if (flops < bytes || bytes <= 0)
		return bytes <= 0 && flops > 0 ? TN_WORK_BINS - 1 : 0;
	frexp(flops / bytes, &exponent);
	return exponent < TN_WORK_BINS ? exponent : TN_WORK_BINS - 1;
}

static inline void
tn__work_add(struct tn_work *work, const struct tn_effort *effort)
{
	struct tn_work_sum *sum = effort->kind == TN_EFFORT_KERNEL
	                              ? &work->kernels[effort->math][tn__work_bin(effort->flops, effort->bytes)]
	                          : effort->kind == TN_EFFORT_GUESSED   ? &work->guessed
	                          : effort->kind == TN_EFFORT_TO_DEVICE ? &work->to_device
	                                                                : &work->to_host;
	if (effort->kind == TN_EFFORT_NONE)
		return;
	sum->count++;
	sum->flops += effort->flops;
	sum->bytes += effort->bytes;
}

/* The rate of a unit in 10^12 operations a second, dense; 0: unknown. */
static inline double
tn__gpu_tflops(const struct tn_gpu_figures *gpu, enum tn_math math)
{
	return math == TN_MATH_HALF   ? gpu->bf16_tflops
	       : math == TN_MATH_TF32 ? gpu->tf32_tflops
	       : math == TN_MATH_FP64 ? gpu->fp32_tflops / 32
	                              : gpu->fp32_tflops;
}

/* What the model takes for granted; each is known within bounds only. */
struct tn_assumptions {
	double cores, tensor_cores, memory;    /* shares of the card's peak that kernels reach */
	double guess;                          /* guessed bytes are so many times what a launch says */
	double kernel_seconds, launch_seconds; /* the least of a kernel; the host's part of a launch */
	double link;                           /* share of the PCIe link's peak */
	double host_gbps;                      /* of the host's memory */
};

/* What bound a step: the larger of the device's and the host's time is the step's. */
struct tn_step_seconds {
	double arithmetic; /* kernels that their arithmetic bounds */
	double traffic;    /* kernels that memory bounds */
	double kernels;    /* what kernels take at least, beside that */
	double link;       /* copies between host and device */
	double host;       /* work of the host that trials leave out */
	double launching;  /* putting all that on streams */
	double total;
};

enum tn_bound { TN_BOUND_MIDDLE, TN_BOUND_LOW, TN_BOUND_HIGH };
struct tn_assumptions tn__assumptions(enum tn_bound bound);

/* GB/s of the card's link to the host, one direction: by compute capability, x16. */
double tn__gpu_link_gbps(const struct tn_gpu_figures *gpu);

/* How long the card takes for `work`; all 0 when the card's rates are unknown. */
struct tn_step_seconds tn__step_seconds(const struct tn_work *work, const struct tn_gpu_figures *gpu,
                                        const struct tn_assumptions *assumptions);

/* Steps of a run, in order, by what they did. */
struct tn_steps {
	struct tn_work *items;
	size_t count;
};

/* The time of a changed program's step as a ratio to the unchanged program's. */
struct tn_time_ratio {
	bool known;
	double ratio, low,
		high; /* low and high: over all combinations of the assumptions' bounds, the same for both, and 7 %
	                          * beyond where the runs differ */
};

/* Compares the steps that both runs have done, the first left out (it builds): the median over their ratios, of two in a row where there are five and more. `share`
 * is how much of the samples of an unchanged step a changed one sees. Unknown with less than two steps in common, or without
 * rates of the card. */
struct tn_time_ratio tn__time_ratio(const struct tn_steps *unchanged, const struct tn_steps *changed, double share,
                                    const struct tn_gpu_figures *gpu);

#endif
