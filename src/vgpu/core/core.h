/* SPDX-License-Identifier: Apache-2.0
 *
 * What the replaced libraries (src/vgpu/<library>/) may ask of the one virtual GPU behind them.
 *
 * The core is one shared object, libtonnage-vgpu.so; each replaced library is a thin shell that owns a SONAME and
 * translates its documented API to these calls. The core knows no NVIDIA type: handles are integers, sizes are bytes,
 * times are nanoseconds of the virtual clock.
 * Everything here is thread-safe unless it says otherwise.
 */
#ifndef TN_VGPU_CORE_H
#define TN_VGPU_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "gpu/roofline.h" /* enum tn_math, struct tn_effort */
#include "tonnage/status.h"

#define TN_EXPORT __attribute__((visibility("default")))

/* ---- the run and its devices ---- */

/* Attaches this process to its run ($TONNAGE_RUN/ledger), once; later calls cost one load. Without a run the devices are
 * one rtx3060-like default kept in private memory, so that a preloaded program never fails for want of a supervisor.
 * Returns the number of visible devices (CUDA_VISIBLE_DEVICES applied), 0 to 8. */
int tn__device_count(void);
/* The figures of a visible device; NULL when there is no such device. */
const struct tn_gpu_figures *tn__gpu(int device);
/* The calling thread's device, and how to change it. tn__set_device returns TN_INVALID for an unknown device. */
int tn__current_device(void);
tn_status tn__set_device(int device);
/* Total and free bytes of a device at this moment. */
void tn__memory_info(int device, uint64_t *free_bytes, uint64_t *total_bytes);
struct tn_device_process {
	int32_t pid;
	uint64_t bytes; /* context and libraries included */
};

/* The processes of the run that hold memory of a card (by its number in the run); returns how many there are and fills up to
 * `room` of them. Counters are read without the ledger's lock: a figure may be a moment old. */
size_t tn__processes_of(int physical, struct tn_device_process *out, size_t room);

/* The position of a visible device among all devices of the run (CUDA_VISIBLE_DEVICES undone), for NVML. */
int tn__physical_device(int device);
int tn__physical_device_count(void);
const struct tn_gpu_figures *tn__physical_gpu(int physical);
void tn__physical_memory_info(int physical, uint64_t *free_bytes, uint64_t *total_bytes);

/* The device's context: created at first use, which takes the card's context bytes. Called by everything that needs a
 * context. TN_OUT_OF_DEVICE_MEMORY when not even that fits. */
tn_status tn__ensure_context(int device);
/* Of several commands that run at the same time, which one this process belongs to, from 1 on; 0: there is one. */
int tn__program_number(void);

/* ---- refusing ---- */

/* Counts a call that is not answered and returns `status`, so that a shell can `return tn__refuse("cufft", "cufftXtSetGPUs",
 * CUFFT_NOT_SUPPORTED)`. */
int tn__refuse(const char *library, const char *name, int status);

/* Counts a question for a workspace that the real library has answered ("cuDNN 9.19.0"), or the model had to, and why. */
void tn__count_answer(bool real, const char *words);

/* ---- work ---- */

/* Streams are named by the handle the program has (0, 1 and 2 are CUDA's legacy, legacy and per-thread defaults). */

/* Says that a kernel (or a library call that would launch some) of about `nanoseconds` was put on a stream of the current
 * device. Whatever values were stored for direct round trips are stale from here on. While the stream is being captured
 * it becomes a node of the graph instead. `what` is a literal such as "cublas" and is counted. */
tn_status tn__work(uintptr_t stream, uint64_t nanoseconds, const char *what);
/* The same for work whose operations and bytes are known. */
tn_status tn__work_effort(uintptr_t stream, uint64_t nanoseconds, const char *what, const struct tn_effort *effort);

/* Tensors that work may write to, and of the first one how many bytes (0: not known). */
struct tn_written {
	const uint64_t *addresses;
	size_t count;
	uint64_t bytes;
};
/* The same for work that writes nothing else: other values stay as they are. */
tn_status tn__work_written(uintptr_t stream, uint64_t nanoseconds, const char *what, const struct tn_effort *effort,
                           const struct tn_written *written);

/* How long moving `bytes` through device memory takes, and how long `flops` operations of a type take, on the current
 * device, launch included (roofline of the catalogue's figures). */
uint64_t tn__time_of_bytes(uint64_t bytes);
uint64_t tn__time_of_flops(double flops, enum tn_math math);

/* A matrix product, recorded by shape and type for time estimates, then put on the stream like tn__work. */
struct tn_matmul {
	int64_t m, n, k, batch;
	int32_t a_type, b_type, c_type; /* cudaDataType_t numbers */
	int32_t compute_type;           /* cublasComputeType_t number, or -1 */
	const char *library;            /* literal */
	const void *result;             /* on the device; NULL: not known */
	int64_t result_elements;        /* from there to the last one */
	bool unaligned;                 /* a matrix's columns do not begin at multiples of 16 bytes */
};

/* Whether columns that are `lead` elements of a cudaDataType_t apart begin at multiples of 16 bytes. */
bool tn__matmul_aligned(int type, int64_t lead);
tn_status tn__work_matmul(uintptr_t stream, const struct tn_matmul *product, enum tn_math math);

/* True while the stream (of the current device) records a graph. */
bool tn__stream_is_capturing(uintptr_t stream);

/* ---- memory that libraries take for themselves ---- */

/* Device memory outside the program's own allocations, counted as "libraries". `library` is a literal. Given back with
 * tn__library_free. The address is as from cudaMalloc. */
tn_status tn__library_malloc(int device, uint64_t bytes, const char *library, uint64_t *address);
tn_status tn__library_free(uint64_t address);

/* ---- other ranks (ranks.c, doc/design/0022-many-cards.md) ---- */

/* The run's folder, or NULL where there is no run: then no other process can be met. */
const char *tn__run_folder(void);
/* Something that other ranks open step by step: waits until `number` steps of it are there, or it is given up. Called on
 * the program's thread, without a lock of ours. */
typedef void (*tn_gate_wait)(uint64_t gate, uint64_t number);
void tn__set_gatekeeper(tn_gate_wait wait);
/* A transfer between ranks on a stream of the current device: time only. What waits for the stream waits for the gate (0:
 * none), too. Returns CUDA's error numbers; *captured: it became a node of a graph. */
int tn__transfer(uintptr_t stream, uint64_t nanoseconds, uint64_t gate, uint64_t number, bool *captured);
/* These bytes will be known once the gate has been waited for. */
void tn__pending_add(uint64_t address, uint64_t bytes, uint64_t gate, uint64_t number, bool collective);
/* Takes a pending range back. False: it is not wanted any more. */
bool tn__pending_take(uint64_t address, uint64_t gate, uint64_t number);
/* When a process of this machine started; 0: it is not there, or has ended. Names it, with its number. */
uint64_t tn__process_started(int pid);
/* This process is a rank among others: its row in the ledger from now on. */
void tn__rank_join(int rank, int ranks, int device);
void tn__rank_count(int operation, uint64_t bytes); /* enum tn_collective; bytes of one rank's part */
struct tn_ledger_wait;
void tn__rank_waits(const struct tn_ledger_wait *wait);
void tn__rank_goes_on(void);
void tn__rank_hears_abort(void); /* of another rank */
/* It talks within a group of so many ranks of the job, each so far from the next. */
void tn__rank_is_in_group(int ranks, int stride);
/* The ranks of the job that are run, in rising order; their number, 0 where all are (doc/design/0031-absent-ranks.md). */
int tn__ranks_run(const int **ranks);
/* Whether the guest has said that the other rank of the next communicator of two is not run. */
bool tn__next_peer_is_absent(void);
/* Device memory of a communicator, as tn__library_malloc. */
tn_status tn__communication_malloc(int device, uint64_t bytes, uint64_t *address);
/* Waits for the pending ranges among these bytes. */
void tn__pending_settle(uint64_t address, uint64_t bytes);
/* Whether all these bytes are known; writes them to `host` unless that is NULL. Nothing is counted, nothing waited for. */
bool tn__values_known(uint64_t address, void *host, uint64_t bytes);
/* A mask in [address, address + bytes) was counted when all of it was known; the count, until something is known to write
 * there (counted.h). */
void tn__values_counted(uint64_t address, uint64_t bytes, int32_t count);
bool tn__values_count_of(uint64_t address, uint64_t bytes, int32_t *count);
/* A kernel was given the address as a pointer to what it may write. */
void tn__values_written_at(uint64_t address);
/* Which of these bytes are known: up to `room` runs of them, in order, adjacent ones joined; those bytes are written to
 * `host`. */
struct tn_run {
	uint32_t from, count;
};
size_t tn__values_runs(uint64_t address, void *host, uint64_t bytes, struct tn_run *out, size_t room);
/* These bytes are known from now on, or unknown when `bytes_or_null` is NULL. */
void tn__values_put(uint64_t address, const void *bytes_or_null, uint64_t bytes);

/* ---- values ---- */

/* Small direct copies are kept until the next kernel, so that a round trip returns its data; everything else reads zero.
 * Host and device addresses may overlap no stored range's bounds. Reads of bytes that a kernel would have computed are
 * counted (computed_reads) and passed to the read observer. */
void tn__values_write(uint64_t address, const void *host, uint64_t bytes);
void tn__values_read(uint64_t address, void *host, uint64_t bytes);
/* The program sets bytes to a constant (cudaMemset): known until the next kernel that is not ours. */
void tn__values_set(uint64_t address, int value, uint64_t bytes);
/* Device to device. */
void tn__values_move(uint64_t to, uint64_t from, uint64_t bytes);

/* ---- objects of libraries ---- */

/* Opaque handles of libraries (cublasHandle_t, cudnnHandle_t, ...) are real host memory of the shell: calloc them. */

#endif
