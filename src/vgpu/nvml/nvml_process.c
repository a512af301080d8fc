/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: the processes on a device. This process is listed with what it holds there, context included; other processes
 * of the run are in the device's used bytes, but not in the list. Rule of the real library for lists: too small an
 * array is answered by INSUFFICIENT_SIZE and the count needed.
 */
#include <unistd.h>

#include "vgpu/nvml/nvml_shapes.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { MODE_COMPUTE = 0, MODE_ALL = 3, NO_INSTANCE = 0xffffffffu };

/* What this process holds on a card; 0 when it does not use it. */
static uint64_t
own_bytes(int physical)
{
	for (int i = 0; i < tn__device_count(); i++)
		if (tn__physical_device(i) == physical)
			return tn__process_bytes(i);
	return 0;
}

/* How many processes there are, and whether the caller has room for them. */
static int
list(const struct nvml_device *device, uint32_t *count, const void *array, uint64_t *bytes)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !count)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	*bytes = own_bytes(physical);
	uint32_t needed = *bytes > 0, room = *count;
	*count = needed;
	return needed > room || (needed && !array) ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *count, struct nvml_process_v1 *processes)
{
	uint64_t bytes;
	int result = list(device, count, processes, &bytes);

	if (result == NVML_SUCCESS && *count)
		processes[0] = (struct nvml_process_v1){(uint32_t)getpid(), bytes};
	return result;
}

TN_EXPORT int
nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count, struct nvml_process *processes)
{
	uint64_t bytes;
	int result = list(device, count, processes, &bytes);

	if (result == NVML_SUCCESS && *count)
		processes[0] = (struct nvml_process){(uint32_t)getpid(), bytes, NO_INSTANCE, NO_INSTANCE};
	return result;
}

TN_EXPORT int
nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, uint32_t *count, struct nvml_process *processes)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes);
}

TN_EXPORT int
nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_process_list *processes)
{
	uint64_t bytes;

	if (!processes)
		return NVML_INVALID_ARGUMENT;
	if (processes->version != NVML_VERSION(struct nvml_process_list, 1))
		return NVML_VERSION_MISMATCH;
	if (processes->mode != MODE_COMPUTE && processes->mode != MODE_ALL) {
		processes->count = 0;
		return tn__nvml_ready();
	}
	int result = list(device, &processes->count, processes->processes, &bytes);
	if (result == NVML_SUCCESS && processes->count)
		processes->processes[0] =
			(struct nvml_process_detail){(uint32_t)getpid(), bytes, NO_INSTANCE, NO_INSTANCE, 0};
	return result;
}

/* ---- graphics and MPS: none ---- */

static int
none(const struct nvml_device *device, uint32_t *count)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !count)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	*count = 0;
	return NVML_SUCCESS;
}

#define TN_NVML_NO_PROCESSES(name)                                        \
	TN_EXPORT int                                                         \
	name(struct nvml_device *device, uint32_t *count, void *processes)    \
	{                                                                     \
		return none(device, count);                                       \
	}

TN_NVML_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
TN_NVML_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
TN_NVML_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
TN_NVML_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
TN_NVML_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
TN_NVML_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* Samples of the load that a process makes: there are none since the last time asked for. */
TN_EXPORT int
nvmlDeviceGetProcessUtilization(struct nvml_device *device, void *samples, uint32_t *count, uint64_t since)
{
	int result = none(device, count);

	return result == NVML_SUCCESS ? NVML_NOT_FOUND : result;
}
