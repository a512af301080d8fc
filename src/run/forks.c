/* SPDX-License-Identifier: Apache-2.0
 *
 * Import once, fork the rest (doc/design/0010-trials.md): the process of a trial's program is forked by a server that
 * has imported what the program imports.
 *
 *     command -> supervisor -> keeper -> server -> keeper of a trial -> its program -> ...
 *        \--> supervisor of the trial
 *
 * The server is a Python process with our hook (guest/_tonnage_guest/forks.py). It gets messages through a socket of
 * records: words that each end with a zero, and descriptors beside them. It answers with "ready" or "not" and a reason.
 * A trial's supervisor only sends; its answer is its keeper's news.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "run/internal.h"
#include "run/trial.h"

#define START_MILLISECONDS 20000 /* for the server to fork: it may be importing */
#define DESCRIPTORS 7
#define LARGEST_LIST (4 << 20)

/* ---- messages ---- */

struct message {
	char *text;
	size_t size;
	FILE *out;
};

static bool
message_open(struct message *message, const char *kind)
{
	*message = (struct message){ .text = NULL };
	message->out = open_memstream(&message->text, &message->size);
	if (message->out == NULL)
		return false;
	fwrite(kind, 1, strlen(kind) + 1, message->out);
	return true;
}

static void
add_word(struct message *message, const char *word)
{
	fwrite(word, 1, strlen(word) + 1, message->out);
}

static void
add_number(struct message *message, long long number)
{
	fprintf(message->out, "%lld%c", number, '\0');
}

static void
add_words(struct message *message, char *const *words)
{
	long long count = 0;
	while (words[count] != NULL)
		count++;
	add_number(message, count);
	for (long long i = 0; i < count; i++)
		add_word(message, words[i]);
}

/* Sends and releases the message; false when nobody takes it. */
static bool
message_send(struct message *message, int channel, const int *descriptors, size_t count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control = { 0 };
	bool whole = fclose(message->out) == 0 && message->text != NULL;
	struct iovec part = { message->text, message->size };
	struct msghdr parcel = { .msg_iov = &part, .msg_iovlen = 1 };
	if (count > 0) {
		parcel.msg_control = control.room;
		parcel.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET,
			                               .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&parcel)), descriptors, count * sizeof(int));
	}
	bool sent = whole && sendmsg(channel, &parcel, MSG_NOSIGNAL) == (ssize_t)message->size;
	free(message->text);
	return sent;
}

/* ---- in a trial's supervisor ---- */

/* The keeper says when it is there. */
static tn_status
wait_for_start(struct tn_keeper *keeper)
{
	struct pollfd news = { keeper->news, POLLIN, 0 };
	struct tn_news first = { .kind = -1 };
	int ready;
	while ((ready = poll(&news, 1, START_MILLISECONDS)) < 0 && errno == EINTR)
		;
	if (ready > 0 && read(keeper->news, &first, sizeof(first)) != (ssize_t)sizeof(first))
		first.kind = -1;
	TN_RETURN_IF(first.kind != TN_NEWS_STARTED, TN_STATE, "the fork server made no process");
	keeper->pid = first.status;
	return TN_OK;
}

static bool
ask_server(const struct tn_start *start, int server, int life, int news, int alive)
{
	char self[PATH_MAX];
	struct message message;
	int descriptors[DESCRIPTORS] = { life, news, start->folder->lock, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, alive };
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length <= 0 || !message_open(&message, "fork"))
		return false;
	self[length] = '\0';
	add_word(&message, self);
	add_word(&message, start->folder->path);
	add_number(&message, getpgrp());
	add_number(&message, start->net);
	add_words(&message, start->arguments);
	add_words(&message, start->environment);
	return message_send(&message, server, descriptors, DESCRIPTORS);
}

tn_status
tn__keeper_start_by_server(const struct tn_start *start, int server, int alive, struct tn_keeper *out)
{
	int life[2], news[2];
	TN_FORWARD_IF_ERROR(tn__keeper_pipes(life, news));
	*out = (struct tn_keeper){ .group = getpgrp(), .life = life[1], .news = news[0] };
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

/* ---- in the command ---- */

void
tn__forks_distrust(struct tn_forks *forks, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (forks->state != TN_FORKS_BROKEN)
		vsnprintf(forks->why, sizeof(forks->why), format, arguments);
	va_end(arguments);
	forks->state = TN_FORKS_BROKEN;
	if (forks->pid > 0)
		kill(forks->pid, SIGKILL); /* its keeper cleans up */
}

void
tn__forks_start(struct tn_forks *forks, const struct tn_run_options *options, const sigset_t *mask)
{
	int ends[2];
	pid_t self = getpid();
	*forks = (struct tn_forks){ .state = TN_FORKS_IMPORTS, .channel = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		tn__forks_distrust(forks, "no socket can be made: %s", strerror(errno));
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
		tn__forks_distrust(forks, "no process can be started: %s", strerror(errno));
}

void
tn__forks_import(struct tn_forks *forks, const char *modules)
{
	struct message message;
	if (forks->state != TN_FORKS_READY || modules == NULL)
		return;
	int list = memfd_create("tonnage-modules", MFD_CLOEXEC); /* it may be longer than a message */
	size_t length = strlen(modules);
	if (list >= 0 && write(list, modules, length) == (ssize_t)length && message_open(&message, "import") &&
	    message_send(&message, forks->channel, &list, 1))
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
		tn__forks_distrust(forks, "%s", length > 4 ? words + 4 : "the program's process is none that can be forked");
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

/* ---- what was imported ---- */

static char *
read_list(const char *path)
{
	struct stat about;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text = NULL;
	if (file < 0)
		return NULL;
	if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= LARGEST_LIST &&
	    (text = calloc(1, (size_t)about.st_size + 1)) != NULL && read(file, text, (size_t)about.st_size) < 0)
		text[0] = '\0';
	close(file);
	return text;
}

char *
tn__modules_read(const struct tn_folder *folder)
{
	char path[PATH_MAX], file[PATH_MAX], *best = NULL;
	const struct dirent *item;
	DIR *listing = opendir(tn__folder_path(folder, "guest", path));
	while (listing != NULL && (item = readdir(listing)) != NULL) {
		const char *end = strstr(item->d_name, ".modules");
		if (end == NULL || strcmp(end, ".modules") != 0 ||
		    snprintf(file, sizeof(file), "%s/%s", path, item->d_name) >= PATH_MAX)
			continue;
		char *text = read_list(file);
		bool better = text != NULL && (best == NULL || strlen(text) > strlen(best));
		free(better ? best : text);
		best = better ? text : best;
	}
	if (listing != NULL)
		closedir(listing);
	return best;
}
