/* SPDX-License-Identifier: Apache-2.0
 *
 * Causes that are not the model nor the batch: the host's memory, limits, libraries, other processes, growth, pieces.
 */
#include <string.h>

#include "base/strings.h"
#include "verdict/cause_rules.h"
#include "verdict/programs.h"

static bool
said(const struct tn_cause_facts *facts, const char *words)
{
	return facts->oom->message != NULL && strstr(facts->oom->message, words) != NULL;
}

/* ---- not the card ---- */

static bool
host_is_full(const struct tn_cause_facts *facts)
{
	for (size_t i = 0; i < facts->oom->stack.count; i++) {
		const char *function = facts->oom->stack.items[i].function;
		if (facts->asked == TN_NO_FIGURE && function != NULL && strcmp(function, "pin_memory") == 0)
			return true;
	}
	return said(facts, "DefaultCPUAllocator") || said(facts, "pin_memory");
}

static void
why_host(const struct tn_cause_facts *facts, FILE *out)
{
	fputs("the computer's own memory is full, not the card's", out);
}

const struct tn_cause tn__cause_host_is_full = { TN_FINDING_host_ram, TN_FINDING_host_ram, host_is_full, why_host,
	                                             NULL };

static bool
larger_than_the_card(const struct tn_cause_facts *facts)
{
	return facts->asked > facts->room;
}

static void
why_larger(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "this one request is larger than all that the card can give (", facts->room, ")");
}

/* As the one before, and it is known what it is. */
static bool
logits_larger(const struct tn_cause_facts *facts)
{
	return larger_than_the_card(facts) && facts->oom->vocabulary > 0;
}

static void
why_logits_larger(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "the logits of all positions, ", facts->asked, "");
	fprintf(out, " over a vocabulary of %lld, ", (long long)facts->oom->vocabulary);
	print_bytes(out, "are larger than all that the card can give (", facts->room, ")");
}

const struct tn_cause tn__cause_logits_larger = { TN_FINDING_too_big_single_request, TN_FINDING_logits, logits_larger,
	                                              why_logits_larger,
	                                              "chunked_loss fewer_logits accumulate smaller_batch" };

const struct tn_cause tn__cause_larger_than_the_card = { TN_FINDING_too_big_single_request,
	                                                     TN_FINDING_too_big_single_request, larger_than_the_card,
	                                                     why_larger, NULL };

static bool
limited_by_itself(const struct tn_cause_facts *facts)
{
	return facts->asked != TN_NO_FIGURE && facts->oom->free_bytes >= facts->asked && said(facts, "allowed");
}

static void
why_limited(const struct tn_cause_facts *facts, FILE *out)
{
	fputs("the card had room: the program has limited itself (set_per_process_memory_fraction)", out);
}

const struct tn_cause tn__cause_limited_by_itself = { TN_FINDING_memory_fraction_limit,
	                                                  TN_FINDING_memory_fraction_limit, limited_by_itself, why_limited,
	                                                  NULL };

/* True when more than this request will be missing: it is only the first that failed. */
static bool
more_is_to_come(const struct tn_cause_facts *facts)
{
	return facts->report->need.least > 0 && facts->lacks > facts->asked;
}

static bool
a_workspace(const struct tn_cause_facts *facts)
{
	return facts->oom->workspace && !more_is_to_come(facts);
}

static void
why_workspace(const struct tn_cause_facts *facts, FILE *out)
{
	fputs("a library asked for it as working memory, not for a tensor", out);
}

const struct tn_cause tn__cause_a_workspace = { TN_FINDING_library_workspace, TN_FINDING_library_workspace, a_workspace,
	                                            why_workspace, NULL };

/* ---- somebody else, or something else ---- */

static void
why_grew(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_report_growth *growth = &facts->report->growth;
	print_bytes(out, "memory that is never freed: ", growth->bytes, " more with each ");
	fputs(growth->unit != NULL ? growth->unit : "step", out);
	print_line(out, ", from ", growth->at);
}

const struct tn_cause tn__cause_grew = { TN_FINDING_leak_suspected, TN_FINDING_growth, tn__cause_grows, why_grew,
	                                     NULL };

/* What the others hold is enough, and as far as it is known it would fit without them. */
static bool
another_program(const struct tn_cause_facts *facts)
{
	const struct tn_report *report = facts->report;
	const struct tn_programs *programs = &report->programs;
	int64_t beside = tn__programs_beside_at_most(report);
	if (programs->count == 0 || programs->failing == TN_NO_FIGURE)
		return false;
	if (report->need.program_count == programs->count &&
	    report->need.programs[programs->failing] + of(facts, TN_CATEGORY_other_processes) >
	        (int64_t)report->gpu.total_bytes)
		return false;
	return tn__programs_beside(report) > 0 && facts->lacks > 0 && beside >= facts->lacks;
}

static void
why_another_program(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_report *report = facts->report;
	const struct tn_programs *programs = &report->programs;
	char who[160];
	bool first = true;
	for (size_t i = 0; i < programs->count; i++) {
		if ((int64_t)i == programs->failing || programs->items[i].at_oom.device_bytes <= 0)
			continue;
		fprintf(out, "%s%s", first ? "" : ", ", tn__program_words(report, i, who));
		print_bytes(out, " holds ", programs->items[i].at_oom.device_bytes, first ? " of the card" : "");
		first = false;
	}
	if (report->need.program_count == programs->count) {
		fprintf(out, "; alone program %lld needs ", (long long)programs->failing + 1);
		print_bytes(out, "", report->need.programs[programs->failing], " and fits");
	}
}

const struct tn_cause tn__cause_other_program = { TN_FINDING_other_process, TN_FINDING_other_program, another_program,
	                                              why_another_program, NULL };

static bool
others_hold_it(const struct tn_cause_facts *facts)
{
	int64_t others = of(facts, TN_CATEGORY_other_processes);
	return facts->lacks > 0 && others >= facts->lacks && others >= facts->cached;
}

static void
why_others(const struct tn_cause_facts *facts, FILE *out)
{
	print_bytes(out, "other processes hold ", of(facts, TN_CATEGORY_other_processes), " of the card");
}

const struct tn_cause tn__cause_others_hold_it = { TN_FINDING_other_process, TN_FINDING_other_process, others_hold_it,
	                                               why_others, NULL };

/* ---- saving ---- */

/* PyTorch's own code that brings shards together for a state dict is at work. What is sharded trains well on this card. */
static bool
state_is_gathered(const struct tn_cause_facts *facts)
{
	static const char *const files[] = { "torch/distributed/fsdp/_state_dict_utils.py",
		                                 "torch/distributed/_state_dict_utils.py",
		                                 "torch/distributed/checkpoint/state_dict.py" };
	bool gathers = false, loads = phase_is(facts, "load");
	for (size_t i = 0; i < facts->oom->stack.count; i++) {
		const struct tn_place *frame = &facts->oom->stack.items[i];
		for (size_t j = 0; j < sizeof(files) / sizeof(files[0]); j++)
			gathers |= tn__ends_with(frame->file, files[j]);
		gathers |= tn__ends_with(frame->function, "full_tensor") &&
		           tn__ends_with(frame->file, "torch/distributed/tensor/_api.py");
	}
	return gathers && !loads;
}

static void
why_state(const struct tn_cause_facts *facts, FILE *out)
{
	const struct tn_place *at = facts->oom->at;
	int64_t so_far = 0;
	for (size_t i = 0; i < facts->moment->holder_count && at != NULL; i++) {
		const struct tn_report_holder *holder = &facts->moment->holders[i];
		if (holder->category == TN_CATEGORY_temporaries && holder->at.file != NULL && holder->at.line == at->line &&
		    strcmp(holder->at.file, at->file) == 0)
			so_far += holder->bytes;
	}
	fputs("the full state dict is gathered on this card while it is saved", out);
	if (so_far > 0)
		print_bytes(out, ", ", so_far, " of it so far");
	print_line(out, " (", at);
	fputs(at != NULL && at->file != NULL ? ")" : "", out);
}

const struct tn_cause tn__cause_state_is_gathered = { TN_FINDING_gathered_state, TN_FINDING_gathered_state,
	                                                  state_is_gathered, why_state, NULL };

/* Enough of it would do, and it is enough to speak of: a little is lost between pieces in every program. Not for one whose
 * tensors alone are more than the card has. */
static bool
in_pieces(const struct tn_cause_facts *facts)
{
	if (facts->report->need.least > (int64_t)facts->report->gpu.total_bytes)
		return false;
	return facts->asked > 0 && facts->cached >= facts->asked && facts->cached >= facts->room / 16;
}

/* What settings can do about it has not been set yet. */
static bool
in_pieces_by_settings(const struct tn_cause_facts *facts)
{
	return in_pieces(facts) && !facts->report->facts.expandable_segments;
}

static void
why_in_pieces(const struct tn_cause_facts *facts, FILE *out)
{
	int64_t largest = facts->oom->largest_free_block_bytes;
	if (largest == TN_NO_FIGURE)
		largest = facts->moment->largest_free_block_bytes;
	print_bytes(out, "fragmentation: PyTorch keeps ", facts->cached, " that no tensor uses");
	if (largest != TN_NO_FIGURE)
		print_bytes(out, ", the largest piece of it ", largest, "");
}

const struct tn_cause tn__cause_in_pieces_by_settings = { TN_FINDING_fragmentation, TN_FINDING_fragmentation,
	                                                      in_pieces_by_settings, why_in_pieces, NULL };
