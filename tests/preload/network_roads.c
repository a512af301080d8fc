/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends something to a port of 127.0.0.1, or to a socket of the file system, by the road that is named: network_roads ROAD PORT.
 * Without a road it lists those that it knows. The static build calls the kernel without the preloaded library. Sockets of the
 * file system are named by SOCKET, DATAGRAM and ABSTRACT.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ABSENT (-2)
static char text[64] = "made up"; /* and the road's name */
static int port;

static struct sockaddr_in
loopback(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return to;
}

static int
made(int family, int type, const void *address, size_t length)
{
	int fd = socket(family, type, 0);
	if (connect(fd, address, (socklen_t)length) != 0 && errno != EINPROGRESS) {
		perror("connect");
		exit(1);
	}
	return fd;
}

static int
connected(int type)
{
	struct sockaddr_in to = loopback();
	return made(AF_INET, type, &to, sizeof(to));
}

static int
file_of_text(void)
{
	char name[] = "/tmp/roads-XXXXXX";
	int fd = mkstemp(name);
	if (fd < 0) { /* a static program may not make one */
		fd = memfd_create("text", 0);
	}
	unlink(name);
	if (write(fd, text, sizeof(text)) < 0)
		perror("write");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static struct iovec pieces[2] = { { text, 10 }, { text, sizeof(text) } };

static struct msghdr
message_to(const struct sockaddr_in *to)
{
	return (struct msghdr){ .msg_iov = pieces,
		                    .msg_iovlen = 2,
		                    .msg_name = (void *)(unsigned long)to,
		                    .msg_namelen = to != NULL ? sizeof(*to) : 0 };
}

/* ---- TCP ---- */

static long
by_write(void)
{
	return write(connected(SOCK_STREAM), text, sizeof(text));
}
static long
by_writev(void)
{
	return writev(connected(SOCK_STREAM), pieces, 2);
}
static long
by_send(void)
{
	return send(connected(SOCK_STREAM), text, sizeof(text), 0);
}
static long
by_sendfile(void)
{
	return sendfile(connected(SOCK_STREAM), file_of_text(), NULL, sizeof(text));
}

static long
by_sendmsg(void)
{
	struct msghdr message = message_to(NULL);
	return sendmsg(connected(SOCK_STREAM), &message, 0);
}

static long
by_splice(void)
{
	int ends[2];
	if (pipe(ends) != 0 || write(ends[1], text, sizeof(text)) < 0)
		return -1;
	return splice(ends[0], NULL, connected(SOCK_STREAM), NULL, sizeof(text), 0);
}

static long
by_vfork(void)
{
	int status = 1;
	if (fork() == 0)
		_exit(by_write() < 0);
	wait(&status);
	return status == 0 ? 1 : -1;
}

static void *
in_thread(void *out)
{
	*(long *)out = by_write();
	return NULL;
}

static long
by_thread(void)
{
	long result = -1;
	pthread_t thread;
	pthread_create(&thread, NULL, in_thread, &result);
	pthread_join(thread, NULL);
	return result;
}

/* The call itself, as another libc would make it. */
static long
by_raw_connect(void)
{
	struct sockaddr_in to = loopback();
	long fd = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
	if (syscall(SYS_connect, fd, &to, sizeof(to)) != 0)
		return -1;
	return syscall(SYS_write, fd, text, sizeof(text));
}

static long
by_fast_open(void)
{
	struct sockaddr_in to = loopback();
	return sendto(socket(AF_INET, SOCK_STREAM, 0), text, sizeof(text), MSG_FASTOPEN, (void *)&to, sizeof(to));
}

static long
by_fast_open_message(void)
{
	struct sockaddr_in to = loopback();
	struct msghdr message = message_to(&to);
	return syscall(SYS_sendmsg, socket(AF_INET, SOCK_STREAM, 0), &message, MSG_FASTOPEN);
}

/* With this option connect returns at once, and the first write connects. */
static long
by_fast_open_connect(void)
{
	struct sockaddr_in to = loopback();
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(fd, IPPROTO_TCP, 30 /* TCP_FASTOPEN_CONNECT */, &one, sizeof(one));
	return connect(fd, (void *)&to, sizeof(to)) == 0 ? write(fd, text, sizeof(text)) : -1;
}

static long
by_waiting(void) /* not blocking */
{
	struct sockaddr_in to = loopback();
	int fd = made(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, &to, sizeof(to));
	struct pollfd wait = { fd, POLLOUT, 0 };
	poll(&wait, 1, 5000);
	return write(fd, text, sizeof(text));
}

static long
by_version_6(void)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
		                       .sin6_port = htons((unsigned short)port),
		                       .sin6_addr = in6addr_loopback };
	return write(made(AF_INET6, SOCK_STREAM, &to, sizeof(to)), text, sizeof(text));
}

static long
by_mapped(void)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons((unsigned short)port) };
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
	return write(made(AF_INET6, SOCK_STREAM, &to, sizeof(to)), text, sizeof(text));
}

static long
by_any(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	return write(made(AF_INET, SOCK_STREAM, &to, sizeof(to)), text, sizeof(text));
}

static long
by_bound(void) /* from a port of our own */
{
	struct sockaddr_in own = { .sin_family = AF_INET }, to = loopback();
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(fd, (void *)&own, sizeof(own)) != 0 || connect(fd, (void *)&to, sizeof(to)) != 0)
		return -1;
	return write(fd, text, sizeof(text));
}

static long
by_mptcp(void)
{
	struct sockaddr_in to = loopback();
	int fd = socket(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */);
	if (fd < 0)
		return ABSENT;
	return connect(fd, (void *)&to, sizeof(to)) == 0 ? write(fd, text, sizeof(text)) : -1;
}

static long
by_zero_copy(void)
{
	int fd = connected(SOCK_STREAM), one = 1;
	setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one));
	return send(fd, text, sizeof(text), MSG_ZEROCOPY);
}

static long
by_duplicate(void)
{
	return write(dup2(connected(SOCK_STREAM), 77), text, sizeof(text));
}

/* A child gets the connection as its output. */
static long
by_exec(void)
{
	int fd = connected(SOCK_STREAM), status = 1;
	if (fork() == 0) {
		dup2(fd, 1);
		execl("/bin/echo", "echo", text, (char *)NULL);
	}
	wait(&status);
	return status == 0 ? 1 : -1;
}

static long
by_rings(void) /* io_uring */
{
	static char parameters[256];
	return syscall(SYS_io_uring_setup, 4, parameters) < 0 ? -1 : by_write();
}

/* As a 32-bit program calls: every pointer below 4 GiB. */
static long
old_call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("int $0x80"
	                 : "=a"(result)
	                 : "a"(number), "b"(a), "c"(b), "d"(c)
	                 : "memory", "r8", "r9", "r10", "r11");
	if (result < 0)
		errno = (int)-result;
	return result < 0 ? -1 : result;
}

struct low {
	struct sockaddr_in to;
	unsigned words[6];
	char text[64];
};

static struct low *
low_memory(void)
{
	struct low *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	low->to = loopback();
	strcpy(low->text, text);
	return low;
}

static long
by_old_connect(void)
{
	struct low *low = low_memory();
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (old_call(362, fd, (long)&low->to, sizeof(low->to)) != 0)
		return -1;
	return write(fd, text, sizeof(text));
}

static long
by_old_wrapped_connect(void)
{
	struct low *low = low_memory();
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	low->words[0] = (unsigned)fd;
	low->words[1] = (unsigned)(unsigned long)&low->to;
	low->words[2] = sizeof(low->to);
	if (old_call(102, 3, (long)low->words, 0) != 0)
		return -1;
	return write(fd, text, sizeof(text));
}

static long
by_old_wrapped_send(void)
{
	struct low *low = low_memory();
	low->words[0] = (unsigned)socket(AF_INET, SOCK_DGRAM, 0);
	low->words[1] = (unsigned)(unsigned long)low->text;
	low->words[2] = sizeof(text);
	low->words[4] = (unsigned)(unsigned long)&low->to;
	low->words[5] = sizeof(low->to);
	return old_call(102, 11, (long)low->words, 0);
}

/* ---- datagrams ---- */

static long
by_datagram(void)
{
	struct sockaddr_in to = loopback();
	return sendto(socket(AF_INET, SOCK_DGRAM, 0), text, sizeof(text), 0, (void *)&to, sizeof(to));
}

static long
by_datagram_message(void)
{
	struct sockaddr_in to = loopback();
	struct msghdr message = message_to(&to);
	return sendmsg(socket(AF_INET, SOCK_DGRAM, 0), &message, 0);
}

static long
by_datagrams(void)
{
	struct sockaddr_in to = loopback();
	struct mmsghdr messages[2] = { { .msg_hdr = message_to(&to) }, { .msg_hdr = message_to(&to) } };
	return sendmmsg(socket(AF_INET, SOCK_DGRAM, 0), messages, 2, 0);
}

static long
by_connected_datagrams(void)
{
	struct mmsghdr messages[2] = { { .msg_hdr = message_to(NULL) }, { .msg_hdr = message_to(NULL) } };
	return sendmmsg(connected(SOCK_DGRAM), messages, 2, 0);
}

static long
by_connected_datagram(void)
{
	return write(connected(SOCK_DGRAM), text, sizeof(text));
}

static long
by_raw_datagram(void)
{
	struct sockaddr_in to = loopback();
	return syscall(SYS_sendto, socket(AF_INET, SOCK_DGRAM, 0), text, sizeof(text), 0, &to, sizeof(to));
}

static long
by_light_datagram(void)
{
	struct sockaddr_in to = loopback();
	int fd = socket(AF_INET, SOCK_DGRAM, 136 /* IPPROTO_UDPLITE */);
	return fd < 0 ? ABSENT : sendto(fd, text, sizeof(text), 0, (void *)&to, sizeof(to));
}

/* ---- sockets of the file system ---- */

static long
to_path(int type, const char *path, size_t length)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);
	memcpy(to.sun_path, path, length);
	if (connect(fd, (void *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) != 0)
		return -1;
	return write(fd, text, sizeof(text));
}

static long
by_path(void)
{
	return to_path(SOCK_STREAM, getenv("SOCKET"), strlen(getenv("SOCKET")));
}

static long
by_relative_path(void)
{
	char folder[4096], *slash;
	strcpy(folder, getenv("SOCKET"));
	slash = strrchr(folder, '/');
	*slash = 0;
	return chdir(folder) == 0 ? to_path(SOCK_STREAM, slash + 1, strlen(slash + 1)) : -1;
}

static long
by_path_of_descriptor(void)
{
	char path[64], folder[4096], *slash;
	strcpy(folder, getenv("SOCKET"));
	slash = strrchr(folder, '/');
	*slash = 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", open(folder, O_PATH), slash + 1);
	return to_path(SOCK_STREAM, path, strlen(path));
}

static long
by_abstract(void)
{
	char name[100] = "";
	strcpy(name + 1, getenv("ABSTRACT"));
	return to_path(SOCK_STREAM, name, 1 + strlen(name + 1));
}

static long
by_path_datagram(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	strcpy(to.sun_path, getenv("DATAGRAM"));
	return sendto(socket(AF_UNIX, SOCK_DGRAM, 0), text, sizeof(text), 0, (void *)&to, sizeof(to));
}

static long
by_connected_path_datagram(void)
{
	return to_path(SOCK_DGRAM, getenv("DATAGRAM"), strlen(getenv("DATAGRAM")));
}

static long
by_docker(void)
{
	return to_path(SOCK_STREAM, getenv("DOCKER"), strlen(getenv("DOCKER")));
}

/* ---- to a host that was read from before the first kernel; CLOSE is a command that says that one was launched ---- */

static void
ask_once(int fd)
{
	char answer[4096];
	if (send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) < 0 || recv(fd, answer, sizeof(answer), 0) <= 0) {
		perror("reading");
		exit(1);
	}
}

/* Until it is all sent, or the connection is ended. */
static long
send_much(int fd)
{
	static char much[4000];
	memset(much, 'm', sizeof(much));
	for (int i = 0; i < 200; i++)
		if (send(fd, much, sizeof(much), MSG_NOSIGNAL) < 0)
			return -1;
	return 1;
}

static long
much_on_kept(void)
{
	int fd = connected(SOCK_STREAM);
	ask_once(fd);
	return system(getenv("CLOSE")) == 0 ? send_much(fd) : -1;
}

static long
much_on_moved(void) /* under another number, and in another process */
{
	int fd = connected(SOCK_STREAM), moved, status = 0;
	ask_once(fd);
	moved = dup(fd);
	close(fd);
	if (system(getenv("CLOSE")) != 0)
		return -1;
	if (fork() == 0)
		_exit(send_much(moved) < 0);
	close(moved);
	wait(&status);
	return status == 0 ? 1 : -1;
}

static long
much_on_new(void)
{
	ask_once(connected(SOCK_STREAM));
	return system(getenv("CLOSE")) == 0 ? send_much(connected(SOCK_STREAM)) : -1;
}

static long
reading(void)
{
	int fd = connected(SOCK_STREAM);
	ask_once(fd);
	if (system(getenv("CLOSE")) != 0)
		return -1;
	for (int i = 0; i < 100; i++) {
		int new = connected(SOCK_STREAM);
		ask_once(fd);
		ask_once(new);
		close(new);
	}
	return 1;
}

/* More sockets than the reaper remembers at once, and then a connection that sends. */
static long
much_after_many(void)
{
	for (int i = 0; i < 1500; i++)
		close(connected(SOCK_DGRAM));
	return much_on_kept();
}

static const struct {
	const char *name;
	long (*take)(void);
} known[] = {
	{ "much_after_many", much_after_many }, { "much_on_kept", much_on_kept }, { "much_on_moved", much_on_moved },
	{ "much_on_new", much_on_new },         { "reading", reading },
};

static const struct {
	const char *name;
	long (*take)(void);
} roads[] = {
	{ "write", by_write },
	{ "writev", by_writev },
	{ "send", by_send },
	{ "sendmsg", by_sendmsg },
	{ "sendfile", by_sendfile },
	{ "splice", by_splice },
	{ "vfork", by_vfork },
	{ "thread", by_thread },
	{ "raw_connect", by_raw_connect },
	{ "fast_open", by_fast_open },
	{ "fast_open_message", by_fast_open_message },
	{ "fast_open_connect", by_fast_open_connect },
	{ "waiting", by_waiting },
	{ "version_6", by_version_6 },
	{ "mapped", by_mapped },
	{ "any", by_any },
	{ "bound", by_bound },
	{ "mptcp", by_mptcp },
	{ "zero_copy", by_zero_copy },
	{ "duplicate", by_duplicate },
	{ "exec", by_exec },
	{ "rings", by_rings },
	{ "old_connect", by_old_connect },
	{ "old_wrapped_connect", by_old_wrapped_connect },
	{ "old_wrapped_send", by_old_wrapped_send },
	{ "datagram", by_datagram },
	{ "datagram_message", by_datagram_message },
	{ "sendmmsg", by_datagrams },
	{ "connected_sendmmsg", by_connected_datagrams },
	{ "connected_datagram", by_connected_datagram },
	{ "raw_datagram", by_raw_datagram },
	{ "light_datagram", by_light_datagram },
	{ "path", by_path },
	{ "relative_path", by_relative_path },
	{ "path_of_descriptor", by_path_of_descriptor },
	{ "abstract", by_abstract },
	{ "path_datagram", by_path_datagram },
	{ "connected_path_datagram", by_connected_path_datagram },
	{ "docker", by_docker },
};

int
main(int argc, char **argv)
{
	port = argc > 2 ? atoi(argv[2]) : 0;
	for (size_t i = 0; i < sizeof(roads) / sizeof(roads[0]); i++) {
		if (argc == 1)
			puts(roads[i].name);
		if (argc == 1 || strcmp(argv[1], roads[i].name) != 0)
			continue;
		snprintf(text, sizeof(text), "made up by %s;", argv[1]);
		long result = roads[i].take();
		if (result < 0 && result != ABSENT)
			perror(argv[1]);
		return result == ABSENT ? 3 : result < 0;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(argv[1], known[i].name) == 0)
			return known[i].take() < 0;
	return argc == 1 ? 0 : 2;
}
