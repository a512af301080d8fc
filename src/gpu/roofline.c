/* SPDX-License-Identifier: Apache-2.0
 *
 * The roofline: seconds of a step on a card, and the ratio of two. Sources of the assumptions:
 * doc/design/0012-step-time.md. Must not know where the work was counted.
 */
#include "gpu/roofline.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS 8
_Static_assert(sizeof(struct tn_assumptions) == FIELDS * sizeof(double), "all of them are bounded one by one");
#define MOST_STEPS 64      /* that are compared */
#define ENOUGH_FOR_PAIRS 4 /* steps, with the first: beyond, an odd one among pairs is still outvoted */
#define UNLIKE 0.07        /* kernels of other shapes reach other shares of the same unit */
#define ALIKE 0.005        /* no difference at all: the same kernels */

struct tn_assumptions
tn__assumptions(enum tn_bound bound)
{
	static const struct tn_assumptions all[] = {
		[TN_BOUND_MIDDLE] = { 0.85, 0.6, 0.8, 2, 2e-6, 6e-6, 0.8, 20 },
		[TN_BOUND_LOW] = { 0.7, 0.4, 0.65, 1, 1e-6, 3e-6, 0.4, 10 },
		[TN_BOUND_HIGH] = { 0.95, 0.8, 0.92, 4, 4e-6, 12e-6, 0.9, 50 },
	};
	return all[bound];
}

double
tn__gpu_link_gbps(const struct tn_gpu_figures *gpu)
{
	return gpu->compute_major < 8 ? 15.75 : gpu->compute_major == 8 ? 31.5 : 63.0;
}

static void
add_kernels(const struct tn_work_sum *sum, double flops_a_second, double bytes_a_second, struct tn_step_seconds *out)
{
	double arithmetic = sum->flops / flops_a_second, traffic = sum->bytes / bytes_a_second;
	if (arithmetic > traffic)
		out->arithmetic += arithmetic;
	else
		out->traffic += traffic;
}

/* A card without tensor cores for a type computes with what it has: half precision since 7.0, TF32 since 8.0. */
static double
rate_of(const struct tn_gpu_figures *gpu, enum tn_math math, const struct tn_assumptions *assumptions)
{
	bool by_tensor_cores = (math == TN_MATH_HALF && gpu->compute_major >= 7) ||
	                       (math == TN_MATH_TF32 && gpu->compute_major >= 8);
	return tn__gpu_tflops(gpu, math) * 1e12 * (by_tensor_cores ? assumptions->tensor_cores : assumptions->cores);
}

struct tn_step_seconds
tn__step_seconds(const struct tn_work *work, const struct tn_gpu_figures *gpu, const struct tn_assumptions *assumptions)
{
	struct tn_step_seconds out = { 0 };
	double memory = gpu->memory_gbps * 1e9 * assumptions->memory;
	double link = tn__gpu_link_gbps(gpu) * 1e9 * assumptions->link, count = work->guessed.count;
	if (gpu->memory_gbps <= 0 || gpu->fp32_tflops <= 0 || gpu->tf32_tflops <= 0 || gpu->bf16_tflops <= 0)
		return out;
	for (int math = 0; math < TN_MATHS; math++)
		for (int bin = 0; bin < TN_WORK_BINS; bin++) {
			const struct tn_work_sum *sum = &work->kernels[math][bin];
			if (sum->count > 0)
				add_kernels(sum, rate_of(gpu, (enum tn_math)math, assumptions), memory, &out);
			count += sum->count;
		}
	out.traffic += work->guessed.bytes * assumptions->guess / memory;
	out.kernels = count * assumptions->kernel_seconds;
	out.link = (work->to_device.bytes + work->to_host.bytes) / link;
	out.host = work->host_bytes / (assumptions->host_gbps * 1e9);
	out.launching = work->launches * assumptions->launch_seconds;
	double device = out.arithmetic + out.traffic + out.kernels + out.link + out.host;
	out.total = device > out.launching ? device : out.launching;
	return out;
}

/* ---- ratios ---- */

static int
by_value(const void *one, const void *two)
{
	double a = *(const double *)one, b = *(const double *)two;
	return (a > b) - (a < b);
}

static double
median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double
seconds_of(const struct tn_work *steps, size_t count, const struct tn_gpu_figures *gpu,
           const struct tn_assumptions *assumptions)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += tn__step_seconds(&steps[i], gpu, assumptions).total;
	return sum;
}

/* The median ratio of the common steps under one set of assumptions; 0: unknown. Where there are enough of them, of two in a row: two
 * optimizers that take turns have steps of two kinds, and a change may move work from one to the other. */
static double
ratio_under(const struct tn_steps *unchanged, const struct tn_steps *changed, const struct tn_gpu_figures *gpu,
            const struct tn_assumptions *assumptions)
{
	double ratios[MOST_STEPS];
	size_t common = unchanged->count < changed->count ? unchanged->count : changed->count, count = 0;
	size_t together = common > ENOUGH_FOR_PAIRS ? 2 : 1;
	for (size_t i = 1; i + together <= common && count < MOST_STEPS; i++) {
		double before = seconds_of(&unchanged->items[i], together, gpu, assumptions);
		double after = seconds_of(&changed->items[i], together, gpu, assumptions);
		if (before > 0 && after > 0)
			ratios[count++] = after / before;
	}
	return count > 0 ? median(ratios, count) : 0;
}

/* Corner `number` of the box between the assumptions' bounds: bit n chooses the bound of field n. */
static struct tn_assumptions
corner(unsigned number)
{
	struct tn_assumptions low = tn__assumptions(TN_BOUND_LOW), high = tn__assumptions(TN_BOUND_HIGH);
	double at[FIELDS], upper[FIELDS];
	memcpy(at, &low, sizeof(at));
	memcpy(upper, &high, sizeof(upper));
	for (int i = 0; i < FIELDS; i++)
		if (number >> i & 1)
			at[i] = upper[i];
	memcpy(&low, at, sizeof(at));
	return low;
}

struct tn_time_ratio
tn__time_ratio(const struct tn_steps *unchanged, const struct tn_steps *changed, double share,
               const struct tn_gpu_figures *gpu)
{
	struct tn_assumptions middle = tn__assumptions(TN_BOUND_MIDDLE);
	struct tn_time_ratio out = { .ratio = ratio_under(unchanged, changed, gpu, &middle) / share };
	if (share <= 0 || out.ratio <= 0)
		return (struct tn_time_ratio){ 0 };
	bool alike = fabs(out.ratio * share - 1) < ALIKE;
	out.known = true;
	out.low = out.high = out.ratio;
	for (unsigned number = 0; number < 1u << FIELDS; number++) {
		struct tn_assumptions assumptions = corner(number);
		double ratio = ratio_under(unchanged, changed, gpu, &assumptions) / share;
		out.low = ratio < out.low ? ratio : out.low;
		out.high = ratio > out.high ? ratio : out.high;
	}
	out.low *= alike ? 1 : 1 - UNLIKE;
	out.high *= alike ? 1 : 1 + UNLIKE;
	return out;
}
