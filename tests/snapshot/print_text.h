/* SPDX-License-Identifier: Apache-2.0
 *
 * A text as JSON, for the programs that print what the reader and the analysis made.
 */
#ifndef TN_TEST_PRINT_TEXT_H
#define TN_TEST_PRINT_TEXT_H

#include <stdio.h>

static void
print_text(const char *text)
{
	if (!text) {
		printf("null");
		return;
	}
	putchar('"');
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte < 0x20 || byte == '"' || byte == '\\')
			printf("\\u%04x", byte);
		else
			putchar(byte);
	}
	putchar('"');
}

#endif
