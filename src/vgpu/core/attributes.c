/* SPDX-License-Identifier: Apache-2.0
 *
 * Device attributes. Limits that hold for all supported cards are constants of the CUDA programming guide's table of
 * technical specifications; the rest comes from the catalogue.
 */
#include "vgpu/core/attributes.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int
tn__shared_bytes_per_sm(const struct tn_gpu_figures *gpu)
{
	/* From compute capability 8.0 on, the system keeps 1 KiB of each block's share. */
	return gpu->shared_memory_optin_bytes + (gpu->compute_major >= 8 ? 1024 : 0);
}

int
tn__memory_bus_bits(const struct tn_gpu_figures *gpu)
{
	/* bandwidth = 2 transfers * clock * width */
	double bits = gpu->memory_gbps * 1e9 * 8 / (2.0 * gpu->memory_clock_khz * 1e3);
	return (int)((bits + 16) / 32) * 32;
}

void
tn__device_uuid(int physical, unsigned char uuid[16])
{
	memcpy(uuid, "\x70\x6e\x61\x67\x65\x00\x40\x00\x80\x00\x00\x00\x00\x00\x00", 15);
	uuid[15] = (unsigned char)physical;
}

struct constant {
	short attribute;
	int value;
};

static const struct constant constants[] = {
	{ 1, 1024 },                                     /* threads a block */
	{ 2, 1024 },       { 3, 1024 },    { 4, 64 },    /* block */
	{ 5, INT32_MAX },  { 6, 65535 },   { 7, 65535 }, /* grid */
	{ 8, 49152 },                                    /* shared memory a block */
	{ 9, 65536 },                                    /* constant memory */
	{ 10, 32 },                                      /* warp */
	{ 11, INT32_MAX },                               /* pitch */
	{ 12, 65536 },                                   /* registers a block */
	{ 14, 512 },                                     /* texture alignment */
	{ 15, 1 },         { 17, 0 },      { 18, 0 },     { 19, 1 },     { 20, 0 },
	{ 21, 131072 },    { 22, 131072 }, { 23, 65536 }, { 24, 16384 }, { 25, 16384 },
	{ 26, 16384 },     { 27, 32768 },  { 28, 32768 }, { 29, 2048 },  { 30, 512 },
	{ 31, 1 },                                    /* concurrent kernels */
	{ 32, 0 },                                    /* ECC */
	{ 34, 0 },         { 35, 0 },      { 40, 2 }, /* copy engines */
	{ 41, 1 },                                    /* unified addressing */
	{ 50, 0 },         { 51, 32 },     { 78, 1 },     { 79, 1 },     { 80, 1 },
	{ 82, 65536 }, /* registers a multiprocessor */
	{ 83, 1 },         { 84, 0 },      { 85, 0 },     { 86, 0 },     { 87, 64 },
	{ 88, 0 },         { 89, 1 },      { 90, 1 },     { 91, 1 },     { 92, 1 },
	{ 93, 1 },         { 94, 1 }, /* stream memory operations */
	{ 95, 1 },         { 96, 0 },      { 98, 0 },     { 99, 1 },     { 100, 0 },
	{ 101, 0 },        { 102, 1 }, /* virtual memory management */
	{ 103, 1 },        { 104, 0 },     { 105, 0 },    { 107, 0 },    { 109, 134213632 },
	{ 110, 0 },        { 112, 1 },     { 113, 1 },    { 114, 1 },    { 115, 1 }, /* memory pools */
	{ 116, 0 },        { 117, 0 },     { 118, 0 },    { 119, 1 },    { 121, 1 },
	{ 122, 1 },        { 123, 1 },     { 124, 0 },    { 125, 1 },    { 126, 1 },
	{ 128, 0 },        { 129, 1 },     { 130, 0 },    { 131, -1 },   { 132, 0 },
	{ 133, 0 },        { 134, -1 },
};

static bool
from_card(const struct tn_gpu_figures *gpu, int physical, int attribute, int *value)
{
	switch (attribute) {
	case 13:
		*value = gpu->sm_clock_khz;
		return true;
	case 16:
		*value = gpu->sm_count;
		return true;
	case 33:
		*value = tn__pci_bus(physical);
		return true;
	case 36:
		*value = gpu->memory_clock_khz;
		return true;
	case 37:
		*value = tn__memory_bus_bits(gpu);
		return true;
	case 38:
		*value = (int)gpu->l2_bytes;
		return true;
	case 39:
		*value = gpu->max_threads_per_sm;
		return true;
	case 75:
		*value = gpu->compute_major;
		return true;
	case 76:
		*value = gpu->compute_minor;
		return true;
	case 81:
		*value = tn__shared_bytes_per_sm(gpu);
		return true;
	case 97:
		*value = gpu->shared_memory_optin_bytes;
		return true;
	case 106:
		*value = gpu->max_blocks_per_sm;
		return true;
	case 108:
		*value = gpu->compute_major >= 8 ? (int)(gpu->l2_bytes / 4 * 3) : 0;
		return true;
	case 111:
		*value = gpu->compute_major >= 8 ? 1024 : 0;
		return true;
	case 120:
		*value = gpu->compute_major >= 9;
		return true; /* cluster launch */
	case 127:
		*value = gpu->compute_major >= 9;
		return true; /* tensor maps */
	default:
		return false;
	}
}

bool
tn__device_attribute(const struct tn_gpu_figures *gpu, int physical, int attribute, int *value)
{
	if (from_card(gpu, physical, attribute, value))
		return true;
	for (size_t i = 0; i < sizeof(constants) / sizeof(*constants); i++)
		if (constants[i].attribute == attribute) {
			*value = constants[i].value;
			return true;
		}
	return false;
}
