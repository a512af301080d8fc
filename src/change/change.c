/* SPDX-License-Identifier: Apache-2.0
 *
 * The spelling of one change.
 */
#include "change/change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const promises[] = { "same", "same_up_to_rounding", "different_training" };

const char *
tn__guarantee_name(enum tn_guarantee promise)
{
	return promises[promise];
}

enum tn_guarantee
tn__guarantee_of(const char *name)
{
	for (int i = 0; name != NULL && i < TN_GUARANTEE_DIFFERENT; i++)
		if (strcmp(promises[i], name) == 0)
			return (enum tn_guarantee)i;
	return TN_GUARANTEE_DIFFERENT;
}

const char *
tn__change_id(const char *part, char id[64])
{
	snprintf(id, 64, "%.*s", (int)strcspn(part, "="), part);
	return id;
}

bool
tn__change_is(const char *part, const char *id)
{
	size_t length = strlen(id);
	return strncmp(part, id, length) == 0 && (part[length] == '=' || part[length] == '\0');
}

int
tn__change_number(const char *part)
{
	const char *value = strchr(part, '=');
	return value != NULL ? atoi(value + 1) : 0;
}

char *
tn__change_part(const char *id, const char *value)
{
	char *part = NULL;
	return asprintf(&part, value != NULL ? "%s=%s" : "%s", id, value) >= 0 ? part : NULL;
}

void
tn__change_join(char **changes, const char *part)
{
	char *joined = NULL;
	if (asprintf(&joined, "%s%s%s", *changes != NULL ? *changes : "", *changes != NULL ? "," : "", part) < 0)
		return;
	free(*changes);
	*changes = joined;
}
