/* SPDX-License-Identifier: Apache-2.0
 *
 * The reaper: a small process between the supervisor and the program, so that one of the two is always left to
 * clean up.
 *
 *     supervisor (subreaper) -> reaper (subreaper) -> program -> ...
 *
 * When the supervisor dies the reaper reads the end of the `life` pipe, kills everything below itself and removes
 * the run folder. When the reaper dies its children become the supervisor's, which reads the end of the `news`
 * pipe and does the same. The reaper ignores what the supervisor handles (the signals are blocked since before the
 * fork) and has one thread.
 *
 * Where a fork server makes the program's process (reaper_by_server.c), the reaper is the server's child instead, and a program of
 * its own (tn_reaper_main): pipes and all else are the same.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/error.h"
#include "base/seconds.h"
#include "preload/sandbox.h" /* the kernel's part of the write overlay, put on the program before it starts */
#include "preload/raw.h"     /* and the filter of calls that pass libc, which the reaper answers */
#include "supervise/internal.h"
#include "supervise/leftovers.h"

struct reaper {
	int life, news;
	int listener; /* trapped calls wait there; -1: there are none */
	pid_t program;
	struct tn_folder folder;
	struct tn_leftovers leftovers;
	struct tn_process_list killed;
	bool serves;
};

#define OTHER_REAPERS_SECONDS 5

static void
send_news(int pipe, struct tn_news news)
{
	ssize_t ignored = write(pipe, &news, sizeof(news));
	(void)ignored; /* nobody reads any more: the end of `life` will tell */
}

/* ---- in the program's process, before exec ---- */

/* Hands the listener to the reaper, or says that there is none. The filter stands already, so the pass word goes along. */
static void
send_listener(int channel, int listener, uint64_t pass)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char word = 'l';
	struct iovec part = { &word, 1 };
	struct msghdr parcel = { .msg_iov = &part, .msg_iovlen = 1 };
	if (listener >= 0) {
		parcel.msg_control = control.room;
		parcel.msg_controllen = sizeof(control.room);
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
			                               .cmsg_level = SOL_SOCKET,
			                               .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &listener, sizeof(int));
	}
	long ignored = syscall(SYS_sendmsg, (long)channel, &parcel, (long)MSG_NOSIGNAL, 0L, 0L, pass);
	(void)ignored; /* a reaper that is gone needs none */
	close(channel);
	if (listener >= 0)
		close(listener);
}

static struct tn__raw_walls
walls_of(const struct tn_start *start)
{
	return (struct tn__raw_walls){ .files = start->net, .network = start->network };
}

static void
put_behind_walls(const struct tn_start *start, int news, int channel)
{
	int listener = -1;
	uint64_t pass = tn__raw_pass(start->folder->path);
	struct tn__raw_walls walls = walls_of(start);
	tn__note_program(start->folder->path, start->path);
	for (size_t i = 1; start->several != NULL && i < start->several->count; i++)
		tn__note_program(start->folder->path, start->several->items[i].path);
	if (start->net)
		walls.landlock = tn__sandbox_apply(start->folder->path) == TN_OK;
	if (start->net && !walls.landlock)
		send_news(news, (struct tn_news){ .kind = TN_NEWS_NO_NET, .pid = getpid() });
	enum tn__raw_wall wall = tn__raw_install(start->folder->path, walls, channel >= 0 ? &listener : NULL);
	send_news(news, (struct tn_news){ .kind = TN_NEWS_RAW_WALL, .pid = getpid(), .status = (int32_t)wall });
	if (channel >= 0)
		send_listener(channel, listener, pass);
}

static void
become_program(const struct tn_start *start, const sigset_t *mask, int news, int channel, pid_t reaper)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != reaper)
		_exit(TN_EXIT_OWN_FAILURE);
	if (start->net || start->network)
		put_behind_walls(start, news, channel);
	if (start->several != NULL)
		tn__commands_run(start, mask, news);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvpe(start->path, start->arguments, start->environment);
	send_news(news, (struct tn_news){ .kind = TN_NEWS_NOT_EXECUTED, .pid = getpid(), .status = errno });
	_exit(errno == ENOENT ? TN_EXIT_NOT_FOUND : TN_EXIT_NOT_EXECUTABLE);
}

/* ---- in the reaper ---- */

static void
reap(void *context)
{
	struct reaper *reaper = context;
	struct rusage usage;
	int status;
	pid_t pid;
	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
		send_news(reaper->news, (struct tn_news){ .kind = TN_NEWS_ENDED,
		                                          .pid = pid,
		                                          .status = status,
		                                          .program = pid == reaper->program,
		                                          .peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024 });
}

static void
before_kill(void *context, pid_t pid)
{
	struct reaper *reaper = context;
	tn__leftovers_note(&reaper->leftovers, pid);
	tn__process_list_add(&reaper->killed, pid);
}

/* The program is a fork server, and below it are reapers of trials: they know by themselves that all is over, and what
 * is to be removed. */
static void
wait_for_other_reapers(struct reaper *reaper)
{
	const struct timespec pause = { 0, 2000000 };
	double until = tn__now() + OTHER_REAPERS_SECONDS;
	size_t left;
	kill(reaper->program, SIGKILL);
	do {
		struct tn_process_list list = { 0 };
		nanosleep(&pause, NULL);
		reap(reaper);
		tn__process_descendants(&(struct tn_process_tree){ .root = getpid() }, &list);
		left = list.count;
		tn__process_list_free(&list);
	} while (left > 0 && tn__now() < until);
}

static void
supervisor_is_gone(struct reaper *reaper)
{
	if (reaper->serves)
		wait_for_other_reapers(reaper);
	(void)tn__process_kill_all(&(struct tn_process_tree){ .root = getpid() }, before_kill, reap, reaper);
	tn__leftovers_remove(&reaper->leftovers, reaper->killed.pids, reaper->killed.count);
	tn__folder_remove(&reaper->folder, false);
	_exit(0);
}

/* Until the supervisor says that all is done, or is not there any more. */
static _Noreturn void
keep(struct reaper *reaper, int children)
{
	struct pollfd watched[] = { { reaper->life, POLLIN, 0 }, { children, POLLIN, 0 }, { reaper->listener, POLLIN, 0 } };
	for (;;) {
		struct signalfd_siginfo info;
		char word;
		if (poll(watched, 3, tn__raw_watch()) < 0 && errno != EINTR)
			supervisor_is_gone(reaper);
		if (watched[2].revents & POLLIN ? !tn__raw_answer(reaper->listener) : watched[2].revents != 0)
			watched[2].fd = -1; /* nobody is left that could call */
		if (watched[1].revents & POLLIN && read(children, &info, sizeof(info)) > 0)
			reap(reaper);
		if (!(watched[0].revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		if (read(reaper->life, &word, 1) == 1)
			_exit(0);
		supervisor_is_gone(reaper);
	}
}

/* A descriptor that tells of children, as this process is their reaper from now on; -1 without one. */
static int
watch_children(void)
{
	sigset_t child_signal;
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, TN_REAPER_NAME);
	return signalfd(-1, &child_signal, SFD_CLOEXEC);
}

/* Waits for the program's process to be behind its walls; -1 when nobody is to be listened to. */
static int
receive_listener(int channel, const struct tn_start *start)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char word;
	int listener = -1;
	struct iovec part = { &word, 1 };
	struct msghdr parcel = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)
	};
	ssize_t length;
	while ((length = recvmsg(channel, &parcel, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&parcel) : NULL;
	if (header != NULL && header->cmsg_type == SCM_RIGHTS)
		memcpy(&listener, CMSG_DATA(header), sizeof(int));
	close(channel);
	if (listener >= 0 && tn__raw_attach(start->folder->path, walls_of(start)) !=
	                         TN_OK) { /* closed, it fails with ENOSYS what it would refuse */
		close(listener);
		listener = -1;
	}
	return listener;
}

static void
become_reaper(const struct tn_start *start, const sigset_t *mask, int life, int news)
{
	struct reaper reaper = {
		.life = life, .news = news, .listener = -1, .folder = *start->folder, .serves = start->serves
	};
	pid_t self = getpid();
	int children = watch_children(), channel[2] = { -1, -1 };
	if ((start->net || start->network) && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0)
		channel[0] = channel[1] = -1;
	pid_t pid = children >= 0 ? fork() : -1;
	if (pid == 0)
		become_program(start, mask, news, channel[1], self);
	if (pid < 0) {
		send_news(news, (struct tn_news){ .kind = TN_NEWS_NOT_EXECUTED, .status = errno });
		_exit(TN_EXIT_OWN_FAILURE);
	}
	reaper.program = pid;
	send_news(news, (struct tn_news){ .kind = TN_NEWS_STARTED, .pid = pid });
	if (channel[0] >= 0) {
		close(channel[1]);
		reaper.listener = receive_listener(channel[0], start);
	}
	keep(&reaper, children);
}

int
tn_reaper_main(int count, char **words)
{
	int numbers[4];
	sigset_t all;
	if (count != 6 || strlen(words[5]) >= PATH_MAX)
		return TN_EXIT_USAGE;
	for (int i = 0; i < 4; i++)
		numbers[i] = atoi(words[1 + i]);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	struct reaper reaper = { .life = numbers[0], .news = numbers[1], .listener = -1, .program = numbers[3] };
	reaper.folder.lock = numbers[2];
	strcpy(reaper.folder.path, words[5]);
	int children = watch_children();
	send_news(reaper.news, (struct tn_news){ .kind = TN_NEWS_STARTED, .pid = reaper.program, .status = getpid() });
	reap(&reaper); /* what has ended since it was forked */
	keep(&reaper, children);
}

/* ---- in the supervisor ---- */

tn_status
tn__reaper_pipes(int life[2], int news[2])
{
	TN_RETURN_IF(pipe2(life, O_CLOEXEC) != 0, TN_IO, "no pipe can be made: %s", strerror(errno));
	if (pipe2(news, O_CLOEXEC) == 0)
		return TN_OK;
	int error = errno;
	close(life[0]);
	close(life[1]);
	return tn__fail(TN_IO, "no pipe can be made: %s", strerror(error));
}

tn_status
tn__reaper_start(const struct tn_start *start, const sigset_t *mask, struct tn_reaper *out)
{
	int life[2], news[2];
	TN_FORWARD_IF_ERROR(tn__reaper_pipes(life, news));
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid_t pid = fork();
	if (pid == 0) {
		close(life[1]);
		close(news[0]);
		become_reaper(start, mask, life[0], news[1]);
	}
	close(life[0]);
	close(news[1]);
	if (pid < 0) {
		close(life[1]);
		close(news[0]);
		return tn__fail(TN_IO, "no process can be started: %s", strerror(errno));
	}
	*out = (struct tn_reaper){ .pid = pid, .life = life[1], .news = news[0] };
	return TN_OK;
}

void
tn__reaper_finish(struct tn_reaper *reaper)
{
	char word = 'q';
	ssize_t ignored = write(reaper->life, &word, 1);
	(void)ignored; /* a dead reaper needs no word */
	close(reaper->life);
	while (reaper->group == 0 && waitpid(reaper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	while (reaper->group != 0 && read(reaper->news, &word, 1) > 0)
		; /* somebody else's child: the pipe ends with it */
	close(reaper->news);
}
