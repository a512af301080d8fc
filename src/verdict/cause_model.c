/* SPDX-License-Identifier: Apache-2.0
 *
 * The model as a cause: what stays whatever the batch, and what its updates need.
 */
#include <string.h>

#include "verdict/cause_rules.h"

/* What lasts is more than the card has, as a card that is never full shows: no batch is small enough. */
static bool
alone_too_large(const struct tn_cause_facts *facts)
{
	return facts->report->need.lasting > facts->room;
}

static void
print_part(FILE *out, const char *name, int64_t bytes, int64_t whole, const char **between)
{
	if (bytes < whole / 50)
		return;
	fprintf(out, "%s%s ", *between, name);
	print_bytes(out, "", bytes, "");
	*between = ", ";
}

static void
why_alone(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_need *need = &facts->report->need;
	const char *between = "the model alone does not fit: ";
	print_part(out, "parameters", need->parameters, need->lasting, &between);
	print_part(out, "gradients", need->gradients, need->lasting, &between);
	print_part(out, "optimizer state", need->state, need->lasting, &between);
	fputs(" stay, whatever the batch", out);
}

const struct tn_cause tn__cause_alone_too_large = { TN_FINDING_model_or_batch_too_big, TN_FINDING_model_too_big,
	                                                alone_too_large, why_alone, NULL };

static bool
while_building(const struct tn_cause_facts *facts)
{
	return facts->moment->detailed && (phase_is(facts, "build") || phase_is(facts, "load"));
}

static void
why_building(const struct tn_cause_facts *facts, FILE *out)
{
	bool trains = !facts->report->facts.known || facts->report->facts.trains;
	fprintf(out, "the model: the card is full before %s, while %s it", trains ? "training begins" : "the first pass",
	        phase_is(facts, "load") ? "loading" : "building");
	if (facts->report->rank_count > 1)
		fprintf(out, ", as each of the %zu ranks does", facts->report->rank_count);
	print_bytes(out, " (", facts->moment->device_bytes, " so far)");
}

const struct tn_cause tn__cause_while_building = {
	TN_FINDING_model_or_batch_too_big, TN_FINDING_model_too_big, while_building, why_building,
	"shard_early parameters_16_bits quantise quantise_frozen build_on_cpu"
};

/* ---- updates ---- */

static bool
state_of_adam(const struct tn_cause_facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category == TN_CATEGORY_optimizer_state && holder->what != NULL &&
		    strstr(holder->what, "exp_avg") != NULL)
			return true;
	}
	return false;
}

/* The first update makes the state that all later ones need: what is missing then is much more than what was asked. */
static bool
first_update(const struct tn_cause_facts *facts)
{
	return facts->moment->detailed && phase_is(facts, "optimizer") && facts->oom->step <= 1 && state_of_adam(facts) &&
	       of(facts, TN_CATEGORY_optimizer_state) < 2 * of(facts, TN_CATEGORY_gradients);
}

static void
why_first_update(const struct tn_cause_facts *facts, FILE *out)
{
	int64_t gradients = of(facts, TN_CATEGORY_gradients);
	print_bytes(out, "the model: parameters and gradients take ", of(facts, TN_CATEGORY_parameters) + gradients, "");
	size_t parts = facts->report->facts.state_sharded && facts->report->rank_count > 0 ? facts->report->rank_count : 1;
	print_bytes(out, ", and Adam wants two more numbers for each parameter, ", 2 * gradients / (int64_t)parts,
	            " in all");
	if (parts > 1)
		fprintf(out, " as they are sharded over %zu ranks", parts);
}

const struct tn_cause tn__cause_first_update = { TN_FINDING_model_or_batch_too_big, TN_FINDING_optimizer_state,
	                                             first_update, why_first_update, NULL };

/* Updates of all parameters at once need as much again while they work. */
static bool
all_at_once(const struct tn_cause_facts *facts)
{
	const struct tn_place *at = facts->oom->at;
	int64_t working = 0;
	if (!facts->moment->detailed || !phase_is(facts, "optimizer") || at == NULL)
		return false;
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category == TN_CATEGORY_temporaries && holder->at.file != NULL && holder->at.line == at->line &&
		    strcmp(holder->at.file, at->file) == 0)
			working += holder->bytes;
	}
	return working >= facts->room / 16 && working >= facts->asked;
}

static void
why_all_at_once(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "the optimizer works on all parameters at once: ", of(facts, TN_CATEGORY_temporaries),
	            " of temporaries beside the model");
}

const struct tn_cause tn__cause_all_at_once = { TN_FINDING_model_or_batch_too_big, TN_FINDING_foreach_temporaries,
	                                            all_at_once, why_all_at_once, NULL };

static bool
while_updating(const struct tn_cause_facts *facts)
{
	return facts->moment->detailed && phase_is(facts, "optimizer") && facts->lasting > facts->passing;
}

static void
why_updating(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "the model: parameters and gradients take ",
	            of(facts, TN_CATEGORY_parameters) + of(facts, TN_CATEGORY_gradients), "");
	print_bytes(out, ", the optimizer's state ", of(facts, TN_CATEGORY_optimizer_state), "");
}

const struct tn_cause tn__cause_while_updating = { TN_FINDING_model_or_batch_too_big, TN_FINDING_optimizer_state,
	                                               while_updating, why_updating, NULL };

/* ---- the whole ---- */

static bool
model_outweighs(const struct tn_cause_facts *facts)
{
	return facts->moment->detailed && facts->lasting > 0 && facts->lasting >= facts->passing + facts->asked;
}

static void
why_model(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "the model: parameters ", of(facts, TN_CATEGORY_parameters), "");
	if (of(facts, TN_CATEGORY_gradients) > 0)
		print_bytes(out, ", gradients ", of(facts, TN_CATEGORY_gradients), "");
	if (of(facts, TN_CATEGORY_optimizer_state) > 0)
		print_bytes(out, ", optimizer state ", of(facts, TN_CATEGORY_optimizer_state), "");
	fputs(" stay, whatever the batch", out);
}

const struct tn_cause tn__cause_model_outweighs = {
	TN_FINDING_model_or_batch_too_big, TN_FINDING_model_too_big, model_outweighs, why_model,
	"parameters_16_bits small_state lora quantise quantise_frozen multi_gpu"
};
