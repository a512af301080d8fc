/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that engines start: a driver, sbatch, squeue.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "trials/trial_engine.h"

#define MOST_SAID (1 << 20)

/* In the child: a Ctrl-C is the command's to act on; it ends with the command. */
_Noreturn static void
become(const struct tn_engine *engine, const char *const *words, int in, int out, int errors)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	sigprocmask(SIG_SETMASK, &engine->mask, NULL);
	execvp(words[0], (char *const *)words);
	_exit(127);
}

pid_t
tn__engine_spawn(const struct tn_engine *engine, const char *const *words, const char *log, int *to, int *from)
{
	char path[PATH_MAX];
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };
	if ((to != NULL && pipe2(in, O_CLOEXEC) != 0) || (from != NULL && pipe2(out, O_CLOEXEC) != 0))
		return -1;
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), said = -1;
	if (snprintf(path, sizeof(path), "%s/log/%s", engine->store->folder, log) < PATH_MAX)
		said = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	pid_t pid = fork();
	if (pid == 0)
		become(engine, words, to != NULL ? in[0] : nothing,
		       from != NULL ? out[1]
		       : said >= 0  ? said
		                    : nothing,
		       said >= 0 ? said : nothing);
	close(nothing);
	if (said >= 0)
		close(said);
	if (to != NULL) {
		close(in[0]);
		*to = in[1];
	}
	if (from != NULL) {
		close(out[1]);
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		*from = out[0];
	}
	return pid;
}

int
tn__engine_run(const struct tn_engine *engine, const char *const *words, const char *input, bool errors, char **said)
{
	int in = memfd_create("tonnage-input", MFD_CLOEXEC), out = memfd_create("tonnage-said", MFD_CLOEXEC);
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC), status = -1;
	size_t length = input != NULL ? strlen(input) : 0;
	bool good = in >= 0 && out >= 0 && nothing >= 0 && write(in, input, length) == (ssize_t)length &&
	            lseek(in, 0, SEEK_SET) == 0;
	pid_t pid = good ? fork() : -1;
	*said = NULL;
	if (pid == 0)
		become(engine, words, in, out, errors ? out : nothing);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && (*said = calloc(1, MOST_SAID + 1)) != NULL && pread(out, *said, MOST_SAID, 0) < 0)
		(*said)[0] = '\0';
	close(in);
	close(out);
	close(nothing);
	if (pid <= 0 || *said == NULL)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
