/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/raw_caller.h"

#include <linux/audit.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "preload/overlay.h"

static const struct {
	int number, number32;
	const char *name;
} calls[] = {
#define TN_RAW(name, number, number32, treatment) { number, number32, #name },
#include "preload/raw.def"
#undef TN_RAW
};

enum tn__raw_call
tn__raw_which(const struct seccomp_notif *call)
{
	bool narrow = call->data.arch != AUDIT_ARCH_X86_64;
	unsigned row = 0;

	while (row < TN__RAW_UNKNOWN && (narrow ? calls[row].number32 : calls[row].number) != call->data.nr)
		row++;
	return row;
}

const char *
tn__raw_name(enum tn__raw_call which)
{
	return which < TN__RAW_UNKNOWN ? calls[which].name : "?";
}

long
tn__raw_read(const struct tn__raw_caller *caller, uint64_t at, void *buffer, size_t size)
{
	return TN_CALL(SYS_pread64, caller->memory, buffer, size, at) == (long)size ? 0 : -EFAULT;
}

/* Page by page, since what follows the text may not be there. */
long
tn__raw_read_text(const struct tn__raw_caller *caller, uint64_t at, char *buffer, size_t size)
{
	size_t used = 0;

	while (used < size) {
		size_t piece = 4096 - (size_t)((at + used) & 4095);
		if (piece > size - used)
			piece = size - used;
		if (tn__raw_read(caller, at + used, buffer + used, piece))
			return -EFAULT;
		if (memchr(buffer + used, 0, piece))
			return 0;
		used += piece;
	}
	return -ENAMETOOLONG;
}

static long
link_of_caller(const struct tn__raw_caller *caller, const char *what, char *buffer)
{
	char name[64];
	long length;

	snprintf(name, sizeof(name), "/proc/%u/%s", caller->call->pid, what);
	length = TN_CALL(SYS_readlinkat, AT_FDCWD, name, buffer, PATH_MAX - 1);
	if (length >= 0)
		buffer[length] = 0;
	return length < 0 ? length : 0;
}

long
tn__raw_absolute(const struct tn__raw_caller *caller, int dirfd, const char *text, char *path)
{
	char what[32] = "cwd";
	long result;
	size_t length;

	if (!strncmp(text, "/proc/self/", 11) || !strncmp(text, "/proc/thread-self/", 18)) {
		const char *rest = strchr(text + 6, '/');
		return snprintf(path, PATH_MAX, "/proc/%u%s", caller->call->pid, rest) < PATH_MAX ? 0 : -ENAMETOOLONG;
	}
	if (text[0] == '/') {
		strcpy(path, text);
		return 0;
	}
	if (dirfd != AT_FDCWD)
		snprintf(what, sizeof(what), "fd/%d", dirfd);
	result = link_of_caller(caller, what, path);
	if (result)
		return result == -ENOENT ? -EBADF : result;
	if (path[0] != '/')
		return -ENOTDIR;
	(void)tn__strip_upper(path);
	length = strlen(path);
	if (length + strlen(text) + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	path[length] = '/';
	strcpy(path + length + 1, text);
	return 0;
}

long
tn__raw_read_path(const struct tn__raw_caller *caller, int dirfd, uint64_t at, char *path)
{
	char text[PATH_MAX];
	long result = tn__raw_read_text(caller, at, text, sizeof(text));

	if (result)
		return result;
	return text[0] ? tn__raw_absolute(caller, dirfd, text, path) : -ENOENT;
}

bool
tn__raw_has_our_root(const struct tn__raw_caller *caller)
{
	char name[64];
	struct stat theirs, ours;

	snprintf(name, sizeof(name), "/proc/%u/root/.", caller->call->pid);
	return TN_CALL(SYS_newfstatat, AT_FDCWD, name, &theirs, 0L) == 0 &&
	       TN_CALL(SYS_newfstatat, AT_FDCWD, "/", &ours, 0L) == 0 && theirs.st_dev == ours.st_dev &&
	       theirs.st_ino == ours.st_ino;
}

bool
tn__raw_still_waits(const struct tn__raw_caller *caller)
{
	uint64_t id = caller->call->id;
	return TN_CALL(SYS_ioctl, caller->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}
