/* SPDX-License-Identifier: Apache-2.0
 *
 * The network wall for calls that pass libc (doc/design/0020-network.md): the reaper decides about connections and addressed
 * sends of static programs, of Go, and of libc's own inside.
 *
 * What is allowed is made by the caller's own call, so that blocking, credentials and signals are as ever. An address that
 * another thread of the program changes meanwhile is therefore not seen; no program does that by accident. What is sent on a
 * connection needs no address and is not trapped: sockets that lead out are looked at in short intervals, and their pace
 * is bounded, so that little passes between two looks.
 *
 * Invariant: no descriptor of the program's is kept, or a connection would outlive its close.
 */
#include "preload/raw_network.h"

#include <asm/unistd_64.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#include "base/error.h"
#include "preload/network.h"
#include "preload/overlay.h"
#include "preload/raw.h"
#include "preload/raw_counted.h"

#define MOST_WATCHED 1024
#define LOOK_MILLISECONDS 50
#define PACE (64 << 10)    /* bytes a second on what leads out after the first kernel */
#define SEND_BUFFER 2048   /* and what may wait to be sent; the kernel paces no connection before its tenth segment */
#define MOST_MESSAGES 1024 /* the kernel's own limit of sendmmsg */

static struct tn_network *network;
static char run_folder[PATH_MAX]; /* without links */

/* ---- the caller's socket ---- */

static pid_t
process_of(pid_t thread)
{
	char name[64], text[1024], *line;
	snprintf(name, sizeof(name), "/proc/%d/status", thread);
	long fd = TN_CALL(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
	long length = fd < 0 ? -1 : TN_CALL(SYS_read, fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)TN_CALL(SYS_close, fd);
	text[length > 0 ? length : 0] = 0;
	line = strstr(text, "\nTgid:");
	return line ? atoi(line + 6) : -1;
}

/* A duplicate of a process's descriptor; to be closed soon. */
static int
duplicate(pid_t process, int number)
{
	long handle = TN_CALL(SYS_pidfd_open, process, 0);
	long fd = handle < 0 ? handle : TN_CALL(SYS_pidfd_getfd, handle, number, 0);
	if (handle >= 0)
		(void)TN_CALL(SYS_close, handle);
	return (int)fd;
}

static uint64_t
cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t length = sizeof(cookie);
	return TN_CALL(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

static void
set_option(int fd, int option, const void *value, socklen_t size)
{
	(void)TN_CALL(SYS_setsockopt, fd, SOL_SOCKET, option, value, size);
}

static bool
is_datagram(int fd)
{
	int type = tn__network_option(fd, SO_TYPE);
	return type == SOCK_DGRAM || type == SOCK_RAW;
}

static bool
is_internet(int family)
{
	return family == AF_INET || family == AF_INET6;
}

/* ---- sockets that lead out ---- */

static struct watched {
	pid_t process;
	int fd;
	bool datagram, bounded; /* bounded: what is sent is counted, from `first` on */
	bool lost;              /* is not where it was */
	uint64_t cookie;
	unsigned long long inode;
	struct tn_network_count first;
} watched[MOST_WATCHED];
static size_t watched_count;
static int64_t next_look; /* milliseconds of the monotonic clock */

static int64_t
clock_milliseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
slow_down(int fd)
{
	const unsigned pace = PACE;
	const int buffer = SEND_BUFFER;
	set_option(fd, SO_MAX_PACING_RATE, &pace, sizeof(pace));
	set_option(fd, SO_SNDBUF, &buffer, sizeof(buffer));
}

/* A duplicate of the socket, if it is where it was; -1. */
static int
find(const struct watched *item)
{
	int fd = duplicate(item->process, item->fd);
	if (fd < 0 || cookie_of(fd) == item->cookie)
		return fd;
	(void)TN_CALL(SYS_close, fd);
	return -1;
}

static bool
is_lost_one(pid_t process, int fd, unsigned long long inode, void *context)
{
	size_t *left = context;
	for (size_t i = 0; i < watched_count; i++) {
		if (!watched[i].lost || watched[i].inode != inode)
			continue;
		watched[i].process = process;
		watched[i].fd = fd;
		watched[i].lost = false;
		(*left)--;
	}
	return *left == 0;
}

/* Looks once through all processes for the sockets that are not where they were. What nobody has is closed, and forgotten. */
static void
find_lost(void)
{
	size_t left = 0;
	for (size_t i = 0; i < watched_count; i++) {
		int fd = find(&watched[i]);
		watched[i].lost = fd < 0;
		left += fd < 0;
		if (fd >= 0)
			(void)TN_CALL(SYS_close, fd);
	}
	if (left > 0)
		tn__network_each_socket(is_lost_one, &left);
	for (size_t i = 0; i < watched_count;)
		if (watched[i].lost)
			watched[i] = watched[--watched_count];
		else
			i++;
}

/* `fd` is our duplicate. False: there is no room. */
static bool
watch(const struct tn__raw_caller *caller, int number, int fd, bool bounded)
{
	struct stat about;
	uint64_t cookie = cookie_of(fd);
	pid_t process = process_of((pid_t)caller->call->pid);
	size_t at = 0;
	if (watched_count == MOST_WATCHED)
		find_lost();
	while (at < watched_count && watched[at].cookie != cookie)
		at++;
	if (at == MOST_WATCHED || TN_CALL(SYS_fstat, fd, &about) != 0)
		return false;
	if (bounded)
		slow_down(fd);
	if (watched_count == 0)
		next_look = clock_milliseconds() + LOOK_MILLISECONDS;
	watched[at] = (struct watched){ .process = process,
		                            .fd = number,
		                            .datagram = is_datagram(fd),
		                            .bounded = bounded,
		                            .cookie = cookie,
		                            .inode = about.st_ino };
	if (at == watched_count)
		watched_count++;
	return true;
}

static bool
peer_of(int fd, struct sockaddr_storage *peer, socklen_t *length)
{
	*length = sizeof(*peer);
	memset(peer, 0, sizeof(*peer));
	return TN_CALL(SYS_getpeername, fd, peer, length) == 0;
}

/* A socket that stood when the first kernel came. False: it may be forgotten. */
static bool
begin_to_bound(struct watched *item, int fd)
{
	struct sockaddr_storage peer;
	socklen_t length;
	if (!peer_of(fd, &peer, &length))
		return tn__network_option(fd, SO_ERROR) == 0; /* it is still being made */
	if (tn__network_is_local((void *)&peer, length) &&
	    tn__network_is_own(network, (void *)&peer, length, item->datagram))
		return false;
	if (item->datagram) {
		set_option(fd, SO_BINDTODEVICE, "lo", 3);
		return false;
	}
	slow_down(fd);
	item->bounded = true;
	return tn__network_count(fd, &item->first);
}

/* False: it may be forgotten. */
static bool
look_at(struct watched *item, int fd)
{
	struct sockaddr_storage peer;
	struct tn_network_count now;
	socklen_t length;
	if (!item->bounded)
		return begin_to_bound(item, fd);
	if (!tn__network_count(fd, &now))
		return false;
	if (!tn__network_is_too_much(&item->first, &now, 0))
		return true;
	bool known = peer_of(fd, &peer, &length);
	tn__network_refused_send(network, known ? (void *)&peer : NULL, known ? length : 0);
	(void)TN_CALL(SYS_shutdown, fd, SHUT_RDWR);
	return false;
}

int
tn__raw_watch(void)
{
	int64_t now = watched_count > 0 ? clock_milliseconds() : 0;
	if (watched_count == 0)
		return -1;
	if (now < next_look)
		return (int)(next_look - now);
	next_look = now + LOOK_MILLISECONDS;
	if (tn_network_is_closed(network))
		find_lost();
	for (size_t i = 0; i < watched_count && tn_network_is_closed(network);) {
		int fd = find(&watched[i]);
		bool keep = fd >= 0 && look_at(&watched[i], fd);
		if (fd >= 0)
			(void)TN_CALL(SYS_close, fd);
		if (keep)
			i++;
		else
			watched[i] = watched[--watched_count];
	}
	return LOOK_MILLISECONDS;
}

/* ---- the decision ---- */

/* A name in the file system: a raw call sees lower files only. */
static long
decide_path(const struct tn__raw_caller *caller, const struct sockaddr *address, socklen_t length)
{
	char text[TN_NETWORK_PATH], path[PATH_MAX], real[PATH_MAX];
	bool own = false;
	if (!tn__network_path_of(address, length, text))
		return TN__RAW_GO_ON;
	if (((const struct sockaddr_un *)(const void *)address)->sun_path[0]) {
		long result = tn__raw_has_our_root(caller) ? tn__raw_absolute(caller, AT_FDCWD, text, path) : -EACCES;
		if (result)
			return result;
		tn__network_real_path(path, real);
		own = !strncmp(real, run_folder, strlen(run_folder)) && real[strlen(run_folder)] == '/';
	} else {
		strcpy(real, text);
	}
	return tn__network_path(network, real, own) == TN_NETWORK_REFUSED ? -EACCES : TN__RAW_GO_ON;
}

/* Connecting a datagram socket sends nothing; after the first kernel it gets no way out of the machine (entries_socket.c). It
 * is made here, since the socket is to be shut in after it. */
static long
connect_datagram(const struct tn__raw_caller *caller, int number, int fd, const struct sockaddr *address,
                 socklen_t length)
{
	bool local = tn__network_is_local(address, length);
	if (!is_internet(address->sa_family) || tn__network_is_dns(address, length))
		return TN__RAW_GO_ON;
	if (!tn_network_is_closed(network)) {
		(void)watch(caller, number, fd, false);
		return TN__RAW_GO_ON;
	}
	if (local)
		return tn__network_datagram(network, address, length, false) == TN_NETWORK_REFUSED ? -ENETUNREACH
		                                                                                   : TN__RAW_GO_ON;
	long result = tn__raw_still_waits(caller) ? TN_CALL(SYS_connect, fd, address, length) : -EINTR;
	set_option(fd, SO_BINDTODEVICE, "lo", 3);
	return result;
}

static long
connect_stream(const struct tn__raw_caller *caller, int number, int fd, const struct sockaddr *address,
               socklen_t length)
{
	bool closed = tn_network_is_closed(network);
	enum tn_network_answer answer = tn__network_connect(network, address, length);
	if (answer == TN_NETWORK_REFUSED)
		return -ENETUNREACH;
	if (fd >= 0 && is_internet(address->sa_family) && (answer == TN_NETWORK_BOUNDED || !closed) &&
	    watch(caller, number, fd, answer == TN_NETWORK_BOUNDED))
		return TN__RAW_GO_ON;
	return answer == TN_NETWORK_BOUNDED ? -ENETUNREACH : TN__RAW_GO_ON; /* what cannot be counted is not sent */
}

/* The address that a call names. False: *answer is the call's answer already. A bad address is the kernel's to refuse, and a
 * path needs no look at the socket. */
static bool
read_address(const struct tn__raw_caller *caller, uint64_t at, uint64_t length, struct sockaddr_storage *out,
             long *answer)
{
	memset(out, 0, sizeof(*out));
	*answer = TN__RAW_GO_ON;
	if (!at || length < sizeof(sa_family_t) || length > sizeof(*out) || tn__raw_read(caller, at, out, length))
		return false;
	if (out->ss_family != AF_UNIX)
		return true;
	*answer = decide_path(caller, (const struct sockaddr *)out, (socklen_t)length);
	return false;
}

static long
decide_connect(const struct tn__raw_caller *caller, int number, uint64_t at, uint64_t length)
{
	struct sockaddr_storage storage;
	const struct sockaddr *address = (void *)&storage;
	long result;
	if (!read_address(caller, at, length, &storage, &result))
		return result;
	int fd = duplicate(process_of((pid_t)caller->call->pid), number);
	result = fd >= 0 && is_datagram(fd) ? connect_datagram(caller, number, fd, address, (socklen_t)length)
	                                    : connect_stream(caller, number, fd, address, (socklen_t)length);
	if (fd >= 0)
		(void)TN_CALL(SYS_close, fd);
	return result;
}

static long
decide_send(const struct tn__raw_caller *caller, int number, uint64_t at, uint64_t length, uint64_t flags)
{
	struct sockaddr_storage storage;
	long answer;
	if (!read_address(caller, at, length, &storage, &answer))
		return answer;
	if (flags & MSG_FASTOPEN)
		return decide_connect(caller, number, at, length);
	int fd = duplicate(process_of((pid_t)caller->call->pid), number);
	bool stream = fd >= 0 && !is_datagram(fd); /* where it leads was decided when it was connected */
	if (fd >= 0)
		(void)TN_CALL(SYS_close, fd);
	if (stream || tn__network_datagram(network, (void *)&storage, (socklen_t)length, false) != TN_NETWORK_REFUSED)
		return TN__RAW_GO_ON;
	return -ENETUNREACH;
}

/* Of a msghdr only the name and its length are looked at, which stand first. `narrow`: of a 32-bit program. */
static long
decide_message(const struct tn__raw_caller *caller, int number, uint64_t at, bool narrow, uint64_t flags)
{
	struct {
		uint64_t name;
		uint32_t length;
	} wide;
	struct {
		uint32_t name, length;
	} thin;
	if (narrow ? tn__raw_read(caller, at, &thin, sizeof(thin)) : tn__raw_read(caller, at, &wide, 12))
		return TN__RAW_GO_ON;
	return narrow ? decide_send(caller, number, thin.name, thin.length, flags)
	              : decide_send(caller, number, wide.name, wide.length, flags);
}

static long
decide_messages(const struct tn__raw_caller *caller, const uint64_t *a, bool narrow)
{
	const uint64_t step = narrow ? 32 : sizeof(struct mmsghdr);
	long result = TN__RAW_GO_ON;
	for (uint64_t i = 0; i < (uint32_t)a[2] && i < MOST_MESSAGES && result == TN__RAW_GO_ON; i++)
		result = decide_message(caller, (int)a[0], a[1] + i * step, narrow, a[3]);
	return result;
}

/* The call's number and arguments as if it were a 64-bit one that is not wrapped. */
static long
unwrap(const struct tn__raw_caller *caller, uint64_t *a)
{
	static const struct {
		int old, wrapped;
		long number;
	} same[] = { { 362, SYS_CONNECT, __NR_connect },
		         { 369, SYS_SENDTO, __NR_sendto },
		         { 370, SYS_SENDMSG, __NR_sendmsg },
		         { 345, SYS_SENDMMSG, __NR_sendmmsg } };
	const struct seccomp_data *data = &caller->call->data;
	uint32_t words[6] = { 0 };
	bool wrapped = data->nr == 102;
	for (int i = 0; i < 6; i++)
		a[i] = data->args[i];
	if (data->arch == AUDIT_ARCH_X86_64)
		return data->nr;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		if (wrapped ? same[i].wrapped != (int)a[0] : same[i].old != data->nr)
			continue;
		if (wrapped &&
		    tn__raw_read(caller, a[1], words, 16) == 0) /* three arguments at least, whose fourth word may be unused */
			(void)tn__raw_read(caller, a[1] + 16, words + 4, 8);
		for (int k = 0; wrapped && k < 6; k++)
			a[k] = words[k];
		return same[i].number;
	}
	return -1;
}

bool
tn__raw_is_network(const struct seccomp_notif *call)
{
	if (call->data.arch != AUDIT_ARCH_X86_64)
		return !tn__raw_is_counted(call); /* of other 32-bit calls nobody is asked */
	return call->data.nr == __NR_connect || call->data.nr == __NR_sendto || call->data.nr == __NR_sendmsg ||
	       call->data.nr == __NR_sendmmsg;
}

long
tn__raw_network_answer(const struct tn__raw_caller *caller)
{
	static bool was_closed;
	bool narrow = caller->call->data.arch != AUDIT_ARCH_X86_64;
	uint64_t a[6];
	if (!network)
		return TN__RAW_GO_ON;
	if (!was_closed && tn_network_is_closed(network)) {
		was_closed = true;
		next_look = 0;
		(void)tn__raw_watch();
	}
	if (caller->memory < 0)
		return -EACCES;
	switch (unwrap(caller, a)) {
	case __NR_connect:
		return decide_connect(caller, (int)a[0], a[1], (uint32_t)a[2]);
	case __NR_sendto:
		return decide_send(caller, (int)a[0], a[4], (uint32_t)a[5], a[3]);
	case __NR_sendmsg:
		return decide_message(caller, (int)a[0], a[1], narrow, a[2]);
	case __NR_sendmmsg:
		return decide_messages(caller, a, narrow);
	default:
		return TN__RAW_GO_ON;
	}
}

tn_status
tn__raw_network_attach(const char *folder)
{
	tn__network_real_path(folder, run_folder);
	network = tn__network_open(folder, 0);
	TN_RETURN_IF(!network, TN_IO, "the network table of %s cannot be used", folder);
	return TN_OK;
}
