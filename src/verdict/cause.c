/* SPDX-License-Identifier: Apache-2.0
 *
 *Why a card was full: one list of rules, the first that holds decides. Each says the cause, the reason in words with
 * the figures that it was told from, and what to do.
 */
#include <stdlib.h>

#include "verdict/advice.h"
#include "verdict/cause_rules.h"
#include "verdict/finding_rows.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"
#include "verdict/programs.h"

static const struct tn_cause *const rules[] = {
	&tn__cause_host_is_full,         &tn__cause_logits_larger,      &tn__cause_larger_than_the_card,
	&tn__cause_limited_by_itself,    &tn__cause_a_workspace,        &tn__cause_grew,
	&tn__cause_other_program,        &tn__cause_others_hold_it,     &tn__cause_state_is_gathered,
	&tn__cause_first_update,         &tn__cause_piles_up_in_pieces, &tn__cause_in_pieces_by_settings,
	&tn__cause_graphs_are_kept,      &tn__cause_left_in_eval,       &tn__cause_graph_in_evaluation,
	&tn__cause_alone_too_large,      &tn__cause_while_building,     &tn__cause_all_at_once,
	&tn__cause_while_updating,       &tn__cause_larger_input,       &tn__cause_gradients_of_before,
	&tn__cause_attention_fills_it,   &tn__cause_logits_fill_it,     &tn__cause_longest_sample,
	&tn__cause_a_few_fill_it,        &tn__cause_one_tensor,         &tn__cause_piles_up,
	&tn__cause_keeps_much,           &tn__cause_model_outweighs,    &tn__cause_activations_outweigh,
	&tn__cause_temporaries_outweigh, &tn__cause_batch_outweighs,
};

static char *
words_of(const struct tn_cause *rule, const struct tn_cause_facts *facts)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	rule->why(facts, out);
	fclose(out);
	return text;
}

bool
tn__is_cause(const struct tn_finding *finding)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (tn__finding_is(finding, rules[i]->id))
			return true;
	return false;
}

void
tn__report_find_cause(struct tn_report *report)
{
	struct tn_cause_facts facts = tn__cause_facts_of(report);
	const struct tn_cause *rule = NULL;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && rule == NULL; i++)
		if (rules[i]->holds(&facts))
			rule = rules[i];
	if (report->oom.cause == NULL)
		report->oom.cause = strdup(rule != NULL ? tn__finding_name(rule->cause) : "unknown");
	char *why = rule != NULL ? words_of(rule, &facts) : NULL;
	if (why == NULL)
		return;
	const struct tn_place *at = tn__cause_grows(&facts) ? report->growth.at : report->oom.at;
	int64_t bytes = rule == &tn__cause_other_program ? tn__programs_beside(report) : report->oom.short_by_bytes;
	struct tn_finding *finding = tn__report_add_finding_as(report, rule->id, TN_SEVERITY_ERROR, bytes, at, NULL, "%s",
	                                                       why);
	tn__report_advise(report, finding, rule->advice != NULL ? rule->advice : tn__finding_row(rule->id)->advice);
	free(why);
}
