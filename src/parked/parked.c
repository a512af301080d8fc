/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage-parked RUN RANK: what stands for a rank of a job that is not run (doc/design/0031-absent-ranks.md). Waits until the process that
 * is RANK has ended, and ends in the same way. The rank's process leaves its number in RUN/rank-RANK; how it ended stands in RUN/ended, as
 * its parent was told, or in /proc as long as its parent has not asked.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKS_AFTER 20 /* it is gone, and nobody has said how it ended */

static void
rest(void)
{
	const struct timespec while_long = { .tv_nsec = 50000000 };
	nanosleep(&while_long, NULL);
}

/* The process of the rank; 0: it has not started yet. */
static int
process_of(const char *run, const char *rank)
{
	char path[4096], text[32];
	snprintf(path, sizeof(path), "%s/rank-%s", run, rank);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;
	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	return atoi(text);
}

/* Its status as wait(2) gives it, from what its parent was told. */
static int
told(const char *run, int pid, int *status)
{
	char path[4096];
	int32_t record[2];
	int found = 0;
	snprintf(path, sizeof(path), "%s/ended", run);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	while (file >= 0 && read(file, record, sizeof(record)) == (ssize_t)sizeof(record))
		if (record[0] == pid) {
			*status = record[1];
			found = 1;
		}
	if (file >= 0)
		close(file);
	return found;
}

/* Whether it is still there, and not only waits to be asked for; then *status is what the kernel says. */
static int
lives(int pid, int *status)
{
	char path[64], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;
	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	const char *state = strrchr(text, ')'), *last = strrchr(text, ' ');
	if (state == NULL || state[1] == '\0' || last == NULL)
		return 0;
	if (state[2] != 'Z' && state[2] != 'X')
		return 1;
	*status = atoi(last + 1);
	return 0;
}

int
main(int count, char **words)
{
	int pid = 0, status = 0, looks = 0;
	if (count != 3)
		return 125;
	while (access(words[1], F_OK) == 0 && (pid = process_of(words[1], words[2])) == 0)
		rest();
	while (access(words[1], F_OK) == 0 && !told(words[1], pid, &status)) {
		if (lives(pid, &status))
			looks = 0;
		else if (looks++ == LOOKS_AFTER || status != 0)
			break;
		rest();
	}
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}
