/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of tonnage.changes/1.
 */
#include "change/change_results.h"

#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/figure.h"
#include "base/json.h"

#define LARGEST_FILE (16 << 20)

/* ---- files ---- */

static json_t *
read_document(const char *path)
{
	struct stat about;
	json_error_t error;
	if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > LARGEST_FILE)
		return NULL;
	json_t *document = json_load_file(path, 0, &error);
	const char *schema = tn__json_borrow_text(document, "schema");
	if (schema != NULL && strcmp(schema, "tonnage.changes/1") == 0)
		return document;
	json_decref(document);
	return NULL;
}

json_t *
tn__change_documents(const char *folder)
{
	char file[PATH_MAX];
	const struct dirent *item;
	json_t *all = json_array();
	DIR *listing = opendir(folder);
	while (listing != NULL && (item = readdir(listing)) != NULL) {
		size_t length = strlen(item->d_name);
		if (length < 6 || strcmp(item->d_name + length - 5, ".json") != 0 ||
		    snprintf(file, sizeof(file), "%s/%s", folder, item->d_name) >= PATH_MAX)
			continue;
		json_t *document = read_document(file);
		if (document != NULL)
			json_array_append_new(all, document);
	}
	if (listing != NULL)
		closedir(listing);
	return all;
}

/* ---- documents ---- */

/* Room for the items of an array; *status says when there is none. */
static void *
room_for(const json_t *array, size_t width, tn_status *status)
{
	size_t count = json_array_size(array);
	void *items = count > 0 ? calloc(count, width) : NULL;
	if (count > 0 && items == NULL)
		*status = tn__fail(TN_NO_MEMORY, "out of host memory");
	return items;
}

static struct tn_text_list
texts(const json_t *array, tn_status *status)
{
	struct tn_text_list list = { .items = room_for(array, sizeof(*list.items), status) };
	for (size_t i = 0; list.items != NULL && i < json_array_size(array); i++) {
		const char *text = json_string_value(json_array_get(array, i));
		list.items[list.count++] = text != NULL ? strdup(text) : NULL;
	}
	return list;
}

static struct tn_number_list
numbers(const json_t *array, tn_status *status)
{
	struct tn_number_list list = { .items = room_for(array, sizeof(*list.items), status) };
	for (size_t i = 0; list.items != NULL && i < json_array_size(array); i++)
		list.items[list.count++] = json_integer_value(json_array_get(array, i));
	return list;
}

static enum tn_guarantee
promise(const json_t *object)
{
	return tn__guarantee_of(tn__json_borrow_text(object, "results"));
}

static tn_status
read_survey(const json_t *object, struct tn_survey *survey)
{
	const json_t *facts = json_object_get(object, "facts"), *possible = json_object_get(object, "possible");
	tn_status status = TN_OK;
	survey->known = true;
	survey->backward = tn__json_read_figure(facts, "backward");
	survey->news_step = tn__json_read_figure(json_object_get(facts, "last_news"), "step");
	survey->news_epoch = tn__json_read_figure(json_object_get(facts, "last_news"), "epoch");
	survey->blocks = tn__json_read_figure(facts, "blocks");
	survey->batches = numbers(json_object_get(facts, "batches"), &status);
	survey->batch_options = numbers(json_object_get(facts, "batch_options"), &status);
	survey->command_line = texts(json_object_get(facts, "command_line"), &status);
	survey->evaluation_batches = numbers(json_object_get(facts, "evaluation_batches"), &status);
	survey->possible = room_for(possible, sizeof(*survey->possible), &status);
	for (size_t i = 0; survey->possible != NULL && i < json_array_size(possible); i++) {
		const json_t *row = json_array_get(possible, i);
		char *id = tn__json_read_text(row, "id");
		if (id == NULL)
			continue;
		survey->possible[survey->possible_count++] = (struct tn_possible_change){
			.id = id,
			.title = tn__json_read_text(row, "title"),
			.results = promise(row),
			.values = texts(json_object_get(row, "values"), &status),
			.pieces = numbers(json_object_get(row, "pieces"), &status),
			.at_most = tn__json_read_figure(row, "at_most")
		};
	}
	return status;
}

/* What is not of the form is left out. */
static void
read_products(const json_t *array, struct tn_pace *pace)
{
	for (size_t i = 0; i < json_array_size(array) && pace->product_count < TN_PRODUCTS; i++) {
		const json_t *row = json_array_get(array, i);
		struct tn_product product = { json_integer_value(json_array_get(row, 0)),
			                          json_integer_value(json_array_get(row, 1)),
			                          json_integer_value(json_array_get(row, 2)) };
		if (product.rows > 0 && product.summed > 0 && product.columns > 0)
			pace->products[pace->product_count++] = product;
	}
}

static void
read_followed(const json_t *updates, struct tn_followed *followed)
{
	for (size_t i = 0; i < json_array_size(updates) && i < TN_RATES; i++) {
		const json_t *update = json_array_get(updates, i);
		followed->own[i] = json_integer_value(json_array_get(update, 0));
		followed->since[i] = json_integer_value(json_array_get(update, 1));
		followed->count++;
	}
}

static void
read_pace(const json_t *object, struct tn_pace *pace)
{
	const json_t *rates = json_object_get(object, "learning_rates"), *passes = json_object_get(object, "passes");
	const json_t *share = json_object_get(object, "loss_share");
	int64_t updates = tn__json_read_figure(object, "updates");
	if (updates <= 0)
		return;
	*pace = (struct tn_pace){ .updates = updates,
		                      .samples = tn__json_read_figure(object, "samples"),
		                      .tokens = tn__json_read_figure(object, "tokens"),
		                      .elements = tn__json_read_figure(object, "elements"),
		                      .samples_of_call = tn__json_read_figure(object, "samples_of_call"),
		                      .backward = tn__json_read_figure(object, "backward"),
		                      .loss_share = json_is_number(share) ? json_number_value(share) : NAN };
	for (size_t i = 0; i < json_array_size(rates) && i < TN_RATES; i++)
		pace->rates[pace->rate_count++] = json_number_value(json_array_get(rates, i));
	for (size_t i = 0; i < json_array_size(passes) && i < TN_FOLLOWED; i++)
		read_followed(json_array_get(passes, i), &pace->followed[pace->followed_count++]);
	read_products(json_object_get(object, "products"), pace);
}

static tn_status
read_process(const json_t *document, struct tn_change_process *process)
{
	const json_t *changes = json_object_get(document, "changes");
	tn_status status = TN_OK;
	process->rank = tn__json_read_figure(document, "rank");
	process->patch = tn__json_read_text(document, "patch");
	process->patch_was_run = json_is_true(json_object_get(document, "patch_was_run"));
	read_pace(json_object_get(document, "pace"), &process->pace);
	process->items = room_for(changes, sizeof(*process->items), &status);
	for (size_t i = 0; process->items != NULL && i < json_array_size(changes); i++) {
		const json_t *entry = json_array_get(changes, i);
		process->items[process->count++] = (struct tn_change_result){
			.id = tn__json_read_text(entry, "id"),
			.applied = tn__json_read_truth(entry, "applied"),
			.found_nothing = tn__json_read_truth(entry, "found_nothing"),
			.effective = tn__json_read_figure(entry, "effective"),
			.results = promise(entry),
			.why_not = tn__json_read_text(entry, "why_not"),
			.how = tn__json_read_text(entry, "how")
		};
	}
	return status;
}

static void free_survey(struct tn_survey *survey);

/* Keeps the one of two surveys that saw more of the training. */
static tn_status
take_survey(const json_t *object, struct tn_survey *survey)
{
	struct tn_survey next = { 0 };
	tn_status status = read_survey(object, &next);
	bool better = !survey->known || next.backward > survey->backward;
	free_survey(better ? survey : &next);
	if (better)
		*survey = next;
	return status;
}

tn_status
tn__change_results_of(const json_t *documents, struct tn_change_results *out)
{
	tn_status status = TN_OK;
	*out = (struct tn_change_results){ 0 };
	out->processes = room_for(documents, sizeof(*out->processes), &status);
	for (size_t i = 0; status == TN_OK && i < json_array_size(documents); i++) {
		const json_t *document = json_array_get(documents, i), *survey = json_object_get(document, "survey");
		status = read_process(document, &out->processes[out->count++]);
		if (out->processes[i].pace.updates > out->pace.updates)
			out->pace = out->processes[i].pace;
		if (status == TN_OK && json_is_object(survey))
			status = take_survey(survey, &out->survey);
	}
	if (status != TN_OK)
		tn__change_results_free(out);
	return status;
}

tn_status
tn__change_results_read(const char *folder, struct tn_change_results *out)
{
	json_t *documents = tn__change_documents(folder);
	tn_status status = tn__change_results_of(documents, out);
	json_decref(documents);
	return status;
}

static void
free_texts(struct tn_text_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

static void
free_survey(struct tn_survey *survey)
{
	for (size_t i = 0; i < survey->possible_count; i++) {
		struct tn_possible_change *row = &survey->possible[i];
		free(row->id);
		free(row->title);
		free_texts(&row->values);
		free(row->pieces.items);
	}
	free(survey->possible);
	free_texts(&survey->command_line);
	free(survey->batches.items);
	free(survey->batch_options.items);
	free(survey->evaluation_batches.items);
}

void
tn__change_results_free(struct tn_change_results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		struct tn_change_process *process = &results->processes[i];
		for (size_t j = 0; j < process->count; j++) {
			free(process->items[j].id);
			free(process->items[j].why_not);
			free(process->items[j].how);
		}
		free(process->items);
		free(process->patch);
	}
	free(results->processes);
	free_survey(&results->survey);
	*results = (struct tn_change_results){ 0 };
}

/* ---- what a survey says ---- */

static int
largest_of(const struct tn_number_list *list, int most)
{
	int64_t largest = 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i] > largest && list->items[i] <= most)
			largest = list->items[i];
	return (int)largest;
}

int
tn__survey_batch(const struct tn_survey *survey, int most)
{
	int largest = largest_of(&survey->batches, most);
	return largest > 0 ? largest : largest_of(&survey->batch_options, most);
}

int
tn__survey_evaluation_batch(const struct tn_survey *survey)
{
	return largest_of(&survey->evaluation_batches, INT_MAX);
}

const struct tn_possible_change *
tn__survey_find(const struct tn_survey *survey, const char *part)
{
	for (size_t i = 0; i < survey->possible_count; i++)
		if (tn__change_is(part, survey->possible[i].id))
			return &survey->possible[i];
	return NULL;
}
