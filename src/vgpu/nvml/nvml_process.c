/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: the processes on a device: all of this run that hold memory there, each with what it holds, context included.
 * Bytes of processes that are not of the run (--other) are in the device's used bytes, but in no list, as those of another
 * container are. Rule of the real library for lists: too small an array is answered by INSUFFICIENT_SIZE and the count
 * needed.
 */
#include <errno.h>
#include <signal.h>

#include "vgpu/nvml/nvml_shapes.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { MODE_COMPUTE = 0, MODE_ALL = 3, NO_INSTANCE = 0xffffffffu, MOST = 256 };

/* The living processes of a device; *count becomes how many there are. */
static int
list(const struct nvml_device *device, uint32_t *count, const void *array, struct tn_device_process processes[MOST])
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !count)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	size_t found = tn__processes_of(physical, processes, MOST);
	uint32_t needed = 0, room = *count;
	for (size_t i = 0; i < found && i < MOST; i++)
		if (kill(processes[i].pid, 0) == 0 || errno != ESRCH)
			processes[needed++] = processes[i];
	*count = needed;
	return needed > room || (needed && !array) ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *count, struct nvml_process_v1 *out)
{
	struct tn_device_process processes[MOST];
	int result = list(device, count, out, processes);

	for (uint32_t i = 0; result == NVML_SUCCESS && i < *count; i++)
		out[i] = (struct nvml_process_v1){ (uint32_t)processes[i].pid, processes[i].bytes };
	return result;
}

TN_EXPORT int
nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count, struct nvml_process *out)
{
	struct tn_device_process processes[MOST];
	int result = list(device, count, out, processes);

	for (uint32_t i = 0; result == NVML_SUCCESS && i < *count; i++)
		out[i] = (struct nvml_process){ (uint32_t)processes[i].pid, processes[i].bytes, NO_INSTANCE, NO_INSTANCE };
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
	struct tn_device_process found[MOST];

	if (!processes)
		return NVML_INVALID_ARGUMENT;
	if (processes->version != NVML_VERSION(struct nvml_process_list, 1))
		return NVML_VERSION_MISMATCH;
	if (processes->mode != MODE_COMPUTE && processes->mode != MODE_ALL) {
		processes->count = 0;
		return tn__nvml_ready();
	}
	int result = list(device, &processes->count, processes->processes, found);
	for (uint32_t i = 0; result == NVML_SUCCESS && i < processes->count; i++)
		processes->processes[i] = (struct nvml_process_detail){ (uint32_t)found[i].pid, found[i].bytes, NO_INSTANCE,
			                                                    NO_INSTANCE, 0 };
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

#define TN_NVML_NO_PROCESSES(name)                                                   \
	TN_EXPORT int name(struct nvml_device *device, uint32_t *count, void *processes) \
	{                                                                                \
		return none(device, count);                                                  \
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
