/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of cures. The shares only decide what is tried first; what a change saves is measured.
 */
#include "search/cures.h"

#include <string.h>

/* id, cost, causes, not of room, shares of parameters, gradients, state, activations, temporaries, cached, phases */
static const struct tn_cure cures[] = {
	{ "alloc", 0, "fragmentation", "fragmentation", 0, 0, 0, 0, 0, 1, NULL },
	{ "memory_fraction", 0, "memory_fraction_limit", "memory_fraction_limit", 0, 0, 0, 0, 0, 0, NULL },
	{ "zero_grad", 0, "gradients_live_through_forward", "gradients_live_through_forward", 0, 1, 0, 0, 0, 0, NULL },
	{ "no_grad", 0, "evaluation_with_graph growth leak_suspected", "evaluation_with_graph growth leak_suspected", 0, 0, 0, 1,
	  0, 0, NULL },
	{ "detach", 0, "growth leak_suspected", "growth leak_suspected", 0, 0, 0, 1, 1, 0, NULL },
	{ "outputs_to_host", 1, "growth growing_cat leak_suspected", "growth growing_cat leak_suspected", 0, 0, 0, 1, 1, 0, NULL },
	{ "eval_accumulation", 0, "growth leak_suspected", "growth leak_suspected", 0, 0, 0, 0, 1, 0, NULL },
	{ "data_on_host", 1, "dataset_on_device leak_suspected", "dataset_on_device leak_suspected", 0, 0, 0, 0, 1, 0, NULL },
	{ "copies_to_host", 0, "model_copy", "model_copy", 0, 0, 0, 0, 1, 0, NULL },
	{ "release_holders", 0, "deleted_but_held", "deleted_but_held", 1, 0, 1, 0, 1, 0, NULL },
	{ "prune_remove", 0, "pruning_masks", "pruning_masks", 1, 0, 0, 0, 1, 0, NULL },
	{ "release_outputs", 0, "large_temporaries", "", 0, 0, 0, 0.3, 1, 0, "backward" },
	{ "bucket_view", 0, "ddp_buckets", "ddp_buckets", 0, 0, 0, 0, 1, 0, NULL },
	{ "fused", 0, "foreach_temporaries", "", 0, 0, 0, 0, 1, 0, "optimizer" },
	{ "foreach", 1, "foreach_temporaries", "", 0, 0, 0, 0, 1, 0, "optimizer" },
	{ "step_in_backward", 1, "", "", 0, 1, 0, 0, 0, 0, NULL },
	{ "sdpa", 0, "large_activations attention_weights", "", 0, 0, 0, 0.9, 0.9, 0, "forward backward evaluation generation" },
	{ "chunked_loss", 1, "large_tensor large_temporaries logits", "", 0, 0, 0, 0.3, 1, 0, "forward backward" },
	{ "accumulate", 2, "batch_too_big", "", 0, 0, 0, 1, 1, 1, NULL },
	{ "checkpoint", 4, "", "", 0, 0, 0, 0.9, 0.3, 0, NULL },
	{ "train_mode", 0, "trained_in_eval", "", 0, 0, 0, 0.9, 0.3, 0, NULL },
	{ "offload_activations", 6, "", "", 0, 0, 0, 0.9, 0, 0, NULL },
	{ "offload_optimizer", 7, "optimizer_state", "", 0, 0, 1, 0, 1, 0, NULL },
	{ "kv_cache", 5, "kv_cache", "", 0, 0, 0, 0, 1, 0, NULL },
	{ "evaluation_batch", 1, "", "", 0, 0, 0, 1, 1, 1, "evaluation" },
	{ "autocast", 0, "", "", 0, 0, 0, 0.5, 0.5, 0, NULL },
	{ "bf16_weights", 0, "", "", 0.5, 0.5, 0.5, 0.5, 0.5, 0, NULL },
	{ "half_weights", 0, "", "", 0.5, 0, 0, 0.5, 0.5, 0, NULL },
	{ "int8_weights", 2, "", "", 0.75, 0, 0, 0, 0, 0, NULL },
	{ "batch", 1, "batch_too_big", "", 0, 0, 0, 1, 1, 1, NULL },
	{ "sgd_no_momentum", 0, "", "", 0, 0, 1, 0, 0.5, 0, NULL },
	{ "adafactor", 1, "optimizer_state", "", 0, 0, 1, 0, 0.5, 0, NULL },
	{ "adam8bit", 1, "optimizer_state", "", 0, 0, 0.75, 0, 0.5, 0, NULL },
	{ "kv_cache_limit", 0, "kv_cache", "", 0, 0, 0, 0, 1, 0, NULL },
};

const struct tn_cure *
tn__cure_of(const char *id)
{
	static const struct tn_cure unknown = { "", 3, "", "", 0, 0, 0, 0.5, 0.5, 0, NULL };
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
	static const char words[] = "batch_too_big model_too_big optimizer_state attention_weights logits kv_cache "
								"foreach_temporaries too_big_single_request large_activations large_temporaries "
								"large_tensor trained_in_eval";
	return names(words, id);
}

bool
tn__cure_fits(const struct tn_cure *cure, const struct tn_trial *unchanged, bool *not_of_room)
{
	const struct tn_report *report = tn__trial_report(unchanged);
	const char *cause = report->oom.cause;
	bool found = cause != NULL && names(cure->causes, cause);
	*not_of_room = found && report->finding_count == 0 && names(cure->not_of_room, cause);
	for (size_t i = 0; i < report->finding_count; i++) {
		const char *id = report->findings[i].id;
		if (!names(cure->causes, id))
			continue;
		found = true;
		*not_of_room |= i == 0 && names(cure->not_of_room, id); /* the first is what is wrong, the others stand beside it */
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
	double passing = cure->activations * held_by(peak, TN_CATEGORY_activations) +
	                 cure->temporaries * (held_by(peak, TN_CATEGORY_temporaries) + held_by(peak, TN_CATEGORY_other)) +
	                 cure->cached * (held_by(peak, TN_CATEGORY_cached) + held_by(peak, TN_CATEGORY_rounding));
	if (cure->phases != NULL && peak->phase != NULL && !names(cure->phases, peak->phase))
		return 0;
	double most = cure->parameters * held_by(peak, TN_CATEGORY_parameters) +
	              cure->gradients * held_by(peak, TN_CATEGORY_gradients) +
	              cure->state * held_by(peak, TN_CATEGORY_optimizer_state);
	if (pieces > 1)
		passing = (passing + held_by(peak, TN_CATEGORY_inputs)) * (1.0 - 1.0 / pieces);
	return (int64_t)(most + passing);
}
