/* SPDX-License-Identifier: Apache-2.0
 *
 * From a guest's file to the model, field by field.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "supervise/guest_file.h"
#include "verdict/cell_holders.h"
#include "verdict/model_fill.h"
#include "verdict/trainings.h"

static struct tn_place *
place(const json_t *object, bool backward)
{
	const char *file = tn__json_borrow_text(object, "file");
	return file != NULL ? tn__report_new_place(file, tn__json_read_figure(object, "line"),
	                                           tn__json_borrow_text(object, "function"), backward)
	                    : NULL;
}

/* "8192 x 2048"; NULL: none. */
static char *
shape_of(const json_t *sizes)
{
	char text[96] = "";
	size_t i, length = 0;
	const json_t *size;
	json_array_foreach(sizes, i, size)
		if (json_is_integer(size) && length < 64)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%lld", i > 0 ? " x " : "",
			                           (long long)json_integer_value(size));
	return length > 0 ? strdup(text) : NULL;
}

static int64_t
positive(const json_t *object, const char *name)
{
	int64_t value = tn__json_read_figure(object, name);
	return value > 0 ? value : 0;
}

static void
take_input(const json_t *input, struct tn_oom_input *out)
{
	out->shape = shape_of(json_object_get(input, "shape"));
	out->before = shape_of(json_object_get(input, "before"));
	if (out->shape == NULL || out->before == NULL)
		return;
	out->values = positive(input, "values");
	out->values_before = positive(input, "values_before");
	out->calls_before = positive(input, "calls_before");
}

static void
take_oom(const json_t *oom, struct tn_report_oom *out)
{
	const json_t *stack = json_object_get(oom, "stack"), *frame;
	size_t i;
	if (!json_is_object(oom))
		return;
	out->requested_bytes = tn__json_read_figure(oom, "requested_bytes");
	out->free_bytes = tn__json_read_figure(oom, "free_bytes");
	out->allocated_bytes = tn__json_read_figure(oom, "allocated_bytes");
	out->reserved_bytes = tn__json_read_figure(oom, "reserved_bytes");
	out->largest_free_block_bytes = tn__json_read_figure(oom, "largest_free_block_bytes");
	out->step = tn__json_read_figure(oom, "step");
	out->phase = tn__json_read_text(oom, "phase");
	out->message = tn__json_read_text(oom, "message");
	out->computed = tn__json_read_truth(oom, "computed");
	out->workspace = tn__json_read_truth(oom, "workspace");
	out->swallowed = tn__json_read_truth(oom, "swallowed");
	take_input(json_object_get(oom, "input"), &out->input);
	out->vocabulary = tn__json_read_figure(oom, "vocabulary");
	out->fraction = tn__json_read_number(oom, "fraction");
	out->at = place(json_object_get(oom, "at"), tn__json_read_truth(oom, "backward"));
	json_array_foreach(stack, i, frame) {
		struct tn_place item = { (char *)(uintptr_t)tn__json_borrow_text(frame, "file"),
			                     tn__json_read_figure(frame, "line"),
			                     (char *)(uintptr_t)tn__json_borrow_text(frame, "function"), false };
		if (item.file != NULL)
			(void)tn__report_add_place(&out->stack, &item);
	}
}

static void
take_growth(const json_t *growth, struct tn_report_growth *out)
{
	if (!json_is_object(growth) || tn__json_read_figure(growth, "bytes") <= 0)
		return;
	out->seen = true;
	out->unit = tn__json_read_text(growth, "unit");
	out->bytes = tn__json_read_figure(growth, "bytes");
	out->first = tn__json_read_figure(growth, "first");
	out->last = tn__json_read_figure(growth, "last");
	out->peak = tn__json_read_figure(growth, "peak") != TN_NO_FIGURE ? tn__json_read_figure(growth, "peak")
	                                                                 : tn__json_read_figure(growth, "allocated");
	out->of = tn__json_read_figure(growth, "of");
	out->at = place(json_object_get(growth, "at"), tn__json_read_truth(json_object_get(growth, "at"), "backward"));
}

static void
take_not_seen(const json_t *list, struct tn_report *report)
{
	const json_t *item;
	size_t i;
	report->not_seen_known = json_is_array(list);
	json_array_foreach(list, i, item)
		if (json_string_value(item) != NULL)
			tn__report_add_not_seen(report, json_string_value(item));
}

static void
take_exception(const json_t *exception, struct tn_report *report)
{
	const char *type = tn__json_borrow_text(exception, "type"), *message = tn__json_borrow_text(exception, "message");
	if (type == NULL || report->exception != NULL)
		return;
	if (asprintf(&report->exception, "%s%s%s", type, message != NULL && message[0] != '\0' ? ": " : "",
	             message != NULL ? message : "") < 0)
		report->exception = NULL;
	report->exception_at = place(json_object_get(exception, "at"), false);
}

/* ---- what the program does about its memory ---- */

/* True when one of the names is an Adam whose two numbers a parameter are kept whole. */
static bool
has_full_adam(const json_t *names)
{
	static const char *const smaller[] = { "8bit", "4bit", "Fp8", "fp8", "Adafactor", "mini" };
	const json_t *item;
	size_t i;
	json_array_foreach(names, i, item) {
		const char *name = json_string_value(item);
		bool full = name != NULL && (strstr(name, "Adam") != NULL || strstr(name, "Lamb") != NULL);
		for (size_t j = 0; full && j < sizeof(smaller) / sizeof(smaller[0]); j++)
			full = strstr(name, smaller[j]) == NULL;
		if (full)
			return true;
	}
	return false;
}

static bool
has_name(const json_t *names, const char *wanted)
{
	const json_t *item;
	size_t i;
	json_array_foreach(names, i, item)
		if (json_string_value(item) != NULL && strcmp(json_string_value(item), wanted) == 0)
			return true;
	return false;
}

static bool
is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static void
take_parameters(const json_t *rows, struct tn_facts *out)
{
	static const char *const wide[] = { "float32", "float64", "complex64", "complex128" };
	static const char *const sixteen[] = { "bfloat16", "float16" };
	const json_t *row;
	size_t i;
	json_array_foreach(rows, i, row) {
		const char *type = tn__json_borrow_text(row, "type");
		int64_t bytes = tn__json_read_figure(row, "bytes"), trained = tn__json_read_figure(row, "trained_bytes");
		if (type == NULL || bytes <= 0)
			continue;
		out->parameter_bytes += bytes;
		out->trained_bytes += trained > 0 ? trained : 0;
		if (is_one_of(type, wide, sizeof(wide) / sizeof(wide[0])))
			out->wide_bytes += bytes;
		else if (!is_one_of(type, sixteen, sizeof(sixteen) / sizeof(sixteen[0])))
			out->small_bytes += bytes;
	}
}

/* "sm_86", "sm_90a" (for that card alone), "compute_90" (and all newer ones). */
static void
take_kernels(const json_t *list, struct tn_facts *out)
{
	const json_t *item;
	size_t i;
	json_array_foreach(list, i, item) {
		const char *name = json_string_value(item);
		int number = 0;
		bool compiled = name != NULL && sscanf(name, "compute_%d", &number) == 1;
		if (!compiled && (name == NULL || sscanf(name, "sm_%d", &number) != 1))
			continue;
		if (number > 0 && out->kernel_count < sizeof(out->kernels) / sizeof(out->kernels[0]))
			out->kernels[out->kernel_count++] = compiled ? -number : number;
	}
}

static void
take_facts(const json_t *facts, struct tn_facts *out)
{
	if (!json_is_object(facts))
		return;
	const json_t *optimizers = json_object_get(facts, "optimizers");
	out->known = true;
	out->trains = tn__json_read_truth(facts, "trains");
	out->autocast = json_array_size(json_object_get(facts, "autocast")) > 0;
	out->checkpoints = tn__json_read_truth(facts, "checkpointing");
	out->checkpoints_wait = tn__json_read_truth(facts, "checkpointing_waits");
	out->trained_in_eval = tn__json_read_truth(facts, "trained_in_eval");
	out->never_updated = tn__json_read_truth(facts, "never_updated");
	out->loader = tn__json_read_truth(facts, "loader");
	out->expandable_segments = tn__json_read_truth(facts, "expandable_segments");
	out->copy_called = tn__json_read_truth(facts, "copy_called");
	out->sharded = tn__json_read_truth(facts, "sharded");
	out->state_sharded = has_name(optimizers, "ZeroRedundancyOptimizer");
	out->gradients_in_buckets = tn__json_read_truth(facts, "gradients_in_buckets");
	out->cudnn_benchmark = tn__json_read_truth(facts, "cudnn_benchmark");
	out->workspace_config = tn__json_read_truth(facts, "workspace_config");
	out->small_state = json_array_size(optimizers) > 0 && !has_full_adam(optimizers);
	take_parameters(json_object_get(facts, "parameters"), out);
	take_kernels(json_object_get(facts, "architectures"), out);
}

/* ---- the process that the report is about ---- */

static int
stop_of(const json_t *steps)
{
	const char *stopped = tn__json_borrow_text(steps, "stopped");
	return stopped == NULL ? 0 : strcmp(stopped, "settled") == 0 ? 1 : strcmp(stopped, "limit") == 0 ? 2 : 0;
}

int
tn__guest_take_steps(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *steps = json_object_get(file->document, "steps");
	report->steps_seen = tn__json_read_figure(steps, "seen");
	report->steps_unit = tn__json_read_text(steps, "unit");
	report->input_shapes = tn__json_read_figure(steps, "input_shapes");
	report->batch_size = tn__json_read_figure(steps, "batch_size");
	take_not_seen(json_object_get(steps, "not_seen"), report);
	return stop_of(steps);
}

bool
tn__guest_take_rest(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *steps = json_object_get(file->document, "steps");
	if (stop_of(steps) == 0)
		return false;
	take_not_seen(json_object_get(steps, "not_seen"), report);
	return true;
}

void
tn__guest_take_worst(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *document = file->document;
	report->torch = tn__json_read_text(document, "torch");
	report->cuda = tn__json_read_text(document, "cuda");
	report->cudnn = tn__json_read_figure(document, "cudnn");
	report->snapshot_made = tn__json_read_text(document, "snapshot");
	report->fast_forward_failed = tn__json_read_text(document, "fast_forward_failed");
	take_growth(json_object_get(document, "growth"), &report->growth);
	report->kept_in = tn__json_read_text(json_object_get(document, "kept"), "name");
	report->kept_at = place(json_object_get(json_object_get(document, "kept"), "at"), false);
	report->allocated_peak = tn__guest_worst_device(document, "allocated_peak");
	report->reserved_peak = tn__guest_worst_device(document, "reserved_peak");
	report->requested_peak = tn__guest_worst_device(document, "requested_peak");
	report->retries = tn__guest_worst_device(document, "retries");
	take_oom(json_object_get(document, "out_of_memory"), &report->oom);
	take_facts(json_object_get(document, "facts"), &report->facts);
	tn__inputs_read(json_object_get(document, "inputs"), &report->inputs);
}

/* ---- every process ---- */

static void
take_counted(const json_t *array, const char *name_field, struct tn_counted_list *out)
{
	const json_t *item;
	size_t i;
	json_array_foreach(array, i, item) {
		const char *name = name_field != NULL ? tn__json_borrow_text(item, name_field) : NULL;
		struct tn_counted counted = { .place = { (char *)(uintptr_t)tn__json_borrow_text(item, "file"),
			                                     tn__json_read_figure(item, "line"),
			                                     (char *)(uintptr_t)tn__json_borrow_text(item, "function"), false },
			                          .name = (char *)(uintptr_t)name,
			                          .count = tn__json_read_figure(item, "count"),
			                          .by_library = tn__json_read_truth(item, "workspace"),
			                          .bytes = tn__json_read_figure(item, "requested_bytes") };
		if (counted.count > 0 && (counted.name != NULL || counted.place.file != NULL))
			(void)tn__report_add_counted(out, &counted);
	}
}

/* Of the processes that used the GPU: what a helper process without one lacks costs nothing. */
static void
take_sensors(const json_t *document, struct tn_report *report)
{
	size_t i;
	json_t *row;
	if (!tn__json_read_truth(document, "cuda_initialized"))
		return;
	json_array_foreach(json_object_get(document, "sensors"), i, row)
		tn__report_add_sensor(report, tn__json_borrow_text(row, "name"), tn__json_borrow_text(row, "state"),
		                      tn__json_borrow_text(row, "costs"), tn__json_borrow_text(row, "error"));
}

static void
take_assumptions(const json_t *array, struct tn_report *report)
{
	const json_t *item;
	size_t i;
	json_array_foreach(array, i, item) {
		const char *file = tn__json_borrow_text(item, "file"), *what = tn__json_borrow_text(item, "what"),
				   *value = tn__json_borrow_text(item, "value");
		const struct tn_assumption row = { .place = { (char *)(uintptr_t)file, tn__json_read_figure(item, "line"), NULL,
			                                          false },
			                               .what = (char *)(uintptr_t)what,
			                               .value = (char *)(uintptr_t)value,
			                               .reads = tn__json_read_figure(item, "reads"),
			                               .choice = tn__json_read_figure(item, "choice"),
			                               .bound = tn__json_read_figure(item, "bound"),
			                               .bytes = TN_NO_FIGURE,
			                               .endless = tn__json_read_truth(item, "endless"),
			                               .after_peak = tn__json_read_truth(item, "after_peak"),
			                               .chosen = tn__json_read_figure(item, "choice") > 0 };
		if (file != NULL && what != NULL && value != NULL)
			(void)tn__report_add_assumption(report, &row);
	}
}

void
tn__guest_take_sums(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *document = file->document;
	const json_t *skipped = json_object_get(document, "init_skipped");
	take_counted(json_object_get(document, "handled_out_of_memory"), NULL, &report->handled_ooms);
	take_counted(json_object_get(document, "computed_reads"), NULL, &report->computed_reads);
	take_assumptions(json_object_get(document, "assumptions"), report);
	report->connected |= tn__json_read_truth(document, "connected");
	take_counted(json_object_get(document, "usage"), "what", &report->usage);
	if (tn__json_read_figure(skipped, "bytes") > 0) {
		report->init_skipped_tensors += tn__json_read_figure(skipped, "tensors");
		report->init_skipped_bytes += tn__json_read_figure(skipped, "bytes");
	}
	if (report->hook_error == NULL)
		report->hook_error = tn__json_read_text(document, "hook_error");
	take_sensors(document, report);
}

/* PyTorch's number of the device of which this process's allocator held most. */
static int
device_of_record(const json_t *document)
{
	const json_t *devices = json_object_get(document, "devices"), *item;
	int64_t most = -1, device = 0;
	size_t i;
	json_array_foreach(devices, i, item) {
		if (tn__json_read_figure(item, "reserved_peak") <= most)
			continue;
		most = tn__json_read_figure(item, "reserved_peak");
		device = tn__json_read_figure(item, "index");
	}
	return (int)device;
}

/* The card that a process without a communicator works on: the one of which its allocator held most. Only where it sees all cards:
 * else its numbers are its own. */
static int64_t
card_of_work(const json_t *document, const struct tn_report *report)
{
	bool all = tn__json_read_figure(document, "cards") == report->gpus;
	return all && tn__guest_worst_device(document, "reserved_peak") > 0 ? device_of_record(document) : TN_NO_FIGURE;
}

void
tn__guest_take_rank(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *document = file->document;
	if (!file->ranked || report->rank_count == sizeof(report->ranks) / sizeof(report->ranks[0]))
		return;
	const char *path = tn__json_borrow_text(document, "peak_snapshot");
	static const char *const ends[] = { "exception", "out_of_memory" };
	bool out_of_memory = tn__json_read_truth(document, "out_of_memory_ended_process");
	const json_t *at = json_object_get(json_object_get(document, ends[out_of_memory]), "at");
	struct tn_rank *rank = &report->ranks[report->rank_count++];
	*rank = (struct tn_rank){ .rank = tn__json_read_figure(document, "rank"),
		                      .pid = file->pid,
		                      .steps = tn__json_read_figure(json_object_get(document, "steps"), "seen"),
		                      .allocated_peak = tn__guest_worst_device(document, "allocated_peak"),
		                      .reserved_peak = tn__guest_worst_device(document, "reserved_peak"),
		                      .out_of_memory = out_of_memory,
		                      .card = card_of_work(document, report),
		                      .failed_ns = file->failed_ns,
		                      .ended_at = place(at != NULL ? at : json_object_get(document, "left_at"), false) };
	tn__report_init_moment(&rank->at_peak);
	if (path != NULL)
		rank->record = (struct tn_record){ strdup(path), device_of_record(document) };
}

/* The process that reserved most stands for its program; steps are those of the one that made most. */
void
tn__guest_take_program(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *document = file->document, *steps = json_object_get(document, "steps");
	if (file->number == TN_NO_FIGURE || file->number >= (int64_t)report->programs.count)
		return;
	struct tn_program *program = &report->programs.items[file->number];
	program->out_of_memory |= (file->oom_ended || file->oom_open) && !file->followed;
	program->passes += positive(document, "passes");
	if (file->steps > program->steps) {
		program->steps = file->steps;
		free(program->unit);
		program->unit = tn__json_read_text(steps, "unit");
	}
	if (file->reserved_peak <= program->reserved_peak)
		return;
	program->reserved_peak = file->reserved_peak;
	program->allocated_peak = file->allocated_peak;
	const char *peak = tn__json_borrow_text(document, "peak_snapshot");
	const char *out = tn__json_borrow_text(document, "oom_snapshot");
	int device = device_of_record(document);
	free(program->record.path);
	free(program->oom_record.path);
	program->record = (struct tn_record){ peak != NULL ? strdup(peak) : NULL, device };
	program->oom_record = (struct tn_record){ out != NULL ? strdup(out) : NULL, device };
}

void
tn__guest_take_outlived(const struct tn_guest_file *guest, struct tn_report *report)
{
	const json_t *oom = json_object_get(guest->document, "out_of_memory"), *at = json_object_get(oom, "at");
	struct tn_counted item = { .place = { (char *)(uintptr_t)tn__json_borrow_text(at, "file"),
		                                  tn__json_read_figure(at, "line"),
		                                  (char *)(uintptr_t)tn__json_borrow_text(at, "function"), false },
		                       .name = (char *)(uintptr_t)(guest->oom_ended ? guest->program : NULL),
		                       .count = 1,
		                       .by_library = !guest->oom_ended && tn__json_read_truth(oom, "workspace"),
		                       .bytes = tn__json_read_figure(oom, "requested_bytes") };
	if (json_is_object(oom))
		(void)tn__report_add_counted(guest->oom_ended ? &report->ended_inside : &report->handled_ooms, &item);
}

static void
take_region_place(const json_t *regions, const char *name, struct tn_place **out)
{
	const json_t *at = json_object_get(regions, name);
	if (*out == NULL && at != NULL)
		*out = place(at, false);
}

void
tn__guest_take_region_places(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *regions = json_object_get(file->document, "regions");
	for (size_t i = 0; i < report->region_count; i++)
		take_region_place(regions, report->regions[i].name, &report->regions[i].at);
}

/* ---- cells of a notebook ---- */

static struct tn_region *
region_of(struct tn_report *report, const char *name)
{
	for (size_t i = 0; i < report->region_count; i++)
		if (strcmp(report->regions[i].name, name) == 0)
			return &report->regions[i];
	return NULL;
}

static void
take_cell(const json_t *row, size_t i, size_t count, struct tn_report *report)
{
	const char *name = tn__json_borrow_text(row, "name");
	struct tn_region *region = name != NULL ? region_of(report, name) : NULL;
	const char *failed = tn__json_borrow_text(row, "failed");
	if (region != NULL)
		region->left = tn__json_read_figure(row, "left_bytes");
	if (name == NULL || failed == NULL || i + 1 == count)
		return;
	struct tn_place *at = place(json_object_get(row, "at"), false);
	tn__report_add_finding(report, TN_FINDING_cell_failed, TN_NO_FIGURE, at, NULL,
	                       "%s failed, and the notebook went on: %s", name, failed);
	tn__report_free_place(at);
}

void
tn__guest_take_cells(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *row, *cells = json_object_get(file->document, "cells");
	size_t i;
	json_array_foreach(cells, i, row)
		take_cell(row, i, json_array_size(cells), report);
	json_array_foreach(json_object_get(file->document, "cell_holders"), i, row)
		tn__add_cell_holder(
			&(struct tn_cell_holder){ tn__json_borrow_text(row, "kind"), tn__json_borrow_text(row, "name"),
		                              tn__json_borrow_text(row, "cell"), tn__json_borrow_text(row, "during"),
		                              tn__json_read_figure(row, "number"), tn__json_read_figure(row, "bytes") },
			report);
}

void
tn__guest_take_trainings(const struct tn_guest_file *file, struct tn_report *report)
{
	const json_t *row, *left = json_object_get(json_object_get(file->document, "trainings"), "left");
	size_t i;
	json_array_foreach(left, i, row) {
		struct tn_place *at = place(json_object_get(row, "at"), false);
		tn__add_training_holder(
			&(struct tn_training_holder){ tn__json_borrow_text(row, "kind"), tn__json_borrow_text(row, "name"), at,
		                                  tn__json_read_figure(row, "of"), tn__json_read_figure(row, "training"),
		                                  tn__json_read_figure(row, "bytes") },
			report);
		tn__report_free_place(at);
	}
}

void
tn__guest_take_loaders(const struct tn_guest_file *file, struct tn_report *report)
{
	tn__host_read_loaders(json_object_get(file->document, "loaders"), &report->host);
}

void
tn__guest_take_exception(const struct tn_guest_file *file, struct tn_report *report)
{
	take_exception(json_object_get(file->document, "exception"), report);
}
