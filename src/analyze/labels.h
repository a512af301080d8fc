/* SPDX-License-Identifier: Apache-2.0
 *
 * What the guest's labels of memory say.
 */
#ifndef TN_ANALYZE_LABELS_H
#define TN_ANALYZE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The class of the outermost module that parameters are of, where a program has several ("module UNet"), as a part of the label;
 * NULL where it says something else, or is NULL. */
static inline const char *
tn__module_of_label(const char *label)
{
	static const char start[] = "module ";
	size_t length = sizeof(start) - 1;
	return label != NULL && strncmp(label, start, length) == 0 ? label + length : NULL;
}

/* Buffers of modules that have no parameters ("buffers of KVCache"). */
static inline bool
tn__label_is_of_buffers(const char *label)
{
	static const char start[] = "buffers of ";
	return label != NULL && strncmp(label, start, sizeof(start) - 1) == 0;
}

#endif
