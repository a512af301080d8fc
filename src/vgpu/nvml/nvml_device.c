/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: what a device is, holds and does. What the catalogue knows comes from there; load, heat and power are those
 * of an idle card, always the same, since nothing runs. Features that a card without NVLink, ECC and partitions lacks
 * answer NOT_SUPPORTED as they do there, without being counted as refused.
 */
#include <string.h>

#include "vgpu/core/attributes.h"
#include "vgpu/nvml/nvml_shapes.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { IDLE_CELSIUS = 35, IDLE_MILLIWATTS = 20000 };
enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO };
enum { P2P_NOT_SUPPORTED = 5, TOPOLOGY_INTERNAL = 0, TOPOLOGY_HOST_BRIDGE = 30, SENSOR_GPU = 0 };

/* Writes one number about a device. */
static int
answer(const struct nvml_device *device, uint32_t *out, uint32_t value)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !out)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	*out = value;
	return NVML_SUCCESS;
}

/* ---- what it is ---- */

/* NVML numbers architectures from Kepler = 2 on. */
static uint32_t
architecture(const struct tn_gpu_figures *gpu)
{
	switch (gpu->compute_major) {
	case 5:
		return 3; /* Maxwell */
	case 6:
		return 4; /* Pascal */
	case 7:
		return gpu->compute_minor < 5 ? 5 : 6; /* Volta, Turing */
	case 8:
		return gpu->compute_minor < 9 ? 7 : 8; /* Ampere, Ada */
	case 9:
		return 9; /* Hopper */
	case 10:
	case 12:
		return 10; /* Blackwell */
	default:
		return UINT32_MAX; /* unknown */
	}
}

TN_EXPORT int
nvmlDeviceGetArchitecture(struct nvml_device *device, uint32_t *out)
{
	int physical, result = tn__nvml_device(device, &physical);

	return result == NVML_SUCCESS ? answer(device, out, architecture(tn__physical_gpu(physical))) : result;
}

TN_EXPORT int
nvmlDeviceGetBrand(struct nvml_device *device, uint32_t *out)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS)
		return result;
	return answer(device, out, strstr(tn__physical_gpu(physical)->name, "GeForce") ? 5 : 14); /* GeForce, NVIDIA */
}

TN_EXPORT int
nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !major || !minor)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	*major = tn__physical_gpu(physical)->compute_major;
	*minor = tn__physical_gpu(physical)->compute_minor;
	return NVML_SUCCESS;
}

/* ---- memory ---- */

TN_EXPORT int
nvmlDeviceGetMemoryBusWidth(struct nvml_device *device, uint32_t *bits)
{
	int physical, result = tn__nvml_device(device, &physical);

	return result == NVML_SUCCESS ? answer(device, bits, (uint32_t)tn__memory_bus_bits(tn__physical_gpu(physical)))
	                              : result;
}

TN_EXPORT int
nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !memory)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	tn__physical_memory_info(physical, &memory->free, &memory->total);
	memory->used = memory->total - memory->free;
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	struct nvml_memory plain;
	int result = nvmlDeviceGetMemoryInfo(device, memory ? &plain : NULL);

	if (result != NVML_SUCCESS)
		return result;
	if (memory->version != NVML_VERSION(struct nvml_memory_v2, 2))
		return NVML_VERSION_MISMATCH;
	memory->total = plain.total;
	memory->reserved = 0; /* our total is what CUDA can use: the driver's share is not in it */
	memory->free = plain.free;
	memory->used = plain.used;
	return NVML_SUCCESS;
}

/* ---- load, heat, power, clocks ---- */

TN_EXPORT int
nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !utilization)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	*utilization = (struct nvml_utilization){ 0, 0 };
	return NVML_SUCCESS;
}

static int
engine_utilization(const struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
	int result = answer(device, percent, 0);

	return result == NVML_SUCCESS ? answer(device, period_us, 1000000) : result;
}

TN_EXPORT int
nvmlDeviceGetEncoderUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
	return engine_utilization(device, percent, period_us);
}

TN_EXPORT int
nvmlDeviceGetDecoderUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
	return engine_utilization(device, percent, period_us);
}

TN_EXPORT int
nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
	return sensor == SENSOR_GPU ? answer(device, celsius, IDLE_CELSIUS) : NVML_INVALID_ARGUMENT;
}

TN_EXPORT int
nvmlDeviceGetTemperatureV(struct nvml_device *device, struct nvml_temperature *temperature)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !temperature || temperature->sensor != SENSOR_GPU)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	if (temperature->version != NVML_VERSION(struct nvml_temperature, 1))
		return NVML_VERSION_MISMATCH;
	temperature->celsius = IDLE_CELSIUS;
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetPowerUsage(struct nvml_device *device, uint32_t *milliwatts)
{
	return answer(device, milliwatts, IDLE_MILLIWATTS);
}

TN_EXPORT int
nvmlDeviceGetPerformanceState(struct nvml_device *device, uint32_t *state)
{
	return answer(device, state, 0);
}

TN_EXPORT int
nvmlDeviceGetPowerState(struct nvml_device *device, uint32_t *state)
{
	return answer(device, state, 0);
}

TN_EXPORT int
nvmlDeviceGetMaxClockInfo(struct nvml_device *device, uint32_t which, uint32_t *megahertz)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS)
		return result;
	const struct tn_gpu_figures *gpu = tn__physical_gpu(physical);
	if (which == CLOCK_VIDEO)
		return NVML_NOT_SUPPORTED;
	if (which > CLOCK_VIDEO)
		return NVML_INVALID_ARGUMENT;
	int32_t kilohertz = which == CLOCK_MEMORY ? gpu->memory_clock_khz : gpu->sm_clock_khz;
	return answer(device, megahertz, (uint32_t)kilohertz / 1000);
}

TN_EXPORT int
nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t which, uint32_t *megahertz)
{
	return nvmlDeviceGetMaxClockInfo(device, which, megahertz);
}

TN_EXPORT int
nvmlDeviceGetClock(struct nvml_device *device, uint32_t which, uint32_t id, uint32_t *megahertz)
{
	return nvmlDeviceGetMaxClockInfo(device, which, megahertz);
}

/* ---- modes ---- */

TN_EXPORT int
nvmlDeviceGetComputeMode(struct nvml_device *device, uint32_t *mode)
{
	return answer(device, mode, 0); /* default: any number of contexts */
}

TN_EXPORT int
nvmlDeviceGetDisplayMode(struct nvml_device *device, uint32_t *display)
{
	return answer(device, display, 0);
}

TN_EXPORT int
nvmlDeviceGetDisplayActive(struct nvml_device *device, uint32_t *active)
{
	return answer(device, active, 0);
}

TN_EXPORT int
nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, uint32_t *is_partition)
{
	return answer(device, is_partition, 0);
}

TN_EXPORT int
nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, uint32_t *count)
{
	return answer(device, count, 0);
}

/* ---- neighbours ---- */

TN_EXPORT int
nvmlDeviceGetP2PStatus(struct nvml_device *first, struct nvml_device *second, uint32_t which, uint32_t *status)
{
	int physical, result = tn__nvml_device(second, &physical);

	return result == NVML_SUCCESS ? answer(first, status, P2P_NOT_SUPPORTED) : result;
}

TN_EXPORT int
nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *first, struct nvml_device *second, uint32_t *level)
{
	int physical, result = tn__nvml_device(second, &physical);

	if (result != NVML_SUCCESS)
		return result;
	return answer(first, level, first == second ? TOPOLOGY_INTERNAL : TOPOLOGY_HOST_BRIDGE);
}

/* PyTorch insists on an answer here: no fabric (state 0). */
TN_EXPORT int
nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, struct nvml_fabric_v *fabric)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !fabric)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	uint32_t version = fabric->version, size = version & 0xffffff;
	if (version >> 24 < 2 || size < offsetof(struct nvml_fabric_v, health_summary) || size > 4096)
		return NVML_VERSION_MISMATCH;
	memset(fabric, 0, size);
	fabric->version = version;
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric *fabric)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !fabric)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	memset(fabric, 0, sizeof(*fabric));
	return NVML_SUCCESS;
}

/* Each field has a result of its own. */
TN_EXPORT int
nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field *fields)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || count < 0 || !fields)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	for (int i = 0; i < count; i++)
		fields[i].result = NVML_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* ---- what such a card does not have ---- */

#define TN_NVML_ABSENT(name)                                         \
	TN_EXPORT int name(void)                                         \
	{                                                                \
		int result = tn__nvml_ready();                               \
		return result == NVML_SUCCESS ? NVML_NOT_SUPPORTED : result; \
	}

TN_NVML_ABSENT(nvmlDeviceGetNvLinkState)
TN_NVML_ABSENT(nvmlDeviceGetNvLinkVersion)
TN_NVML_ABSENT(nvmlDeviceGetNvLinkCapability)
TN_NVML_ABSENT(nvmlDeviceGetNvLinkRemoteDeviceType)
TN_NVML_ABSENT(nvmlDeviceGetNvLinkRemotePciInfo)
TN_NVML_ABSENT(nvmlDeviceGetNvLinkRemotePciInfo_v2)
TN_NVML_ABSENT(nvmlDeviceGetMigMode)
TN_NVML_ABSENT(nvmlDeviceGetMigDeviceHandleByIndex)
TN_NVML_ABSENT(nvmlDeviceGetGpuInstanceId)
TN_NVML_ABSENT(nvmlDeviceGetComputeInstanceId)
TN_NVML_ABSENT(nvmlDeviceGetEccMode)
TN_NVML_ABSENT(nvmlDeviceGetTotalEccErrors)
TN_NVML_ABSENT(nvmlDeviceGetMemoryErrorCounter)
TN_NVML_ABSENT(nvmlDeviceGetSerial)
TN_NVML_ABSENT(nvmlDeviceGetDriverModel)
TN_NVML_ABSENT(nvmlDeviceGetDriverModel_v2)
TN_NVML_ABSENT(nvmlDeviceGetBAR1MemoryInfo)
TN_NVML_ABSENT(nvmlDeviceGetConfComputeMemSizeInfo)

/* No card of ours has a serial number. */
TN_EXPORT int
nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device)
{
	int result = tn__nvml_ready();

	return result == NVML_SUCCESS ? NVML_NOT_FOUND : result;
}
