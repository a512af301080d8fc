/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_fix: the command around the search for changes. Where the processes of trials turn out not to be what the program is, the search is
 * made once more, without forks.
 */
#include "tonnage/fix.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain.h"
#include "search/fix_search.h"

static void
say_undecided(const struct tn_fix_search *search)
{
	char *doubt = tn__trial_doubt(&search->unchanged_card);
	tn__tell(search->options->search.run.messages, "the unchanged program: %s", doubt != NULL ? doubt : "undecided");
	free(doubt);
}

static tn_status
finish(struct tn_fix_search *search, struct tn_fixes *fixes, int *exit_status)
{
	const struct tn_search_options *options = &search->options->search;
	if (fixes->failed && search->unchanged_card.words != NULL && !fixes->interrupted)
		fputs(search->unchanged_card.words, stderr);                              /* the program's own */
	const char *exception = tn__trial_report(&search->unchanged_card)->exception; /* it may have said it elsewhere */
	bool asks = exception != NULL && strstr(exception, "EOF when reading a line") != NULL; /* input() without one */
	if (fixes->failed && !fixes->interrupted)
		tn__tell(options->run.messages, "the unchanged program fails, and not for lack of memory%s%s%s",
		         exception != NULL ? ": " : "", exception != NULL ? exception : "",
		         asks ? "; give its answers in a file, `< answers.txt`: every trial reads that from its beginning"
		              : "");
	else if (fixes->undecided && !fixes->interrupted)
		say_undecided(search);
	else
		TN_FORWARD_IF_ERROR(tn__print_document(&tn__fix_document, fixes, &options->run));
	TN_FORWARD_IF_ERROR(
		tn__save_document(&tn__fix_document, fixes, &options->run, !fixes->failed && !fixes->undecided));
	TN_FORWARD_IF_ERROR(tn__fix_write_patch(search, fixes));
	*exit_status = fixes->interrupted ? 128 + search->trials.interrupted_by
	               : fixes->fits_unchanged || fixes->failed || fixes->undecided
	                   ? tn__trial_report(&search->unchanged_card)->exit_status
	               : tn__fix_chosen(fixes, NULL) != NULL ? TN_EXIT_FITS
	                                                     : TN_EXIT_OUT_OF_MEMORY;
	if (search->options->apply == NULL || fixes->interrupted)
		return TN_OK;
	const struct tn_fix_change *change = tn__fix_chosen(fixes, search->options->apply);
	return change != NULL ? tn__fix_apply(search->options, change->changes, exit_status) : TN_OK;
}

static void
clear(struct tn_fix_search *search)
{
	for (int i = 0; i < search->count; i++) {
		tn__trial_clear(&search->attempts[i].large);
		tn__trial_clear(&search->attempts[i].card);
		tn__trial_clear(&search->attempts[i].less);
		tn__trial_clear(&search->attempts[i].patched);
		tn__search_commands_free(&search->attempts[i].commands);
		if (!search->attempts[i].kept)
			tn__fix_change_free(&search->attempts[i].found);
	}
	tn__trial_clear(&search->unchanged_card);
	tn__trial_clear(&search->unchanged_large);
	tn__trial_clear(&search->survey);
	tn__late_news_free(search->late_news);
	tn__command_free(&search->then_words);
	free(search->attempts);
	free(search);
}

/* A search that was made with forks, and they turned out not to be the same. All zero: there was none. */
struct again {
	bool wanted; /* it is to be made once more */
	double started;
	struct tn_forks forks; /* which say why */
};

/* True where nothing counts that the trials have told. */
static bool
was_mistaken(const struct tn_trials *trials, struct again *again)
{
	if (trials->mistaken && trials->interrupted_by == 0)
		*again = (struct again){ .wanted = true, .started = trials->started, .forks = trials->server };
	return again->wanted;
}

/* The trials of a search that begins, or begins again without forks. */
static void
begin(struct tn_trials *trials, struct again *again)
{
	trials->begins_again = true;
	if (again->wanted) {
		trials->forks = again->wanted = false;
		trials->server = again->forks;
		trials->started = again->started;
	}
}

/* Where the command was interrupted before it was known that a fork is the program, or what the program as it is shows, nothing is proven. */
static void
forget_what_is_unchecked(struct tn_fix_search *search)
{
	if (tn__trials_are_checked(&search->trials) && search->survey.end != TN_TRIAL_STOPPED)
		return;
	for (int i = 0; i < search->count; i++)
		if (search->attempts[i].found.end == TN_FIX_FITS)
			search->attempts[i].found.end = TN_FIX_UNKNOWN;
}

static tn_status
run_search(struct tn_fix_search *search, struct again *again, int *exit_status)
{
	struct tn_fixes fixes;
	bool dry;
	TN_FORWARD_IF_ERROR(tn__search_make_trials(&search->options->search, &search->place, &search->trials, &search->line,
	                                           &dry, exit_status));
	if (dry || was_mistaken(&search->trials, again))
		return TN_OK;
	tn__fix_say_what_fits(search);
	forget_what_is_unchecked(search);
	*exit_status = search->failure_status;
	TN_RETURN_IF(search->failure != NULL, TN_STATE, "%s", search->failure);
	tn__search_place_say(&search->options->search, &search->trials, NULL);
	tn__fix_list(search, &fixes);
	*exit_status = TN_EXIT_OWN_FAILURE;
	tn_status status = finish(search, &fixes, exit_status);
	tn__fixes_free(&fixes);
	return status;
}

static tn_status
search_once(const struct tn_fix_options *options, struct again *again, int *exit_status)
{
	*exit_status = TN_EXIT_USAGE;
	struct tn_fix_search *search = calloc(1, sizeof(*search));
	TN_RETURN_IF(search == NULL, TN_NO_MEMORY, "out of host memory");
	search->options = options;
	search->first_seconds = -1;
	search->allowed = TN_GUARANTEE_ROUNDING;
	search->need = search->missing = TN_NO_FIGURE;
	search->attempts = calloc(TN_FIX_ATTEMPTS, sizeof(*search->attempts));
	search->trials = tn__fix_trials(search);
	begin(&search->trials, again);
	if (options->search.run.request_count > 0) /* one port, which two servers cannot have */
		search->trials.wanted_jobs = 1;
	search->trials.forks = search->trials.forks && options->search.run.host_memory_bytes == 0;
	search->line = tn__progress_line_of(&options->search.run);
	tn_status status = search->attempts != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status == TN_OK)
		status = tn__search_card(&options->search, options->search.run.gpu, &search->card, exit_status);
	search->words = search->card.options.arguments;
	if (status == TN_OK && options->patch_path != NULL)
		status = tn__check_writable(options->patch_path);
	if (status == TN_OK)
		status = run_search(search, again, exit_status);
	clear(search);
	return status;
}

tn_status
tn_fix(const struct tn_fix_options *options, int *exit_status)
{
	struct again again = { 0 };
	if (options->apply != NULL && !tn__fix_is_number(options->apply))
		return tn__fix_apply(options, options->apply, exit_status);
	tn_status status = search_once(options, &again, exit_status);
	return status == TN_OK && again.wanted ? search_once(options, &again, exit_status) : status;
}
