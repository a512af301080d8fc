/* SPDX-License-Identifier: Apache-2.0
 *
 * The network wall inside a process: the mapped table, and what is known of each descriptor.
 */
#ifndef TN_PRELOAD_NETWORK_STATE_H
#define TN_PRELOAD_NETWORK_STATE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/network.h"

#define TN_DESCRIPTORS 65536

/* What a descriptor is, as far as sending goes. Bytes, so that a look costs one load. */
enum tn__socket_kind {
	TN__SOCKET_UNKNOWN, /* or not looked at since it was made */
	TN__SOCKET_FREE,    /* a file, a connection inside the run or one that was accepted */
	TN__SOCKET_BOUNDED, /* a connection that leads out */
	TN__SOCKET_DATAGRAM,
	TN__SOCKET_SERVER /* a datagram socket that was bound to a port by name */
};
extern _Atomic uint8_t tn__socket_kinds[TN_DESCRIPTORS];
/* Points at the run's word "a kernel was launched", or at one that stays 0. */
extern _Atomic uint32_t *tn__network_kernels;

/* The run's table; NULL: no wall. Set up at the first call. */
struct tn_network *tn__network(void);

/* A system call that the filter (raw.h) lets pass as ours, for processes whose tn__network is not NULL: as libc's function of
 * that name, with errno, and a cancellation point. */
int tn__network_call(long number, long a, long b, long c, long d);

/* This process was forked into another run: the table of the run that the environment names now. */
void tn__network_renew(void);

/* True once sends must be looked at. */
static inline int
tn__network_is_closed(void)
{
	return atomic_load_explicit(tn__network_kernels, memory_order_relaxed) != 0;
}

/* True when `size` bytes at `bytes` (NULL: not looked at) must not be sent on the descriptor, to `address` if it is not NULL;
 * then it is counted, a connection is shut down, and errno is set. Keeps errno otherwise. */
_Bool tn__network_holds_back(int fd, const void *bytes, size_t size, const struct sockaddr *address, socklen_t length);

static inline _Bool
tn__network_stops(int fd, const void *bytes, size_t size)
{
	if (!tn__network_is_closed())
		return 0;
	if (fd >= 0 && fd < TN_DESCRIPTORS &&
	    atomic_load_explicit(&tn__socket_kinds[fd], memory_order_relaxed) == TN__SOCKET_FREE)
		return 0;
	return tn__network_holds_back(fd, bytes, size, NULL, 0);
}

/* True when a socket of the file system, or an abstract one, must not be reached at this address; then it is counted. Keeps
 * errno. */
_Bool tn__network_refuses_path(const struct sockaddr *address, socklen_t length);

/* tn__network_stops for a list of buffers. */
struct iovec;
_Bool tn__network_stops_pieces(int fd, const struct iovec *pieces, size_t count);

/* A descriptor was made: what was known of its number is of another one. */
static inline int
tn__network_made(int fd)
{
	if (fd >= 0 && fd < TN_DESCRIPTORS)
		atomic_store_explicit(&tn__socket_kinds[fd], TN__SOCKET_UNKNOWN, memory_order_relaxed);
	return fd;
}

#endif
