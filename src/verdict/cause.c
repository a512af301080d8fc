/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a card was full: one table of rules, the first that holds decides. Each says the cause, the reason in words with
 * the figures that it was told from, and what to do. A rule that cannot know is not among them: the cause stays unknown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "verdict/advice.h"
#include "verdict/model.h"

struct facts {
	const struct tn_report *report;
	const struct tn_report_oom *oom;
	const struct tn_report_moment *moment;
	int64_t asked, room; /* room: the card without one context */
	int64_t cached;      /* reserved, in use by no tensor */
	int64_t lasting;     /* parameters, gradients and optimizer state: there whatever the batch */
	int64_t passing;     /* what a batch brings */
	int64_t lacks;       /* in all, where that is known, else by the request that failed */
};

struct rule {
	const char *cause, *id; /* of the out-of-memory, and of the finding */
	bool (*holds)(const struct facts *);
	void (*why)(const struct facts *, FILE *);
	const char *advice; /* ids of the table of advice, best first: those whose condition holds are given */
};

static int64_t
of(const struct facts *facts, enum tn_category category)
{
	int64_t bytes = facts->moment->by_category[category];
	return bytes == TN_NO_FIGURE ? 0 : bytes;
}

static bool
phase_is(const struct facts *facts, const char *phase)
{
	return facts->oom->phase != NULL && strcmp(facts->oom->phase, phase) == 0;
}

static bool
said(const struct facts *facts, const char *words)
{
	return facts->oom->message != NULL && strstr(facts->oom->message, words) != NULL;
}

static void
print_bytes(FILE *out, const char *before, int64_t bytes, const char *after)
{
	char buffer[32];
	fprintf(out, "%s%s%s", before, tn__human_bytes(bytes, buffer), after);
}

/* Nothing for an unknown place. */
static void
print_line(FILE *out, const char *before, const struct tn_place *at)
{
	const char *slash = at != NULL && at->file != NULL ? strrchr(at->file, '/') : NULL;
	if (at != NULL && at->file != NULL)
		fprintf(out, "%s%s:%lld", before, slash != NULL ? slash + 1 : at->file, (long long)at->line);
}

/* ---- not the card ---- */

static bool
host_is_full(const struct facts *facts)
{
	for (size_t i = 0; i < facts->oom->stack.count; i++) {
		const char *function = facts->oom->stack.items[i].function;
		if (facts->asked == TN_NO_FIGURE && function != NULL && strcmp(function, "pin_memory") == 0)
			return true;
	}
	return said(facts, "DefaultCPUAllocator") || said(facts, "pin_memory");
}

static void
why_host(const struct facts *facts, FILE *out)
{
	fputs("the computer's own memory is full, not the card's", out);
}

static bool
larger_than_the_card(const struct facts *facts)
{
	return facts->asked > facts->room;
}

static void
why_larger(const struct facts *facts, FILE *out)
{
	print_bytes(out, "this one request is larger than all that the card can give (", facts->room, ")");
}

static bool
limited_by_itself(const struct facts *facts)
{
	return facts->asked != TN_NO_FIGURE && facts->oom->free_bytes >= facts->asked && said(facts, "allowed");
}

static void
why_limited(const struct facts *facts, FILE *out)
{
	fputs("the card had room: the program has limited itself (set_per_process_memory_fraction)", out);
}

/* True when more than this request will be missing: it is only the first that failed. */
static bool
more_is_to_come(const struct facts *facts)
{
	return facts->report->need.least > 0 && facts->lacks > facts->asked;
}

static bool
a_workspace(const struct facts *facts)
{
	return facts->oom->workspace && !more_is_to_come(facts);
}

static void
why_workspace(const struct facts *facts, FILE *out)
{
	fputs("a library asked for it as working memory, not for a tensor", out);
}

/* ---- somebody else, or something else ---- */

static bool
grew(const struct facts *facts)
{
	return facts->report->growth.seen && facts->report->growth.bytes > 0;
}

static void
why_grew(const struct facts *facts, FILE *out)
{
	const struct tn_report_growth *growth = &facts->report->growth;
	print_bytes(out, "memory that is never given back: ", growth->bytes, " more with each ");
	fputs(growth->unit != NULL ? growth->unit : "step", out);
	print_line(out, ", from ", growth->at);
}

static bool
others_hold_it(const struct facts *facts)
{
	int64_t others = of(facts, TN_CATEGORY_other_processes);
	return facts->lacks > 0 && others >= facts->lacks && others >= facts->cached;
}

static void
why_others(const struct facts *facts, FILE *out)
{
	print_bytes(out, "other processes hold ", of(facts, TN_CATEGORY_other_processes), " of the card");
}

/* Enough of it would do, and it is enough to speak of: a little is lost between pieces in every program. Not for one whose
 * tensors alone are more than the card has. */
static bool
in_pieces(const struct facts *facts)
{
	if (facts->report->need.least > (int64_t)facts->report->gpu.total_bytes)
		return false;
	return facts->asked > 0 && facts->cached >= facts->asked && facts->cached >= facts->room / 16;
}

/* What settings can do about it has not been set yet. */
static bool
in_pieces_by_settings(const struct facts *facts)
{
	return in_pieces(facts) && !facts->report->facts.expandable_segments;
}

static void
why_in_pieces(const struct facts *facts, FILE *out)
{
	int64_t largest = facts->oom->largest_free_block_bytes;
	if (largest == TN_NO_FIGURE)
		largest = facts->moment->largest_free_block_bytes;
	print_bytes(out, "fragmentation: PyTorch keeps ", facts->cached, " that no tensor uses");
	if (largest != TN_NO_FIGURE)
		print_bytes(out, ", the largest piece of it ", largest, "");
}

/* ---- the model or the batch ---- */

/* What lasts is more than the card has, as a card that is never full shows: no batch is small enough. */
static bool
alone_too_large(const struct facts *facts)
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
why_alone(const struct facts *facts, FILE *out)
{
	const struct tn_need *need = &facts->report->need;
	const char *between = "the model alone does not fit: ";
	print_part(out, "parameters", need->parameters, need->lasting, &between);
	print_part(out, "gradients", need->gradients, need->lasting, &between);
	print_part(out, "optimizer state", need->state, need->lasting, &between);
	fputs(" stay, whatever the batch", out);
}

static bool
while_building(const struct facts *facts)
{
	return facts->moment->detailed && (phase_is(facts, "build") || phase_is(facts, "load"));
}

static void
why_building(const struct facts *facts, FILE *out)
{
	bool trains = !facts->report->facts.known || facts->report->facts.trains;
	fprintf(out, "the model: the card is full before %s, while %s it", trains ? "training begins" : "the first pass",
	        phase_is(facts, "load") ? "loading" : "building");
	print_bytes(out, " (", facts->moment->device_bytes, " so far)");
}

static bool
state_of_adam(const struct facts *facts)
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
first_update(const struct facts *facts)
{
	return facts->moment->detailed && phase_is(facts, "optimizer") && facts->oom->step <= 1 && state_of_adam(facts) &&
	       of(facts, TN_CATEGORY_optimizer_state) < 2 * of(facts, TN_CATEGORY_gradients);
}

/* Updates of all parameters at once need as much again while they work. */
static bool
all_at_once(const struct facts *facts)
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
why_all_at_once(const struct facts *facts, FILE *out)
{
	print_bytes(out, "the optimizer works on all parameters at once: ", of(facts, TN_CATEGORY_temporaries),
	            " of temporaries beside the model");
}

static bool
while_updating(const struct facts *facts)
{
	return facts->moment->detailed && phase_is(facts, "optimizer") && facts->lasting > facts->passing;
}

static void
why_first_update(const struct facts *facts, FILE *out)
{
	int64_t gradients = of(facts, TN_CATEGORY_gradients);
	print_bytes(out, "the model: parameters and gradients take ", of(facts, TN_CATEGORY_parameters) + gradients, "");
	print_bytes(out, ", and Adam wants two more numbers for each parameter, ", 2 * gradients, " in all");
}

static void
why_updating(const struct facts *facts, FILE *out)
{
	print_bytes(out, "the model: parameters and gradients take ",
	            of(facts, TN_CATEGORY_parameters) + of(facts, TN_CATEGORY_gradients), "");
	print_bytes(out, ", the optimizer's state ", of(facts, TN_CATEGORY_optimizer_state), "");
}

#define MANY_SAMPLES 16

/* Activations of one line, a few parts of which fill the card. */
static const struct tn_report_holder *
few_large_ones(const struct facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category != TN_CATEGORY_activations || holder->at.file == NULL)
			continue;
		int64_t parts = holder->alike > 0 ? holder->alike : 1;
		bool large = holder->bytes / parts >= facts->room / 8 && holder->blocks <= 8 * parts;
		return large && 2 * holder->bytes >= facts->passing ? holder : NULL;
	}
	return NULL;
}

/* A large tensor of a large batch is the batch's doing: it shrinks with it. */
static bool
a_few_fill_it(const struct facts *facts)
{
	return few_large_ones(facts) != NULL && facts->report->batch_size < MANY_SAMPLES;
}

#define NEAR 4 /* lines */

/* Made a line or two from the softmax, as often: its dropout, scores and mask of one line together. */
static bool
is_beside(const struct tn_report_holder *holder, const struct tn_report_holder *softmax)
{
	if (holder->at.file == NULL || softmax->at.file == NULL || strcmp(holder->at.file, softmax->at.file) != 0)
		return false;
	int64_t away = holder->at.line > softmax->at.line ? holder->at.line - softmax->at.line
	                                                  : softmax->at.line - holder->at.line;
	int64_t part = holder->bytes / (holder->alike > 0 ? holder->alike : 1);
	int64_t scores = softmax->bytes / (softmax->alike > 0 ? softmax->alike : 1);
	return away <= NEAR && holder->alike > 1 && holder->alike == softmax->alike && part >= scores && part <= 2 * scores;
}

/* Scores before and after masks and dropout: activations as large as what a softmax made, and copies that the program keeps of
 * each layer's. */
static int64_t
bytes_like(const struct facts *facts, const struct tn_report_holder *softmax)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		bool copies = holder->category == TN_CATEGORY_temporaries && holder->layers && holder->alike > 1 &&
		              holder->alike == softmax->alike;
		bool alike = (holder->category == TN_CATEGORY_activations || copies) && holder->blocks > 0 && softmax->blocks > 0 &&
		             (holder->bytes / holder->blocks == softmax->bytes / softmax->blocks || is_beside(holder, softmax));
		bytes += alike ? holder->bytes : 0;
	}
	return bytes;
}

/* What softmax made inside the layers of a model, with all that is of its size, when that is most of the activations;
 * NULL when it is not. */
static const struct tn_report_holder *
scores_of_layers(const struct facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category != TN_CATEGORY_activations || holder->what == NULL || strcmp(holder->what, "softmax") != 0)
			continue;
		return 5 * bytes_like(facts, holder) >= 2 * facts->passing ? holder : NULL;
	}
	return NULL;
}

/* Scores of an attention that is written out: length times length for each head. */
static bool
attention_fills_it(const struct facts *facts)
{
	const struct tn_report_holder *holder = few_large_ones(facts);
	bool large = holder != NULL && holder->what != NULL && strcmp(holder->what, "softmax") == 0;
	return large || scores_of_layers(facts) != NULL;
}

static void
why_attention(const struct facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = scores_of_layers(facts);
	holder = holder != NULL ? holder : few_large_ones(facts);
	int64_t all = bytes_like(facts, holder);
	print_bytes(out, "an attention that is written out keeps its scores: ", all, "");
	if (holder->blocks > 1)
		print_bytes(out, " in pieces of ", holder->bytes / holder->blocks, "");
	print_line(out, ", by the softmax at ", &holder->at);
	fputs("; they grow with the square of the length", out);
}

/* The loss over a large vocabulary: logits, their softmax, and the gradients of both. */
static bool
logits_fill_it(const struct facts *facts)
{
	bool loss = false;
	for (size_t i = 0; i < facts->oom->stack.count && i < 4; i++) {
		const char *function = facts->oom->stack.items[i].function;
		loss |= function != NULL && strcmp(function, "cross_entropy") == 0;
	}
	for (size_t i = 0; i < facts->moment->holder_count && facts->oom->at != NULL; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		loss |= holder->what != NULL && strcmp(holder->what, "log_softmax") == 0 && holder->at.file != NULL &&
		        holder->at.line == facts->oom->at->line && strcmp(holder->at.file, facts->oom->at->file) == 0;
	}
	return (loss || facts->oom->vocabulary > 0) && facts->asked >= facts->room / 16;
}

static void
why_logits(const struct facts *facts, FILE *out)
{
	if (facts->oom->vocabulary > 0)
		fprintf(out, "the loss over a vocabulary of %lld: its logits take ", (long long)facts->oom->vocabulary);
	else
		fputs("the loss over a large vocabulary: its logits take ", out);
	print_bytes(out, "", facts->asked, facts->report->facts.known && !facts->report->facts.trains
	                                       ? ""
	                                       : ", and their softmax and their gradients as much again each");
}

static void
why_a_few(const struct facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = few_large_ones(facts);
	if (holder->alike > 1)
		fprintf(out, "a few large tensors: %lld times ", (long long)holder->alike);
	else
		fputs("one large tensor: ", out);
	print_bytes(out, "", holder->bytes / (holder->alike > 0 ? holder->alike : 1), " of activations");
	print_line(out, " from ", &holder->at);
}

static bool
one_tensor(const struct facts *facts)
{
	int64_t largest = 0;
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		int64_t bytes = holder->blocks == 1 ? holder->bytes : holder->bytes / (holder->alike > 0 ? holder->alike : 1);
		if (bytes > largest)
			largest = bytes;
	}
	return facts->moment->detailed && facts->report->batch_size < MANY_SAMPLES && facts->asked >= facts->room / 5 &&
	       facts->asked >= facts->lasting &&
	       2 * facts->asked >= facts->passing && facts->asked >= largest;
}

static void
why_one_tensor(const struct facts *facts, FILE *out)
{
	print_bytes(out, "one large tensor: the ", facts->asked, " asked for here are more than any other holds");
}

/* ---- what the program keeps beside model and batch ---- */

/* Buffers and other tensors of modules, a copy of the model: as large whatever the batch. */
static bool
is_of_modules(const struct tn_report_holder *holder)
{
	static const char *const names[] = { "kept by modules", "pruning masks", "pruned weights", "copy of the model" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (holder->category == TN_CATEGORY_temporaries && holder->what != NULL && strstr(holder->what, names[i]) != NULL)
			return true;
	return false;
}

/* One tensor, or a few, that a module has just made: its work, kept by nobody as far as is known. */
static bool
is_at_work(const struct tn_report_holder *holder)
{
	return holder->in_module && holder->alike < 4 && holder->blocks < 16;
}

static const struct tn_report_holder *
largest_kept(const struct facts *facts)
{
	for (size_t i = 0; i < facts->moment->holder_count; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category == TN_CATEGORY_temporaries && holder->at.file != NULL && !is_of_modules(holder) &&
		    !is_at_work(holder))
			return holder->bytes >= facts->room / 4 ? holder : NULL;
	}
	return NULL;
}

/* Many of a kind from one line that stands outside of the model's layers. */
static bool
piles_up(const struct facts *facts)
{
	const struct tn_report_holder *holder = largest_kept(facts);
	return holder != NULL && !holder->layers && (holder->alike >= 4 || holder->blocks >= 16);
}

/* A pile of small things always leaves pieces between them. */
static bool
piles_up_in_pieces(const struct facts *facts)
{
	return piles_up(facts) && facts->cached < largest_kept(facts)->bytes / 2;
}

static void
why_kept(const struct facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = largest_kept(facts);
	print_bytes(out, "", holder->bytes, " from one line, ");
	print_line(out, "", &holder->at);
	fprintf(out, ", that %s neither part of the model nor kept for a backward pass", holder->blocks == 1 ? "is" : "are");
	if (holder->blocks > 1)
		fprintf(out, " (%lld tensors)", (long long)holder->blocks);
}

static bool
keeps_much(const struct facts *facts)
{
	return largest_kept(facts) != NULL;
}

static bool
model_outweighs(const struct facts *facts)
{
	return facts->moment->detailed && facts->lasting > 0 && facts->lasting >= facts->passing + facts->asked;
}

static void
why_model(const struct facts *facts, FILE *out)
{
	print_bytes(out, "the model: parameters ", of(facts, TN_CATEGORY_parameters), "");
	if (of(facts, TN_CATEGORY_gradients) > 0)
		print_bytes(out, ", gradients ", of(facts, TN_CATEGORY_gradients), "");
	if (of(facts, TN_CATEGORY_optimizer_state) > 0)
		print_bytes(out, ", optimizer state ", of(facts, TN_CATEGORY_optimizer_state), "");
	fputs(" stay, whatever the batch", out);
}

static bool
activations_outweigh(const struct facts *facts)
{
	return facts->moment->detailed && facts->passing > 0 && 2 * of(facts, TN_CATEGORY_activations) >= facts->passing;
}

/* The batch of every step so far is still there: so is all that was computed from it. */
static const struct tn_report_holder *
kept_batches(const struct facts *facts)
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
graphs_are_kept(const struct facts *facts)
{
	return activations_outweigh(facts) && kept_batches(facts) != NULL;
}

static void
why_graphs(const struct facts *facts, FILE *out)
{
	const struct tn_report_holder *holder = kept_batches(facts);
	fprintf(out, "%lld batches are still there", (long long)(holder->alike > 1 ? holder->alike : holder->blocks));
	print_line(out, " (", &holder->at);
	print_bytes(out, holder->at.file != NULL ? "), with " : ", with ", of(facts, TN_CATEGORY_activations),
	            " of activations that earlier steps should have given back");
}

static bool
gradients_of_before(const struct facts *facts)
{
	int64_t gradients = of(facts, TN_CATEGORY_gradients);
	return facts->moment->detailed && phase_is(facts, "forward") && facts->oom->step >= 2 &&
	       gradients >= facts->room / 8 && gradients >= facts->lacks;
}

static void
why_gradients(const struct facts *facts, FILE *out)
{
	print_bytes(out, "gradients of the step before, ", of(facts, TN_CATEGORY_gradients),
	            ", are still there in the forward pass");
}

/* Checkpointing that is configured acts in train() only. */
static bool
left_in_eval(const struct facts *facts)
{
	const struct tn_facts *seen = &facts->report->facts;
	return seen->trained_in_eval && seen->checkpoints_wait && activations_outweigh(facts) &&
	       of(facts, TN_CATEGORY_activations) >= facts->room / 16;
}

static void
why_left_in_eval(const struct facts *facts, FILE *out)
{
	print_bytes(out, "the model is trained in eval() mode, where its gradient checkpointing does nothing: ",
	            of(facts, TN_CATEGORY_activations), " of activations are kept");
}

static bool
graph_in_evaluation(const struct facts *facts)
{
	return activations_outweigh(facts) && phase_is(facts, "evaluation") && of(facts, TN_CATEGORY_activations) > facts->room / 8;
}

static void
why_graph_in_evaluation(const struct facts *facts, FILE *out)
{
	print_bytes(out, "evaluation keeps ", of(facts, TN_CATEGORY_activations),
	            " of activations for a backward pass that does not come");
}

static void
why_activations(const struct facts *facts, FILE *out)
{
	int64_t activations = of(facts, TN_CATEGORY_activations), batch = facts->report->batch_size;
	const char *least = phase_is(facts, "forward") ? "at least " : "";
	if (batch > 1) {
		fprintf(out, "the batch: each of its %lld samples adds %s", (long long)batch, least);
		print_bytes(out, "", activations / batch, " of activations");
	} else if (batch == 1) {
		fprintf(out, "the activations of a single sample take %s", least);
		print_bytes(out, "", activations, "");
	} else {
		print_bytes(out, "the batch: its activations take ", activations, "");
	}
}

static bool
temporaries_outweigh(const struct facts *facts)
{
	return facts->moment->detailed && facts->passing > 0 && 2 * of(facts, TN_CATEGORY_temporaries) >= facts->passing;
}

static void
why_temporaries(const struct facts *facts, FILE *out)
{
	print_bytes(out, "the work on one batch: ", of(facts, TN_CATEGORY_temporaries),
	            " in tensors that are kept for no backward pass");
}

static bool
batch_outweighs(const struct facts *facts)
{
	return facts->moment->detailed && facts->passing > 0;
}

static void
why_batch(const struct facts *facts, FILE *out)
{
	print_bytes(out, "the batch: what it brings takes ", facts->passing, "");
}

static const struct rule rules[] = {
	{ "host_ram", "host_ram", host_is_full, why_host, "fewer_workers less_pinned" },
	{ "too_big_single_request", "too_big_single_request", larger_than_the_card, why_larger, "in_pieces" },
	{ "memory_fraction_limit", "memory_fraction_limit", limited_by_itself, why_limited, "raise_limit" },
	{ "library_workspace", "library_workspace", a_workspace, why_workspace, "accumulate smaller_batch no_benchmark workspace_config" },
	{ "leak_suspected", "growth", grew, why_grew, "let_go" },
	{ "other_process", "other_process", others_hold_it, why_others, "end_others" },
	{ "model_or_batch_too_big", "optimizer_state", first_update, why_first_update, "small_state lora more_cards" },
	{ "leak_suspected", "growth", piles_up_in_pieces, why_kept, "keep_less" },
	{ "fragmentation", "fragmentation", in_pieces_by_settings, why_in_pieces, "expandable" },
	{ "leak_suspected", "growth", graphs_are_kept, why_graphs, "let_go" },
	{ "model_or_batch_too_big", "trained_in_eval", left_in_eval, why_left_in_eval, "train_mode" },
	{ "model_or_batch_too_big", "evaluation_with_graph", graph_in_evaluation, why_graph_in_evaluation, "no_grad" },
	{ "model_or_batch_too_big", "model_too_big", alone_too_large, why_alone,
	  "parameters_16_bits small_state lora quantise quantise_frozen build_on_cpu" },
	{ "model_or_batch_too_big", "model_too_big", while_building, why_building,
	  "parameters_16_bits quantise quantise_frozen build_on_cpu" },
	{ "model_or_batch_too_big", "foreach_temporaries", all_at_once, why_all_at_once, "no_foreach" },
	{ "model_or_batch_too_big", "optimizer_state", while_updating, why_updating, "small_state lora more_cards" },
	{ "model_or_batch_too_big", "gradients_live_through_forward", gradients_of_before, why_gradients, "zero_grad" },
	{ "model_or_batch_too_big", "attention_weights", attention_fills_it, why_attention, "sdpa shorter" },
	{ "model_or_batch_too_big", "logits", logits_fill_it, why_logits,
	  "chunked_loss fewer_logits accumulate smaller_batch" },
	{ "model_or_batch_too_big", "large_activations", a_few_fill_it, why_a_few,
	  "work_in_pieces accumulate smaller_batch" },
	{ "model_or_batch_too_big", "large_tensor", one_tensor, why_one_tensor, "work_in_pieces accumulate smaller_batch" },
	{ "leak_suspected", "growth", piles_up, why_kept, "keep_less" },
	{ "model_or_batch_too_big", "large_temporaries", keeps_much, why_kept, "keep_on_cpu accumulate smaller_batch" },
	{ "model_or_batch_too_big", "model_too_big", model_outweighs, why_model,
	  "parameters_16_bits small_state lora quantise quantise_frozen more_cards" },
	{ "model_or_batch_too_big", "batch_too_big", activations_outweigh, why_activations,
	  "accumulate smaller_batch checkpointing autocast inference_16_bits more_cards" },
	{ "model_or_batch_too_big", "batch_too_big", temporaries_outweigh, why_temporaries,
	  "accumulate smaller_batch work_in_pieces" },
	{ "model_or_batch_too_big", "batch_too_big", batch_outweighs, why_batch, "accumulate smaller_batch more_cards" },
};

static int64_t
bytes_of_modules(const struct tn_report_moment *moment)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < moment->holder_count; i++)
		bytes += is_of_modules(&moment->holders[i]) ? moment->holders[i].bytes : 0;
	return bytes;
}

static struct facts
facts_of(const struct tn_report *report)
{
	const struct tn_report_oom *oom = &report->oom;
	const struct tn_report_moment *moment = &report->at_oom;
	struct facts facts = { .report = report,
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

static char *
words_of(const struct rule *rule, const struct facts *facts)
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
tn__is_cause(const char *id)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].id, id) == 0)
			return true;
	return false;
}

void
tn__report_find_cause(struct tn_report *report)
{
	struct facts facts = facts_of(report);
	const struct rule *rule = NULL;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && rule == NULL; i++)
		if (rules[i].holds(&facts))
			rule = &rules[i];
	if (report->oom.cause == NULL)
		report->oom.cause = strdup(rule != NULL ? rule->cause : "unknown");
	char *why = rule != NULL ? words_of(rule, &facts) : NULL;
	if (why == NULL)
		return;
	tn__report_advise(report, tn__report_add_finding(report, rule->id, TN_SEVERITY_ERROR, report->oom.short_by_bytes,
	                                          grew(&facts) ? report->growth.at : report->oom.at, NULL, "%s", why),
	           rule->advice);
	free(why);
}
