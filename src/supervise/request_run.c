/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of a run: starts the sender, takes what it tells, ends the server when nothing is left to be sent, and says what became of
 * each request. Belongs to the supervisor's one thread.
 */
#include "supervise/request_run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"

#define POLITE_SECONDS 10.0
#define LAST_SECONDS 5.0
#define STEADY_ROUNDS 8
#define LEAST_OF_JUMPS 4 /* rounds, to each of which one may rise by more */
#define TOO_FAR 1000000

tn_status
tn__request_run_prepare(const struct tn_run_options *options, struct tn_request_run **out)
{
	*out = NULL;
	if (options->request_count == 0)
		return TN_OK;
	struct tn_request_run *requests = calloc(1, sizeof(*requests));
	TN_RETURN_IF(requests == NULL, TN_NO_MEMORY, "out of host memory");
	*requests = (struct tn_request_run){
		.hooks = -1, .news = -1, .round_peak = TN_NO_FIGURE, .found = calloc(1, sizeof(*requests->found))
	};
	tn_status status = tn__requests_read(options, &requests->list);
	struct tn_requests *found = requests->found;
	if (found != NULL)
		found->rows = calloc(requests->list.count + 1, sizeof(*found->rows));
	if (status == TN_OK && (found == NULL || found->rows == NULL))
		status = tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status != TN_OK) {
		tn__request_run_free(requests);
		return status;
	}
	found->known = true;
	found->wanted = options->repeat;
	found->full_at = TN_NO_FIGURE;
	found->count = requests->list.count;
	for (size_t i = 0; i < found->count; i++)
		found->rows[i] = (struct tn_request_row){ .name = strdup(requests->list.items[i].name),
			                                      .from = strdup(requests->list.items[i].from),
			                                      .peak = TN_NO_FIGURE };
	*out = requests;
	return TN_OK;
}

tn_status
tn__request_run_listen(struct tn_request_run *requests, const struct tn_folder *folder)
{
	requests->hooks = tn__folder_listen(folder, "requests");
	TN_RETURN_IF(requests->hooks < 0, TN_IO, "no socket can be made in the run's folder: set TMPDIR");
	return TN_OK;
}

void
tn__request_run_start(struct tn_request_run *requests, const struct tn_watch *watch,
                      const struct tn_run_options *options)
{
	const struct tn_sender_start start = { .list = &requests->list,
		                                   .tree = { getpid(), watch->reaper.group, watch->reaper.pid },
		                                   .arguments = options->arguments,
		                                   .repeat = options->repeat,
		                                   .listening = requests->hooks };
	requests->sender = tn__sender_start(&start, &requests->news);
	if (requests->sender < 0)
		requests->news = -1;
}

/* ---- what the sender tells ---- */

static void
take_end(struct tn_request_run *requests, const struct tn_sent *news)
{
	struct tn_requests *found = requests->found;
	struct tn_request_row *row = &found->rows[news->which];
	bool well = news->how == TN_ANSWERED;
	found->sent++;
	row->sent++;
	row->answered += well;
	if (row->failed == 0 || news->how == TN_ANSWERED_OUT_OF_MEMORY)
		row->status = news->status;
	row->out_of_memory |= news->how == TN_ANSWERED_OUT_OF_MEMORY;
	if (!well && (row->failed == 0 || row->out_of_memory)) {
		row->failed = news->number;
		free(row->words);
		row->words = strdup(news->words[0] != '\0'    ? news->words
		                    : news->how == TN_DROPPED ? "the connection was dropped"
		                                              : "");
	}
	if (news->peak > requests->round_peak)
		requests->round_peak = news->peak;
	if ((size_t)news->which + 1 < found->count)
		return;
	found->rounds++;
	if (tn__array_room(&requests->peaks, &requests->peak_capacity, requests->peak_count + 1, sizeof(*requests->peaks),
	                   SIZE_MAX))
		requests->peaks[requests->peak_count++] = requests->round_peak;
	requests->round_peak = TN_NO_FIGURE;
}

static void
take(struct tn_request_run *requests, const struct tn_sent *news, double now)
{
	struct tn_requests *found = requests->found;
	switch ((enum tn_sent_kind)news->kind) {
	case TN_SENT_LISTENS:
		if (news->port == 0) {
			free(found->others);
			found->others = strdup(news->words);
			break;
		}
		found->port = news->port;
		requests->listens_since = now;
		break;
	case TN_SENT_BEGINS:
		found->started = news->number;
		break;
	case TN_SENT_ENDED:
		take_end(requests, news);
		break;
	case TN_SENT_ALL:
		found->all = true;
		requests->all_since = now;
		break;
	}
}

void
tn__request_run_read(struct tn_request_run *requests, double now)
{
	struct pollfd waiting = { requests->news, POLLIN, 0 };
	while (requests->news >= 0 && poll(&waiting, 1, 0) > 0) {
		struct tn_sent news;
		if (read(requests->news, &news, sizeof(news)) == (ssize_t)sizeof(news)) {
			news.words[sizeof(news.words) - 1] = '\0';
			take(requests, &news, now);
		} else {
			close(requests->news);
			requests->news = -1;
		}
	}
}

/* ---- the end of the server ---- */

bool
tn__request_run_end(struct tn_request_run *requests, const struct tn_process_tree *tree, pid_t program, double now)
{
	double since = now - requests->all_since;
	bool insist = since >= POLITE_SECONDS;
	if (requests->ends && (!insist || requests->insists))
		return since >= POLITE_SECONDS + LAST_SECONDS;
	struct tn_process_list list = { 0 };
	pid_t group = getpgid(program);
	tn__process_descendants(tree, &list);
	for (size_t i = 0; i < list.count; i++)
		if (list.pids[i] != requests->sender && (insist || getpgid(list.pids[i]) == group))
			kill(list.pids[i], insist ? SIGTERM : SIGINT);
	tn__process_list_free(&list);
	requests->insists = insist;
	requests->ends = true;
	return false;
}

/* ---- the report ---- */

static int
by_size(const void *one, const void *two)
{
	int64_t a = *(const int64_t *)one, b = *(const int64_t *)two;
	return (a > b) - (a < b);
}

/* The median of what each peak is above the one before; 0: it is not known. */
static int64_t
usual_rise(const int64_t *peaks, size_t count)
{
	int64_t *rises = count > 1 ? calloc(count - 1, sizeof(*rises)) : NULL;
	if (rises == NULL)
		return 0;
	for (size_t i = 1; i < count; i++)
		rises[i - 1] = peaks[i] - peaks[i - 1];
	qsort(rises, count - 1, sizeof(*rises), by_size);
	int64_t usual = rises[(count - 1) / 2];
	free(rises);
	return usual;
}

/* Whether the last rounds each set a new peak, most by about the same: a thread that answers for the first time adds what its
 * libraries take. */
static void
find_rise(const struct tn_request_run *requests, struct tn_requests *found)
{
	size_t count = requests->peak_count, first = count;
	while (first > 0 && requests->peaks[first - 1] != TN_NO_FIGURE)
		first--;
	if (first == 0 && count > 0)
		first = 1; /* the first round has what lasts in its rise */
	if (count - first <= STEADY_ROUNDS)
		return;
	int64_t usual = usual_rise(requests->peaks + first, count - first);
	size_t jumps = 0;
	for (size_t i = first + 1; i < count; i++) {
		int64_t rise = requests->peaks[i] - requests->peaks[i - 1];
		if (rise <= 0)
			return;
		jumps += rise > 2 * usual;
	}
	if (usual <= 0 || jumps * LEAST_OF_JUMPS > count - 1 - first)
		return;
	found->rises = usual;
	found->rising_rounds = (int64_t)(count - 1 - first);
	found->highest = requests->peaks[count - 1];
}

/* The card's peaks of the requests' regions, which are called after them. */
static void
take_peaks(const struct tn_report *report, struct tn_requests *found)
{
	for (size_t i = 0; i < report->region_count; i++) {
		int number;
		if (report->regions[i].name != NULL && sscanf(report->regions[i].name, "request %d", &number) == 1 &&
		    number >= 1 && (size_t)number <= found->count && report->regions[i].taken_peak > 0)
			found->rows[number - 1].peak = report->regions[i].taken_peak;
	}
}

void
tn__request_run_collect(struct tn_request_run *requests, struct tn_report *report)
{
	struct tn_requests *found = &report->requests;
	tn__request_run_read(requests, 0);
	tn__requests_model_free(found);
	if (!tn__requests_model_copy(requests->found, found))
		return;
	take_peaks(report, found);
	if (report->growth.seen) /* what stays is told by itself */
		return;
	find_rise(requests, found);
}

void
tn__request_run_free(struct tn_request_run *requests)
{
	if (requests == NULL)
		return;
	if (requests->sender > 0) {
		kill(requests->sender, SIGKILL);
		(void)waitpid(requests->sender, NULL, 0);
	}
	if (requests->hooks >= 0)
		close(requests->hooks);
	if (requests->news >= 0)
		close(requests->news);
	if (requests->found != NULL)
		tn__requests_model_free(requests->found);
	tn__requests_free(&requests->list);
	free(requests->found);
	free(requests->peaks);
	free(requests);
}
