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
#include "base/plain.h"
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

/* An update that was cut short, or a second installation in front of the first, leaves parts that do not speak to each other. */
static tn_status
check_version(const char *guest)
{
	char path[PATH_MAX], version[32] = "";
	FILE *file = join(path, guest, "version") ? fopen(path, "re") : NULL;
	TN_RETURN_IF(file == NULL, TN_NOT_FOUND, "the installation is incomplete: %s/version is missing", guest);
	if (fgets(version, sizeof(version), file) != NULL)
		version[strcspn(version, "\n")] = '\0';
	fclose(file);
	tn__make_plain(version, '?');
	TN_RETURN_IF(strcmp(version, TONNAGE_VERSION) != 0, TN_STATE,
	             "this is tonnage " TONNAGE_VERSION
	             ", but its Python parts in %s are of version %s: install it anew, once "
	             "(pip install --force-reinstall tonnage)",
	             guest, version);
	return TN_OK;
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
	TN_FORWARD_IF_ERROR(check_version(found.guest));
	*out = found;
	return TN_OK;
}
