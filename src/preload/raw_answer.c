/* SPDX-License-Identifier: Apache-2.0
 *
 * The reaper's answers to trapped calls (doc/design/0019-raw-calls.md).
 *
 * A call's text is read once from its caller's memory, and the call is then made here, never by the caller. Invariant: what
 * is changed was found by openat2 below the run folder or the run's part of /dev/shm, without links, or is the very file of
 * a descriptor that the kernel says lies there; names move by the overlay's own tn__rename, whose target is an upper file.
 * Everything else is refused. Only calls that Landlock decides (raw_counted.h) are made by the caller in the end, whatever is found:
 * they are counted.
 */
#include "preload/raw.h"

#include <errno.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <utime.h>

#include "base/error.h"
#include "preload/overlay.h"
#include "preload/raw_caller.h"
#include "preload/raw_network.h"
#include "preload/raw_counted.h"

#define LONGEST_VALUE 65536 /* of an extended attribute, the kernel's own limit */
#define MOST_NOTES 64       /* refusals that are written down one by one */

static int run_folder = -1, shared_folder = -1;
static unsigned notes;

/* ---- the file that is meant ---- */

static bool
is_below_folder(const char *path, const char *folder, size_t length)
{
	return length && !strncmp(path, folder, length) && path[length] == '/';
}

/* A descriptor (O_PATH) of a file by its real name, which lies in the run; or -EACCES. */
static long
open_own(const char *name)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		                    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

	if (is_below_folder(name, tn__overlay_library.run, tn__overlay_library.run_length))
		return TN_CALL(SYS_openat2, run_folder, name + tn__overlay_library.run_length + 1, &how, sizeof(how));
	if (is_below_folder(name, tn__overlay_library.shared, tn__overlay_library.shared_length))
		return TN_CALL(SYS_openat2, shared_folder, name + tn__overlay_library.shared_length + 1, &how, sizeof(how));
	return -EACCES;
}

/* Does the run own what the name leads to? 0, why there is nothing, or -EACCES. */
static long
find_place(const char *path, bool follow, struct tn__place *place)
{
	struct stat about;
	long result;

	tn__resolve(AT_FDCWD, path, (follow ? TN__FOLLOW : 0) | TN__WRITE, place);
	if (place->error)
		return place->error;
	result = tn__place_stat(place, &about);
	if (result)
		return result;
	if (place->pass)
		return is_below_folder(place->path, tn__overlay_library.run, tn__overlay_library.run_length) ||
		               is_below_folder(place->path, tn__overlay_library.shared, tn__overlay_library.shared_length)
		           ? 0
		           : -EACCES;
	return place->lower ? -EACCES : 0;
}

static long
open_path(const struct tn__raw_caller *caller, int dirfd, uint64_t at, bool follow, char *path)
{
	struct tn__place place;
	char name[TN__NAME];
	long result = tn__raw_read_path(caller, dirfd, at, path);

	if (result == 0)
		result = find_place(path, follow, &place);
	if (result)
		return result;
	tn__real_name(&place, name);
	return open_own(name);
}

/* The file of a caller's descriptor, when it is the run's or has no name at all. */
static long
open_descriptor(const struct tn__raw_caller *caller, int number, char *path)
{
	char name[64], ours[64];
	struct stat about;
	long length, fd;

	snprintf(name, sizeof(name), "/proc/%u/fd/%d", caller->call->pid, number);
	strcpy(path, name);
	fd = TN_CALL(SYS_openat, AT_FDCWD, name, O_PATH | O_CLOEXEC, 0L);
	if (fd < 0)
		return fd == -ENOENT ? -EBADF : fd;
	snprintf(ours, sizeof(ours), "/proc/self/fd/%ld", fd);
	length = TN_CALL(SYS_readlinkat, AT_FDCWD, ours, path, PATH_MAX - 1);
	if (length > 0)
		path[length] = 0;
	if (length > 0 && TN_CALL(SYS_fstat, fd, &about) == 0 &&
	    (about.st_nlink == 0 || path[0] != '/' ||
	     is_below_folder(path, tn__overlay_library.run, tn__overlay_library.run_length) ||
	     is_below_folder(path, tn__overlay_library.shared, tn__overlay_library.shared_length)))
		return fd;
	(void)TN_CALL(SYS_close, fd);
	return -EACCES;
}

/* ---- changing it ---- */

static long
change_mode(long fd, uint64_t mode)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/self/fd/%ld", fd);
	return TN_PASS_CALL(SYS_fchmodat, AT_FDCWD, name, mode & 07777, 0L, 0L);
}

static long
change_owner(long fd, uint64_t user, uint64_t group)
{
	return TN_PASS_CALL(SYS_fchownat, fd, "", (uid_t)user, (gid_t)group, AT_EMPTY_PATH);
}

enum clock { SECONDS, MICROSECONDS, NANOSECONDS };

static long
change_times(const struct tn__raw_caller *caller, long fd, uint64_t at, enum clock clock)
{
	struct timespec times[2] = { { 0 }, { 0 } };
	struct timeval coarse[2];
	struct utimbuf seconds;
	char name[64];
	long result = 0;

	if (at && clock == NANOSECONDS) {
		result = tn__raw_read(caller, at, times, sizeof(times));
	} else if (at && clock == MICROSECONDS) {
		result = tn__raw_read(caller, at, coarse, sizeof(coarse));
		for (int i = 0; result == 0 && i < 2; i++)
			times[i] = (struct timespec){ coarse[i].tv_sec, coarse[i].tv_usec * 1000 };
	} else if (at) {
		result = tn__raw_read(caller, at, &seconds, sizeof(seconds));
		times[0].tv_sec = seconds.actime;
		times[1].tv_sec = seconds.modtime;
	}
	if (result)
		return result;
	snprintf(name, sizeof(name), "/proc/self/fd/%ld", fd);
	return TN_PASS_CALL(SYS_utimensat, AT_FDCWD, name, at ? times : NULL, 0L, 0L);
}

/* size -1: the attribute is removed. */
static long
change_attribute(const struct tn__raw_caller *caller, long fd, uint64_t name_at, uint64_t value_at, int64_t size,
                 int flags)
{
	static char value[LONGEST_VALUE];
	char file[64], name[256];
	long result = tn__raw_read_text(caller, name_at, name, sizeof(name));

	if (result)
		return result == -ENAMETOOLONG ? -ERANGE : result;
	snprintf(file, sizeof(file), "/proc/self/fd/%ld", fd);
	if (size < 0)
		return TN_PASS_CALL(SYS_removexattr, file, name, 0L, 0L, 0L);
	if (size > LONGEST_VALUE)
		return -E2BIG;
	if (size && tn__raw_read(caller, value_at, value, (size_t)size))
		return -EFAULT;
	return TN_PASS_CALL(SYS_setxattr, file, name, value, size, flags);
}

static long
change(const struct tn__raw_caller *caller, long fd)
{
	const __u64 *a = caller->call->data.args;

	switch (caller->call->data.nr) {
	case SYS_chmod:
	case SYS_fchmod:
		return change_mode(fd, a[1]);
	case SYS_fchmodat:
	case 452: /* fchmodat2 */
		return change_mode(fd, a[2]);
	case SYS_chown:
	case SYS_fchown:
	case SYS_lchown:
		return change_owner(fd, a[1], a[2]);
	case SYS_fchownat:
		return change_owner(fd, a[2], a[3]);
	case SYS_utime:
		return change_times(caller, fd, a[1], SECONDS);
	case SYS_utimes:
		return change_times(caller, fd, a[1], MICROSECONDS);
	case SYS_futimesat:
		return change_times(caller, fd, a[2], MICROSECONDS);
	case SYS_utimensat:
		return change_times(caller, fd, a[2], NANOSECONDS);
	case SYS_setxattr:
	case SYS_lsetxattr:
	case SYS_fsetxattr:
		return change_attribute(caller, fd, a[1], a[2], (int64_t)a[3], (int)a[4]);
	default: /* the three that remove one */
		return change_attribute(caller, fd, a[1], 0, -1, 0);
	}
}

/* Which file the call is about. */
static long
open_target(const struct tn__raw_caller *caller, char *path)
{
	const struct seccomp_data *data = &caller->call->data;
	const __u64 *a = data->args;
	int dirfd = (int)a[0];

	switch (data->nr) {
	case SYS_fchmod:
	case SYS_fchown:
	case SYS_fsetxattr:
	case SYS_fremovexattr:
		return open_descriptor(caller, dirfd, path);
	case SYS_lchown:
	case SYS_lsetxattr:
	case SYS_lremovexattr:
		return open_path(caller, AT_FDCWD, a[0], false, path);
	case SYS_futimesat:
	case SYS_utimensat:
		if (!a[1])
			return open_descriptor(caller, dirfd, path);
		break;
	case SYS_fchmodat:
	case 452:
	case SYS_fchownat:
		break;
	default:
		return open_path(caller, AT_FDCWD, a[0], true, path);
	}
	int flags = data->nr == SYS_fchownat ? (int)a[4] : data->nr == SYS_utimensat || data->nr == 452 ? (int)a[3] : 0;
	char first = 1;
	if ((flags & AT_EMPTY_PATH) && dirfd != AT_FDCWD && tn__raw_read(caller, a[1], &first, 1) == 0 && !first)
		return open_descriptor(caller, dirfd, path);
	return open_path(caller, dirfd, a[1], !(flags & AT_SYMLINK_NOFOLLOW), path);
}

static long
answer_change(const struct tn__raw_caller *caller, char *path)
{
	long result, fd = open_target(caller, path);

	if (fd < 0)
		return fd;
	result = tn__raw_still_waits(caller) ? change(caller, fd) : -EINTR;
	(void)TN_CALL(SYS_close, fd);
	return result;
}

/* ---- names ---- */

/* A new node, in a folder that the run has made. */
static long
answer_node(const struct tn__raw_caller *caller, char *path)
{
	const __u64 *a = caller->call->data.args;
	bool at = caller->call->data.nr == SYS_mknodat;
	uint64_t mode = a[at ? 2 : 1];
	struct tn__place place;
	char name[TN__NAME], *last;
	long folder, result = tn__raw_read_path(caller, at ? (int)a[0] : AT_FDCWD, a[at ? 1 : 0], path);

	if (result)
		return result;
	if (!S_ISFIFO(mode) && !S_ISSOCK(mode) && !S_ISREG(mode) && (mode & S_IFMT))
		return -EPERM;
	tn__resolve(AT_FDCWD, path, TN__WRITE, &place);
	if (place.error)
		return place.error;
	if (place.pass || place.lower)
		strcpy(name, place.path);
	else
		tn__upper_name(&place, name);
	last = strrchr(name, '/');
	if (!last || last == name)
		return -EACCES;
	*last = 0;
	folder = open_own(name);
	if (folder < 0)
		return folder;
	result = tn__raw_still_waits(caller) ? TN_PASS_CALL(SYS_mknodat, folder, last + 1, mode, 0L, 0L) : -EINTR;
	(void)TN_CALL(SYS_close, folder);
	return result;
}

static long
answer_rename(const struct tn__raw_caller *caller, char *path)
{
	const __u64 *a = caller->call->data.args;
	bool at = caller->call->data.nr != SYS_rename;
	char to[PATH_MAX];
	struct tn__place place;
	long result = tn__raw_read_path(caller, at ? (int)a[0] : AT_FDCWD, a[at ? 1 : 0], path);

	if (result == 0)
		result = tn__raw_read_path(caller, at ? (int)a[2] : AT_FDCWD, a[at ? 3 : 1], to);
	if (result == 0)
		result = find_place(path, false, &place);
	if (result)
		return result;
	return tn__raw_still_waits(caller)
	           ? tn__rename(AT_FDCWD, path, AT_FDCWD, to, caller->call->data.nr == SYS_renameat2 ? (unsigned)a[4] : 0)
	           : -EINTR;
}

static long
answer_link(const struct tn__raw_caller *caller, char *path)
{
	const __u64 *a = caller->call->data.args;
	bool at = caller->call->data.nr == SYS_linkat;
	int flags = at ? (int)a[4] : 0;
	char name[64], to[PATH_MAX], first = 1;
	struct tn__target target;
	long from, result = tn__raw_read_path(caller, at ? (int)a[2] : AT_FDCWD, a[at ? 3 : 1], to);

	if (result)
		return result;
	if ((flags & AT_EMPTY_PATH) && tn__raw_read(caller, a[1], &first, 1) == 0 && !first)
		from = open_descriptor(caller, (int)a[0], path);
	else
		from = open_path(caller, at ? (int)a[0] : AT_FDCWD, a[at ? 1 : 0], flags & AT_SYMLINK_FOLLOW, path);
	if (from < 0)
		return from;
	result = tn__raw_still_waits(caller) ? tn__map_make(AT_FDCWD, to, &target) : -EINTR;
	snprintf(name, sizeof(name), "/proc/self/fd/%ld", from);
	if (result == 0)
		result = TN_PASS_CALL(SYS_linkat, AT_FDCWD, name, target.dirfd, target.path, AT_SYMLINK_FOLLOW);
	(void)TN_CALL(SYS_close, from);
	return result;
}

/* ---- what was refused ---- */

/* A line of <run>/state/refused: call, program, file. */
static void
note_refusal(const struct tn__raw_caller *caller, const char *path)
{
	char line[PATH_MAX + 128], program[64] = "?", name[64];
	int length;
	long fd, got;

	atomic_fetch_add(&tn__head->raw_refused, 1);
	if (notes++ >= MOST_NOTES)
		return;
	snprintf(name, sizeof(name), "/proc/%u/comm", caller->call->pid);
	fd = TN_CALL(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0L);
	got = fd < 0 ? -1 : TN_CALL(SYS_read, fd, program, sizeof(program) - 1);
	if (got > 0)
		program[program[got - 1] == '\n' ? got - 1 : got] = 0;
	if (fd >= 0)
		(void)TN_CALL(SYS_close, fd);
	for (char *at = program; *at; at++)
		if (*at == '\t' || *at == '\n')
			*at = ' ';
	fd = TN_CALL(SYS_openat, run_folder, "state/refused", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	length = snprintf(line, sizeof(line), "%s\t%s\t%s\n", tn__raw_name(tn__raw_which(caller->call)), program, path);
	(void)TN_CALL(SYS_write, fd, line, length);
	(void)TN_CALL(SYS_close, fd);
}

/* ---- one call ---- */

static long
decide(struct tn__raw_caller *caller)
{
	char name[64], path[PATH_MAX] = "";
	long result;

	snprintf(name, sizeof(name), "/proc/%u/mem", caller->call->pid);
	caller->memory = (int)TN_CALL(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0L);
	if (tn__raw_is_counted(caller->call)) {
		if (tn__raw_would_change(caller, path))
			note_refusal(caller, path);
		result = TN__RAW_GO_ON;
	} else if (tn__raw_is_network(caller->call)) {
		result = tn__raw_network_answer(caller);
	} else if (caller->memory < 0 || !tn__raw_has_our_root(caller)) {
		result = -EACCES;
	} else {
		switch (caller->call->data.nr) {
		case SYS_rename:
		case SYS_renameat:
		case SYS_renameat2:
			result = answer_rename(caller, path);
			break;
		case SYS_link:
		case SYS_linkat:
			result = answer_link(caller, path);
			break;
		case SYS_mknod:
		case SYS_mknodat:
			result = answer_node(caller, path);
			break;
		default:
			result = answer_change(caller, path);
		}
	}
	if (caller->memory >= 0)
		(void)TN_CALL(SYS_close, caller->memory);
	if (result == -EACCES && !tn__raw_is_network(caller->call))
		note_refusal(caller, path);
	return result;
}

bool
tn__raw_answer(int listener)
{
	static struct seccomp_notif_sizes sizes;
	static struct seccomp_notif *call;
	static struct seccomp_notif_resp *response;

	if (!call) {
		if (TN_CALL(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0L, &sizes) < 0)
			return false;
		size_t size = sizes.seccomp_notif < sizeof(*call) ? sizeof(*call) : sizes.seccomp_notif;
		call = malloc(size);
		size = sizes.seccomp_notif_resp < sizeof(*response) ? sizeof(*response) : sizes.seccomp_notif_resp;
		response = calloc(1, size);
		if (!call || !response)
			return false;
	}
	memset(call, 0, sizes.seccomp_notif < sizeof(*call) ? sizeof(*call) : sizes.seccomp_notif);
	if (TN_CALL(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, call) < 0)
		return true; /* it was killed while it waited, or a signal came */
	struct tn__raw_caller caller = { call, listener, -1 };
	long result = decide(&caller);
	bool goes_on = result == TN__RAW_GO_ON && (tn__raw_is_counted(call) || tn__raw_is_network(call));
	*response = (struct seccomp_notif_resp){ .id = call->id,
		                                     .error = result < 0 ? (int)result : 0,
		                                     .flags = goes_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0 };
	(void)TN_CALL(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, response);
	return true;
}

static tn_status
attach_files(const char *folder)
{
	TN_RETURN_IF(unsetenv("TONNAGE_WRITES") || tn__overlay_renew() || tn__mode() != TN__ACTIVE, TN_IO,
	             "the index of %s cannot be used", folder);
	run_folder = (int)TN_CALL(SYS_openat, AT_FDCWD, tn__overlay_library.run, O_PATH | O_DIRECTORY | O_CLOEXEC, 0L);
	if (tn__overlay_library.shared_length)
		shared_folder = (int)TN_CALL(SYS_openat, AT_FDCWD, tn__overlay_library.shared, O_PATH | O_DIRECTORY | O_CLOEXEC,
		                             0L);
	TN_RETURN_IF(run_folder < 0, TN_IO, "%s cannot be opened", folder);
	return TN_OK;
}

tn_status
tn__raw_attach(const char *folder, struct tn__raw_walls walls)
{
	TN_RETURN_IF(setenv("TONNAGE_RUN", folder, 1), TN_NO_MEMORY, "out of host memory");
	if (walls.files)
		TN_FORWARD_IF_ERROR(attach_files(folder));
	return walls.network ? tn__raw_network_attach(folder) : TN_OK;
}
