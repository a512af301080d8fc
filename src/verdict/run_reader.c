/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON of `tonnage run`, back into the model, so that the same screen can be printed later. Fields that are missing,
 * or of another kind, are unknown: the file may be of another version, or edited.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "gpu/catalogue.h"
#include "verdict/finding_rows.h"
#include "verdict/gate.h"
#include "verdict/model_fill.h"
#include "verdict/run_reader.h"
#include "verdict/programs.h"
#include "verdict/run_reader_parts.h"
#include "verdict/stand_ins.h"

static struct tn_place *
place(const json_t *object)
{
	const char *file = tn__json_borrow_text(object, "file");
	if (file == NULL)
		return NULL;
	return tn__report_new_place(file, tn__json_read_figure(object, "line"), tn__json_borrow_text(object, "function"),
	                            tn__json_read_truth(object, "backward"));
}

/* The number of a name in a list; `otherwise` for an unknown one. */
static int
number_of(const char *name, const char *(*text)(int), int count, int otherwise)
{
	for (int i = 0; name != NULL && i < count; i++)
		if (strcmp(text(i), name) == 0)
			return i;
	return otherwise;
}

static const char *
verdict_text(int number)
{
	return tn__verdict_text((enum tn_verdict)number);
}

static const char *
stopped_text(int number)
{
	return tn__stopped_text((enum tn_stopped)number);
}

static const char *
severity_text(int number)
{
	return tn__severity_text((enum tn_severity)number);
}

static const char *
category_text(int number)
{
	return tn__category_name((enum tn_category)number);
}

/* ---- a moment ---- */

static tn_status
read_holders(const json_t *array, struct tn_report_moment *moment)
{
	size_t count = json_array_size(array);
	if (count == 0)
		return TN_OK;
	moment->holders = calloc(count, sizeof(*moment->holders));
	TN_RETURN_IF(moment->holders == NULL, TN_NO_MEMORY, "out of host memory");
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(array, i);
		int64_t alike = tn__json_read_figure(item, "alike");
		int category = number_of(tn__json_borrow_text(item, "category"), category_text, TN_CATEGORIES,
		                         TN_CATEGORY_other);
		moment->holders[moment->holder_count++] = (struct tn_report_holder){
			.category = (enum tn_category)category,
			.bytes = tn__json_read_figure(item, "bytes"),
			.blocks = tn__json_read_figure(item, "blocks"),
			.at = { tn__json_read_text(item, "file"), tn__json_read_figure(item, "line"),
			        tn__json_read_text(item, "function"), tn__json_read_truth(item, "backward") },
			.alike = alike > 0 ? alike : 1,
			.layers = tn__json_read_truth(item, "layers"),
			.in_module = tn__json_read_truth(item, "in_module"),
			.what = tn__json_read_text(item, "what"),
		};
	}
	return TN_OK;
}

/* The lines that hold bytes of communication hold PyTorch's; the rest of the category is the communicators' own. */
static int64_t
of_communicators(const struct tn_report_moment *moment)
{
	int64_t bytes = moment->by_category[TN_CATEGORY_communication];
	for (size_t i = 0; i < moment->holder_count; i++)
		if (moment->holders[i].category == TN_CATEGORY_communication)
			bytes -= moment->holders[i].bytes;
	return bytes > 0 ? bytes : 0;
}

static tn_status
read_moment(const json_t *object, struct tn_report_moment *moment)
{
	const json_t *categories = json_object_get(object, "by_category");
	int64_t sum = 0;
	for (int i = 0; i < TN_CATEGORIES && json_is_object(categories); i++) {
		moment->by_category[i] = tn__json_read_figure(categories, category_text(i));
		sum += moment->by_category[i] != TN_NO_FIGURE ? moment->by_category[i] : 0;
	}
	if (json_is_object(categories)) {
		moment->device_bytes = sum;
		moment->split.context = moment->by_category[TN_CATEGORY_context];
		moment->split.libraries = moment->by_category[TN_CATEGORY_libraries];
		moment->split.other_processes = moment->by_category[TN_CATEGORY_other_processes];
		moment->detailed = moment->by_category[TN_CATEGORY_cached] != TN_NO_FIGURE;
	}
	moment->at = place(json_object_get(object, "at"));
	moment->step = tn__json_read_figure(object, "step");
	moment->phase = tn__json_read_text(object, "phase");
	TN_FORWARD_IF_ERROR(read_holders(json_object_get(object, "holders"), moment));
	moment->split.communication = of_communicators(moment);
	return TN_OK;
}

static tn_status
read_stack(const json_t *array, struct tn_place_list *list)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		struct tn_place *frame = place(json_array_get(array, i));
		tn_status status = frame != NULL ? tn__report_add_place(list, frame) : TN_OK;
		tn__report_free_place(frame);
		TN_FORWARD_IF_ERROR(status);
	}
	return TN_OK;
}

static tn_status
read_oom(const json_t *object, struct tn_report *report)
{
	struct tn_report_oom *oom = &report->oom;
	if (!json_is_object(object))
		return TN_OK;
	oom->seen = true;
	oom->requested_bytes = tn__json_read_figure(object, "requested_bytes");
	oom->free_bytes = tn__json_read_figure(object, "free_bytes");
	oom->largest_free_block_bytes = tn__json_read_figure(object, "largest_free_block_bytes");
	oom->short_by_bytes = tn__json_read_figure(object, "short_by_bytes");
	oom->at = place(json_object_get(object, "at"));
	oom->phase = tn__json_read_text(object, "phase");
	oom->cause = tn__json_borrow_text(object, "cause") != NULL ? tn__json_read_text(object, "cause")
	                                                           : strdup("unknown");
	oom->message = tn__json_read_text(object, "message");
	oom->step = tn__json_read_figure(object, "step");
	oom->computed = tn__json_read_truth(object, "computed");
	oom->workspace = tn__json_read_truth(object, "workspace");
	oom->vocabulary = tn__json_read_figure(object, "vocabulary");
	oom->swallowed = tn__json_read_truth(object, "swallowed");
	tn__oom_input_read(json_object_get(object, "input"), &oom->input);
	TN_FORWARD_IF_ERROR(read_stack(json_object_get(object, "stack"), &oom->stack));
	TN_FORWARD_IF_ERROR(read_moment(object, &report->at_oom));
	report->at_oom.largest_free_block_bytes = oom->largest_free_block_bytes;
	return TN_OK;
}

/* ---- lists ---- */

static void
read_findings(const json_t *array, struct tn_report *report)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);
		const char *id = tn__json_borrow_text(item, "id"), *what = tn__json_borrow_text(item, "what");
		int severity = number_of(tn__json_borrow_text(item, "severity"), severity_text, TN_SEVERITY_HINT + 1,
		                         TN_SEVERITY_HINT);
		struct tn_place *at = place(json_object_get(item, "at"));
		struct tn_finding *finding = tn__report_add_finding_as(
			report, tn__finding_of(id), (enum tn_severity)severity, tn__json_read_figure(item, "bytes"), at,
			tn__json_borrow_text(item, "do"), "%s", what != NULL ? what : "");
		if (finding != NULL) {
			finding->sure = tn__json_borrow_text(item, "sure");
			finding->id = id != NULL ? id : finding->id; /* one of another version has no row */
		}
		tn__report_free_place(at);
	}
}

static tn_status
read_counted(const json_t *array, struct tn_counted_list *list)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);
		struct tn_counted counted = {
			.place = { (char *)(uintptr_t)tn__json_borrow_text(item, "file"), tn__json_read_figure(item, "line"),
			           (char *)(uintptr_t)tn__json_borrow_text(item, "function"), false },
			.library = (char *)(uintptr_t)tn__json_borrow_text(
				item, tn__json_borrow_text(item, "library") != NULL ? "library" : "what"),
			.name = (char *)(uintptr_t)tn__json_borrow_text(item, "name"),
			.count = tn__json_read_figure(item, "count"),
			.bytes = tn__json_read_figure(item, "requested_bytes"),
			.by_library = tn__json_borrow_text(item, "by") != NULL &&
			              strcmp(tn__json_borrow_text(item, "by"), "library") == 0,
		};
		TN_FORWARD_IF_ERROR(tn__report_add_counted(list, &counted));
	}
	return TN_OK;
}

static void
read_regions(const json_t *array, struct tn_report *report)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);
		const char *name = tn__json_borrow_text(item, "name");
		size_t before = report->region_count;
		tn__report_add_region(report, name != NULL ? name : "", tn__json_read_figure(item, "peak_device_bytes"),
		                      tn__json_read_figure(item, "peak_reserved_bytes"),
		                      tn__json_read_figure(item, "peak_taken_bytes"));
		if (report->region_count > before)
			report->regions[before].at = place(json_object_get(item, "at"));
		if (report->region_count > before)
			report->regions[before].left = tn__json_read_figure(item, "left_bytes");
	}
}

static void
read_sources(const json_t *object, struct tn_report *report)
{
	const char *field;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, field, value) {
		if (json_is_string(value))
			tn__report_add_source(report, field, "%s", json_string_value(value));
	}
}

/* ---- the rest ---- */

static void
read_card(const json_t *root, struct tn_report *report)
{
	const json_t *gpu = json_object_get(root, "gpu");
	const char *name = tn__json_borrow_text(gpu, "name");
	int64_t total = tn__json_read_figure(gpu, "total_bytes"), context = tn__json_read_figure(gpu, "context_bytes");
	int64_t count = tn__json_read_figure(gpu, "count");
	snprintf(report->gpu.name, sizeof(report->gpu.name), "%s", name != NULL ? name : "unknown");
	const struct tn_gpu_row *row = name != NULL ? tn__gpu_find(name) : NULL;
	if (row != NULL)
		memcpy(report->gpu.alias, row->figures.alias, sizeof(report->gpu.alias));
	report->gpu.total_bytes = total > 0 ? (uint64_t)total : 0;
	report->gpu.context_bytes = context > 0 ? (uint64_t)context : 0;
	report->gpus = count > 1 && count < 65 ? (int)count : 1;
}

/* How much less and more a part of the uncertainty may be; false for one that is not there. */
static bool
read_part(const json_t *root, const char *name, int64_t *below, int64_t *above)
{
	const json_t *part;
	size_t i;
	json_array_foreach(json_object_get(root, "uncertainty_parts"), i, part) {
		const char *its = tn__json_borrow_text(part, "part");
		if (its == NULL || strcmp(its, name) != 0)
			continue;
		*below = json_integer_value(json_object_get(part, "below_bytes"));
		*above = json_integer_value(json_object_get(part, "above_bytes"));
		return true;
	}
	return false;
}

static void
read_bounds(const json_t *root, struct tn_report *report)
{
	const json_t *bounds = json_object_get(root, "uncertainty_bytes");
	int64_t context = (int64_t)report->gpu.context_bytes;
	report->narrowly = tn__json_read_truth(root, "narrowly");
	report->smallest_gpu = tn__json_borrow_text(root, "smallest_gpu");
	if (json_array_size(bounds) != 2 || report->device_peak == TN_NO_FIGURE)
		return;
	report->uncertainty_lowest = json_integer_value(json_array_get(bounds, 0));
	report->uncertainty_highest = json_integer_value(json_array_get(bounds, 1));
	int64_t held = report->at_peak.split.context, contexts = held > 0 && context > 0 ? held / context : 0;
	if (contexts < 1)
		return;
	int64_t below = report->device_peak - report->uncertainty_lowest; /* all of it, where no parts are told */
	int64_t above = report->uncertainty_highest - report->device_peak;
	(void)read_part(root, "context", &below, &above);
	report->context_lowest = context - below / contexts;
	report->context_highest = context + above / contexts;
	if (read_part(root, "kernels_and_libraries", &below, &above)) {
		report->unseen_below = below / contexts;
		report->unseen_above = above / contexts;
	}
}

static void
read_steps(const json_t *root, struct tn_report *report)
{
	const json_t *steps = json_object_get(root, "steps"), *not_seen = json_object_get(steps, "not_seen");
	report->steps_seen = tn__json_read_figure(steps, "seen");
	report->stopped = (enum tn_stopped)number_of(tn__json_borrow_text(steps, "stopped"), stopped_text, TN_STOPPED_KINDS,
	                                             TN_STOPPED_END);
	report->input_shapes = tn__json_read_figure(steps, "input_shapes");
	report->not_seen_known = json_is_array(not_seen);
	for (size_t i = 0; i < json_array_size(not_seen); i++)
		if (json_is_string(json_array_get(not_seen, i)))
			tn__report_add_not_seen(report, json_string_value(json_array_get(not_seen, i)));
}

static void
read_growth(const json_t *root, struct tn_report *report)
{
	const json_t *object = json_object_get(root, "growth");
	if (!json_is_object(object))
		return;
	report->growth.seen = true;
	report->growth.unit = tn__json_read_text(object, "unit");
	report->growth.bytes = tn__json_read_figure(object, "bytes_per_unit");
	report->growth.full_at = tn__json_read_figure(object, "full_at");
	report->growth.first = tn__json_read_figure(object, "first");
	report->growth.last = tn__json_read_figure(object, "last");
	report->growth.at = place(json_object_get(object, "at"));
}

/* 0 where it is unknown. */
static int64_t
bytes_or_zero(const json_t *object, const char *name)
{
	int64_t bytes = tn__json_read_figure(object, name);
	return bytes != TN_NO_FIGURE ? bytes : 0;
}

void
tn__facts_read(const json_t *object, struct tn_facts *facts)
{
	facts->known = json_is_object(object);
	facts->trains = tn__json_read_truth(object, "trains");
	facts->autocast = tn__json_read_truth(object, "autocast");
	facts->checkpoints = tn__json_read_truth(object, "checkpointing");
	facts->checkpoints_wait = tn__json_read_truth(object, "checkpointing_waits");
	facts->trained_in_eval = tn__json_read_truth(object, "trained_in_eval");
	facts->never_updated = tn__json_read_truth(object, "never_updated");
	facts->loader = tn__json_read_truth(object, "loader");
	facts->expandable_segments = tn__json_read_truth(object, "expandable_segments");
	facts->copy_called = tn__json_read_truth(object, "copy_called");
	facts->sharded = tn__json_read_truth(object, "sharded");
	facts->state_sharded = tn__json_read_truth(object, "state_sharded");
	facts->gradients_in_buckets = tn__json_read_truth(object, "gradients_in_buckets");
	facts->cudnn_benchmark = tn__json_read_truth(object, "cudnn_benchmark");
	facts->workspace_config = tn__json_read_truth(object, "workspace_config");
	facts->small_state = tn__json_read_truth(object, "small_optimizer_state");
	facts->parameter_bytes = bytes_or_zero(object, "parameter_bytes");
	facts->wide_bytes = bytes_or_zero(object, "wide_parameter_bytes");
	facts->small_bytes = bytes_or_zero(object, "small_parameter_bytes");
	facts->trained_bytes = bytes_or_zero(object, "trained_parameter_bytes");
}

static void
read_sensors(const json_t *rows, struct tn_report *report)
{
	size_t i;
	json_t *row;
	json_array_foreach(rows, i, row)
		tn__report_add_sensor(report, tn__json_borrow_text(row, "name"), tn__json_borrow_text(row, "state"),
		                      tn__json_borrow_text(row, "costs"), tn__json_borrow_text(row, "error"));
}

static void
read_files(const json_t *files, struct tn_report *report)
{
	const json_t *walls = json_object_get(files, "walls"), *item;
	size_t i;
	if (!json_is_object(files))
		return;
	report->files.bytes = tn__json_read_figure(files, "scratch_bytes");
	report->files.disk_bytes = tn__json_read_figure(files, "scratch_disk_bytes");
	report->files.limit_bytes = tn__json_read_figure(files, "limit_bytes");
	report->files.full = tn__json_read_truth(files, "full");
	report->files.refused = tn__json_read_figure(files, "refused") > 0 ? tn__json_read_figure(files, "refused") : 0;
	report->files.no_landlock = json_is_false(json_object_get(walls, "landlock"));
	report->files.no_filter = json_is_false(json_object_get(walls, "raw_calls"));
	json_array_foreach(json_object_get(files, "refusals"), i, item) {
		struct tn_counted row = { .place = { NULL, TN_NO_FIGURE, NULL, false },
			                      .library = (char *)(uintptr_t)tn__json_borrow_text(item, "call"),
			                      .name = (char *)(uintptr_t)tn__json_borrow_text(item, "program"),
			                      .count = tn__json_read_figure(item, "count"),
			                      .bytes = TN_NO_FIGURE };
		(void)tn__report_add_counted(&report->files.refusals, &row);
	}
	json_array_foreach(json_object_get(files, "unseen_programs"), i, item) {
		struct tn_counted row = { .place = { NULL, TN_NO_FIGURE, NULL, false },
			                      .name = (char *)(uintptr_t)json_string_value(item),
			                      .count = 1,
			                      .bytes = TN_NO_FIGURE };
		(void)tn__report_add_counted(&report->files.unseen, &row);
	}
}

static tn_status
read_all(const json_t *root, struct tn_report *report)
{
	const json_t *peak = json_object_get(root, "peak"), *coverage = json_object_get(root, "coverage");
	const json_t *host = json_object_get(root, "host"), *framework = json_object_get(root, "framework");
	const json_t *program = json_object_get(root, "program"), *skipped = json_object_get(root, "skipped");
	int64_t status = tn__json_read_figure(root, "exit_status");
	report->verdict = (enum tn_verdict)number_of(tn__json_borrow_text(root, "verdict"), verdict_text, TN_VERDICTS,
	                                             TN_VERDICT_FAILED);
	report->exit_status = status != TN_NO_FIGURE && status < 256 ? (int)status : 0;
	read_card(root, report);
	report->torch = tn__json_read_text(framework, "torch");
	report->cuda = tn__json_read_text(framework, "cuda");
	report->cudnn = tn__json_read_figure(framework, "cudnn");
	read_steps(root, report);
	report->allocated_peak = tn__json_read_figure(peak, "allocated_bytes");
	report->reserved_peak = tn__json_read_figure(peak, "reserved_bytes");
	report->requested_peak = tn__json_read_figure(peak, "requested_bytes");
	report->device_peak = tn__json_read_figure(peak, "device_bytes");
	TN_FORWARD_IF_ERROR(read_moment(json_object_get(root, "at_peak"), &report->at_peak));
	TN_FORWARD_IF_ERROR(read_oom(json_object_get(root, "out_of_memory"), report));
	read_bounds(root, report);
	read_findings(json_object_get(root, "findings"), report);
	read_sources(json_object_get(root, "sources"), report);
	read_regions(json_object_get(root, "regions"), report);
	read_growth(root, report);
	report->exception = tn__json_read_text(json_object_get(root, "exception"), "text");
	report->exception_at = place(json_object_get(json_object_get(root, "exception"), "at"));
	TN_FORWARD_IF_ERROR(tn__gate_read(root, report));
	TN_FORWARD_IF_ERROR(read_counted(json_object_get(root, "handled_out_of_memory"), &report->handled_ooms));
	TN_FORWARD_IF_ERROR(read_counted(json_object_get(coverage, "refused_calls"), &report->refused_calls));
	TN_FORWARD_IF_ERROR(read_counted(json_object_get(coverage, "computed_values_read"), &report->computed_reads));
	TN_FORWARD_IF_ERROR(
		read_counted(json_object_get(json_object_get(root, "network"), "held_back"), &report->held_back));
	report->download_refused = tn__json_read_text(json_object_get(root, "network"), "download_refused");
	const char *mode = tn__json_borrow_text(json_object_get(root, "network"), "mode");
	report->network_allowed = mode == NULL || strcmp(mode, "allow") == 0;
	report->network_raw_open = !report->network_allowed &&
	                           json_is_false(json_object_get(json_object_get(root, "network"), "raw_calls"));
	TN_FORWARD_IF_ERROR(tn__assumptions_read(root, report));
	int64_t tensors = tn__json_read_figure(skipped, "initialization_tensors");
	int64_t bytes = tn__json_read_figure(skipped, "initialization_bytes");
	report->init_skipped_tensors = tensors > 0 ? tensors : 0;
	report->init_skipped_bytes = bytes > 0 ? bytes : 0;
	read_sensors(json_object_get(root, "sensors"), report);
	report->scratch = tn__json_read_text(root, "scratch");
	read_files(json_object_get(root, "files"), report);
	tn__cards_read(root, report);
	TN_FORWARD_IF_ERROR(tn__stand_ins_read(json_object_get(root, "stand_ins"), &report->stand_ins));
	tn__inputs_read(json_object_get(root, "inputs"), &report->inputs);
	tn__programs_read(root, report);
	tn__system_read(json_object_get(root, "system"), &report->system);
	tn__requests_model_read(json_object_get(root, "requests"), &report->requests);
	report->snapshot = tn__json_read_text(root, "snapshot");
	const char *writes = tn__json_borrow_text(program, "writes"); /* where it is unknown, nothing is said of it */
	report->writes_allowed = writes == NULL || strcmp(writes, "allow") == 0;
	report->command = tn__json_read_text(program, "command");
	report->working_folder = tn__json_read_text(program, "folder");
	report->peak_rss_bytes = tn__json_read_figure(host, "peak_rss_bytes");
	tn__host_read(host, &report->host);
	report->seconds = json_number_value(json_object_get(host, "seconds"));
	return TN_OK;
}

tn_status
tn__run_json_read(const json_t *root, struct tn_report *report)
{
	return read_all(root, report);
}

/* The first byte that is no blank. */
static int
first_byte(const char *path)
{
	FILE *in = fopen(path, "re");
	int byte = in != NULL ? getc(in) : EOF;
	while (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')
		byte = getc(in);
	if (in != NULL)
		fclose(in);
	return byte;
}

tn_status
tn__read_run_json(const char *path, json_t **document, struct tn_report *report)
{
	json_error_t error;
	*document = NULL;
	if (first_byte(path) != '{') /* no pickle that a snapshot comes in begins so */
		return TN_OK;
	json_t *root = json_load_file(path, 0, &error);
	TN_RETURN_IF(root == NULL, TN_FORMAT, "%s looks like JSON but is broken in line %d: %s", path, error.line,
	             error.text);
	const char *schema = tn__json_borrow_text(root, "schema");
	if (schema == NULL || strcmp(schema, "tonnage.run/1") != 0) {
		tn_status status = tn__fail(TN_FORMAT, "%s is JSON, but not of tonnage run (schema %s)", path,
		                            schema != NULL ? schema : "missing");
		json_decref(root);
		return status;
	}
	*document = root;
	return read_all(root, report);
}
