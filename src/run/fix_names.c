/* SPDX-License-Identifier: Apache-2.0
 *
 * What the words of a change say: which change it is, and what it promises of the results.
 */
#include <stdio.h>
#include <string.h>

#include "run/fix_search.h"

const char *
tn__fix_id_of(const char *part, char id[64])
{
	snprintf(id, 64, "%.*s", (int)strcspn(part, "="), part);
	return id;
}

enum tn_promise
tn__promise_of(const char *name)
{
	if (name != NULL && strcmp(name, "same") == 0)
		return TN_PROMISE_SAME;
	return name != NULL && strcmp(name, "same_up_to_rounding") == 0 ? TN_PROMISE_ROUNDING : TN_PROMISE_DIFFERENT;
}
