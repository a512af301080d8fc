/* SPDX-License-Identifier: Apache-2.0
 *
 * In a trial's supervisor: the process of the program comes from a fork server (forks.c). The supervisor only sends; the
 * answer is its reaper's news.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "supervise/fork_message.h"
#include "supervise/internal.h"

#define START_MILLISECONDS 20000 /* for the server to fork: it may be importing */

/* The reaper says when it is there. */
static tn_status
wait_for_start(struct tn_reaper *reaper)
{
	struct pollfd news = { reaper->news, POLLIN, 0 };
	struct tn_news first = { .kind = -1 };
	int ready;
	while ((ready = poll(&news, 1, START_MILLISECONDS)) < 0 && errno == EINTR)
		;
	if (ready > 0 && read(reaper->news, &first, sizeof(first)) != (ssize_t)sizeof(first))
		first.kind = -1;
	TN_RETURN_IF(first.kind != TN_NEWS_STARTED, TN_STATE, "the fork server made no process");
	reaper->pid = first.status;
	return TN_OK;
}

static bool
ask_server(const struct tn_start *start, int server, int life, int news, int alive)
{
	char self[PATH_MAX];
	struct tn_fork_message message;
	int descriptors[TN_FORK_DESCRIPTORS] = { life,          news,          start->folder->lock,      STDIN_FILENO,
		                                     STDOUT_FILENO, STDERR_FILENO, alive >= 0 ? alive : life };
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length <= 0 || !tn__fork_message_open(&message, "fork"))
		return false;
	self[length] = '\0';
	tn__fork_message_add_word(&message, self);
	tn__fork_message_add_word(&message, start->folder->path);
	tn__fork_message_add_number(&message, getpgrp());
	tn__fork_message_add_number(&message, start->net);
	tn__fork_message_add_words(&message, start->arguments);
	tn__fork_message_add_words(&message, start->environment);
	return tn__fork_message_send(&message, server, descriptors, TN_FORK_DESCRIPTORS);
}

tn_status
tn__reaper_start_by_server(const struct tn_start *start, int server, int alive, struct tn_reaper *out)
{
	int life[2], news[2];
	TN_FORWARD_IF_ERROR(tn__reaper_pipes(life, news));
	*out = (struct tn_reaper){ .group = getpgrp(), .life = life[1], .news = news[0] };
	bool asked = ask_server(start, server, life[0], news[1], alive);
	close(life[0]);
	close(news[1]);
	tn_status status = asked ? wait_for_start(out) : tn__fail(TN_STATE, "the fork server is gone");
	if (status != TN_OK) {
		close(life[1]);
		close(news[0]);
	}
	return status;
}

int
tn__server_lent(void)
{
	static int lent = -1; /* a run that is made again has its process from there, too */
	const char *text = getenv(TN_LENT_VARIABLE);
	if (text != NULL) {
		int handle = atoi(text);
		lent = handle > STDERR_FILENO && fcntl(handle, F_SETFD, FD_CLOEXEC) == 0 ? handle : -1;
		unsetenv(TN_LENT_VARIABLE);
	}
	return lent;
}
