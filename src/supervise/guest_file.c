/* SPDX-License-Identifier: Apache-2.0
 *
 * One file that a guest hook left, and what has to be known of it to choose among them.
 */
#include "supervise/guest_file.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define LARGEST_FILE (16 << 20)

/* The largest figure of that name over the devices. */
int64_t
tn__guest_worst_device(const json_t *document, const char *name)
{
	const json_t *devices = json_object_get(document, "devices"), *device;
	int64_t most = TN_NO_FIGURE;
	size_t i;
	json_array_foreach(devices, i, device)
		if (tn__json_read_figure(device, name) > most)
			most = tn__json_read_figure(device, name);
	return most;
}

/* ---- one file ---- */

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
	const char *schema = tn__json_borrow_text(document, "schema");
	if (json_is_object(document) && schema != NULL && strcmp(schema, "tonnage.guest/1") == 0)
		return document;
	json_decref(document);
	return NULL;
}

static bool
failed_without_torch(const json_t *document)
{
	const json_t *exception = json_object_get(document, "exception");
	const char *type = tn__json_borrow_text(exception, "type"), *message = tn__json_borrow_text(exception, "message");
	return tn__json_borrow_text(document, "torch") == NULL && type != NULL && message != NULL &&
	       (strcmp(type, "ModuleNotFoundError") == 0 || strcmp(type, "ImportError") == 0) &&
	       strstr(message, "No module named 'torch'") != NULL;
}

bool
tn__guest_file_read(const char *path, struct tn_guest_file *out)
{
	json_t *document = read_document(path);
	if (document == NULL)
		return false;
	bool ended = tn__json_read_truth(document, "out_of_memory_ended_process");
	*out = (struct tn_guest_file){ .document = document,
		                           .pid = tn__json_read_figure(document, "pid"),
		                           .reserved_peak = tn__guest_worst_device(document, "reserved_peak"),
		                           .allocated_peak = tn__guest_worst_device(document, "allocated_peak"),
		                           .started = tn__json_read_number(document, "started"),
		                           .written = tn__json_read_number(document, "written"),
		                           .steps = tn__json_read_figure(json_object_get(document, "steps"), "seen"),
		                           .program = json_string_value(json_array_get(json_object_get(document, "argv"), 0)),
		                           .number = tn__json_read_figure(document, "program") > 0
		                                         ? tn__json_read_figure(document, "program") - 1
		                                         : TN_NO_FIGURE,
		                           .torch = tn__json_borrow_text(document, "torch") != NULL,
		                           .cuda = tn__json_borrow_text(document, "cuda") != NULL,
		                           .ranked = tn__json_read_figure(document, "rank") != TN_NO_FIGURE,
		                           .lacks_torch = failed_without_torch(document),
		                           .failed_ns = tn__json_read_figure(document, "failed_at_ns"),
		                           .failed = json_is_object(json_object_get(document, "exception")),
		                           .recorded = tn__json_borrow_text(document, "hook_error") == NULL,
		                           .oom_ended = ended,
		                           .oom_open = json_is_object(json_object_get(document, "out_of_memory")) && !ended };
	return true;
}

void
tn__guest_file_free(struct tn_guest_file *file)
{
	json_decref(file->document);
}

/* ---- records of the allocator ---- */

int64_t
tn__guest_reserved_on(const struct tn_guest_file *file, int64_t device)
{
	const json_t *devices = json_object_get(file->document, "devices"), *item;
	size_t i;
	json_array_foreach(devices, i, item)
		if (tn__json_read_figure(item, "index") == device)
			return tn__json_read_figure(item, "reserved_peak");
	return TN_NO_FIGURE;
}

int64_t
tn__guest_index_of(const struct tn_guest_file *file, int device)
{
	const json_t *devices = json_object_get(file->document, "devices");
	return json_array_size(devices) == 1 ? tn__json_read_figure(json_array_get(devices, 0), "index") : device;
}

static void
take_record(const json_t *document, const char *name, int64_t device, struct tn_guest_record *out)
{
	const char *path = tn__json_borrow_text(document, name);
	if (path != NULL && device >= 0 && device < TN_MAX_DEVICES)
		*out = (struct tn_guest_record){ strdup(path), (int)device };
}

void
tn__guest_take_peak_record(const struct tn_guest_file *file, int64_t device, struct tn_guest_record *out)
{
	take_record(file->document, "peak_snapshot", device, out);
}

void
tn__guest_take_oom_record(const struct tn_guest_file *file, struct tn_guest_record *out)
{
	take_record(file->document, "oom_snapshot",
	            tn__json_read_figure(json_object_get(file->document, "out_of_memory"), "device"), out);
}
