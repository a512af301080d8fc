/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets with names in the file system.
 *
 * A socket that the program binds is a file that it makes: it lies in the upper; connecting finds it there, or the
 * real one. A name in the upper is longer than the program's and may not fit into an address: then it is reached
 * through a descriptor of its folder.
 */
#include "preload/overlay.h"

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
	const struct sockaddr_un *named = (const void *)address;
	size_t size = length - offsetof(struct sockaddr_un, sun_path);

	if (!address || length <= offsetof(struct sockaddr_un, sun_path) || address->sa_family != AF_UNIX)
		return false;
	if (!named->sun_path[0])
		return false;
	if (size > sizeof(named->sun_path))
		size = sizeof(named->sun_path);
	memcpy(path, named->sun_path, size);
	path[size] = 0;
	return true;
}

static long
call_with(long number, int socket, const char *name)
{
	struct sockaddr_un address;
	int folder;
	long result = make_address(name, &address, &folder);

	if (result == 0)
		result = TN_CALL(number, socket, &address, sizeof(address));
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

TN_ENTRY int
bind(int socket, const struct sockaddr *address, socklen_t length)
{
	char path[sizeof(struct sockaddr_un) + 1];

	if (!path_of(address, length, path) || tn__mode() == TN__OFF)
		return TN_NEXT(bind)(socket, address, length);
	return bind_name(socket, path, address, length);
}

static TN_SLOW int
connect_name(int socket, const char *path, const struct sockaddr *address, socklen_t length)
{
	struct tn__target target;

	tn__map_read(AT_FDCWD, path, TN__FOLLOW, &target);
	if (target.path == path)
		return TN_NEXT(connect)(socket, address, length);
	return tn__result(call_with(SYS_connect, socket, target.path));
}

TN_ENTRY int
connect(int socket, const struct sockaddr *address, socklen_t length)
{
	char path[sizeof(struct sockaddr_un) + 1];

	if (tn__quiet() || !path_of(address, length, path))
		return TN_NEXT(connect)(socket, address, length);
	return connect_name(socket, path, address, length);
}
