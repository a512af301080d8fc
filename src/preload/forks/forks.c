/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process that a fork server has made asks of the kernel itself, by direct system calls: a library of its own, since
 * what is preloaded depends on nothing but libc. Called by the guest (forks.py).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/forks/forks.h"
#include "preload/sandbox.h"
#include "preload/raw.h"

#define TN_ENTRY __attribute__((visibility("default")))

TN_ENTRY int
tn_forks_execute(const char *path, char *const arguments[], char *const environment[])
{
	return (int)syscall(SYS_execve, path, arguments, environment);
}

TN_ENTRY int
tn_forks_die_with(int parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return errno;
	return getppid() == parent ? 0 : ESRCH;
}

static void
end(int status, void *unused)
{
	(void)unused;
	(void)fflush(NULL);
	_exit(status);
}

TN_ENTRY int
tn_forks_end_early(void)
{
	return on_exit(end, NULL) == 0 ? 0 : -1;
}

TN_ENTRY int
tn_forks_sandbox(const char *run_folder)
{
	tn_status status = tn__sandbox_apply(run_folder);
	(void)tn__raw_install(run_folder, (struct tn__raw_walls){ .files = true, .landlock = status == TN_OK }, NULL);
	return status == TN_OK || status == TN_UNSUPPORTED ? 0 : -1;
}
