/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter itself: a program for the kernel's packet filter, put together from the table raw.def.
 *
 * Invariant: what is not in the table is allowed without looking at its arguments, so that the kernel does not run the
 * program for it at all (it keeps a table of such calls since Linux 5.11).
 */
#include "preload/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/index.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* headers older than Linux 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#define X32_BIT 0x40000000u

enum treatment { ASK, NAME, ABSENT, NEVER, CALL, SEND, RINGS, OPEN, OPENAT, TELL };
static const struct trapped {
	uint32_t number, number32;
	enum treatment treatment;
} trapped[] = {
#define TN_RAW(name, number, number32, treatment) { number, number32, treatment },
#include "preload/raw.def"
#undef TN_RAW
};

/* Requests of ioctl that set what chmod and its like cannot, or change names; by their whole number. */
static const uint32_t requests[] = {
	0x40086602, 0x40046602,                         /* FS_IOC_SETFLAGS, 64 and 32 bits */
	0x401c5820,                                     /* FS_IOC_FSSETXATTR */
	0x40087602, 0x40047602,                         /* FS_IOC_SETVERSION */
	0x800c6613,                                     /* FS_IOC_SET_ENCRYPTION_POLICY */
	0x40806685,                                     /* FS_IOC_ENABLE_VERITY */
	0x40047211,                                     /* FAT_IOCTL_SET_ATTRIBUTES */
	0xc0045877, 0xc0045878,                         /* FIFREEZE, FITHAW */
	0x5000940e, 0x50009401, 0x50009417, 0x50009418, /* BTRFS_IOC_SUBVOL_CREATE, SNAP_CREATE, their second versions */
	0x5000940f, 0x5000943f,                         /* BTRFS_IOC_SNAP_DESTROY, its second version */
	0x4008941a, 0xc0c89425,                         /* BTRFS_IOC_SUBVOL_SETFLAGS, SET_RECEIVED_SUBVOL */
};

/* ---- putting it together ---- */

enum label {
	NEXT,
	OLD_ABI,
	ALLOW,
	CHECK,
	CHECK_IOCTL,
	CHECK_SEND,
	CHECK_OPEN,
	CHECK_OPENAT,
	ANSWER,
	REFUSE,
	UNKNOWN,
	FORBID,
	IOCTL,
	LABELS
};

struct program {
	struct sock_filter code[512];
	enum label yes[512], no[512];
	uint16_t length, at[LABELS];
};

static void
emit(struct program *program, uint16_t code, uint32_t value, enum label yes, enum label no)
{
	program->code[program->length] = (struct sock_filter)BPF_STMT(code, value);
	program->yes[program->length] = yes;
	program->no[program->length++] = no;
}

static void
place(struct program *program, enum label label)
{
	program->at[label] = program->length;
}

static void
load(struct program *program, size_t offset)
{
	emit(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, NEXT, NEXT);
}

static void
end(struct program *program, enum label label, uint32_t action)
{
	place(program, label);
	emit(program, BPF_RET | BPF_K, action, NEXT, NEXT);
}

/* Conditional jumps reach 255 instructions, and only forward: the labels stand behind the lists, and all of it is shorter
 * than that. */
static void
resolve(struct program *program)
{
	for (uint16_t i = 0; i < program->length; i++) {
		enum label yes = program->yes[i], no = program->no[i];
		program->code[i].jt = yes == NEXT ? 0 : (uint8_t)(program->at[yes] - i - 1);
		program->code[i].jf = no == NEXT ? 0 : (uint8_t)(program->at[no] - i - 1);
	}
}

/* What the filter is to do. */
struct plan {
	uint64_t pass;
	bool asks;      /* somebody listens */
	bool files;     /* trap what changes files */
	bool names_too; /* and names, too */
	bool network;   /* trap what reaches others */
	bool tells;     /* and what Landlock refuses, so that it is counted */
};

static enum label
label_of(const struct plan *plan, enum treatment treatment)
{
	switch (treatment) {
	case ASK:
		return plan->files ? CHECK : ALLOW;
	case NAME:
		return plan->files && plan->names_too ? CHECK : ALLOW;
	case ABSENT:
		return plan->files ? UNKNOWN : ALLOW;
	case NEVER:
		return plan->files ? FORBID : ALLOW;
	case CALL:
		return plan->network ? CHECK : ALLOW;
	case SEND:
		return plan->network ? CHECK_SEND : ALLOW;
	case RINGS:
		return FORBID;
	case OPEN:
		return plan->tells ? CHECK_OPEN : ALLOW;
	case OPENAT:
		return plan->tells ? CHECK_OPENAT : ALLOW;
	case TELL:
		return plan->tells ? CHECK : ALLOW;
	}
	return ALLOW;
}

/* The same for a 32-bit program, whose registers cannot hold the pass word: of files it is refused, of the network, and of what
 * Landlock decides, the reaper looks at each call. */
static enum label
old_label_of(const struct plan *plan, enum treatment treatment)
{
	enum label label = label_of(plan, treatment);
	if (label == ALLOW || label == UNKNOWN || label == FORBID || label == CHECK_OPEN || label == CHECK_OPENAT)
		return label;
	return treatment == CALL || treatment == SEND || treatment == TELL ? ANSWER : REFUSE;
}

static void
emit_check(struct program *program, enum label label, uint64_t pass, enum label otherwise)
{
	const size_t sixth = offsetof(struct seccomp_data, args) + 5 * sizeof(uint64_t);
	place(program, label);
	load(program, sixth);
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)pass, NEXT, otherwise);
	load(program, sixth + 4);
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(pass >> 32), ALLOW, otherwise);
}

/* A send without an address goes where its socket leads already. */
static void
emit_check_send(struct program *program)
{
	const size_t fifth = offsetof(struct seccomp_data, args) + 4 * sizeof(uint64_t);
	place(program, CHECK_SEND);
	load(program, fifth);
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, NEXT, ANSWER);
	load(program, fifth + 4);
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, ALLOW, ANSWER);
}

/* An open for reading goes on. Flags stand at the same place, and have the same values, in both ABIs. */
static void
emit_check_open(struct program *program, enum label label, size_t argument)
{
	place(program, label);
	load(program, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
	emit(program, BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, CHECK, ALLOW);
}

static void
build(struct program *program, const struct plan *plan)
{
	const size_t count = sizeof(trapped) / sizeof(*trapped);
	load(program, offsetof(struct seccomp_data, arch));
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, NEXT, OLD_ABI);
	load(program, offsetof(struct seccomp_data, nr));
	emit(program, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, UNKNOWN, NEXT);
	for (size_t i = 0; i < count; i++)
		if (trapped[i].number && label_of(plan, trapped[i].treatment) != ALLOW)
			emit(program, BPF_JMP | BPF_JEQ | BPF_K, trapped[i].number, label_of(plan, trapped[i].treatment), NEXT);
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, plan->files ? SYS_ioctl : UINT32_MAX, IOCTL, ALLOW);
	place(program, IOCTL);
	load(program, offsetof(struct seccomp_data, args) + sizeof(uint64_t));
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		emit(program, BPF_JMP | BPF_JEQ | BPF_K, requests[i], CHECK_IOCTL, NEXT);
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, NEXT, NEXT);
	place(program, OLD_ABI); /* the accumulator holds the architecture */
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, NEXT, UNKNOWN);
	load(program, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++)
		if (trapped[i].number32 && old_label_of(plan, trapped[i].treatment) != ALLOW)
			emit(program, BPF_JMP | BPF_JEQ | BPF_K, trapped[i].number32, old_label_of(plan, trapped[i].treatment),
			     NEXT);
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, NEXT, NEXT);
	emit_check_open(program, CHECK_OPEN, 1);
	emit_check_open(program, CHECK_OPENAT, 2);
	emit_check(program, CHECK, plan->pass, ANSWER);
	emit_check(program, CHECK_IOCTL, plan->pass, REFUSE);
	emit_check_send(program);
	end(program, ALLOW, SECCOMP_RET_ALLOW);
	end(program, ANSWER, plan->asks ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EACCES);
	end(program, REFUSE, SECCOMP_RET_ERRNO | EACCES);
	end(program, UNKNOWN, SECCOMP_RET_ERRNO | ENOSYS);
	end(program, FORBID, SECCOMP_RET_ERRNO | EPERM);
	resolve(program);
}

/* ---- installing it ---- */

static long
install(const struct plan *plan, unsigned long flags)
{
	struct program program = { .length = 0 };
	build(&program, plan);
	struct sock_fprog filter = { program.length, program.code };
	return syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, flags, &filter);
}

uint64_t
tn__raw_pass(const char *run_folder)
{
	struct tn__index_head head = { .pass = 0 };
	char name[PATH_MAX];
	int file;

	if (snprintf(name, sizeof(name), "%s/state/index", run_folder) >= (int)sizeof(name))
		return 0;
	file = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (file < 0)
		return 0;
	if (pread(file, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		head.pass = 0;
	close(file);
	return head.pass;
}

/* The reaper must look at a caller's sockets (Linux 5.6), which is newer than letting a call go on (5.5). */
static bool
can_look_at_sockets(void)
{
	return syscall(SYS_pidfd_getfd, -1L, -1L, 0L) == -1 && errno == EBADF;
}

enum tn__raw_wall
tn__raw_install(const char *run_folder, struct tn__raw_walls walls, int *listener)
{
	const unsigned long flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW; /* no slower indirect branches for a filter's sake */
	struct plan plan = { .pass = tn__raw_pass(run_folder),
		                 .asks = true,
		                 .files = walls.files,
		                 .names_too = true,
		                 .network = walls.network && can_look_at_sockets() };
	long result = -1;

	if (listener)
		*listener = -1;
	if (!plan.pass || prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL))
		return TN__RAW_NONE;
	if (listener && (plan.files || plan.network)) {
		plan.tells = plan.files && walls.landlock;
		result = install(&plan, flags | SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
		if (result < 0 && errno == EINVAL)
			result = install(&plan, flags | SECCOMP_FILTER_FLAG_NEW_LISTENER);
		if (result >= 0) {
			*listener = (int)result;
			return plan.network || !walls.network ? TN__RAW_ASKS : TN__RAW_ASKS_OF_FILES;
		}
	}
	plan.asks = plan.network = plan.tells = false;
	plan.names_too = !walls.landlock;
	return install(&plan, flags) == 0 ? TN__RAW_REFUSES : TN__RAW_NONE;
}
