/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML: start and end, the system, and how devices are found and named. The devices are all those of the run, whatever
 * CUDA_VISIBLE_DEVICES says, as with the real library.
 * Thread-safe: one atomic count of initialisations, read-only tables otherwise.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TN_SHELL_LIBRARY "nvml"
#define TN_SHELL_TABLE "vgpu/nvml/table.def"
#define TN_SHELL_REFUSAL 3 /* NVML_ERROR_NOT_SUPPORTED */
#include "vgpu/core/stubs.h"

#include "vgpu/core/attributes.h" /* what names a card must be the same here, in the runtime and in the driver */
#include "vgpu/nvml/nvml_shapes.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* A driver that serves every CUDA that we serve. */
#define DRIVER_VERSION "595.45.04"
#define NVML_LIBRARY_VERSION "13.595.45.04"
enum { CUDA_DRIVER_VERSION = 13020 };

enum { MAX_DEVICES = 8, UUID_TEXT = 41, PCI_DOMAIN = 0, PCI_DEVICE = 0 };

static atomic_int initialized;
static struct nvml_device devices[MAX_DEVICES] = { { 0 }, { 1 }, { 2 }, { 3 }, { 4 }, { 5 }, { 6 }, { 7 } };

int
tn__nvml_ready(void)
{
	return atomic_load(&initialized) > 0 ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

int
tn__nvml_device(const struct nvml_device *device, int *physical)
{
	if (tn__nvml_ready() != NVML_SUCCESS)
		return NVML_UNINITIALIZED;
	for (int i = 0; i < MAX_DEVICES && i < tn__physical_device_count(); i++) {
		if (device == &devices[i]) {
			*physical = i;
			return NVML_SUCCESS;
		}
	}
	return NVML_INVALID_ARGUMENT;
}

int
tn__nvml_text(const char *text, char *buffer, uint32_t size)
{
	if (!buffer)
		return NVML_INVALID_ARGUMENT;
	if (strlen(text) >= size)
		return NVML_INSUFFICIENT_SIZE;
	strcpy(buffer, text);
	return NVML_SUCCESS;
}

/* ---- start and end ---- */

TN_EXPORT int
nvmlInitWithFlags(uint32_t flags)
{
	atomic_fetch_add(&initialized, 1);
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

TN_EXPORT int
nvmlInit(void)
{
	return nvmlInitWithFlags(0);
}

TN_EXPORT int
nvmlShutdown(void)
{
	int count = atomic_load(&initialized);

	while (count > 0)
		if (atomic_compare_exchange_weak(&initialized, &count, count - 1))
			return NVML_SUCCESS;
	return NVML_UNINITIALIZED;
}

TN_EXPORT const char *
nvmlErrorString(int result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_UNINITIALIZED:
		return "Uninitialized";
	case NVML_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_NOT_FOUND:
		return "Not Found";
	case NVML_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_VERSION_MISMATCH:
		return "Argument Version Mismatch";
	default:
		return "Unknown Error";
	}
}

/* ---- the system ---- */

TN_EXPORT int
nvmlSystemGetDriverVersion(char *version, uint32_t length)
{
	return tn__nvml_ready() == NVML_SUCCESS ? tn__nvml_text(DRIVER_VERSION, version, length) : NVML_UNINITIALIZED;
}

/* This and the next two need no initialisation, as documented. */
TN_EXPORT int
nvmlSystemGetNVMLVersion(char *version, uint32_t length)
{
	return tn__nvml_text(NVML_LIBRARY_VERSION, version, length);
}

TN_EXPORT int
nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!version)
		return NVML_INVALID_ARGUMENT;
	*version = CUDA_DRIVER_VERSION;
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* The name that a process was started by: the first word of its command line. */
TN_EXPORT int
nvmlSystemGetProcessName(uint32_t pid, char *name, uint32_t length)
{
	char path[32], text[1024] = "";
	int file;
	ssize_t got;

	if (tn__nvml_ready() != NVML_SUCCESS)
		return NVML_UNINITIALIZED;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return NVML_NOT_FOUND;
	got = read(file, text, sizeof(text) - 1);
	close(file);
	return got > 0 ? tn__nvml_text(text, name, length) : NVML_NOT_FOUND;
}

/* ---- finding devices ---- */

TN_EXPORT int
nvmlDeviceGetCount_v2(uint32_t *count)
{
	if (tn__nvml_ready() != NVML_SUCCESS)
		return NVML_UNINITIALIZED;
	if (!count)
		return NVML_INVALID_ARGUMENT;
	*count = (uint32_t)tn__physical_device_count();
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetCount(uint32_t *count)
{
	return nvmlDeviceGetCount_v2(count);
}

TN_EXPORT int
nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device)
{
	if (tn__nvml_ready() != NVML_SUCCESS)
		return NVML_UNINITIALIZED;
	if (!device || index >= (uint32_t)tn__physical_device_count() || index >= MAX_DEVICES)
		return NVML_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetHandleByIndex(uint32_t index, struct nvml_device **device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void
uuid_text(int physical, char text[UUID_TEXT])
{
	unsigned char b[16];

	tn__device_uuid(physical, b);
	strcpy(text, "GPU-");
	for (int i = 0, at = 4; i < 16; i++) {
		bool dash = i == 4 || i == 6 || i == 8 || i == 10;
		at += snprintf(text + at, UUID_TEXT - (size_t)at, dash ? "-%02x" : "%02x", b[i]);
	}
}

TN_EXPORT int
nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
	char text[UUID_TEXT];

	if (tn__nvml_ready() != NVML_SUCCESS)
		return NVML_UNINITIALIZED;
	if (!uuid || !device)
		return NVML_INVALID_ARGUMENT;
	for (int i = 0; i < tn__physical_device_count(); i++) {
		uuid_text(i, text);
		if (strcmp(uuid, text) == 0)
			return nvmlDeviceGetHandleByIndex_v2((uint32_t)i, device);
	}
	return NVML_NOT_FOUND;
}

TN_EXPORT int
nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
	unsigned domain, bus, slot;

	if (tn__nvml_ready() != NVML_SUCCESS)
		return NVML_UNINITIALIZED;
	if (!bus_id || !device)
		return NVML_INVALID_ARGUMENT;
	if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
		domain = PCI_DOMAIN; /* the domain may be left out */
		if (sscanf(bus_id, "%x:%x", &bus, &slot) != 2)
			return NVML_INVALID_ARGUMENT;
	}
	for (int i = 0; i < tn__physical_device_count(); i++)
		if (domain == PCI_DOMAIN && bus == (unsigned)tn__pci_bus(i) && slot == PCI_DEVICE)
			return nvmlDeviceGetHandleByIndex_v2((uint32_t)i, device);
	return NVML_NOT_FOUND;
}

TN_EXPORT int
nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* ---- what names a device ---- */

TN_EXPORT int
nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *index)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result == NVML_SUCCESS && !index)
		result = NVML_INVALID_ARGUMENT;
	if (result == NVML_SUCCESS)
		*index = (uint32_t)physical;
	return result;
}

TN_EXPORT int
nvmlDeviceGetMinorNumber(struct nvml_device *device, uint32_t *minor)
{
	return nvmlDeviceGetIndex(device, minor);
}

TN_EXPORT int
nvmlDeviceGetName(struct nvml_device *device, char *name, uint32_t length)
{
	int physical, result = tn__nvml_device(device, &physical);

	return result == NVML_SUCCESS ? tn__nvml_text(tn__physical_gpu(physical)->name, name, length) : result;
}

TN_EXPORT int
nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, uint32_t length)
{
	char text[UUID_TEXT];
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS)
		return result;
	uuid_text(physical, text);
	return tn__nvml_text(text, uuid, length);
}

static void
bus_id_text(int physical, int domain_digits, char *text, size_t size)
{
	snprintf(text, size, "%0*X:%02X:%02X.0", domain_digits, PCI_DOMAIN, tn__pci_bus(physical) & 0xff, PCI_DEVICE);
}

TN_EXPORT int
nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci *pci)
{
	int physical, result = tn__nvml_device(device, &physical);

	if (result != NVML_SUCCESS || !pci)
		return result == NVML_SUCCESS ? NVML_INVALID_ARGUMENT : result;
	memset(pci, 0, sizeof(*pci));
	pci->domain = PCI_DOMAIN;
	pci->bus = (uint32_t)tn__pci_bus(physical);
	pci->device = PCI_DEVICE;
	bus_id_text(physical, 4, pci->bus_id_short, sizeof(pci->bus_id_short));
	bus_id_text(physical, 8, pci->bus_id, sizeof(pci->bus_id));
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_v2 *pci)
{
	struct nvml_pci now;
	int result = nvmlDeviceGetPciInfo_v3(device, pci ? &now : NULL);

	if (result != NVML_SUCCESS)
		return result;
	memset(pci, 0, sizeof(*pci));
	memcpy(pci->bus_id, now.bus_id_short, sizeof(pci->bus_id));
	pci->domain = now.domain;
	pci->bus = now.bus;
	pci->device = now.device;
	return NVML_SUCCESS;
}

TN_EXPORT int
nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_v1 *pci)
{
	struct nvml_pci now;
	int result = nvmlDeviceGetPciInfo_v3(device, pci ? &now : NULL);

	if (result != NVML_SUCCESS)
		return result;
	memcpy(pci->bus_id, now.bus_id_short, sizeof(pci->bus_id));
	pci->domain = now.domain;
	pci->bus = now.bus;
	pci->device = now.device;
	pci->device_id = 0;
	return NVML_SUCCESS;
}
