/* SPDX-License-Identifier: Apache-2.0
 *
 * The real GPU of this machine, when there is one: what it is, and what it holds.
 *
 * The driver's libraries are opened at run time and their types are written down here again, so that neither
 * building nor running needs them. Only the supervisor calls this; the program under test never loads it.
 */
#ifndef TN_GPU_MACHINE_H
#define TN_GPU_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/gpu.h"        /* tn_gpu_figures */
#include "tonnage/status.h" /* tn_status */

/* Figures of the first GPU as the driver gives them, without making a context; what the driver does not say (context,
 * TFLOPS, limits) comes from the catalogue's row of that name, else 0. *count is the number of GPUs.
 * TN_NOT_FOUND without a GPU or driver. */
tn_status tn__machine_gpu(struct tn_gpu_figures *out, int *count);

/* The same, and the bytes that an empty context takes, by making one. `evidence` receives how it was measured. */
tn_status tn__machine_probe(struct tn_gpu_figures *out, char *evidence, size_t capacity);

/* Device bytes that the processes hold on all GPUs together, as NVML says; TN_NOT_FOUND when it knows none of them
 * (or there is no NVML). Not thread-safe. */
tn_status tn__machine_process_bytes(const pid_t *pids, size_t count, uint64_t *bytes);

#endif
