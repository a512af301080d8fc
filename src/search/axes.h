/* SPDX-License-Identifier: Apache-2.0
 *
 * What `fit` varies: named lists of values, and where they are put into a program's arguments. Plain data: not thread-safe.
 */
#ifndef TN_SEARCH_AXES_H
#define TN_SEARCH_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define TN_AXES 4
#define TN_AXIS_VALUES 64

struct tn_axis {
	char name[64];
	int values[TN_AXIS_VALUES]; /* rising */
	int count;
};

/* "batch=1..512" (doubled, and the last), "length=512..4096:512" (in steps), "length=512,1024,3072". TN_INVALID with the line to
 * show. */
tn_status tn__axis_parse(const char *text, struct tn_axis *out);

/* True when {name} stands somewhere in the arguments. */
bool tn__axis_marked(const char *name, char *const *arguments);
/* True when the arguments have a place for the value: {name} somewhere, or an option of this name with a number: `--name 8`,
 * `--name=8`, `name=8`; hyphens and underscores are the same. */
bool tn__axis_has_place(const char *name, char *const *arguments);

/* A copy of the arguments with `count` values put in their places, by the names of `axes`. Release with tn__arguments_free; NULL
 * without memory. */
char **tn__axes_arguments(const struct tn_axis *axes, const int *values, int count, char *const *arguments);
void tn__arguments_free(char **arguments);

#endif
