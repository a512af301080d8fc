/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver: libraries that were linked with a CUDA runtime of their own (nvcc's default) ask the driver for tables that no
 * document describes. They are refused, and the file that asks is named, so that a person knows what cannot run here.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "vgpu/driver/cu.h"

/* "cupy_backends (runtime)" of ".../site-packages/cupy_backends/cuda/api/runtime.cpython-311-x86_64-linux-gnu.so". */
static void
name_file(const char *path, char *out, size_t size)
{
	const char *package = strstr(path, "-packages/"), *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;
	package = package ? package + strlen("-packages/") : NULL;
	if (package && package < file)
		snprintf(out, size, "%.*s (%.*s)", (int)strcspn(package, "/"), package, (int)strcspn(file, "."), file);
	else
		snprintf(out, size, "%s", file);
}

TN_EXPORT CUresult CUDAAPI
cuGetExportTable(const void **table, const CUuuid *id)
{
	char file[48] = "", name[80] = "cuGetExportTable"; /* as long as a row of the ledger */
	Dl_info about;
	if (dladdr(__builtin_return_address(0), &about) && about.dli_fname) {
		name_file(about.dli_fname, file, sizeof(file));
		snprintf(name, sizeof(name), "cuGetExportTable, called by %s", file);
	}
	return (CUresult)tn__refuse("cuda", name, CUDA_ERROR_NOT_SUPPORTED);
}
