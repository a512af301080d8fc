/* SPDX-License-Identifier: Apache-2.0
 *
 * A command that is only listened to: nothing is put into it, its output passes through unchanged, and the end of it is kept.
 *
 * An output that goes to a terminal gets a pseudo-terminal, so that progress bars and colours stay; one that goes elsewhere gets
 * a pipe. Where both go to the same place one channel serves both, so that their order stays. Ctrl-C reaches the command by itself
 * (it is in the terminal's foreground, too); here it is ignored until the command has ended.
 */
#include "tonnage/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plain.h"
#include "supervise/internal.h"
#include "tonnage/message.h"

#ifndef SYS_pidfd_open /* headers before Linux 5.3; without it the end of the output is waited for */
#define SYS_pidfd_open 434
#endif

#define TAIL_BYTES ((size_t)8 << 20)
#define LINGER_MS \
	200 /* after the command's end, for what is still on its way; a daemon of it may keep the channel open for ever */

struct channel {
	int here, there; /* our end and the command's; -1: closed */
	int to;          /* where it is passed on */
	bool terminal;
};

struct listener {
	struct channel channels[2]; /* of stdout and stderr, or one for both */
	size_t count;
	char *tail; /* the last bytes, around a ring */
	uint64_t seen;
	pid_t pid;
};

static volatile sig_atomic_t listened_pid;

static void
pass_on(int number)
{
	if (listened_pid > 0)
		kill((pid_t)listened_pid, number);
}

/* ---- channels ---- */

static bool
same_place(int first, int second)
{
	struct stat a, b;
	return fstat(first, &a) == 0 && fstat(second, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
	       a.st_rdev == b.st_rdev;
}

/* A pseudo-terminal of the real one's size. (openpty would need libutil before glibc 2.34.) */
static bool
open_terminal(struct channel *channel)
{
	char name[64];
	struct winsize size;
	struct termios modes;
	channel->here = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (channel->here < 0 || grantpt(channel->here) != 0 || unlockpt(channel->here) != 0 ||
	    ptsname_r(channel->here, name, sizeof(name)) != 0)
		return false;
	channel->there = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (channel->there < 0)
		return false;
	if (ioctl(channel->to, TIOCGWINSZ, &size) == 0)
		ioctl(channel->here, TIOCSWINSZ, &size);
	if (tcgetattr(channel->there, &modes) == 0) {
		modes.c_oflag &= ~(tcflag_t)OPOST; /* the real terminal does that */
		tcsetattr(channel->there, TCSANOW, &modes);
	}
	return true;
}

static bool
open_channel(struct channel *channel, int to)
{
	int ends[2];
	*channel = (struct channel){ -1, -1, to, isatty(to) == 1 };
	if (channel->terminal)
		return open_terminal(channel);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	channel->here = ends[0];
	channel->there = ends[1];
	return true;
}

static void
close_end(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

static bool
open_channels(struct listener *listener)
{
	listener->count = same_place(STDOUT_FILENO, STDERR_FILENO) ? 1 : 2;
	return open_channel(&listener->channels[0], STDOUT_FILENO) &&
	       (listener->count == 1 || open_channel(&listener->channels[1], STDERR_FILENO));
}

static void
close_channels(struct listener *listener)
{
	for (size_t i = 0; i < 2; i++) {
		close_end(&listener->channels[i].here);
		close_end(&listener->channels[i].there);
	}
}

/* ---- output ---- */

static void
keep(struct listener *listener, const char *bytes, size_t count)
{
	for (size_t done = 0; done < count;) {
		size_t at = (size_t)(listener->seen % TAIL_BYTES), room = TAIL_BYTES - at;
		size_t piece = count - done < room ? count - done : room;
		memcpy(listener->tail + at, bytes + done, piece);
		listener->seen += piece;
		done += piece;
	}
}

/* Passes on what is there; false at the end. A reader that is gone stops the passing on, not the listening. */
static bool
take_in(struct listener *listener, struct channel *channel)
{
	char buffer[65536];
	struct winsize size;
	ssize_t got = read(channel->here, buffer, sizeof(buffer));
	if (got < 0 && errno == EINTR)
		return true;
	if (got <= 0)
		return false; /* EIO: nobody has the terminal open any more */
	keep(listener, buffer, (size_t)got);
	if (channel->terminal && ioctl(channel->to, TIOCGWINSZ, &size) == 0)
		ioctl(channel->here, TIOCSWINSZ, &size);
	for (ssize_t done = 0; done < got && channel->to >= 0;) {
		ssize_t put = write(channel->to, buffer + done, (size_t)(got - done));
		if (put < 0 && errno != EINTR && errno != EAGAIN) {
			if (errno == EPIPE)
				close_end(&channel->here); /* the command learns of it as it would without us */
			channel->to = -1;
		}
		done += put > 0 ? put : 0;
	}
	return channel->here >= 0;
}

/* Until the command has ended and its output, too. */
static void
follow(struct listener *listener)
{
	int ended = (int)syscall(SYS_pidfd_open, listener->pid, 0);
	bool over = ended < 0;
	for (;;) {
		struct pollfd waits[3] = { { .fd = listener->channels[0].here, .events = POLLIN },
			                       { .fd = listener->count == 2 ? listener->channels[1].here : -1, .events = POLLIN },
			                       { .fd = over ? -1 : ended, .events = POLLIN } };
		if (waits[0].fd < 0 && waits[1].fd < 0)
			break;
		int ready = poll(waits, 3, over && ended >= 0 ? LINGER_MS : -1);
		if (ready == 0)
			break;
		if (ready < 0 && errno != EINTR)
			break;
		for (size_t i = 0; ready > 0 && i < 2; i++)
			if (waits[i].revents != 0 && !take_in(listener, &listener->channels[i]))
				close_end(&listener->channels[i].here);
		over |= ready > 0 && waits[2].revents != 0;
	}
	if (ended >= 0)
		close(ended);
}

/* ---- the command ---- */

static void
run_command(const struct listener *listener, const char *path, char *const *command)
{
	const struct channel *err = &listener->channels[listener->count - 1];
	signal(SIGPIPE, SIG_DFL);
	if (dup2(listener->channels[0].there, STDOUT_FILENO) >= 0 && dup2(err->there, STDERR_FILENO) >= 0)
		execv(path, command);
	_exit(TN_EXIT_NOT_EXECUTABLE);
}

static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE };
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

/* Ctrl-C and Ctrl-\ are the command's; what is sent to us alone is passed on to it. */
static void
take_signals(struct sigaction before[SIGNALS])
{
	for (size_t i = 0; i < SIGNALS; i++) {
		struct sigaction action = { .sa_handler = i < 2 || i == 4 ? SIG_IGN : pass_on };
		sigaction(signals[i], &action, &before[i]);
	}
}

/* Starts it with the signals as they were. */
static tn_status
start(struct listener *listener, const char *path, char *const *command, struct sigaction before[SIGNALS])
{
	take_signals(before);
	listener->pid = fork();
	if (listener->pid == 0) {
		for (size_t i = 0; i < SIGNALS; i++)
			sigaction(signals[i], &before[i], NULL);
		run_command(listener, path, command);
	}
	listened_pid = listener->pid;
	for (size_t i = 0; i < listener->count; i++)
		close_end(&listener->channels[i].there);
	TN_RETURN_IF(listener->pid < 0, TN_IO, "no process could be started: %s", strerror(errno));
	return TN_OK;
}

static int
wait_for(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	listened_pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- words ---- */

/* The kept bytes in their order: the ring is turned. The first line may be cut. */
static tn_status
explain_tail(struct listener *listener, bool failed, FILE *json)
{
	size_t kept = listener->seen < TAIL_BYTES ? (size_t)listener->seen : TAIL_BYTES;
	size_t start_at = listener->seen < TAIL_BYTES ? 0 : (size_t)(listener->seen % TAIL_BYTES);
	char *text = malloc(kept + 1);
	TN_RETURN_IF(text == NULL, TN_NO_MEMORY, "out of host memory");
	memcpy(text, listener->tail + start_at, kept - start_at);
	memcpy(text + kept - start_at, listener->tail, start_at);
	text[kept] = '\n';
	FILE *in = fmemopen(text, kept + 1, "r");
	tn_status status = in != NULL ? tn_explain(in, NULL, failed ? stderr : NULL, json)
	                              : tn__fail(TN_NO_MEMORY, "out of host memory");
	if (in != NULL)
		fclose(in);
	free(text);
	return status;
}

static tn_status
listen_to(struct listener *listener, const char *path, char *const *command, FILE *json, int *exit_status)
{
	struct sigaction before[SIGNALS];
	TN_RETURN_IF(!open_channels(listener), TN_IO, "no channel for the command's output: %s", strerror(errno));
	tn_status status = start(listener, path, command, before);
	if (status == TN_OK) {
		follow(listener);
		*exit_status = wait_for(listener->pid);
	}
	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
	TN_FORWARD_IF_ERROR(status);
	if (*exit_status != 0) {
		fputc('\n', stderr);
		tn__tell(stderr, "the command ended with status %d%s", *exit_status,
		         *exit_status == 128 + SIGKILL ? " (killed: the kernel does that when the host's memory is full)" : "");
	}
	return *exit_status != 0 || json != NULL ? explain_tail(listener, *exit_status != 0, json) : TN_OK;
}

tn_status
tn_listen(char *const *command, FILE *json, int *exit_status)
{
	struct listener listener = { .channels = { { -1, -1, -1, false }, { -1, -1, -1, false } } };
	char path[PATH_MAX];
	TN_FORWARD_IF_ERROR(tn__program_find(command[0], path, exit_status));
	listener.tail = malloc(TAIL_BYTES);
	TN_RETURN_IF(listener.tail == NULL, TN_NO_MEMORY, "out of host memory");
	tn_status status = listen_to(&listener, path, command, json, exit_status);
	close_channels(&listener);
	free(listener.tail);
	return status;
}
