/* SPDX-License-Identifier: Apache-2.0
 *
 * The network wall's entries: what names and listens, what sends. Connecting is entries_socket.c's, write and the like are
 * entries_write.c's.
 *
 * Until the first kernel of the run every sending call costs one load; later a table look-up more, and only for connections that
 * lead out one question to the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "preload/network_state.h"
#include "preload/overlay.h"

/* ---- descriptors that are made ---- */

TN_ENTRY int
socket(int domain, int type, int protocol)
{
	return tn__network_made(TN_NEXT(socket)(domain, type, protocol));
}

/* Who is let in by a server of the run is answered. */
static int
accepted(int fd)
{
	if (fd >= 0 && fd < TN_DESCRIPTORS)
		atomic_store_explicit(&tn__socket_kinds[fd], TN__SOCKET_FREE, memory_order_relaxed);
	return fd;
}

TN_ENTRY int
accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	return accepted(TN_NEXT(accept)(fd, address, length));
}

TN_ENTRY int
accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict length, int flags)
{
	return accepted(TN_NEXT(accept4)(fd, address, length, flags));
}

TN_ENTRY int
dup(int fd)
{
	return tn__network_made(TN_NEXT(dup)(fd));
}

TN_ENTRY int
dup2(int old, int new)
{
	return tn__network_made(TN_NEXT(dup2)(old, new));
}

TN_ENTRY int
dup3(int old, int new, int flags)
{
	return tn__network_made(TN_NEXT(dup3)(old, new, flags));
}

/* Descriptors that came as a message. */
static ssize_t
received(ssize_t result, struct msghdr *message)
{
	if (result < 0 || !message || !message->msg_control)
		return result;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS || part->cmsg_len < CMSG_LEN(sizeof(int)))
			continue;
		for (size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
			int fd;
			memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
			(void)tn__network_made(fd);
		}
	}
	return result;
}

TN_ENTRY ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
	return received(TN_NEXT(recvmsg)(fd, message, flags), message);
}

/* ---- servers and names ---- */

TN_ENTRY int
listen(int fd, int backlog)
{
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);
	int result = TN_NEXT(listen)(fd, backlog);
	struct tn_network *network = result == 0 ? tn__network() : NULL;

	if (network && TN_CALL(SYS_getsockname, fd, &name, &length) == 0)
		tn__network_listens(network, (void *)&name, length, false);
	return result;
}

static void
note_names(const char *name, const struct addrinfo *found)
{
	struct tn_network *network = tn__network();

	for (; network && name && found; found = found->ai_next)
		tn__network_named(network, name, found->ai_addr, found->ai_addrlen);
}

TN_ENTRY int
getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
            struct addrinfo **restrict found)
{
	int result = TN_NEXT(getaddrinfo)(node, service, hints, found);
	struct in6_addr numeric;

	if (result == 0 && node && *node && !strchr(node, ':') && inet_pton(AF_INET, node, &numeric) != 1)
		note_names(node, *found);
	return result;
}

static void
note_entry(const char *name, const struct hostent *entry)
{
	struct tn_network *network = tn__network();

	for (char **at = network && entry ? entry->h_addr_list : NULL; at && *at; at++) {
		struct sockaddr_in in = { .sin_family = AF_INET };
		struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
		if (entry->h_addrtype == AF_INET6) {
			memcpy(&in6.sin6_addr, *at, sizeof(in6.sin6_addr));
			tn__network_named(network, name, (void *)&in6, sizeof(in6));
		} else {
			memcpy(&in.sin_addr, *at, sizeof(in.sin_addr));
			tn__network_named(network, name, (void *)&in, sizeof(in));
		}
	}
}

TN_ENTRY struct hostent *
gethostbyname(const char *name)
{
	struct hostent *entry = TN_NEXT(gethostbyname)(name);

	note_entry(name, entry);
	return entry;
}

TN_ENTRY struct hostent *
gethostbyname2(const char *name, int family)
{
	struct hostent *entry = TN_NEXT(gethostbyname2)(name, family);

	note_entry(name, entry);
	return entry;
}

TN_ENTRY int
gethostbyname_r(const char *restrict name, struct hostent *restrict entry, char *restrict buffer, size_t size,
                struct hostent **restrict found, int *restrict error)
{
	int result = TN_NEXT(gethostbyname_r)(name, entry, buffer, size, found, error);

	if (result == 0)
		note_entry(name, *found);
	return result;
}

/* ---- what sends ---- */

static size_t
size_of(const struct iovec *pieces, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; pieces && i < count; i++)
		size += pieces[i].iov_len;
	return size;
}

bool
tn__network_stops_pieces(int fd, const struct iovec *pieces, size_t count)
{
	if (!tn__network_is_closed())
		return false;
	bool head = pieces && count > 0 && pieces[0].iov_len >= 16;
	return tn__network_stops(fd, head ? pieces[0].iov_base : NULL, size_of(pieces, count));
}

TN_ENTRY ssize_t
send(int fd, const void *bytes, size_t size, int flags)
{
	return tn__network_stops(fd, bytes, size) ? -1 : TN_NEXT(send)(fd, bytes, size, flags);
}

/* Sends to an address connect a stream socket (TCP Fast Open), too. */
static bool
stops_to(int fd, const struct sockaddr *address, socklen_t length, int flags, const void *bytes, size_t size)
{
	struct tn_network *network = tn__network();

	if (address && address->sa_family == AF_UNIX && length > sizeof(sa_family_t)) {
		if (!tn__network_refuses_path(address, length))
			return false;
		errno = EACCES;
		return true;
	}
	if (network && address && (flags & MSG_FASTOPEN)) {
		(void)tn__network_made(fd);
		if (tn__network_connect(network, address, length) != TN_NETWORK_REFUSED)
			return tn__network_is_closed() && size > TN_NETWORK_ALLOWANCE;
		errno = ENETUNREACH;
		return true;
	}
	if (!tn__network_is_closed())
		return false;
	return address ? tn__network_holds_back(fd, bytes, size, address, length) : tn__network_stops(fd, bytes, size);
}

TN_ENTRY ssize_t
sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *address, socklen_t length)
{
	if (stops_to(fd, address, length, flags, bytes, size))
		return -1;
	if (!address || !tn__network())
		return TN_NEXT(sendto)(fd, bytes, size, flags, address, length);
	/* The filter asks for each sendto with an address; sendmsg has a register left for the pass word. */
	struct iovec piece = { (void *)(uintptr_t)bytes, size };
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)address, .msg_namelen = length, .msg_iov = &piece, .msg_iovlen = 1
	};
	return tn__network_call(SYS_sendmsg, fd, (long)&message, flags, 0);
}

static bool
stops_message(int fd, const struct msghdr *message, int flags)
{
	if (!message || (!tn__network_is_closed() && !(flags & MSG_FASTOPEN) && !message->msg_name))
		return false;
	const struct iovec *first = message->msg_iovlen > 0 ? message->msg_iov : NULL;
	return stops_to(fd, message->msg_name, message->msg_namelen, flags,
	                first && first->iov_len >= 16 ? first->iov_base : NULL,
	                size_of(message->msg_iov, message->msg_iovlen));
}

TN_ENTRY ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (stops_message(fd, message, flags))
		return -1;
	return tn__network() ? tn__network_call(SYS_sendmsg, fd, (long)message, flags, 0)
	                     : TN_NEXT(sendmsg)(fd, message, flags);
}

TN_ENTRY int
sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	for (unsigned i = 0; i < count; i++)
		if (stops_message(fd, &messages[i].msg_hdr, flags))
			return -1;
	return tn__network() ? tn__network_call(SYS_sendmmsg, fd, (long)messages, count, flags)
	                     : TN_NEXT(sendmmsg)(fd, messages, count, flags);
}

TN_ENTRY ssize_t
splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t size, unsigned flags)
{
	return tn__network_stops(out, NULL, size) ? -1 : TN_NEXT(splice)(in, in_offset, out, out_offset, size, flags);
}
