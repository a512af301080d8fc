/* SPDX-License-Identifier: Apache-2.0
 *
 * A FAKE of the virtual GPU's core (src/vgpu/core/core.h), just enough for the tests of src/vgpu/cudnn: one card, a
 * count of launches and refusals, and a switch that makes the card full. Include it in one file of a test program only.
 */
#ifndef TN_TEST_CUDNN_FAKE_H
#define TN_TEST_CUDNN_FAKE_H

#include <stdio.h>

#include "vgpu/core/attributes.h"
#include "vgpu/core/core.h"
#include "vgpu/core/memory_log.h"

static struct {
	uint64_t launches, nanoseconds;
	struct tn_effort effort; /* of the last launch */
	uintptr_t last_stream;
	int refusals;
	int answered, modelled; /* questions of heuristics and plans */
	char answered_by[32];
	bool out_of_memory;
	uint64_t note_bytes; /* of all workspaces that were noted */
	uint64_t wanted;     /* the last answer to a question for one */
} fake;

static const struct tn_gpu_figures fake_gpu = {
	.sm_count = 28, .max_threads_per_sm = 1536, .compute_major = 8, .compute_minor = 6
};

const struct tn_gpu_figures *
tn__gpu(int device)
{
	return device == 0 ? &fake_gpu : NULL;
}

int
tn__current_device(void)
{
	return 0;
}

tn_status
tn__ensure_context(int device)
{
	return fake.out_of_memory ? TN_OUT_OF_DEVICE_MEMORY : TN_OK;
}

int
tn__refuse(const char *library, const char *name, int status)
{
	fake.refusals++;
	return status;
}

void
tn__count_answer(bool real, const char *words)
{
	fake.answered += real;
	fake.modelled += !real;
	snprintf(fake.answered_by, sizeof(fake.answered_by), "%s", words);
}

int
tn__physical_device(int device)
{
	return device;
}

bool
tn__device_attribute(const struct tn_gpu_figures *gpu, int physical, int attribute, int *value)
{
	*value = attribute;
	return true;
}

tn_status
tn__work_written(uintptr_t stream, uint64_t nanoseconds, const char *what, const struct tn_effort *effort,
                 const struct tn_written *written)
{
	fake.effort = *effort;
	fake.launches++;
	fake.nanoseconds = nanoseconds;
	fake.last_stream = stream;
	return TN_OK;
}

void
tn__note_workspace(enum tn_library library, const void *address, uint64_t bytes)
{
	if (library == TN_LIBRARY_CUDNN && address)
		fake.note_bytes += bytes;
}

void
tn__note_wanted(uint64_t bytes)
{
	fake.wanted = bytes;
}

uint64_t
tn__time_of_bytes(uint64_t bytes)
{
	return 1000 + bytes / 300; /* 300 GB/s */
}

uint64_t
tn__time_of_flops(double flops, enum tn_math math)
{
	static const double gflops[] = { 200, 12000, 25000, 50000 };
	return 1000 + (uint64_t)(flops / gflops[math]);
}

#endif
