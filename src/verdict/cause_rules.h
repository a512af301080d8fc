/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules that name the cause of an out-of-memory, and what they look at. Their order stands in cause.c. Internal to cause*.c.
 *
 * A rule that cannot know is not among them: the cause stays unknown.
 */
#ifndef TN_VERDICT_CAUSE_RULES_H
#define TN_VERDICT_CAUSE_RULES_H

#include <stdio.h>
#include <string.h>

#include "verdict/model.h"
#include "verdict/paths.h"

struct tn_cause_facts {
	const struct tn_report *report;
	const struct tn_report_oom *oom;
	const struct tn_report_moment *moment;
	int64_t asked, room; /* room: the card without one context */
	int64_t cached;      /* reserved, in use by no tensor */
	int64_t lasting;     /* parameters, gradients and optimizer state: there whatever the batch */
	int64_t passing;     /* what a batch brings */
	int64_t lacks;       /* in all, where that is known, else by the request that failed */
};

struct tn_cause {
	enum tn_finding_id cause, id; /* of the out-of-memory, and of the finding */
	bool (*holds)(const struct tn_cause_facts *);
	void (*why)(const struct tn_cause_facts *,
	            FILE *); /* the reason in words, with the figures that it was told from */
	const char *advice; /* ids of the table of advice, best first, in the place of the finding's; NULL: the finding's */
};

/* ---- cause_card.c ---- */
extern const struct tn_cause tn__cause_host_is_full, tn__cause_logits_larger, tn__cause_larger_than_the_card,
	tn__cause_limited_by_itself, tn__cause_a_workspace, tn__cause_grew, tn__cause_other_program,
	tn__cause_others_hold_it, tn__cause_state_is_gathered, tn__cause_in_pieces_by_settings;
/* ---- cause_model.c ---- */
extern const struct tn_cause tn__cause_alone_too_large, tn__cause_while_building, tn__cause_first_update,
	tn__cause_all_at_once, tn__cause_while_updating, tn__cause_model_outweighs;
/* ---- cause_kept.c ---- */
extern const struct tn_cause tn__cause_piles_up_in_pieces, tn__cause_piles_up, tn__cause_keeps_much,
	tn__cause_graphs_are_kept, tn__cause_gradients_of_before, tn__cause_left_in_eval, tn__cause_graph_in_evaluation;
/* ---- cause_batch.c ---- */
extern const struct tn_cause tn__cause_a_few_fill_it, tn__cause_one_tensor, tn__cause_attention_fills_it,
	tn__cause_larger_input, tn__cause_logits_fill_it, tn__cause_activations_outweigh, tn__cause_temporaries_outweigh,
	tn__cause_batch_outweighs, tn__cause_longest_sample;

/* ---- cause_facts.c: what several rules ask ---- */

struct tn_cause_facts tn__cause_facts_of(const struct tn_report *report);
/* Buffers and other tensors of modules, a copy of the model: as large whatever the batch. */
bool tn__cause_is_of_modules(const struct tn_report_holder *holder);
bool tn__cause_grows(const struct tn_cause_facts *facts);
/* Half or more of what the batch brings is activations. */
bool tn__cause_is_of_activations(const struct tn_cause_facts *facts);

/* ---- and in short ---- */

/* Bytes of a category at the moment; 0 where they are unknown. */
static inline int64_t
of(const struct tn_cause_facts *facts, enum tn_category category)
{
	int64_t bytes = facts->moment->by_category[category];
	return bytes == TN_NO_FIGURE ? 0 : bytes;
}

static inline bool
phase_is(const struct tn_cause_facts *facts, const char *phase)
{
	return facts->oom->phase != NULL && strcmp(facts->oom->phase, phase) == 0;
}

static inline void
print_bytes(FILE *out, const char *before, int64_t bytes, const char *after)
{
	char buffer[32];
	fprintf(out, "%s%s%s", before, tn__human_bytes(bytes, buffer), after);
}

/* Nothing for an unknown place. */
static inline void
print_line(FILE *out, const char *before, const struct tn_place *at)
{
	const char *slash = at != NULL && at->file != NULL ? strrchr(at->file, '/') : NULL;
	if (at != NULL && at->file != NULL)
		fprintf(out, "%s%s%s%lld", before, slash != NULL ? slash + 1 : at->file, tn__before_line(at->file),
		        (long long)at->line);
}

#endif
