/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests, built statically: told open|openat|openat2 FLAGS FILE opens the file by a direct system call (flags in octal)
 * and says "open", or why not. Exits 0 when it is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int
main(int count, char **arguments)
{
	if (count != 4)
		return 2;
	unsigned long how[3] = { strtoul(arguments[2], NULL, 8), 0, 0 };
	unsigned long mode = how[0] & O_CREAT ? 0644 : 0;
	const char *call = arguments[1], *path = arguments[3];
	long result;

	how[1] = mode;
	if (!strcmp(call, "open"))
		result = syscall(SYS_open, path, how[0], mode);
	else if (!strcmp(call, "openat"))
		result = syscall(SYS_openat, (long)AT_FDCWD, path, how[0], mode);
	else
		result = syscall(SYS_openat2, (long)AT_FDCWD, path, how, sizeof(how));
	puts(result < 0 ? strerror(errno) : "open");
	return result < 0;
}
