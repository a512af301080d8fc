/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about strings.
 */
#ifndef TN_BASE_STRINGS_H
#define TN_BASE_STRINGS_H

#include <stdbool.h>
#include <string.h>

/* Whether a text, which may be NULL, ends with another one, byte for byte. */
static inline bool
tn__ends_with(const char *text, const char *end)
{
	size_t length = text != NULL ? strlen(text) : 0, wanted = strlen(end);
	return length >= wanted && memcmp(text + length - wanted, end, wanted) == 0;
}

#endif
