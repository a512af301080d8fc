/* SPDX-License-Identifier: Apache-2.0
 *
 * Records (files of snapshots), each parsed once and each of its devices analysed once, and lent to all who ask.
 *
 * What is lent lives until its record is dropped or all are closed. Not thread-safe.
 */
#ifndef TN_ANALYZE_VIEW_H
#define TN_ANALYZE_VIEW_H

#include "analyze/history.h"

/* Any number of records, by path. Zeroed at first; release with tn__views_close. */
struct tn_views {
	struct tn_view *first;
};

/* The record in a file: parsed when it is asked for first. Fails as tn_snapshot_open does; a failure is not kept. */
tn_status tn__views_open(struct tn_views *views, const char *path, struct tn_view **out);
/* Closes one that is not wanted any more; nothing where it is not open. */
void tn__views_drop(struct tn_views *views, const char *path);
void tn__views_close(struct tn_views *views);

const struct tn_snapshot *tn__view_snapshot(const struct tn_view *view);
/* One device of it, as tn__analysis_open; and what every block was for, as tn__list_parts. A failure is not kept. */
tn_status tn__view_analysis(struct tn_view *view, int device, const struct tn_analysis **out);
tn_status tn__view_parts(struct tn_view *view, int device, const struct tn_part_list **out);

#endif
