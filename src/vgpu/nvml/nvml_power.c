/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: power, fans, the PCIe link and the number of cores, as monitors ask for them. Power limits are NVIDIA's published
 * ones of the board; the card is idle, always the same. Boards with fans of their own (GeForce, workstation) answer for
 * them, boards that a server cools do not. The link is the newest that the architecture has.
 */
#include <string.h>

#include "vgpu/nvml/nvml_shapes.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { IDLE_MILLIWATTS = 20000, IDLE_SECONDS = 3600, LINK_WIDTH = 16 };

/* Watts by words of the board's name; the first that is in the name counts. */
static const struct {
	const char *words;
	uint32_t watts;
} limits[] = {
	{ "RTX 3060 Ti", 200 }, { "RTX 3060", 170 },     { "RTX 3070 Ti", 290 }, { "RTX 3070", 220 },
	{ "RTX 3080 Ti", 350 }, { "RTX 3080", 320 },     { "RTX 3090 Ti", 450 }, { "RTX 3090", 350 },
	{ "RTX 4060 Ti", 160 }, { "RTX 4060", 115 },     { "RTX 4070 Ti", 285 }, { "RTX 4070", 200 },
	{ "RTX 4080", 320 },    { "RTX 4090", 450 },     { "RTX 5060 Ti", 180 }, { "RTX 5060", 145 },
	{ "RTX 5070 Ti", 300 }, { "RTX 5070", 250 },     { "RTX 5080", 360 },    { "RTX 5090", 575 },
	{ "RTX 2080 Ti", 250 }, { "RTX 2080", 215 },     { "RTX 2070", 175 },    { "RTX 2060", 160 },
	{ "GTX 1080 Ti", 250 }, { "RTX PRO 6000", 600 }, { "RTX A6000", 300 },   { "RTX 6000 Ada", 300 },
	{ "RTX A5000", 230 },   { "RTX A4000", 140 },    { "TITAN RTX", 280 },   { "T4", 70 },
	{ "V100", 300 },        { "P100", 250 },         { "A100-PCIE", 250 },   { "A100 80GB PCIe", 300 },
	{ "A100", 400 },        { "A10G", 300 },         { "A10", 150 },         { "A40", 300 },
	{ "A30", 165 },         { "L40S", 350 },         { "L40", 300 },         { "L4", 72 },
	{ "H100 PCIe", 350 },   { "H100 NVL", 400 },     { "H100", 700 },        { "H200 NVL", 600 },
	{ "H200", 700 },        { "H20", 400 },          { "B200", 1000 },
};

static const struct tn_gpu_figures *
gpu_of(const struct nvml_device *device, int *result)
{
	int physical;
	*result = tn__nvml_device(device, &physical);
	return *result == NVML_SUCCESS ? tn__physical_gpu(physical) : NULL;
}

static uint32_t
limit_of(const struct tn_gpu_figures *gpu)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (strstr(gpu->name, limits[i].words))
			return limits[i].watts * 1000;
	return 0;
}

static bool
has_fan(const struct tn_gpu_figures *gpu)
{
	return strstr(gpu->name, "GeForce") || strstr(gpu->name, "RTX") || strstr(gpu->name, "TITAN") ||
	       strstr(gpu->name, "Quadro");
}

static uint32_t
link_generation(const struct tn_gpu_figures *gpu)
{
	return gpu->compute_major >= 9 ? 5 : gpu->compute_major == 8 ? 4 : 3;
}

/* Cores of a multiprocessor: 32-bit floating-point units, by the CUDA programming guide's table of throughputs. */
static uint32_t
cores_of(const struct tn_gpu_figures *gpu)
{
	bool few = gpu->compute_major == 7 || (gpu->compute_major == 8 && gpu->compute_minor == 0) ||
	           (gpu->compute_major == 6 && gpu->compute_minor == 0);
	return (uint32_t)gpu->sm_count * (few ? 64 : 128);
}

/* Millijoules; from Volta on (NVML reference). */
static unsigned long long
energy_of(const struct tn_gpu_figures *gpu)
{
	return gpu->compute_major >= 7 ? (unsigned long long)IDLE_MILLIWATTS * IDLE_SECONDS : 0;
}

/* An unsigned figure of the card; 0 where `none_is_absent` is what the card does not have. */
#define FIGURE(name, type, expression, none_is_absent)              \
	TN_EXPORT int name(const struct nvml_device *device, type *out) \
	{                                                               \
		int result;                                                 \
		const struct tn_gpu_figures *gpu = gpu_of(device, &result); \
		if (!gpu)                                                   \
			return result;                                          \
		if (!out)                                                   \
			return NVML_INVALID_ARGUMENT;                           \
		type value = (expression);                                  \
		if (value == 0 && (none_is_absent))                         \
			return NVML_NOT_SUPPORTED;                              \
		*out = value;                                               \
		return NVML_SUCCESS;                                        \
	}

FIGURE(nvmlDeviceGetEnforcedPowerLimit, uint32_t, limit_of(gpu), true)
FIGURE(nvmlDeviceGetPowerManagementLimit, uint32_t, limit_of(gpu), true)
FIGURE(nvmlDeviceGetPowerManagementDefaultLimit, uint32_t, limit_of(gpu), true)
FIGURE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, energy_of(gpu), true)
FIGURE(nvmlDeviceGetFanSpeed, uint32_t, 0, !has_fan(gpu))
FIGURE(nvmlDeviceGetNumFans, uint32_t, has_fan(gpu) ? 1 : 0, false)
FIGURE(nvmlDeviceGetCurrPcieLinkGeneration, uint32_t, link_generation(gpu), false)
FIGURE(nvmlDeviceGetMaxPcieLinkGeneration, uint32_t, link_generation(gpu), false)
FIGURE(nvmlDeviceGetGpuMaxPcieLinkGeneration, uint32_t, link_generation(gpu), false)
FIGURE(nvmlDeviceGetCurrPcieLinkWidth, uint32_t, LINK_WIDTH, false)
FIGURE(nvmlDeviceGetMaxPcieLinkWidth, uint32_t, LINK_WIDTH, false)
FIGURE(nvmlDeviceGetNumGpuCores, uint32_t, cores_of(gpu), false)
FIGURE(nvmlDeviceGetPersistenceMode, uint32_t, 0, false)

TN_EXPORT int
nvmlDeviceGetFanSpeed_v2(const struct nvml_device *device, uint32_t fan, uint32_t *percent)
{
	return fan == 0 ? nvmlDeviceGetFanSpeed(device, percent) : NVML_INVALID_ARGUMENT;
}

/* Nothing goes over the link: no kernel runs, and copies are not timed here. */
TN_EXPORT int
nvmlDeviceGetPcieThroughput(const struct nvml_device *device, uint32_t counter, uint32_t *kilobytes)
{
	int result;
	if (!gpu_of(device, &result))
		return result;
	if (!kilobytes)
		return NVML_INVALID_ARGUMENT;
	*kilobytes = 0;
	return NVML_SUCCESS;
}
