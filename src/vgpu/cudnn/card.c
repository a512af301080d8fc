/* SPDX-License-Identifier: Apache-2.0
 *
 * The device property descriptor's JSON: see card.h. The keys are those that cuDNN 9.8 to 9.26 take; numbers are CUDA's
 * device attributes, which the core has from the catalogue.
 */
#include "vgpu/cudnn/card.h"

#include <stdio.h>

#include "vgpu/core/attributes.h"
#include "vgpu/core/core.h"

/* cudaDeviceAttr */
enum {
	THREADS_PER_BLOCK = 1,
	BLOCK_X,
	BLOCK_Y,
	BLOCK_Z,
	GRID_X,
	GRID_Y,
	GRID_Z,
	SHARED_PER_BLOCK,
	WARP = 10,
	REGISTERS_PER_BLOCK = 12,
	CLOCK = 13,
	SM_COUNT = 16,
	PCI_DEVICE = 34,
	TCC_DRIVER = 35,
	MEMORY_CLOCK = 36,
	L2_BYTES = 38,
	THREADS_PER_SM = 39,
	MAJOR = 75,
	MINOR = 76,
	REGISTERS_PER_SM = 82,
	COOPERATIVE_LAUNCH = 95,
	SHARED_PER_BLOCK_OPTIN = 97,
	BLOCKS_PER_SM = 106,
	RESERVED_SHARED_PER_BLOCK = 111
};

/* Heuristics were seen not to depend on it (doc/design/0011-cudnn.md), and what --memory sets should not make every
 * question a new one. */
#define TOTAL_BYTES (16ull << 30)

static int
attribute(int device, int number)
{
	int value = 0;
	(void)tn__device_attribute(tn__gpu(device), tn__physical_device(device), number, &value);
	return value;
}

size_t
tn__dnn_card_json(int device, char *out, size_t size)
{
	const struct tn_gpu_figures *gpu = tn__gpu(device);
	if (gpu == NULL)
		return 0;
#define A(number) attribute(device, number)
	int length = snprintf(
		out, size,
		"{\"maxGridSize\":[%d,%d,%d],\"maxBlockSize\":[%d,%d,%d],\"cudaDeviceId\":0,\"deviceVer\":%d,\"regsPerBlock\":%d,"
		"\"multiProcessorCount\":%d,\"smCountOrigin\":0,\"warpSize\":%d,\"maxSharedMemoryPerBlock\":%d,"
		"\"maxSharedMemoryPerBlockOptin\":%d,\"oversizedSharedMemoryPerBlock\":0,\"reservedSharedMemoryPerBlock\":%d,"
		"\"maxRegistersPerSM\":%d,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":%d,\"maxThreadsPerSM\":%d,\"pciDeviceId\":%d,"
		"\"isTccDriver\":%d,\"supportCoopLaunch\":%d,\"smClockRateKHz\":%d,\"memClockRateKHz\":%d,\"l2CacheSize\":%d,"
		"\"totalGlobalMem\":%llu,\"driverVer\":13000,\"deviceName\":\"%s\"}",
		A(GRID_X), A(GRID_Y), A(GRID_Z), A(BLOCK_X), A(BLOCK_Y), A(BLOCK_Z), 100 * A(MAJOR) + 10 * A(MINOR),
		A(REGISTERS_PER_BLOCK), A(SM_COUNT), A(WARP), A(SHARED_PER_BLOCK), A(SHARED_PER_BLOCK_OPTIN),
		A(RESERVED_SHARED_PER_BLOCK), A(REGISTERS_PER_SM), A(BLOCKS_PER_SM), A(THREADS_PER_BLOCK), A(THREADS_PER_SM),
		A(PCI_DEVICE), A(TCC_DRIVER), A(COOPERATIVE_LAUNCH), A(CLOCK), A(MEMORY_CLOCK), A(L2_BYTES), TOTAL_BYTES,
		gpu->name);
#undef A
	return length > 0 && (size_t)length < size ? (size_t)length : 0;
}
