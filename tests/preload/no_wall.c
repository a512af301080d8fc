/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: no_wall landlock|seccomp|both PROGRAM ... starts a program where these answer as in a kernel without them,
 * or in a container that forbids them.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int
main(int count, char **arguments)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 317, 3, 0), /* seccomp */
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 444, 0, 4), /* the three of Landlock */
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 446, 3, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	if (count < 3)
		return 2;
	if (!strcmp(arguments[1], "landlock"))
		code[1].jt = 5;
	if (!strcmp(arguments[1], "seccomp"))
		code[2].jt = code[2].jf = 3;
	prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL);
	if (prctl(PR_SET_SECCOMP, (unsigned long)SECCOMP_MODE_FILTER, &filter))
		return 125;
	execvp(arguments[2], arguments + 2);
	return 127;
}
