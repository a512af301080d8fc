/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person is shown of a report. Included after cmocka.h.
 */
#ifndef TEST_SCREEN_H
#define TEST_SCREEN_H

#include <stdio.h>

#include "report/report.h"

/* As wide as a screen of 100 columns, in ASCII; the caller frees. */
static inline char *
screen_of(const struct tn_report *report)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(tn__report_text(report, (struct tn_style){ .columns = 100 }, out), TN_OK);
	fclose(out);
	return text;
}

#endif
