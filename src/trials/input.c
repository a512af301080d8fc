/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command's standard input holds, for every trial to read from its beginning. Nothing of it is taken: a shell's loop that reads
 * the same file or pipe goes on where it was.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trials/trial.h"

#define MOST_PIPED (1 << 20)    /* bytes that a pipe is asked to hold */
#define FIRST_MILLISECONDS 100  /* to wait for whoever writes into a pipe to have written all */
#define ENOUGH_MILLISECONDS 900 /* more, where there is something */

/* True where nobody writes into a pipe any more, so that it holds all that will ever come. */
static bool
is_complete(int milliseconds)
{
	struct pollfd input = { .fd = STDIN_FILENO };
	return poll(&input, 1, milliseconds) > 0 && (input.revents & POLLHUP) != 0;
}

static bool
is_there(void)
{
	int bytes = 0;
	return ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* All that a pipe holds, doubled into a file of memory. */
static int
copy_of_pipe(void)
{
	char text[4096];
	ssize_t length, given;
	int ends[2], copy;
	(void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, MOST_PIPED);
	if ((!is_complete(FIRST_MILLISECONDS) && !(is_there() && is_complete(ENOUGH_MILLISECONDS))) || !is_there())
		return 0;
	if ((copy = memfd_create("tonnage-input", MFD_CLOEXEC)) < 0)
		return 0;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		close(copy);
		return 0;
	}
	(void)fcntl(ends[1], F_SETPIPE_SZ, fcntl(STDIN_FILENO, F_GETPIPE_SZ));
	off_t at = 0;
	given = tee(STDIN_FILENO, ends[1], MOST_PIPED, SPLICE_F_NONBLOCK);
	close(ends[1]);
	while (at < given && (length = read(ends[0], text, sizeof(text))) > 0 &&
	       pwrite(copy, text, (size_t)length, at) == length)
		at += length;
	close(ends[0]);
	if (at > 0 && at == given)
		return copy;
	close(copy);
	return 0;
}

int
tn__input_keep(void)
{
	struct stat about;
	if (fstat(STDIN_FILENO, &about) != 0)
		return 0;
	int kept = S_ISREG(about.st_mode)    ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
	           : S_ISFIFO(about.st_mode) ? copy_of_pipe()
	                                     : 0;
	return kept > STDERR_FILENO ? kept : 0;
}

int
tn__input_open(int kept)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", kept);
	int input = kept > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (input >= 0)
		lseek(input, lseek(kept, 0, SEEK_CUR), SEEK_SET);
	return input;
}
