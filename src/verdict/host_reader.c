/* SPDX-License-Identifier: Apache-2.0
 *
 * The computer's memory from JSON.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "verdict/host.h"
#include "verdict/model_fill.h"

static void
read_processes(const json_t *array, struct tn_host_moment *moment)
{
	const json_t *item;
	size_t i;
	json_array_foreach(array, i, item) {
		const char *kind = tn__json_borrow_text(item, "kind"), *name = tn__json_borrow_text(item, "name");
		if (kind == NULL || moment->process_count == TN_HOST_PROCESSES)
			continue;
		struct tn_host_process *process = &moment->processes[moment->process_count++];
		*process = (struct tn_host_process){ .pid = tn__json_read_figure(item, "pid"),
			                                 .kind = TN_HOST_OTHER,
			                                 .anonymous = tn__json_read_figure(item, "anonymous_bytes"),
			                                 .file = tn__json_read_figure(item, "file_bytes") };
		snprintf(process->name, sizeof(process->name), "%s", name != NULL ? name : "");
		for (int k = 0; k < TN_HOST_KINDS; k++)
			if (strcmp(kind, tn__host_kind_text((enum tn_host_kind)k)) == 0)
				process->kind = (enum tn_host_kind)k;
	}
}

void
tn__host_read_loaders(const json_t *array, struct tn_host *host)
{
	const json_t *item, *pid;
	size_t i, j;
	json_array_foreach(array, i, item) {
		const json_t *at = json_object_get(item, "at"), *pids = json_object_get(item, "pids");
		const char *file = tn__json_borrow_text(at, "file");
		if (!json_is_object(item) || host->loader_count == TN_HOST_LOADERS)
			continue;
		struct tn_host_loader *loader = &host->loaders[host->loader_count++];
		*loader = (struct tn_host_loader){ .workers = tn__json_read_figure(item, "workers"),
			                               .ahead = tn__json_read_figure(item, "ahead"),
			                               .batch_size = tn__json_read_figure(item, "batch_size"),
			                               .batch_bytes = tn__json_read_figure(item, "batch_bytes"),
			                               .pins = tn__json_read_truth(item, "pins"),
			                               .full = tn__json_read_truth(item, "full") };
		if (file != NULL)
			loader->at = tn__report_new_place(file, tn__json_read_figure(at, "line"),
			                                  tn__json_borrow_text(at, "function"), false);
		json_array_foreach(pids, j, pid)
			if (loader->pid_count < TN_HOST_WORKERS)
				loader->pids[loader->pid_count++] = json_integer_value(pid);
	}
}

void
tn__host_read(const json_t *object, struct tn_host *host)
{
	const json_t *parts = json_object_get(object, "at_peak");
	host->limit = tn__json_read_figure(object, "limit_bytes");
	host->peak = tn__json_read_figure(object, "peak_bytes");
	host->highest = tn__json_read_figure(object, "highest_bytes");
	host->over = tn__json_read_figure(object, "over_bytes");
	if (json_is_object(parts)) {
		host->at_peak.anonymous = tn__json_read_figure(parts, "anonymous_bytes");
		host->at_peak.shared = tn__json_read_figure(parts, "shared_bytes");
		host->at_peak.pinned = tn__json_read_figure(parts, "pinned_bytes");
		host->at_peak.file = tn__json_read_figure(parts, "file_bytes");
		read_processes(json_object_get(parts, "processes"), &host->at_peak);
	}
	tn__host_read_loaders(json_object_get(object, "loaders"), host);
}
