/* SPDX-License-Identifier: Apache-2.0
 *
 * NVML by the names of its functions. Their shapes are those of nvml.h, as NVIDIA's Python binding of it (nvidia-ml-py) calls
 * them; the library is opened at run time.
 */
#include <dlfcn.h>

#include "doctor/checks.h"

static void *
find(void *library, const char *name)
{
	return dlsym(library, name);
}

bool
tn__nvml_open(struct tn_nvml *out)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return false;
	*out = (struct tn_nvml){ find, library };
	return true;
}

/* Calls the function of that name with these arguments, or gives TN_NVML_ABSENT. */
#define CALL(nvml, name, shape, ...)                                                         \
	({                                                                                       \
		int(*function) shape = (int(*) shape)(uintptr_t)(nvml)->find((nvml)->library, name); \
		function != NULL ? function(__VA_ARGS__) : TN_NVML_ABSENT;                           \
	})

int
tn__nvml_start(const struct tn_nvml *nvml)
{
	return CALL(nvml, "nvmlInit_v2", (void));
}

int
tn__nvml_system(const struct tn_nvml *nvml, const char *name, void *out)
{
	return CALL(nvml, name, (void *), out);
}

int
tn__nvml_system_text(const struct tn_nvml *nvml, const char *name, char *text, unsigned capacity)
{
	int status = CALL(nvml, name, (char *, unsigned), text, capacity);
	text[status == 0 ? capacity - 1 : 0] = '\0';
	return status;
}

int
tn__nvml_handle(const struct tn_nvml *nvml, unsigned index, void **device)
{
	return CALL(nvml, "nvmlDeviceGetHandleByIndex_v2", (unsigned, void **), index, device);
}

int
tn__nvml_ask(const struct tn_nvml *nvml, void *device, const char *name, void *out)
{
	return CALL(nvml, name, (void *, void *), device, out);
}

int
tn__nvml_ask_text(const struct tn_nvml *nvml, void *device, const char *name, char *text, unsigned capacity)
{
	int status = CALL(nvml, name, (void *, char *, unsigned), device, text, capacity);
	text[status == 0 ? capacity - 1 : 0] = '\0';
	return status;
}

int
tn__nvml_ask_two(const struct tn_nvml *nvml, void *device, const char *name, void *first, void *second)
{
	return CALL(nvml, name, (void *, void *, void *), device, first, second);
}

int
tn__nvml_ask_four(const struct tn_nvml *nvml, void *device, const char *name, unsigned out[4])
{
	return CALL(nvml, name, (void *, void *, void *, void *, void *), device, &out[0], &out[1], &out[2], &out[3]);
}

int
tn__nvml_ask_kind(const struct tn_nvml *nvml, void *device, const char *name, int kind, void *out)
{
	return CALL(nvml, name, (void *, int, void *), device, kind, out);
}

int
tn__nvml_ask_kinds(const struct tn_nvml *nvml, void *device, const char *name, int kind, int other, void *out)
{
	return CALL(nvml, name, (void *, int, int, void *), device, kind, other, out);
}
