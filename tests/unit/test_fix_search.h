/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of a search's plans share.
 */
#ifndef TN_TESTS_TEST_FIX_SEARCH_H
#define TN_TESTS_TEST_FIX_SEARCH_H

#include <stdlib.h>

#include "search/fix_search.h"

/* Frees what tn__fix_plan has added. */
static void
release(struct tn_fix_search *search)
{
	for (int i = 0; i < search->count; i++)
		tn__fix_change_free(&search->attempts[i].found);
	free(search->attempts);
}

#endif
