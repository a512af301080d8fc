/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the mangled name of a kernel from left to right. Both take NULL and give NULL where a step before found nothing.
 */
#ifndef TN_VGPU_NAMES_H
#define TN_VGPU_NAMES_H

#include <string.h>

/* What follows `prefix` if `text` starts with it, else NULL. */
static inline const char *
skip(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);
	return text && strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* What follows the first `part` in `text`, else NULL. */
static inline const char *
skip_to(const char *text, const char *part)
{
	const char *found = text ? strstr(text, part) : NULL;
	return found ? found + strlen(part) : NULL;
}

#endif
