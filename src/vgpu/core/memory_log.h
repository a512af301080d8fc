/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory log: what only the virtual GPU sees of device memory that PyTorch's allocator gave out. The guest hook enables them,
 * reads them through ctypes and puts them beside PyTorch's own trace (doc/format/metadata.md).
 *
 * Everything is thread-safe. An entry costs less than 100 ns; while the log is off, one load.
 */
#ifndef TN_VGPU_MEMORY_LOG_H
#define TN_VGPU_MEMORY_LOG_H

#include "vgpu/core/core.h"

#define TN_MEMORY_LOG_MAX 65536

enum tn_log_kind {
	TN_LOG_WORKSPACE = 1, /* a library was handed these bytes to work in: workspace, reserve space, states */
	TN_LOG_COPIED = 2,    /* the host copied these bytes to the device; nodes of graphs make no entry */
};

enum tn_library {
	TN_LIBRARY_NONE,
	TN_LIBRARY_CUBLAS,
	TN_LIBRARY_CUBLASLT,
	TN_LIBRARY_CUDNN,
	TN_LIBRARY_CUFFT,
	TN_LIBRARIES
};

#define TN_WANTED_MAX 64

/* The layout is the C ABI of tn_vgpu_memory_log_read. */
struct tn_log_entry {
	uint64_t time_ns; /* CLOCK_REALTIME; entries stand in the order of their making */
	uint64_t address, bytes;
	uint32_t kind;    /* enum tn_log_kind */
	uint32_t library; /* enum tn_library */
};

/* For shells and the core. Nothing is noted of no bytes or of address 0. */
void tn__note_workspace(enum tn_library library, const void *address, uint64_t bytes);
/* A library told the calling thread that it wants so many bytes to work in: true until the thread hands some over. */
void tn__note_wanted(uint64_t bytes);
void tn__note_copied(uint64_t address, uint64_t bytes);

/* ---- for the guest hook ---- */

/* Starts or stops the log; what it holds stays readable. Without host memory for the ring it stays off. */
TN_EXPORT void tn_vgpu_memory_log_enable(int on);
/* Copies the newest entries, at most `most`, to `out` (struct tn_log_entry each), oldest first; returns how many. */
TN_EXPORT uint64_t tn_vgpu_memory_log_read(void *out, uint64_t most);
TN_EXPORT void tn_vgpu_memory_log_clear(void);
/* Copies what libraries told the calling thread that they want as workspaces, the newest first, at most `most` of the last TN_WANTED_MAX,
 * and returns how many: of several plans that a program asks about, those that it may take. 0 when the thread has handed over a
 * workspace since. An allocation that fails between the two is a workspace when its size is. Nothing need be enabled. A program that keeps
 * the answer (PyTorch's cache of plans) asks once only. */
TN_EXPORT uint64_t tn_vgpu_wanted_workspaces(uint64_t *bytes, uint64_t most);
/* "cudnn" for the number in an entry; "" for none or an unknown one. A literal. */
TN_EXPORT const char *tn_vgpu_library_name(uint32_t library);

#endif
