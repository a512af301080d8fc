/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the libraries and the guest hook beside the running binary: ../lib/tonnage, or $TONNAGE_LIB.
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "supervise/internal.h"

static bool
join(char out[PATH_MAX], const char *folder, const char *name)
{
	return snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* <folder of the binary>/../lib/tonnage, without links and dots. */
static bool
beside_binary(char out[PATH_MAX])
{
	char binary[PATH_MAX], joined[PATH_MAX], resolved[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", binary, sizeof(binary) - 1);
	if (length <= 0)
		return false;
	binary[length] = '\0';
	if (!join(joined, dirname(binary), "../lib/tonnage") || realpath(joined, resolved) == NULL)
		return false;
	strcpy(out, resolved);
	return true;
}

tn_status
tn__install_find(struct tn_install *out)
{
	struct tn_install found;
	char file[PATH_MAX];
	const char *named = getenv("TONNAGE_LIB");
	bool have = named != NULL && named[0] != '\0' ? realpath(named, found.libraries) != NULL
	                                              : beside_binary(found.libraries);
	TN_RETURN_IF(!have, TN_NOT_FOUND, "the installation is incomplete: its folder lib/tonnage was not found");
	TN_RETURN_IF(!join(file, found.libraries, "libtonnage-preload.so") || access(file, R_OK) != 0, TN_NOT_FOUND,
	             "the installation is incomplete: %s is missing", file);
	TN_RETURN_IF(!join(file, found.libraries, "guest") || realpath(file, found.guest) == NULL, TN_NOT_FOUND,
	             "the installation is incomplete: %s is missing", file);
	*out = found;
	return TN_OK;
}
