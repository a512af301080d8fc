/* SPDX-License-Identifier: Apache-2.0
 *
 * What `tonnage report` is about: one device of one snapshot, or the JSON of a run, and the moment that was asked for.
 * Filled once, then written by one writer a format (report/inspection_writers.h).
 *
 * Invariant: `report.at_peak` is the moment shown, and `report.at_oom` the last out-of-memory's, where there was one.
 * Without a snapshot there is neither analysis nor parts. Plain data: not thread-safe.
 */
#ifndef TN_VERDICT_INSPECTION_H
#define TN_VERDICT_INSPECTION_H

#include <jansson.h>

#include "analyze/history.h"
#include "analyze/view.h"
#include "verdict/redact.h"

#define TN_INSPECTION_DEVICES 64

enum tn_moment_name { TN_MOMENT_PEAK, TN_MOMENT_OOM, TN_MOMENT_END, TN_MOMENT_ASKED };

/* A moment that has a name. */
struct tn_named_moment {
	enum tn_moment_name name;
	uint32_t state;
};

struct tn_inspection {
	const char *path;                   /* borrowed */
	struct tn_views own;                /* of an input; a run lends its own */
	const struct tn_snapshot *snapshot; /* these three are lent by views; NULL and empty without a snapshot */
	const struct tn_analysis *analysis;
	struct tn_part_list parts;
	int device;
	int devices[TN_INSPECTION_DEVICES];
	size_t device_count;
	struct tn_named_moment named[4]; /* the one shown is first */
	size_t named_count;
	int64_t oom_event; /* -1: none */
	int64_t first_us, last_us;
	int64_t card_total; /* these are TN_NO_FIGURE where the input does not say */
	struct tn_report_split card;
	json_t *document; /* of a run; the report borrows from it */
	bool of_run;      /* the snapshot is a run's own record, and `report` what the run came to */
	struct tn_report report;
	struct tn_moment moment; /* the one shown, as the allocator has it; zero without a snapshot */
	struct tn_redactor *redactor;
};

/* What of the options concerns the input. */
struct tn_inspection_request {
	const char *path, *at;
	int device;
	bool redact;
};

/* The inspection of a snapshot: `inspection->path` is what the wish names. Fails as tn_snapshot_open does, with TN_NOT_FOUND and TN_INVALID
 * for a device or a moment that it has not. `inspection` is one of tn__inspection_init; the caller releases it in any case. */
tn_status tn__inspection_of_snapshot(const struct tn_inspection_request *wish, struct tn_inspection *inspection);
/* Opens an input, a snapshot or the JSON of a run, and looks at the moment asked for. Fails as tn_report_write does. Release with
 * tn__inspection_free. */
tn_status tn__inspection_open(const struct tn_inspection_request *wish, struct tn_inspection *inspection);
/* A inspection of which nothing is known but the path, which is borrowed. */
void tn__inspection_init(struct tn_inspection *inspection, const char *path);
/* The inspection of a run that has just ended, with the record in its folder where there is one. The report is lent: it must
 * outlive the inspection. Fails as tn_snapshot_open does. */
tn_status tn__inspection_of_run(const struct tn_report *report, struct tn_inspection *inspection);
void tn__inspection_free(struct tn_inspection *inspection); /* of a zeroed inspection as well */

/* "peak", "out_of_memory", "end", "asked"; and "At the peak" for a person. */
const char *tn__moment_name_text(enum tn_moment_name name);
const char *tn__moment_name_words(enum tn_moment_name name);

/* The moment that is shown: of a run that ran out of memory that of its failure, else `report.at_peak`. */
const struct tn_report_moment *tn__inspection_moment(const struct tn_inspection *inspection);

/* What the device held of a category beside PyTorch's allocator, at every moment alike. TN_NO_FIGURE: unknown, or nothing can be. */
int64_t tn__inspection_beside(const struct tn_inspection *inspection, enum tn_category category);

/* A file's name as the report may show it. */
const char *tn__inspection_file(const struct tn_inspection *inspection, const char *file);

/* ---- compare.c ---- */

/* What one line held in each of two inputs. Texts and lines are the second's where it has that line. */
struct tn_change {
	enum tn_category category;
	const struct tn_place *before_at, *after_at; /* NULL: not there */
	int64_t before, after, before_blocks, after_blocks;
};

struct tn_comparison {
	const struct tn_inspection *before, *after;
	struct tn_change *changes; /* the largest change first */
	size_t count;
};

/* Lines are matched by function and by their order within it, so that shifted lines stay the same. Borrows from both.
 * TN_NO_MEMORY. Release with tn__comparison_free. */
tn_status tn__compare(const struct tn_inspection *before, const struct tn_inspection *after, struct tn_comparison *out);
void tn__comparison_free(struct tn_comparison *comparison);

#endif
