/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of each change before it is tried. The table is python/tonnage/changes/table.py; the build makes ours of it
 * (build_facts.py). What depends on the program comes with the survey (change_results.h). Immutable.
 */
#ifndef TN_CHANGE_FACTS_H
#define TN_CHANGE_FACTS_H

#include "change/change.h"

/* How `fix` chooses among the values of a change. */
enum tn_change_choice {
	TN_CHOICE_FIRST,            /* the first one */
	TN_CHOICE_PIECES,           /* of a batch: the fewest that should do, and the next */
	TN_CHOICE_BATCH,            /* the largest half, quarter ... of a batch that should do, and the next */
	TN_CHOICE_EVALUATION_BATCH, /* the same of the batch of evaluation */
	TN_CHOICE_SETTINGS,         /* all where they should do, else the first */
	TN_CHOICE_OPTION_VALUES     /* words for the program's command line: the first two that should do */
};

struct tn_change_facts {
	const char *id, *title;
	enum tn_guarantee results;
	const char *conflicts; /* ids of changes that it does not go together with, separated by spaces */
	int cost;              /* rank of the time it costs a step, least first; two equal ones cost about the same */
	/* the most that it may save of each, as a share */
	double parameters, gradients, state, activations, temporaries, rounding;
	const char *phases; /* words: it helps only where the peak is in one of these; "": in any */
	enum tn_change_choice choice;
};

/* The row at that place; NULL behind the last. */
const struct tn_change_facts *tn__change_facts_at(size_t index);
/* The row of the change that a part is of ("accumulate=4"); one that knows nothing, with the id "", for an unknown name. */
const struct tn_change_facts *tn__change_facts(const char *part);
/* True where one of two parts says that it does not go together with the other. */
bool tn__change_conflicts(const char *one, const char *two);
/* True where the peak of that phase (NULL: unknown) is one at which the change helps. */
bool tn__change_helps_in(const struct tn_change_facts *facts, const char *phase);

#endif
