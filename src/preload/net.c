/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's net below the write shield: a Landlock ruleset (Linux manual, landlock(7)) that any process may put on
 * itself.
 *
 * Invariant: only rights that change the file system are handled, each one that the running kernel knows; whatever is
 * not handled stays allowed. Sockets and named pipes are not handled. Must not know the shield.
 */
#include "preload/net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

#ifndef LANDLOCK_ACCESS_FS_REFER /* headers older than Linux 5.19 */
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE /* headers older than Linux 6.2 */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Without the right to move between folders (version 1 has no such right and forbids it), the shield could not work. */
#define OLDEST_VERSION 2

static uint64_t
changing_rights(long version)
{
	uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
	                  LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
	                  LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
	return rights;
}

/* Allows `rights` below a folder; a folder that is not there needs no allowance. */
static int
allow_below(int ruleset, const char *folder, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights};
	int result, saved;

	rule.parent_fd = open(folder, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT ? 0 : -1;
	result = (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	saved = errno;
	close(rule.parent_fd);
	errno = saved;
	return result;
}

static int
restrict_self(int ruleset, const char *run_folder, uint64_t rights)
{
	static const char *const system_folders[] = {"/dev", "/proc", "/sys"};

	if (allow_below(ruleset, run_folder, rights))
		return -1;
	for (size_t i = 0; i < sizeof(system_folders) / sizeof(system_folders[0]); i++)
		if (allow_below(ruleset, system_folders[i], rights))
			return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL))
		return -1;
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

tn_status
tn__net_apply(const char *run_folder)
{
	struct landlock_ruleset_attr attributes = {0};
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
