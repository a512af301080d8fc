/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a patch does what was tried. What acts while the program runs writes its patch from what it has seen: the text is other than
 * what ran, so what stands first in the list is tried once more from the text that its patch makes.
 */
#include <stdlib.h>
#include <string.h>

#include "search/fix_search.h"

#define LONGEST_PATCH (100 << 10) /* it travels in an environment variable, which Linux bounds by 128 KiB */

/* True where the patch is all that there is to be done, besides the command line, and a trial on this machine can be made of it. A
 * notebook's is one of its file, which runs cell by cell. */
static bool
can_be_tried(const struct tn_fix_search *search, const struct tn_fix_change *found)
{
	for (size_t i = 0; i < found->part_count; i++)
		if (tn__change_is(found->parts[i], "alloc"))
			return false;
	return search->trials.store == NULL && search->trials.engine == NULL && search->card.options.then_count == 0 &&
	       search->card.options.request_count == 0 && strlen(found->patch) < LONGEST_PATCH &&
	       strstr(found->patch, ".ipynb") == NULL;
}

struct tn_attempt *
tn__fix_with_untried_patch(struct tn_fix_search *search)
{
	struct tn_attempt *first = NULL;
	for (int i = 0; i < search->count; i++) {
		struct tn_attempt *attempt = &search->attempts[i];
		if (attempt->found.end == TN_FIX_FITS &&
		    (first == NULL || tn__fix_comes_before(&attempt->found, &first->found)))
			first = attempt;
	}
	if (first == NULL || first->found.patch == NULL || first->found.patch_tried ||
	    first->patched.end != TN_TRIAL_WAITS || !can_be_tried(search, &first->found))
		return NULL;
	return first;
}

/* What was said of the patch as it was applied; NULL: nothing. */
static const struct tn_change_result *
said_of_patch(const struct tn_trial *trial)
{
	const struct tn_change_results *results = &trial->outcome.changes;
	const struct tn_change_result *found = NULL;
	for (size_t i = 0; i < results->count; i++)
		for (size_t j = 0; j < results->processes[i].count; j++) {
			const struct tn_change_result *result = &results->processes[i].items[j];
			if (result->id != NULL && strcmp(result->id, "patch") == 0 && !result->found_nothing)
				found = result;
		}
	return found;
}

/* Why the patch is none; the caller frees; NULL: it does what was tried, or it is not known. */
static char *
fault_of(const struct tn_fix_search *search, const struct tn_attempt *attempt, const struct tn_change_result *said)
{
	const struct tn_trial *trial = &attempt->patched;
	const struct tn_report *report = tn__trial_report(trial);
	char *why = NULL;
	if (!said->applied)
		return said->why_not != NULL ? strdup(said->why_not) : NULL;
	if (report->verdict == TN_VERDICT_FAILED)
		return strdup(report->exception != NULL ? report->exception : "the program failed with it");
	if (!tn__trial_fits(trial))
		return strdup("the program did not fit with it");
	if (attempt->found.results != TN_GUARANTEE_DIFFERENT)
		why = tn__fix_other_updates(search, trial);
	return why;
}

void
tn__fix_judge_patched(const struct tn_fix_search *search, struct tn_attempt *attempt)
{
	const struct tn_trial *trial = &attempt->patched;
	const struct tn_change_result *said = said_of_patch(trial);
	struct tn_fix_change *found = &attempt->found;
	char *why, *how = NULL;
	if (trial->end != TN_TRIAL_DONE || tn__trial_report(trial)->verdict == TN_VERDICT_UNDECIDED || said == NULL)
		return;
	why = fault_of(search, attempt, said);
	found->patch_tried = why == NULL;
	if (why != NULL && asprintf(&how, "%s\nThere is no patch of it: as a patch it did something else (%s).",
	                            found->how != NULL ? found->how : "", why) >= 0) {
		free(found->how);
		found->how = how;
		tn__replace_text(&found->patch, NULL);
	}
	free(why);
}
