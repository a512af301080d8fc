/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing arrays. The pointer to the array is read and written bytewise, so that one function serves every type.
 */
#include "pickle/budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FIRST_CAPACITY = 64 };

tn_status
tn__grow(struct tn_budget *budget, void *array, size_t *capacity, size_t needed, size_t width)
{
	if (needed <= *capacity)
		return TN_OK;
	size_t wanted = *capacity ? *capacity : FIRST_CAPACITY;
	while (wanted < needed && wanted <= SIZE_MAX / 2)
		wanted *= 2;
	uint64_t left = (budget->limit - budget->used) / width;
	if (wanted - *capacity > left)
		wanted = *capacity + left / 8; /* smaller steps where the budget ends, still few of them */
	if (wanted < needed)
		wanted = needed;
	TN_RETURN_IF(wanted - *capacity > left, TN_LIMIT, "more than %llu bytes of memory would be needed",
	             (unsigned long long)budget->limit);
	void *old, *grown;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, wanted * width);
	TN_RETURN_IF(!grown, TN_NO_MEMORY, "no host memory for %zu bytes", wanted * width);
	memcpy(array, &grown, sizeof(grown));
	budget->used += (wanted - *capacity) * width;
	*capacity = wanted;
	return TN_OK;
}

void
tn__release(struct tn_budget *budget, void *array, size_t *capacity, size_t width)
{
	void *old, *none = NULL;
	memcpy(&old, array, sizeof(old));
	free(old);
	memcpy(array, &none, sizeof(none));
	budget->used -= *capacity * width;
	*capacity = 0;
}
