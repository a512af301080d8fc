/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose a source file is: the user's own, of a package, of PyTorch.
 */
#include "verdict/paths.h"

#include <string.h>

bool
tn__is_users_own(const char *file)
{
	static const char *const foreign[] = { "/site-packages/", "/dist-packages/", "/lib/python", "/tonnage/guest/" };
	if (file[0] == '<')
		return false;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (strstr(file, foreign[i]) != NULL)
			return false;
	return true;
}

static const char *
relative(const struct tn_report *report, const char *file)
{
	size_t length = report->working_folder != NULL ? strlen(report->working_folder) : 0;
	if (length > 1 && strncmp(file, report->working_folder, length) == 0 && file[length] == '/')
		return file + length + 1;
	return file;
}

const char *
tn__path_in_package(const char *file)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *at = strstr(file, folders[i]);
		if (at != NULL)
			return at + strlen(folders[i]);
	}
	return NULL;
}

const char *
tn__portable_path(const struct tn_report *report, const char *file)
{
	const char *package = tn__path_in_package(file);
	return package != NULL ? package : relative(report, file);
}

bool
tn__is_outside_torch(const char *file)
{
	const char *package = tn__path_in_package(file);
	return package != NULL ? strncmp(package, "torch/", 6) != 0 : tn__is_users_own(file);
}

bool
tn__is_cell(const char *file)
{
	size_t digits = strncmp(file, "cell ", 5) == 0 ? strspn(file + 5, "0123456789") : 0;
	return digits > 0 && (file[5 + digits] == '\0' || strncmp(file + 5 + digits, " (run ", 6) == 0);
}

const char *
tn__before_line(const char *file)
{
	return tn__is_cell(file) ? ", line " : ":";
}

const char *
tn__file_name(const char *file)
{
	const char *slash = strrchr(file, '/');
	return slash != NULL ? slash + 1 : file;
}
