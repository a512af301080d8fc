/* SPDX-License-Identifier: Apache-2.0
 *
 * What a card that is never full tells of a program that ran out of memory: its need, and what it does about its memory
 * once it gets there. With that, the cause is another one where the moment of the out-of-memory had misled.
 */
#include <stdlib.h>
#include <string.h>

#include "verdict/finding_rows.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"

static int64_t
known(int64_t value)
{
	return value == TN_NO_FIGURE ? 0 : value;
}

/* Parameters of a second copy of the model. */
static int64_t
copied_parameters(const struct tn_report_moment *moment)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < moment->holder_count; i++) {
		const struct tn_report_holder *holder = &moment->holders[i];
		if (holder->what != NULL && strcmp(holder->what, "copy of the model") == 0 &&
		    holder->category == TN_CATEGORY_parameters)
			bytes += known(holder->bytes);
	}
	return bytes;
}

/* Of several programs: each by itself, less what PyTorch only caches, and all at their peaks at once. */
static void
take_programs(const struct tn_programs *programs, struct tn_need *need)
{
	int64_t cached = 0;
	for (size_t i = 0; i < programs->count; i++) {
		const struct tn_program *program = &programs->items[i];
		int64_t cache = known(program->reserved_peak) - known(program->allocated_peak);
		need->programs[i] = known(program->peak) - cache;
		cached += cache;
	}
	need->program_count = programs->count;
	if (programs->count == 0)
		return;
	need->bytes = known(programs->together);
	need->least = need->bytes - cached;
}

struct tn_need
tn__need_of(const struct tn_report *large)
{
	const int64_t *parts = large->at_peak.by_category;
	struct tn_need need = { .steps = known(large->steps_seen) };
	int64_t device = known(large->device_peak), reserved = known(large->reserved_peak);
	int64_t allocated = known(large->allocated_peak);
	/* A program that failed, or took no step, may have been about to take more. */
	if ((large->verdict != TN_VERDICT_FITS && large->verdict != TN_VERDICT_GROWS) || need.steps <= 0 || device <= 0 ||
	    reserved < allocated || allocated <= 0)
		return (struct tn_need){ 0 };
	need.bytes = device;
	need.least = device - (reserved - allocated); /* a card that fills up makes PyTorch give back what it only caches */
	need.parameters = known(parts[TN_CATEGORY_parameters]);
	need.gradients = known(parts[TN_CATEGORY_gradients]);
	need.state = known(parts[TN_CATEGORY_optimizer_state]);
	need.parameters -= copied_parameters(&large->at_peak); /* they need not be there */
	need.lasting = need.parameters + need.gradients + need.state;
	for (; need.card_count < large->card_count; need.card_count++)
		need.cards[need.card_count] = known(large->cards[need.card_count].at_peak.device_bytes);
	need.facts = large->facts;
	take_programs(&large->programs, &need);
	return need;
}

/* What either run has seen the program do, it does. */
static void
add_facts(struct tn_facts *own, const struct tn_facts *later)
{
	if (!later->known)
		return;
	own->known = true;
	own->trains |= later->trains;
	own->autocast |= later->autocast;
	own->checkpoints |= later->checkpoints;
	own->checkpoints_wait = (own->checkpoints_wait || later->checkpoints_wait) && !own->checkpoints;
	own->trained_in_eval |= later->trained_in_eval;
	own->loader |= later->loader;
	own->expandable_segments |= later->expandable_segments;
	own->copy_called |= later->copy_called;
	own->cudnn_benchmark |= later->cudnn_benchmark;
	own->workspace_config |= later->workspace_config;
	own->small_state |= later->small_state;
	if (later->parameter_bytes <= own->parameter_bytes)
		return;
	own->parameter_bytes = later->parameter_bytes;
	own->wide_bytes = later->wide_bytes;
	own->small_bytes = later->small_bytes;
	own->trained_bytes = later->trained_bytes;
}

/* A program that places its parts by what is free (device_map) places them elsewhere on cards that are never full. */
static bool
is_placed_otherwise(const struct tn_report *report, const struct tn_need *need)
{
	bool otherwise = need->card_count != report->card_count;
	for (size_t i = 0; i < report->card_count && !otherwise; i++)
		otherwise = (report->cards[i].at_peak.device_bytes > 0) != (need->cards[i] > 0);
	return otherwise && report->card_count > 1;
}

void
tn__report_take_need(struct tn_report *report, const struct tn_need *need)
{
	const struct tn_report_oom *oom = &report->oom;
	/* Less than was there already: the other run did not get as far, or was another program on another card. */
	if (need->bytes <= 0 || (oom->allocated_bytes != TN_NO_FIGURE && need->least < oom->allocated_bytes) ||
	    is_placed_otherwise(report, need))
		return;
	report->need = *need;
	add_facts(&report->facts, &need->facts);
}

/* Drops the lead that a cause gave; one that the trace gave stays where it is enough, else it is one finding of many. */
static bool
drop_lead(struct tn_report *report)
{
	struct tn_finding *lead = report->findings;
	if (report->finding_count == 0 || lead->severity != TN_SEVERITY_ERROR)
		return true;
	if (tn__is_cause(lead)) {
		tn__report_drop_findings(report, tn__finding_of(lead->id));
		return true;
	}
	if (lead->bytes >= tn__report_short_by(report))
		return false;
	lead->severity = TN_SEVERITY_WARNING;
	return true;
}

static bool
is_of_a_checkpoint(const struct tn_finding *found)
{
	return tn__finding_is(found, TN_FINDING_checkpoint_held) || tn__finding_is(found, TN_FINDING_checkpoint_on_card) ||
	       tn__finding_is(found, TN_FINDING_optimizer_state_twice);
}

/* What a loaded checkpoint holds is there for nothing, however much the batch brings. */
static void
lead_with_checkpoint(struct tn_report *report)
{
	int64_t lacks = tn__report_short_by(report), bytes = 0;
	struct tn_finding *largest = NULL;
	for (size_t i = 0; i < report->finding_count; i++) {
		struct tn_finding *found = &report->findings[i];
		if (!is_of_a_checkpoint(found))
			continue;
		bytes += found->bytes;
		largest = largest == NULL || found->bytes > largest->bytes ? found : largest;
	}
	if (largest != NULL && lacks > 0 && bytes >= lacks && report->oom.cause != NULL &&
	    tn__finding_of(report->oom.cause) == TN_FINDING_model_or_batch_too_big)
		tn__report_lead_with(report, largest);
}

void
tn__report_judge_need(struct tn_report *report, const struct tn_report *large)
{
	struct tn_need need = tn__need_of(large);
	if (need.bytes <= 0 || !report->oom.seen)
		return;
	tn__report_take_need(report, &need);
	if (report->need.bytes <= 0 || !drop_lead(report))
		return;
	free(report->oom.cause);
	report->oom.cause = NULL;
	tn__report_find_cause(report);
	lead_with_checkpoint(report);
}
