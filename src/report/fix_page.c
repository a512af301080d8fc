/* SPDX-License-Identifier: Apache-2.0
 *
 * The found changes as a page: the whole list, with what to do for each and its patch, and what was tried in vain.
 */
#include <stdlib.h>
#include <string.h>

#include "report/fix.h"
#include "report/html.h"

#define BAR 120 /* width of the longest */

static void
put_head(const struct tn_fixes *fixes, FILE *out)
{
	char total[32], peak[32], missing[32];
	tn__human_bytes((int64_t)fixes->gpu.total_bytes, total);
	tn__human_bytes(fixes->device_peak, peak);
	fprintf(out, "<section>\n<h1><span class=\"sign %s\">%s</span>", fixes->fits_unchanged ? "fits" : "out_of_memory",
	        fixes->fits_unchanged ? "&#10003;" : "&#10007;");
	if (fixes->fits_unchanged)
		tn__html_say(out, "Fits on %s (%s) as it is: %s at the peak", fixes->gpu.name, total, peak);
	else if (fixes->device_peak == TN_NO_FIGURE || fixes->missing == TN_NO_FIGURE)
		tn__html_say(out, "Does not fit on %s (%s)", fixes->gpu.name, total);
	else
		tn__html_say(out, "Does not fit on %s (%s): it needs %s, %s more", fixes->gpu.name, total, peak,
		             tn__human_bytes(fixes->missing, missing));
	fputs("</h1>\n<p>", out);
	tn__html_text(out, fixes->why);
	if (tn__fixes_place(fixes) != NULL)
		tn__html_say(out, " (%s)", tn__fixes_place(fixes));
	if (fixes->wrong)
		tn__html_say(out, ". First: %s", fixes->advice);
	fputs("</p>\n<p class=\"code\">", out);
	tn__html_text(out, fixes->command);
	fputs("</p>\n", out);
	if (fixes->interrupted)
		fputs("<p class=\"bad\">Interrupted: this is what was known by then.</p>\n", out);
	fputs("</section>\n", out);
}

static void
put_bar(int64_t bytes, int64_t most, FILE *out)
{
	char words[32];
	int width = most > 0 && bytes > 0 ? (int)(BAR * (double)bytes / (double)most) : 0;
	fprintf(out,
	        "<td class=\"bars\"><svg width=\"%d\" height=\"10\" aria-hidden=\"true\"><rect class=\"bar\" width=\"%d\" height=\"10\"/></svg> ",
	        BAR, width < 1 && bytes > 0 ? 1 : width);
	tn__html_text(out, bytes > 0 || bytes == TN_NO_FIGURE ? tn__human_bytes(bytes, words) : "nothing at the peak");
	fputs("</td>", out);
}

static void
put_how(const struct tn_fixes *fixes, const struct tn_fix_change *change, FILE *out)
{
	char *patch = tn__fix_shown_patch(fixes, change);
	if (change->how != NULL) {
		fputs("<pre class=\"code\">", out);
		tn__html_text(out, change->how);
		fputs("</pre>", out);
	}
	if (patch != NULL) {
		fputs("<details><summary>the patch</summary><pre class=\"code\">", out);
		tn__html_text(out, patch);
		fputs("</pre></details>", out);
	}
	free(patch);
}

static int64_t
most_saved(const struct tn_fixes *fixes)
{
	int64_t most = 0;
	for (size_t i = 0; i < fixes->change_count; i++)
		if (fixes->changes[i].saved > most)
			most = fixes->changes[i].saved;
	return most;
}

static void
put_change(const struct tn_fixes *fixes, const struct tn_fix_change *change, int number, FILE *out)
{
	char margin[32], time[64];
	fprintf(out, "<tr><td>%d</td><td><strong>", number);
	tn__html_text(out, change->title);
	fputs("</strong>", out);
	if (change->enough)
		fputs(" <span class=\"good\">the first that is enough and keeps the results</span>", out);
	put_how(fixes, change, out);
	fputs("</td>", out);
	put_bar(change->saved, most_saved(fixes), out);
	fputs("<td class=\"figure\">", out);
	tn__html_text(out, tn__human_bytes(change->margin, margin));
	fputs("</td><td>", out);
	tn__html_text(out, tn__time_words(&change->time, time));
	fputs("</td><td>", out);
	tn__html_text(out, tn__promise_words(fixes, change->results));
	fputs("</td></tr>\n", out);
}

static void
put_fitting(const struct tn_fixes *fixes, FILE *out)
{
	int number = 0;
	fputs("<section>\n<h2>What fits</h2>\n<table>\n<thead><tr><th></th><th>change</th><th>saves</th><th class=\"figure\">leaves"
	      "</th><th>a step takes</th><th>results</th></tr></thead>\n<tbody>\n", out);
	for (size_t i = 0; i < fixes->change_count; i++)
		if (fixes->changes[i].end == TN_FIX_FITS)
			put_change(fixes, &fixes->changes[i], ++number, out);
	fputs("</tbody>\n</table>\n", out);
	if (number == 0)
		fputs("<p class=\"bad\">No change that was tried makes it fit.</p>\n", out);
	fputs("</section>\n", out);
}

static const char *
end_words(enum tn_fix_end end)
{
	static const char *const words[] = { "fits", "not enough", "no help", "not applicable", "broke the program",
		                                 "the program's own error",
		                                 "not tried to the end" };
	return words[end];
}

static void
put_others(const struct tn_fixes *fixes, FILE *out)
{
	bool some = false;
	for (size_t i = 0; i < fixes->change_count; i++) {
		const struct tn_fix_change *change = &fixes->changes[i];
		if (change->end == TN_FIX_FITS)
			continue;
		if (!some)
			fputs("<section>\n<h2>What does not</h2>\n<table>\n<thead><tr><th>change</th><th></th><th>saves</th><th>why</th></tr>"
			      "</thead>\n<tbody>\n", out);
		some = true;
		fputs("<tr><td class=\"code\">", out);
		tn__html_text(out, change->changes);
		fprintf(out, "</td><td>%s</td>", end_words(change->end));
		put_bar(change->end == TN_FIX_NOT_ENOUGH ? change->saved : 0, most_saved(fixes), out);
		fputs("<td>", out);
		tn__html_text(out, change->why_not);
		fputs("</td></tr>\n", out);
	}
	if (some)
		fputs("</tbody>\n</table>\n</section>\n", out);
}

static void
put_more_cards(const struct tn_fixes *fixes, FILE *out)
{
	char bytes[32];
	if (fixes->more_cards_count == 0)
		return;
	fputs("<section>\n<h2>More of these cards</h2>\n<p>An estimate by arithmetic on the peak, not tried. Each card has its share of "
	      "the batch; NCCL's buffers come on top.</p>\n<ul>\n", out);
	for (size_t i = 0; i < fixes->more_cards_count; i++) {
		const struct tn_more_cards *more = &fixes->more_cards[i];
		fprintf(out, "<li>%d with ", more->cards);
		tn__html_text(out, tn__cards_words(more->method));
		fprintf(out, ": about %s each</li>\n", tn__human_bytes(more->device_bytes, bytes));
	}
	fputs("</ul>\n</section>\n", out);
}

tn_status
tn__fixes_page(const struct tn_fixes *fixes, FILE *out)
{
	tn__html_begin(out, "Changes that make it fit");
	put_head(fixes, out);
	if (!fixes->fits_unchanged) {
		put_fitting(fixes, out);
		put_more_cards(fixes, out);
		put_others(fixes, out);
	}
	return tn__html_end(out, "%d trials on a virtual GPU in %.0f s; nothing real was changed. Tonnage %s", fixes->trials,
	                    fixes->seconds, TONNAGE_VERSION);
}
