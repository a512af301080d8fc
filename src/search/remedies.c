/* SPDX-License-Identifier: Apache-2.0
 *
 * What a change may do for a run, by the facts of the change and what the run's peak was made of.
 */
#include "search/remedies.h"

#include <string.h>

#include "verdict/finding_rows.h"

bool
tn__finding_is_room(const char *id)
{
	enum tn_finding_id finding = tn__finding_of(id);
	return finding != TN_FINDINGS && tn__finding_row(finding)->kind == TN_KIND_ROOM;
}

/* True when the remedy is a remedy of the finding, or cause, of that name (NULL: none); *mistake: which is no want of room. */
static bool
is_remedy(const struct tn_change_facts *facts, const char *id, bool *mistake)
{
	enum tn_finding_id finding = tn__finding_of(id);
	*mistake = finding != TN_FINDINGS && tn__finding_row(finding)->kind == TN_KIND_MISTAKE;
	return tn__finding_has_remedy(finding, facts->id);
}

bool
tn__remedy_fits(const struct tn_change_facts *facts, const struct tn_trial *unchanged, bool *not_of_room)
{
	const struct tn_report *report = tn__trial_report(unchanged);
	bool mistake, found = is_remedy(facts, report->oom.cause, &mistake);
	*not_of_room = found && report->finding_count == 0 && mistake;
	for (size_t i = 0; i < report->finding_count; i++) {
		if (!is_remedy(facts, report->findings[i].id, &mistake))
			continue;
		found = true;
		*not_of_room |= i == 0 && mistake; /* the first is what is wrong, the others stand beside it */
	}
	return found;
}

bool
tn__remedy_is_told(const struct tn_trial *large)
{
	return tn__trial_report(large)->at_peak.by_category[TN_CATEGORY_parameters] != TN_NO_FIGURE;
}

static double
held_by(const struct tn_report_moment *moment, enum tn_category category)
{
	return moment->by_category[category] != TN_NO_FIGURE ? (double)moment->by_category[category] : 0;
}

int64_t
tn__remedy_most(const struct tn_change_facts *facts, const struct tn_trial *large, int pieces)
{
	const struct tn_report_moment *peak = &tn__trial_report(large)->at_peak;
	if (!tn__remedy_is_told(large))
		return tn__trial_report(large)->device_peak; /* unknown */
	/* In an evaluation the graph is not walked: what it holds is told as temporaries. */
	bool evaluates = peak->phase != NULL && strcmp(peak->phase, "evaluation") == 0;
	double temporaries = evaluates && facts->activations > facts->temporaries ? facts->activations : facts->temporaries;
	/* What is cached there is no need of the program's (tn__fix_need). */
	double passing = facts->activations * held_by(peak, TN_CATEGORY_activations) +
	                 temporaries * (held_by(peak, TN_CATEGORY_temporaries) + held_by(peak, TN_CATEGORY_other)) +
	                 facts->rounding * held_by(peak, TN_CATEGORY_rounding);
	if (!tn__change_helps_in(facts, peak->phase))
		return 0;
	double most = facts->parameters * held_by(peak, TN_CATEGORY_parameters) +
	              facts->gradients * held_by(peak, TN_CATEGORY_gradients) +
	              facts->state * held_by(peak, TN_CATEGORY_optimizer_state);
	if (pieces > 1)
		passing = (passing + held_by(peak, TN_CATEGORY_inputs)) * (1.0 - 1.0 / pieces);
	return (int64_t)(most + passing);
}
