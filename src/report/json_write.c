/* SPDX-License-Identifier: Apache-2.0
 *
 * Documents that may go to a terminal: ASCII only. jansson escapes all else, but leaves DEL, which can stand in strings only.
 */
#include <string.h>

#include "report/json_parts.h"

static int
write_part(const char *bytes, size_t size, void *out)
{
	while (size > 0) {
		const char *del = memchr(bytes, 0x7f, size);
		size_t plain = del != NULL ? (size_t)(del - bytes) : size;
		if (fwrite(bytes, 1, plain, out) != plain || (del != NULL && fputs("\\u007f", out) == EOF))
			return -1;
		plain += del != NULL;
		bytes += plain;
		size -= plain;
	}
	return 0;
}

int
tn__json_write(const json_t *object, FILE *out, size_t flags)
{
	return json_dump_callback(object, write_part, out, flags | JSON_ENSURE_ASCII);
}
