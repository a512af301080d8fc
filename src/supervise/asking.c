/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of a run: starts the sender, takes what it tells, ends the server when nothing is left to be sent, and says what became of
 * each request. Belongs to the supervisor's one thread.
 */
#include "supervise/asking.h"

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
#define TOO_FAR 1000000

tn_status
tn__asking_prepare(const struct tn_run_options *options, struct tn_asking **out)
{
	*out = NULL;
	if (options->request_count == 0)
		return TN_OK;
	struct tn_asking *asking = calloc(1, sizeof(*asking));
	TN_RETURN_IF(asking == NULL, TN_NO_MEMORY, "out of host memory");
	*asking = (struct tn_asking){
		.hooks = -1, .news = -1, .round_peak = TN_NO_FIGURE, .found = calloc(1, sizeof(*asking->found))
	};
	tn_status status = tn__requests_read(options, &asking->list);
	struct tn_requests *found = asking->found;
	if (found != NULL)
		found->rows = calloc(asking->list.count + 1, sizeof(*found->rows));
	if (status == TN_OK && (found == NULL || found->rows == NULL))
		status = tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status != TN_OK) {
		tn__asking_free(asking);
		return status;
	}
	found->known = true;
	found->wanted = options->repeat;
	found->full_at = TN_NO_FIGURE;
	found->count = asking->list.count;
	for (size_t i = 0; i < found->count; i++)
		found->rows[i] = (struct tn_request_row){ .name = strdup(asking->list.items[i].name),
			                                      .from = strdup(asking->list.items[i].from),
			                                      .peak = TN_NO_FIGURE };
	*out = asking;
	return TN_OK;
}

tn_status
tn__asking_listen(struct tn_asking *asking, const struct tn_folder *folder)
{
	asking->hooks = tn__sender_listen(folder);
	TN_RETURN_IF(asking->hooks < 0, TN_IO, "no socket can be made in the run's folder: set TMPDIR");
	return TN_OK;
}

void
tn__asking_start(struct tn_asking *asking, const struct tn_watch *watch, const struct tn_run_options *options)
{
	const struct tn_sender_start start = { .list = &asking->list,
		                                   .tree = { getpid(), watch->reaper.group, watch->reaper.pid },
		                                   .arguments = options->arguments,
		                                   .repeat = options->repeat,
		                                   .listening = asking->hooks };
	asking->sender = tn__sender_start(&start, &asking->news);
	if (asking->sender < 0)
		asking->news = -1;
}

/* ---- what the sender tells ---- */

static void
take_end(struct tn_asking *asking, const struct tn_sent *news)
{
	struct tn_requests *found = asking->found;
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
	if (news->peak > asking->round_peak)
		asking->round_peak = news->peak;
	if ((size_t)news->which + 1 < found->count)
		return;
	found->rounds++;
	if (tn__array_room(&asking->peaks, &asking->peak_capacity, asking->peak_count + 1, sizeof(*asking->peaks),
	                   SIZE_MAX))
		asking->peaks[asking->peak_count++] = asking->round_peak;
	asking->round_peak = TN_NO_FIGURE;
}

static void
take(struct tn_asking *asking, const struct tn_sent *news, double now)
{
	struct tn_requests *found = asking->found;
	switch ((enum tn_sent_kind)news->kind) {
	case TN_SENT_LISTENS:
		if (news->port == 0) {
			free(found->others);
			found->others = strdup(news->words);
			break;
		}
		found->port = news->port;
		asking->listens_since = now;
		break;
	case TN_SENT_BEGINS:
		found->started = news->number;
		break;
	case TN_SENT_ENDED:
		take_end(asking, news);
		break;
	case TN_SENT_ALL:
		found->all = true;
		asking->all_since = now;
		break;
	}
}

void
tn__asking_read(struct tn_asking *asking, double now)
{
	struct pollfd waiting = { asking->news, POLLIN, 0 };
	while (asking->news >= 0 && poll(&waiting, 1, 0) > 0) {
		struct tn_sent news;
		if (read(asking->news, &news, sizeof(news)) == (ssize_t)sizeof(news)) {
			news.words[sizeof(news.words) - 1] = '\0';
			take(asking, &news, now);
		} else {
			close(asking->news);
			asking->news = -1;
		}
	}
}

/* ---- the end of the server ---- */

bool
tn__asking_end(struct tn_asking *asking, const struct tn_process_tree *tree, pid_t program, double now)
{
	double since = now - asking->all_since;
	bool insist = since >= POLITE_SECONDS;
	if (asking->ends && (!insist || asking->insists))
		return since >= POLITE_SECONDS + LAST_SECONDS;
	struct tn_process_list list = { 0 };
	pid_t group = getpgid(program);
	tn__process_descendants(tree, &list);
	for (size_t i = 0; i < list.count; i++)
		if (list.pids[i] != asking->sender && (insist || getpgid(list.pids[i]) == group))
			kill(list.pids[i], insist ? SIGTERM : SIGINT);
	tn__process_list_free(&list);
	asking->insists = insist;
	asking->ends = true;
	return false;
}

/* ---- the report ---- */

/* Whether the last rounds each set a new peak by about the same. */
static void
find_rise(const struct tn_asking *asking, struct tn_requests *found)
{
	size_t count = asking->peak_count, first = count;
	while (first > 0 && asking->peaks[first - 1] != TN_NO_FIGURE)
		first--;
	if (first == 0 && count > 0)
		first = 1; /* the first round has what lasts in its rise */
	if (count - first <= STEADY_ROUNDS)
		return;
	int64_t mean = (asking->peaks[count - 1] - asking->peaks[first]) / (int64_t)(count - 1 - first);
	for (size_t i = first + 1; i < count; i++) {
		int64_t rise = asking->peaks[i] - asking->peaks[i - 1];
		if (rise <= 0 || rise > 2 * mean)
			return;
	}
	found->rises = mean;
	found->rising_rounds = (int64_t)(count - 1 - first);
	found->highest = asking->peaks[count - 1];
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
tn__asking_collect(struct tn_asking *asking, struct tn_report *report)
{
	struct tn_requests *found = &report->requests;
	tn__asking_read(asking, 0);
	tn__requests_model_free(found);
	if (!tn__requests_model_copy(asking->found, found))
		return;
	take_peaks(report, found);
	if (report->growth.seen) /* what stays is told by itself */
		return;
	find_rise(asking, found);
}

void
tn__asking_free(struct tn_asking *asking)
{
	if (asking == NULL)
		return;
	if (asking->sender > 0) {
		kill(asking->sender, SIGKILL);
		(void)waitpid(asking->sender, NULL, 0);
	}
	if (asking->hooks >= 0)
		close(asking->hooks);
	if (asking->news >= 0)
		close(asking->news);
	if (asking->found != NULL)
		tn__requests_model_free(asking->found);
	tn__requests_free(&asking->list);
	free(asking->found);
	free(asking->peaks);
	free(asking);
}
