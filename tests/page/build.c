/* SPDX-License-Identifier: Apache-2.0
 *
 * page_build: an object of doc/format/page.schema.json on stdin, its page on stdout. For the tests of tests/page.
 */
#include <stdio.h>
#include <stdlib.h>

#include "report/page_template.h"

int
main(void)
{
	size_t size = 0, capacity = 1 << 16;
	char *json = malloc(capacity);
	while (json != NULL) {
		size += fread(json + size, 1, capacity - size, stdin);
		if (size < capacity)
			break;
		char *larger = realloc(json, capacity *= 2);
		if (larger == NULL)
			free(json);
		json = larger;
	}
	tn_status status = json == NULL ? TN_NO_MEMORY : tn__page_write(stdout, json, size);
	free(json);
	return status == TN_OK && fflush(stdout) == 0 ? 0 : 1;
}
