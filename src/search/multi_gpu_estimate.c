/* SPDX-License-Identifier: Apache-2.0
 *
 * What each of several cards would hold, by arithmetic on the peak of one: doc/design/0017-more-cards.md. Nothing is tried.
 */
#include "search/fix_search.h"

#define UNITS_GATHERED 2 /* FSDP has the parameters of one unit whole, and fetches the next meanwhile */

struct parts {
	int64_t parameters, gradients, state, passing, fixed;
	int64_t all_gradients; /* at the update */
	int64_t unit;          /* parameters of one block */
};

static int64_t
held_by(const struct tn_report *whole, enum tn_category category)
{
	int64_t bytes = whole->at_peak.by_category[category];
	return bytes != TN_NO_FIGURE ? bytes : 0;
}

static int64_t
at_least(int64_t one, int64_t two)
{
	return one > two ? one : two;
}

static struct parts
parts_of(const struct tn_report *whole, int64_t blocks)
{
	struct parts parts = { .parameters = held_by(whole, TN_CATEGORY_parameters),
		                   .gradients = held_by(whole, TN_CATEGORY_gradients),
		                   .state = held_by(whole, TN_CATEGORY_optimizer_state) };
	parts.passing = held_by(whole, TN_CATEGORY_activations) + held_by(whole, TN_CATEGORY_inputs) +
	                held_by(whole, TN_CATEGORY_temporaries) + held_by(whole, TN_CATEGORY_rounding);
	parts.fixed = tn__fix_need(whole) - parts.parameters - parts.gradients - parts.state - parts.passing;
	/* of frozen parameters there is no state, and no gradient */
	int64_t trained = parts.state > 0 && parts.state < parts.parameters ? parts.state : parts.parameters;
	parts.all_gradients = at_least(parts.gradients, trained);
	parts.unit = parts.parameters / at_least(blocks, 1);
	return parts;
}

static int64_t
with_ddp(const struct parts *parts, int cards)
{
	int64_t held = parts->fixed + parts->parameters + parts->state;
	return at_least(held + parts->gradients + parts->passing / cards, held + parts->all_gradients);
}

static int64_t
with_fsdp(const struct parts *parts, int cards)
{
	int64_t held = parts->fixed + (parts->parameters + parts->state) / cards;
	int64_t gathered = (UNITS_GATHERED + 1) * parts->unit; /* and the gradients of one */
	return at_least(held + gathered + parts->gradients / cards + parts->passing / cards,
	                held + parts->all_gradients / cards);
}

void
tn__multi_gpu_estimate(const struct tn_fix_search *search, struct tn_fixes *out)
{
	static const struct {
		enum tn_cards_method method;
		int64_t (*bytes)(const struct parts *parts, int cards);
	} methods[] = { { TN_CARDS_FSDP, with_fsdp }, { TN_CARDS_DDP, with_ddp } };
	const struct tn_survey *survey = &search->unchanged_large.outcome.changes.survey;
	const struct tn_report *whole = tn__trial_report(&search->unchanged_large);
	int64_t room = (int64_t)search->card.total - search->card.hidden;
	if (search->missing == TN_NO_FIGURE || search->card.options.gpus != 1 || !survey->known || survey->backward <= 0 ||
	    whole->at_peak.by_category[TN_CATEGORY_parameters] == TN_NO_FIGURE)
		return;
	struct parts parts = parts_of(whole, survey->blocks);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		for (int cards = 2; cards <= 8 && (search->batch == 0 || cards <= search->batch); cards *= 2) {
			int64_t bytes = methods[i].bytes(&parts, cards);
			if (bytes > room)
				continue;
			out->multi_gpu[out->multi_gpu_count++] = (struct tn_multi_gpu_estimate){ methods[i].method, cards, bytes };
			break;
		}
}
