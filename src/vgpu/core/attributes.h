/* SPDX-License-Identifier: Apache-2.0
 *
 * Device attributes by number: cudaDeviceAttr and CUdevice_attribute share their numbers.
 */
#ifndef TN_VGPU_ATTRIBUTES_H
#define TN_VGPU_ATTRIBUTES_H

#include <stdbool.h>

#include "gpu/gpu.h"

/* False for a number that is not answered. `device` is the visible number, used for bus numbers. */
bool tn__device_attribute(const struct tn_gpu_figures *gpu, int physical, int attribute, int *value);

/* Bus number that a device has: devices stand at 0000:(1 + physical):00.0. */
static inline int
tn__pci_bus(int physical)
{
	return 1 + physical;
}

int tn__shared_bytes_per_sm(const struct tn_gpu_figures *gpu);
int tn__memory_bus_bits(const struct tn_gpu_figures *gpu);
/* 16 bytes that name a device, the same in every run; the last is the physical number. */
void tn__device_uuid(int physical, unsigned char uuid[16]);

#endif
