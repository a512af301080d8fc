/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose card it was: what ranks hold of cards that are others', and which one refused a program that is no rank.
 */
#include <stdio.h>

#include "base/plain.h"
#include "supervise/internal.h"
#include "verdict/advice.h"
#include "verdict/finding_rows.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"

/* The rank whose own card it is; NULL: none, or nobody knows. */
static const struct tn_rank *
rank_of_card(const struct tn_report *report, int64_t card)
{
	for (size_t i = 0; i < report->rank_count; i++)
		if (report->ranks[i].card == card)
			return &report->ranks[i];
	return NULL;
}

/* True where the report is about that rank's out-of-memory, and it would not have run out without these bytes. */
static bool
is_the_reason(const struct tn_report *report, const struct tn_rank *owner, int64_t out_pid, uint64_t bytes)
{
	int64_t lacks = tn__report_short_by(report);
	return owner->pid == out_pid && report->oom.seen && lacks > 0 && bytes >= (uint64_t)lacks;
}

/* What ranks hold of a card that is not their own, as one that has not set its device holds a context of card 0. */
void
tn__ranks_find_strangers(const struct tn_ledger *ledger, int64_t out_pid, struct tn_report *report)
{
	for (uint32_t card = 0; report->rank_count > 1 && card < ledger->device_count && card < TN_MAX_DEVICES; card++) {
		const struct tn_rank *owner = rank_of_card(report, card);
		int64_t strangers = 0, first = -1;
		uint64_t bytes = 0;
		for (size_t i = 0; i < report->rank_count; i++) {
			const struct tn_ledger_rank *row = tn__rank_row(ledger, report->ranks[i].pid);
			if (row == NULL || row->device == (int32_t)card || row->peak_bytes[card] == 0)
				continue;
			bytes += row->peak_bytes[card];
			first = strangers++ == 0 ? row->rank : first;
		}
		if (strangers == 0 || owner == NULL)
			continue;
		char held[32], who[64];
		if (strangers == 1)
			snprintf(who, sizeof(who), "rank %lld holds", (long long)first);
		else
			snprintf(who, sizeof(who), "%lld ranks of other cards hold", (long long)strangers);
		struct tn_finding *finding = tn__report_add_finding(
			report, TN_FINDING_on_others_card, (int64_t)bytes, NULL, NULL,
			"%s %s of card %u, which is rank %lld's, a CUDA context among it", who,
			tn__human_bytes((int64_t)bytes, held), card, (long long)owner->rank);
		tn__report_advise(report, finding, tn__finding_row(TN_FINDING_on_others_card)->advice);
		if (finding != NULL && is_the_reason(report, owner, out_pid, bytes))
			tn__report_lead_with(report, finding);
	}
}

/* Ranks that work on one card, as two that both mean the current device do. */
void
tn__ranks_find_same_card(int64_t out_pid, struct tn_report *report)
{
	const struct tn_rank *out = NULL;
	char who[96] = "", held[32];
	size_t count = 0, length = 0;
	for (size_t i = 0; i < report->rank_count; i++)
		out = report->ranks[i].pid == out_pid ? &report->ranks[i] : out;
	if (out == NULL || out->card == TN_NO_FIGURE || report->gpus < 2 || !report->oom.seen)
		return;
	for (size_t i = 0; i < report->rank_count; i++) {
		const struct tn_rank *rank = &report->ranks[i];
		if (rank->card != out->card)
			continue;
		if (length < sizeof(who) - 32)
			length += (size_t)snprintf(who + length, sizeof(who) - length, "%s%lld", count > 0 ? ", " : "",
			                           (long long)rank->rank);
		count++;
	}
	const struct tn_report_split *split = &report->at_oom.split;
	if (count < 2 || report->oom.reserved_bytes == TN_NO_FIGURE || split->program == TN_NO_FIGURE)
		return;
	int64_t own = report->oom.reserved_bytes + (int64_t)report->gpu.context_bytes;
	int64_t others = split->program + split->context - own, lacks = tn__report_short_by(report);
	if (others <= 0)
		return;
	struct tn_finding *finding = tn__report_add_finding(
		report, TN_FINDING_same_card, others, NULL, NULL,
		"ranks %s work on one card, card %lld: beside rank %lld %s %s of it", who, (long long)out->card,
		(long long)out->rank, count == 2 ? "the other one holds" : "the others hold", tn__human_bytes(others, held));
	tn__report_advise(report, finding, tn__finding_row(TN_FINDING_same_card)->advice);
	if (finding != NULL && lacks > 0 && others >= lacks)
		tn__report_lead_with(report, finding);
}

/* One program on several cards of which one is full: what it needs of each, by a run on cards that are never full, would fit them
 * if it were spread evenly. */
void
tn__find_uneven_cards(struct tn_report *report)
{
	const struct tn_need *need = &report->need;
	int64_t card = (int64_t)report->gpu.total_bytes, all = 0, most = 0;
	size_t used = 0; /* by more than a context */
	char text[256] = "", bytes[32];
	size_t length = 0;
	if (report->rank_count > 0 || report->card_count < 2 || need->card_count != report->card_count || !report->oom.seen)
		return;
	for (size_t i = 0; i < need->card_count; i++) {
		all += need->cards[i];
		used += need->cards[i] > (int64_t)report->gpu.context_bytes;
		most = need->cards[i] > most ? need->cards[i] : most;
		if (length < sizeof(text) - 64)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%scard %lld: %s", i > 0 ? ", " : "",
			                           (long long)report->cards[i].index, tn__human_bytes(need->cards[i], bytes));
	}
	/* Only where nothing in particular was found: what DataParallel gathers is no part of the model. */
	if (report->finding_count > 0 && !tn__is_cause(&report->findings[0]))
		return;
	if (used < 2 || most <= card || all > (int64_t)(need->card_count) * (card - card / 16))
		return;
	struct tn_finding *finding = tn__report_add_finding(
		report, TN_FINDING_uneven_cards, most - card, NULL, NULL,
		"the model is spread unevenly over the cards, which have %s each: it needs %s", tn__human_bytes(card, bytes),
		text);
	tn__report_advise(report, finding, tn__finding_row(TN_FINDING_uneven_cards)->advice);
	if (finding != NULL)
		tn__report_lead_with(report, finding);
}

void
tn__mark_refusing_card(const struct tn_ledger *ledger, struct tn_report *report)
{
	struct tn_card_held *last = NULL;
	for (size_t i = 0; i < report->card_count; i++) {
		const struct tn_ledger_device *device = &ledger->devices[report->cards[i].index];
		if (device->refusal.count > 0 &&
		    (last == NULL || device->refusal.sequence > ledger->devices[last->index].refusal.sequence))
			last = &report->cards[i];
	}
	if (last != NULL)
		last->out_of_memory = true;
}
