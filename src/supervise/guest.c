/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads guest/<pid>.json (doc/design/0002-run-protocol.md). The files come from the program's processes, so
 * nothing in them is trusted: a malformed file, or a field of another type, counts as unknown.
 */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervise/internal.h"

#define LARGEST_FILE (16 << 20)

struct guest {
	json_t *document;
	int64_t pid, reserved_peak;
	double started, written; /* by the clock on the wall; 0: unknown */
	int64_t steps;
	const char *program; /* the document's; NULL: unknown */
	bool oom_ended, oom_open;
	bool followed; /* one of these, and another process took the work up after it and ended without one */
};

struct guests {
	struct guest items[TN_LEDGER_PROCESSES];
	size_t count;
};

/* ---- fields ---- */

static int64_t
whole(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_integer(value) && json_integer_value(value) >= 0 ? (int64_t)json_integer_value(value) : TN_NO_FIGURE;
}

/* A number of any kind; 0: unknown. */
static double
number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static const char *
text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static bool
truth(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

static char *
copied(const json_t *object, const char *name)
{
	const char *value = text(object, name);
	return value != NULL ? strdup(value) : NULL;
}

static struct tn_place *
place(const json_t *object, bool backward)
{
	const char *file = text(object, "file");
	return file != NULL ? tn__report_new_place(file, whole(object, "line"), text(object, "function"), backward) : NULL;
}

/* The largest figure of that name over the devices. */
static int64_t
worst_device(const json_t *document, const char *name)
{
	const json_t *devices = json_object_get(document, "devices"), *device;
	int64_t most = TN_NO_FIGURE;
	size_t i;
	json_array_foreach(devices, i, device)
		if (whole(device, name) > most)
			most = whole(device, name);
	return most;
}

/* ---- files ---- */

static json_t *
read_document(const char *path)
{
	json_error_t error;
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return NULL;
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	rewind(file);
	json_t *document = size > 0 && size <= LARGEST_FILE ? json_loadf(file, JSON_REJECT_DUPLICATES, &error) : NULL;
	fclose(file);
	const char *schema = text(document, "schema");
	if (json_is_object(document) && schema != NULL && strcmp(schema, "tonnage.guest/1") == 0)
		return document;
	json_decref(document);
	return NULL;
}

static bool
ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), wanted = strlen(end);
	return length >= wanted && strcmp(name + length - wanted, end) == 0;
}

/* A process that started after another one's out-of-memory and used the GPU without one. Where the run failed it has to be
 * the same program again, or to have completed a step: what a script starts next does not make good what failed. */
static bool
went_on_after(const struct guest *later, const struct guest *ended, bool well)
{
	bool same = later->program != NULL && ended->program != NULL && strcmp(later->program, ended->program) == 0;
	return ended->written > 0 && later->started >= ended->written && later->reserved_peak > 0 && !later->oom_ended &&
	       (well || same || later->steps > 0);
}

static void
find_followed(struct guests *guests, bool well)
{
	for (size_t i = 0; i < guests->count; i++) {
		struct guest *item = &guests->items[i];
		for (size_t j = 0; j < guests->count && (item->oom_ended || item->oom_open); j++)
			item->followed |= went_on_after(&guests->items[j], item, well);
	}
}

static void
read_guests(const struct tn_folder *folder, struct guests *out)
{
	char path[PATH_MAX], file[PATH_MAX];
	const struct dirent *item;
	DIR *listing = opendir(tn__folder_path(folder, "guest", path));
	out->count = 0;
	if (listing == NULL)
		return;
	while ((item = readdir(listing)) != NULL && out->count < TN_LEDGER_PROCESSES) {
		if (!ends_with(item->d_name, ".json") || snprintf(file, sizeof(file), "%s/%s", path, item->d_name) >= PATH_MAX)
			continue;
		json_t *document = read_document(file);
		if (document != NULL)
			out->items[out->count++] =
				(struct guest){ .document = document,
				                .pid = whole(document, "pid"),
				                .reserved_peak = worst_device(document, "reserved_peak"),
				                .started = number(document, "started"),
				                .written = number(document, "written"),
				                .steps = whole(json_object_get(document, "steps"), "seen"),
				                .program = json_string_value(json_array_get(json_object_get(document, "argv"), 0)),
				                .oom_ended = truth(document, "out_of_memory_ended_process"),
				                .oom_open = json_is_object(json_object_get(document, "out_of_memory")) &&
				                            !truth(document, "out_of_memory_ended_process") };
	}
	closedir(listing);
}

static void
free_guests(struct guests *guests)
{
	for (size_t i = 0; i < guests->count; i++)
		json_decref(guests->items[i].document);
}

/* ---- PyTorch that is missing, or cannot see a GPU ---- */

static bool
failed_without_torch(const json_t *document)
{
	const json_t *exception = json_object_get(document, "exception");
	const char *type = text(exception, "type"), *message = text(exception, "message");
	return text(document, "torch") == NULL && type != NULL && message != NULL &&
	       (strcmp(type, "ModuleNotFoundError") == 0 || strcmp(type, "ImportError") == 0) &&
	       strstr(message, "No module named 'torch'") != NULL;
}

static enum tn_misuse
misuse_of(const struct guests *guests)
{
	enum tn_misuse found = TN_MISUSE_NONE;
	for (size_t i = 0; i < guests->count; i++) {
		const json_t *document = guests->items[i].document;
		if (text(document, "torch") != NULL && text(document, "cuda") != NULL)
			return TN_MISUSE_NONE;
		if (text(document, "torch") != NULL)
			found = TN_MISUSE_CPU_TORCH;
		else if (found == TN_MISUSE_NONE && failed_without_torch(document))
			found = TN_MISUSE_NO_TORCH;
	}
	return found;
}

enum tn_misuse
tn__guest_misuse(const struct tn_folder *folder, bool *settled)
{
	struct guests *guests = calloc(1, sizeof(*guests));
	if (guests == NULL)
		return TN_MISUSE_NONE;
	read_guests(folder, guests);
	enum tn_misuse found = misuse_of(guests);
	for (size_t i = 0; i < guests->count; i++)
		if (text(guests->items[i].document, "torch") != NULL && text(guests->items[i].document, "cuda") != NULL)
			*settled = true;
	free_guests(guests);
	free(guests);
	return found;
}

/* ---- collecting ---- */

/* What a run's ending is about. */
enum about { ABOUT_MEMORY, ABOUT_A_FAILURE, ABOUT_NOTHING };

/* How well a process stands for the run: one that an out-of-memory ended says why a run does not fit, best one that
 * nothing followed, but nothing about one that fits; one with an exception says why it failed. */
static int
rank_of(const struct guest *guest, enum about about)
{
	if (about == ABOUT_MEMORY)
		return (guest->oom_ended ? 2 : guest->oom_open ? 1 : 0) * 2 - guest->followed;
	if (about == ABOUT_A_FAILURE && json_is_object(json_object_get(guest->document, "exception")))
		return 2;
	return guest->oom_ended ? 0 : 1;
}

/* The process that the report is about; of equals the one with the largest reserved peak. */
static const struct guest *
worst_of(const struct guests *guests, enum about about)
{
	const struct guest *worst = NULL;
	for (size_t i = 0; i < guests->count; i++) {
		const struct guest *item = &guests->items[i];
		int better = worst != NULL ? rank_of(item, about) - rank_of(worst, about) : 1;
		if (better > 0 || (better == 0 && item->reserved_peak > worst->reserved_peak))
			worst = item;
	}
	return worst;
}

static int64_t
steps_of(const struct guest *guest)
{
	int64_t seen = whole(json_object_get(guest->document, "steps"), "seen");
	return seen > 0 ? seen : 0;
}

/* The process whose steps count: the one that the report is about, or, where that made none and did not end by running
 * out of memory (a loader's worker that holds more than the trainer), the one that made most. */
static const struct guest *
stepper_of(const struct guests *guests, const struct guest *worst)
{
	const struct guest *most = worst;
	if (worst == NULL || worst->oom_ended || steps_of(worst) > 0)
		return worst;
	for (size_t i = 0; i < guests->count; i++)
		if (steps_of(&guests->items[i]) > steps_of(most))
			most = &guests->items[i];
	return most;
}

static void
take_oom(const json_t *oom, struct tn_report_oom *out)
{
	const json_t *stack = json_object_get(oom, "stack"), *frame;
	size_t i;
	if (!json_is_object(oom))
		return;
	out->requested_bytes = whole(oom, "requested_bytes");
	out->free_bytes = whole(oom, "free_bytes");
	out->allocated_bytes = whole(oom, "allocated_bytes");
	out->reserved_bytes = whole(oom, "reserved_bytes");
	out->largest_free_block_bytes = whole(oom, "largest_free_block_bytes");
	out->step = whole(oom, "step");
	out->phase = copied(oom, "phase");
	out->message = copied(oom, "message");
	out->computed = truth(oom, "computed");
	out->workspace = truth(oom, "workspace");
	out->vocabulary = whole(oom, "vocabulary");
	out->fraction = number(oom, "fraction");
	out->at = place(json_object_get(oom, "at"), truth(oom, "backward"));
	json_array_foreach(stack, i, frame) {
		struct tn_place item = { (char *)(uintptr_t)text(frame, "file"), whole(frame, "line"),
			                     (char *)(uintptr_t)text(frame, "function"), false };
		if (item.file != NULL)
			(void)tn__report_add_place(&out->stack, &item);
	}
}

static void
take_growth(const json_t *growth, struct tn_report_growth *out)
{
	if (!json_is_object(growth) || whole(growth, "bytes") <= 0)
		return;
	out->seen = true;
	out->unit = copied(growth, "unit");
	out->bytes = whole(growth, "bytes");
	out->first = whole(growth, "first");
	out->last = whole(growth, "last");
	out->peak = whole(growth, "peak") != TN_NO_FIGURE ? whole(growth, "peak") : whole(growth, "allocated");
	out->of = whole(growth, "of");
	out->at = place(json_object_get(growth, "at"), truth(json_object_get(growth, "at"), "backward"));
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

static int
stop_of(const json_t *steps)
{
	const char *stopped = text(steps, "stopped");
	return stopped == NULL ? 0 : strcmp(stopped, "settled") == 0 ? 1 : strcmp(stopped, "limit") == 0 ? 2 : 0;
}

static void
take_exception(const json_t *exception, struct tn_report *report)
{
	const char *type = text(exception, "type"), *message = text(exception, "message");
	if (type == NULL || report->exception != NULL)
		return;
	if (asprintf(&report->exception, "%s%s%s", type, message != NULL && message[0] != '\0' ? ": " : "",
	             message != NULL ? message : "") < 0)
		report->exception = NULL;
	report->exception_at = place(json_object_get(exception, "at"), false);
}

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
		const char *type = text(row, "type");
		int64_t bytes = whole(row, "bytes"), trained = whole(row, "trained_bytes");
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
	out->trains = truth(facts, "trains");
	out->autocast = json_array_size(json_object_get(facts, "autocast")) > 0;
	out->checkpoints = truth(facts, "checkpointing");
	out->checkpoints_wait = truth(facts, "checkpointing_waits");
	out->trained_in_eval = truth(facts, "trained_in_eval");
	out->never_updated = truth(facts, "never_updated");
	out->loader = truth(facts, "loader");
	out->expandable_segments = truth(facts, "expandable_segments");
	out->copy_called = truth(facts, "copy_called");
	out->cudnn_benchmark = truth(facts, "cudnn_benchmark");
	out->workspace_config = truth(facts, "workspace_config");
	out->small_state = json_array_size(optimizers) > 0 && !has_full_adam(optimizers);
	take_parameters(json_object_get(facts, "parameters"), out);
	take_kernels(json_object_get(facts, "architectures"), out);
}

static void
take_steps(const json_t *steps, struct tn_report *report)
{
	report->steps_seen = whole(steps, "seen");
	report->steps_unit = copied(steps, "unit");
	report->input_shapes = whole(steps, "input_shapes");
	report->batch_size = whole(steps, "batch_size");
	take_not_seen(json_object_get(steps, "not_seen"), report);
}

static void
take_worst(const json_t *document, struct tn_report *report)
{
	report->torch = copied(document, "torch");
	report->cuda = copied(document, "cuda");
	report->cudnn = whole(document, "cudnn");
	report->snapshot_made = copied(document, "snapshot");
	report->rehearsal_broken = copied(document, "rehearsal_broken");
	take_growth(json_object_get(document, "growth"), &report->growth);
	report->kept_in = copied(json_object_get(document, "kept"), "name");
	report->kept_at = place(json_object_get(json_object_get(document, "kept"), "at"), false);
	report->allocated_peak = worst_device(document, "allocated_peak");
	report->reserved_peak = worst_device(document, "reserved_peak");
	report->requested_peak = worst_device(document, "requested_peak");
	take_oom(json_object_get(document, "out_of_memory"), &report->oom);
	take_facts(json_object_get(document, "facts"), &report->facts);
}

static void
take_counted(const json_t *array, const char *name_field, struct tn_counted_list *out)
{
	const json_t *item;
	size_t i;
	json_array_foreach(array, i, item) {
		const char *name = name_field != NULL ? text(item, name_field) : NULL;
		struct tn_counted counted = { .place = { (char *)(uintptr_t)text(item, "file"), whole(item, "line"),
			                                     (char *)(uintptr_t)text(item, "function"), false },
			                          .name = (char *)(uintptr_t)name,
			                          .count = whole(item, "count"),
			                          .by_library = truth(item, "workspace"),
			                          .bytes = whole(item, "requested_bytes") };
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
	if (!truth(document, "cuda_initialized"))
		return;
	json_array_foreach(json_object_get(document, "sensors"), i, row)
		tn__report_add_sensor(report, text(row, "name"), text(row, "state"), text(row, "costs"), text(row, "error"));
}

static void
take_assumptions(const json_t *array, struct tn_report *report)
{
	const json_t *item;
	size_t i;
	json_array_foreach(array, i, item) {
		const char *file = text(item, "file"), *what = text(item, "what"), *value = text(item, "value");
		const struct tn_assumption row = { .place = { (char *)(uintptr_t)file, whole(item, "line"), NULL, false },
			                               .what = (char *)(uintptr_t)what,
			                               .value = (char *)(uintptr_t)value,
			                               .reads = whole(item, "reads"),
			                               .choice = whole(item, "choice"),
			                               .bound = whole(item, "bound"),
			                               .bytes = TN_NO_FIGURE,
			                               .endless = truth(item, "endless"),
			                               .after_peak = truth(item, "after_peak"),
			                               .chosen = whole(item, "choice") > 0 };
		if (file != NULL && what != NULL && value != NULL)
			(void)tn__report_add_assumption(report, &row);
	}
}

/* What is added up over all processes. */
static void
take_sums(const json_t *document, struct tn_report *report)
{
	const json_t *skipped = json_object_get(document, "init_skipped");
	take_counted(json_object_get(document, "handled_out_of_memory"), NULL, &report->handled_ooms);
	take_counted(json_object_get(document, "computed_reads"), NULL, &report->computed_reads);
	take_assumptions(json_object_get(document, "assumptions"), report);
	report->connected |= truth(document, "connected");
	take_counted(json_object_get(document, "habits"), "what", &report->habits);
	if (whole(skipped, "bytes") > 0) {
		report->init_skipped_tensors += whole(skipped, "tensors");
		report->init_skipped_bytes += whole(skipped, "bytes");
	}
	if (report->hook_error == NULL)
		report->hook_error = copied(document, "hook_error");
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
		if (whole(item, "reserved_peak") <= most)
			continue;
		most = whole(item, "reserved_peak");
		device = whole(item, "index");
	}
	return (int)device;
}

static bool
row_is(const struct tn_ledger *ledger, int64_t pid)
{
	bool found = false;
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++)
		found |= ledger->ranks[i].pid == pid;
	return found;
}

static void
take_rank(const json_t *document, const struct tn_ledger *ledger, struct tn_report *report)
{
	bool ranked = whole(document, "rank") != TN_NO_FIGURE || row_is(ledger, whole(document, "pid"));
	if (!ranked || report->rank_count == sizeof(report->ranks) / sizeof(report->ranks[0]))
		return;
	const char *path = text(document, "peak_snapshot");
	static const char *const ends[] = { "exception", "out_of_memory" };
	bool out_of_memory = truth(document, "out_of_memory_ended_process");
	const json_t *at = json_object_get(json_object_get(document, ends[out_of_memory]), "at");
	struct tn_rank *rank = &report->ranks[report->rank_count++];
	*rank =
		(struct tn_rank){ .rank = whole(document, "rank"),
		                  .pid = whole(document, "pid"),
		                  .steps = whole(json_object_get(document, "steps"), "seen"),
		                  .allocated_peak = worst_device(document, "allocated_peak"),
		                  .reserved_peak = worst_device(document, "reserved_peak"),
		                  .out_of_memory = out_of_memory,
		                  .card = TN_NO_FIGURE,
		                  .ended_at = place(at != NULL ? at : json_object_get(document, "left_at"), false) };
	tn__report_init_moment(&rank->at_peak);
	if (path != NULL)
		rank->record = (struct tn_record){ strdup(path), device_of_record(document) };
}

/* An out-of-memory that a program outlived: caught inside of the process it counts as handled; one that ended a process
 * of the run is told by the process's program. */
static void
take_outlived(const struct guest *guest, struct tn_report *report)
{
	const json_t *oom = json_object_get(guest->document, "out_of_memory"), *at = json_object_get(oom, "at");
	const json_t *program = json_array_get(json_object_get(guest->document, "argv"), 0);
	struct tn_counted item = { .place = { (char *)(uintptr_t)text(at, "file"), whole(at, "line"),
		                                  (char *)(uintptr_t)text(at, "function"), false },
		                       .name = (char *)(uintptr_t)(guest->oom_ended ? json_string_value(program) : NULL),
		                       .count = 1,
		                       .by_library = !guest->oom_ended && truth(oom, "workspace"),
		                       .bytes = whole(oom, "requested_bytes") };
	if (json_is_object(oom))
		(void)tn__report_add_counted(guest->oom_ended ? &report->ended_inside : &report->handled_ooms, &item);
}

/* ---- records of the allocator ---- */

static int64_t
reserved_on(const json_t *document, int64_t device)
{
	const json_t *devices = json_object_get(document, "devices"), *item;
	size_t i;
	json_array_foreach(devices, i, item)
		if (whole(item, "index") == device)
			return whole(item, "reserved_peak");
	return TN_NO_FIGURE;
}

/* PyTorch's number of a card of the ledger's: a process that sees one card calls it 0, whichever that is. */
static int64_t
index_of(const json_t *document, int device)
{
	const json_t *devices = json_object_get(document, "devices");
	return json_array_size(devices) == 1 ? whole(json_array_get(devices, 0), "index") : device;
}

static void
take_record(const json_t *document, const char *name, int64_t device, struct tn_guest_record *out)
{
	const char *path = text(document, name);
	if (path != NULL && device >= 0 && device < TN_MAX_DEVICES)
		*out = (struct tn_guest_record){ strdup(path), (int)device };
}

/* The record of the process that held most of the peak's device. */
static void
take_records(const struct guests *guests, const struct guest *worst, int peak_device, struct tn_guest_news *news)
{
	const struct guest *most = NULL;
	int64_t largest = 0;
	for (size_t i = 0; i < guests->count; i++) {
		const json_t *document = guests->items[i].document;
		int64_t reserved = reserved_on(document, index_of(document, peak_device));
		news->sharers += reserved > 0;
		if (reserved > largest) {
			largest = reserved;
			most = &guests->items[i];
		}
	}
	if (most != NULL)
		take_record(most->document, "peak_snapshot", index_of(most->document, peak_device), &news->peak);
	if (worst != NULL) {
		int64_t device = whole(json_object_get(worst->document, "out_of_memory"), "device");
		take_record(worst->document, "oom_snapshot", device, &news->oom);
	}
}

static void
take_region_place(const json_t *regions, const char *name, struct tn_place **out)
{
	const json_t *at = json_object_get(regions, name);
	if (*out == NULL && at != NULL)
		*out = place(at, false);
}

static void
take_region_places(const struct guests *guests, struct tn_report *report)
{
	for (size_t r = 0; r < report->region_count; r++)
		for (size_t i = 0; i < guests->count; i++)
			take_region_place(json_object_get(guests->items[i].document, "regions"), report->regions[r].name,
			                  &report->regions[r].at);
}

void
tn__guest_news_free(struct tn_guest_news *news)
{
	free(news->peak.path);
	free(news->oom.path);
}

void
tn__guest_collect(const struct tn_folder *folder, const struct tn_ledger *ledger, pid_t refused_pid, int peak_device,
                  struct tn_report *report, struct tn_ending *ending, struct tn_guest_news *news)
{
	struct guests *guests = calloc(1, sizeof(*guests));
	*news = (struct tn_guest_news){ 0 };
	if (guests == NULL)
		return;
	read_guests(folder, guests);
	if (report->misuse == TN_MISUSE_NONE)
		report->misuse = misuse_of(guests);
	bool ended_well = ending->stop_reason != 0 || (ending->ended && ending->wait_status == 0);
	find_followed(guests, ended_well);
	for (size_t i = 0; i < guests->count; i++) {
		ending->guest_oom_last |= guests->items[i].oom_ended && !guests->items[i].followed;
		ending->guest_oom_open |= guests->items[i].oom_open && !guests->items[i].followed;
	}
	bool out = ending->guest_oom_last || (!ended_well && ending->guest_oom_open);
	const struct guest *worst = worst_of(guests, out ? ABOUT_MEMORY : ended_well ? ABOUT_NOTHING : ABOUT_A_FAILURE);
	if (worst != NULL) {
		const json_t *steps = json_object_get(stepper_of(guests, worst)->document, "steps");
		take_worst(worst->document, report);
		take_steps(steps, report);
		ending->guest_stop = stop_of(steps);
	}
	take_records(guests, worst, peak_device, news);
	take_region_places(guests, report);
	for (size_t i = 0; i < guests->count; i++) {
		const struct guest *item = &guests->items[i];
		news->refused_guest |= item->pid == refused_pid && text(item->document, "hook_error") == NULL;
		if (item == worst || worst == NULL || worst->document == NULL)
			take_exception(json_object_get(item->document, "exception"), report);
		if (ended_well || item->followed)
			take_outlived(item, report);
		take_sums(item->document, report);
		take_rank(item->document, ledger, report);
	}
	news->count = (int)guests->count;
	free_guests(guests);
	free(guests);
}
