/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: binds a socket by name, connects to it, and unlinks it.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int
main(int count, char **arguments)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	struct stat st;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", arguments[count - 1]);
	assert(!bind(server, (struct sockaddr *)&address, sizeof(address)) && !listen(server, 1));
	assert(!stat(address.sun_path, &st) && S_ISSOCK(st.st_mode));
	assert(!connect(client, (struct sockaddr *)&address, sizeof(address)));
	assert(!unlink(address.sun_path) && stat(address.sun_path, &st));
	return 0;
}
