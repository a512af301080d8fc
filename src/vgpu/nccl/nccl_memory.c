/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection of one channel has, on the device, buffers of three protocols on the receiving side and a header on the sending
 * side, each in whole granules of 2 MiB: seen as allocations of 10,485,760 and 2,097,152 bytes (NVIDIA/nccl#1685). The
 * simple protocol's buffer is NCCL_BUFFSIZE (NCCL documentation, environment variables: 4 MiB), the two others are 512 KiB
 * and 4,915,200 bytes. How many channels there are hangs on the links: 24 for a ring and 32 for a peer behind NVSwitch (logs
 * in nccl#1685 and nccl-tests#100), 2 over PCIe (logs in nccl#1358). NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS and the
 * configuration's maxCTAs bound them (documentation).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/nccl/nccl_memory.h"

#define GRANULE (UINT64_C(2) << 20)
#define OTHER_PROTOCOLS (524288 + 4915200)
#define HEADER 4096

static bool
behind_switch(const struct nccl_comm *comm)
{
	static const char *const aliases[] = {"a100", "a800", "h100", "h200", "h20", "h800", "b100", "b200", "b300", "gb200", "gb300"};
	const struct tn_gpu_figures *gpu = tn__gpu(comm->device);
	for (size_t i = 0; gpu && i < sizeof(aliases) / sizeof(*aliases); i++) {
		size_t length = strlen(aliases[i]);
		bool same = strncmp(gpu->alias, aliases[i], length) == 0 && !isalnum((unsigned char)gpu->alias[length]);
		if (same && !strstr(gpu->alias, "pcie") && !strstr(gpu->alias, "nvl"))
			return true;
	}
	return false;
}

/* A number of the environment; 0: none, or not one. */
static uint64_t
number_of(const char *name)
{
	const char *text = getenv(name);
	long long value = text ? strtoll(text, NULL, 10) : 0;
	return value > 0 ? (uint64_t)value : 0;
}

static uint64_t
bounded(uint64_t channels, uint64_t bound)
{
	return bound && bound < channels ? bound : channels;
}

static uint64_t
granules(uint64_t bytes)
{
	return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

static uint64_t
bytes_of(const struct nccl_comm *comm, uint64_t channels)
{
	uint64_t simple = number_of("NCCL_BUFFSIZE");
	channels = bounded(channels, number_of("NCCL_MAX_NCHANNELS"));
	channels = bounded(channels, number_of("NCCL_MAX_CTAS"));
	channels = bounded(channels, comm->max_channels > 0 ? (uint64_t)comm->max_channels : 0);
	return channels * (granules((simple ? simple : UINT64_C(4) << 20) + OTHER_PROTOCOLS + HEADER) + granules(HEADER));
}

uint64_t
tn__nccl_ring_bytes(const struct nccl_comm *comm)
{
	return bytes_of(comm, behind_switch(comm) ? 24 : 2);
}

uint64_t
tn__nccl_peer_bytes(const struct nccl_comm *comm)
{
	return bytes_of(comm, behind_switch(comm) ? 32 : 2);
}
