/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of samples that have not come: lengths of a loader's data set, and in which order its batches came
 * (doc/design/0032-inputs.md). Data only.
 */
#ifndef TN_VERDICT_INPUTS_H
#define TN_VERDICT_INPUTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct tn_place;

struct tn_peaks_of_batches {
	int64_t allocated, reserved; /* TN_NO_FIGURE: unknown, or there were none */
};

/* Of the loader with most left to see, or whose batch ran out of memory. TN_NO_FIGURE and NULL: unknown. */
struct tn_inputs {
	bool known;                                            /* a loader was seen */
	char *order;                                           /* "as_is", "longest", "pad" */
	char *unit;                                            /* what lengths are counted in: "tokens", "pixels" ... */
	char *why_not;                                         /* why nothing, or not all, was looked at */
	int64_t seen, of, looked;                              /* samples */
	int64_t shortest, middle, longest_seen, longest_known; /* middle: half of those looked at have no more */
	int64_t index;                                         /* of the longest known, in the data set */
	bool in_last_batch;                                    /* it was in the batch that came last */
	int64_t last_batch;                                    /* samples of that one */
	bool longer;         /* longer inputs are known than were seen, and would make larger batches */
	int64_t model_takes; /* the longest sequence that the model is configured for */
	int64_t padded_to, padded_batches;
	struct tn_place *at;                         /* the loop over the loader */
	struct tn_peaks_of_batches largest_batch;    /* of this seed */
	struct tn_peaks_of_batches longest_together; /* the longest samples in one batch: another seed may make it */
	bool together_failed;                        /* that batch ran out of memory */
};

/* Nothing is known. */
void tn__inputs_init(struct tn_inputs *inputs);
/* Releases the texts; the place is the model's to release. */
void tn__inputs_free(struct tn_inputs *inputs);
/* The object `inputs` of `run --json`, or of a guest's file, which has the same form; what is malformed is left out. */
void tn__inputs_read(const json_t *object, struct tn_inputs *inputs);

#endif
