/* SPDX-License-Identifier: Apache-2.0
 *
 * What `tonnage clean` found and removed: filled by src/supervise/clean.c, written for a person and as JSON. Plain data: not
 * thread-safe.
 */
#ifndef TN_REPORT_CLEANED_H
#define TN_REPORT_CLEANED_H

#include "report/report.h"

enum tn_cleaned_kind { TN_CLEANED_RUNNING, TN_CLEANED_ORPHAN, TN_CLEANED_SCRATCH, TN_CLEANED_CACHE };

struct tn_cleaned_folder {
	char *path;
	enum tn_cleaned_kind kind;
	int64_t disk_bytes;
	bool removable, removed;
};

struct tn_cleaned {
	struct tn_cleaned_folder *folders;
	size_t count, capacity;
	int64_t freed; /* dry run: what would be freed */
	bool dry_run;
};

void tn__cleaned_free(struct tn_cleaned *cleaned);
/* A line a folder. TN_IO when writing fails. */
tn_status tn__cleaned_text(const struct tn_cleaned *cleaned, struct tn_style style, FILE *out);
/* The object of doc/format/clean.schema.json. TN_IO when writing fails, TN_NO_MEMORY. */
tn_status tn__cleaned_json(const struct tn_cleaned *cleaned, FILE *out);

#endif
