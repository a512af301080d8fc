/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of cures. The shares only decide what is tried first; what a change saves is measured.
 */
#include "search/cures.h"

#include <string.h>

#include "verdict/finding_rows.h"

/* id, cost, shares of parameters, gradients, state, activations, temporaries, rounding, phases */
static const struct tn_cure cures[] = {
	{ "alloc", 0, 0, 0, 0, 0, 0, 1, NULL },
	{ "memory_fraction", 0, 0, 0, 0, 0, 0, 0, NULL },
	{ "zero_grad", 0, 0, 1, 0, 0, 0, 0, NULL },
	{ "no_grad", 0, 0, 0, 0, 1, 0, 0, NULL },
	{ "detach", 0, 0, 0, 0, 1, 1, 0, NULL },
	{ "outputs_to_host", 1, 0, 0, 0, 1, 1, 0, NULL },
	{ "eval_accumulation", 0, 0, 0, 0, 0, 1, 0, NULL },
	{ "data_on_host", 1, 0, 0, 0, 0, 1, 0, NULL },
	{ "copies_to_host", 0, 0, 0, 0, 0, 1, 0, NULL },
	{ "release_holders", 0, 1, 0, 1, 0, 1, 0, NULL },
	{ "prune_remove", 0, 1, 0, 0, 0, 1, 0, NULL },
	{ "release_outputs", 0, 0, 0, 0, 0.3, 1, 0, "backward" },
	{ "bucket_view", 0, 0, 0, 0, 0, 1, 0, NULL },
	{ "fused", 0, 0, 0, 0, 0, 1, 0, "optimizer" },
	{ "foreach", 1, 0, 0, 0, 0, 1, 0, "optimizer" },
	{ "step_in_backward", 1, 0, 1, 0, 0, 0, 0, NULL },
	{ "sdpa", 0, 0, 0, 0, 0.9, 0.9, 0, "forward backward evaluation generation" },
	{ "chunked_loss", 1, 0, 0, 0, 0.3, 1, 0, "forward backward" },
	{ "option_accumulate", 2, 0, 0, 0, 1, 1, 1, NULL },
	{ "option_batch", 2, 0, 0, 0, 1, 1, 1, NULL },
	{ "option_checkpoint", 4, 0, 0, 0, 0.9, 0.3, 0, NULL },
	{ "option_precision", 0, 0, 0, 0, 0.5, 0.5, 0, NULL },
	{ "option_optimizer", 1, 0, 0, 1, 0, 0.5, 0, NULL },
	{ "option_length", 1, 0, 0, 0, 1, 1, 0, NULL },
	{ "option_resolution", 1, 0, 0, 0, 1, 1, 0, NULL },
	{ "accumulate", 2, 0, 0, 0, 1, 1, 1, NULL },
	{ "checkpoint", 4, 0, 0, 0, 0.9, 0.3, 0, NULL },
	{ "train_mode", 0, 0, 0, 0, 0.9, 0.3, 0, NULL },
	{ "offload_activations", 6, 0, 0, 0, 0.9, 0, 0, NULL },
	{ "offload_optimizer", 7, 0, 0, 1, 0, 1, 0, NULL },
	{ "kv_cache", 5, 0, 0, 0, 0, 1, 0, NULL },
	{ "evaluation_batch", 1, 0, 0, 0, 1, 1, 1, "evaluation" },
	{ "autocast", 0, 0, 0, 0, 0.5, 0.5, 0, NULL },
	{ "bf16_weights", 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0, NULL },
	{ "half_weights", 0, 0.5, 0, 0, 0.5, 0.5, 0, NULL },
	{ "int8_weights", 2, 0.75, 0, 0, 0, 0, 0, NULL },
	{ "batch", 1, 0, 0, 0, 1, 1, 1, NULL },
	{ "sgd_no_momentum", 0, 0, 0, 1, 0, 0.5, 0, NULL },
	{ "adafactor", 1, 0, 0, 1, 0, 0.5, 0, NULL },
	{ "adam8bit", 1, 0, 0, 0.75, 0, 0.5, 0, NULL },
	{ "kv_cache_limit", 0, 0, 0, 0, 0, 1, 0, NULL },
};

const struct tn_cure *
tn__cure_of(const char *id)
{
	static const struct tn_cure unknown = { "", 3, 0, 0, 0, 0.5, 0.5, 0, NULL };
	for (size_t i = 0; i < sizeof(cures) / sizeof(cures[0]); i++)
		if (strcmp(cures[i].id, id) == 0)
			return &cures[i];
	return &unknown;
}

static bool
names(const char *words, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
		if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

bool
tn__finding_is_room(const char *id)
{
	enum tn_finding_id finding = tn__finding_of(id);
	return finding != TN_FINDINGS && tn__finding_row(finding)->kind == TN_KIND_ROOM;
}

/* True when the cure is a remedy of the finding, or cause, of that name (NULL: none); *mistake: which is no want of room. */
static bool
is_remedy(const struct tn_cure *cure, const char *id, bool *mistake)
{
	enum tn_finding_id finding = tn__finding_of(id);
	*mistake = finding != TN_FINDINGS && tn__finding_row(finding)->kind == TN_KIND_MISTAKE;
	return tn__finding_has_remedy(finding, cure->id);
}

bool
tn__cure_fits(const struct tn_cure *cure, const struct tn_trial *unchanged, bool *not_of_room)
{
	const struct tn_report *report = tn__trial_report(unchanged);
	bool mistake, found = is_remedy(cure, report->oom.cause, &mistake);
	*not_of_room = found && report->finding_count == 0 && mistake;
	for (size_t i = 0; i < report->finding_count; i++) {
		if (!is_remedy(cure, report->findings[i].id, &mistake))
			continue;
		found = true;
		*not_of_room |= i == 0 && mistake; /* the first is what is wrong, the others stand beside it */
	}
	return found;
}

bool
tn__cure_is_told(const struct tn_trial *large)
{
	return tn__trial_report(large)->at_peak.by_category[TN_CATEGORY_parameters] != TN_NO_FIGURE;
}

static double
held_by(const struct tn_report_moment *moment, enum tn_category category)
{
	return moment->by_category[category] != TN_NO_FIGURE ? (double)moment->by_category[category] : 0;
}

int64_t
tn__cure_most(const struct tn_cure *cure, const struct tn_trial *large, int pieces)
{
	const struct tn_report_moment *peak = &tn__trial_report(large)->at_peak;
	if (!tn__cure_is_told(large))
		return tn__trial_report(large)->device_peak; /* unknown */
	/* What is cached there is no need of the program's (tn__fix_need). */
	double passing = cure->activations * held_by(peak, TN_CATEGORY_activations) +
	                 cure->temporaries * (held_by(peak, TN_CATEGORY_temporaries) + held_by(peak, TN_CATEGORY_other)) +
	                 cure->rounding * held_by(peak, TN_CATEGORY_rounding);
	if (cure->phases != NULL && peak->phase != NULL && !names(cure->phases, peak->phase))
		return 0;
	double most = cure->parameters * held_by(peak, TN_CATEGORY_parameters) +
	              cure->gradients * held_by(peak, TN_CATEGORY_gradients) +
	              cure->state * held_by(peak, TN_CATEGORY_optimizer_state);
	if (pieces > 1)
		passing = (passing + held_by(peak, TN_CATEGORY_inputs)) * (1.0 - 1.0 / pieces);
	return (int64_t)(most + passing);
}
