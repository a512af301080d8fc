/* SPDX-License-Identifier: Apache-2.0
 *
 * Which card the program is to see, and how well its figures are known.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "gpu/machine.h"
#include "supervise/internal.h"

#define DEFAULT_CARD "rtx3060"
#define LEAST_CARD ((uint64_t)1 << 20) /* bytes: below, a unit was left out */

static void
from_catalogue(const struct tn_gpu_row *row, struct tn_card *out)
{
	enum tn_certainty total = tn__gpu_figure_certainty(row, TN_GPU_FIGURE_TOTAL);
	enum tn_certainty context = tn__gpu_figure_certainty(row, TN_GPU_FIGURE_CONTEXT);
	out->figures = row->figures;
	out->context_share = tn__gpu_context_share(context);
	snprintf(out->total_source, sizeof(out->total_source), "catalogue (%s)", tn__certainty_text(total));
	snprintf(out->context_source, sizeof(out->context_source), "catalogue (%s)", tn__certainty_text(context));
}

static tn_status
from_machine(struct tn_card *out)
{
	int count;
	TN_FORWARD_IF_ERROR(tn__machine_gpu(&out->figures, &count));
	const struct tn_gpu_row *row = tn__gpu_find(out->figures.name);
	enum tn_certainty context = row != NULL ? tn__gpu_figure_certainty(row, TN_GPU_FIGURE_CONTEXT) : TN_CERTAINTY_GUESS;
	out->context_share = tn__gpu_context_share(context);
	snprintf(out->total_source, sizeof(out->total_source), "the driver of this machine");
	snprintf(out->context_source, sizeof(out->context_source), "%s (%s)",
	         row != NULL ? "catalogue" : "catalogue's nearest card", tn__certainty_text(context));
	return TN_OK;
}

static tn_status
by_name(const char *name, struct tn_card *out)
{
	const struct tn_gpu_row *row;
	TN_FORWARD_IF_ERROR(tn__gpu_named(name, &row));
	from_catalogue(row, out);
	return TN_OK;
}

static tn_status
choose(const struct tn_run_options *options, struct tn_card *out)
{
	if (strcmp(options->gpu, "real") == 0) {
		out->real = true;
		return from_machine(out);
	}
	if (strcmp(options->gpu, "auto") != 0)
		return by_name(options->gpu, out);
	return from_machine(out) == TN_OK ? TN_OK : by_name(DEFAULT_CARD, out);
}

tn_status
tn__card_choose(const struct tn_run_options *options, struct tn_card *out)
{
	struct tn_card card = { .real = false };
	TN_FORWARD_IF_ERROR(choose(options, &card));
	bool changed = options->memory_bytes != 0 || options->other_bytes != 0 || options->gpus != 1;
	TN_RETURN_IF(card.real && changed, TN_INVALID, "--memory, --other and --gpus need a virtual GPU, not --gpu real");
	TN_RETURN_IF(options->memory_bytes != 0 && options->memory_bytes < LEAST_CARD, TN_INVALID,
	             "--memory: no card has only %llu bytes; sizes take a unit, as in 12GiB",
	             (unsigned long long)options->memory_bytes);
	if (options->memory_bytes != 0) {
		card.figures.total_bytes = options->memory_bytes;
		snprintf(card.total_source, sizeof(card.total_source), "--memory");
	}
	TN_RETURN_IF(options->other_bytes >= card.figures.total_bytes, TN_INVALID,
	             "--other is as large as the card itself (%llu bytes)", (unsigned long long)card.figures.total_bytes);
	*out = card;
	return TN_OK;
}
