/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer and the reader of what a trial leaves.
 */
#include "trials/outcome.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/json_parts.h"
#include "verdict/run_reader.h"

json_t *
tn__outcome_of_run(const struct tn_report *report, int command, const char *changes_folder, const char *work,
                   const char *modules)
{
	json_t *object = tn__json_run(report);
	return json_pack("{s:i, s:o, s:o, s:o, s:o}", "command", command, "report", object != NULL ? object : json_null(),
	                 "changes", tn__change_documents(changes_folder), "work", tn__json_text(work), "modules",
	                 tn__json_text(modules));
}

tn_status
tn__outcome_write(json_t *of_run, const char *error, int exit_status, FILE *out)
{
	json_t *outcome = of_run != NULL ? of_run : json_object();
	bool good = outcome != NULL && json_object_set_new(outcome, "error", tn__json_text(error)) == 0 &&
	            json_object_set_new(outcome, "exit_status", json_integer(exit_status)) == 0 &&
	            json_dumpf(outcome, out, JSON_COMPACT) == 0 && fflush(out) == 0;
	json_decref(outcome);
	TN_RETURN_IF(!good, TN_IO, "the result of a trial could not be written: %s", strerror(errno));
	return TN_OK;
}

/* NULL where there is none, or no memory for one. */
static struct tn_report *
read_report(const json_t *outcome)
{
	const json_t *object = json_object_get(outcome, "report");
	struct tn_report *report = json_is_object(object) ? malloc(sizeof(*report)) : NULL;
	if (report == NULL)
		return NULL;
	tn__report_init(report);
	if (tn__run_json_read(object, report) != TN_OK) {
		tn__report_free(report);
		free(report);
		return NULL;
	}
	tn__facts_read(json_object_get(object, "facts"), &report->facts);
	return report;
}

static json_t *
find_kit(const json_t *documents)
{
	const json_t *document;
	size_t i;
	json_array_foreach(documents, i, document) {
		json_t *kit = json_object_get(document, "kit");
		if (json_is_object(kit))
			return json_incref(kit);
	}
	return NULL;
}

void
tn__outcome_read(const char *text, size_t size, struct tn_outcome *out)
{
	json_error_t error;
	json_t *outcome = text != NULL ? json_loadb(text, size, 0, &error) : NULL;
	const json_t *documents = json_object_get(outcome, "changes");
	*out = (struct tn_outcome){ .report = read_report(outcome), .kit = find_kit(documents), .document = outcome };
	(void)tn__change_results_of(documents, &out->changes);
	out->work = tn__json_read_text(outcome, "work");
	out->modules = tn__json_read_text(outcome, "modules");
	out->command = (int)json_integer_value(json_object_get(outcome, "command"));
	out->error = tn__json_read_text(outcome, "error");
	out->exit_status = (int)json_integer_value(json_object_get(outcome, "exit_status"));
}

void
tn__outcome_free(struct tn_outcome *outcome)
{
	if (outcome->report != NULL)
		tn__report_free(outcome->report);
	free(outcome->report);
	tn__change_results_free(&outcome->changes);
	free(outcome->work);
	free(outcome->modules);
	free(outcome->error);
	json_decref(outcome->kit);
	json_decref(outcome->document);
	*outcome = (struct tn_outcome){ 0 };
}
