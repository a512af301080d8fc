/* SPDX-License-Identifier: Apache-2.0
 *
 * cuRAND's host interface: generators can be made and configured; generating numbers is refused. The library has no
 * NOT_SUPPORTED status; "architecture mismatch" says that the device lacks the feature.
 * (PyTorch generates random numbers in its own kernels and never comes here.)
 */
#include <stdlib.h>

#define TN_SHELL_LIBRARY "curand"
#define TN_SHELL_TABLE "vgpu/curand/table.def"
#define TN_SHELL_REFUSAL 204 /* CURAND_STATUS_ARCH_MISMATCH */
#include "vgpu/core/stubs.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SUCCESS = 0, NOT_INITIALIZED = 101, ALLOCATION_FAILED = 102, TYPE_ERROR = 103, OUT_OF_RANGE = 104 };
enum { VERSION_MAJOR = 10, VERSION_MINOR = 4, VERSION_PATCH = 0 };

struct generator {
	int type;
	void *stream;
};

TN_EXPORT int
curandCreateGenerator(struct generator **out, int type)
{
	struct generator *generator;

	if (!out)
		return TYPE_ERROR;
	generator = calloc(1, sizeof(*generator));
	if (!generator)
		return ALLOCATION_FAILED;
	generator->type = type;
	*out = generator;
	return SUCCESS;
}

TN_EXPORT int
curandDestroyGenerator(struct generator *generator)
{
	if (!generator)
		return NOT_INITIALIZED;
	free(generator);
	return SUCCESS;
}

TN_EXPORT int
curandSetStream(struct generator *generator, void *stream)
{
	if (!generator)
		return NOT_INITIALIZED;
	generator->stream = stream;
	return SUCCESS;
}

TN_EXPORT int
curandSetPseudoRandomGeneratorSeed(struct generator *generator, unsigned long long seed)
{
	return generator ? SUCCESS : NOT_INITIALIZED;
}

TN_EXPORT int
curandSetGeneratorOffset(struct generator *generator, unsigned long long offset)
{
	return generator ? SUCCESS : NOT_INITIALIZED;
}

TN_EXPORT int
curandSetGeneratorOrdering(struct generator *generator, int order)
{
	return generator ? SUCCESS : NOT_INITIALIZED;
}

TN_EXPORT int
curandGetVersion(int *version)
{
	if (!version)
		return TYPE_ERROR;
	*version = VERSION_MAJOR * 1000 + VERSION_MINOR * 100 + VERSION_PATCH;
	return SUCCESS;
}

TN_EXPORT int
curandGetProperty(int which, int *value)
{
	static const int parts[] = { VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH };

	if (!value || which < 0 || which > 2)
		return OUT_OF_RANGE;
	*value = parts[which];
	return SUCCESS;
}
