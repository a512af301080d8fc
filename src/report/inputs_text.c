/* SPDX-License-Identifier: Apache-2.0
 *
 * What a verdict says of the inputs that it has and has not seen. Nothing where all samples are known to be of one length.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/text.h"

#define NUMBER 32

static bool
is(const char *text, const char *word)
{
	return text != NULL && strcmp(text, word) == 0;
}

/* ", 120 of 10,000 looked at (its samples touch the card)" */
static void
looked_words(const struct tn_inputs *inputs, char *out, size_t room)
{
	char looked[NUMBER], of[NUMBER];
	if (inputs->looked == inputs->of)
		snprintf(out, room, "all %s were looked at", tn__grouped(inputs->of, of));
	else
		snprintf(out, room, "%s of %s were looked at%s%s%s", tn__grouped(inputs->looked, looked),
		         tn__grouped(inputs->of, of), inputs->why_not != NULL ? " (" : "",
		         inputs->why_not != NULL ? inputs->why_not : "", inputs->why_not != NULL ? ")" : "");
}

static void
say_unknown(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_inputs *inputs = &report->inputs;
	char place[TN_PLACE_TEXT], seen[NUMBER], of[NUMBER], advice[96] = "";
	bool asked = is(inputs->order, "longest"), iterable = inputs->of == TN_NO_FIGURE;
	if (inputs->why_not == NULL || (!iterable && inputs->seen == inputs->of) || (!asked && report->input_shapes <= 2))
		return;
	if (iterable && inputs->padded_to > 0) /* as long as was said */
		return;
	tn__place_words(report, printer->style, inputs->at, place);
	if (iterable && inputs->model_takes > 0)
		snprintf(advice, sizeof(advice), "; --inputs pad=%" PRId64 " makes its batches as long as the model takes",
		         inputs->model_takes);
	else if (iterable)
		snprintf(advice, sizeof(advice), "; --inputs pad=N makes its batches N long");
	if (iterable)
		tn__say(printer, TN_TINT_NONE, 2, "Inputs: %s%s%s%s", inputs->why_not, place[0] != '\0' ? ", " : "", place,
		        advice);
	else
		tn__say(printer, TN_TINT_NONE, 2,
		        "Inputs: %s of %s samples were seen; how long the others are is not known: %s",
		        tn__grouped(inputs->seen, seen), tn__grouped(inputs->of, of), inputs->why_not);
}

static void
say_padded(const struct tn_printer *printer, const struct tn_inputs *inputs)
{
	if (inputs->padded_to > 0)
		tn__say(printer, TN_TINT_NONE, 2,
		        "Inputs: %" PRId64 " batch%s %s padded to %" PRId64 " as a loader handed %s out",
		        inputs->padded_batches, inputs->padded_batches == 1 ? "" : "es",
		        inputs->padded_batches == 1 ? "was" : "were", inputs->padded_to,
		        inputs->padded_batches == 1 ? "it" : "them");
	else if (is(inputs->order, "pad"))
		tn__say(printer, TN_TINT_NONE, 2, "Inputs: no batch was padded: none had a sequence that is shorter");
}

/* With --inputs longest: what the two kinds of batches came to. */
static void
say_figures(const struct tn_printer *printer, const struct tn_inputs *inputs)
{
	char largest[32], together[32];
	if (inputs->largest_batch.reserved == TN_NO_FIGURE)
		return;
	tn__human_bytes(inputs->largest_batch.reserved, largest);
	if (inputs->together_failed)
		tn__say(printer, TN_TINT_NONE, 2,
		        "The largest batch of this seed fits (%s reserved); the longest samples in one "
		        "batch, which another seed may make, do not",
		        largest);
	else if (inputs->longest_together.reserved != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2,
		        "The largest batch of this seed came first: %s reserved; with the longest samples "
		        "in one batch, which another seed may make, %s",
		        largest, tn__human_bytes(inputs->longest_together.reserved, together));
	else
		tn__say(printer, TN_TINT_NONE, 2, "The largest batch of this seed came first: %s reserved", largest);
}

void
tn__say_inputs(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_inputs *inputs = &report->inputs;
	char seen[NUMBER], of[NUMBER], index[NUMBER], longest[NUMBER], before[NUMBER], looked[160];
	const char *unit = inputs->unit != NULL ? inputs->unit : "items";
	if (!inputs->known)
		return;
	say_padded(printer, inputs);
	if (inputs->longest_known == TN_NO_FIGURE) {
		say_unknown(printer, report);
		return;
	}
	if (inputs->longest_known == inputs->shortest)
		return;
	looked_words(inputs, looked, sizeof(looked));
	tn__grouped(inputs->index, index);
	tn__grouped(inputs->longest_known, longest);
	tn__grouped(inputs->seen, seen);
	tn__grouped(inputs->of, of);
	if (report->verdict == TN_VERDICT_OUT_OF_MEMORY && inputs->in_last_batch)
		tn__say(printer, TN_TINT_NONE, 2, "Inputs: the batch of %s holds sample %s with %s %s, the longest known (%s)",
		        tn__grouped(inputs->last_batch, seen), index, longest, unit, looked);
	else if (inputs->longer)
		tn__say(printer, TN_TINT_NONE, 2,
		        "Inputs: %s of %s samples were seen, the longest with %s %s; sample %s has %s (%s)%s", seen, of,
		        tn__grouped(inputs->longest_seen, before), unit, index, longest, looked,
		        is(inputs->order, "longest") ? "" : ": --inputs longest has it come first");
	else
		tn__say(printer, TN_TINT_NONE, 2,
		        "Inputs: %s of %s samples were seen, the longest known with them: sample %s with %s %s (%s)", seen, of,
		        index, longest, unit, looked);
	say_figures(printer, inputs);
}
