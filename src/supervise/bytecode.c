/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte code of our own Python files. Python keeps it beside them, in __pycache__, when it first imports them; a program of a run
 * cannot, since what it writes stays in the run. So each of its processes would compile some 80 files, a tenth of a second, in
 * every run. pip compiles what it installs; a checkout, and what uv installs, is compiled here: by the program's own Python,
 * outside the run, beside the first run with it.
 *
 * That it was done with a Python is said by an empty file of the time when it began, __pycache__/<device>-<inode>.compiled: the
 * environments that share an interpreter share it. Nothing fails where it cannot be done: the folder may be somebody else's.
 * What a package manager looks after is left as it is, so that it finds nothing that it does not know when it removes us.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervise/internal.h"

/* ---- which Python ---- */

static bool
is_python(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strncmp(slash != NULL ? slash + 1 : path, "python", 6) == 0;
}

/* The Python that the program is or, as torchrun, names in its first line. */
static bool
find_python(const char *program, char python[PATH_MAX])
{
	char line[PATH_MAX] = "";
	if (is_python(program))
		return snprintf(python, PATH_MAX, "%s", program) < PATH_MAX;
	FILE *file = fopen(program, "re");
	bool named = file != NULL && fgets(line, sizeof(line), file) != NULL && strncmp(line, "#!/", 3) == 0;
	if (file != NULL)
		fclose(file);
	line[strcspn(line, " \t\r\n")] = '\0'; /* its options are nothing to us */
	return named && is_python(line + 2) && snprintf(python, PATH_MAX, "%s", line + 2) < PATH_MAX;
}

/* ---- what is to be done ---- */

static bool
is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Whether a Python file of the folder was changed after `then`. */
static bool
has_changed(const char *folder, const struct timespec *then)
{
	struct stat status;
	const struct dirent *entry;
	bool changed = false;
	DIR *listing = opendir(folder);
	while (listing != NULL && !changed && (entry = readdir(listing)) != NULL) {
		size_t length = strlen(entry->d_name);
		changed = length > 3 && strcmp(entry->d_name + length - 3, ".py") == 0 &&
		          fstatat(dirfd(listing), entry->d_name, &status, 0) == 0 && is_newer(&status.st_mtim, then);
	}
	if (listing != NULL)
		closedir(listing);
	return changed;
}

/* A package of the system, or what pip has installed and compiled. */
static bool
is_looked_after(const char *package, const char *cache)
{
	return (strncmp(package, "/usr/", 5) == 0 && strncmp(package, "/usr/local/", 11) != 0) ||
	       (strstr(package, "/site-packages/") != NULL && access(cache, F_OK) == 0);
}

/* Whether our files are to be compiled with this Python, and can be; the name of the file that says since when they are. */
static bool
is_wanted(const char *python, const char *package, const char *changes, char mark[PATH_MAX])
{
	char folder[PATH_MAX];
	struct stat status, binary;
	if (access(package, W_OK) != 0 || stat(python, &binary) != 0 ||
	    snprintf(folder, sizeof(folder), "%s/__pycache__", package) >= PATH_MAX ||
	    snprintf(mark, PATH_MAX, "%s/%llx-%llx.compiled", folder, (unsigned long long)binary.st_dev,
	             (unsigned long long)binary.st_ino) >= PATH_MAX)
		return false;
	if (stat(mark, &status) != 0)
		return !is_looked_after(package, folder) && (mkdir(folder, 0777) == 0 || errno == EEXIST);
	return is_newer(&binary.st_mtim, &status.st_mtim) || has_changed(package, &status.st_mtim) ||
	       has_changed(changes, &status.st_mtim);
}

/* ---- the other process ---- */

static _Noreturn void
compile(const char *python, const char *guest, const char *changes, pid_t parent)
{
	tn__go_to_background(parent);
	execl(python, python, "-I", "-S", "-m", "compileall", "-q", guest, changes, (char *)NULL);
	_exit(TN_EXIT_NOT_FOUND);
}

void
tn__bytecode_start(struct tn_bytecode *bytecode, const char *program, const struct tn_install *install)
{
	char python[PATH_MAX], package[PATH_MAX], changes[PATH_MAX];
	bytecode->pid = 0;
	if (!find_python(program, python) ||
	    snprintf(package, sizeof(package), "%s/_tonnage_guest", install->guest) >= PATH_MAX ||
	    snprintf(changes, sizeof(changes), "%s/../changes", install->guest) >= PATH_MAX ||
	    !is_wanted(python, package, changes, bytecode->mark))
		return;
	clock_gettime(CLOCK_REALTIME, &bytecode->began);
	pid_t self = getpid(), pid = fork();
	if (pid == 0)
		compile(python, install->guest, changes, self);
	bytecode->pid = pid > 0 ? pid : 0;
}

void
tn__bytecode_finish(struct tn_bytecode *bytecode)
{
	int status = 0;
	if (bytecode->pid == 0)
		return;
	pid_t ended = waitpid(bytecode->pid, &status, WNOHANG);
	if (ended == 0) { /* a short program is not kept waiting: the next run goes on where this one was */
		kill(bytecode->pid, SIGTERM);
		while (waitpid(bytecode->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	bytecode->pid = 0;
	int mark = WIFEXITED(status) && WEXITSTATUS(status) == 0
	               ? open(bytecode->mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)
	               : -1;
	if (mark >= 0) {
		(void)futimens(mark, (struct timespec[]){ bytecode->began, bytecode->began });
		close(mark);
	}
}
