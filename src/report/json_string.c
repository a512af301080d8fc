/* SPDX-License-Identifier: Apache-2.0
 *
 * A string of JSON, written as it comes: documents that are not collected first.
 */
#include <stdlib.h>

#include "base/plain.h"
#include "base/secrets.h"
#include "report/explain_snapshot.h"

/* Length of what can be written as it is. */
static size_t
plain_length(const unsigned char *text)
{
	size_t length = 0;
	while (text[length] >= 0x20 && text[length] < 0x7f && text[length] != '"' && text[length] != '\\')
		length++;
	return length;
}

/* Only ASCII: the document may go to a terminal. */
void
tn__write_json_string(FILE *out, const char *string)
{
	char *masked = tn__mask_known(NULL, string);
	const char *text = masked != NULL ? masked : "";
	fputc('"', out);
	while (*text != '\0') {
		size_t plain = plain_length((const unsigned char *)text);
		uint32_t code;
		int length = plain > 0 ? (int)plain : tn__utf8(text, &code);
		if (plain > 0)
			fwrite(text, 1, plain, out);
		else if (length == 0)
			fputs("\\ufffd", out);
		else if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (int)code);
		else if (code >= 0x10000)
			fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
		else
			fprintf(out, "\\u%04x", code);
		text += length > 0 ? length : 1;
	}
	fputc('"', out);
	free(masked);
}
