/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of categories, as documents and as screens have them.
 */
#include "analyze/moment.h"

#include <string.h>

const char *
tn__category_name(enum tn_category category)
{
	static const char *const names[] = {
#define CATEGORY(name, words) #name,
#include "analyze/categories.def"
#undef CATEGORY
	};
	return category < TN_CATEGORIES ? names[category] : "unknown";
}

const char *
tn__category_words(enum tn_category category)
{
	static const char *const texts[] = {
#define CATEGORY(name, words) words,
#include "analyze/categories.def"
#undef CATEGORY
	};
	return category < TN_CATEGORIES ? texts[category] : "unknown";
}

int
tn__category_of(const char *name)
{
	for (int i = 0; name && i < TN_CATEGORIES; i++)
		if (strcmp(tn__category_name((enum tn_category)i), name) == 0)
			return i;
	return -1;
}
