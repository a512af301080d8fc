/* SPDX-License-Identifier: Apache-2.0
 *
 * Which version of cuDNN we say we are.
 *
 * PyTorch refuses a cuDNN that is older than the one it was compiled against, and decides by the version what it asks
 * for (attention of which shapes, which layouts). So we answer the version that this program would have: that of the
 * nvidia-cudnn package beside the caller's, else the one that the caller's torch package asks for in its metadata,
 * else the highest version whose API stands in our table. Nothing of NVIDIA's is loaded for it.
 * Invariant: the answer is the same for the life of the process (the first caller decides).
 */
#include "vgpu/cudnn/api.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dnn/cache.h"
#include "vgpu/cudnn/ask.h"

enum { HIGHEST_VERSION = 92600, LOWEST_VERSION = 90000, ONE_TOO_HIGH = 100000, FIRST_DEVICELESS = 90800 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int known_version;       /* under the lock; 0: not asked yet */
static char known_folder[4096]; /* where its package lies; "": nowhere */

/* "9.19.0.56" as 91900; 0 when the text is no version that we can speak for. */
static int
parse_version(const char *text)
{
	int major = 0, minor = 0, patch = 0;
	if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2 || minor < 0 || minor > 99 || patch < 0 || patch > 99)
		return 0;
	int version = major * 10000 + minor * 100 + patch;
	return version >= LOWEST_VERSION && version < ONE_TOO_HIGH ? version : 0;
}

/* Reads the line of a torch package's metadata that names the cuDNN it needs: "Requires-Dist:
 * nvidia-cudnn-cu13==9.19.0.56", with or without parentheses around the version. */
static int
version_of_metadata(const char *path)
{
	char line[512];
	int version = 0;
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return 0;
	while (version == 0 && fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "Requires-Dist: nvidia-cudnn-cu", 30) != 0)
			continue;
		const char *equals = strstr(line, "==");
		version = equals == NULL ? 0 : parse_version(equals + 2);
	}
	fclose(file);
	return version;
}

/* Looks at one entry of the folder that packages are installed in. */
static void
look_at(const char *folder, const char *name, int *installed, int *required)
{
	char path[4096 + 300];
	if (strstr(name, ".dist-info") == NULL)
		return;
	if (strncmp(name, "nvidia_cudnn_cu", 15) == 0 && strchr(name, '-') != NULL) {
		*installed = parse_version(strchr(name, '-') + 1);
	} else if (strncmp(name, "torch-", 6) == 0) {
		snprintf(path, sizeof(path), "%s/%s/METADATA", folder, name);
		*required = version_of_metadata(path);
	}
}

/* The version by the packages installed in `folder`, or 0. */
static int
version_of_folder(const char *folder)
{
	int installed = 0, required = 0;
	DIR *directory = opendir(folder);
	if (directory == NULL)
		return 0;
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
		look_at(folder, entry->d_name, &installed, &required);
	closedir(directory);
	return installed != 0 ? installed : required;
}

/* The caller is .../site-packages/torch/lib/libtorch_cuda.so, or some other extension in a package: go up three
 * times. */
static int
find_version(const void *address)
{
	char folder[4096];
	Dl_info caller;
	if (dladdr(address, &caller) == 0 || caller.dli_fname == NULL || strlen(caller.dli_fname) >= sizeof(folder))
		return HIGHEST_VERSION;
	strcpy(folder, caller.dli_fname);
	for (int up = 0; up < 3; up++) {
		char *slash = strrchr(folder, '/');
		if (slash == NULL || slash == folder)
			break;
		*slash = '\0';
		int version = version_of_folder(folder);
		if (version != 0) {
			strcpy(known_folder, folder);
			return version;
		}
	}
	return HIGHEST_VERSION;
}

static int
version_for(const void *caller)
{
	pthread_mutex_lock(&lock);
	if (known_version == 0)
		known_version = find_version(caller);
	int version = known_version;
	pthread_mutex_unlock(&lock);
	return version;
}

const char *
tn__dnn_real_library(char *out, size_t size)
{
	const char *named = getenv(TN_DNN_LIBRARY_VARIABLE), *missing = NULL;
	pthread_mutex_lock(&lock);
	int length = named != NULL ? snprintf(out, size, "%s", named)
	                           : snprintf(out, size, "%s/nvidia/cudnn/lib/libcudnn.so.9", known_folder);
	if (named == NULL && known_version < FIRST_DEVICELESS)
		missing = "this cuDNN is older than 9.8";
	else if (length >= (int)size || access(out, R_OK) != 0)
		missing = "there is no libcudnn.so.9 beside PyTorch";
	pthread_mutex_unlock(&lock);
	if (missing != NULL)
		out[0] = '\0';
	return missing;
}

size_t
cudnnGetVersion(void)
{
	return (size_t)version_for(__builtin_return_address(0));
}

size_t
cudnnGetMaxDeviceVersion(void)
{
	return 1210; /* compute capability 12.1: no card of the catalogue is newer */
}

/* cuDNN reports the runtime that it was linked with; ours speaks to whichever the program has. */
size_t
cudnnGetCudartVersion(void)
{
	int (*runtime_version)(int *) = NULL;
	void *symbol = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
	int version = 0;
	memcpy(&runtime_version, &symbol, sizeof(symbol));
	if (runtime_version == NULL || runtime_version(&version) != 0)
		return 12000;
	return (size_t)version;
}

int
cudnnGetProperty(int type, int *value)
{
	int version = version_for(__builtin_return_address(0));
	DNN_REQUIRE_POINTER(value);
	switch (type) { /* libraryPropertyType: major, minor, patch level */
	case 0:
		*value = version / 10000;
		return DNN_STATUS_SUCCESS;
	case 1:
		*value = version / 100 % 100;
		return DNN_STATUS_SUCCESS;
	case 2:
		*value = version % 100;
		return DNN_STATUS_SUCCESS;
	default:
		return tn__dnn_fail(DNN_STATUS_INVALID_VALUE, "cudnnGetProperty: no property %d", type);
	}
}
