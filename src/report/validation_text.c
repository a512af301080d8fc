/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of `tonnage validate` for a person: a line a job, then the counts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "report/printer.h"
#include "report/validation_text.h"

#define UNKNOWN INT64_MIN

static int64_t
figure(const json_t *entry, const char *what, const char *side)
{
	const json_t *value = json_object_get(json_object_get(entry, what), side);
	return json_is_integer(value) ? json_integer_value(value) : UNKNOWN;
}

static const char *
text(const json_t *entry, const char *what, const char *side)
{
	const char *value = tn__json_borrow_text(json_object_get(entry, what), side);
	return value != NULL ? value : "unknown";
}

/* "reserved 1.50 GiB, copy 1.48 GiB; " when they are not the same. */
static void
add_bytes(FILE *out, const json_t *entry, const char *what, const char *name)
{
	char measured[32], copy[32];
	int64_t its = figure(entry, what, "measured"), other = figure(entry, what, "copy");
	if (its == other || its == UNKNOWN || other == UNKNOWN)
		return;
	fprintf(out, "%s %s, copy %s (%+" PRId64 " bytes); ", name, tn__human_bytes(its, measured),
	        tn__human_bytes(other, copy), other - its);
}

static void
add_counters(FILE *out, const json_t *counters)
{
	const json_t *counter;
	const char *first = NULL;
	size_t count = 0, i;
	json_array_foreach(counters, i, counter)
		if (tn__json_read_truth(counter, "repeats") && count++ == 0)
			first = tn__json_borrow_text(counter, "counter");
	if (count > 0)
		fprintf(out, "%zu counter%s, the first %s; ", count, count == 1 ? "" : "s", first != NULL ? first : "unknown");
}

/* What is not the same, in words; the caller frees. */
static char *
differences(const json_t *entry)
{
	char *words = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&words, &size);
	if (out == NULL)
		return NULL;
	for (int copy = 0; copy < 2; copy++) {
		const char *why = tn__json_borrow_text(entry, copy ? "copy_failed" : "measured_failed");
		if (why != NULL)
			fprintf(out, "%s failed: %s; ", copy ? "the copy" : "the measured card", why);
	}
	if (strcmp(text(entry, "end", "measured"), text(entry, "end", "copy")) != 0)
		fprintf(out, "ends with %s, copy %s; ", text(entry, "end", "measured"), text(entry, "end", "copy"));
	add_bytes(out, entry, "allocated_peak_bytes", "allocated");
	add_bytes(out, entry, "reserved_peak_bytes", "reserved");
	add_counters(out, json_object_get(entry, "counters"));
	if (!tn__json_read_truth(json_object_get(entry, "segments"), "same"))
		fputs("other segments; ", out);
	if (!tn__json_read_truth(json_object_get(entry, "rows"), "same"))
		fputs("other workspaces; ", out);
	add_bytes(out, entry, "process_bytes", "process");
	fclose(out);
	if (size >= 2)
		words[size - 2] = '\0'; /* the last separator */
	return words;
}

/* "1.23 GiB allocated, 1.50 GiB reserved, process +12.0 MiB" */
static void
say_agreement(const struct tn_printer *printer, const json_t *entry)
{
	char allocated[32], reserved[32], process[64] = "";
	int64_t its = figure(entry, "process_bytes", "measured"), other = figure(entry, "process_bytes", "copy");
	int64_t peaks[2] = { figure(entry, "allocated_peak_bytes", "measured"),
		                 figure(entry, "reserved_peak_bytes", "measured") };
	if (its != UNKNOWN && other != UNKNOWN && its != other)
		snprintf(process, sizeof(process), ", process %+.1f MiB", (double)(other - its) / (1 << 20));
	tn__say(printer, TN_TINT_NONE, 2, "agrees: %s (%s allocated, %s reserved%s)", tn__json_borrow_text(entry, "job"),
	        tn__human_bytes(peaks[0], allocated), tn__human_bytes(peaks[1], reserved), process);
}

tn_status
tn__validation_line(const json_t *entry, struct tn_style style, FILE *out)
{
	const struct tn_printer printer = { out, style };
	if (tn__json_read_truth(entry, "agrees")) {
		say_agreement(&printer, entry);
	} else {
		char *words = differences(entry);
		tn__say(&printer, TN_TINT_BAD, 2, "DIFFERS: %s (%s)", tn__json_borrow_text(entry, "job"),
		        words != NULL ? words : "?");
		free(words);
	}
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the table could not be written");
	return TN_OK;
}

static int
count_of(const json_t *summary, const char *name)
{
	return (int)json_integer_value(json_object_get(summary, name));
}

tn_status
tn__validation_summary(const json_t *document, int left, struct tn_style style, FILE *out)
{
	const struct tn_printer printer = { out, style };
	const json_t *summary = json_object_get(document, "summary");
	int jobs = count_of(summary, "jobs"), agree = count_of(summary, "agree");
	bool stand_in = tn__json_read_truth(document, "stand_in");
	tn__say(&printer, agree == jobs ? TN_TINT_GOOD : TN_TINT_BAD, 0, "%d of %d jobs agree on %s with torch %s", agree,
	        jobs, text(document, "gpu", "name"), text(document, "about", "torch"));
	tn__say(&printer, TN_TINT_NONE, 2,
	        "allocated peak equal to the byte: %d; reserved peak within 0.5 %%: %d; the same "
	        "segments in the same order: %d; bytes of the process within 100 MiB: %d",
	        count_of(summary, "allocated_peak_equal"), count_of(summary, "reserved_peak_within_half_percent"),
	        count_of(summary, "same_segments"), count_of(summary, "process_within_100_mib"));
	if (stand_in)
		tn__say(&printer, TN_TINT_DIM, 2,
		        "a virtual card stood in for the real one: this only shows that the kit works");
	if (left > 0)
		tn__say(&printer, TN_TINT_STRONG, 2, "%d job%s left: the same command resumes", left,
		        left == 1 ? " is" : "s are");
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the table could not be written");
	return TN_OK;
}
