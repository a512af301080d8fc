/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of a run held of the computer's own memory at once, and the data loaders whose workers hold some of it
 * (doc/design/0036-hosts.md). Data only.
 */
#ifndef TN_VERDICT_HOST_H
#define TN_VERDICT_HOST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_HOST_PROCESSES 64
#define TN_HOST_LOADERS 16
#define TN_HOST_WORKERS 64

struct tn_place;

enum tn_host_kind { TN_HOST_PROGRAM, TN_HOST_RANK, TN_HOST_WORKER, TN_HOST_OTHER, TN_HOST_KINDS };

struct tn_host_process {
	int64_t pid;
	char name[32]; /* the kernel's; a rank's is "rank 3" */
	enum tn_host_kind kind;
	int64_t anonymous; /* its part of it: pages that processes share count once over all */
	int64_t file;
};

/* At one moment. */
struct tn_host_moment {
	int64_t anonymous; /* of all processes */
	int64_t shared;    /* /dev/shm, and other memory that processes share by name or descriptor */
	int64_t pinned;    /* part of anonymous, as far as it was touched */
	int64_t file;      /* of files that are mapped: the kernel gives it back, so it counts for nothing */
	struct tn_host_process processes[TN_HOST_PROCESSES]; /* the first ones; what more there are is in the sums */
	size_t process_count;
};

struct tn_host_loader {
	struct tn_place *at;                             /* where it was made; NULL: unknown */
	int64_t workers, ahead, batch_size, batch_bytes; /* ahead: batches that each worker is ordered beforehand */
	bool pins, full;                                 /* full: all that was ordered was ready when it was looked */
	int64_t pids[TN_HOST_WORKERS];
	size_t pid_count;
};

/* TN_NO_FIGURE: unknown. */
struct tn_host {
	int64_t limit;   /* --host-memory; not known: nothing was looked at */
	int64_t peak;    /* anonymous and shared */
	int64_t highest; /* were every process at its own highest at once */
	int64_t over;    /* 0: it is enough */
	struct tn_host_moment at_peak;
	struct tn_host_loader loaders[TN_HOST_LOADERS];
	size_t loader_count;
};

/* Nothing is known. */
void tn__host_init(struct tn_host *host);
const char *tn__host_kind_text(enum tn_host_kind kind);
/* Bytes of all batches that a loader's workers are ordered beforehand; 0 where a batch's size is unknown. */
int64_t tn__host_ahead_bytes(const struct tn_host_loader *loader);
/* Anonymous bytes and number of the processes of a kind at the peak. */
int64_t tn__host_of_kind(const struct tn_host *host, enum tn_host_kind kind, int64_t *count);
/* The object `host` of `run --json`; what is malformed is left out. */
void tn__host_read(const json_t *object, struct tn_host *host);
/* The array `loaders` of it, or of a guest's file, which has the same form: added to those that are there. */
void tn__host_read_loaders(const json_t *array, struct tn_host *host);

#endif
