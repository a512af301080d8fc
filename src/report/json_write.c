/* SPDX-License-Identifier: Apache-2.0
 *
 * Documents that may go to a terminal: ASCII only. jansson escapes all else, but leaves DEL, which can stand in strings only.
 * What has the form of a secret is masked: these forms hold nothing that JSON would escape.
 */
#include <stdlib.h>
#include <string.h>

#include "base/secrets.h"
#include "report/json_parts.h"

int
tn__json_write(const json_t *object, FILE *out, size_t flags)
{
	char *text = json_dumps(object, flags | JSON_ENSURE_ASCII),
		 *masked = text != NULL ? tn__mask_known(NULL, text) : NULL;
	bool good = masked != NULL;
	for (const char *at = masked; good && *at != '\0';) {
		size_t plain = strcspn(at, "\x7f");
		good = fwrite(at, 1, plain, out) == plain && (at[plain] == '\0' || fputs("\\u007f", out) != EOF);
		at += plain + (at[plain] != '\0');
	}
	free(text);
	free(masked);
	return good ? 0 : -1;
}
