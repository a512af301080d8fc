/* SPDX-License-Identifier: Apache-2.0
 *
 * The network wall inside a process. What is sent on a connection that leads out is bounded by what was received on it, as
 * the kernel counts both (TCP_INFO), so that nothing has to be counted here and a forked child needs no word of ours.
 *
 * Invariant: a kind that is remembered is only believed where it lets something pass; before something is refused the
 * descriptor is looked at again, since libc may have closed and reused the number without us.
 */
#include "preload/network_state.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "preload/overlay.h"

static _Atomic uint32_t no_kernels = 0;
static struct tn_network *network;
static _Atomic int set_up; /* 0 not yet, 1 somebody is at it, 2 done */

_Atomic uint8_t tn__socket_kinds[TN_DESCRIPTORS];
_Atomic uint32_t *tn__network_kernels = &no_kernels;

static struct tn_network_count
	before[TN_DESCRIPTORS]; /* of bounded connections: what had gone over them when the wall closed */

struct tn_network *
tn__network(void)
{
	int state = 0;
	if (atomic_load_explicit(&set_up, memory_order_acquire) == 2)
		return network;
	if (atomic_compare_exchange_strong(&set_up, &state, 1)) {
		const char *run = getenv("TONNAGE_RUN");
		(void)tn__mode();
		network = run != NULL && *run ? tn__network_open(run, tn__head->pass) : NULL;
		if (network != NULL)
			tn__network_kernels = &network->kernels;
		atomic_store_explicit(&set_up, 2, memory_order_release);
	} else {
		while (atomic_load_explicit(&set_up, memory_order_acquire) != 2)
			(void)TN_CALL(SYS_sched_yield, 0);
	}
	return network;
}

void
tn__network_renew(void)
{
	if (network != NULL)
		tn__network_close(network);
	network = NULL;
	tn__network_kernels = &no_kernels;
	memset((void *)tn__socket_kinds, 0, sizeof(tn__socket_kinds));
	atomic_store(&set_up, 0);
	(void)tn__network();
}

int
tn__network_call(long number, long a, long b, long c, long d)
{
	int kind;
	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &kind); /* libc's are cancellation points, too */
	long result = TN_CALL(number, a, b, c, d, 0L, network->pass);
	(void)pthread_setcanceltype(kind, &kind);
	return tn__result(result);
}

__attribute__((constructor)) static void
start(void)
{
	(void)tn__network();
}

/* Called by the virtual GPU with each piece of work. */
TN_ENTRY void tn_preload_kernels_ran(void);
TN_ENTRY void
tn_preload_kernels_ran(void)
{
	if (network == NULL || tn__network_is_closed())
		return;
	atomic_store(&network->kernels, 1);
	/* A call that fails, but that the reaper is asked about: when it returns, connections of programs that pass libc are
	 * counted. */
	(void)TN_CALL(SYS_connect, -1, 0, 0);
}

/* ---- what a descriptor is ---- */

/* The terminal or log that the program was started with may be a socket. */
static bool
was_inherited(int fd)
{
	struct stat about;
	if (TN_CALL(SYS_fstat, fd, &about) != 0)
		return true;
	for (int i = 0; i < TN_NETWORK_INHERITED; i++)
		if (network->inherited[i] != 0 && network->inherited[i] == about.st_ino)
			return true;
	return false;
}

static bool
name_of(long number, int fd, struct sockaddr_storage *out, socklen_t *length)
{
	*length = sizeof(*out);
	memset(out, 0, sizeof(*out));
	return TN_CALL(number, fd, out, length) == 0;
}

/* Was it accepted at a port that the run listens at? Such a socket has the listener's port. */
static bool
was_accepted(const struct sockaddr_storage *own, socklen_t length)
{
	struct sockaddr_in in;
	memcpy(&in, own, sizeof(in));
	unsigned port = ntohs(in.sin_port);
	return length > 0 && (atomic_load(&network->tcp[port / 64]) >> port % 64 & 1) != 0;
}

static enum tn__socket_kind
look_at(int fd)
{
	struct sockaddr_storage own, peer;
	socklen_t own_length, peer_length;
	int domain = tn__network_option(fd, SO_DOMAIN), type = tn__network_option(fd, SO_TYPE);
	if (domain == AF_PACKET)
		return TN__SOCKET_DATAGRAM;
	if ((domain != AF_INET && domain != AF_INET6) || was_inherited(fd))
		return TN__SOCKET_FREE;
	if (type == SOCK_DGRAM || type == SOCK_RAW)
		return TN__SOCKET_DATAGRAM;
	if (!name_of(SYS_getpeername, fd, &peer, &peer_length))
		return TN__SOCKET_UNKNOWN; /* not connected: libc's own error */
	if (!name_of(SYS_getsockname, fd, &own, &own_length))
		own_length = 0;
	if (was_accepted(&own, own_length) || (tn__network_is_local((void *)&peer, peer_length) &&
	                                       tn__network_is_own(network, (void *)&peer, peer_length, false)))
		return TN__SOCKET_FREE;
	return TN__SOCKET_BOUNDED;
}

static enum tn__socket_kind
kind_of(int fd)
{
	enum tn__socket_kind kind;
	if (fd < 0 || fd >= TN_DESCRIPTORS)
		return look_at(fd);
	kind = (enum tn__socket_kind)atomic_load_explicit(&tn__socket_kinds[fd], memory_order_relaxed);
	if (kind != TN__SOCKET_UNKNOWN)
		return kind;
	kind = look_at(fd);
	if (kind == TN__SOCKET_BOUNDED && !tn__network_count(fd, &before[fd]))
		before[fd] = (struct tn_network_count){ 0, 0 };
	atomic_store_explicit(&tn__socket_kinds[fd], (uint8_t)kind, memory_order_relaxed);
	return kind;
}

/* ---- what may be sent ---- */

static bool
begins_with(const char *bytes, size_t size, const char *word)
{
	size_t length = strlen(word);
	return size >= length && memcmp(bytes, word, length) == 0;
}

/* A request in clear text that does more than read. The hub's own reading asks for lists of files by POST. */
static bool
is_writing_request(const void *data, size_t size)
{
	static const char *const words[] = { "PUT ", "PATCH ", "DELETE ", "POST " };
	const char *bytes = data;
	for (size_t i = 0; bytes != NULL && i < sizeof(words) / sizeof(words[0]); i++) {
		if (!begins_with(bytes, size, words[i]))
			continue;
		size_t head = size < 2048 ? size : 2048;
		const char *end = memchr(bytes, '\n', head);
		size_t line = end != NULL ? (size_t)(end - bytes) : head;
		if (memmem(bytes, line, " HTTP/", 6) == NULL)
			return false;
		return words[i][1] != 'O' || memmem(bytes, line, "/paths-info/", 12) == NULL;
	}
	return false;
}

static bool
exceeds(int fd, const void *bytes, size_t size)
{
	struct tn_network_count now, first = { 0, 0 };
	if (is_writing_request(bytes, size))
		return true;
	if (!tn__network_count(fd, &now))
		return size > TN_NETWORK_ALLOWANCE;
	if (fd < TN_DESCRIPTORS)
		first = before[fd];
	if (now.sent < first.sent || now.received < first.received)
		first = (struct tn_network_count){ 0, 0 }; /* of another connection */
	return tn__network_is_too_much(&first, &now, size);
}

static bool
refuse(int fd, bool connection, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_storage peer;
	if (address == NULL && name_of(SYS_getpeername, fd, &peer, &length))
		address = (void *)&peer;
	if (connection) {
		tn__network_refused_send(network, address, length);
		(void)TN_CALL(SYS_shutdown, fd, SHUT_RDWR);
	}
	errno = connection ? ECONNRESET : ENETUNREACH;
	return true;
}

static bool
stops_datagram(int fd, bool server, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_storage peer;
	if (address == NULL && !name_of(SYS_getpeername, fd, &peer, &length))
		return false; /* libc's own error */
	if (address == NULL)
		address = (void *)&peer;
	return tn__network_datagram(network, address, length, server) == TN_NETWORK_REFUSED &&
	       refuse(fd, false, address, length);
}

bool
tn__network_holds_back(int fd, const void *bytes, size_t size, const struct sockaddr *address, socklen_t length)
{
	if (tn__network() == NULL || !tn__network_is_closed())
		return false;
	switch (kind_of(fd)) {
	case TN__SOCKET_FREE:
	case TN__SOCKET_UNKNOWN:
		return false;
	case TN__SOCKET_DATAGRAM:
	case TN__SOCKET_SERVER:
		if (look_at(fd) != TN__SOCKET_DATAGRAM)
			break;
		return stops_datagram(fd, kind_of(fd) == TN__SOCKET_SERVER, address, length);
	case TN__SOCKET_BOUNDED:
		if (!exceeds(fd, bytes, size))
			return false;
		if (look_at(fd) != TN__SOCKET_BOUNDED)
			break;
		return refuse(fd, true, NULL, 0);
	}
	(void)tn__network_made(fd);
	return false;
}
