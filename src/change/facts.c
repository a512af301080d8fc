/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of changes. The shares only decide what is tried first; what a change saves is measured.
 */
#include "change/facts.h"

#include <string.h>

#include "base/words.h"
#include "tonnage/fix.h" /* tn_change_at */

static const struct tn_change_facts rows[] = {
#define CHANGE(id, title, results, conflicts, cost, parameters, gradients, state, activations, temporaries, rounding, \
               phases, choice)                                                                                        \
	{                                                                                                                 \
		#id,                                                                                                          \
		title,                                                                                                        \
		TN_GUARANTEE_##results,                                                                                       \
		conflicts,                                                                                                    \
		cost,                                                                                                         \
		parameters,                                                                                                   \
		gradients,                                                                                                    \
		state,                                                                                                        \
		activations,                                                                                                  \
		temporaries,                                                                                                  \
		rounding,                                                                                                     \
		phases,                                                                                                       \
		TN_CHOICE_##choice                                                                                            \
	},
#include "change_facts.def"
#undef CHANGE
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

const struct tn_change_facts *
tn__change_facts_at(size_t index)
{
	return index < ROWS ? &rows[index] : NULL;
}

const char *
tn_change_at(size_t index, const char **title)
{
	const struct tn_change_facts *row = tn__change_facts_at(index);
	if (row != NULL && title != NULL)
		*title = row->title;
	return row != NULL ? row->id : NULL;
}

const struct tn_change_facts *
tn__change_facts(const char *part)
{
	static const struct tn_change_facts unknown = { .id = "",
		                                            .title = "",
		                                            .results = TN_GUARANTEE_DIFFERENT,
		                                            .conflicts = "",
		                                            .cost = 3,
		                                            .activations = 0.5,
		                                            .temporaries = 0.5,
		                                            .phases = "" };
	for (size_t i = 0; i < ROWS; i++)
		if (tn__change_is(part, rows[i].id))
			return &rows[i];
	return &unknown;
}

static bool
refuses(const char *one, const char *two)
{
	char id[64];
	return tn__has_word(tn__change_facts(one)->conflicts, tn__change_id(two, id));
}

bool
tn__change_conflicts(const char *one, const char *two)
{
	return refuses(one, two) || refuses(two, one);
}

bool
tn__change_helps_in(const struct tn_change_facts *facts, const char *phase)
{
	return facts->phases[0] == '\0' || phase == NULL || tn__has_word(facts->phases, phase);
}
