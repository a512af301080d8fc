/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that are opened once: a list by path, and in each a list by device. Both are short.
 */
#include "analyze/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct device {
	struct device *next;
	int number;
	struct tn_analysis *analysis;
	struct tn_part_list parts;
	bool listed;
};

struct tn_view {
	struct tn_view *next;
	struct tn_snapshot *snapshot;
	struct device *devices;
	char path[];
};

static void
close_view(struct tn_view *view)
{
	for (struct device *device = view->devices, *next; device; device = next) {
		next = device->next;
		tn__part_list_free(&device->parts);
		tn__analysis_close(device->analysis);
		free(device);
	}
	tn_snapshot_close(view->snapshot);
	free(view);
}

tn_status
tn__views_open(struct tn_views *views, const char *path, struct tn_view **out)
{
	for (struct tn_view *view = views->first; view; view = view->next) {
		if (strcmp(view->path, path) == 0) {
			*out = view;
			return TN_OK;
		}
	}
	struct tn_view *view = calloc(1, sizeof(*view) + strlen(path) + 1);
	TN_RETURN_IF(!view, TN_NO_MEMORY, "no host memory for a record");
	strcpy(view->path, path);
	tn_status status = tn_snapshot_open(path, NULL, &view->snapshot);
	if (status != TN_OK) {
		free(view);
		return status;
	}
	view->next = views->first;
	*out = views->first = view;
	return TN_OK;
}

void
tn__views_drop(struct tn_views *views, const char *path)
{
	for (struct tn_view **at = &views->first; *at; at = &(*at)->next) {
		struct tn_view *view = *at;
		if (strcmp(view->path, path) == 0) {
			*at = view->next;
			close_view(view);
			return;
		}
	}
}

void
tn__views_close(struct tn_views *views)
{
	for (struct tn_view *view = views->first, *next; view; view = next) {
		next = view->next;
		close_view(view);
	}
	views->first = NULL;
}

const struct tn_snapshot *
tn__view_snapshot(const struct tn_view *view)
{
	return view->snapshot;
}

static tn_status
open_device(struct tn_view *view, int number, struct device **out)
{
	for (*out = view->devices; *out; *out = (*out)->next)
		if ((*out)->number == number)
			return TN_OK;
	struct device *device = calloc(1, sizeof(*device));
	TN_RETURN_IF(!device, TN_NO_MEMORY, "no host memory for a device");
	device->number = number;
	tn_status status = tn__analysis_open(view->snapshot, number, &device->analysis);
	if (status != TN_OK) {
		free(device);
		return status;
	}
	device->next = view->devices;
	*out = view->devices = device;
	return TN_OK;
}

tn_status
tn__view_analysis(struct tn_view *view, int device, const struct tn_analysis **out)
{
	struct device *opened;
	TN_FORWARD_IF_ERROR(open_device(view, device, &opened));
	*out = opened->analysis;
	return TN_OK;
}

tn_status
tn__view_parts(struct tn_view *view, int device, const struct tn_part_list **out)
{
	struct device *opened;
	TN_FORWARD_IF_ERROR(open_device(view, device, &opened));
	if (!opened->listed)
		TN_FORWARD_IF_ERROR(tn__list_parts(opened->analysis, &opened->parts));
	opened->listed = true;
	*out = &opened->parts;
	return TN_OK;
}
