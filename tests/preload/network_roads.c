/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends something to a port of 127.0.0.1 by the road that is named: network_roads ROAD PORT.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[] = "made up made up made up made up";

static int
connected(int port, int type)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	int fd = socket(AF_INET, type, 0);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (void *)&to, sizeof(to)) != 0) {
		perror("connect");
		exit(1);
	}
	return fd;
}

static int
file_of_text(void)
{
	char name[] = "/tmp/roads-XXXXXX";
	int fd = mkstemp(name);
	unlink(name);
	if (write(fd, text, sizeof(text)) < 0)
		perror("write");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int
main(int argc, char **argv)
{
	struct iovec pieces[2] = { { text, 10 }, { text, sizeof(text) } };
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };
	struct mmsghdr messages[2] = { { .msg_hdr = message }, { .msg_hdr = message } };
	int port = argc > 2 ? atoi(argv[2]) : 0, pipe_ends[2];
	const char *road = argc > 1 ? argv[1] : "";
	long result = -1;
	if (!strcmp(road, "write"))
		result = write(connected(port, SOCK_STREAM), text, sizeof(text));
	else if (!strcmp(road, "writev"))
		result = writev(connected(port, SOCK_STREAM), pieces, 2);
	else if (!strcmp(road, "sendmsg"))
		result = sendmsg(connected(port, SOCK_STREAM), &message, 0);
	else if (!strcmp(road, "sendmmsg"))
		result = sendmmsg(connected(port, SOCK_DGRAM), messages, 2, 0);
	else if (!strcmp(road, "sendfile"))
		result = sendfile(connected(port, SOCK_STREAM), file_of_text(), NULL, sizeof(text));
	else if (!strcmp(road, "splice") && pipe(pipe_ends) == 0 && write(pipe_ends[1], text, sizeof(text)) > 0)
		result = splice(pipe_ends[0], NULL, connected(port, SOCK_STREAM), NULL, sizeof(text), 0);
	else if (!strcmp(road, "vfork") && fork() == 0)
		result = write(connected(port, SOCK_STREAM), text, sizeof(text));
	if (!strcmp(road, "vfork"))
		wait(NULL);
	if (result < 0)
		perror(road);
	return result < 0;
}
