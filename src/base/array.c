/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing arrays. The pointer to the array is read and written bytewise, so that one function serves every type.
 */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

bool
tn__array_room(void *array, size_t *capacity, size_t needed, size_t width, size_t most)
{
	if (needed <= *capacity)
		return true;
	size_t wanted = *capacity > 0 ? *capacity : FIRST_CAPACITY;
	while (wanted < needed && wanted <= most / 2)
		wanted *= 2;
	if (wanted < needed || wanted > most)
		wanted = most;
	if (wanted < needed || wanted > SIZE_MAX / width)
		return false;
	void *old, *grown;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, wanted * width);
	if (grown == NULL)
		return false;
	memcpy(array, &grown, sizeof(grown));
	*capacity = wanted;
	return true;
}

bool
tn__array_add(void *array, size_t count, size_t width)
{
	bool full = count == 0 || (count >= FIRST_CAPACITY && (count & (count - 1)) == 0);
	size_t capacity = count;
	return !full || tn__array_room(array, &capacity, count + 1, width, SIZE_MAX);
}
