/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: net RUN_FOLDER PROGRAM ... starts the program below the kernel's sandbox, as the supervisor does.
 */
#include <stdio.h>
#include <unistd.h>

#include "preload/sandbox.h"

int
main(int count, char **arguments)
{
	if (count < 3)
		return 2;
	if (tn__sandbox_apply(arguments[1]) != TN_OK) {
		fprintf(stderr, "%s\n", tn_error_text());
		return 125;
	}
	execvp(arguments[2], arguments + 2);
	perror(arguments[2]);
	return 127;
}
