/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "report/json_parts.h"
#include "report/ranks.h"
#include "report/text.h"
#include "verdict/job.h"

#define MIB (1 << 20)
#define MOST_CARDS_SAID 8
#define WORTH_SAYING 0.02 /* of the worst card: a difference that is told */

const char *
tn__operation_text(int64_t operation)
{
	static const char *const names[] = { "all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather",
		                                 "all_to_all", "gather", "scatter",   "send",           "recv" };
	bool known = operation >= 0 && operation < (int64_t)(sizeof(names) / sizeof(names[0]));
	return known ? names[operation] : "init";
}

/* ---- JSON ---- */

static json_t *
peak(int64_t allocated, int64_t reserved, const struct tn_report_moment *moment)
{
	return json_pack("{s:o, s:o, s:o}", "allocated_bytes", tn__json_figure(allocated), "reserved_bytes",
	                 tn__json_figure(reserved), "device_bytes", tn__json_figure(moment->device_bytes));
}

static json_t *
moment(const struct tn_report_moment *of)
{
	if (of->device_bytes == TN_NO_FIGURE)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "at", tn__json_place(of->at), "step", tn__json_figure(of->step), "phase",
	                 tn__json_text(of->phase), "by_category", tn__json_categories(of));
}

static json_t *
communication(const struct tn_rank *rank)
{
	json_t *array = json_array();
	for (int64_t i = 0; i < TN_RANK_OPERATIONS; i++)
		if (rank->communication[i].calls > 0)
			json_array_append_new(array, json_pack("{s:s, s:I, s:I}", "operation", tn__operation_text(i), "calls",
			                                       (json_int_t)rank->communication[i].calls, "bytes",
			                                       (json_int_t)rank->communication[i].bytes));
	return array;
}

/* The node of a rank, and a card's number there. Without a job of several nodes there is one. */
static json_int_t
node_of(const struct tn_report *report, int64_t rank)
{
	return report->job.cards > 0 && rank >= 0 ? rank / report->job.cards : 0;
}

static int64_t
card_of(const struct tn_report *report, int64_t card)
{
	return report->job.cards > 0 && card >= 0 ? card % report->job.cards : card;
}

static json_t *
rank_object(const struct tn_report *report, const struct tn_rank *item)
{
	return json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:n, s:o, s:b}", "rank", tn__json_figure(item->rank), "pid",
	                 tn__json_figure(item->pid), "node", node_of(report, item->rank), "card",
	                 tn__json_figure(card_of(report, item->card)), "steps", tn__json_figure(item->steps), "peak",
	                 peak(item->allocated_peak, item->reserved_peak, &item->at_peak), "at_peak", moment(&item->at_peak),
	                 "same_as", "communication", communication(item), "out_of_memory", item->out_of_memory);
}

/* A rank that is not run: it has the peak of the one that it is like. */
static json_t *
absent_object(const struct tn_report *report, int64_t rank, const struct tn_rank *like)
{
	return json_pack("{s:I, s:n, s:I, s:I, s:o, s:o, s:n, s:I, s:[], s:b}", "rank", (json_int_t)rank, "pid", "node",
	                 node_of(report, rank), "card", (json_int_t)card_of(report, rank), "steps",
	                 tn__json_figure(like->steps), "peak",
	                 peak(like->allocated_peak, like->reserved_peak, &like->at_peak), "at_peak", "same_as",
	                 (json_int_t)like->rank, "communication", "out_of_memory", like->out_of_memory);
}

json_t *
tn__json_ranks(const struct tn_report *report)
{
	json_t *array = json_array();
	const struct tn_job *job = &report->job;
	size_t absent = 0;
	for (size_t i = 0; i < report->rank_count; i++) {
		for (; absent < job->absent_count && job->absent[absent].rank < report->ranks[i].rank; absent++)
			json_array_append_new(
				array, absent_object(report, job->absent[absent].rank, &report->ranks[job->absent[absent].like]));
		json_array_append_new(array, rank_object(report, &report->ranks[i]));
	}
	for (; absent < job->absent_count; absent++)
		json_array_append_new(
			array, absent_object(report, job->absent[absent].rank, &report->ranks[job->absent[absent].like]));
	return array;
}

/* A rank that is run, with those that it stands for. */
static json_t *
class_object(const struct tn_report *report, const struct tn_rank *rank)
{
	int64_t ranks = 1;
	bool proven = true;
	for (int why = 0; why < TN_LIKENESSES; why++) {
		int64_t count = tn__job_count_like(report, rank, (enum tn_likeness)why);
		ranks += count;
		proven = proven && (count == 0 || tn__likeness_is_proof((enum tn_likeness)why));
	}
	return json_pack("{s:I, s:I, s:b}", "rank", (json_int_t)rank->rank, "ranks", (json_int_t)ranks, "proven", proven);
}

json_t *
tn__json_job(const struct tn_report *report)
{
	const struct tn_job *job = &report->job;
	if (job->ranks == 0)
		return json_null();
	json_t *classes = json_array();
	for (size_t i = 0; i < report->rank_count; i++)
		json_array_append_new(classes, class_object(report, &report->ranks[i]));
	return json_pack("{s:I, s:I, s:b, s:o}", "ranks", (json_int_t)job->ranks, "run", (json_int_t)report->rank_count,
	                 "proven", tn__job_is_proven(report), "classes", classes);
}

static json_t *
processes(const struct tn_report *report, int64_t card)
{
	json_t *array = json_array();
	for (size_t i = 0; i < report->rank_count; i++)
		if (report->ranks[i].card == card)
			json_array_append_new(array,
			                      json_pack("{s:o, s:o}", "rank", tn__json_figure(report->ranks[i].rank),
			                                "device_bytes", tn__json_figure(report->ranks[i].at_peak.device_bytes)));
	return array;
}

static json_int_t
node_of_card(const struct tn_report *report, int64_t card)
{
	for (size_t i = 0; i < report->rank_count; i++)
		if (report->ranks[i].card == card)
			return node_of(report, report->ranks[i].rank);
	return 0;
}

json_t *
tn__json_cards(const struct tn_report *report)
{
	json_t *array = json_array();
	for (size_t i = 0; i < report->card_count; i++) {
		const struct tn_card_held *card = &report->cards[i];
		json_array_append_new(
			array,
			json_pack("{s:I, s:I, s:s, s:s, s:{s:o}, s:o, s:b, s:o}", "index", (json_int_t)card_of(report, card->index),
		              "node", node_of_card(report, card->index), "gpu", report->gpu.name, "verdict",
		              card->out_of_memory ? "out_of_memory" : tn__verdict_text(report->verdict), "peak", "device_bytes",
		              tn__json_figure(card->at_peak.device_bytes), "at_peak", moment(&card->at_peak), "out_of_memory",
		              card->out_of_memory, "processes", processes(report, card->index)));
	}
	return array;
}

static json_t *
waiting(const struct tn_waiting_rank *item)
{
	return json_pack("{s:o, s:s, s:o}", "rank", tn__json_figure(item->rank), "operation",
	                 tn__operation_text(item->operation), "at", tn__json_place(item->at));
}

json_t *
tn__json_hang(const struct tn_report *report)
{
	const struct tn_hang *hang = &report->hang;
	if (!hang->seen)
		return json_null();
	json_t *others = json_array();
	for (size_t i = 0; i < hang->count; i++)
		json_array_append_new(others, waiting(&hang->waiting[i]));
	return json_pack("{s:o, s:o, s:o, s:o}", "rank", tn__json_figure(hang->who.rank), "operation",
	                 hang->who.operation == TN_NO_FIGURE ? json_null()
	                                                     : json_string(tn__operation_text(hang->who.operation)),
	                 "at", tn__json_place(hang->who.at), "waiting", others);
}

json_t *
tn__json_dead(const struct tn_report *report)
{
	const struct tn_dead *dead = &report->dead;
	if (!dead->seen)
		return json_null();
	bool by_signal = WIFSIGNALED(dead->wait_status);
	return json_pack("{s:o, s:o, s:o, s:o}", "rank", tn__json_figure(dead->rank), "signal",
	                 tn__json_figure(by_signal ? WTERMSIG(dead->wait_status) : TN_NO_FIGURE), "status",
	                 tn__json_figure(by_signal ? TN_NO_FIGURE : WEXITSTATUS(dead->wait_status)), "at",
	                 tn__json_place(dead->at));
}

/* ---- text ---- */

static int
by_bytes(const void *one, const void *two)
{
	const struct tn_card_held *const *a = one, *const *b = two;
	int64_t difference = (*b)->at_peak.device_bytes - (*a)->at_peak.device_bytes;
	return difference != 0 ? (difference > 0 ? 1 : -1) : (*a)->index > (*b)->index ? 1 : -1;
}

static void
say_ranks_of(const struct tn_report *report, int64_t card, char out[64])
{
	size_t count = 0, length = 0, all = 0;
	out[0] = '\0';
	for (size_t i = 0; i < report->rank_count; i++)
		all += report->ranks[i].card == card;
	for (size_t i = 0; i < report->rank_count; i++)
		if (report->ranks[i].card == card && length < 40)
			length += (size_t)snprintf(out + length, 64 - length, "%s%lld",
			                           count++ > 0 ? ", "
			                           : all > 1   ? "ranks "
			                                       : "rank ",
			                           (long long)report->ranks[i].rank);
}

/* "0, 1, 7" */
static void
list_ranks(const struct tn_report *report, char out[64])
{
	size_t length = 0;
	for (size_t i = 0; i < report->rank_count && length < 48; i++)
		length += (size_t)snprintf(out + length, 64 - length, "%s%lld", i > 0 ? ", " : "",
		                           (long long)report->ranks[i].rank);
	if (length >= 48)
		snprintf(out + length, 64 - length, ", ...");
}

/* Which ranks of the job were run, whom they stand for, and why that may be believed. Of a job that failed only the
 * ranks that were run are listed: how far each of them came is chance. */
static void
say_job(const struct tn_printer *printer, const struct tn_report *report)
{
	static const char *const likenesses[TN_LIKENESSES] = {
		[TN_LIKENESS_NONE] = ": not proven, it did not do the same as the next one that was run (--ranks runs more)",
		[TN_LIKENESS_NOT_ITS_PLACE] =
			": not proven, ranks with the same place in a smaller group did not do the same (--ranks runs more)",
		[TN_LIKENESS_NEXT] = ", which did the same as the next one that was run: operations, bytes and allocations",
		[TN_LIKENESS_PLACE] =
			", which has the same position in every process group where the position makes a difference",
	};
	char run[64] = "";
	list_ranks(report, run);
	char nodes[64] = "";
	if (tn__job_nodes(report) > 1)
		snprintf(nodes, sizeof(nodes), " on %lld nodes", (long long)tn__job_nodes(report));
	tn__say(printer, TN_TINT_NONE, 2, "of the job's %lld ranks%s %zu were run: %s", (long long)report->job.ranks, nodes,
	        report->rank_count, run);
	for (size_t i = 0, said = 0; i < report->rank_count && report->verdict != TN_VERDICT_FAILED; i++)
		for (int why = 0; why < TN_LIKENESSES && said < MOST_CARDS_SAID; why++) {
			int64_t count = tn__job_count_like(report, &report->ranks[i], (enum tn_likeness)why);
			if (count > 0) {
				tn__say(printer, TN_TINT_NONE, 2, "%lld rank%s like rank %lld%s", (long long)count,
				        count == 1 ? "" : "s", (long long)report->ranks[i].rank, likenesses[why]);
				said++;
			}
		}
}

static bool
any_is_out(const struct tn_report *report)
{
	bool out = false;
	for (size_t i = 0; i < report->card_count; i++)
		out |= report->cards[i].out_of_memory;
	return out;
}

/* What a moment holds by category; a card that nobody uses holds nothing. Folded, what processes asked for is one sum, under `other`. */
static void
parts_of(const struct tn_report_moment *moment, bool folded, int64_t parts[TN_CATEGORIES])
{
	memset(parts, 0, TN_CATEGORIES * sizeof(parts[0]));
	for (int i = 0; i < TN_CATEGORIES; i++) {
		bool apart = i == TN_CATEGORY_context || i == TN_CATEGORY_libraries || i == TN_CATEGORY_other_processes;
		int64_t bytes = moment->by_category[i];
		parts[folded && !apart ? TN_CATEGORY_other : i] += bytes != TN_NO_FIGURE ? bytes : 0;
	}
}

/* The category in which the worst card differs most from the least one; "mostly" where it is more than half of the difference. Where
 * the program's bytes are not told apart on one of them, they are not on the other, either. */
static void
say_spread(const struct tn_printer *printer, const struct tn_report_moment *most, const struct tn_report_moment *least)
{
	char bytes[32], part[32];
	int64_t spread = most->device_bytes - (least->device_bytes > 0 ? least->device_bytes : 0), widest = 0;
	int64_t high[TN_CATEGORIES], low[TN_CATEGORIES];
	bool folded = !most->detailed || (least->device_bytes > 0 && !least->detailed);
	int category = -1;
	parts_of(most, folded, high);
	parts_of(least, folded, low);
	for (int i = 0; i < TN_CATEGORIES; i++) {
		int64_t difference = high[i] - low[i];
		if (difference <= widest)
			continue;
		widest = difference;
		category = i;
	}
	if (spread < (int64_t)(WORTH_SAYING * (double)most->device_bytes))
		return;
	if (category >= 0 && widest > spread / 2)
		tn__say(printer, TN_TINT_NONE, 2, "they differ by %s, mostly %s: %s", tn__human_bytes(spread, bytes),
		        folded && category == TN_CATEGORY_other ? "the program"
		                                                : tn__category_words((enum tn_category)category),
		        tn__human_bytes(widest, part));
	else
		tn__say(printer, TN_TINT_NONE, 2, "they differ by %s", tn__human_bytes(spread, bytes));
}

void
tn__say_cards(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_card_held *sorted[sizeof(report->cards) / sizeof(report->cards[0])];
	char bytes[32], ranks[64];
	if (report->job.ranks > 0 && report->device_peak > 0)
		say_job(printer, report);
	if (report->card_count < 2 || report->device_peak <= 0)
		return;
	for (size_t i = 0; i < report->card_count; i++)
		sorted[i] = &report->cards[i];
	qsort(sorted, report->card_count, sizeof(sorted[0]), by_bytes);
	if (sorted[0]->at_peak.device_bytes == sorted[report->card_count - 1]->at_peak.device_bytes &&
	    !any_is_out(report)) {
		tn__say(printer, TN_TINT_NONE, 2, "each of the %zu cards%s: %s at its peak", report->card_count,
		        report->job.ranks > 0 ? " of these" : "", tn__human_bytes(sorted[0]->at_peak.device_bytes, bytes));
		return;
	}
	for (size_t i = 0; i < report->card_count && i < MOST_CARDS_SAID; i++) {
		say_ranks_of(report, sorted[i]->index, ranks);
		char node[32] = "";
		if (report->job.cards > 0)
			snprintf(node, sizeof(node), "node %lld, ", (long long)node_of_card(report, sorted[i]->index));
		tn__say(printer, TN_TINT_NONE, 2, "%scard %lld: %s at its peak%s%s%s", node,
		        (long long)card_of(report, sorted[i]->index), tn__human_bytes(sorted[i]->at_peak.device_bytes, bytes),
		        ranks[0] != '\0' ? ", " : "", ranks, sorted[i]->out_of_memory ? ", out of memory" : "");
	}
	say_spread(printer, &sorted[0]->at_peak, &sorted[report->card_count - 1]->at_peak);
}

static void
say_waiting(const struct tn_printer *printer, const struct tn_report *report, const struct tn_waiting_rank *rank)
{
	char place[TN_PLACE_TEXT] = "nobody knows where";
	if (rank->at != NULL)
		tn__place_words(report, printer->style, rank->at, place);
	if (rank->rank != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2, "rank %lld %s %s: %s", (long long)rank->rank,
		        rank->operation != TN_NO_FIGURE ? "waits in" : "has",
		        rank->operation != TN_NO_FIGURE ? tn__operation_text(rank->operation) : "ended", place);
}

void
tn__say_hang(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_hang *hang = &report->hang;
	if (!hang->seen)
		return;
	say_waiting(printer, report, &hang->who);
	for (size_t i = 0; i < hang->count && i < MOST_CARDS_SAID; i++)
		say_waiting(printer, report, &hang->waiting[i]);
}
