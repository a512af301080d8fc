/* SPDX-License-Identifier: Apache-2.0
 *
 * What each of several cards would hold, by arithmetic on the peak of one: doc/design/0017-more-cards.md. Nothing is tried.
 */
#include "run/fix_search.h"

#define UNITS_GATHERED 2 /* FSDP has the parameters of one unit whole, and fetches the next meanwhile */

struct parts {
	int64_t parameters, gradients, state, passing, fixed;
	int64_t all_gradients; /* at the update */
	int64_t unit;          /* parameters of one block */
};

static int64_t
figure(const json_t *categories, const char *name)
{
	return json_integer_value(json_object_get(categories, name));
}

static int64_t
at_least(int64_t one, int64_t two)
{
	return one > two ? one : two;
}

static struct parts
parts_of(const struct tn_trial *whole, const json_t *facts)
{
	const json_t *categories = json_object_get(json_object_get(whole->report, "at_peak"), "by_category");
	json_int_t blocks = json_integer_value(json_object_get(facts, "blocks"));
	struct parts parts = { .parameters = figure(categories, "parameters"), .gradients = figure(categories, "gradients"),
		                   .state = figure(categories, "optimizer_state") };
	parts.passing = figure(categories, "activations") + figure(categories, "inputs") + figure(categories, "temporaries") +
	                figure(categories, "rounding") + figure(categories, "cached");
	parts.fixed = tn__trial_figure(whole, "peak", "device_bytes") - parts.parameters - parts.gradients - parts.state -
	              parts.passing;
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
tn__more_cards(const struct tn_fix_search *search, struct tn_fixes *out)
{
	static const struct {
		enum tn_cards_method method;
		int64_t (*bytes)(const struct parts *parts, int cards);
	} methods[] = { { TN_CARDS_FSDP, with_fsdp }, { TN_CARDS_DDP, with_ddp } };
	const json_t *facts = json_object_get(tn__trial_told(&search->unchanged_large, "survey"), "facts");
	const json_t *categories = json_object_get(json_object_get(search->whole->report, "at_peak"), "by_category");
	int64_t room = (int64_t)search->card.total - search->card.hidden;
	if (search->missing == TN_NO_FIGURE || search->card.options.gpus != 1 ||
	    json_integer_value(json_object_get(facts, "backward")) == 0 ||
	    !json_is_integer(json_object_get(categories, "parameters")))
		return;
	struct parts parts = parts_of(search->whole, facts);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		for (int cards = 2; cards <= 8 && (search->batch == 0 || cards <= search->batch); cards *= 2) {
			int64_t bytes = methods[i].bytes(&parts, cards);
			if (bytes > room)
				continue;
			out->more_cards[out->more_cards_count++] = (struct tn_more_cards){ methods[i].method, cards, bytes };
			break;
		}
}
