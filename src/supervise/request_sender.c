/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that sends requests to the server of a run, one at a time, and tells the hooks of the run's processes when each begins and has
 * ended (guest/serving.py). A child of the supervisor: what it learns goes through a pipe, and it is killed with the run.
 *
 * Invariant: a request only goes to a port that a process of the run listens at.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/seconds.h"
#include "supervise/internal.h"
#include "supervise/request_run.h"

#define MOST_HOOKS 64
#define MOST_PORTS 64
#define LOOK_NANOSECONDS 50000000
#define ALONE_SECONDS 3.0 /* a port that nothing else speaks for is the server's when it was the only one for so long */
#define HOOK_SECONDS 30000 /* milliseconds: a hook may collect garbage and write a snapshot */
#define MOST_UNASKED 200   /* requests without --repeat */
#define LEAST_ROUNDS 2

struct sender {
	const struct tn_sender_start *start;
	int news;
	int hooks[MOST_HOOKS];
	size_t hook_count;
	struct tn_listening ports[MOST_PORTS];
	size_t port_count;
	double alone_since;
	struct tn_sent last; /* what the hooks said */
	bool settled, out_of_memory;
	int answered; /* requests, well */
};

static void
tell(const struct sender *sender, const struct tn_sent *what)
{
	if (write(sender->news, what, sizeof(*what)) != (ssize_t)sizeof(*what))
		_exit(0); /* nobody listens any more */
}

/* ---- hooks ---- */

static void
take_new_hooks(struct sender *sender)
{
	while (sender->hook_count < MOST_HOOKS) {
		int hook = accept4(sender->start->listening, NULL, NULL, SOCK_CLOEXEC);
		if (hook < 0)
			return;
		sender->hooks[sender->hook_count++] = hook;
	}
}

/* What one hook says: bytes that are allocated, the peak where it is a new one, and a word. */
static void
take_reply(struct sender *sender, const char *reply)
{
	int64_t allocated = TN_NO_FIGURE, peak = TN_NO_FIGURE;
	char word[16] = "";
	if (sscanf(reply, "%" SCNd64 " %" SCNd64 " %15s", &allocated, &peak, word) != 3)
		return;
	sender->settled &= strcmp(word, "settled") == 0;
	sender->out_of_memory |= strcmp(word, "oom") == 0;
	if (allocated > sender->last.allocated)
		sender->last.allocated = allocated;
	if (peak > sender->last.peak)
		sender->last.peak = peak;
}

/* Tells all hooks, and waits for their answers. A hook whose process is gone, or that does not answer, is left out from then on. */
static void
tell_hooks(struct sender *sender, const char *words)
{
	size_t kept = 0;
	take_new_hooks(sender);
	sender->settled = sender->hook_count > 0;
	sender->last.allocated = sender->last.peak = TN_NO_FIGURE;
	for (size_t i = 0; i < sender->hook_count; i++)
		(void)send(sender->hooks[i], words, strlen(words), MSG_NOSIGNAL);
	for (size_t i = 0; i < sender->hook_count; i++) {
		struct pollfd waiting = { sender->hooks[i], POLLIN, 0 };
		char reply[128];
		ssize_t length = poll(&waiting, 1, HOOK_SECONDS) > 0 ? recv(sender->hooks[i], reply, sizeof(reply) - 1, 0) : 0;
		if (length > 0) {
			reply[length] = '\0';
			take_reply(sender, reply);
			sender->hooks[kept++] = sender->hooks[i];
		} else {
			close(sender->hooks[i]);
		}
	}
	sender->hook_count = kept;
}

/* ---- where to ---- */

static const struct tn_listening *
find_port(struct sender *sender, const struct tn_request *request)
{
	double now = tn__now();
	sender->port_count = tn__listening_ports(&sender->start->tree, sender->ports, MOST_PORTS);
	if (request->port != 0) {
		for (size_t i = 0; i < sender->port_count; i++)
			if (sender->ports[i].port == request->port)
				return &sender->ports[i];
		return NULL;
	}
	const struct tn_listening *found = tn__listening_choose(sender->ports, sender->port_count,
	                                                        sender->start->arguments);
	if (found != NULL)
		return found;
	found = tn__listening_alone(sender->ports, sender->port_count);
	if (found == NULL || sender->alone_since == 0)
		sender->alone_since = found != NULL ? now : 0;
	return found != NULL && now - sender->alone_since >= ALONE_SECONDS ? found : NULL;
}

/* Says where processes listen that are not asked, so that a wrong port can be told. */
static void
tell_others(struct sender *sender)
{
	struct tn_sent news = { .kind = TN_SENT_LISTENS };
	size_t used = 0;
	for (size_t i = 0; i < sender->port_count && used < sizeof(news.words) - 8; i++)
		used += (size_t)snprintf(news.words + used, sizeof(news.words) - used, "%s%d", i > 0 ? ", " : "",
		                         sender->ports[i].port);
	if (sender->port_count > 0 && strcmp(news.words, sender->last.words) != 0) {
		strcpy(sender->last.words, news.words);
		tell(sender, &news);
	}
}

/* Waits as long as the supervisor lets it. */
static struct tn_listening
wait_for_port(struct sender *sender, const struct tn_request *request)
{
	const struct timespec pause = { 0, LOOK_NANOSECONDS };
	const struct tn_listening *found;
	while ((found = find_port(sender, request)) == NULL) {
		tell_others(sender);
		nanosleep(&pause, NULL);
	}
	return *found;
}

/* One request, with what waits for its result. */
static void
send_one(const struct tn_request *request, const struct tn_listening *where, struct tn_answer *answer)
{
	tn__request_send(request, where->port, where->ipv6, answer);
	char *target = answer->how == TN_ANSWERED ? tn__request_second(request, answer->begin) : NULL;
	if (target == NULL)
		return;
	struct tn_request second = { .method = (char *)(uintptr_t)"GET",
		                         .target = target,
		                         .headers = request->headers,
		                         .host = request->host,
		                         .name = target };
	free(answer->begin);
	tn__request_send(&second, where->port, where->ipv6, answer);
	free(target);
}

/* ---- all of them ---- */

static void
take_turn(struct sender *sender, int number, size_t which)
{
	static const char *const ends[] = { "well", "refused", "dropped" };
	const struct tn_request *request = &sender->start->list->items[which];
	char words[512];
	struct tn_answer answer;
	struct tn_listening where = wait_for_port(sender, request);
	if (number == 1)
		tell(sender, &(struct tn_sent){ .kind = TN_SENT_LISTENS, .port = where.port });
	snprintf(words, sizeof(words), "begin %d %zu", number, which + 1);
	tell_hooks(sender, words);
	tell(sender, &(struct tn_sent){ .kind = TN_SENT_BEGINS, .number = number, .which = (int)which });
	send_one(request, &where, &answer);
	snprintf(words, sizeof(words), "end %d %s", number, ends[answer.how]);
	tell_hooks(sender, words);
	struct tn_sent news = { .kind = TN_SENT_ENDED,
		                    .number = number,
		                    .which = (int)which,
		                    .how = sender->out_of_memory ? TN_ANSWERED_OUT_OF_MEMORY : (int)answer.how,
		                    .status = answer.status,
		                    .allocated = sender->last.allocated,
		                    .peak = sender->last.peak };
	memcpy(news.words, answer.words, sizeof(news.words));
	tell(sender, &news);
	sender->answered += answer.how == TN_ANSWERED;
	free(answer.begin);
}

static _Noreturn void
send_all(const struct tn_sender_start *start, int news)
{
	static struct sender sender;
	size_t count = start->list->count;
	bool settled = false, over = false;
	int number = 0;
	sender = (struct sender){ .start = start, .news = news };
	for (int round = 1; !over; round++) {
		for (size_t i = 0; i < count && !sender.out_of_memory; i++) {
			take_turn(&sender, ++number, i);
			settled = sender.settled;
		}
		bool enough = round >= LEAST_ROUNDS && (settled || number >= MOST_UNASKED);
		bool hopeless = round >= LEAST_ROUNDS && sender.answered == 0;
		over = sender.out_of_memory || hopeless || (start->repeat > 0 ? round >= start->repeat : enough);
	}
	tell_hooks(&sender, "finish");
	tell(&sender, &(struct tn_sent){ .kind = TN_SENT_ALL, .number = number, .settled = settled });
	_exit(0);
}

pid_t
tn__sender_start(const struct tn_sender_start *start, int *news)
{
	int ends[2];
	pid_t self = getpid();
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(0);
		close(ends[0]);
		send_all(start, ends[1]);
	}
	close(ends[1]);
	*news = ends[0];
	if (pid < 0)
		close(ends[0]);
	return pid;
}
