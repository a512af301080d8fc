/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA runtime (src/vgpu/cudart) and driver (src/vgpu/driver) shells ask of the core: memory, streams, events,
 * graphs, kernels. Both translate to these calls, so that the two APIs see one device.
 *
 * Results are CUDA's own error numbers, as far as runtime and driver share them (enum tn_cuda); handles are integers that
 * the program carries as opaque pointers and that are the same in every run. Everything is thread-safe: one lock in the
 * core, never held while the program's code runs.
 */
#ifndef TN_VGPU_RUNTIME_H
#define TN_VGPU_RUNTIME_H

#include "vgpu/core/core.h"

/* Numbers that cudaError_t and CUresult have in common. */
enum tn_cuda {
	TN_CUDA_OK = 0,
	TN_CUDA_INVALID_VALUE = 1,
	TN_CUDA_OUT_OF_MEMORY = 2,
	TN_CUDA_NOT_INITIALIZED = 3,
	TN_CUDA_INVALID_DEVICE = 101,
	TN_CUDA_INVALID_CONTEXT = 201,
	TN_CUDA_INVALID_HANDLE = 400,
	TN_CUDA_ILLEGAL_STATE = 401,
	TN_CUDA_NOT_FOUND = 500,
	TN_CUDA_NOT_READY = 600,
	TN_CUDA_PEER_ALREADY_ENABLED = 704,
	TN_CUDA_PEER_NOT_ENABLED = 705,
	TN_CUDA_HOST_ALREADY_REGISTERED = 712,
	TN_CUDA_CONTEXT_IS_DESTROYED = 709,
	TN_CUDA_HOST_NOT_REGISTERED = 713,
	TN_CUDA_NOT_SUPPORTED = 801,
	TN_CUDA_CAPTURE_UNSUPPORTED = 900,
	TN_CUDA_CAPTURE_INVALIDATED = 901,
	TN_CUDA_CAPTURE_UNMATCHED = 903,
	TN_CUDA_CAPTURE_UNJOINED = 904,
	TN_CUDA_CAPTURE_WRONG_THREAD = 908,
};

/* Attaches, makes the current device's context and refuses to work in a process that was forked after CUDA was used (as
 * the real runtime does). To be called first by everything that needs a device. */
int tn__enter(void);

/* Whether this process has made a context on a visible device. */
bool tn__has_context(int device);

/* ---- contexts, and the calling thread's stack of them (context.c) ---- */

/* A handle of a device's primary context, whether it is active or not. */
uintptr_t tn__context_primary(int device);
uintptr_t tn__context_current(void);    /* 0: the stack is empty */
int tn__context_set(uintptr_t context); /* 0: pops */
int tn__context_push(uintptr_t context);
int tn__context_pop(uintptr_t *context_or_null);
/* Its device; -1 when it is no context, or destroyed. */
int tn__device_of_context(uintptr_t context);
/* The device of the top. */
int tn__context_device(int *device);
/* A context beside the primary one, pushed. It takes the card's context bytes once more, unless it is the first. */
int tn__context_create(int device, uintptr_t *context);
int tn__context_destroy(uintptr_t context);
/* References to a primary context. It stays active when the last one is gone: the runtime may be using it. */
int tn__context_retain(int device);
int tn__context_release(int device);

/* Ends a device's primary context, with all that was allocated by tn__malloc; physical memory behind handles stays
 * (driver documentation). The next call makes a new one. */
void tn__device_reset(int device);

/* ---- memory ---- */

enum tn_memory_kind { TN_MEMORY_UNKNOWN, TN_MEMORY_HOST, TN_MEMORY_DEVICE, TN_MEMORY_MANAGED };

struct tn_pointer_info {
	enum tn_memory_kind kind;
	int device;
	uint64_t base, size; /* of the allocation or reservation that holds it */
	bool registered;     /* host memory that was registered, not allocated */
	bool exportable;     /* by tn__ipc_memory_token */
};

int tn__malloc(uint64_t bytes, uint64_t *address);
int tn__free(uint64_t address);
int tn__malloc_host(uint64_t bytes, void **pointer);
int tn__free_host(void *pointer);
int tn__malloc_managed(uint64_t bytes, uint64_t *address);
int tn__register_host(void *pointer, uint64_t bytes);
int tn__unregister_host(void *pointer);
/* TN_MEMORY_UNKNOWN for ordinary host memory; never fails. */
void tn__pointer_info(uint64_t address, struct tn_pointer_info *info);

/* Virtual memory management: sizes are multiples of 2 MiB. */
int tn__vmm_reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address);
int tn__vmm_free(uint64_t address, uint64_t bytes);
int tn__vmm_create(int device, uint64_t bytes, uintptr_t *handle);
int tn__vmm_retain(uint64_t address, uintptr_t *handle);
int tn__vmm_release(uintptr_t handle);
int tn__vmm_map(uint64_t address, uint64_t bytes, uint64_t offset, uintptr_t handle);
int tn__vmm_unmap(uint64_t address, uint64_t bytes);
int tn__vmm_device(uintptr_t handle, int *device);

/* ---- what processes of a run share (ipc.c) ---- */

#define TN_IPC_BYTES 64
enum tn_ipc_kind { TN_IPC_MEMORY = 1, TN_IPC_EVENT, TN_IPC_PHYSICAL };

/* What a handle for another process holds; it may travel by any way, bytes or a file. */
struct tn_ipc_token {
	uint32_t magic, kind;
	int32_t pid;
	uint32_t row;
	uint64_t id, offset;
	unsigned char reserved[TN_IPC_BYTES - 32];
};

/* Memory of tn__malloc. A handle that was opened twice has one address, and is closed twice. */
int tn__ipc_memory_token(uint64_t address, struct tn_ipc_token *token);
int tn__ipc_memory_open(const struct tn_ipc_token *token, uint64_t *address);
int tn__ipc_memory_close(uint64_t address);
/* Events with the flags interprocess and no timing. Clocks of processes are not one: what was recorded by another process
 * is done. */
int tn__ipc_event_token(uintptr_t event, struct tn_ipc_token *token);
int tn__ipc_event_open(const struct tn_ipc_token *token, uintptr_t *event);
/* Physical memory behind a handle, as a file descriptor that can be sent. */
int tn__vmm_export(uintptr_t handle, int *descriptor);
int tn__vmm_import(int descriptor, uintptr_t *handle);

/* Copies and sets. `to` and `from` may be host or device: the core looks. `asynchronous` only decides whether the caller
 * waits for the stream. */
int tn__copy(uint64_t to, uint64_t from, uint64_t bytes, uintptr_t stream, bool asynchronous);
int tn__copy_2d(uint64_t to, uint64_t to_pitch, uint64_t from, uint64_t from_pitch, uint64_t width, uint64_t height,
                uintptr_t stream, bool asynchronous);
int tn__set(uint64_t to, uint32_t value, uint32_t value_bytes, uint64_t count, uintptr_t stream, bool asynchronous);

/* ---- streams and events ---- */

int tn__stream_create(unsigned flags, int priority, uintptr_t *stream);
int tn__stream_destroy(uintptr_t stream);
int tn__stream_query(uintptr_t stream);
int tn__stream_synchronize(uintptr_t stream);
int tn__stream_wait_event(uintptr_t stream, uintptr_t event);
struct tn_stream_info {
	unsigned flags;
	int priority, device;
	uint64_t id;
};
int tn__stream_info(uintptr_t stream, struct tn_stream_info *info);
int tn__device_synchronize(void);
/* Runs a host function when the stream gets there: here at once, after the stream's earlier work was accounted. */
int tn__stream_host_function(uintptr_t stream, void (*function)(void *), void *argument);

int tn__event_create(unsigned flags, uintptr_t *event); /* flags: 1 blocking sync, 2 no timing, 4 interprocess */
int tn__event_destroy(uintptr_t event);
int tn__event_record(uintptr_t event, uintptr_t stream);
int tn__event_query(uintptr_t event);
int tn__event_synchronize(uintptr_t event);
int tn__event_elapsed(uintptr_t start, uintptr_t end, float *milliseconds);

/* ---- kernels ---- */

struct tn_code; /* src/code */

/* The fat binary that holds a kernel's code, as long as its module is loaded. */
struct tn_kernel_code {
	const void *image; /* NULL: it is not, or no longer, there */
};

/* Whether its name tells anything about the values that it writes. */
enum tn_followed { TN_FOLLOWED_UNREAD, TN_FOLLOWED, TN_FOLLOWED_NOT };

struct tn_kernel {
	const char *name;                  /* mangled, as the program registered it; lives as long as its module */
	const void *host;                  /* the stub that stands for it in the program; NULL for one from a module */
	const struct tn_kernel_code *code; /* never freed; NULL: not known */
	uint64_t launches;                 /* guarded by the core lock */
	int max_dynamic_shared;            /* as set by the program; 0: the 48 KiB that need no consent */
	int preferred_carveout;
	enum tn_followed followed;
	unsigned char operation;  /* what its name tells about the values it writes: kernel_decode.c */
	unsigned char dtype;      /* enum tn_dtype, where the operation has one */
	bool converts, from_mask; /* its name says both types of a conversion; the first is bool */
	unsigned char selection;  /* what its name tells about results that programs read next: selected.c */
	unsigned char selected;   /* enum tn_dtype of these, where the selection has one */
	unsigned char reduced;    /* enum tn_dtype of what a reduction reads */
	struct {
		unsigned char form, operation, inputs, dtype, from, width;
		bool logical;
	} elementwise; /* what its name tells about an elementwise kernel: elementwise.c */
	struct {
		unsigned char kind, width, batch;
	} rearrange; /* what its name tells about a kernel that moves elements: rearrange.c */
	struct {
		uint64_t small, tensor,
			read; /* a bit a parameter: at most eight bytes; a TensorInfo; nothing is written through it */
		unsigned char state, count;
		bool large;          /* its parameters may be larger than 4 KiB */
		bool asked;          /* its code has been asked */
		unsigned char sized; /* parameters that the code knows, and their sizes; NULL: none */
		uint16_t *sizes;
	} signature; /* what its name and its code tell about its parameters: reach.c */
	struct {
		unsigned char form, operands, width, first, second;
		unsigned char math; /* enum tn_math */
		bool causal;
		uint16_t rows, head; /* of attention: queries a block, size of a head */
	} traffic;               /* what its name tells about the bytes it moves: kernel_cost.c */
};

/* Names a kernel; `name` must outlive the process (the program's own string) unless `copy`. */
int tn__kernel_register(const void *host, const char *name, bool copy, struct tn_kernel **kernel);
/* What a module's image (a cubin or a fat binary) says about its kernels' parameters; NULL: nothing that can be read. */
struct tn_code *tn__module_code_open(const void *image);
void tn__module_code_close(struct tn_code *code_or_null);
/* Gives a kernel of that module what it says. */
void tn__kernel_learn(struct tn_kernel *kernel, const struct tn_code *code);
/* Its module is being unloaded. */
void tn__kernel_code_gone(struct tn_kernel_code *code);
/* Calls `visit` with every kernel of a fat binary, and with `read`. Wants the core lock. */
void tn__kernels_of_locked(const struct tn_kernel_code *code,
                           void (*visit)(struct tn_kernel *kernel, const struct tn_code *read),
                           const struct tn_code *read);
/* The kernel behind a host stub or a handle that we gave out (a struct tn_kernel *); NULL for any other pointer. */
struct tn_kernel *tn__kernel_find(const void *key);
struct tn_launch {
	uint32_t grid[3], block[3];
	uint64_t shared_bytes;
	uintptr_t stream;
	void **arguments; /* may be NULL */
};
/* Launches what `key` names, as tn__kernel_find understands it; returns the runtime's error numbers. */
int tn__kernel_launch(const void *key, const struct tn_launch *launch);
/* Blocks of a kernel that one multiprocessor holds at a time, from the catalogue's limits. */
int tn__occupancy(int block_threads, uint64_t shared_bytes);

/* ---- graphs ---- */

enum tn_node_kind { /* CUDA's own numbers */
	                TN_NODE_KERNEL = 0,
	                TN_NODE_MEMCPY = 1,
	                TN_NODE_MEMSET = 2,
	                TN_NODE_HOST = 3,
	                TN_NODE_GRAPH = 4,
	                TN_NODE_EMPTY = 5,
	                TN_NODE_WAIT_EVENT = 6,
	                TN_NODE_EVENT_RECORD = 7,
	                TN_NODE_MEM_ALLOC = 10,
	                TN_NODE_MEM_FREE = 11,
};

enum tn_capture_mode { TN_CAPTURE_GLOBAL, TN_CAPTURE_THREAD_LOCAL, TN_CAPTURE_RELAXED };

int tn__capture_begin(uintptr_t stream, enum tn_capture_mode mode);
int tn__capture_begin_to(uintptr_t stream, uintptr_t graph, enum tn_capture_mode mode);
int tn__capture_end(uintptr_t stream, uintptr_t *graph);
/* *status: 0 none, 1 active, 2 invalidated. The last nodes of the stream are written to `last` (at most one). */
struct tn_capture_info {
	int status;
	uint64_t id;
	uintptr_t graph;
	uintptr_t last; /* 0: the stream has no node yet */
};
int tn__capture_info(uintptr_t stream, struct tn_capture_info *info);
enum tn_capture_mode tn__capture_exchange_mode(enum tn_capture_mode mode);
int tn__capture_set_dependencies(uintptr_t stream, const uintptr_t *nodes, size_t count, bool add);

int tn__graph_create(uintptr_t *graph);
int tn__graph_destroy(uintptr_t graph);
int tn__graph_clone(uintptr_t graph, uintptr_t *clone);
/* Adds a node; `duration` is its virtual time, `kernel` may be NULL. `parameters` (copied, `parameter_bytes`) are handed
 * back by tn__node_parameters. */
struct tn_node_description {
	enum tn_node_kind kind;
	uint64_t duration;
	struct tn_kernel *kernel;
	struct tn_effort effort; /* what it counts as when it runs */
	void (*host_function)(void *);
	void *host_argument;
	uintptr_t child; /* a graph, copied */
	const void *parameters;
	size_t parameter_bytes;
};
int tn__graph_add(uintptr_t graph, const uintptr_t *after, size_t after_count,
                  const struct tn_node_description *description, uintptr_t *node);
int tn__graph_nodes(uintptr_t graph, uintptr_t *nodes, size_t *count);
int tn__graph_edges(uintptr_t graph, uintptr_t *from, uintptr_t *to, size_t *count);
int tn__graph_add_edges(uintptr_t graph, const uintptr_t *from, const uintptr_t *to, size_t count, bool remove);
int tn__node_kind(uintptr_t node, int *kind);
int tn__node_dependencies(uintptr_t node, uintptr_t *nodes, size_t *count, bool dependents);
int tn__node_parameters(uintptr_t node, void *parameters, size_t bytes);
int tn__node_set_parameters(uintptr_t node, const void *parameters, size_t bytes);
int tn__node_destroy(uintptr_t node);
int tn__graph_instantiate(uintptr_t graph, uintptr_t *executable);
int tn__graph_update(uintptr_t executable, uintptr_t graph, bool *same);
int tn__graph_launch(uintptr_t executable, uintptr_t stream);
int tn__graph_exec_destroy(uintptr_t executable);

/* ---- for the guest hook (exported by name, called through ctypes) ---- */

/* Called, from the thread that reads, whenever the program copies bytes to the host that a kernel would have computed; no
 * lock is held. The observer may set `choice` (likely.h). NULL takes it back. */
struct tn_value_read;
TN_EXPORT void tn_vgpu_set_read_observer(void (*observer)(struct tn_value_read *read));
/* The program reads, on this thread, `count` elements of this type (enum tn_dtype) that lie at an address or are copied
 * from there first. Forgotten with the next read. */
TN_EXPORT void tn_vgpu_reading(int dtype, uint64_t address, uint64_t count);
/* Keeps `bytes` (at most 16) at a device address as known until that memory is freed, whatever kernels run: for state
 * whose value does not depend on what kernels compute, such as the scale of a GradScaler. */
TN_EXPORT int tn_vgpu_pin_value(uint64_t address, const void *value, uint64_t bytes);
/* This process is in the region of this name from now on (tn__ledger_enter_region); NULL or "": in none. Returns a
 * tn_status: 0; TN_LIMIT when there are too many names. Does nothing before the process has a context. */
TN_EXPORT int tn_vgpu_enter_region(const char *name);
/* Called, from the thread that waits, when this process has waited for another rank for a second; no lock is held. Writes
 * where the program is. NULL takes it back, and returns when no thread is in it any more. */
TN_EXPORT void tn_vgpu_set_wait_observer(void (*observer)(char *file, uint64_t room, int32_t *line));
/* This process is a rank of a job of so many that use cards, whether or not it ever makes a communicator. */
TN_EXPORT void tn_vgpu_join_job(int ranks);
/* This process has seen enough. 1 when all ranks of the run have, or it is none of several, and so have all programs that run
 * at the same time: the run may stop. */
TN_EXPORT int tn_vgpu_settled(void);
/* A step of this rank is over: its row of the ledger is marked with what it did so far. `allocations`: the same of PyTorch's
 * allocator, as one number. */
TN_EXPORT void tn_vgpu_rank_step(uint64_t step, uint64_t allocations);
/* Where not all ranks of the job are run: this thread's next communicator of two ranks is (or is no longer) with one that is not;
 * and a call that the guest could not answer is counted as a refused one. */
TN_EXPORT void tn_vgpu_next_peer_absent(int absent);
TN_EXPORT void tn_vgpu_refused(const char *library, const char *name);
/* What was put on streams since the last call is step `number`; 1 begins again with counting. The newest
 * TN_WORK_STEPS steps from the first on are kept, what comes later is not. */
#define TN_WORK_STEPS 256
TN_EXPORT void tn_vgpu_work_step(uint64_t number);
/* For a process that was forked into another run: the next call attaches to the one that the environment names. TN_STATE,
 * and nothing is changed, when CUDA is in use here. */
TN_EXPORT int tn_vgpu_renew(void);
/* Work that a trial leaves out, but the real program does: bytes copied either way, and bytes that the host's arithmetic
 * moves. */
TN_EXPORT void tn_vgpu_work_left_out(double to_device_bytes, double to_host_bytes, double host_bytes);
/* Writes the steps (TSV, doc/design/0012-step-time.md). Returns 0, or an errno. */
TN_EXPORT int tn_vgpu_work_write(const char *path);
/* Writes launches by kernel name and matrix products by shape (TSV). Returns 0, or an errno. */
TN_EXPORT int tn_vgpu_kernels_write(const char *path);

#endif
