/* SPDX-License-Identifier: Apache-2.0
 *
 * guest/<pid>.json (doc/design/0002-run-protocol.md), read with types. The files come from the program's processes, so nothing in them is
 * trusted: a malformed file, or a field of another type, counts as unknown. Nobody else looks into them.
 */
#ifndef TN_SUPERVISE_GUEST_FILE_H
#define TN_SUPERVISE_GUEST_FILE_H

#include <jansson.h>

#include "supervise/internal.h"

struct tn_guest_file {
	json_t *document;
	int64_t pid, reserved_peak, allocated_peak, steps;
	double started, written; /* by the clock on the wall; 0: unknown */
	const char *program;     /* the document's; NULL: unknown */
	bool torch, cuda;        /* it imported PyTorch; a build for CUDA */
	bool lacks_torch;        /* it failed for want of PyTorch */
	bool failed;             /* it ended with an exception */
	bool recorded;           /* the hook went on to the end */
	bool oom_ended, oom_open;
	int64_t number;    /* of several programs that run at the same time, the index; TN_NO_FIGURE: there is one */
	bool ranked;       /* a rank: a launcher has told it so, or it is one of the ledger's */
	int64_t failed_ns; /* as in struct tn_rank */
	bool followed;     /* one of these, and another process took the work up after it and ended without one */
};

/* ---- guest_file.c ---- */

/* False where it is no such file. Release with tn__guest_file_free. */
bool tn__guest_file_read(const char *path, struct tn_guest_file *out);
void tn__guest_file_free(struct tn_guest_file *file);
/* The largest figure of that name over the devices of a document. */
int64_t tn__guest_worst_device(const json_t *document, const char *name);
/* What its allocator reserved on a device, by PyTorch's number; TN_NO_FIGURE: unknown. */
int64_t tn__guest_reserved_on(const struct tn_guest_file *file, int64_t device);
/* PyTorch's number of a card of the ledger's: a process that sees one card calls it 0, whichever that is. */
int64_t tn__guest_index_of(const struct tn_guest_file *file, int device);
/* Its snapshots; the caller frees the path. Nothing is changed where there is none. */
void tn__guest_take_peak_record(const struct tn_guest_file *file, int64_t device, struct tn_guest_record *out);
void tn__guest_take_oom_record(const struct tn_guest_file *file, struct tn_guest_record *out);

/* ---- guest_take.c: into the report ---- */

/* Of the process that the report is about. */
void tn__guest_take_worst(const struct tn_guest_file *file, struct tn_report *report);
/* Of the process whose steps count; returns the enum tn_reason for which it was ended. */
int tn__guest_take_steps(const struct tn_guest_file *file, struct tn_report *report);
/* Of the process for whose sake all others were ended, too, the last of several ranks or programs to settle: what was not seen then.
 * False where it is not this one. */
bool tn__guest_take_rest(const struct tn_guest_file *file, struct tn_report *report);
/* The exception that ended it, unless the report has one. */
void tn__guest_take_exception(const struct tn_guest_file *file, struct tn_report *report);
/* What is added up over all processes. */
void tn__guest_take_sums(const struct tn_guest_file *file, struct tn_report *report);
/* An out-of-memory that the program outlived: caught inside of the process it counts as handled; one that ended a process
 * of the run is told by the process's program. */
void tn__guest_take_outlived(const struct tn_guest_file *file, struct tn_report *report);
/* A process that is a rank. */
void tn__guest_take_rank(const struct tn_guest_file *file, struct tn_report *report);
/* A process of one of several programs. */
void tn__guest_take_program(const struct tn_guest_file *file, struct tn_report *report);
/* Where the regions of the report begin. */
void tn__guest_take_region_places(const struct tn_guest_file *file, struct tn_report *report);

/* What cells of a notebook left behind, and what holds memory between them. */
void tn__guest_take_cells(const struct tn_guest_file *file, struct tn_report *report);
void tn__guest_take_trainings(const struct tn_guest_file *file, struct tn_report *report);

/* Data loaders and their workers' pids, where somebody asked for the computer's memory. */
void tn__guest_take_loaders(const struct tn_guest_file *file, struct tn_report *report);

#endif
