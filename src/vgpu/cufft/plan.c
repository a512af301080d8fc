/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT: plans are made with the work area of the model (size.c), which the library takes for itself unless the program
 * hands one over; a transform is work on the plan's stream. See plan.h.
 */
#include "vgpu/cufft/plan.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "vgpu/core/memory_log.h"
#include "vgpu/core/runtime.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct plan {
	bool used, made, automatic;
	uintptr_t stream;
	size_t bytes;       /* of the work area */
	uint64_t own;       /* the area that the library took for itself; 0: none */
	double data, flops; /* of one execution: bytes of the complex data, operations */
	enum tn_math math;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan *plans; /* handle n is plans[n - 1] */
static int count;

/* NULL for a number that is no plan. Under the lock. */
static struct plan *
plan_of(int handle)
{
	return handle >= 1 && handle <= count && plans[handle - 1].used ? &plans[handle - 1] : NULL;
}

/* The lowest number that is free, so that two runs of a program see the same. Under the lock. */
static int
new_plan(void)
{
	int index = 0;
	while (index < count && plans[index].used)
		index++;
	if (index == count) {
		struct plan *grown = reallocarray(plans, (size_t)count + 16, sizeof(*plans));
		if (!grown)
			return 0;
		plans = grown;
		for (int i = count; i < count + 16; i++)
			plans[i].used = false;
		count += 16;
	}
	plans[index] = (struct plan){ .used = true, .automatic = true };
	return index + 1;
}

/* ---- handles ---- */

TN_EXPORT int
cufftCreate(int *handle)
{
	if (!handle)
		return CUFFT_INVALID_VALUE;
	if (tn__enter() != TN_CUDA_OK)
		return CUFFT_ALLOC_FAILED;
	pthread_mutex_lock(&lock);
	*handle = new_plan();
	pthread_mutex_unlock(&lock);
	return *handle ? CUFFT_SUCCESS : CUFFT_ALLOC_FAILED;
}

TN_EXPORT int
cufftDestroy(int handle)
{
	pthread_mutex_lock(&lock);
	struct plan *plan = plan_of(handle);
	uint64_t own = plan ? plan->own : 0;
	if (plan)
		*plan = (struct plan){ .used = false };
	pthread_mutex_unlock(&lock);
	if (own)
		(void)tn__library_free(own);
	return plan ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

TN_EXPORT int
cufftSetStream(int handle, uintptr_t stream)
{
	pthread_mutex_lock(&lock);
	struct plan *plan = plan_of(handle);
	if (plan)
		plan->stream = stream;
	pthread_mutex_unlock(&lock);
	return plan ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

/* Only before the plan is made, as documented. */
TN_EXPORT int
cufftSetAutoAllocation(int handle, int automatic)
{
	pthread_mutex_lock(&lock);
	struct plan *plan = plan_of(handle);
	bool may = plan && !plan->made;
	if (may)
		plan->automatic = automatic != 0;
	pthread_mutex_unlock(&lock);
	return may ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

/* ---- making ---- */

static enum tn_math
math_of(size_t dtype)
{
	return dtype == 16 ? TN_MATH_FP64 : dtype == 8 ? TN_MATH_FP32 : TN_MATH_HALF;
}

/* Elements of all transforms together, and 5 n log2 n operations for each transform, the usual count. */
static void
count_work(int rank, const int64_t *sizes, int64_t batch, size_t dtype, struct plan *out)
{
	double elements = 1;
	for (int i = 0; i < rank; i++)
		elements *= (double)sizes[i];
	out->data = elements * (double)batch * (double)dtype;
	out->flops = 5 * elements * log2(elements > 2 ? elements : 2) * (double)batch;
	out->math = math_of(dtype);
}

/* The library's own area, where the program did not forbid it. */
static int
take_area(struct plan *plan)
{
	if (!plan->automatic || plan->bytes == 0)
		return CUFFT_SUCCESS;
	return tn__library_malloc(tn__current_device(), plan->bytes, "cufft", &plan->own) == TN_OK ? CUFFT_SUCCESS
	                                                                                           : CUFFT_ALLOC_FAILED;
}

static int
make_plan(int handle, int rank, const int64_t *sizes, int64_t batch, size_t dtype, size_t *bytes)
{
	struct plan made = { .used = true, .made = true };
	if (!bytes || !sizes)
		return CUFFT_INVALID_VALUE;
	if (!dtype)
		return CUFFT_INVALID_TYPE;
	int status = tn__cufft_work_size(rank, sizes, batch, dtype, &made.bytes);
	if (status != CUFFT_SUCCESS)
		return status;
	count_work(rank, sizes, batch, dtype, &made);
	pthread_mutex_lock(&lock);
	struct plan *plan = plan_of(handle);
	status = plan && !plan->made ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
	if (status == CUFFT_SUCCESS) {
		made.automatic = plan->automatic;
		made.stream = plan->stream;
		status = take_area(&made);
	}
	if (status == CUFFT_SUCCESS)
		*plan = made;
	pthread_mutex_unlock(&lock);
	if (status != CUFFT_SUCCESS)
		return status;
	*bytes = made.bytes;
	tn__count_answer(false, "cuFFT cannot be asked without a card: work areas by the bounds of its guide");
	if (!made.automatic)
		tn__note_wanted(made.bytes);
	return CUFFT_SUCCESS;
}

static int
make_plan_of_ints(int handle, int rank, const int *sizes, int64_t batch, int type, size_t *bytes)
{
	int64_t wide[3];
	if (!sizes || rank < 1 || rank > 3)
		return sizes ? CUFFT_INVALID_SIZE : CUFFT_INVALID_VALUE;
	for (int i = 0; i < rank; i++)
		wide[i] = sizes[i];
	return make_plan(handle, rank, wide, batch, tn__cufft_element(type), bytes);
}

/* Strides and distances say where the data lies, not how much of it there is. */
TN_EXPORT int
cufftXtMakePlanMany(int handle, int rank, const long long *sizes, const long long *in_embed, long long in_stride,
                    long long in_distance, int in_type, const long long *out_embed, long long out_stride,
                    long long out_distance, int out_type, long long batch, size_t *bytes, int execution_type)
{
	return make_plan(handle, rank, (const int64_t *)sizes, batch, tn__cufft_xt_element(execution_type), bytes);
}

TN_EXPORT int
cufftMakePlanMany64(int handle, int rank, const long long *sizes, const long long *in_embed, long long in_stride,
                    long long in_distance, const long long *out_embed, long long out_stride, long long out_distance,
                    int type, long long batch, size_t *bytes)
{
	return make_plan(handle, rank, (const int64_t *)sizes, batch, tn__cufft_element(type), bytes);
}

TN_EXPORT int
cufftMakePlanMany(int handle, int rank, const int *sizes, const int *in_embed, int in_stride, int in_distance,
                  const int *out_embed, int out_stride, int out_distance, int type, int batch, size_t *bytes)
{
	return make_plan_of_ints(handle, rank, sizes, batch, type, bytes);
}

TN_EXPORT int
cufftMakePlan1d(int handle, int x, int type, int batch, size_t *bytes)
{
	return make_plan_of_ints(handle, 1, &x, batch, type, bytes);
}

TN_EXPORT int
cufftMakePlan2d(int handle, int x, int y, int type, size_t *bytes)
{
	return make_plan_of_ints(handle, 2, (const int[]){ x, y }, 1, type, bytes);
}

TN_EXPORT int
cufftMakePlan3d(int handle, int x, int y, int z, int type, size_t *bytes)
{
	return make_plan_of_ints(handle, 3, (const int[]){ x, y, z }, 1, type, bytes);
}

/* cufftPlan* are cufftCreate and cufftMakePlan* in one. */
static int
create_and_make(int *handle, int rank, const int *sizes, int batch, int type)
{
	size_t bytes;
	int status = cufftCreate(handle);
	if (status != CUFFT_SUCCESS)
		return status;
	status = make_plan_of_ints(*handle, rank, sizes, batch, type, &bytes);
	if (status != CUFFT_SUCCESS)
		(void)cufftDestroy(*handle);
	return status;
}

TN_EXPORT int
cufftPlan1d(int *handle, int x, int type, int batch)
{
	return create_and_make(handle, 1, &x, batch, type);
}

TN_EXPORT int
cufftPlan2d(int *handle, int x, int y, int type)
{
	return create_and_make(handle, 2, (const int[]){ x, y }, 1, type);
}

TN_EXPORT int
cufftPlan3d(int *handle, int x, int y, int z, int type)
{
	return create_and_make(handle, 3, (const int[]){ x, y, z }, 1, type);
}

TN_EXPORT int
cufftPlanMany(int *handle, int rank, const int *sizes, const int *in_embed, int in_stride, int in_distance,
              const int *out_embed, int out_stride, int out_distance, int type, int batch)
{
	return create_and_make(handle, rank, sizes, batch, type);
}

/* ---- the work area ---- */

TN_EXPORT int
cufftGetSize(int handle, size_t *bytes)
{
	if (!bytes)
		return CUFFT_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	const struct plan *plan = plan_of(handle);
	bool made = plan && plan->made;
	if (made)
		*bytes = plan->bytes;
	pthread_mutex_unlock(&lock);
	return made ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

/* The program's area takes the place of the library's own, which is given back. */
TN_EXPORT int
cufftSetWorkArea(int handle, void *area)
{
	pthread_mutex_lock(&lock);
	struct plan *plan = plan_of(handle);
	uint64_t own = plan ? plan->own : 0;
	size_t bytes = plan ? plan->bytes : 0;
	if (plan)
		plan->own = 0;
	pthread_mutex_unlock(&lock);
	if (own)
		(void)tn__library_free(own);
	if (plan)
		tn__note_workspace(TN_LIBRARY_CUFFT, area, bytes);
	return plan ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

/* ---- transforming ---- */

static int
transform(int handle)
{
	pthread_mutex_lock(&lock);
	const struct plan *found = plan_of(handle);
	struct plan plan = found ? *found : (struct plan){ .made = false };
	pthread_mutex_unlock(&lock);
	if (!plan.made)
		return CUFFT_INVALID_PLAN;
	const struct tn_effort effort = { TN_EFFORT_KERNEL, plan.math, plan.flops, 2 * plan.data };
	uint64_t moving = tn__time_of_bytes((uint64_t)effort.bytes), computing = tn__time_of_flops(plan.flops, plan.math);
	tn__work_effort(plan.stream, moving > computing ? moving : computing, "cufft", &effort);
	return CUFFT_SUCCESS;
}

TN_EXPORT int
cufftXtExec(int handle, void *in, void *out, int direction)
{
	return transform(handle);
}

#define WITH_DIRECTION(name)                                           \
	TN_EXPORT int name(int handle, void *in, void *out, int direction) \
	{                                                                  \
		return transform(handle);                                      \
	}
#define WITHOUT_DIRECTION(name)                         \
	TN_EXPORT int name(int handle, void *in, void *out) \
	{                                                   \
		return transform(handle);                       \
	}
WITH_DIRECTION(cufftExecC2C)
WITH_DIRECTION(cufftExecZ2Z)
WITHOUT_DIRECTION(cufftExecR2C)
WITHOUT_DIRECTION(cufftExecC2R)
WITHOUT_DIRECTION(cufftExecD2Z)
WITHOUT_DIRECTION(cufftExecZ2D)
