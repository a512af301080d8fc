/* SPDX-License-Identifier: Apache-2.0
 *
 * What held the memory, from a snapshot of PyTorch's allocator or from the JSON of a run: for a person, and in the
 * formats of other tools.
 */
#ifndef TONNAGE_REPORT_H
#define TONNAGE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All strings are borrowed for the time of the call. tn_report_defaults gives what a plain `tonnage report` does. */
struct tn_report_options {
	const char *path;       /* a snapshot, also packed by gzip or zstd, or JSON of `tonnage run` */
	const char *other_path; /* compared with; NULL: nothing */
	const char *at;         /* "peak", "oom", "end", or seconds after the first event; NULL: oom when the trace ends
	                         * with one, else peak */
	int device;             /* -1: the one that ran out of memory, else the one that held most */
	size_t top;             /* how many holders are listed; 0: as many as each format usually does */
	bool redact;            /* file names instead of paths */
	bool text;              /* a report for a person goes to `output` */
	const char *json_path;  /* these are NULL when not wanted; "-" is `output` */
	const char *html_path;
	const char *folded_path;
	const char *csv_path;
	const char *perfetto_path;
	const char *markdown_path;    /* for the summary of a CI job, or a comment */
	const char *github_path;      /* annotations, as commands of a GitHub workflow */
	const char *codequality_path; /* annotations, as GitLab's report of code quality */
	FILE *output;
};

struct tn_report_options tn_report_defaults(void);

/* Reads and writes all that is asked for. TN_IO, TN_FORMAT, TN_UNSUPPORTED, TN_LIMIT and TN_NOT_FOUND when an input is
 * none or does not hold what is asked for, TN_INVALID for options that make no sense, TN_STATE when writing failed
 * after all was read, TN_NO_MEMORY; tn_error_text() has the one line to show. Thread-safe for distinct outputs. */
tn_status tn_report_write(const struct tn_report_options *options);

#ifdef __cplusplus
}
#endif
#endif
