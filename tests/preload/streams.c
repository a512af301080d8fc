/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: what fopen makes of each mode, for a file that is there, one that is not, and a folder: the error, or where
 * the stream stands, the descriptor's flags, and the file's bytes and mode after some were written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
show(const char *name, const char *mode)
{
	char bytes[64] = "";
	struct stat about;
	errno = 0;
	FILE *file = fopen(name, mode);

	printf("%s %s: ", name, mode);
	if (!file) {
		printf("%s\n", strerror(errno));
		return;
	}
	int flags = fcntl(fileno(file), F_GETFL), on_exec = fcntl(fileno(file), F_GETFD);
	printf("at %ld, flags %o, on exec %d, ", ftell(file), flags & (O_ACCMODE | O_APPEND), on_exec & FD_CLOEXEC);
	printf("%s, ", fputs("new", file) >= 0 && fflush(file) == 0 ? "wrote" : strerror(errno));
	printf("then at %ld, ", ftell(file));
	printf("close %d, ", fclose(file));
	file = fopen(name, "r");
	if (file && fgets(bytes, sizeof(bytes), file))
		bytes[strcspn(bytes, "\n")] = '/';
	printf("%s %o\n", bytes, stat(name, &about) ? 0 : about.st_mode);
	if (file)
		fclose(file);
}

int
main(void)
{
	static const char *const modes[] = { "w",   "wb", "w+",  "a",   "a+", "ab+",         "r+", "rb+", "we", "ae",
		                                 "r+e", "wx", "w+x", "wxe", "rw", "w,ccs=UTF-8", "wc", "r",   "z",  "" };
	umask(027);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		FILE *file = fopen("there", "w");
		if (!file || fputs("content\n", file) < 0 || fclose(file))
			return 1;
		unlink("absent");
		show("there", modes[i]);
		show("absent", modes[i]);
		show("folder", modes[i]);
		show("nowhere/file", modes[i]);
	}
	return 0;
}
