/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage gpus: cards of the catalogue by name, and this machine's GPU measured.
 */
#include "tonnage/gpu.h"

#include "base/error.h"
#include "gpu/catalogue.h"
#include "gpu/machine.h"
#include "report/document.h"
#include "report/gpus.h"

const char *
tn_gpus_alias_at(size_t index)
{
	const struct tn_gpu_row *row = index < (size_t)tn__gpu_count() ? tn__gpu_row((int)index) : NULL;
	return row != NULL ? row->figures.alias : NULL;
}

tn_status
tn_gpus_write(FILE *out, const char *name, bool json)
{
	struct tn_shown_cards cards = { NULL };
	TN_RETURN_IF(tn__gpu_count() == 0, TN_FORMAT, "the catalogue inside this build is malformed");
	if (name != NULL)
		TN_FORWARD_IF_ERROR(tn__gpu_named(name, &cards.only));
	return json ? tn__gpus_document.json(&cards, out) : tn__gpus_document.text(&cards, tn__style_of(out), out);
}

tn_status
tn_gpus_probe(FILE *out)
{
	struct tn_gpu_figures card;
	char evidence[320];
	TN_FORWARD_IF_ERROR(tn__machine_probe(&card, evidence, sizeof(evidence)));
	return tn__card_row(&card, evidence, out);
}
