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

#include "vgpu/core/runtime.h"
#include "vgpu/nccl/nccl_memory.h"
#include "vgpu/nccl/nccl_ranks.h"

#define GRANULE (UINT64_C(2) << 20)
#define OTHER_PROTOCOLS (524288 + 4915200)
#define HEADER 4096

static bool
behind_switch(const struct nccl_comm *comm)
{
	static const char *const aliases[] = { "a100", "a800", "h100", "h200",  "h20",  "h800",
		                                   "b100", "b200", "b300", "gb200", "gb300" };
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
bounded_channels(const struct nccl_comm *comm, uint64_t channels)
{
	channels = bounded(channels, number_of("NCCL_MAX_NCHANNELS"));
	channels = bounded(channels, number_of("NCCL_MAX_CTAS"));
	return bounded(channels, comm->max_channels > 0 ? (uint64_t)comm->max_channels : 0);
}

static uint64_t
peer_channels(const struct nccl_comm *comm)
{
	return bounded_channels(comm, behind_switch(comm) ? 32 : 2);
}

/* Of the simple protocol and a channel. */
static uint64_t
buffer_bytes(void)
{
	uint64_t bytes = number_of("NCCL_BUFFSIZE");
	return bytes ? bytes : UINT64_C(4) << 20;
}

static uint64_t
bytes_of(uint64_t channels)
{
	return channels * (granules(buffer_bytes() + OTHER_PROTOCOLS + HEADER) + granules(HEADER));
}

/* The rings of a communicator, and what it takes to send to and receive from one peer. */
static uint64_t
ring_bytes(const struct nccl_comm *comm)
{
	return bytes_of(bounded_channels(comm, behind_switch(comm) ? 24 : 2));
}

static uint64_t
peer_bytes(const struct nccl_comm *comm)
{
	return bytes_of(peer_channels(comm));
}

uint64_t
tn__nccl_peer_buffers(const struct nccl_comm *comm)
{
	return peer_channels(comm) * buffer_bytes();
}

static int
take(const struct nccl_comm *comm, uint64_t bytes, uint64_t *address)
{
	if (*address || comm->shares)
		return NCCL_SUCCESS;
	if (tn__communication_malloc(comm->device, bytes, address) != TN_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the device has no room for the communicator's buffers");
	return NCCL_SUCCESS;
}

static int
connect_peer(const struct nccl_comm *comm, int peer)
{
	const struct nccl_ranks *state = comm->state;
	return peer == comm->rank ? NCCL_SUCCESS : take(comm, peer_bytes(comm), &state->peer_memory[peer]);
}

int
tn__nccl_take_memory(const struct nccl_operation *operation)
{
	const struct nccl_comm *comm = operation->comm;
	struct nccl_ranks *state = comm->state;
	enum nccl_kind kind = operation->kind;
	int result = NCCL_SUCCESS;
	if (kind == NCCL_SEND || kind == NCCL_RECEIVE)
		return connect_peer(comm, operation->peer);
	if (kind != NCCL_ALL_TO_ALL && kind != NCCL_GATHER && kind != NCCL_SCATTER)
		return take(comm, ring_bytes(comm), &state->ring_memory);
	for (int peer = 0; peer < comm->ranks && result == NCCL_SUCCESS; peer++)
		if (kind == NCCL_ALL_TO_ALL || operation->peer == comm->rank || operation->peer == peer)
			result = connect_peer(comm, peer);
	return result;
}

void
tn__nccl_give_memory_back(const struct nccl_comm *comm)
{
	struct nccl_ranks *state = comm->state;
	if (state->ring_memory)
		(void)tn__library_free(state->ring_memory);
	state->ring_memory = 0;
	for (int peer = 0; peer < comm->ranks; peer++) {
		if (state->peer_memory[peer])
			(void)tn__library_free(state->peer_memory[peer]);
		state->peer_memory[peer] = 0;
	}
}
