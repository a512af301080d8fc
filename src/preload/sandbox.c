/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's net below the write overlay: a Landlock ruleset (Linux manual, landlock(7)) that any process may put on
 * itself.
 *
 * Invariant: only rights that change the file system are handled, each one that the running kernel knows; whatever is
 * not handled stays allowed. Must not know the overlay.
 */
#include "preload/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

#ifndef LANDLOCK_ACCESS_FS_REFER /* headers older than Linux 5.19 */
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE /* headers older than Linux 6.2 */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Without the right to move between folders (version 1 has no such right and forbids it), the overlay could not work. */
#define OLDEST_VERSION 2

static uint64_t
changing_rights(long version)
{
	uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
	                  LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
	                  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_MAKE_FIFO |
	                  LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
	return rights;
}

#define OF_A_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

/* Allows what may be allowed of `rights` for the file, or below the folder, that a descriptor is of. */
static int
allow(int ruleset, int fd, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat about;

	if (fstat(fd, &about) != 0)
		return -1;
	rule.allowed_access = S_ISDIR(about.st_mode) ? rights : rights & OF_A_FILE;
	return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/* The same for a name; one that is not there needs no allowance. */
static int
allow_below(int ruleset, int folder, const char *name, uint64_t rights)
{
	int result, saved, fd = openat(folder, name, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	result = allow(ruleset, fd, rights);
	saved = errno;
	close(fd);
	errno = saved;
	return result;
}

/* Folders of /dev that hold files, other people's among them, or disks. */
static bool
is_no_device(const char *name)
{
	static const char *const names[] = { ".", "..", "shm", "hugepages", "mapper", "disk", "block" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Each device but disks. A rule for the folder itself would allow /dev/shm, too: rules only ever add. */
static int
allow_devices(int ruleset, uint64_t rights)
{
	DIR *listing = opendir("/dev");
	const struct dirent *item;
	int result = 0;

	while (listing && result == 0 && (item = readdir(listing))) {
		struct stat about;
		if (is_no_device(item->d_name) || fstatat(dirfd(listing), item->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !(S_ISCHR(about.st_mode) || S_ISDIR(about.st_mode) || S_ISFIFO(about.st_mode)))
			continue;
		result = allow_below(ruleset, dirfd(listing), item->d_name, rights);
		if (result && errno != ENOMEM) /* a node that no rule can name (another kind of file system) stays shut */
			result = 0;
	}
	if (listing)
		closedir(listing);
	return result;
}

/* Files that the program is handed open for writing may be opened again by way of /dev/stdout or /proc/self/fd. */
static int
allow_inherited(int ruleset, uint64_t rights)
{
	DIR *listing = opendir("/proc/self/fd");
	const struct dirent *item;
	int result = 0;

	while (listing && result == 0 && (item = readdir(listing))) {
		int fd = atoi(item->d_name), flags = item->d_name[0] == '.' ? -1 : fcntl(fd, F_GETFL);
		struct stat about;
		if (flags < 0 || fd == ruleset || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) ||
		    (fcntl(fd, F_GETFD) & FD_CLOEXEC) || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
			continue;
		(void)allow(ruleset, fd, rights); /* what has no name cannot be opened again, either */
	}
	if (listing)
		closedir(listing);
	return result;
}

static int
restrict_self(int ruleset, const char *run_folder, uint64_t rights)
{
	static const char *const system_folders[] = { "/proc", "/sys" };
	char shared[PATH_MAX];

	if (allow_below(ruleset, AT_FDCWD, run_folder, rights))
		return -1;
	if (snprintf(shared, sizeof(shared), "%s/shm", run_folder) < (int)sizeof(shared) &&
	    allow_below(ruleset, AT_FDCWD, shared, rights)) /* a link to the run's own part of /dev/shm */
		return -1;
	for (size_t i = 0; i < sizeof(system_folders) / sizeof(system_folders[0]); i++)
		if (allow_below(ruleset, AT_FDCWD, system_folders[i], rights))
			return -1;
	if (allow_devices(ruleset, rights) || allow_inherited(ruleset, rights))
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL))
		return -1;
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

tn_status
tn__sandbox_apply(const char *run_folder)
{
	struct landlock_ruleset_attr attributes = { 0 };
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int ruleset, result, saved;

	TN_RETURN_IF(version < OLDEST_VERSION, TN_UNSUPPORTED, "this kernel has no Landlock, or one that is too old");
	attributes.handled_access_fs = changing_rights(version);
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes.handled_access_fs), 0);
	TN_RETURN_IF(ruleset < 0, TN_UNSUPPORTED, "Landlock: %s", strerror(errno));
	result = restrict_self(ruleset, run_folder, attributes.handled_access_fs);
	saved = errno;
	close(ruleset);
	TN_RETURN_IF(result, TN_IO, "Landlock: %s", strerror(saved));
	return TN_OK;
}
