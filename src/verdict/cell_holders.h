/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds memory between the cells of a notebook, as findings (doc/design/0033-notebooks.md).
 */
#ifndef TN_VERDICT_CELL_HOLDERS_H
#define TN_VERDICT_CELL_HOLDERS_H

#include "verdict/model.h"

/* A holder as the guest hook tells of it; texts are borrowed, and NULL where unknown. */
struct tn_cell_holder {
	const char *kind;   /* "output", "traceback", "variable", "variables", "rebound" */
	const char *name;   /* "Out[3]", "sys.last_traceback", "model", "optimizer and scheduler" */
	const char *cell;   /* that made most of the memory */
	const char *during; /* at whose beginning or end it was measured */
	int64_t number;     /* of that cell, whatever its run */
	int64_t bytes;      /* that are free without the holder */
};

/* Adds its finding. Nothing happens for a kind that is not known. */
void tn__add_cell_holder(const struct tn_cell_holder *holder, struct tn_report *report);

/* Where a holder kept more than an out-of-memory lacked, it is the reason. After judging. */
void tn__weigh_cell_holders(struct tn_report *report);

#endif
