/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>

#include "base/ranges.h"

/* A number of digits only, and what follows it. -1: none. */
static long
number(const char **cursor)
{
	char *end;
	if (**cursor < '0' || **cursor > '9')
		return -1;
	long value = strtol(*cursor, &end, 10);
	*cursor = end;
	return value < INT_MAX ? value : -1;
}

int
tn__ranges_read(const char *text, int *out, size_t room)
{
	size_t count = 0;
	for (const char *cursor = text;; cursor++) {
		long first = number(&cursor), last = first;
		if (first >= 0 && *cursor == '-') {
			cursor++;
			last = number(&cursor);
		}
		if (first < 0 || last < first || (count > 0 && first <= out[count - 1]))
			return -1;
		for (long value = first; value <= last; value++) {
			if (count == room)
				return -1;
			out[count++] = (int)value;
		}
		if (*cursor == '\0')
			return (int)count;
		if (*cursor != ',')
			return -1;
	}
}
