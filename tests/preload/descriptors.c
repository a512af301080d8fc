/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: what can be changed through a descriptor that is open for reading only.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

int
main(int count, char **arguments)
{
	const char *path = arguments[count - 1];
	struct timespec times[2] = { { 1, 0 }, { 2, 0 } };
	struct timeval old_times[2] = { { 1, 0 }, { 3, 0 } };
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert(fd >= 0);
	assert(!fchmod(fd, 0711) && !stat(path, &st) && (st.st_mode & 07777) == 0711);
	assert(!futimens(fd, times) && !stat(path, &st) && st.st_mtime == 2);
	assert(!futimes(fd, old_times) && !stat(path, &st) && st.st_mtime == 3);
	assert(!utimensat(fd, "", times, AT_EMPTY_PATH) && !stat(path, &st) && st.st_mtime == 2);
	assert(!fchown(fd, getuid(), getgid()));
	if (fsetxattr(fd, "user.tonnage", "1", 1, 0))
		assert(errno == ENOTSUP);
	fremovexattr(fd, "user.tonnage");
	assert(ftruncate(fd, 0));
	if (S_ISREG(st.st_mode)) {
		char name[64];
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		int again = open(name, O_WRONLY | O_TRUNC);
		assert(again >= 0 && write(again, "x", 1) == 1 && !close(again));
		assert(!stat(path, &st) && st.st_size == 1);
		assert(!linkat(AT_FDCWD, name, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW) && !truncate("linked", 0));
		assert(!stat(path, &st) && st.st_size == 0);
		FILE *stream = fopen("big", "r");
		assert(stream && (stream = freopen(NULL, "r+", stream)) && fputs("REOPENED", stream) >= 0 && !fclose(stream));
	}
	return 0;
}
