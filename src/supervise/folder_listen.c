/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets in the run's folder, at which processes of the run speak to the supervisor's helpers.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "supervise/folder.h"

/* Through the folder's descriptor: its name may be longer than an address of a socket. */
int
tn__folder_listen(const struct tn_folder *folder, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int at = open(folder->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int listening = at < 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", at, name);
	if (listening >= 0 &&
	    (bind(listening, (const struct sockaddr *)&address, sizeof(address)) != 0 || listen(listening, 64) != 0)) {
		close(listening);
		listening = -1;
	}
	if (at >= 0)
		close(at);
	return listening;
}
