/* SPDX-License-Identifier: Apache-2.0
 *
 * The core's own state, shared by the files of src/vgpu/core only.
 *
 * Lock: tn__core_lock guards everything here; functions named *_locked want it held. The ledger has its own lock, taken
 * inside this one, never the other way round. No code of the program runs while either is held.
 */
#ifndef TN_VGPU_STATE_H
#define TN_VGPU_STATE_H

#include <pthread.h>

#include "device/clock.h"
#include "device/ledger.h"
#include "device/space.h"
#include "vgpu/core/likely.h"
#include "vgpu/core/runtime.h"

/* Where the virtual devices' addresses lie: user addresses that no loader uses, below sanitizers' and above programs'. */
#define TN_VMM_BASE UINT64_C(0x110000000000)
#define TN_VMM_SIZE UINT64_C(0x1b0000000000)
#define TN_IMPORT_BASE UINT64_C(0x2c0000000000) /* memory of other processes (share.c) */
#define TN_IMPORT_SIZE UINT64_C(0x040000000000)
#define TN_MALLOC_BASE UINT64_C(0x300000000000)
#define TN_MALLOC_SIZE UINT64_C(0x040000000000) /* a device */

/* A table of objects whose handles are base + 64 * index: opaque to the program, the same in every run. */
struct tn_table {
	uintptr_t base;
	void **items;
	uint32_t *free_list;
	size_t count, capacity, free_count;
};

/* Steps of gates that must have been taken (gates.c). */
#define TN_GATES 6
struct tn_gates {
	uint32_t count;
	struct tn_gate {
		uint64_t gate, number;
	} items[TN_GATES];
};

struct tn_stream {
	uintptr_t handle;
	unsigned flags;
	int priority, device;
	uint64_t id;
	uint64_t tail; /* virtual time at which everything put on it is done */
	uint64_t
		*queue; /* when each of the last TN_CLOCK_QUEUE pieces of work is done, as a ring; NULL before the first one */
	uint64_t queued; /* pieces of work so far */
	struct tn_capture *capture;
	uintptr_t last_node;
	struct tn_gates gates; /* that nobody has waited for yet */
};

struct tn_event {
	unsigned flags;
	int device;
	bool recorded;
	uint64_t time;              /* completion, on its device's clock */
	struct tn_capture *capture; /* recorded while this capture was going on; taken back when it ends */
	uintptr_t node;
	struct tn_gates gates;
};

struct tn_device_state {
	struct tn_clock clock;
	struct tn_space space;
	struct tn_stream default_stream;
	_Atomic bool has_context; /* read without the lock; cleared by a reset only */
	int physical;             /* number in the node */
	uint64_t other_tail;      /* of streams that were destroyed with work on them */
};

struct tn_core {
	_Atomic bool attached;
	bool used_before_fork;
	bool private_ledger;
	struct tn_ledger *ledger;
	char region[TN_LEDGER_REGION_NAME]; /* entered before there was a slot */
	int slot;
	int count;
	int node_first, node_count; /* the ledger's devices that are this node's */
	uint64_t values_bound;      /* copies above this move no bytes */
	uint64_t computed_elements; /* of kernels that were not small and were followed: elementwise.c */
	double assumed_share;       /* of what could be selected: 1 full, 0 none */
	struct tn_device_state devices[TN_NODE_DEVICES];
	struct tn_space vmm;
	struct tn_table streams, events, graphs, nodes, executables, memory_handles;
	uint64_t next_stream_id, next_capture_id;
};

extern struct tn_core tn__core;
extern pthread_mutex_t tn__core_lock;

static inline void
tn__lock(void)
{
	pthread_mutex_lock(&tn__core_lock);
}

static inline void
tn__unlock(void)
{
	pthread_mutex_unlock(&tn__core_lock);
}

_Static_assert(TN_VMM_BASE + TN_VMM_SIZE == TN_IMPORT_BASE && TN_IMPORT_BASE + TN_IMPORT_SIZE == TN_MALLOC_BASE,
               "addresses of devices are one range");

/* The number in the ledger of a device of the node. */
static inline int
tn__ledger_device(int physical)
{
	return tn__core.node_first + physical;
}

/* Whether an address is one of a device's. */
static inline bool
tn__on_device(uint64_t address)
{
	return address >= TN_VMM_BASE && address < TN_MALLOC_BASE + TN_NODE_DEVICES * TN_MALLOC_SIZE;
}

uintptr_t tn__table_add(struct tn_table *table, void *item); /* 0: no host memory */
void *tn__table_get(const struct tn_table *table, uintptr_t handle);
void *tn__table_remove(struct tn_table *table, uintptr_t handle);

/* Contexts on the calling thread's stack, read at every call; and the current device's primary one put there. */
#define TN_CONTEXT_STACK 64
extern _Thread_local __attribute__((tls_model("initial-exec"))) int tn__context_depth;
void tn__context_bind(void);

/* The stream behind a handle; default handles (0, 1, 2) mean the current device's. NULL: no such stream. */
struct tn_stream *tn__stream_locked(uintptr_t stream);
/* As tn__kernel_find; and every kernel in turn, NULL behind the last: kernels.c. */
struct tn_kernel *tn__kernel_find_locked(const void *key);
struct tn_kernel *tn__kernel_at_locked(size_t index);
/* Puts work on a stream that captures nothing. */
void tn__run_locked(struct tn_stream *stream, uint64_t duration, const struct tn_effort *effort);
/* Puts work on a stream, or a node into its capture. */
int tn__enqueue_locked(struct tn_stream *stream, const struct tn_node_description *work);
/* Drops what is known of values; see values.c. */
void tn__values_forget(void);
/* The same for a kernel that can write only where these addresses point: into the tensors that begin or lie there. */
void tn__values_forget_reached(const uint64_t *addresses, size_t count);
/* And for a library whose results are real numbers and 32-bit reports, wherever they lie: counts and truths stay. */
void tn__values_forget_reals(void);
/* What is known of a range: writes 1 to `known`, and the byte to `bytes`, for each that is; 0 for the others. */
void tn__values_join(uint64_t address, uint64_t bytes);
void tn__values_peek(uint64_t address, uint64_t bytes_count, unsigned char *bytes, unsigned char *known);
/* How many of the elements of a range are not zero, at most: by what is known, and by masks whose number is bounded. */
uint64_t tn__values_selected(uint64_t address, uint64_t bytes, uint64_t width);
/* How far a piece of known zeros, or of one assumed mask, reaches from an address; 0: there is none. */
uint64_t tn__values_extent(uint64_t address, struct tn_likely *likely);
/* As tn__values_move, without waiting for pending bytes. */
void tn__values_move_known(uint64_t to, uint64_t from, uint64_t bytes);
/* The same for pieces of `width` bytes at `from[0]`, `from[1]` ..., which lie densely behind `to` afterwards, as one. False, with nothing
 * done, where some are known and some not, one is assumed or lies in two extents, or all are more than what is kept of a copy. */
bool tn__values_move_pieces(uint64_t to, const uint64_t *from, uint64_t count, uint64_t width);
/* Whether anything of a range is known or assumed. */
bool tn__values_any(uint64_t address, uint64_t bytes);
void tn__values_forget_range(uint64_t address, uint64_t bytes);
/* The same where only the first `least` bytes are known to be written: counts of masks (counted.h) behind them stay. */
void tn__values_forget_at_most(uint64_t address, uint64_t least, uint64_t most);
/* A pattern of at most 16 bytes, again and again. */
void tn__values_fill(uint64_t address, uint64_t bytes, const void *pattern, size_t pattern_bytes);
/* What these bytes are taken to be from now on, as long as nothing is known of them: an element again and again. */
void tn__values_assume(uint64_t address, uint64_t bytes, const struct tn_likely *likely);
/* The same for elements that differ. */
void tn__values_assume_bytes(uint64_t address, const void *bytes, uint64_t count, const struct tn_likely *likely);
/* Overwrites `host` where something is known or, as elements of this type, assumed. Nothing is counted. */
void tn__values_likely(uint64_t address, void *host, uint64_t bytes, enum tn_dtype dtype);
/* What the byte at an address is taken to be; false: nothing is assumed of it. */
bool tn__values_assumed(uint64_t address, struct tn_likely *out);
/* What a launch does to values, by the kernel's name and arguments: kernel_decode.c. */
void tn__values_launch(struct tn_kernel *kernel, const struct tn_launch *launch);
/* What a launch moves and computes, by the kernel's name, arguments and grid: kernel_cost.c. */
struct tn_effort tn__kernel_cost_of(struct tn_kernel *kernel, const struct tn_launch *launch);
/* Counts work for the step that goes on: work.c. */
void tn__work_count_locked(const struct tn_effort *effort);
void tn__work_count_graph_locked(const struct tn_work *work);
/* Capture, as streams and events meet it (capture.c). */
int tn__capture_add_locked(struct tn_stream *stream, const struct tn_node_description *work);
void tn__capture_join_locked(struct tn_stream *stream, const struct tn_event *event);
void tn__capture_forget_stream(struct tn_stream *stream);
/* An allocation that other processes may map, or one of theirs: its row in the ledger. */
struct tn_share {
	uint32_t row, openings; /* openings: of what was opened here, how often */
	uint64_t id, size;
	int device;
	uint64_t address; /* where it was opened here */
};
/* Shares bytes that this process has taken. NULL: no room for one more. */
struct tn_share *tn__share_make(int device, enum tn_bytes_class class, uint64_t bytes);
/* Ends this process's part in it, and frees it. The last process gives the bytes back. */
void tn__share_close(struct tn_share *share);
/* Joins another process's, by its row and number in the ledger; with an address here, unless it has one. NULL: it is gone, or
 * there is no host memory. */
struct tn_share *tn__share_join_locked(uint32_t row, uint64_t id);
struct tn_share *tn__share_open_locked(uint32_t row, uint64_t id);
/* The one that is open at an address, or NULL; and gives the address back and closes it. */
struct tn_share *tn__share_at_locked(uint64_t address);
void tn__share_unmap_locked(struct tn_share *share);
/* The whole pages behind an address of tn__malloc, shared from now on. NULL: there are none, or no room. */
struct tn_share *tn__share_of_locked(uint64_t address, uint64_t *base);
/* The physical memory behind a handle, shared from now on; and a handle for one that another process shares, which
 * belongs to it from then on. */
struct tn_share *tn__vmm_share_locked(uintptr_t handle);
uintptr_t tn__vmm_adopt_locked(struct tn_share *share);
/* Whether an address is another process's memory that is open here. */
bool tn__imported_locked(uint64_t address, struct tn_pointer_info *info);
/* Whether an address is one that physical memory is mapped to (vmm.c). */
bool tn__vmm_pointer_locked(uint64_t address, struct tn_pointer_info *info);
/* Gates (gates.c). The last one wants no lock held. */
void tn__gates_add(struct tn_gates *gates, uint64_t gate, uint64_t number);
void tn__gates_merge(struct tn_gates *into, const struct tn_gates *from);
void tn__gates_wait(const struct tn_gates *gates);
/* The calling thread's device is idle from now on (stream.c): its time is that of its last stream, and what the streams still wait for
 * of other ranks is added to gates, which the caller waits for without the lock. A status of CUDA. */
int tn__synchronize_locked(struct tn_gates *gates);
/* Pending ranges (gates.c): the result of what fills them is not wanted; whether there are any; waits for all that
 * collectives fill. The last one wants no lock held. */
void tn__pending_drop(uint64_t address, uint64_t bytes);
bool tn__pending_any(void);
void tn__pending_settle_collectives(void);
/* Whether what a kernel writes follows from values that it reads: kernel_decode.c. */
bool tn__kernel_reads_values_locked(struct tn_kernel *kernel);
tn_status tn__class_malloc(int device, enum tn_bytes_class class, uint64_t bytes, uint64_t *address);
tn_status tn__memory_take(int device, enum tn_bytes_class class, uint64_t bytes);
void tn__memory_give(int device, enum tn_bytes_class class, uint64_t bytes);
/* The same for bytes that may be shared with other processes: then only this process's part in them ends. */
void tn__memory_give_back(int device, enum tn_bytes_class class, uint64_t bytes, struct tn_share *share);
/* What CUDA calls a failure to take memory. */
int tn__memory_status(tn_status status);

#endif
