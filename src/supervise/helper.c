/* SPDX-License-Identifier: Apache-2.0
 *
 * The helper with the real cuDNN (dnn/helper.h), started when a program of the run first asks for it: the socket lies in
 * the run's folder, and the first connection is what wakes us. It ends with its last connection, and is started again
 * when somebody else asks.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dnn/cache.h"
#include "dnn/helper.h"
#include "supervise/internal.h"

int
tn_cudnn_main(void)
{
	return tn__dnn_helper_main();
}

const char *
tn__helper_cache(char path[PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int length = cache != NULL && cache[0] == '/' ? snprintf(path, PATH_MAX, "%s/tonnage/cudnn", cache)
	             : home != NULL && home[0] == '/' ? snprintf(path, PATH_MAX, "%s/.cache/tonnage/cudnn", home)
	                                              : PATH_MAX;
	return length < PATH_MAX ? path : NULL;
}

void
tn__go_to_background(pid_t parent)
{
	sigset_t none;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int nothing = getppid() == parent ? open("/dev/null", O_RDWR) : -1;
	if (nothing < 0)
		_exit(TN_EXIT_OWN_FAILURE);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		dup2(nothing, i);
	setpgid(0, 0); /* a Ctrl-C is the program's */
}

static _Noreturn void
become_helper(int listening, const struct tn_install *install, pid_t parent)
{
	char self[PATH_MAX], cache[PATH_MAX], driver[PATH_MAX];
	listening = fcntl(listening, F_DUPFD, TN_DNN_HELPER_SOCKET + 1); /* not below where it goes */
	tn__go_to_background(parent);
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length <= 0)
		_exit(TN_EXIT_OWN_FAILURE);
	self[length] = '\0';
	dup2(listening, TN_DNN_HELPER_SOCKET);
	if (tn__helper_cache(cache) != NULL)
		setenv(TN_DNN_CACHE_VARIABLE, cache, 1);
	if (snprintf(driver, sizeof(driver), "%s/vgpu/libcuda.so.1", install->libraries) < PATH_MAX)
		setenv(TN_DNN_DRIVER_VARIABLE, driver, 1);
	unsetenv("LD_PRELOAD");
	unsetenv("TONNAGE_RUN"); /* its driver is in no run: nothing is accounted */
	execl(self, "tonnage", TN_DNN_HELPER_WORD, (char *)NULL);
	_exit(TN_EXIT_OWN_FAILURE);
}

pid_t
tn__helper_start(int listening, const struct tn_install *install)
{
	pid_t self = getpid(), pid = fork();
	if (pid == 0)
		become_helper(listening, install, self);
	return pid;
}
