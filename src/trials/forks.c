/* SPDX-License-Identifier: Apache-2.0
 *
 * Import once, fork the rest (doc/design/0010-trials.md): the process of a trial's program is forked by a server that
 * has imported what the program imports. This is the command's side: it starts the server and has it import.
 *
 *     command -> supervisor -> reaper -> server -> reaper of a trial -> its program -> ...
 *        \--> supervisor of the trial (reaper_by_server.c)
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervise/fork_message.h"
#include "trials/trial.h"

void
tn__forks_disable(struct tn_forks *forks, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (forks->state != TN_FORKS_BROKEN)
		vsnprintf(forks->why, sizeof(forks->why), format, arguments);
	va_end(arguments);
	forks->state = TN_FORKS_BROKEN;
	if (forks->pid > 0)
		kill(forks->pid, SIGKILL); /* its reaper cleans up */
}

void
tn__forks_start(struct tn_forks *forks, const struct tn_run_options *options, const sigset_t *mask)
{
	int ends[2];
	pid_t self = getpid();
	*forks = (struct tn_forks){ .state = TN_FORKS_IMPORTS, .channel = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		tn__forks_disable(forks, "no socket can be made: %s", strerror(errno));
		return;
	}
	forks->channel = ends[0];
	forks->pid = fork();
	if (forks->pid == 0) {
		close(ends[0]);
		tn__trial_become_server(options, ends[1], mask, self);
	}
	close(ends[1]);
	if (forks->pid < 0)
		tn__forks_disable(forks, "no process can be started: %s", strerror(errno));
}

void
tn__forks_import(struct tn_forks *forks, const char *modules)
{
	struct tn_fork_message message;
	if (forks->state != TN_FORKS_READY || modules == NULL)
		return;
	int list = memfd_create("tonnage-modules", MFD_CLOEXEC); /* it may be longer than a message */
	size_t length = strlen(modules);
	if (list >= 0 && write(list, modules, length) == (ssize_t)length && tn__fork_message_open(&message, "import") &&
	    tn__fork_message_send(&message, forks->channel, &list, 1))
		forks->state = TN_FORKS_IMPORTS;
	if (list >= 0)
		close(list);
}

void
tn__forks_listen(struct tn_forks *forks)
{
	char words[256];
	if (forks->state != TN_FORKS_IMPORTS)
		return;
	ssize_t length = recv(forks->channel, words, sizeof(words) - 1, MSG_DONTWAIT);
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	words[length > 0 ? length : 0] = '\0';
	if (length > 0 && strcmp(words, "ready") == 0)
		forks->state = TN_FORKS_READY;
	else
		tn__forks_disable(forks, "%s", length > 4 ? words + 4 : "the program's process cannot be forked");
}

void
tn__forks_end(struct tn_forks *forks)
{
	if (forks->pid > 0)
		kill(forks->pid, SIGKILL);
	if (forks->state != TN_FORKS_OFF && forks->channel >= 0)
		close(forks->channel);
	forks->channel = -1;
	forks->pid = 0;
}
