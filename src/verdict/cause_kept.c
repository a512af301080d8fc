/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program keeps as a cause, though it need not be there: piles, graphs and gradients of earlier steps, a mode.
 */
#include <string.h>

#include "verdict/cause_rules.h"

/* ---- what one line keeps ---- */

/* One tensor, or a few, that a module has just made: its work, kept by nobody as far as is known. */
static bool
is_at_work(const struct tn_report_holder *holder)
{
	return holder->in_module && holder->alike < 4 && holder->blocks < 16;
}

/* What a checkpoint was loaded into has findings of its own. */
static bool
is_of_a_checkpoint(const struct tn_report_holder *holder)
{
	return holder->what != NULL && strncmp(holder->what, "loaded ", strlen("loaded ")) == 0;
}

static const struct tn_report_holder *
largest_kept(const struct tn_cause_facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category == TN_CATEGORY_temporaries && holder->at.file != NULL &&
		    !tn__cause_is_of_modules(holder) && !is_at_work(holder) && !is_of_a_checkpoint(holder))
			return holder->bytes >= facts->room / 4 ? holder : NULL;
	}
	return NULL;
}

/* Many of a kind from one line that stands outside of the model's layers. The tensors of one file, while it is loaded, are no pile. */
static bool
piles_up(const struct tn_cause_facts *facts)
{
	const struct tn_report_holder *holder = largest_kept(facts);
	return holder != NULL && !phase_is(facts, "load") && !holder->layers &&
	       (holder->alike >= 4 || holder->blocks >= 16);
}

/* A pile of small things always leaves pieces between them. */
static bool
piles_up_in_pieces(const struct tn_cause_facts *facts)
{
	return piles_up(facts) && facts->cached < largest_kept(facts)->bytes / 2;
}

static void
why_kept(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = largest_kept(facts);
	print_bytes(out, "", holder->bytes, " from one line, ");
	print_line(out, "", &holder->at);
	fprintf(out, ", that %s neither part of the model nor kept for a backward pass",
	        holder->blocks == 1 ? "is" : "are");
	if (holder->blocks > 1)
		fprintf(out, " (%lld tensors)", (long long)holder->blocks);
}

const struct tn_cause tn__cause_piles_up_in_pieces = { TN_FINDING_leak_suspected, TN_FINDING_growth, piles_up_in_pieces,
	                                                   why_kept, "keep_less" };

const struct tn_cause tn__cause_piles_up = { TN_FINDING_leak_suspected, TN_FINDING_growth, piles_up, why_kept,
	                                         "keep_less" };

static bool
keeps_much(const struct tn_cause_facts *facts)
{
	return largest_kept(facts) != NULL;
}

const struct tn_cause tn__cause_keeps_much = { TN_FINDING_model_or_batch_too_big, TN_FINDING_large_temporaries,
	                                           keeps_much, why_kept, NULL };

/* ---- what earlier steps left ---- */

/* The batch of every step so far is still there: so is all that was computed from it. */
static const struct tn_report_holder *
kept_batches(const struct tn_cause_facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category == TN_CATEGORY_inputs && phase_is(facts, "evaluation")) /* its steps are not counted */
			return holder->blocks >= 4 ? holder : NULL;
		if (holder->category == TN_CATEGORY_inputs)
			return holder->alike >= 4 && facts->oom->step >= 4 && holder->alike >= facts->oom->step - 1 ? holder : NULL;
	}
	return NULL;
}

static bool
graphs_are_kept(const struct tn_cause_facts *facts)
{
	return tn__cause_is_of_activations(facts) && kept_batches(facts) != NULL;
}

static void
why_graphs(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = kept_batches(facts);
	fprintf(out, "%lld batches are still there", (long long)(holder->alike > 1 ? holder->alike : holder->blocks));
	print_line(out, " (", &holder->at);
	print_bytes(out, holder->at.file != NULL ? "), with " : ", with ", of(facts, TN_CATEGORY_activations),
	            " of activations that earlier steps should have freed");
}

const struct tn_cause tn__cause_graphs_are_kept = { TN_FINDING_leak_suspected, TN_FINDING_growth, graphs_are_kept,
	                                                why_graphs, NULL };

static bool
gradients_of_before(const struct tn_cause_facts *facts)
{
	int64_t gradients = of(facts, TN_CATEGORY_gradients);
	return facts->moment->detailed && phase_is(facts, "forward") && facts->oom->step >= 2 &&
	       !facts->report->facts.gradients_in_buckets && gradients >= facts->room / 8 && gradients >= facts->lacks;
}

static void
why_gradients(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "gradients of the step before, ", of(facts, TN_CATEGORY_gradients),
	            ", are still there in the forward pass");
}

const struct tn_cause tn__cause_gradients_of_before = { TN_FINDING_model_or_batch_too_big,
	                                                    TN_FINDING_gradients_live_through_forward, gradients_of_before,
	                                                    why_gradients, NULL };

/* ---- a mode ---- */

/* Checkpointing that is configured acts in train() only. */
static bool
left_in_eval(const struct tn_cause_facts *facts)
{
	const struct tn_facts *seen = &facts->report->facts;
	return seen->trained_in_eval && seen->checkpoints_wait && tn__cause_is_of_activations(facts) &&
	       of(facts, TN_CATEGORY_activations) >= facts->room / 16;
}

static void
why_left_in_eval(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "the model is trained in eval() mode, where its gradient checkpointing does nothing: ",
	            of(facts, TN_CATEGORY_activations), " of activations are kept");
}

const struct tn_cause tn__cause_left_in_eval = { TN_FINDING_model_or_batch_too_big, TN_FINDING_trained_in_eval,
	                                             left_in_eval, why_left_in_eval, NULL };

/* A network in eval() may be called in the middle of a training step: what that has kept is no evaluation's. */
static int64_t
of_evaluation(const struct tn_cause_facts *facts)
{
	return of(facts, TN_CATEGORY_activations) - facts->moment->activations_of_training;
}

static bool
graph_in_evaluation(const struct tn_cause_facts *facts)
{
	return tn__cause_is_of_activations(facts) && phase_is(facts, "evaluation") &&
	       of_evaluation(facts) > facts->room / 8;
}

static void
why_graph_in_evaluation(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "evaluation keeps ", of_evaluation(facts), " of activations for a backward pass that never runs");
}

const struct tn_cause tn__cause_graph_in_evaluation = { TN_FINDING_model_or_batch_too_big,
	                                                    TN_FINDING_evaluation_with_graph, graph_in_evaluation,
	                                                    why_graph_in_evaluation, NULL };
