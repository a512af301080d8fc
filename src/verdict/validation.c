/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of `tonnage validate`, as they grow.
 */
#include "verdict/validation.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

#define SCHEMA "tonnage.validate/1"

struct tn_validation_results {
	json_t *document;
	bool stand_in;
};

static json_t *
jobs_of(const struct tn_validation_results *results)
{
	return json_object_get(results->document, "jobs");
}

static json_t *
new_document(const struct tn_gpu_figures *gpu, bool stand_in)
{
	char capability[32];
	snprintf(capability, sizeof(capability), "%d.%d", gpu->compute_major, gpu->compute_minor);
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:I, s:I}, s:b, s:n, s:n, s:n, s:n, s:[], s:n}", "schema", SCHEMA,
	                 "tonnage", TONNAGE_VERSION, "gpu", "name", gpu->name, "compute_capability", capability,
	                 "total_bytes", (json_int_t)gpu->total_bytes, "context_bytes", (json_int_t)gpu->context_bytes,
	                 "stand_in", stand_in, "about", "driver", "catalogue_row", "cudnn_properties", "jobs", "summary");
}

struct tn_validation_results *
tn__validation_new(const struct tn_gpu_figures *gpu, bool stand_in)
{
	struct tn_validation_results *results = calloc(1, sizeof(*results));
	if (results == NULL)
		return NULL;
	*results = (struct tn_validation_results){ new_document(gpu, stand_in), stand_in };
	if (results->document != NULL)
		return results;
	free(results);
	return NULL;
}

void
tn__validation_free(struct tn_validation_results *results)
{
	if (results != NULL)
		json_decref(results->document);
	free(results);
}

/* The context is the catalogue's figure, and may be known better by now. */
static bool
is_same_card(const json_t *one, const json_t *other)
{
	static const char *const names[] = { "name", "compute_capability", "total_bytes" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!json_equal(json_object_get(one, names[i]), json_object_get(other, names[i])))
			return false;
	return true;
}

tn_status
tn__validation_resume(struct tn_validation_results *results, const char *path)
{
	json_error_t error;
	json_t *document = json_load_file(path, 0, &error);
	const char *schema = tn__json_borrow_text(document, "schema");
	bool ours = schema != NULL && strcmp(schema, SCHEMA) == 0 && json_is_array(json_object_get(document, "jobs"));
	bool same = ours && is_same_card(json_object_get(document, "gpu"), json_object_get(results->document, "gpu")) &&
	            tn__json_read_truth(document, "stand_in") == results->stand_in;
	if (same) {
		json_decref(results->document);
		results->document = document;
		return TN_OK;
	}
	json_decref(document);
	return ours ? tn__fail(TN_INVALID, "%s holds the results of another card: name another file", path)
	            : tn__fail(TN_INVALID, "%s exists and holds no results of tonnage validate: name another file", path);
}

void
tn__validation_set_row(struct tn_validation_results *results, const char *row)
{
	json_t *text = json_string(row);
	if (text != NULL)
		json_object_set_new(results->document, "catalogue_row", text);
}

bool
tn__validation_has(const struct tn_validation_results *results, const char *job)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(jobs_of(results), i, entry) {
		const char *its = tn__json_borrow_text(entry, "job");
		if (its != NULL && strcmp(its, job) == 0)
			return true;
	}
	return false;
}

size_t
tn__validation_count(const struct tn_validation_results *results)
{
	return json_array_size(jobs_of(results));
}

bool
tn__validation_all_agree(const struct tn_validation_results *results)
{
	const json_t *summary = json_object_get(results->document, "summary");
	return json_equal(json_object_get(summary, "agree"), json_object_get(summary, "jobs"));
}

/* All results of a file are of one PyTorch. */
static bool
is_of_another(const struct tn_validation_results *results, const json_t *about)
{
	const json_t *known = json_object_get(results->document, "about");
	return about != NULL && json_is_object(known) && !json_equal(about, known);
}

bool
tn__validation_learn(struct tn_validation_results *results, const json_t *measured)
{
	static const char *const names[] = { "driver",
		                                 "cudnn_properties" }; /* so that its heuristics can be asked elsewhere */
	json_t *about = json_object_get(measured, "about");
	if (is_of_another(results, about))
		return false;
	if (about != NULL)
		json_object_set(results->document, "about", about);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_is_string(json_object_get(measured, names[i])))
			json_object_set(results->document, names[i], json_object_get(measured, names[i]));
	return true;
}

tn_status
tn__validation_add(struct tn_validation_results *results, const char *job, const json_t *measured,
                   const char *measured_why, const json_t *copy, const char *copy_why)
{
	json_t *entry = tn__validate_compare(job, measured, measured_why, copy, copy_why);
	bool added = entry != NULL && json_array_append_new(jobs_of(results), entry) == 0;
	TN_RETURN_IF(!added, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

tn_status
tn__validation_save(struct tn_validation_results *results, const char *path)
{
	char part[PATH_MAX];
	json_object_set_new(results->document, "summary", tn__validate_summary(jobs_of(results)));
	if (path == NULL)
		return TN_OK;
	TN_RETURN_IF(snprintf(part, sizeof(part), "%s.part", path) >= PATH_MAX, TN_INVALID, "the name is too long: %s",
	             path);
	bool good = json_dump_file(results->document, part, JSON_INDENT(1)) == 0 && rename(part, path) == 0;
	TN_RETURN_IF(!good, TN_IO, "%s could not be written: %s", path, strerror(errno));
	return TN_OK;
}

const json_t *
tn__validation_last(const struct tn_validation_results *results)
{
	size_t count = tn__validation_count(results);
	return count > 0 ? json_array_get(jobs_of(results), count - 1) : NULL;
}

const json_t *
tn__validation_document(const struct tn_validation_results *results)
{
	return results->document;
}
