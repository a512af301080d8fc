/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings about what holds memory (cells of a notebook, earlier trainings): a row a kind of holder, with words in which its figures stand.
 */
#ifndef TN_VERDICT_HOLDER_WORDS_H
#define TN_VERDICT_HOLDER_WORDS_H

#include <stdint.h>
#include <stdio.h>

#include "verdict/finding_rows.h"
#include "verdict/model.h"

/* In the words, %B stands for the bytes and %% for a percent sign; what any other letter stands for, the caller puts. */
struct tn_holder_kind {
	const char *name; /* as the guest hook has it */
	enum tn_finding_id id;
	const char *what, *advice;
};

/* Writes what a letter of the words stands for. */
typedef void (*tn_holder_put)(char letter, const void *holder, FILE *out);

/* The row of this name, which may be NULL; NULL where there is none. Borrowed. */
const struct tn_holder_kind *tn__holder_kind(const struct tn_holder_kind *kinds, size_t count, const char *name);
/* Adds the finding; `at` may be NULL. Nothing happens without memory. */
void tn__holder_tell(const struct tn_holder_kind *kind, int64_t bytes, const struct tn_place *at, tn_holder_put put,
                     const void *holder, struct tn_report *report);

#endif
