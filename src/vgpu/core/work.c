/* SPDX-License-Identifier: Apache-2.0
 *
 * What each step of the program put on streams, for estimates of its time (doc/design/0012-step-time.md).
 *
 * Invariant: `steps` holds steps 1 to step_count, whole; `now` is what came since the last of them. The core lock guards
 * everything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vgpu/core/state.h"
#include "base/array.h"

#define FIELDS (sizeof(struct tn_work) / sizeof(double))

static struct tn_work now;
static struct tn_work *steps;
static size_t step_count, capacity;

void
tn__work_count_locked(const struct tn_effort *effort)
{
	tn__work_add(&now, effort);
	now.launches++;
}

void
tn__work_count_graph_locked(const struct tn_work *work)
{
	double *to = (double *)&now;
	const double *from = (const double *)work;
	for (size_t i = 0; i < FIELDS; i++)
		to[i] += from[i];
}

/* In the child of a fork. */
static void
forget(void)
{
	step_count = 0;
	now = (struct tn_work){ 0 };
}

__attribute__((constructor)) static void
start(void)
{
	pthread_atfork(NULL, NULL, forget);
}

static bool
make_room(void)
{
	return tn__array_room(&steps, &capacity, step_count + 1, sizeof(*steps), TN_WORK_STEPS);
}

void
tn_vgpu_work_step(uint64_t number)
{
	tn__lock();
	if (number == 1)
		step_count = 0;
	if (number == step_count + 1 && make_room())
		steps[step_count++] = now;
	now = (struct tn_work){ 0 };
	tn__unlock();
}

void
tn_vgpu_work_left_out(double to_device_bytes, double to_host_bytes, double host_bytes)
{
	tn__lock();
	tn__work_add(&now, &(struct tn_effort){ .kind = TN_EFFORT_TO_DEVICE, .bytes = to_device_bytes });
	tn__work_add(&now, &(struct tn_effort){ .kind = TN_EFFORT_TO_HOST, .bytes = to_host_bytes });
	now.host_bytes += host_bytes;
	tn__unlock();
}

static void
write_sum(FILE *file, size_t step, const char *what, int bin, const struct tn_work_sum *sum)
{
	if (sum->count > 0)
		fprintf(file, "%zu\t%s\t%d\t%.0f\t%.0f\t%.0f\n", step, what, bin, sum->count, sum->flops, sum->bytes);
}

static void
write_step(FILE *file, size_t number, const struct tn_work *work)
{
	static const char *const units[TN_MATHS] = { "fp64", "fp32", "tf32", "half" };
	for (int math = 0; math < TN_MATHS; math++)
		for (int bin = 0; bin < TN_WORK_BINS; bin++)
			write_sum(file, number, units[math], bin, &work->kernels[math][bin]);
	write_sum(file, number, "guessed", 0, &work->guessed);
	write_sum(file, number, "to_device", 0, &work->to_device);
	write_sum(file, number, "to_host", 0, &work->to_host);
	write_sum(file, number, "host", 0,
	          &(struct tn_work_sum){ .count = work->host_bytes > 0, .bytes = work->host_bytes });
	write_sum(file, number, "launches", 0, &(struct tn_work_sum){ .count = work->launches });
}

int
tn_vgpu_work_write(const char *path)
{
	FILE *file = fopen(path, "we");
	if (!file)
		return errno;
	fputs("step\twhat\tbin\tcount\tflops\tbytes\n", file);
	tn__lock();
	for (size_t i = 0; i < step_count; i++)
		write_step(file, i + 1, &steps[i]);
	tn__unlock();
	return fclose(file) == 0 ? 0 : errno;
}
