/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rules of a cause look at, from the report.
 */
#include "verdict/cause_rules.h"
#include "verdict/judge.h"

bool
tn__cause_is_of_modules(const struct tn_report_holder *holder)
{
	static const char *const names[] = { "kept by modules", "pruning masks", "pruned weights", "copy of the model" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (holder->category == TN_CATEGORY_temporaries && holder->what != NULL &&
		    strstr(holder->what, names[i]) != NULL)
			return true;
	return false;
}

static int64_t
bytes_of_modules(const struct tn_report_moment *moment)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < moment->holder_count; i++)
		bytes += tn__cause_is_of_modules(&moment->holders[i]) ? moment->holders[i].bytes : 0;
	return bytes;
}

struct tn_cause_facts
tn__cause_facts_of(const struct tn_report *report)
{
	const struct tn_report_oom *oom = &report->oom;
	const struct tn_report_moment *moment = &report->at_oom;
	struct tn_cause_facts facts = { .report = report,
		                            .oom = oom,
		                            .moment = moment,
		                            .asked = oom->requested_bytes,
		                            .lacks = tn__report_short_by(report),
		                            .room = (int64_t)(report->gpu.total_bytes - report->gpu.context_bytes) };
	if (moment->detailed)
		facts.cached = of(&facts, TN_CATEGORY_cached);
	else if (oom->reserved_bytes != TN_NO_FIGURE && oom->allocated_bytes != TN_NO_FIGURE)
		facts.cached = oom->reserved_bytes - oom->allocated_bytes;
	int64_t kept = bytes_of_modules(moment);
	facts.lasting = of(&facts, TN_CATEGORY_parameters) + of(&facts, TN_CATEGORY_gradients) +
	                of(&facts, TN_CATEGORY_optimizer_state) + of(&facts, TN_CATEGORY_communication) + kept;
	facts.passing = of(&facts, TN_CATEGORY_activations) + of(&facts, TN_CATEGORY_inputs) +
	                of(&facts, TN_CATEGORY_temporaries) - kept + of(&facts, TN_CATEGORY_workspaces);
	return facts;
}

bool
tn__cause_grows(const struct tn_cause_facts *facts)
{
	return facts->report->growth.seen && facts->report->growth.bytes > 0;
}

bool
tn__cause_is_of_activations(const struct tn_cause_facts *facts)
{
	return facts->moment->detailed && facts->passing > 0 && 2 * of(facts, TN_CATEGORY_activations) >= facts->passing;
}
