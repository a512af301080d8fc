/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of NVML's structures and its numbers, as documented in NVIDIA's NVML API reference, and what the files of
 * this folder share. tests/tools/test_nvml_shapes.py compares the sizes with those of pynvml.
 */
#ifndef TN_NVML_SHAPES_H
#define TN_NVML_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/core/core.h"

enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_VERSION_MISMATCH = 25,
};

/* A versioned structure begins with its size and, in the highest byte, its version. */
#define NVML_VERSION(shape, number) ((uint32_t)sizeof(shape) | (uint32_t)(number) << 24)

struct nvml_pci_v1 {
	char bus_id[16];
	uint32_t domain, bus, device, device_id;
};

struct nvml_pci {
	char bus_id_short[16];
	uint32_t domain, bus, device;
	uint32_t device_id, subsystem_id;
	char bus_id[32];
};

struct nvml_pci_v2 {
	char bus_id[16];
	uint32_t domain, bus, device;
	uint32_t device_id, subsystem_id;
	uint32_t reserved[4];
};

struct nvml_memory {
	uint64_t total, free, used;
};

struct nvml_memory_v2 {
	uint32_t version;
	uint64_t total, reserved, free, used;
};

struct nvml_utilization {
	uint32_t gpu, memory;
};

struct nvml_process_v1 {
	uint32_t pid;
	uint64_t used;
};

struct nvml_process {
	uint32_t pid;
	uint64_t used;
	uint32_t gpu_instance, compute_instance;
};

struct nvml_process_detail {
	uint32_t pid;
	uint64_t used;
	uint32_t gpu_instance, compute_instance;
	uint64_t protected_used;
};

struct nvml_process_list {
	uint32_t version, mode, count;
	struct nvml_process_detail *processes;
};

struct nvml_temperature {
	uint32_t version, sensor;
	int32_t celsius;
};

struct nvml_fabric { /* the first version has no version word */
	uint8_t cluster[16];
	int32_t status;
	uint32_t clique;
	uint8_t state;
};

struct nvml_fabric_v { /* versions 2 and 3, which appends a byte */
	uint32_t version;
	uint8_t cluster[16];
	int32_t status;
	uint32_t clique;
	uint8_t state;
	uint32_t health_mask;
	uint8_t health_summary;
};

struct nvml_field {
	uint32_t field, scope;
	int64_t timestamp, latency;
	uint32_t value_type;
	int32_t result;
	uint64_t value;
};

/* What the documented structures measure (nvmlPciInfo_t and so on; tests/tools/test_nvml_shapes.py). */
_Static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct nvml_memory) == 24, "c_nvmlMemory_t");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "c_nvmlMemory_v2_t");
_Static_assert(sizeof(struct nvml_utilization) == 8, "c_nvmlUtilization_t");
_Static_assert(sizeof(struct nvml_process) == 24, "c_nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct nvml_process_detail) == 32, "c_nvmlProcessDetail_v1_t");
_Static_assert(sizeof(struct nvml_process_list) == 24, "c_nvmlProcessDetailList_v1_t");
_Static_assert(sizeof(struct nvml_temperature) == 12, "c_nvmlTemperature_v1_t");
_Static_assert(sizeof(struct nvml_field) == 40, "c_nvmlFieldValue_t");
_Static_assert(offsetof(struct nvml_fabric_v, health_summary) == 36, "c_nvmlGpuFabricInfo_v2_t");

/* nvmlDevice_t points to one of these. */
struct nvml_device {
	int physical;
};

/* NVML_SUCCESS and the physical number, or the error to return: uninitialised, or not one of our devices. */
int tn__nvml_device(const struct nvml_device *device, int *physical);
/* The same for entry points that only need to know whether NVML was initialised. */
int tn__nvml_ready(void);
/* Copies a string into the caller's buffer as NVML does: NVML_INSUFFICIENT_SIZE when it does not fit. */
int tn__nvml_text(const char *text, char *buffer, uint32_t size);

#endif
