/* SPDX-License-Identifier: Apache-2.0
 *
 * The object `host` of `run --json`; src/verdict/host_reader.c reads it back.
 */
#include "report/json_parts.h"
#include "verdict/host_judge.h"

static json_t *
processes(const struct tn_host_moment *moment)
{
	json_t *array = json_array();
	for (size_t i = 0; i < moment->process_count; i++) {
		const struct tn_host_process *process = &moment->processes[i];
		json_array_append_new(array, json_pack("{s:I, s:o, s:s, s:o, s:o}", "pid", (json_int_t)process->pid, "name",
		                                       tn__json_text(process->name), "kind", tn__host_kind_text(process->kind),
		                                       "anonymous_bytes", tn__json_figure(process->anonymous), "file_bytes",
		                                       tn__json_figure(process->file)));
	}
	return array;
}

static json_t *
at_peak(const struct tn_host *host)
{
	const struct tn_host_moment *moment = &host->at_peak;
	if (host->peak == TN_NO_FIGURE)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "anonymous_bytes", tn__json_figure(moment->anonymous), "shared_bytes",
	                 tn__json_figure(moment->shared), "pinned_bytes", tn__json_figure(moment->pinned), "file_bytes",
	                 tn__json_figure(moment->file), "processes", processes(moment));
}

static json_t *
loaders(const struct tn_host *host)
{
	json_t *array = json_array();
	for (size_t i = 0; i < host->loader_count; i++) {
		const struct tn_host_loader *loader = &host->loaders[i];
		json_t *pids = json_array();
		for (size_t j = 0; j < loader->pid_count; j++)
			json_array_append_new(pids, json_integer(loader->pids[j]));
		json_array_append_new(
			array, json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "at", tn__json_place(loader->at), "workers",
		                     tn__json_figure(loader->workers), "ahead", tn__json_figure(loader->ahead), "batch_size",
		                     tn__json_figure(loader->batch_size), "batch_bytes", tn__json_figure(loader->batch_bytes),
		                     "pins", loader->pins, "full", loader->full, "pids", pids));
	}
	return array;
}

json_t *
tn__host_json(const struct tn_report *report)
{
	const struct tn_host *host = &report->host;
	bool asked = host->limit != TN_NO_FIGURE;
	return json_pack("{s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "peak_rss_bytes",
	                 tn__json_figure(report->peak_rss_bytes), "seconds", report->seconds, "limit_bytes",
	                 tn__json_figure(host->limit), "peak_bytes", tn__json_figure(host->peak), "highest_bytes",
	                 tn__json_figure(host->highest), "over_bytes", tn__json_figure(host->over), "unfilled_bytes",
	                 tn__json_figure(asked ? tn__host_unfilled(report) : TN_NO_FIGURE), "at_peak", at_peak(host),
	                 "loaders", loaders(host));
}
