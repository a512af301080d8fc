/* SPDX-License-Identifier: Apache-2.0 */
#include "vgpu/core/counted.h"

#include <stddef.h>

#define COUNTED_MAX 64 /* a model asks for few masks between its forward and its backward pass */

static struct {
	uint64_t address, bytes; /* bytes 0: free */
	int32_t count;
} counted[COUNTED_MAX];
static size_t used, next; /* the slots that were ever used; the one to be used next */

void
tn__counted_note(uint64_t address, uint64_t bytes, int32_t count)
{
	tn__counted_drop(address, bytes);
	counted[next].address = address;
	counted[next].bytes = bytes;
	counted[next].count = count;
	next = (next + 1) % COUNTED_MAX;
	if (used < COUNTED_MAX)
		used++;
}

bool
tn__counted_find(uint64_t address, uint64_t bytes, int32_t *count)
{
	for (size_t i = 0; i < used; i++) {
		if (counted[i].address != address || counted[i].bytes != bytes || bytes == 0)
			continue;
		*count = counted[i].count;
		return true;
	}
	return false;
}

void
tn__counted_drop(uint64_t address, uint64_t bytes)
{
	for (size_t i = 0; i < used; i++)
		if (counted[i].address < address + bytes && address < counted[i].address + counted[i].bytes)
			counted[i].bytes = 0;
}
