/* SPDX-License-Identifier: Apache-2.0
 *
 * Children that a process of the run has waited for: how each ended goes to <run>/ended, in the order in which it was learned. Only
 * the parent is ever told by the kernel, and the parent of a rank is its launcher.
 *
 * Invariants: nothing of what the caller asked for is changed, errno included; one write of one record, which no other comes
 * between; safe in signal handlers, as the calls themselves are.
 */
#include "preload/overlay.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define RUN "TONNAGE_RUN="

static const char *
run_folder(void)
{
	for (int i = 0; i < tn__overlay_library.environment_count; i++)
		if (!strncmp(tn__overlay_library.environment[i], RUN, strlen(RUN)))
			return tn__overlay_library.environment[i] + strlen(RUN);
	return NULL;
}

static void
note(pid_t pid, int status)
{
	const int32_t record[2] = { (int32_t)pid, (int32_t)status };
	const char *run = run_folder();
	char name[PATH_MAX];
	size_t length = run ? strlen(run) : 0;

	if (!length || length + sizeof("/ended") > sizeof(name))
		return;
	memcpy(name, run, length);
	memcpy(name + length, "/ended", sizeof("/ended"));
	long fd = TN_PASS_CALL(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600,
	                       0L);
	if (fd < 0)
		return;
	(void)TN_CALL(SYS_write, fd, record, sizeof(record));
	(void)TN_CALL(SYS_close, fd);
}

static pid_t
waited(pid_t pid, int status)
{
	if (pid > 0 && (WIFEXITED(status) || WIFSIGNALED(status)))
		note(pid, status);
	return pid;
}

/* The caller may not want to know the status; we do. */
#define WAIT(call, ...)                                \
	do {                                               \
		int own = 0, *to = status ? status : &own;     \
		pid_t found = TN_NEXT(call)(__VA_ARGS__);      \
		return found > 0 ? waited(found, *to) : found; \
	} while (0)

TN_ENTRY pid_t
wait(int *status)
{
	WAIT(wait, to);
}

TN_ENTRY pid_t
waitpid(pid_t pid, int *status, int options)
{
	WAIT(waitpid, pid, to, options);
}

TN_ENTRY pid_t
wait3(int *status, int options, struct rusage *usage)
{
	WAIT(wait3, to, options, usage);
}

TN_ENTRY pid_t
wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	WAIT(wait4, pid, to, options, usage);
}

TN_ENTRY int
waitid(idtype_t type, id_t id, siginfo_t *about, int options)
{
	siginfo_t own = { .si_pid = 0 }, *to = about ? about : &own;
	int result = TN_NEXT(waitid)(type, id, to, options);
	bool gone = result == 0 && to->si_pid > 0 && !(options & WNOWAIT);

	if (gone && to->si_code == CLD_EXITED)
		note(to->si_pid, W_EXITCODE(to->si_status, 0));
	else if (gone && (to->si_code == CLD_KILLED || to->si_code == CLD_DUMPED))
		note(to->si_pid, to->si_status);
	return result;
}
