/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of a run: nothing known, and released. Must not know the model (inputs_reader.c does).
 */
#include "verdict/inputs.h"

#include <stdlib.h>

#include "base/figure.h"

void
tn__inputs_init(struct tn_inputs *inputs)
{
	const struct tn_peaks_of_batches none = { TN_NO_FIGURE, TN_NO_FIGURE };
	*inputs = (struct tn_inputs){ .seen = TN_NO_FIGURE,
		                          .of = TN_NO_FIGURE,
		                          .looked = TN_NO_FIGURE,
		                          .shortest = TN_NO_FIGURE,
		                          .middle = TN_NO_FIGURE,
		                          .longest_seen = TN_NO_FIGURE,
		                          .longest_known = TN_NO_FIGURE,
		                          .index = TN_NO_FIGURE,
		                          .last_batch = TN_NO_FIGURE,
		                          .model_takes = TN_NO_FIGURE,
		                          .padded_to = TN_NO_FIGURE,
		                          .padded_batches = TN_NO_FIGURE,
		                          .largest_batch = none,
		                          .longest_together = none };
}

void
tn__inputs_free(struct tn_inputs *inputs)
{
	free(inputs->order);
	free(inputs->unit);
	free(inputs->why_not);
	tn__inputs_init(inputs);
}
