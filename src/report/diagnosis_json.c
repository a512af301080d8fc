/* SPDX-License-Identifier: Apache-2.0
 *
 * What the doctor found, as JSON.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "report/diagnosis.h"
#include "report/json_parts.h"

static json_t *
text_or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? tn__json_text(text) : json_null();
}

static json_t *
bytes_or_null(bool known, uint64_t bytes)
{
	return known ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *
number_or_null(int64_t number, int64_t unknown)
{
	return number != unknown ? json_integer((json_int_t)number) : json_null();
}

static json_t *
version_or_null(int major, int minor)
{
	char text[24];
	snprintf(text, sizeof(text), "%d.%d", major, minor);
	return major > 0 ? json_string(text) : json_null();
}

/* Findings from the most serious on, or the facts. */
static json_t *
facts_of(const struct tn_diagnosis *diagnosis, enum tn_level highest, enum tn_level lowest)
{
	json_t *array = json_array();
	for (int level = (int)highest; level >= (int)lowest; level--)
		for (size_t i = 0; i < diagnosis->count; i++) {
			const struct tn_fact *fact = &diagnosis->facts[i];
			if ((int)fact->level != level)
				continue;
			json_t *row = json_pack("{s:s, s:s, s:o, s:o}", "id", fact->id, "part", tn__part_name(fact->part), "card",
			                        number_or_null(fact->card, -1), "what", tn__json_text(fact->what));
			if (level != TN_LEVEL_FINE) {
				json_object_set_new(row, "severity", json_string(tn__level_name(fact->level)));
				json_object_set_new(row, "meaning", text_or_null(fact->meaning));
				json_object_set_new(row, "do", text_or_null(fact->remedy));
			}
			json_array_append_new(array, row);
		}
	return array;
}

static json_t *
cards_of(const struct tn_diagnosis *diagnosis)
{
	json_t *array = json_array();
	for (size_t i = 0; i < diagnosis->card_count; i++) {
		const struct tn_doctor_card *card = &diagnosis->cards[i];
		json_array_append_new(
			array, json_pack("{s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "index", (int)card->index, "answers",
		                     !card->lost, "name", text_or_null(card->name), "uuid", text_or_null(card->uuid), "bus",
		                     text_or_null(card->bus), "compute_capability", version_or_null(card->major, card->minor),
		                     "total_bytes", bytes_or_null(card->memory_known, card->total), "free_bytes",
		                     bytes_or_null(card->memory_known, card->available), "mig", card->mig));
	}
	return array;
}

static json_t *
processes_of(const struct tn_diagnosis *diagnosis)
{
	json_t *array = json_array();
	for (size_t i = 0; i < diagnosis->process_count; i++) {
		const struct tn_doctor_process *process = &diagnosis->processes[i];
		json_array_append_new(array, json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b}", "card",
		                                       process->card, "pid", (int)process->pid, "memory_bytes",
		                                       bytes_or_null(process->bytes_known, process->bytes), "user",
		                                       text_or_null(process->user), "command", text_or_null(process->command),
		                                       "container", text_or_null(process->container), "started_at",
		                                       number_or_null(process->since, 0), "visible", process->visible, "own",
		                                       process->own, "orphan", process->orphan));
	}
	return array;
}

static json_t *
python_of(const struct tn_diagnosis *diagnosis, const char *python)
{
	const struct tn_doctor_torch *torch = &diagnosis->torch;
	json_t *architectures = json_array();
	if (python == NULL) {
		json_decref(architectures);
		return json_null();
	}
	for (size_t i = 0; i < torch->architecture_count; i++)
		json_array_append_new(
			architectures,
			json_pack("{s:o, s:b, s:b}", "compute_capability",
		              version_or_null(torch->architectures[i].number / 10, torch->architectures[i].number % 10), "ptx",
		              torch->architectures[i].ptx, "whole", torch->architectures[i].whole));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "path", tn__json_text(python), "version",
	                 text_or_null(torch->python), "packages", text_or_null(torch->packages), "torch",
	                 text_or_null(torch->version), "cuda", text_or_null(torch->cuda), "architectures", architectures);
}

static json_t *
document_of(const struct tn_diagnosis *diagnosis, const char *python)
{
	int cuda = diagnosis->driver_cuda;
	return json_pack(
		"{s:s, s:{s:i, s:i, s:i}, s:o, s:o, s:{s:o, s:o}, s:o, s:o, s:o, s:o, s:{s:b, s:b}}", "schema",
		"tonnage.doctor/1", "summary", "errors", (int)tn__diagnosis_count(diagnosis, TN_LEVEL_ERROR), "warnings",
		(int)tn__diagnosis_count(diagnosis, TN_LEVEL_WARNING), "hints",
		(int)tn__diagnosis_count(diagnosis, TN_LEVEL_HINT), "findings",
		facts_of(diagnosis, TN_LEVEL_ERROR, TN_LEVEL_HINT), "facts", facts_of(diagnosis, TN_LEVEL_FINE, TN_LEVEL_FINE),
		"driver", "version", text_or_null(diagnosis->driver), "cuda", version_or_null(cuda / 1000, cuda % 1000 / 10),
		"cards", cards_of(diagnosis), "processes", processes_of(diagnosis), "toolkit", text_or_null(diagnosis->toolkit),
		"python", python_of(diagnosis, python), "host", "container", diagnosis->container, "wsl", diagnosis->wsl);
}

tn_status
tn__diagnosis_json(const struct tn_shown_diagnosis *shown, FILE *out)
{
	json_t *object = document_of(shown->diagnosis, shown->python);
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory while writing JSON");
	int failed = tn__json_write(object, out, JSON_INDENT(2));
	json_decref(object);
	TN_RETURN_IF(failed != 0 || fputc('\n', out) == EOF || fflush(out) != 0, TN_IO, "writing failed: %s",
	             strerror(errno));
	return TN_OK;
}
