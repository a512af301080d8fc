/* SPDX-License-Identifier: Apache-2.0
 *
 * The Nth allocation of host memory fails, and what is held is counted: for one test of a program linked with
 * --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free.
 */
#ifndef TN_TEST_FAILING_MEMORY_H
#define TN_TEST_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

static long left = -1; /* allocations until one fails; negative: none does */
static long held;      /* pieces of memory that are not given back */
static bool failed;

void *__real_realloc(void *memory, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void __real_free(void *memory);

static bool
fails(void)
{
	if (left < 0 || left-- > 0)
		return false;
	failed = true;
	return true;
}

void *
__wrap_realloc(void *memory, size_t size)
{
	void *grown = fails() ? NULL : __real_realloc(memory, size);
	held += grown && !memory;
	return grown;
}

void *
__wrap_calloc(size_t count, size_t size)
{
	void *memory = fails() ? NULL : __real_calloc(count, size);
	held += memory != NULL;
	return memory;
}

void *
__wrap_malloc(size_t size)
{
	void *memory = fails() ? NULL : __real_malloc(size);
	held += memory != NULL;
	return memory;
}

void
__wrap_free(void *memory)
{
	held -= memory != NULL;
	__real_free(memory);
}

#endif
