/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets with names in the file system.
 *
 * A socket that the program binds is a file that it makes: it lies in the upper; connecting finds it there, or the
 * real one. A name in the upper is longer than the program's and may not fit into an address: then it is reached
 * through a descriptor of its folder. Connecting asks the network wall first, whatever kind of address it is.
 */
#include "preload/overlay.h"

#include "preload/network_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The address for `name`; *folder is to be closed afterwards unless it is -1. */
static int
make_address(const char *name, struct sockaddr_un *address, int *folder)
{
	const char *last = strrchr(name, '/');
	char parent[TN__NAME];
	long fd;

	*folder = -1;
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (strlen(name) < sizeof(address->sun_path)) {
		strcpy(address->sun_path, name);
		return 0;
	}
	memcpy(parent, name, (size_t)(last - name));
	parent[last - name] = 0;
	fd = TN_CALL(SYS_openat, AT_FDCWD, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return (int)fd;
	*folder = (int)fd;
	if (snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%ld%s", fd, last) >=
	    (int)sizeof(address->sun_path))
		return -ENAMETOOLONG;
	return 0;
}

/* The path of an address in the file system, or false. */
static bool
path_of(const struct sockaddr *address, socklen_t length, char *path)
{
	return tn__network_path_of(address, length, path) &&
	       ((const struct sockaddr_un *)(const void *)address)->sun_path[0];
}

static long
call_with(long number, int socket, const char *name)
{
	struct sockaddr_un address;
	int folder;
	long result = make_address(name, &address, &folder);

	if (result == 0) /* the pass word lies in a register that neither call uses */
		result = TN_PASS_CALL(number, socket, &address, sizeof(address), 0L, 0L);
	if (folder >= 0)
		(void)TN_CALL(SYS_close, folder);
	return result;
}

static TN_SLOW int
bind_name(int socket, const char *path, const struct sockaddr *address, socklen_t length)
{
	struct tn__target target;
	int result = tn__map_make(AT_FDCWD, path, &target);

	if (result)
		return tn__result(result == -EEXIST ? -EADDRINUSE : result);
	if (target.path == path)
		return TN_NEXT(bind)(socket, address, length);
	return tn__result(call_with(SYS_bind, socket, target.path));
}

/* What was bound is the run's own. A datagram socket with a port of its own is a server's: it answers whom it likes. */
static int
bound(int result, int socket, const struct sockaddr *address, socklen_t length)
{
	struct tn_network *network = result == 0 ? tn__network() : NULL;
	struct sockaddr_in in;
	char path[TN_NETWORK_PATH], real[PATH_MAX];
	int type = 0;
	socklen_t size = sizeof(type);

	if (network && tn__network_path_of(address, length, path)) {
		if (path_of(address, length, path))
			tn__network_real_path(path, real);
		tn__network_binds(network, path_of(address, length, path) ? real : path);
		return result;
	}
	if (!network || !address || length < sizeof(in) ||
	    (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return result;
	memcpy(&in, address, sizeof(in)); /* the port lies at the same place in both */
	if (in.sin_port == 0 || TN_CALL(SYS_getsockopt, socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
	    type != SOCK_DGRAM)
		return result;
	tn__network_listens(network, address, length, true);
	if (socket < TN_DESCRIPTORS)
		atomic_store(&tn__socket_kinds[socket], TN__SOCKET_SERVER);
	return result;
}

TN_ENTRY int
bind(int socket, const struct sockaddr *address, socklen_t length)
{
	char path[TN_NETWORK_PATH];

	if (!path_of(address, length, path) || tn__mode() == TN__OFF)
		return bound(TN_NEXT(bind)(socket, address, length), socket, address, length);
	return bind_name(socket, path, address, length);
}

/* May the address be reached, which is one of the file system or abstract? */
static TN_SLOW bool
is_path_refused(struct tn_network *network, const struct sockaddr *address, socklen_t length)
{
	struct tn__place place = { .error = -ENOENT };
	char path[TN_NETWORK_PATH], real[PATH_MAX];
	bool own = false;

	if (!tn__network_path_of(address, length, path))
		return false;
	if (!path_of(address, length, path))
		return tn__network_path(network, path, false) == TN_NETWORK_REFUSED;
	if (tn__mode() == TN__ACTIVE) {
		tn__resolve(AT_FDCWD, path, TN__FOLLOW, &place);
		own = !place.error &&
		      (!place.lower || (!strncmp(place.path, tn__overlay_library.run, tn__overlay_library.run_length) &&
		                        place.path[tn__overlay_library.run_length] == '/'));
	}
	if (place.error)
		tn__network_real_path(path, real);
	return tn__network_path(network, place.error ? real : place.path, own) == TN_NETWORK_REFUSED;
}

bool
tn__network_refuses_path(const struct sockaddr *address, socklen_t length)
{
	struct tn_network *network = tn__network();

	return network && address && length > sizeof(sa_family_t) && address->sa_family == AF_UNIX &&
	       is_path_refused(network, address, length);
}

static bool
is_stream(int socket)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return TN_CALL(SYS_getsockopt, socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type != SOCK_DGRAM &&
	       type != SOCK_RAW;
}

/* Connecting a datagram socket sends nothing, and programs do it to learn their own address. So it is allowed, but after the
 * first kernel such a socket gets no way out of the machine: what libc's stdio sends on it passes no entry of ours. */
static bool
is_datagram_refused(struct tn_network *network, const struct sockaddr *address, socklen_t length, bool *shut_in)
{
	if (!tn_network_is_closed(network) || length < sizeof(sa_family_t) ||
	    (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return false;
	bool local = tn__network_is_local(address, length);
	*shut_in = !local && !tn__network_is_dns(address, length);
	return local && tn__network_datagram(network, address, length, false) == TN_NETWORK_REFUSED;
}

static bool
is_refused(int socket, const struct sockaddr *address, socklen_t length, bool *shut_in)
{
	struct tn_network *network = tn__network();

	(void)tn__network_made(socket);
	if (!network || !address)
		return false;
	if (length > sizeof(sa_family_t) && address->sa_family == AF_UNIX)
		return is_path_refused(network, address, length);
	if (!is_stream(socket))
		return is_datagram_refused(network, address, length, shut_in);
	return tn__network_connect(network, address, length) == TN_NETWORK_REFUSED;
}

static int
connect_plainly(int socket, const struct sockaddr *address, socklen_t length)
{
	return tn__network() ? tn__network_call(SYS_connect, socket, (long)address, length, 0)
	                     : TN_NEXT(connect)(socket, address, length);
}

static TN_SLOW int
connect_name(int socket, const char *path, const struct sockaddr *address, socklen_t length)
{
	struct tn__target target;

	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	if (target.path == path)
		return connect_plainly(socket, address, length);
	return tn__result(call_with(SYS_connect, socket, target.path));
}

TN_ENTRY int
connect(int socket, const struct sockaddr *address, socklen_t length)
{
	char path[TN_NETWORK_PATH];
	bool shut_in = false;

	if (is_refused(socket, address, length, &shut_in)) {
		errno = address->sa_family == AF_UNIX ? EACCES : ENETUNREACH;
		return -1;
	}
	if (shut_in) {
		int result = connect_plainly(socket, address, length);
		(void)TN_CALL(SYS_setsockopt, socket, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
		return result;
	}
	if (tn__quiet() || !path_of(address, length, path))
		return connect_plainly(socket, address, length);
	return connect_name(socket, path, address, length);
}
