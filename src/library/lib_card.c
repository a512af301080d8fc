/* SPDX-License-Identifier: Apache-2.0
 *
 * The public view of the catalogue, and the library's version.
 */
#include "base/error.h"
#include "gpu/catalogue.h"
#include "tonnage/card.h"
#include "tonnage/tonnage.h"

const char *
tn_version(void)
{
	return TONNAGE_VERSION;
}

static void
show(const struct tn_gpu_row *row, struct tn_card *card)
{
	const struct tn_gpu_figures *figures = &row->figures;
	*card = (struct tn_card){ .name = figures->name,
		                      .alias = figures->alias,
		                      .compute_major = figures->compute_major,
		                      .compute_minor = figures->compute_minor,
		                      .sm_count = figures->sm_count,
		                      .total_bytes = figures->total_bytes,
		                      .context_bytes = figures->context_bytes,
		                      .evidence = row->evidence };
}

size_t
tn_card_count(void)
{
	return (size_t)tn__gpu_count();
}

tn_status
tn_card_at(size_t index, struct tn_card *card)
{
	TN_RETURN_IF(index >= tn_card_count(), TN_NOT_FOUND, "the catalogue has %zu cards, none at index %zu",
	             tn_card_count(), index);
	show(tn__gpu_row((int)index), card);
	return TN_OK;
}

tn_status
tn_card_find(const char *name, struct tn_card *card)
{
	const struct tn_gpu_row *row;
	TN_FORWARD_IF_ERROR(tn__gpu_named(name, &row));
	show(row, card);
	return TN_OK;
}

tn_status
tn_card_smallest(uint64_t bytes, struct tn_card *card)
{
	const struct tn_gpu_row *row = tn__gpu_smallest(bytes, 0);
	TN_RETURN_IF(row == NULL, TN_NOT_FOUND, "no GPU in the catalogue has room for %llu bytes",
	             (unsigned long long)bytes);
	show(row, card);
	return TN_OK;
}
