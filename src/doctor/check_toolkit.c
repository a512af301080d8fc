/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA toolkit (nvcc): only building needs it. Which one is found follows torch.utils.cpp_extension: CUDA_HOME, CUDA_PATH, the
 * folder of the nvcc on the PATH, /usr/local/cuda.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"

#define FOLDER_ROOM 1024

/* version.json of CUDA 11.1 and newer says {"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, ...}, version.txt of older ones
 * "CUDA Version 10.2.89". */
static bool
read_version(const struct tn_machine *machine, const char *folder, char version[16])
{
	char *text = tn__read_text(machine, "%s/version.json", folder);
	const char *at = text != NULL ? strstr(text, "\"cuda\"") : NULL;
	at = at != NULL ? strstr(at, "\"version\"") : NULL;
	at = at != NULL ? strchr(at + 9, '"') : NULL;
	unsigned major, minor;
	bool good = at != NULL && sscanf(at + 1, "%3u.%3u", &major, &minor) == 2;
	free(text);
	if (!good) {
		text = tn__read_text(machine, "%s/version.txt", folder);
		good = text != NULL && sscanf(text, "CUDA Version %3u.%3u", &major, &minor) == 2;
		free(text);
	}
	if (good)
		snprintf(version, 16, "%u.%u", major, minor);
	return good;
}

/* The folder above the first bin/nvcc on the PATH. */
static bool
folder_on_path(const struct tn_machine *machine, char folder[FOLDER_ROOM])
{
	const char *path = tn__variable(machine, "PATH");
	for (size_t length; path != NULL && *path != '\0'; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (length < 5 || length >= FOLDER_ROOM - 8 || strncmp(path + length - 4, "/bin", 4) != 0)
			continue;
		snprintf(folder, FOLDER_ROOM, "%.*s", (int)length - 4, path);
		if (tn__exists(machine, "%s/bin/nvcc", folder))
			return true;
	}
	return false;
}

static bool
find_toolkit(const struct tn_machine *machine, char folder[FOLDER_ROOM], char version[16])
{
	const char *names[] = { tn__variable(machine, "CUDA_HOME"), tn__variable(machine, "CUDA_PATH") };
	for (size_t i = 0; i < 2; i++)
		if (names[i] != NULL && names[i][0] != '\0' && strlen(names[i]) < FOLDER_ROOM) {
			snprintf(folder, FOLDER_ROOM, "%s", names[i]);
			return read_version(machine, folder, version);
		}
	if (folder_on_path(machine, folder) && read_version(machine, folder, version))
		return true;
	snprintf(folder, FOLDER_ROOM, "/usr/local/cuda");
	return read_version(machine, folder, version);
}

/* CUDA of the driver, as major * 1000 + minor. */
static int
driver_number(const struct tn_diagnosis *out)
{
	return out->driver_cuda / 1000 * 1000 + out->driver_cuda % 1000 / 10;
}

static void
check_against_driver(struct tn_diagnosis *out, int toolkit)
{
	int driver = driver_number(out);
	if (driver == 0 || toolkit <= driver)
		return;
	bool major = toolkit / 1000 > driver / 1000;
	struct tn_fact *fact = tn__fact(out, TN_PART_TOOLKIT, TN_LEVEL_WARNING, "toolkit_new", -1,
	                                "The toolkit (CUDA %s) is newer than the driver (CUDA up to %d.%d)", out->toolkit,
	                                driver / 1000, driver % 1000);
	tn__fact_meaning(out, fact,
	                 major ? "What its nvcc builds does not run on this driver."
	                       : "What its nvcc builds runs, but PTX and new functions do not.");
	tn__fact_remedy(out, fact, "Install a newer driver, or build with a toolkit of CUDA %d.%d or older.", driver / 1000,
	                driver % 1000);
}

static void
check_against_torch(struct tn_diagnosis *out, int toolkit)
{
	int torch = tn__version_number(out->torch.cuda);
	if (torch == 0 || toolkit / 1000 == torch / 1000)
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_TOOLKIT, TN_LEVEL_WARNING, "toolkit_torch", -1,
	                                "The toolkit is CUDA %s, torch is built for CUDA %s", out->toolkit,
	                                out->torch.cuda);
	tn__fact_meaning(out, fact,
	                 "Building an extension stops: \"The detected CUDA version mismatches the version that was used to "
	                 "compile PyTorch\". Running torch is not touched.");
	tn__fact_remedy(out, fact, "To build extensions, install a toolkit of CUDA %d and set CUDA_HOME to it.",
	                torch / 1000);
}

/* The toolkit's stand-in of the driver's library: for linking, not for running. */
static void
check_stubs(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	const char *path = tn__variable(machine, "LD_LIBRARY_PATH");
	for (size_t length; path != NULL && *path != '\0'; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (length == 0 || length >= FOLDER_ROOM || memmem(path, length, "/stubs", 6) == NULL ||
		    !tn__exists(machine, "%.*s/libcuda.so.1", (int)length, path))
			continue;
		struct tn_fact *fact = tn__fact(out, TN_PART_TOOLKIT, TN_LEVEL_ERROR, "stubs", -1,
		                                "LD_LIBRARY_PATH has %.*s, with a libcuda.so.1 that is only for linking",
		                                (int)length, path);
		tn__fact_meaning(out, fact, "It is loaded in place of the driver's: \"CUDA driver is a stub library\".");
		tn__fact_remedy(out, fact, "Take that folder out of LD_LIBRARY_PATH.");
		return;
	}
}

void
tn__check_toolkit(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	char folder[FOLDER_ROOM];
	check_stubs(machine, out);
	if (!find_toolkit(machine, folder, out->toolkit)) {
		tn__fact(out, TN_PART_TOOLKIT, TN_LEVEL_FINE, "no_toolkit", -1,
		         "No CUDA toolkit found: only building extensions needs one");
		return;
	}
	tn__fact(out, TN_PART_TOOLKIT, TN_LEVEL_FINE, "toolkit", -1, "CUDA toolkit %s in %s", out->toolkit, folder);
	check_against_driver(out, tn__version_number(out->toolkit));
	check_against_torch(out, tn__version_number(out->toolkit));
}
