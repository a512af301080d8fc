/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial and its result as text.
 */
#include "trials/trial_file.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"

#define TRIAL_HEAD "tonnage.trial 1"
#define RESULT_HEAD "tonnage.result 1"

enum kind { TEXT, INT, BYTES, NUMBER, TRUTH, WEIGHTS };

/* How a trial's program is run: what trials can differ in. Not here: files that a run leaves (a trial leaves none), what only `tonnage
 * run` has (budget, baseline, --then, --request), and where words go. */
static const struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	bool only_time; /* it changes how long a trial may take, not what it sees */
} fields[] = {
#define FIELD(kind, name, only_time) { #name, kind, offsetof(struct tn_run_options, name), only_time }
	FIELD(TEXT, gpu, false),
	FIELD(INT, gpus, false),
	FIELD(INT, nodes, false),
	FIELD(TEXT, ranks, false),
	FIELD(BYTES, memory_bytes, false),
	FIELD(BYTES, other_bytes, false),
	FIELD(TEXT, steps, false),
	FIELD(NUMBER, seconds, true),
	FIELD(NUMBER, compile_seconds, true),
	FIELD(TRUTH, real_initialization, false),
	FIELD(WEIGHTS, weights, false),
	FIELD(TRUTH, data_shape, false),
	FIELD(TEXT, inputs, false),
	FIELD(NUMBER, assume, false),
	FIELD(TRUTH, all_values, false),
	FIELD(TRUTH, allow_network, false),
	FIELD(BYTES, scratch_bytes, false),
	FIELD(TRUTH, no_detail, false),
	FIELD(BYTES, host_memory_bytes, false),
	FIELD(TEXT, cells, false),
	FIELD(TEXT, python, false),
	FIELD(TRUTH, keep_going, false),
	FIELD(TRUTH, open_oom_decides, false),
#undef FIELD
};
#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/* ---- writing ---- */

void
tn__line_put(const char *name, const char *value, FILE *out)
{
	if (value == NULL)
		return;
	fprintf(out, "%s ", name);
	for (; *value != '\0'; value++) {
		if (*value == '\\' || *value == '\n')
			fputc('\\', out);
		fputc(*value == '\n' ? 'n' : *value, out);
	}
	fputc('\n', out);
}

static void
put_field(const struct field *field, const struct tn_run_options *options, FILE *out)
{
	const void *at = (const char *)options + field->offset;
	switch (field->kind) {
	case TEXT:
		tn__line_put(field->name, *(const char *const *)at, out);
		break;
	case INT:
		fprintf(out, "%s %d\n", field->name, *(const int *)at);
		break;
	case BYTES:
		fprintf(out, "%s %llu\n", field->name, (unsigned long long)*(const uint64_t *)at);
		break;
	case NUMBER:
		fprintf(out, "%s %.17g\n", field->name, *(const double *)at);
		break;
	case TRUTH:
		fprintf(out, "%s %d\n", field->name, *(const bool *)at);
		break;
	case WEIGHTS:
		fprintf(out, "%s %d\n", field->name, (int)*(const enum tn_weights *)at);
		break;
	}
}

void
tn__trial_write(const struct tn_trial *trial, double limit_seconds, bool for_key, FILE *out)
{
	char directory[PATH_MAX];
	fputs(TRIAL_HEAD "\n", out);
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (!for_key || !fields[i].only_time)
			put_field(&fields[i], &trial->options, out);
	tn__line_put("changes", trial->changes, out);
	fprintf(out, "keep_words %d\nlists_modules %d\npatient %d\n", trial->keep_words, trial->lists_modules && !for_key,
	        trial->patient);
	fprintf(out, "news_step %lld\nnews_epoch %lld\n", (long long)trial->news_step, (long long)trial->news_epoch);
	for (char *const *word = trial->options.arguments; *word != NULL; word++)
		tn__line_put("argument", *word, out);
	if (for_key)
		return;
	fprintf(out, "limit_seconds %.17g\n", limit_seconds);
	tn__line_put("directory", getcwd(directory, sizeof(directory)), out);
}

/* ---- reading ---- */

char *
tn__line_next(char **text, char **value)
{
	char *name = strsep(text, "\n"), *from, *to;
	if (name == NULL)
		return NULL;
	*value = name + strcspn(name, " ");
	if (**value != '\0')
		*(*value)++ = '\0';
	for (from = to = *value; *from != '\0'; from++) {
		if (*from == '\\' && from[1] != '\0')
			*to++ = *++from == 'n' ? '\n' : *from;
		else
			*to++ = *from;
	}
	*to = '\0';
	return name;
}

/* Only the range is looked at: the text is of this program. */
static void
take_field(const struct field *field, char *value, struct tn_run_options *options)
{
	void *at = (char *)options + field->offset;
	switch (field->kind) {
	case TEXT:
		*(const char **)at = value;
		break;
	case INT:
		*(int *)at = (int)strtol(value, NULL, 10);
		break;
	case BYTES:
		*(uint64_t *)at = strtoull(value, NULL, 10);
		break;
	case NUMBER:
		*(double *)at = strtod(value, NULL);
		break;
	case TRUTH:
		*(bool *)at = strcmp(value, "1") == 0;
		break;
	case WEIGHTS: {
		long number = strtol(value, NULL, 10);
		*(enum tn_weights *)at = number >= TN_WEIGHTS_AUTO && number <= TN_WEIGHTS_REAL ? (enum tn_weights)number
		                                                                                : TN_WEIGHTS_AUTO;
		break;
	}
	}
}

static bool
take_line(const char *name, char *value, struct tn_read_trial *out, int *argument_count)
{
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (strcmp(fields[i].name, name) == 0)
			take_field(&fields[i], value, &out->trial.options);
	if (strcmp(name, "changes") == 0)
		out->trial.changes = value;
	else if (strcmp(name, "keep_words") == 0)
		out->trial.keep_words = strcmp(value, "1") == 0;
	else if (strcmp(name, "lists_modules") == 0)
		out->trial.lists_modules = strcmp(value, "1") == 0;
	else if (strcmp(name, "patient") == 0)
		out->trial.patient = strcmp(value, "1") == 0;
	else if (strcmp(name, "news_step") == 0)
		out->trial.news_step = strtoll(value, NULL, 10);
	else if (strcmp(name, "news_epoch") == 0)
		out->trial.news_epoch = strtoll(value, NULL, 10);
	else if (strcmp(name, "limit_seconds") == 0)
		out->limit_seconds = strtod(value, NULL);
	else if (strcmp(name, "directory") == 0)
		out->directory = value;
	else if (strcmp(name, "argument") == 0) {
		if (!tn__array_add(&out->arguments, (size_t)*argument_count + 1, sizeof(*out->arguments)))
			return false;
		out->arguments[(*argument_count)++] = value;
		out->arguments[*argument_count] = NULL;
	}
	return true;
}

tn_status
tn__trial_parse(char *text, struct tn_read_trial *out)
{
	char *rest = text, *value, *name;
	int argument_count = 0;
	*out = (struct tn_read_trial){ .text = text };
	out->trial.options = (struct tn_run_options){ .tolerance = -1, .messages = stderr, .output = stdout };
	out->arguments = calloc(16, sizeof(*out->arguments)); /* the room that tn__array_add begins with */
	TN_RETURN_IF(out->arguments == NULL, TN_NO_MEMORY, "out of host memory");
	char *head = strsep(&rest, "\n");
	TN_RETURN_IF(head == NULL || strcmp(head, TRIAL_HEAD) != 0, TN_FORMAT, "this is no trial");
	while ((name = tn__line_next(&rest, &value)) != NULL)
		TN_RETURN_IF(!take_line(name, value, out, &argument_count), TN_NO_MEMORY, "out of host memory");
	TN_RETURN_IF(argument_count == 0 || out->directory == NULL, TN_FORMAT, "the trial is incomplete");
	out->trial.options.arguments = out->arguments;
	return TN_OK;
}

void
tn__read_trial_free(struct tn_read_trial *read)
{
	tn__trial_clear(&read->trial);
	free(read->arguments);
	free(read->text);
	*read = (struct tn_read_trial){ 0 };
}

/* ---- the result ---- */

static const char *const ends[] = { [TN_TRIAL_DONE] = "done",
	                                [TN_TRIAL_SLOW] = "slow",
	                                [TN_TRIAL_HOST_MEMORY] = "host_memory",
	                                [TN_TRIAL_FAILED] = "failed" };

void
tn__trial_result_write(const struct tn_trial *trial, const char *outcome, FILE *out)
{
	char host[64] = "";
	(void)gethostname(host, sizeof(host) - 1);
	fprintf(out, RESULT_HEAD "\nend %s\nseconds %.3f\nhost %s\n", ends[trial->end], trial->seconds, host);
	tn__line_put("words", trial->words, out);
	fprintf(out, "\n%s", outcome != NULL ? outcome : "");
}

tn_status
tn__trial_result_parse(char *text, struct tn_trial *trial, char host[64])
{
	char *rest = text, *value, *name, *head = strsep(&rest, "\n"), *words = NULL;
	enum tn_trial_end end = TN_TRIAL_WAITS;
	double seconds = 0;
	TN_RETURN_IF(head == NULL || strcmp(head, RESULT_HEAD) != 0, TN_FORMAT, "this is no result of a trial");
	host[0] = '\0';
	while ((name = tn__line_next(&rest, &value)) != NULL && name[0] != '\0') {
		for (int i = TN_TRIAL_DONE; i <= TN_TRIAL_FAILED; i++)
			if (strcmp(name, "end") == 0 && strcmp(value, ends[i]) == 0)
				end = (enum tn_trial_end)i;
		if (strcmp(name, "seconds") == 0)
			seconds = strtod(value, NULL);
		else if (strcmp(name, "host") == 0)
			snprintf(host, 64, "%s", value);
		else if (strcmp(name, "words") == 0)
			words = value;
	}
	TN_RETURN_IF(end == TN_TRIAL_WAITS || rest == NULL, TN_FORMAT, "the result of a trial is incomplete");
	tn__trial_take(trial, rest, words);
	trial->end = end;
	trial->seconds = seconds;
	TN_RETURN_IF(end == TN_TRIAL_DONE && trial->outcome.report == NULL, TN_FORMAT,
	             "the result of a trial is incomplete");
	return TN_OK;
}
