/* SPDX-License-Identifier: Apache-2.0
 *
 * The found changes as a page: the whole list, with what to do for each and its patch, and what was tried in vain.
 */
#include <stdlib.h>

#include "report/fix.h"
#include "report/json_parts.h"
#include "report/page_object.h"
#include "report/search_words.h"

static json_t *
headline(const struct tn_fixes *fixes)
{
	char title[TN_WORDS_ROOM], smallest[TN_WORDS_ROOM], *next = tn__fixes_next(fixes);
	char *why = fixes->fits_unchanged ? NULL : tn__fixes_why(fixes);
	char *own_error = fixes->fits_unchanged ? NULL : tn__fixes_own_error(fixes);
	json_t *lines = json_array(), *advice = json_array();
	tn__page_add_line(lines, fixes->interrupted ? TN_INTERRUPTED_WORDS : NULL);
	tn__page_add_line(lines, own_error);
	tn__page_add_line(lines, fixes->fits_unchanged ? NULL : fixes->deciding);
	tn__page_add_line(advice, fixes->wrong ? fixes->advice : NULL);
	tn__page_add_line(advice, next);
	tn__page_add_line(advice, tn__fixes_smallest(fixes, smallest));
	json_t *object = json_pack(
		"{s:s, s:o, s:o, s:[], s:o, s:o}", "verdict", fixes->fits_unchanged ? "fits" : "out_of_memory", "title",
		tn__json_text(tn__fixes_title(fixes, title)), "lines", lines, "at", "why", tn__json_text(why), "do", advice);
	free(own_error);
	free(why);
	free(next);
	return object;
}

static json_t *
about(const struct tn_fixes *fixes)
{
	char words[TN_WORDS_ROOM];
	json_t *array = json_array();
	tn__page_add_fact(array, "command", fixes->command);
	tn__page_add_fact(array, "search", tn__trials_words(fixes->trials, fixes->seconds, fixes->first_seconds, words));
	return array;
}

static const char *
end_words(enum tn_fix_end end)
{
	static const char *const words[] = { "fits",
		                                 "not enough",
		                                 "no help",
		                                 "not applicable",
		                                 "broke the program",
		                                 "the program's own error",
		                                 "not tried to the end" };
	return words[end];
}

/* Of a change that was not measured to its end, nothing is known. */
static json_t *
saved(const struct tn_fix_change *change)
{
	if (change->end > TN_FIX_NO_HELP || change->saved == TN_NO_FIGURE)
		return json_null();
	return json_integer(change->saved > 0 ? change->saved : 0);
}

static json_t *
change_object(const struct tn_fixes *fixes, const struct tn_fix_change *change)
{
	char time[64], narrow[TN_WORDS_ROOM], *patch = tn__fix_shown_patch(fixes, change);
	bool fits = change->end == TN_FIX_FITS;
	json_t *object = json_pack(
		"{s:o, s:o, s:b, s:b, s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o}", "id", tn__json_text(change->changes),
		"title", tn__json_text(change->title), "fits", fits, "enough", change->enough, "outcome",
		end_words(change->end), "saved_bytes", saved(change), "margin_bytes",
		fits ? tn__json_figure(change->margin) : json_null(), "time", tn__time_words(&change->time, time), "results",
		tn__guarantee_words(fixes, change->results), "narrow",
		tn__json_text(tn__fix_narrow_words(fixes, change, narrow)), "how", tn__json_text(change->how), "patch",
		tn__json_text(patch), "why_not", tn__json_text(change->why_not));
	free(patch);
	return object;
}

static json_t *
list(const struct tn_fixes *fixes)
{
	json_t *changes = json_array(), *cards = json_array();
	for (size_t i = 0; i < fixes->change_count; i++)
		json_array_append_new(changes, change_object(fixes, &fixes->changes[i]));
	for (size_t i = 0; i < fixes->multi_gpu_count; i++) {
		const struct tn_multi_gpu_estimate *more = &fixes->multi_gpu[i];
		json_array_append_new(cards,
		                      json_pack("{s:i, s:s, s:I}", "cards", more->cards, "with", tn__cards_words(more->method),
		                                "estimated_device_bytes", (json_int_t)more->device_bytes));
	}
	return json_pack("{s:b, s:o, s:o}", "fits_unchanged", fixes->fits_unchanged, "changes", changes, "multi_gpu",
	                 cards);
}

static tn_status
fill(const struct tn_fixes *fixes, json_t *page)
{
	TN_FORWARD_IF_ERROR(tn__page_set(page, "about", about(fixes)));
	TN_FORWARD_IF_ERROR(tn__page_set(page, "headline", headline(fixes)));
	return tn__page_set(page, "fix", list(fixes));
}

tn_status
tn__fixes_page(const struct tn_fixes *fixes, FILE *out)
{
	json_t *page = tn__page_new("Changes that make it fit");
	tn_status status = page != NULL ? fill(fixes, page) : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK)
		status = tn__page_put(page, out);
	json_decref(page);
	return status;
}
