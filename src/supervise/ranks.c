/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks and cards (doc/design/0022-many-cards.md): what the ledger and the guests know of each, and whether ranks wait for ever.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analyze/view.h"
#include "report/ranks.h"
#include "supervise/internal.h"
#include "verdict/job.h"
#include "verdict/model_fill.h"

#define FAILED_SECONDS 6.0 /* for the launcher of a rank that failed to end the others itself */
#define OTHER_SECONDS 2.0  /* for the others to say where they are */
#define ALL_WAIT_SECONDS 3.0

/* ---- hangs ---- */

static bool
is_there(const struct tn_ledger_rank *row)
{
	return tn__process_start_time(row->pid) == row->start_time;
}

/* A launcher ends the others when a rank failed, not when one has ended well or has only left the communicator. */
static double
patience_with(const struct tn_ledger_rank *row, const struct tn_endings *endings)
{
	int status = 0;
	if (row->wait.why == TN_WAITS_OTHER_OPERATION)
		return OTHER_SECONDS;
	if (row->wait.why != TN_WAITS_ENDED)
		return 0;
	bool known = tn__endings_find(endings, row->wait.peer_pid, &status) ||
	             tn__process_start_time(row->wait.peer_pid) != 0;
	return known && status == 0 ? OTHER_SECONDS : FAILED_SECONDS;
}

/* How long such a state has to last until it is a hang; 0: it is none. */
static double
patience(const struct tn_ledger *ledger, const struct tn_endings *endings, uint64_t *numbers)
{
	uint32_t there = 0, waiting = 0, most = 0;
	double shortest = 0;
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++) {
		const struct tn_ledger_rank *row = &ledger->ranks[i];
		uint32_t why = row->wait.why;
		most = row->ranks > (int32_t)most ? (uint32_t)row->ranks : most;
		if (!is_there(row))
			continue;
		there++;
		if (why == TN_WAITS_NOT)
			continue;
		waiting++;
		*numbers = *numbers * 31 + row->wait.number + why;
		double wanted = patience_with(row, endings);
		if (wanted > 0 && (shortest == 0 || wanted < shortest))
			shortest = wanted;
	}
	if (ledger->ranks_run > 0)
		most = ledger->ranks_run;
	if (waiting > 0 && waiting == there && there == most && shortest == 0)
		shortest = ALL_WAIT_SECONDS;
	return shortest;
}

void
tn__ranks_look(const struct tn_ledger *ledger, const struct tn_folder *folder, struct tn_endings *endings)
{
	if (ledger->rank_count == 0)
		return;
	tn__endings_read(endings, folder);
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++)
		if (!is_there(&ledger->ranks[i]))
			tn__endings_look(endings, ledger->ranks[i].pid);
}

bool
tn__ranks_hang(const struct tn_ledger *ledger, const struct tn_endings *endings, struct tn_rank_watch *watch,
               double now)
{
	uint64_t numbers = ledger->rank_count;
	double wanted = ledger->rank_count > 0 ? patience(ledger, endings, &numbers) : 0;
	if (wanted == 0 || numbers != watch->numbers)
		watch->since = now;
	watch->numbers = numbers;
	return wanted > 0 && now - watch->since >= wanted;
}

static const struct tn_rank *
reported(const struct tn_report *report, int64_t pid)
{
	for (size_t i = 0; i < report->rank_count; i++)
		if (report->ranks[i].pid == pid)
			return &report->ranks[i];
	return NULL;
}

static struct tn_waiting_rank
waiting_of(const struct tn_report *report, const struct tn_ledger_rank *row)
{
	const struct tn_ledger_wait *wait = &row->wait;
	const struct tn_rank *rank = reported(report, row->pid);
	bool waits = wait->why != TN_WAITS_NOT;
	char file[TN_LEDGER_PLACE];
	memcpy(file, wait->file, sizeof(file));
	file[sizeof(file) - 1] = '\0';
	const struct tn_place *ended_at = !waits && rank != NULL ? rank->ended_at : NULL;
	struct tn_place *at = ended_at != NULL
	                          ? tn__report_new_place(ended_at->file, ended_at->line, ended_at->function, false)
	                      : waits && file[0] != '\0' ? tn__report_new_place(file, wait->line, NULL, false)
	                                                 : NULL;
	return (struct tn_waiting_rank){ row->rank, waits ? wait->operation : TN_NO_FIGURE, at };
}

/* How many ranks wait in the same operation. */
static int
with_the_same(const struct tn_ledger *ledger, const struct tn_ledger_wait *wait)
{
	int count = 0;
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++)
		count += ledger->ranks[i].wait.why != TN_WAITS_NOT && ledger->ranks[i].wait.operation == wait->operation &&
		         ledger->ranks[i].wait.bytes == wait->bytes;
	return count;
}

/* How many ranks wait for this one. */
static int
waiting_for(const struct tn_ledger *ledger, const struct tn_ledger_rank *row)
{
	int count = 0;
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++)
		count += ledger->ranks[i].wait.why != TN_WAITS_NOT && ledger->ranks[i].wait.peer_pid == row->pid;
	return count;
}

/* Who is waited for: one that has ended; of ranks that did different things the one with fewest on its side; else the one that
 * most wait for, and of these the one that is furthest behind. */
static const struct tn_ledger_rank *
culprit(const struct tn_ledger *ledger)
{
	const struct tn_ledger_rank *behind = NULL, *odd = NULL;
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++) {
		const struct tn_ledger_rank *row = &ledger->ranks[i];
		if (row->wait.why == TN_WAITS_ENDED)
			return tn__rank_row(ledger, row->wait.peer_pid);
		if (row->wait.why == TN_WAITS_OTHER_OPERATION &&
		    (odd == NULL || with_the_same(ledger, &row->wait) < with_the_same(ledger, &odd->wait)))
			odd = row;
		int more = row->wait.why == TN_WAITS_NOT ? -1
		           : behind == NULL              ? 1
		                                         : waiting_for(ledger, row) - waiting_for(ledger, behind);
		if (more > 0 || (more == 0 && row->wait.number < behind->wait.number))
			behind = row;
	}
	return odd != NULL ? odd : behind;
}

/* "has ended (status 0)" */
static void
say_end(const struct tn_endings *endings, pid_t pid, char out[96])
{
	int status;
	if (tn__process_start_time(pid) != 0)
		snprintf(out, 96, "has left the communicator");
	else if (!tn__endings_find(endings, pid, &status))
		snprintf(out, 96, "has ended");
	else if (WIFSIGNALED(status))
		snprintf(out, 96, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(out, 96, "has ended (status %d)", WEXITSTATUS(status));
}

static void
say_hang(const struct tn_ledger *ledger, const struct tn_endings *endings, const struct tn_ledger_rank *who,
         struct tn_report *report)
{
	char end[96], peer[32] = "another rank";
	const struct tn_ledger_rank *waits = NULL;
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS && waits == NULL; i++)
		if (ledger->ranks[i].wait.why != TN_WAITS_NOT && &ledger->ranks[i] != who)
			waits = &ledger->ranks[i];
	const struct tn_ledger_rank *met = who != NULL ? tn__rank_row(ledger, who->wait.peer_pid) : NULL;
	if (met != NULL)
		snprintf(peer, sizeof(peer), "rank %d", (int)met->rank);
	if (who != NULL && who->wait.why == TN_WAITS_NOT)
		say_end(endings, who->pid, end);
	else if (who != NULL)
		snprintf(end, sizeof(end), "itself waits in %s", tn__operation_text(who->wait.operation));
	const struct tn_waiting_rank *first = report->hang.count > 0 ? &report->hang.waiting[0] : &report->hang.who;
	if (who == NULL)
		tn__report_add_finding(report, TN_FINDING_hang, TN_NO_FIGURE, first->at, NULL,
		                       "ranks wait forever: one of them has ended");
	else if (who->wait.why == TN_WAITS_OTHER_OPERATION)
		tn__report_add_finding(
			report, TN_FINDING_hang, TN_NO_FIGURE, report->hang.who.at,
			"each rank has to call the same collectives, of the same sizes, in the same order",
			"rank %d called %s of %llu bytes where %s called %s of %llu: on real cards both would wait forever",
			(int)who->rank, tn__operation_text(who->wait.operation), (unsigned long long)who->wait.bytes, peer,
			tn__operation_text(who->wait.peer_operation), (unsigned long long)who->wait.peer_bytes);
	else
		tn__report_add_finding(report, TN_FINDING_hang, TN_NO_FIGURE, first->at,
		                       "each rank has to call the same collectives in the same order",
		                       "rank %d %s, and %s of rank %d waits for it forever", (int)who->rank, end,
		                       tn__operation_text(waits != NULL ? waits->wait.operation : -1),
		                       waits != NULL ? (int)waits->rank : (int)who->rank);
}

void
tn__ranks_collect_hang(const struct tn_ledger *ledger, const struct tn_endings *endings, struct tn_report *report)
{
	struct tn_hang *hang = &report->hang;
	const struct tn_ledger_rank *who = culprit(ledger);
	hang->seen = true;
	hang->who = (struct tn_waiting_rank){ TN_NO_FIGURE, TN_NO_FIGURE, NULL };
	if (who != NULL)
		hang->who = waiting_of(report, who);
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++)
		if (&ledger->ranks[i] != who && ledger->ranks[i].wait.why != TN_WAITS_NOT)
			hang->waiting[hang->count++] = waiting_of(report, &ledger->ranks[i]);
	say_hang(ledger, endings, who, report);
}

/* ---- deaths ---- */

/* When the rank began to fail, by its own account; TN_NO_FIGURE: it gave none. */
static int64_t
failed_at(const struct tn_report *report, const struct tn_process_end *end)
{
	const struct tn_rank *rank = reported(report, end->pid);
	return rank != NULL ? rank->failed_ns : TN_NO_FIGURE;
}

/* It failed of another rank's end: NCCL told it so, or the launcher ended it. A rank that is busy with its own failure may be ended
 * by the launcher, too. */
static bool
follows(const struct tn_ledger *ledger, const struct tn_report *report, const struct tn_process_end *end)
{
	return tn__rank_row(ledger, end->pid)->peer_aborted ||
	       (WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGTERM && failed_at(report, end) == TN_NO_FIGURE);
}

/* The rank that failed first: the earliest by the ranks' own accounts, else by the order in which their ends were learned. */
static const struct tn_process_end *
first_failure(const struct tn_ledger *ledger, const struct tn_endings *endings, const struct tn_report *report)
{
	const struct tn_process_end *first = NULL, *follower = NULL;
	for (size_t i = 0; i < endings->count; i++) {
		const struct tn_process_end *end = &endings->items[i];
		if (end->status == 0 || tn__rank_row(ledger, end->pid) == NULL)
			continue;
		if (follows(ledger, report, end)) {
			follower = follower != NULL ? follower : end;
			continue;
		}
		int64_t at = failed_at(report, end);
		bool earlier = first != NULL && at != TN_NO_FIGURE && at < failed_at(report, first);
		first = first == NULL || earlier ? end : first;
	}
	return first != NULL ? first : follower;
}

static void
collect_dead(const struct tn_ledger *ledger, const struct tn_endings *endings, struct tn_report *report)
{
	const struct tn_process_end *end = first_failure(ledger, endings, report);
	char how[96];
	if (end == NULL)
		return;
	const struct tn_rank *rank = reported(report, end->pid);
	report->dead = (struct tn_dead){ .seen = true,
		                             .rank = tn__rank_row(ledger, end->pid)->rank,
		                             .wait_status = end->status,
		                             .at = rank != NULL ? rank->ended_at : NULL };
	if (rank != NULL && rank->out_of_memory)
		return; /* the verdict says it */
	if (WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGTERM && failed_at(report, end) != TN_NO_FIGURE)
		snprintf(how, sizeof(how), "failed first, and the launcher ended it");
	else
		say_end(endings, end->pid, how);
	tn__report_add_finding(report, TN_FINDING_dead_rank, TN_NO_FIGURE, report->dead.at, NULL, "rank %d %s",
	                       (int)report->dead.rank, how);
}

/* ---- what each rank and card held ---- */

static struct tn_report_split
split_of(const uint64_t bytes[TN_BYTES_CLASSES], uint64_t others)
{
	return (struct tn_report_split){ .context = (int64_t)bytes[TN_BYTES_CONTEXT],
		                             .program = (int64_t)bytes[TN_BYTES_PROGRAM],
		                             .libraries = (int64_t)bytes[TN_BYTES_LIBRARY],
		                             .other_processes = (int64_t)others,
		                             .communication = (int64_t)bytes[TN_BYTES_COMMUNICATION] };
}

/* What the allocator's record says of the moment at which it held exactly what the ledger says. */
static void
add_detail(struct tn_view *view, int device, struct tn_report_moment *moment)
{
	const struct tn_analysis *analysis;
	struct tn_moment pytorch;
	if (moment->split.program <= 0 || tn__view_analysis(view, device, &analysis) != TN_OK ||
	    tn__moment_of_peak(analysis, (uint64_t)moment->split.program, &pytorch) != TN_OK)
		return;
	(void)tn__report_join(moment, &pytorch);
	tn__moment_free(&pytorch);
}

static void
collect_rank(const struct tn_ledger *ledger, struct tn_rank *rank)
{
	const struct tn_ledger_rank *row = tn__rank_row(ledger, rank->pid);
	if (row == NULL)
		return;
	rank->rank = row->rank;
	rank->card = row->device;
	struct tn_report_split split = split_of(row->at_peak[row->device], 0);
	tn__report_set_split(&rank->at_peak, &split);
	for (int i = 0; i < TN_COLLECTIVES; i++) {
		rank->communication[i].calls = (int64_t)row->calls[i];
		rank->communication[i].bytes = (int64_t)row->bytes[i];
	}
}

static int
by_rank(const void *one, const void *two)
{
	const struct tn_rank *a = one, *b = two;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* A process that is no rank (a loader's worker with the launcher's environment) is left out where the ledger knows ranks. */
static void
drop_others(const struct tn_ledger *ledger, struct tn_report *report)
{
	size_t kept = 0;
	for (size_t i = 0; i < report->rank_count; i++) {
		if (ledger->rank_count > 0 && tn__rank_row(ledger, report->ranks[i].pid) == NULL) {
			free(report->ranks[i].record.path);
			tn__report_free_place(report->ranks[i].ended_at);
			continue;
		}
		report->ranks[kept++] = report->ranks[i];
	}
	report->rank_count = kept;
}

static void
collect_card(const struct tn_ledger_device *device, uint32_t index, const struct tn_report *report,
             struct tn_card_held *card)
{
	struct tn_report_split split = split_of(device->at_peak.bytes, device->at_peak.other_bytes);
	card->index = index;
	tn__report_init_moment(&card->at_peak);
	tn__report_set_split(&card->at_peak, &split);
	for (size_t i = 0; i < report->rank_count; i++)
		card->out_of_memory |= report->ranks[i].card == card->index && report->ranks[i].out_of_memory;
}

/* NULL where there are several, or none. */
static const struct tn_rank *
only_rank_on(const struct tn_card_held *card, const struct tn_report *report)
{
	const struct tn_rank *rank = NULL;
	for (size_t i = 0; i < report->rank_count; i++) {
		if (report->ranks[i].card != card->index)
			continue;
		if (rank != NULL)
			return NULL;
		rank = &report->ranks[i];
	}
	return rank;
}

static bool
is_record_of_run(const struct tn_report *report, const char *path)
{
	const char *peak = report->peak_record.path, *oom = report->oom_record.path;
	return (peak != NULL && strcmp(peak, path) == 0) || (oom != NULL && strcmp(oom, path) == 0);
}

/* Details of a rank and of the card that it has for itself (NULL: none), from the rank's record. Each rank has one: those that
 * nobody asks for any more are closed at once. */
static void
detail_rank(const struct tn_folder *folder, struct tn_rank *rank, struct tn_card_held *card,
            const struct tn_report *report)
{
	const struct tn_record *record = &rank->record;
	struct tn_view *view;
	if (record->path == NULL || !tn__folder_owns(folder, record->path) ||
	    tn__views_open(report->views, record->path, &view) != TN_OK)
		return;
	add_detail(view, record->device, &rank->at_peak);
	if (card != NULL)
		add_detail(view, record->device, &card->at_peak);
	if (!is_record_of_run(report, record->path))
		tn__views_drop(report->views, record->path);
}

/* The card that a rank has for itself; NULL: none. */
static struct tn_card_held *
card_of(const struct tn_rank *rank, struct tn_report *report)
{
	for (size_t i = 0; i < report->card_count; i++)
		if (only_rank_on(&report->cards[i], report) == rank)
			return &report->cards[i];
	return NULL;
}

/* Cards of a program that has no ranks, from the one record that there is. */
static void
detail_cards(const struct tn_folder *folder, const char *path, struct tn_report *report)
{
	struct tn_view *view;
	if (path == NULL || !tn__folder_owns(folder, path) || tn__views_open(report->views, path, &view) != TN_OK)
		return;
	for (size_t i = 0; i < report->card_count; i++)
		add_detail(view, (int)report->cards[i].index, &report->cards[i].at_peak);
}

static bool
has_rank(const struct tn_report *report, int64_t card)
{
	for (size_t i = 0; i < report->rank_count; i++)
		if (report->ranks[i].card == card)
			return true;
	return false;
}

void
tn__ranks_collect(const struct tn_watch *watch, const struct tn_guest_news *news, struct tn_report *report)
{
	const struct tn_ledger *ledger = watch->ledger;
	drop_others(ledger, report);
	for (size_t i = 0; i < report->rank_count; i++)
		collect_rank(ledger, &report->ranks[i]);
	qsort(report->ranks, report->rank_count, sizeof(report->ranks[0]), by_rank);
	if (ledger->ranks_run > 0)
		tn__collect_job(ledger, report);
	if (watch->ending.interrupted_by == 0)
		collect_dead(ledger, &watch->endings, report);
	for (uint32_t i = 0; ledger->device_count > 1 && i < ledger->device_count && i < TN_MAX_DEVICES; i++)
		if (ledger->ranks_run == 0 || has_rank(report, i))
			collect_card(&ledger->devices[i], i, report, &report->cards[report->card_count++]);
	for (size_t i = 0; i < report->rank_count; i++)
		detail_rank(watch->folder, &report->ranks[i], card_of(&report->ranks[i], report), report);
	if (report->rank_count == 0 && watch->ending.guest_oom_last)
		tn__mark_refusing_card(ledger, report);
	if (report->rank_count == 0)
		detail_cards(watch->folder, news->peak.path, report);
}
