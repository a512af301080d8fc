/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: what every virtual device of one run holds, by process. It lies in a file of the run's folder that all
 * processes of the run map shared; the virtual GPU writes it, the supervisor reads it. With --gpu real only the guest's
 * part is used.
 *
 * Invariants (checked by tn__ledger_check):
 *   1. for each device: used_bytes = other_bytes + sum over processes of (context + program + library + communication bytes)
 *   2. used_bytes <= total_bytes + spill_bytes, peak_used_bytes >= used_bytes
 *   3. a process slot with state FREE holds nothing and is in no region
 *   4. for each device: program_bytes = sum over processes of their program bytes
 *   5. a region's `processes` counts the slots that are in it; its bit in `regions_occupied` says whether there are any;
 *      while there are, its peaks are at least what every device holds
 *   6. an allocation that is shared is charged to one process, which has it open; a row that nobody has open is free
 * Lock: `lock`, a robust process-shared mutex, guards everything but the fields said to be atomic. A process that dies with
 * it leaves the counters as they were: each change is finished before the sums are touched.
 * Owners are known by pid and start time (field 22 of /proc/<pid>/stat), so that a reused pid is not taken for them.
 */
#ifndef TN_DEVICE_LEDGER_H
#define TN_DEVICE_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/gpu.h"
#include "tonnage/status.h"

#define TN_LEDGER_MAGIC 0x4e4f5431u /* "1TON" */
#define TN_LEDGER_VERSION 12u
#define TN_NODE_DEVICES 8 /* that a program may see */
#define TN_MAX_DEVICES 32 /* in a ledger: of up to four nodes, one after the other */
#define TN_LEDGER_PROCESSES 256
#define TN_LEDGER_CALLS 512
#define TN_LEDGER_REGIONS 64 /* one bit each in regions_occupied */
#define TN_LEDGER_REGION_NAME 48
#define TN_LEDGER_SHARES 4096
#define TN_LEDGER_RANKS 64
#define TN_LEDGER_PLACE 256
#define TN_LEDGER_MARKS 64
#define TN_LEDGER_GROUPS 8
#define TN_LEDGER_PROGRAMS 16 /* commands that run at the same time */

/* What bytes of a process are for, as the ledger can tell them apart. */
enum tn_bytes_class { TN_BYTES_CONTEXT, TN_BYTES_PROGRAM, TN_BYTES_LIBRARY, TN_BYTES_COMMUNICATION, TN_BYTES_CLASSES };

enum tn_news_told { TN_NEWS_NONE, TN_NEWS_STEP, TN_NEWS_ALL };

/* Written by the guest hook (Python, struct.pack_into on the mapped file) at offset TN_LEDGER_GUEST_OFFSET: little-endian
 * u64 each, in this order. Read at any time by the supervisor; each is one aligned word, so no lock. */
#define TN_LEDGER_GUEST_OFFSET 64
struct tn_ledger_guest {
	_Atomic uint64_t steps; /* optimizer updates (or passes, see the guest) seen so far, all processes' maximum */
	_Atomic uint64_t allocated_peak;  /* bytes, PyTorch's allocator, the worst device */
	_Atomic uint64_t reserved_peak;   /* bytes */
	_Atomic uint64_t stop_reason;     /* 0 run on; 1 settled; 2 limit: everything is flushed, please end the program */
	_Atomic uint64_t out_of_memories; /* seen by the observer, handled or not */
	_Atomic uint64_t stop_pid;        /* who asked for the stop */
	_Atomic uint64_t passes;          /* complete steps and passes of all processes and of every kind; only grows */
	_Atomic uint64_t compiled;        /* milliseconds that the run spent compiling; written by the supervisor */
	_Atomic uint64_t early;           /* not 0: all that was seen so far is written; more may come */
	/* By the supervisor, to a trial that began before it was known how far it has to go: which of the other two stand (0 in them: unknown). */
	_Atomic uint64_t news; /* enum tn_news_told */
	_Atomic uint64_t news_step, news_epoch;
	_Atomic uint64_t
		settled_after; /* the step that brought something new last, once memory has settled; 0: it has not */
};

struct tn_ledger_split {
	uint64_t bytes[TN_BYTES_CLASSES]; /* all processes of the run together */
	uint64_t other_bytes;
	uint64_t largest_program; /* what the process with most bytes of TN_BYTES_PROGRAM had of these, */
	int32_t largest_pid;      /* and which one that was; 0: none had any */
	int32_t unused;
	uint64_t programs[TN_LEDGER_PROGRAMS][TN_BYTES_CLASSES]; /* where several commands run: of each */
};

struct tn_ledger_refusal { /* the last failed device allocation */
	uint64_t count;
	uint64_t requested_bytes, free_bytes;
	uint64_t sequence;
	uint64_t taken; /* bytes that the refused process was given on this device after it */
	int32_t pid;
	int32_t class;
	struct tn_ledger_split held; /* what the device held then */
};

struct tn_ledger_device {
	struct tn_gpu_figures gpu;
	uint64_t other_bytes; /* held by processes that are not of this run: --other */
	uint64_t
		spill_bytes; /* of the computer's memory, which the driver gives where the card is full (Windows); 0: it refuses */
	uint64_t used_bytes, peak_used_bytes;
	uint64_t program_bytes;         /* of used_bytes, what TN_BYTES_PROGRAM is of, all processes */
	uint64_t peak_sequence;         /* when the peak was set */
	struct tn_ledger_split at_peak; /* what it was made of */
	struct tn_ledger_refusal refusal;
	uint64_t fail_countdown; /* tests: the Nth allocation from now fails; 0 = never */
};

enum tn_process_state { TN_PROCESS_FREE, TN_PROCESS_ALIVE };

struct tn_ledger_process {
	int32_t state;
	int32_t pid;
	uint64_t start_time;           /* clock ticks after boot */
	uint32_t region;               /* row + 1; 0: in none */
	uint32_t program;              /* of several commands that run at the same time, from 1 on; 0: there is one */
	_Atomic uint64_t pinned_bytes; /* of the computer's memory, allocated or registered for any card */
	uint64_t bytes[TN_MAX_DEVICES][TN_BYTES_CLASSES];
	uint64_t peak_bytes[TN_MAX_DEVICES];                /* the most that it held of each device, */
	uint64_t at_peak[TN_MAX_DEVICES][TN_BYTES_CLASSES]; /* and what that was made of */
};

/* What ranks do together, in the order of doc/design/0022-many-cards.md. */
enum tn_collective {
	TN_ALL_REDUCE,
	TN_REDUCE,
	TN_BROADCAST,
	TN_REDUCE_SCATTER,
	TN_ALL_GATHER,
	TN_ALL_TO_ALL,
	TN_GATHER,
	TN_SCATTER,
	TN_SEND,
	TN_RECEIVE,
	TN_COLLECTIVES
};

/* Why a rank waits for others. */
enum tn_waiting {
	TN_WAITS_NOT,
	TN_WAITS,                 /* for what another rank has not put on its stream yet */
	TN_WAITS_ENDED,           /* for a rank that has ended or has left the communicator */
	TN_WAITS_OTHER_OPERATION, /* another rank has put another operation in that place */
};

struct tn_ledger_wait {
	_Atomic uint32_t why;       /* enum tn_waiting; written last */
	int32_t operation;          /* enum tn_collective; -1: making a communicator */
	int32_t peer;               /* the rank that is waited for, in the communicator; -1: several */
	int32_t peer_pid;           /* its process; 0: it has not come yet */
	int32_t peer_operation;     /* TN_WAITS_OTHER_OPERATION: what it did */
	int32_t line;               /* of the program; 0: unknown */
	uint64_t number;            /* how many operations of the communicator came before */
	uint64_t bytes, peer_bytes; /* of one rank's part */
	char file[TN_LEDGER_PLACE];
};

/* A process that talks to others by communicators. The row stays when the process has ended, and is never used twice. */
struct tn_ledger_rank {
	int32_t pid;         /* 0: a free row */
	int32_t rank, ranks; /* in the largest communicator, and its size */
	int32_t device;      /* of that communicator, a number in this ledger */
	uint64_t start_time;
	_Atomic uint32_t
		peer_aborted; /* NCCL told it that another rank aborted a communicator: what it then fails of is that */
	uint64_t peak_bytes[TN_MAX_DEVICES];
	uint64_t at_peak[TN_MAX_DEVICES][TN_BYTES_CLASSES];
	_Atomic uint64_t calls[TN_COLLECTIVES], bytes[TN_COLLECTIVES]; /* bytes: of one rank's part, summed */
	struct {
		uint64_t step, hash;  /* of all operations, their bytes and all sizes of allocations up to the end of a step */
	} marks[TN_LEDGER_MARKS]; /* of the last steps; step n at n modulo their number */
	struct {
		int32_t ranks, stride;  /* so many of them, each so far from the next; 0: free */
	} groups[TN_LEDGER_GROUPS]; /* of a job of which not all ranks are run: it talks within these, which are smaller */
	struct tn_ledger_wait wait;
};

/* A process of a job of several ranks, whether or not it has talked to the others. The row stays when the process has ended. */
struct tn_ledger_member {
	int32_t pid;
	_Atomic uint32_t settled; /* it has seen enough: the run may stop when all have */
	uint64_t start_time;
};

/* One of several commands that run at the same time (doc/design/0039-several-programs.md), with all of its processes. */
struct tn_ledger_program {
	_Atomic uint32_t settled, ended; /* it has seen enough; it has ended (the supervisor says so) */
	uint64_t bytes[TN_MAX_DEVICES], peak_bytes[TN_MAX_DEVICES];
};

struct tn_ledger_call { /* a refused call, counted over all processes */
	char library[16];
	char name[80];
	uint64_t count;
	uint64_t passes; /* the guest's, as the last one was refused: no more since then means that no work followed */
};

/* Questions for the size of workspaces (cuDNN, cuFFT): who answered. */
struct tn_ledger_answers {
	uint64_t real, modelled;
	char by[48];   /* the real library: "cuDNN 9.19.0"; "": never */
	char why[104]; /* the model had to answer; "": it never had */
};

/* What the devices held while a process was in the region of this name: "forward", "evaluation". The two peaks of a
 * device need not be of one moment. */
struct tn_ledger_region {
	char name[TN_LEDGER_REGION_NAME];
	uint32_t processes; /* that are in it now */
	uint32_t unused;
	uint64_t entered; /* how often */
	uint64_t peak_used_bytes[TN_MAX_DEVICES];
	uint64_t peak_program_bytes[TN_MAX_DEVICES];
	uint64_t
		peak_taken_bytes[TN_MAX_DEVICES]; /* as peak_used_bytes, but of moments at which something was taken in it only:
	                                            * what was held on entry does not count. 0: nothing was taken */
};

/* One physical allocation that several processes may map (CUDA IPC, shareable handles). Its bytes count once, for the
 * process that is charged; when that one closes it or dies while others have it open, one of those is. */
struct tn_ledger_share {
	uint64_t id; /* 0: a free row; ids are never used twice */
	uint64_t bytes;
	uint64_t open[TN_LEDGER_PROCESSES / 64]; /* one bit a slot */
	int32_t device, class, charged;
	int32_t unused;
};

struct tn_ledger {
	uint32_t magic, version;
	uint64_t size; /* of the whole file, bytes */
	uint32_t device_count;
	uint32_t flags;
	_Atomic uint64_t managed_bytes, managed_peak; /* of cudaMallocManaged, all processes; on no device's account */
	_Atomic uint64_t host_looks;  /* of the supervisor at the computer's memory; the hook waits for some */
	_Atomic uint64_t pinned_peak; /* of the computer's memory, all processes at once */
	_Atomic uint64_t host_asked;  /* not 0: the hook wants all pages walked; the supervisor takes it */
	struct tn_ledger_guest guest; /* at TN_LEDGER_GUEST_OFFSET */
	pthread_mutex_t lock;
	_Atomic uint64_t sequence;       /* one number orders everything: taken by every change of what a device holds */
	_Atomic uint64_t launches;       /* kernels that would have run */
	_Atomic uint64_t computed_reads; /* values read back that a kernel would have computed */
	struct tn_ledger_device devices[TN_MAX_DEVICES];
	struct tn_ledger_process processes[TN_LEDGER_PROCESSES];
	uint32_t call_count;
	uint32_t calls_lost; /* refused names that found no row */
	struct tn_ledger_call calls[TN_LEDGER_CALLS];
	struct tn_ledger_answers answers;
	uint32_t region_count;
	uint32_t regions_lost; /* entries into regions that found no row */
	uint64_t regions_occupied;
	struct tn_ledger_region regions[TN_LEDGER_REGIONS];
	uint32_t share_count; /* rows in use lie below */
	uint32_t unused_shares;
	struct tn_ledger_share shares[TN_LEDGER_SHARES];
	uint32_t rank_count; /* rows in use lie below */
	uint32_t ranks_lost; /* processes that found no row */
	uint32_t ranks_run;  /* of the job, where not all are (doc/design/0031-absent-ranks.md); 0: all */
	uint32_t node_cards; /* of each node, where not all ranks are run */
	struct tn_ledger_rank ranks[TN_LEDGER_RANKS];
	uint32_t member_count;   /* rows in use lie below */
	uint32_t members_wanted; /* so many are to come, at least */
	struct tn_ledger_member members[TN_LEDGER_RANKS];
	uint32_t program_count; /* 0: one command */
	uint32_t unused_programs;
	struct tn_ledger_program programs[TN_LEDGER_PROGRAMS];
};

_Static_assert(offsetof(struct tn_ledger, guest) == TN_LEDGER_GUEST_OFFSET, "the guest hook writes at this offset");

/* Creates the ledger file at `path` (must not exist) for `count` devices with the given figures and bytes held by others.
 * On success *out is the mapping; release with tn__ledger_close. */
tn_status tn__ledger_create(const char *path, const struct tn_gpu_figures *gpus, int count, uint64_t other_bytes,
                            struct tn_ledger **out);
/* Maps an existing ledger. TN_FORMAT when it is not one or of another version. */
tn_status tn__ledger_open(const char *path, struct tn_ledger **out);
void tn__ledger_close(struct tn_ledger *ledger);

/* Finds or makes the slot of process (pid, start_time). TN_LIMIT when all slots are taken by live processes. */
tn_status tn__ledger_enter(struct tn_ledger *ledger, pid_t pid, int *slot);
/* Gives back whatever the slot's process holds and frees the slot. */
void tn__ledger_leave(struct tn_ledger *ledger, int slot);
/* Gives back the bytes of processes that are no longer there; returns how many slots were freed. */
int tn__ledger_sweep(struct tn_ledger *ledger);

/* Takes bytes of a device for the slot's process, or fails with TN_OUT_OF_DEVICE_MEMORY when the card would be more than
 * full (dead processes are swept first). *sequence, if not NULL, receives the number of this change. Thread-safe. */
tn_status tn__ledger_take(struct tn_ledger *ledger, int device, int slot, enum tn_bytes_class class, uint64_t bytes,
                          uint64_t *sequence);
/* Gives bytes back. They must have been taken by the same slot and class. */
void tn__ledger_give(struct tn_ledger *ledger, int device, int slot, enum tn_bytes_class class, uint64_t bytes);
/* Makes an allocation that the slot's process has taken (bytes of a class on a device) one that others may open. The row
 * and its id name it in every process of the run. TN_LIMIT when there are too many. From now on its bytes are given back
 * by tn__ledger_close_share only. Thread-safe, as the next two. */
tn_status tn__ledger_share(struct tn_ledger *ledger, int device, int slot, enum tn_bytes_class class, uint64_t bytes,
                           uint32_t *row, uint64_t *id);
/* The slot's process maps it, too. *about receives a copy of the row. TN_NOT_FOUND when it is there no more. */
tn_status tn__ledger_open_share(struct tn_ledger *ledger, int slot, uint32_t row, uint64_t id,
                                struct tn_ledger_share *about);
/* The slot's process has no mapping of it left. The last one gives the bytes back. */
void tn__ledger_close_share(struct tn_ledger *ledger, int slot, uint32_t row, uint64_t id);

/* Free bytes of a device at this moment. */
uint64_t tn__ledger_free_bytes(struct tn_ledger *ledger, int device);

/* The slot's process leaves its region and is in the one of this name from now on; NULL or "" means none. Every device's
 * bytes count for the region from this moment, and at each take while a process is in it. Names longer than
 * TN_LEDGER_REGION_NAME - 1 bytes are cut, between characters of UTF-8. TN_LIMIT, and in no region, when all rows are
 * taken by other names; TN_INVALID for a slot that is none or free. Thread-safe. */
tn_status tn__ledger_enter_region(struct tn_ledger *ledger, int slot, const char *name);

/* The row of the slot's process among the ranks; made when there is none, with the rank it has in a communicator of `ranks`
 * processes on a device. A larger communicator replaces what the row says of a smaller one. NULL when all rows are taken.
 * The row is the process's own to write; the ledger's lock guards rank_count and the peaks. Thread-safe. */
struct tn_ledger_rank *tn__ledger_join_rank(struct tn_ledger *ledger, int slot, int rank, int ranks, int device);
/* The process is one of a job, of which so many are to come (0: unknown). Does nothing where all rows are taken. Thread-safe. */
void tn__ledger_join_job(struct tn_ledger *ledger, pid_t pid, int wanted);
/* The process has settled (see doc/design/0022-many-cards.md). True when all of the job have come, and have settled or ended; and
 * for a process that is of none. Thread-safe. */
bool tn__ledger_settle_member(struct tn_ledger *ledger, pid_t pid);

/* The slot's process belongs to a command of several, from 1 on. Other numbers, and a run of one command, change nothing. Thread-safe. */
void tn__ledger_set_program(struct tn_ledger *ledger, int slot, int program);
/* The command has settled. True when all have, or have ended, and where there is but one. */
bool tn__ledger_settle_program(struct tn_ledger *ledger, int program);

/* Counts a refused call. */
void tn__ledger_count_call(struct tn_ledger *ledger, const char *library, const char *name);
/* Counts an answer of the real library, or of the model; `words` are the library's name and version, or why not. */
void tn__ledger_count_answer(struct tn_ledger *ledger, bool real, const char *words);

/* Walks the invariants above; TN_STATE with the broken one's number in tn_error_text(). Builds without NDEBUG
 * walk them at each release of the lock, and abort. */
tn_status tn__ledger_check(struct tn_ledger *ledger);
tn_status tn__ledger_check_locked(struct tn_ledger *ledger); /* the caller holds the lock */

/* Shared by the ledger's files. */
tn_status tn__ledger_init_lock(pthread_mutex_t *lock); /* shared by processes, and robust */
void tn__ledger_lock(struct tn_ledger *ledger);
void tn__ledger_unlock(struct tn_ledger *ledger);
void tn__ledger_release(struct tn_ledger *ledger); /* unlocks and checks nothing */
/* The rest wants the lock held. What is held of a device by the slots: in all, and of that by programs; how many processes are
 * in each region. */
uint64_t tn__ledger_bytes_of(const struct tn_ledger *ledger, int device);
uint64_t tn__ledger_program_bytes_of(const struct tn_ledger *ledger, int device);
void tn__ledger_count_regions(const struct tn_ledger *ledger, uint32_t processes[TN_LEDGER_REGIONS]);
/* Makes all sums anew from the slots. */
void tn__ledger_recompute(struct tn_ledger *ledger);
void tn__shares_leave(struct tn_ledger *ledger, int slot);
tn_status tn__shares_check(const struct tn_ledger *ledger);

/* Start time of a process in clock ticks after boot, or 0 when there is no such process. */
uint64_t tn__process_start_time(pid_t pid);

#endif
