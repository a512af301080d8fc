/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known about a run, in one place: filled from the ledger and the guest's files (src/run/collect.c),
 * judged by tn__report_judge, written by one writer a format. No writer computes a figure of its own.
 *
 * Unknown is TN_UNKNOWN for figures and NULL for texts, never 0 or "". All texts are owned by the model; pointers to
 * places may be NULL. Plain data: not thread-safe.
 */
#ifndef TN_REPORT_MODEL_H
#define TN_REPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"        /* tn_gpu_figures */
#include "tonnage/status.h" /* tn_status */

#define TN_UNKNOWN INT64_C(-1)

enum tn_verdict { TN_VERDICT_FITS, TN_VERDICT_OUT_OF_MEMORY, TN_VERDICT_GROWS, TN_VERDICT_FAILED };
enum tn_stopped {
	TN_STOPPED_SETTLED,
	TN_STOPPED_LIMIT,
	TN_STOPPED_END,
	TN_STOPPED_OUT_OF_MEMORY,
	TN_STOPPED_FAILED,
	TN_STOPPED_INTERRUPTED
};

/* Why the run cannot be a verdict about memory although the program started. */
enum tn_misuse { TN_MISUSE_NONE, TN_MISUSE_NO_TORCH, TN_MISUSE_CPU_TORCH };

struct tn_place {
	char *file; /* never NULL */
	int64_t line;
	char *function;
	bool backward;
};

struct tn_places {
	struct tn_place *items;
	size_t count;
};

struct tn_counted { /* a place and how often, or a name and how often */
	struct tn_place place;
	char *library, *name;
	int64_t count;
	int64_t bytes;
};

struct tn_counted_list {
	struct tn_counted *items;
	size_t count;
};

/* An out-of-memory that ended the program. */
struct tn_report_oom {
	bool seen;
	int64_t requested_bytes, free_bytes, largest_free_block_bytes, short_by_bytes;
	int64_t allocated_bytes, reserved_bytes;
	int64_t step;
	struct tn_place *at;
	struct tn_places stack; /* innermost first */
	char *phase, *cause, *message;
	bool computed; /* the size asked for came from a value that was not computed */
};

/* The ledger's split of a device at one moment: adds up to the device's used bytes. */
struct tn_report_split {
	int64_t context, program, libraries, other_processes;
};

enum tn_severity { TN_SEVERITY_ERROR, TN_SEVERITY_WARNING, TN_SEVERITY_HINT };

struct tn_finding {
	const char *id; /* literal */
	enum tn_severity severity;
	int64_t bytes;
	char *what, *advice;
};

struct tn_source { /* where a figure comes from that was not measured */
	const char *field; /* literal */
	char *text;
};

struct tn_rank {
	int64_t rank, pid, steps, allocated_peak, reserved_peak;
	bool out_of_memory;
};

struct tn_report {
	enum tn_verdict verdict;
	enum tn_misuse misuse;
	int exit_status;

	bool real_gpu; /* figures of the card are the machine's own; device_bytes was sampled */
	int gpus;
	struct tn_gpu_figures gpu;
	char *torch, *cuda;
	int64_t cudnn;

	int64_t steps_seen, input_shapes;
	char *steps_unit;
	enum tn_stopped stopped;

	int64_t allocated_peak, reserved_peak, requested_peak, device_peak;
	struct tn_report_split at_peak;
	int64_t context_lowest, context_highest; /* bounds of one context, for the uncertainty */
	int64_t uncertainty_lowest, uncertainty_highest;
	bool narrowly;
	const char *smallest_gpu; /* alias in the catalogue, which is never released */

	struct tn_report_oom oom;
	struct tn_report_split at_oom;
	struct tn_counted_list handled_ooms;   /* place, count, bytes asked for */
	struct tn_counted_list refused_calls;  /* library, name, count */
	struct tn_counted_list computed_reads; /* place, count */
	int64_t launches, computed_read_count;
	int64_t init_skipped_tensors, init_skipped_bytes;
	struct tn_counted_list uploads_suppressed; /* name, count */

	struct tn_finding findings[16];
	size_t finding_count;
	struct tn_source sources[16];
	size_t source_count;
	struct tn_rank ranks[64];
	size_t rank_count;

	char *exception; /* "ValueError: words" of a program that failed */
	struct tn_place *exception_at;
	char *scratch, *snapshot, *hook_error;
	char *snapshot_made; /* where the guest left it, inside the run folder */
	bool writes_allowed;
	char *working_folder; /* places below it are shown relative to it */
	char *command;        /* the program and its arguments, for the next step */
	int64_t peak_rss_bytes;
	double seconds;
};

/* A report in which nothing is known. Release with tn__report_free. */
void tn__report_init(struct tn_report *report);
void tn__report_free(struct tn_report *report);

/* Adds to a list; texts are copied. TN_NO_MEMORY leaves the list as it was. Lists of fixed size drop what is too
 * much. */
tn_status tn__report_add_counted(struct tn_counted_list *list, const struct tn_counted *item);
tn_status tn__report_add_place(struct tn_places *list, const struct tn_place *place);
void tn__report_add_finding(struct tn_report *report, const char *id, enum tn_severity severity, int64_t bytes,
                            const char *advice, const char *what_format, ...) __attribute__((format(printf, 6, 7)));
void tn__report_add_source(struct tn_report *report, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct tn_place *tn__report_new_place(const char *file, int64_t line, const char *function, bool backward);

/* How the program ended, as the supervisor saw it. */
struct tn_ending {
	int wait_status;      /* of wait4, when `ended` */
	bool ended;           /* by itself, or by a signal that is not ours */
	int stop_reason;      /* the ledger's guest word: 0 none, 1 settled, 2 limit */
	int interrupted_by;   /* signal that reached the supervisor, or 0 */
	bool guest_oom_ended; /* a process of the run was ended by an out-of-memory that its guest saw */
	bool guest_oom_open;  /* an out-of-memory was seen last and nothing after it */
	bool ledger_refused_last; /* the card refused memory to a process that had no guest, or never got over it */
};

/* Sets verdict, exit status and `stopped` from the ending, and everything that follows from other fields:
 * shortage, cause, uncertainty, smallest card. Call once, last. */
void tn__report_judge(struct tn_report *report, const struct tn_ending *ending);

const char *tn__verdict_text(enum tn_verdict verdict);
const char *tn__stopped_text(enum tn_stopped stopped);
const char *tn__severity_text(enum tn_severity severity);

#endif
