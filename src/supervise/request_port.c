/* SPDX-License-Identifier: Apache-2.0
 *
 * Where processes of a run listen: the kernel's tables of TCP sockets say which listen, and the descriptors of a process which are its own.
 * Nothing is sent to find out: what listens may be no HTTP server.
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervise/request_run.h"

#define MOST_SOCKETS 256
#define LISTENS 0x0a

struct listener {
	uint64_t inode;
	struct tn_listening where;
};

/* Listening sockets of the machine that can be reached by loopback. */
static size_t
read_table(const char *path, bool ipv6, struct listener *out, size_t count)
{
	char line[512], address[64];
	FILE *file = fopen(path, "re");
	while (file != NULL && count < MOST_SOCKETS && fgets(line, sizeof(line), file) != NULL) {
		unsigned port, state;
		uint64_t inode;
		if (sscanf(line, " %*d: %63[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*d %" SCNu64, address,
		           &port, &state, &inode) != 4 ||
		    state != LISTENS)
			continue;
		bool any = strspn(address, "0") == strlen(address);
		bool loopback = ipv6 ? strcmp(address, "00000000000000000000000001000000") == 0 ||
		                           strncmp(address, "0000000000000000FFFF0000", 24) == 0
		                     : strcmp(address + 6, "7F") == 0;
		if (any || loopback)
			out[count++] = (struct listener){ inode, { (int)port, ipv6 } };
	}
	if (file != NULL)
		fclose(file);
	return count;
}

static void
add_port(const struct tn_listening *where, struct tn_listening *out, size_t *count, size_t room)
{
	for (size_t i = 0; i < *count; i++)
		if (out[i].port == where->port) {
			out[i].ipv6 &= where->ipv6;
			return;
		}
	if (*count < room)
		out[(*count)++] = *where;
}

/* The listeners among the descriptors of a process. */
static void
look_at_process(pid_t pid, const struct listener *listeners, size_t known, struct tn_listening *out, size_t *count,
                size_t room)
{
	char path[64], target[64];
	const struct dirent *item;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	while (folder != NULL && (item = readdir(folder)) != NULL) {
		uint64_t inode;
		ssize_t length = isdigit((unsigned char)item->d_name[0])
		                     ? readlinkat(dirfd(folder), item->d_name, target, sizeof(target) - 1)
		                     : -1;
		if (length <= 0)
			continue;
		target[length] = '\0';
		if (sscanf(target, "socket:[%" SCNu64 "]", &inode) != 1)
			continue;
		for (size_t i = 0; i < known; i++)
			if (listeners[i].inode == inode)
				add_port(&listeners[i].where, out, count, room);
	}
	if (folder != NULL)
		closedir(folder);
}

size_t
tn__listening_ports(const struct tn_process_tree *tree, struct tn_listening *out, size_t room)
{
	struct listener listeners[MOST_SOCKETS];
	struct tn_process_list list = { 0 };
	size_t count = 0, known = read_table("/proc/net/tcp", false, listeners, 0);
	known = read_table("/proc/net/tcp6", true, listeners, known);
	if (known == 0)
		return 0;
	tn__process_descendants(tree, &list);
	for (size_t i = 0; i < list.count; i++)
		if (list.pids[i] != getpid())
			look_at_process(list.pids[i], listeners, known, out, &count, room);
	tn__process_list_free(&list);
	return count;
}

static const struct tn_listening *
with_port(const struct tn_listening *ports, size_t count, long port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i].port == port)
			return &ports[i];
	return NULL;
}

/* The number that a word of a command line ends with: "8000", "--port=8000", "127.0.0.1:8000". */
static long
number_at_end(const char *word)
{
	size_t length = strlen(word), digits = 0;
	while (digits < length && isdigit((unsigned char)word[length - 1 - digits]))
		digits++;
	bool alone = digits == length || (digits < length && strchr("=:", word[length - 1 - digits]) != NULL);
	return digits > 0 && digits < 6 && alone ? strtol(word + length - digits, NULL, 10) : 0;
}

const struct tn_listening *
tn__listening_alone(const struct tn_listening *ports, size_t count)
{
	const struct tn_listening *found = NULL;
	int lowest = 32768;
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	if (file != NULL) {
		(void)!fscanf(file, "%d", &lowest);
		fclose(file);
	}
	for (size_t i = 0; i < count; i++) {
		if (ports[i].port >= lowest)
			continue;
		if (found != NULL)
			return NULL;
		found = &ports[i];
	}
	return found;
}

const struct tn_listening *
tn__listening_choose(const struct tn_listening *ports, size_t count, char *const *arguments)
{
	static const int usual[] = { 8000, 7860, 5000, 8080, 8888, 3000, 30000 };
	const struct tn_listening *found = NULL;
	for (int i = 0; found == NULL && arguments[i] != NULL; i++)
		found = with_port(ports, count, number_at_end(arguments[i]));
	for (size_t i = 0; found == NULL && i < sizeof(usual) / sizeof(usual[0]); i++)
		found = with_port(ports, count, usual[i]);
	return found;
}
