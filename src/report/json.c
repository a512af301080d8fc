/* SPDX-License-Identifier: Apache-2.0
 *
 * The report as JSON: every field of the contract is there, unknown ones are null. Bytes are integers.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "verdict/advice.h"
#include "report/assumed.h"
#include "verdict/gate.h"
#include "report/json_parts.h"
#include "report/ranks.h"
#include "report/report.h"
#include "verdict/executions.h"
#include "verdict/stand_ins.h"

#define LISTED_HOLDERS 200
#define LISTED_FRAMES 64

static json_t *
figure(int64_t value)
{
	return tn__json_figure(value);
}

static json_t *
text(const char *value)
{
	return tn__json_text(value);
}

static json_t *
place(const struct tn_place *at)
{
	return tn__json_place(at);
}

static json_t *
gpu(const struct tn_report *report)
{
	char capability[16];
	snprintf(capability, sizeof(capability), "%d.%d", report->gpu.compute_major, report->gpu.compute_minor);
	return json_pack("{s:o, s:s, s:I, s:I, s:i}", "name", text(report->gpu.name), "compute_capability", capability,
	                 "total_bytes", (json_int_t)report->gpu.total_bytes, "context_bytes",
	                 (json_int_t)report->gpu.context_bytes, "count", report->gpus > 1 ? report->gpus : 1);
}

static json_t *
not_seen(const struct tn_report *report)
{
	if (!report->not_seen_known)
		return json_null();
	json_t *array = json_array();
	for (size_t i = 0; i < report->not_seen_count; i++)
		json_array_append_new(array, text(report->not_seen[i]));
	return array;
}

static json_t *
steps(const struct tn_report *report)
{
	return json_pack("{s:o, s:s, s:o, s:o}", "seen", figure(report->steps_seen), "stopped",
	                 tn__stopped_text(report->stopped), "input_shapes", figure(report->input_shapes), "not_seen",
	                 not_seen(report));
}

static json_t *
categories(const struct tn_report_moment *moment)
{
	return tn__json_categories(moment);
}

static json_t *
holders(const struct tn_report_moment *moment)
{
	json_t *array = json_array();
	for (size_t i = 0; i < moment->holder_count && i < LISTED_HOLDERS; i++) {
		const struct tn_report_holder *item = &moment->holders[i];
		json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:I, s:b, s:b}", "category",
		                                       tn__category_name(item->category), "bytes", figure(item->bytes),
		                                       "blocks", figure(item->blocks), "file", text(item->at.file), "line",
		                                       figure(item->at.line), "function", text(item->at.function), "backward",
		                                       item->at.backward, "what", text(item->what), "alike",
		                                       (json_int_t)(item->alike > 1 ? item->alike : 1), "layers", item->layers,
		                                       "in_module", item->in_module));
	}
	return array;
}

/* Snapshots may name phases that the contract does not know. */
static json_t *
phase(const char *name)
{
	static const char *const known[] = { "build",     "load",       "save", "forward", "backward",
		                                 "optimizer", "evaluation", "data", "other" };
	for (size_t i = 0; name != NULL && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i]) == 0)
			return json_string(name);
	return json_null();
}

static json_t *
at_peak(const struct tn_report *report)
{
	const struct tn_report_moment *moment = &report->at_peak;
	if (report->device_peak == TN_NO_FIGURE && !moment->detailed)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "at", place(moment->at), "step", figure(moment->step), "phase",
	                 phase(moment->phase), "by_category", categories(moment), "holders", holders(moment));
}

static json_t *
stack(const struct tn_place_list *places)
{
	json_t *array = json_array();
	for (size_t i = 0; i < places->count && i < LISTED_FRAMES; i++)
		json_array_append_new(array, place(&places->items[i]));
	return array;
}

static json_t *
out_of_memory(const struct tn_report *report)
{
	const struct tn_report_oom *oom = &report->oom;
	if (!oom->seen)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:b, s:o}",
	                 "requested_bytes", figure(oom->requested_bytes), "free_bytes", figure(oom->free_bytes),
	                 "largest_free_block_bytes", figure(oom->largest_free_block_bytes), "short_by_bytes",
	                 figure(oom->short_by_bytes), "at", place(oom->at), "phase", phase(oom->phase), "cause",
	                 text(oom->cause), "message", text(oom->message), "by_category", categories(&report->at_oom),
	                 "holders", holders(&report->at_oom), "step", figure(oom->step), "stack", stack(&oom->stack),
	                 "computed", oom->computed, "workspace", oom->workspace, "vocabulary",
	                 figure(oom->vocabulary > 0 ? oom->vocabulary : TN_NO_FIGURE), "swallowed", oom->swallowed, "input",
	                 tn__json_input(&oom->input));
}

/* What ended the program, where it ended by itself. */
static json_t *
exception(const struct tn_report *report)
{
	if (report->exception == NULL)
		return json_null();
	return json_pack("{s:o, s:o}", "text", text(report->exception), "at", place(report->exception_at));
}

static json_t *
growth(const struct tn_report *report)
{
	const struct tn_report_growth *item = &report->growth;
	if (!item->seen)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "unit", text(item->unit), "bytes_per_unit", figure(item->bytes),
	                 "full_at", figure(item->full_at), "at", place(item->at), "first", figure(item->first), "last",
	                 figure(item->last));
}

static json_t *
regions(const struct tn_report *report)
{
	json_t *array = json_array();
	for (size_t i = 0; i < report->region_count; i++) {
		const struct tn_region *item = &report->regions[i];
		json_array_append_new(array,
		                      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "name", text(item->name), "peak_device_bytes",
		                                figure(item->device_peak), "peak_reserved_bytes", figure(item->reserved_peak),
		                                "peak_taken_bytes", figure(item->taken_peak), "left_bytes", figure(item->left),
		                                "at", place(item->at)));
	}
	return array;
}

static json_t *
handled(const struct tn_report *report)
{
	json_t *array = json_array();
	for (size_t i = 0; i < report->handled_ooms.count; i++) {
		const struct tn_counted *item = &report->handled_ooms.items[i];
		json_array_append_new(array, json_pack("{s:o, s:o, s:o, s:I, s:o, s:s}", "file", text(item->place.file), "line",
		                                       figure(item->place.line), "function", text(item->place.function),
		                                       "count", (json_int_t)item->count, "requested_bytes", figure(item->bytes),
		                                       "by", item->by_library ? "library" : "program"));
	}
	return array;
}

static json_t *
findings(const struct tn_report *report)
{
	json_t *array = json_array();
	for (size_t i = 0; i < report->finding_count; i++) {
		const struct tn_finding *item = &report->findings[i];
		json_array_append_new(array, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "id", item->id, "severity",
		                                       tn__severity_text(item->severity), "bytes", figure(item->bytes), "at",
		                                       place(item->at), "what", text(item->what), "do", text(item->advice),
		                                       "sure", text(item->sure)));
	}
	return array;
}

/* Each piece of advice that is given, with its finding and the condition that held. */
static json_t *
advice(const struct tn_report *report)
{
	json_t *array = json_array();
	for (size_t i = 0; i < report->finding_count; i++) {
		const char *ids = report->findings[i].advice_ids != NULL ? report->findings[i].advice_ids : "";
		const struct tn_advice *piece;
		for (size_t j = 0; (piece = tn__advice_at(j)) != NULL; j++)
			if (tn__advice_is_among(piece, ids))
				json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s, s:b}", "id", piece->id, "finding",
				                                       report->findings[i].id, "text", piece->text, "condition",
				                                       piece->condition, "holds",
				                                       piece->holds == NULL || piece->holds(report)));
	}
	return array;
}

static json_t *
sources(const struct tn_report *report)
{
	json_t *object = json_object();
	for (size_t i = 0; i < report->source_count; i++)
		json_object_set_new(object, report->sources[i].field, text(report->sources[i].text));
	return object;
}

static json_t *
coverage(const struct tn_report *report)
{
	json_t *refused = json_array(), *read = json_array();
	for (size_t i = 0; i < report->refused_calls.count; i++) {
		const struct tn_counted *item = &report->refused_calls.items[i];
		json_array_append_new(refused, json_pack("{s:o, s:o, s:I}", "what", text(item->library), "name",
		                                         text(item->name), "count", (json_int_t)item->count));
	}
	for (size_t i = 0; i < report->computed_reads.count; i++) {
		const struct tn_counted *item = &report->computed_reads.items[i];
		json_array_append_new(read, json_pack("{s:o, s:o, s:I}", "file", text(item->place.file), "line",
		                                      figure(item->place.line), "count", (json_int_t)item->count));
	}
	return json_pack("{s:o, s:o}", "refused_calls", refused, "computed_values_read", read);
}

static json_t *
uncertainty(const struct tn_report *report)
{
	if (report->uncertainty_lowest == TN_NO_FIGURE)
		return json_null();
	return json_pack("[I, I]", (json_int_t)report->uncertainty_lowest, (json_int_t)report->uncertainty_highest);
}

static json_t *
uncertainty_parts(const struct tn_report *report)
{
	json_t *array = json_array();
	for (size_t i = 0;
	     i < sizeof(report->bounds) / sizeof(report->bounds[0]) && report->uncertainty_lowest != TN_NO_FIGURE; i++)
		if (report->bounds[i].part != NULL)
			json_array_append_new(array, json_pack("{s:s, s:I, s:I}", "part", report->bounds[i].part, "below_bytes",
			                                       (json_int_t)report->bounds[i].below, "above_bytes",
			                                       (json_int_t)report->bounds[i].above));
	return array;
}

static json_t *
framework(const struct tn_report *report)
{
	return json_pack("{s:o, s:o, s:o}", "torch", text(report->torch), "cuda", text(report->cuda), "cudnn",
	                 figure(report->cudnn));
}

static json_t *
peak(const struct tn_report *report)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "allocated_bytes", figure(report->allocated_peak), "reserved_bytes",
	                 figure(report->reserved_peak), "requested_bytes", figure(report->requested_peak), "device_bytes",
	                 figure(report->device_peak));
}

static json_t *
program(const struct tn_report *report)
{
	return json_pack("{s:o, s:o, s:s}", "command", text(report->command), "folder", text(report->working_folder),
	                 "writes", report->writes_allowed ? "allow" : "scratch");
}

static json_t *
skipped(const struct tn_report *report)
{
	json_t *uploads = json_array();
	for (size_t i = 0; i < report->held_back.count; i++)
		if (tn__is_held_back(&report->held_back.items[i], "call"))
			json_array_append_new(uploads, json_pack("{s:o, s:I}", "name", text(report->held_back.items[i].name),
			                                         "count", (json_int_t)report->held_back.items[i].count));
	return json_pack("{s:I, s:I, s:o}", "initialization_tensors", (json_int_t)report->init_skipped_tensors,
	                 "initialization_bytes", (json_int_t)report->init_skipped_bytes, "uploads", uploads);
}

static json_t *
sensors(const struct tn_report *report)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < report->sensor_count; i++) {
		const struct tn_sensor *sensor = &report->sensors[i];
		json_array_append_new(rows, json_pack("{s:s, s:s, s:o, s:o}", "name", sensor->name, "state", sensor->state,
		                                      "costs", text(sensor->costs), "error", text(sensor->error)));
	}
	return rows;
}

json_t *
tn__json_network(const struct tn_report *report)
{
	json_t *held = json_array();
	for (size_t i = 0; i < report->held_back.count; i++) {
		const struct tn_counted *item = &report->held_back.items[i];
		json_array_append_new(held, json_pack("{s:o, s:o, s:I}", "what", text(item->library), "name", text(item->name),
		                                      "count", (json_int_t)item->count));
	}
	return json_pack("{s:s, s:o, s:b, s:o}", "mode", report->network_allowed ? "allow" : "closed", "held_back", held,
	                 "raw_calls", !report->network_allowed && !report->network_raw_open, "download_refused",
	                 text(report->download_refused));
}

static json_t *
files(const struct tn_report *report)
{
	const struct tn_report_files *files = &report->files;
	json_t *refusals = json_array(), *unseen = json_array();
	for (size_t i = 0; i < files->refusals.count; i++)
		json_array_append_new(refusals, json_pack("{s:o, s:o, s:I}", "call", text(files->refusals.items[i].library),
		                                          "program", text(files->refusals.items[i].name), "count",
		                                          (json_int_t)files->refusals.items[i].count));
	for (size_t i = 0; i < files->unseen.count; i++)
		json_array_append_new(unseen, text(files->unseen.items[i].name));
	return json_pack("{s:o, s:o, s:o, s:b, s:I, s:o, s:o, s:{s:b, s:b}}", "scratch_bytes", figure(files->bytes),
	                 "scratch_disk_bytes", figure(files->disk_bytes), "limit_bytes", figure(files->limit_bytes), "full",
	                 files->full, "refused", (json_int_t)files->refused, "refusals", refusals, "unseen_programs",
	                 unseen, "walls", "landlock", !files->no_landlock, "raw_calls", !files->no_filter);
}

/* ---- for other commands ---- */

json_t *
tn__json_at_peak(const struct tn_report *report)
{
	return at_peak(report);
}

json_t *
tn__json_out_of_memory(const struct tn_report *report)
{
	return out_of_memory(report);
}

json_t *
tn__json_findings(const struct tn_report *report)
{
	return findings(report);
}

json_t *
tn__json_peak(const struct tn_report *report)
{
	return peak(report);
}

json_t *
tn__json_regions(const struct tn_report *report)
{
	return regions(report);
}

/* ---- the whole ---- */

/* Every command of a run of several, as a document of its own; null: one command. */
static json_t *
executions(const struct tn_report *report)
{
	const struct tn_executions *all = report->executions;
	if (all == NULL)
		return json_null();
	json_t *array = json_array();
	for (size_t i = 0; i < all->count; i++) {
		struct tn_report one = *all->reports[i];
		one.executions = NULL;
		one.scratch = i + 1 == all->count ? report->scratch : NULL; /* what is there is what the last one left */
		json_array_append_new(array, tn__json_run(&one));
	}
	return array;
}

json_t *
tn__json_run(const struct tn_report *report)
{
	const struct {
		const char *name;
		json_t *value;
	} fields[] = {
		{ "schema", json_string("tonnage.run/1") },
		{ "verdict", json_string(tn__verdict_text(report->verdict)) },
		{ "exit_status", json_integer(report->exit_status) },
		{ "program", program(report) },
		{ "gpu", gpu(report) },
		{ "framework", framework(report) },
		{ "steps", steps(report) },
		{ "peak", peak(report) },
		{ "at_peak", at_peak(report) },
		{ "uncertainty_bytes", uncertainty(report) },
		{ "uncertainty_parts", uncertainty_parts(report) },
		{ "narrowly", json_boolean(report->narrowly) },
		{ "smallest_gpu", text(report->smallest_gpu) },
		{ "out_of_memory", out_of_memory(report) },
		{ "handled_out_of_memory", handled(report) },
		{ "need", tn__json_need(report) },
		{ "findings", findings(report) },
		{ "advice", advice(report) },
		{ "facts", tn__json_facts(report) },
		{ "sources", sources(report) },
		{ "coverage", coverage(report) },
		{ "assumptions", tn__assumptions_json(&report->assumptions) },
		{ "bound", tn__bound_json(report->bound) },
		{ "retry", tn__assumption_passed_json(&report->assumptions) },
		{ "skipped", skipped(report) },
		{ "sensors", sensors(report) },
		{ "network", tn__json_network(report) },
		{ "scratch", text(report->scratch) },
		{ "files", files(report) },
		{ "inputs", tn__inputs_json(&report->inputs) },
		{ "requests", tn__requests_json(&report->requests) },
		{ "stand_ins", tn__stand_ins_json(&report->stand_ins) },
		{ "snapshot", text(report->snapshot) },
		{ "host", tn__host_json(report) },
		{ "growth", growth(report) },
		{ "exception", exception(report) },
		{ "budget", tn__json_budget(report) },
		{ "baseline", tn__json_baseline(report) },
		{ "baseline_written", text(report->gate.written) },
		{ "regions", regions(report) },
		{ "ranks", tn__json_ranks(report) },
		{ "cards", tn__json_cards(report) },
		{ "programs", tn__programs_json(report) },
		{ "system", tn__system_json(report) },
		{ "job", tn__json_job(report) },
		{ "hang", tn__json_hang(report) },
		{ "dead", tn__json_dead(report) },
		{ "executions", executions(report) },
	};
	json_t *object = json_object();
	bool complete = object != NULL;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (json_object_set_new(object, fields[i].name, fields[i].value) != 0)
			complete = false;
	if (complete)
		return object;
	json_decref(object);
	return NULL;
}

tn_status
tn__report_json(const struct tn_report *report, FILE *out)
{
	json_t *object = tn__json_run(report);
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory while writing JSON");
	bool written = tn__json_write(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0 &&
	               fputc('\n', out) != EOF && fflush(out) == 0;
	json_decref(object);
	TN_RETURN_IF(!written, TN_IO, "the JSON report could not be written: %s", strerror(errno));
	return TN_OK;
}
