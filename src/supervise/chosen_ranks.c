/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks of a job are run where not all are (doc/design/0031-absent-ranks.md).
 */
#include <stdio.h>

#include "base/error.h"
#include "base/ranges.h"
#include "device/ledger.h"
#include "supervise/internal.h"

static void
add(struct tn_chosen_ranks *chosen, int rank)
{
	if (chosen->count == 0 || rank > chosen->ranks[chosen->count - 1])
		chosen->ranks[chosen->count++] = rank;
}

/* The first, the second and the last of each coordinate, as far as these are known before the program has started: place in the
 * node, and node. The last but one shows whether those between are like the second or like the last. */
static void
choose(const struct tn_run_options *options, struct tn_chosen_ranks *chosen)
{
	int each = options->gpus, all = options->gpus * options->nodes;
	const int wanted[] = { 0, 1, each - 1, each, all - 2, all - 1 };
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (wanted[i] < all)
			add(chosen, wanted[i]);
}

tn_status
tn__choose_ranks(const struct tn_run_options *options, struct tn_chosen_ranks *chosen)
{
	int last = -1, length = 0;
	*chosen = (struct tn_chosen_ranks){ .nodes = 1 };
	if (options->nodes <= 1 && options->ranks == NULL)
		return TN_OK;
	if (options->ranks == NULL)
		choose(options, chosen);
	else
		chosen->count = tn__ranges_read(options->ranks, chosen->ranks, TN_LEDGER_RANKS);
	TN_RETURN_IF(chosen->count < 1, TN_INVALID,
	             "--ranks takes up to %d numbers in rising order, such as 0,1,7 or 0-3,15", TN_LEDGER_RANKS);
	TN_RETURN_IF(chosen->ranks[0] != 0, TN_INVALID, "--ranks has to contain rank 0, where the others meet");
	TN_RETURN_IF(chosen->ranks[chosen->count - 1] >= options->gpus * options->nodes, TN_INVALID,
	             "--ranks names rank %d of a job that has %d: --nodes %d with --gpus %d each",
	             chosen->ranks[chosen->count - 1], options->gpus * options->nodes, options->nodes, options->gpus);
	chosen->nodes = 0;
	for (int i = 0; i < chosen->count; i++) {
		chosen->nodes += chosen->ranks[i] / options->gpus != last;
		last = chosen->ranks[i] / options->gpus;
		length += snprintf(chosen->text + length, sizeof(chosen->text) - (size_t)length, "%s%d", i > 0 ? "," : "",
		                   chosen->ranks[i]);
	}
	TN_RETURN_IF(chosen->nodes * options->gpus > TN_MAX_DEVICES, TN_INVALID,
	             "--ranks: on %d nodes of %d cards, more than %d cards: choose ranks of fewer nodes", chosen->nodes,
	             options->gpus, TN_MAX_DEVICES);
	return TN_OK;
}
