/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: a program without a dynamic libc, which no preloaded library sees.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <errno.h>
#include <string.h>

int
main(int count, char **arguments)
{
	int fd = open(arguments[count - 1], O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, "harm\n", 5) != 5) {
		fprintf(stderr, "%s\n", strerror(errno));
		return 1;
	}
	return close(fd);
}
