/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the real cuDNN, and making its descriptors: see real.h.
 */
#include "dnn/real.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#include "dnn/abi.h"

enum { FIRST_DEVICELESS = 90800, BAD_PARAM = DNN_STATUS_BAD_PARAM };

static bool
find(void *library, const char *name, void *into, size_t size)
{
	void *symbol = dlsym(library, name);
	memcpy(into, &symbol, size);
	return symbol != NULL;
}

/* The compiler that belongs to a cuDNN of a wheel: ".../nvidia/cudnn/lib/libcudnn.so.9" has its neighbour in
 * ".../nvidia/cu13/lib" or ".../nvidia/cuda_nvrtc/lib", in two libraries of which one looks for the other by name. */
static bool
load_compiler(const char *path)
{
	bool loaded = false;
	char pattern[PATH_MAX];
	glob_t found;
	const char *end = path;
	for (int up = 0; up < 3 && end != NULL; up++)
		end = memrchr(path, '/', (size_t)((up == 0 ? path + strlen(path) : end) - path));
	if (end == NULL ||
	    snprintf(pattern, sizeof(pattern), "%.*s/*/lib/libnvrtc*.so.*", (int)(end - path), path) >= PATH_MAX ||
	    glob(pattern, 0, NULL, &found) != 0)
		return false;
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (strstr(found.gl_pathv[i], ".alt.") == NULL) /* the same for older compilers of the host */
			loaded |= dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_GLOBAL) != NULL;
	globfree(&found);
	return loaded;
}

bool
tn__dnn_real_prepare(const char *path, const char *driver)
{
	bool driven = driver != NULL && dlopen(driver, RTLD_NOW | RTLD_GLOBAL) != NULL;
	return load_compiler(path) && driven;
}

tn_status
tn__dnn_real_open(const char *path, struct tn_dnn_real *out)
{
	struct tn_dnn_real real = { .library = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
	TN_RETURN_IF(real.library == NULL, TN_IO, "%s", dlerror());
#define FIND(name, into) find(real.library, name, &(into), sizeof(into))
	bool whole = FIND("cudnnGetVersion", real.version) && FIND("cudnnBackendCreateDescriptor", real.create) &&
	             FIND("cudnnBackendDestroyDescriptor", real.destroy) && FIND("cudnnBackendFinalize", real.finalize) &&
	             FIND("cudnnBackendSetAttribute", real.set) && FIND("cudnnBackendGetAttribute", real.get);
#undef FIND
	TN_RETURN_IF(!whole, TN_IO, "%s has no backend API", path);
	TN_RETURN_IF(real.version() < FIRST_DEVICELESS, TN_UNSUPPORTED, "%s is version %zu, older than %d", path,
	             real.version(), FIRST_DEVICELESS);
	*out = real;
	return TN_OK;
}

/* ---- descriptors ---- */

int
tn__dnn_make(struct tn_dnn_made *made, int type, tn_dnn_descriptor *out)
{
	if (!tn__array_room(&made->all, &made->room, made->count + 1, sizeof(*made->all), SIZE_MAX))
		return DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	int status = made->real->create(type, out);
	if (status == DNN_STATUS_SUCCESS)
		made->all[made->count++] = *out;
	return status;
}

void
tn__dnn_unmake(struct tn_dnn_made *made)
{
	while (made->count > 0)
		made->real->destroy(made->all[--made->count]);
	free(made->all);
	made->all = NULL;
	made->room = 0;
}

int
tn__dnn_set_child(struct tn_dnn_made *made, tn_dnn_descriptor descriptor, int name, tn_dnn_descriptor child)
{
	return made->real->set(descriptor, name, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &child);
}

int
tn__dnn_make_card(struct tn_dnn_made *made, const char *json, size_t length, tn_dnn_descriptor *out)
{
	int status = tn__dnn_make(made, DNN_BACKEND_DEVICEPROP_DESCRIPTOR, out);
	if (status == DNN_STATUS_SUCCESS)
		status = made->real->set(*out, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, DNN_TYPE_CHAR, (int64_t)length, json);
	return status == DNN_STATUS_SUCCESS ? made->real->finalize(*out) : status;
}

static int make_node(struct tn_dnn_made *made, struct tn_dnn_cursor *cursor, int depth, tn_dnn_descriptor *out);

static int
set_children(struct tn_dnn_made *made, struct tn_dnn_cursor *cursor, int depth, tn_dnn_descriptor parent, int name,
             uint32_t count)
{
	tn_dnn_descriptor *children = calloc((size_t)count + 1, sizeof(*children));
	int status = children == NULL ? DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED : DNN_STATUS_SUCCESS;
	for (uint32_t i = 0; i < count && status == DNN_STATUS_SUCCESS; i++)
		status = make_node(made, cursor, depth + 1, &children[i]);
	if (status == DNN_STATUS_SUCCESS)
		status = made->real->set(parent, name, DNN_TYPE_BACKEND_DESCRIPTOR, count, children);
	free(children);
	return status;
}

static int
set_attribute(struct tn_dnn_made *made, struct tn_dnn_cursor *cursor, int depth, tn_dnn_descriptor descriptor)
{
	int name = (int)tn__dnn_take_u32(cursor), type = (int)tn__dnn_take_u32(cursor);
	uint32_t count = tn__dnn_take_u32(cursor);
	size_t size = tn__dnn_element_bytes(type);
	if (cursor->failed || size == 0 || count > TN_DNN_MOST_BYTES / size)
		return BAD_PARAM;
	if (type == DNN_TYPE_BACKEND_DESCRIPTOR)
		return set_children(made, cursor, depth, descriptor, name, count);
	uint64_t aligned[64], *elements = aligned; /* cuDNN reads them as what they are */
	size_t length = count * size;
	const void *bytes = tn__dnn_take(cursor, length);
	if (bytes == NULL)
		return BAD_PARAM;
	if (length > sizeof(aligned) && (elements = malloc(length)) == NULL)
		return DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	memcpy(elements, bytes, length);
	int status = made->real->set(descriptor, name, type, count, elements);
	if (elements != aligned)
		free(elements);
	return status;
}

static int
make_node(struct tn_dnn_made *made, struct tn_dnn_cursor *cursor, int depth, tn_dnn_descriptor *out)
{
	int type = (int)tn__dnn_take_u32(cursor);
	uint32_t attributes = tn__dnn_take_u32(cursor);
	if (cursor->failed || depth > TN_DNN_MOST_DEPTH)
		return BAD_PARAM;
	int status = tn__dnn_make(made, type, out);
	for (uint32_t i = 0; i < attributes && status == DNN_STATUS_SUCCESS; i++)
		status = set_attribute(made, cursor, depth, *out);
	return status == DNN_STATUS_SUCCESS ? made->real->finalize(*out) : status;
}

int
tn__dnn_make_node(struct tn_dnn_made *made, struct tn_dnn_cursor *cursor, tn_dnn_descriptor *out)
{
	return make_node(made, cursor, 0, out);
}
