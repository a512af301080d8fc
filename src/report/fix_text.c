/* SPDX-License-Identifier: Apache-2.0
 *
 * The found changes for a person: what is missing, the short list of what fits, what did not help, what to type next.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "report/fix.h"
#include "report/printer.h"

#define SHOWN 8       /* changes that fit */
#define SHOWN_OTHER 6 /* names in a line of others */
#define HOW_COLUMN 8

const char *
tn__guarantee_words(const struct tn_fixes *fixes, enum tn_guarantee promise)
{
	static const char *const words[] = { "results the same", "results the same up to rounding",
		                                 "changes the training" };
	return promise == TN_GUARANTEE_DIFFERENT && fixes->infers ? "other results" : words[promise];
}

const char *
tn__fixes_title(const struct tn_fixes *fixes, char words[TN_WORDS_ROOM])
{
	char total[48], peak[32], missing[32], name[160];
	tn__human_bytes((int64_t)fixes->gpu.total_bytes, total);
	if (fixes->gpus > 1) {
		snprintf(name, sizeof(name), "%d x %s", fixes->gpus, fixes->gpu.name);
		strcat(total, " each");
	} else {
		snprintf(name, sizeof(name), "%s", fixes->gpu.name);
	}
	tn__human_bytes(fixes->need, peak);
	if (fixes->host_memory != TN_NO_FIGURE)
		snprintf(words, TN_WORDS_ROOM, "Does not fit the computer's memory of %s: it needs %s, %s more",
		         tn__human_bytes(fixes->host_memory, total), peak, tn__human_bytes(fixes->missing, missing));
	else if (fixes->fits_unchanged)
		snprintf(words, TN_WORDS_ROOM, "Fits on %s (%s) as it is: %s at the peak, nothing needs a change", name, total,
		         peak);
	else if (fixes->need == TN_NO_FIGURE || fixes->missing == TN_NO_FIGURE)
		snprintf(words, TN_WORDS_ROOM, "Does not fit on %s (%s)", name, total);
	else
		snprintf(words, TN_WORDS_ROOM, "Does not fit on %s (%s): it needs %s%s, %s more", name, total, peak,
		         fixes->gpus > 1 ? " on the fullest" : "", tn__human_bytes(fixes->missing, missing));
	return words;
}

const char *
tn__fix_narrow_words(const struct tn_fixes *fixes, const struct tn_fix_change *change, char words[TN_WORDS_ROOM])
{
	char less[32];
	if (change->end == TN_FIX_FITS && change->fits_with_less > 0) {
		snprintf(words, TN_WORDS_ROOM, "it was seen to fit with %s less, too: so much higher may the peak be",
		         tn__human_bytes(change->fits_with_less, less));
		return words;
	}
	if (!tn__fix_is_narrow(change))
		return NULL;
	return fixes->host_memory != TN_NO_FIGURE ? tn__narrow_host_words(change->margin, change->uncertain, words)
	                                          : tn__narrow_words(change->margin, change->uncertain, words);
}

char *
tn__fixes_why(const struct tn_fixes *fixes)
{
	const char *at = fixes->why_at != NULL ? fixes->why_at : fixes->at;
	bool placed = fixes->why != NULL && at != NULL && strstr(fixes->why, at) == NULL;
	char *words = NULL;
	if (!placed)
		return fixes->why != NULL ? strdup(fixes->why) : NULL;
	return asprintf(&words, "%s (%s)", fixes->why, at) < 0 ? NULL : words;
}

char *
tn__fixes_own_error(const struct tn_fixes *fixes)
{
	char *words = NULL;
	if (fixes->own_error == NULL)
		return NULL;
	return asprintf(&words, "With enough memory, the unchanged program ends by itself: %s", fixes->own_error) < 0
	           ? NULL
	           : words;
}

static void
say_card(const struct tn_printer *printer, const struct tn_fixes *fixes)
{
	char title[TN_WORDS_ROOM], *why = tn__fixes_why(fixes), *own_error = tn__fixes_own_error(fixes);
	tn__say(printer, fixes->fits_unchanged ? TN_TINT_GOOD : TN_TINT_BAD, 0, "%s", tn__fixes_title(fixes, title));
	if (fixes->unseen != NULL)
		tn__say(printer, TN_TINT_NONE, 2, "Not seen: %s", fixes->unseen);
	if (!fixes->fits_unchanged) {
		if (fixes->deciding != NULL)
			tn__say_labelled(printer, "Where", HOW_COLUMN, "%s", fixes->deciding);
		if (why != NULL)
			tn__say_labelled(printer, "Why", HOW_COLUMN, "%s", why);
		if (own_error != NULL)
			tn__say(printer, TN_TINT_BAD, 2, "%s", own_error);
		if (fixes->wrong)
			tn__say_labelled(printer, "First", HOW_COLUMN, "%s", fixes->advice);
	}
	free(own_error);
	free(why);
}

/* Each line of `how` below the other. */
static void
say_how(const struct tn_printer *printer, const struct tn_fix_change *change)
{
	char *text = change->how != NULL ? strdup(change->how) : NULL, *rest = text, *line;
	const char *label = "";
	while (text != NULL && (line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			tn__say_labelled(printer, label, HOW_COLUMN, "%s", line);
	free(text);
}

const char *
tn__time_words(const struct tn_time_ratio *time, char words[64])
{
	if (!time->known)
		return "time unknown";
	int digits = time->ratio < 0.995 ? 2 : 1;
	snprintf(words, 64, "%.*fx the time (%.*f-%.*f)", digits, time->ratio, digits, time->low, digits, time->high);
	return words;
}

/* "saves 1.20 GiB, "; of a program that grows nobody knows what it would have taken. */
static const char *
saved_words(const struct tn_fix_change *change, char words[64])
{
	char saved[32];
	if (change->saved == TN_NO_FIGURE)
		return "";
	snprintf(words, 64, "saves %s, ",
	         change->saved > 0 ? tn__human_bytes(change->saved, saved) : "nothing at the peak");
	return words;
}

static void
say_change(const struct tn_printer *printer, const struct tn_fixes *fixes, const struct tn_fix_change *change,
           int number)
{
	char saved[64], margin[32], time[64], words[TN_WORDS_ROOM];
	const char *narrow = tn__fix_narrow_words(fixes, change, words);
	fputc('\n', printer->out);
	tn__say(printer, change->enough ? TN_TINT_GOOD : TN_TINT_STRONG, 2, "%d  %s%s", number, change->title,
	        change->enough ? "   <- the first that is enough and keeps the results" : "");
	tn__say(printer, TN_TINT_NONE, 5, "%sleaves %s; %s; %s", saved_words(change, saved),
	        tn__human_bytes(change->margin, margin), tn__guarantee_words(fixes, change->results),
	        tn__time_words(&change->time, time));
	if (narrow != NULL)
		tn__say(printer, TN_TINT_NONE, 5, "%s", narrow);
	say_how(printer, change);
}

static size_t
count_of(const struct tn_fixes *fixes, enum tn_fix_end end)
{
	size_t count = 0;
	for (size_t i = 0; i < fixes->change_count; i++)
		count += fixes->changes[i].end == end;
	return count;
}

/* "Not enough  foreach saves 1.20 GiB, fused" */
static void
say_others(const struct tn_printer *printer, const struct tn_fixes *fixes, enum tn_fix_end end, const char *label)
{
	char *text = NULL, saved[32];
	size_t size = 0, told = 0, count = count_of(fixes, end);
	FILE *out = count > 0 ? open_memstream(&text, &size) : NULL;
	if (out == NULL)
		return;
	for (size_t i = 0; i < fixes->change_count && told < SHOWN_OTHER; i++) {
		const struct tn_fix_change *change = &fixes->changes[i];
		if (change->end != end)
			continue;
		fprintf(out, "%s%s", told++ > 0 ? "; " : "", change->changes);
		if (end == TN_FIX_NOT_ENOUGH && change->saved > 0)
			fprintf(out, " (saves %s)", tn__human_bytes(change->saved, saved));
		else if (end != TN_FIX_NO_HELP && end != TN_FIX_OWN_ERROR && change->why_not != NULL)
			fprintf(out, " (%s)", change->why_not);
	}
	if (count > told)
		fprintf(out, "; and %zu more", count - told);
	fclose(out);
	tn__say(printer, TN_TINT_DIM, 2, "%s: %s", label, text);
	free(text);
}

static const struct tn_fix_change *
first_fitting(const struct tn_fixes *fixes)
{
	for (size_t i = 0; i < fixes->change_count; i++)
		if (fixes->changes[i].end == TN_FIX_FITS)
			return &fixes->changes[i];
	return NULL;
}

char *
tn__fixes_next(const struct tn_fixes *fixes)
{
	const struct tn_fix_change *first = first_fitting(fixes);
	char *words = NULL;
	if (fixes->fits_unchanged)
		return NULL;
	if (first == NULL)
		return fixes->advice != NULL && !fixes->wrong ? strdup(fixes->advice) : NULL;
	if (first->command != NULL)
		return strdup(first->command);
	int length = asprintf(&words, "tonnage fix --apply \"%s\" %s-- %s", first->changes,
	                      fixes->card_options != NULL ? fixes->card_options : "",
	                      fixes->command != NULL ? fixes->command : "PROGRAM");
	return length < 0 ? NULL : words;
}

const char *
tn__fixes_smallest(const struct tn_fixes *fixes, char words[TN_WORDS_ROOM])
{
	const struct tn_gpu_row *row = fixes->smallest_gpu != NULL ? tn__gpu_find(fixes->smallest_gpu) : NULL;
	char total[32];
	if (row == NULL || fixes->need <= 0 || fixes->fits_unchanged)
		return NULL;
	snprintf(words, TN_WORDS_ROOM, "%sthe smallest card that fits it unchanged: %s (%s)",
	         first_fitting(fixes) != NULL ? "or " : "", row->figures.name,
	         tn__human_bytes((int64_t)row->figures.total_bytes, total));
	return words;
}

static void
say_next(const struct tn_printer *printer, const struct tn_fixes *fixes)
{
	char words[TN_WORDS_ROOM], *next = tn__fixes_next(fixes);
	const char *smallest = tn__fixes_smallest(fixes, words);
	const struct tn_fix_change *first = first_fitting(fixes);
	fputc('\n', printer->out);
	if (next != NULL)
		tn__say_labelled(printer, "Next", HOW_COLUMN, "%s", next);
	if (first != NULL && first->command == NULL && first->patch != NULL)
		tn__say_labelled(printer, "", HOW_COLUMN, "with --patch fix.diff it writes the change as a diff, too%s",
		                 first->patch_tried ? "" : " (the diff itself was not tried)");
	if (smallest != NULL)
		tn__say_labelled(printer, next != NULL ? "" : "Next", HOW_COLUMN, "%s", smallest);
	free(next);
}

const char *
tn__cards_words(enum tn_cards_method method)
{
	return method == TN_CARDS_FSDP ? "FSDP (everything sharded, a unit for each block)"
	                               : "DistributedDataParallel (gradient_as_bucket_view=True)";
}

static void
say_multi_gpu(const struct tn_printer *printer, const struct tn_fixes *fixes)
{
	char bytes[32];
	for (size_t i = 0; i < fixes->multi_gpu_count; i++) {
		const struct tn_multi_gpu_estimate *more = &fixes->multi_gpu[i];
		tn__say_labelled(printer, i == 0 ? "Cards" : "", HOW_COLUMN,
		                 "%d of them with %s, each with its share of the batch: "
		                 "about %s each%s",
		                 more->cards, tn__cards_words(more->method), tn__human_bytes(more->device_bytes, bytes),
		                 i == 0 ? " (an estimate, not tried; NCCL's buffers come on top)" : "");
	}
}

static void
say_list(const struct tn_printer *printer, const struct tn_fixes *fixes)
{
	size_t fitting = count_of(fixes, TN_FIX_FITS);
	int number = 0;
	if (fitting == 0 && !fixes->failed) {
		fputc('\n', printer->out);
		tn__say(printer, TN_TINT_BAD, 2, "No change that was tried makes it fit");
	}
	for (size_t i = 0; i < fixes->change_count && number < SHOWN; i++)
		if (fixes->changes[i].end == TN_FIX_FITS)
			say_change(printer, fixes, &fixes->changes[i], ++number);
	say_next(printer, fixes);
	say_multi_gpu(printer, fixes);
	fputc('\n', printer->out);
	if (fitting > SHOWN)
		tn__say(printer, TN_TINT_DIM, 2, "%zu more that fit: --json lists them", fitting - SHOWN);
	say_others(printer, fixes, TN_FIX_NOT_ENOUGH, "Not enough");
	say_others(printer, fixes, TN_FIX_NO_HELP, "No help");
	say_others(printer, fixes, TN_FIX_NOT_APPLIED, "Not applicable");
	say_others(printer, fixes, TN_FIX_BROKE, "Broke the program");
	say_others(printer, fixes, TN_FIX_OWN_ERROR, "Ended by the program's own error");
	say_others(printer, fixes, TN_FIX_UNKNOWN, "Not tried to the end");
}

tn_status
tn__fixes_text(const struct tn_fixes *fixes, struct tn_style style, FILE *out)
{
	struct tn_printer printer = { out, style };
	char words[TN_WORDS_ROOM];
	if (fixes->interrupted)
		tn__say(&printer, TN_TINT_BAD, 0, TN_INTERRUPTED_WORDS);
	say_card(&printer, fixes);
	if (!fixes->fits_unchanged)
		say_list(&printer, fixes);
	tn__say(&printer, TN_TINT_DIM, 2, "%s",
	        tn__trials_words(fixes->trials, fixes->seconds, fixes->first_seconds, words));
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the list could not be written");
	return TN_OK;
}
