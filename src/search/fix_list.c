/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search for changes came to: the list, best first, and why the program does not fit as it is.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secrets.h"
#include "gpu/catalogue.h"
#include "report/text.h"
#include "search/fix_search.h"
#include "supervise/internal.h"
#include "verdict/paths.h"

/* The program's own options come before what has to be written into it. */
static int
by_worth(const void *one, const void *two)
{
	const struct tn_fix_change *a = one, *b = two;
	bool first = a->end == TN_FIX_FITS, second = b->end == TN_FIX_FITS;
	bool remedy_first = a->remedy && (first || a->saved > 0), remedy_second = b->remedy && (second || b->saved > 0);
	if (remedy_first != remedy_second)
		return remedy_first ? -1 : 1;
	if (first != second)
		return first ? -1 : 1;
	if (!first && a->end != b->end)
		return (int)a->end - (int)b->end;
	if (a->results != b->results && (a->results == TN_GUARANTEE_DIFFERENT || b->results == TN_GUARANTEE_DIFFERENT))
		return (int)a->results - (int)b->results;
	if (first && tn__fix_is_narrow(a) != tn__fix_is_narrow(b))
		return tn__fix_is_narrow(a) ? 1 : -1;
	if (a->own != b->own)
		return a->own ? -1 : 1;
	if (tn__fix_time(a) != tn__fix_time(b))
		return tn__fix_time(a) < tn__fix_time(b) ? -1 : 1;
	if (a->cost != b->cost)
		return a->cost - b->cost;
	if (a->results != b->results)
		return (int)a->results - (int)b->results;
	if (a->part_count != b->part_count)
		return a->part_count < b->part_count ? -1 : 1;
	if (a->pieces != b->pieces)
		return a->pieces - b->pieces;
	if (a->saved != b->saved &&
	    (a->saved > 0 || b->saved > 0)) /* else what they leave tells them apart: settings of a cache */
		return a->saved > b->saved ? -1 : 1;
	return a->margin == b->margin ? 0 : a->margin > b->margin ? -1 : 1;
}

bool
tn__fix_comes_before(const struct tn_fix_change *one, const struct tn_fix_change *two)
{
	return by_worth(one, two) < 0;
}

static void
mark_enough(struct tn_fix_change *changes, size_t count)
{
	struct tn_fix_change *narrow = NULL;
	for (size_t i = 0; i < count; i++) {
		struct tn_fix_change *change = &changes[i];
		if (change->end != TN_FIX_FITS || change->results == TN_GUARANTEE_DIFFERENT)
			continue;
		if (!tn__fix_is_narrow(change)) {
			change->enough = true;
			return;
		}
		narrow = narrow != NULL ? narrow : change;
	}
	if (narrow != NULL) /* none leaves more than what is not known of the peak */
		narrow->enough = true;
}

void
tn__fix_order(struct tn_fix_change *changes, size_t count)
{
	if (count > 0)
		qsort(changes, count, sizeof(*changes), by_worth);
	mark_enough(changes, count);
}

static bool
has_remedy(const struct tn_fixes *fixes)
{
	for (size_t i = 0; i < fixes->change_count; i++)
		if (fixes->changes[i].remedy && (fixes->changes[i].end == TN_FIX_FITS || fixes->changes[i].saved > 0))
			return true;
	return false;
}

/* The caller frees; NULL where there is none. */
static char *
words_of_place(const struct tn_place *at)
{
	char *words = NULL;
	if (at == NULL)
		return NULL;
	const char *slash = strrchr(at->file, '/');
	if (asprintf(&words, "%s%s%lld", slash != NULL ? slash + 1 : at->file, tn__before_line(at->file),
	             (long long)(at->line != TN_NO_FIGURE ? at->line : 0)) < 0)
		return NULL;
	return words;
}

/* Called once the changes are known. */
static void
fill_cause(const struct tn_report *report, struct tn_fixes *out)
{
	const struct tn_finding *finding = report->finding_count > 0 ? &report->findings[0] : NULL;
	const char *cause = report->oom.cause;
	if (report->verdict == TN_VERDICT_FITS)
		return;
	if (cause == NULL && report->verdict == TN_VERDICT_GROWS)
		cause = "growth";
	tn__replace_text(&out->cause, cause);
	tn__replace_text(&out->why, finding != NULL ? finding->what : NULL);
	tn__replace_text(&out->advice, finding != NULL ? finding->advice : NULL);
	out->wrong = out->advice != NULL && !tn__finding_is_room(finding->id) && !has_remedy(out);
	out->at = words_of_place(report->oom.at);
	out->why_at = finding != NULL ? words_of_place(finding->at) : NULL;
}

/* The caller frees; NULL where the changes are none that a command line says. */
static char *
line_to_copy(const struct tn_fix_search *search, const struct tn_fix_change *change)
{
	if (!tn__change_is_command(change->changes))
		return NULL;
	char **arguments = tn__change_command_to_copy(search->words, change->changes);
	char *line = arguments != NULL ? tn__program_quote(arguments) : NULL;
	tn__change_command_free(arguments);
	return line;
}

void
tn__fix_list(struct tn_fix_search *search, struct tn_fixes *out)
{
	const struct tn_report *card = tn__trial_report(&search->unchanged_card);
	const struct tn_survey *survey = &search->unchanged_large.outcome.changes.survey;
	bool fits = card->verdict == TN_VERDICT_FITS;
	const struct tn_report *whole = fits ? card : tn__trial_report(&search->unchanged_large);
	int64_t need = fits ? whole->device_peak - search->card.hidden : search->need;
	/* Where the card has room for what is needed, and yet it does not fit, the card is no matter of that alone. */
	bool told = !fits && need != TN_NO_FIGURE && search->missing != TN_NO_FIGURE;
	const struct tn_gpu_row *row = told                          ? tn__report_smallest_card(whole, need)
	                               : whole->smallest_gpu != NULL ? tn__gpu_find(whole->smallest_gpu)
	                                                             : NULL;
	*out = (struct tn_fixes){ .gpu = search->card.figures,
		                      .host_memory = search->host ? card->host.limit : TN_NO_FIGURE,
		                      .gpus = search->card.options.gpus,
		                      .fits_unchanged = fits,
		                      .failed = card->verdict == TN_VERDICT_FAILED,
		                      .undecided = card->verdict == TN_VERDICT_UNDECIDED,
		                      .interrupted = search->trials.interrupted_by != 0,
		                      .need = need,
		                      .missing = search->missing,
		                      .margin_wanted = search->card.hidden,
		                      .smallest_gpu = row != NULL ? row->figures.alias : NULL,
		                      .trials = search->trials.count + search->trials.reused,
		                      .forked = search->trials.forked,
		                      .took = search->trials.took,
		                      .not_forked = tn__trials_not_forked(&search->trials),
		                      .seconds = tn__trials_seconds(&search->trials),
		                      .first_seconds = search->first_seconds };
	if (tn__fix_grows(search) || search->host)
		out->smallest_gpu = NULL; /* what was seen is not all that it would take */
	out->command = tn__program_quote(search->card.options.arguments);
	if (search->card.options.then_count > 0)
		out->deciding = tn__program_quote(search->words);
	out->secrets = tn__secrets_of(search->card.options.arguments, environ);
	out->card_options = tn__search_card_options(&search->options->search.run);
	out->changes = calloc((size_t)search->count + 1, sizeof(*out->changes));
	for (int i = 0; i < search->count && out->changes != NULL; i++) {
		struct tn_attempt *attempt = &search->attempts[i];
		bool fits_so_far = attempt->found.end == TN_FIX_FITS; /* one that was still to be tried with less */
		if (attempt->stage != TN_STAGE_OVER && attempt->stage != TN_STAGE_TOO_SMALL && !fits_so_far)
			continue;
		if (attempt->stage == TN_STAGE_TOO_SMALL) {
			attempt->found.end = TN_FIX_NOT_ENOUGH;
			attempt->found.saved = TN_NO_FIGURE;
		}
		attempt->found.command = line_to_copy(search, &attempt->found);
		out->changes[out->change_count++] = attempt->found;
		attempt->kept = true;
	}
	tn__fix_order(out->changes, out->change_count);
	out->infers = survey->known && survey->backward == 0;
	if (!fits && !search->host)
		tn__multi_gpu_estimate(search, out);
	fill_cause(card, out);
	if (fits)
		out->unseen = tn__not_seen_words(card);
	else
		tn__replace_text(&out->own_error, tn__fix_own_error(search));
}
