/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the page and its data together.
 *
 * Invariant: between the two halves of the page stands no `<`, so that nothing in the data can end its element. Valid
 * JSON has it in strings only, where \u003c means the same.
 */
#include "report/page_template.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static tn_status
put(FILE *out, const void *bytes, size_t length)
{
	TN_RETURN_IF(length > 0 && fwrite(bytes, 1, length, out) != length, TN_IO, "cannot write the page: %s",
	             strerror(errno));
	return TN_OK;
}

static tn_status
put_data(FILE *out, const char *json, size_t length)
{
	while (length > 0) {
		const char *found = memchr(json, '<', length);
		size_t plain = found != NULL ? (size_t)(found - json) : length;
		TN_FORWARD_IF_ERROR(put(out, json, plain));
		if (found == NULL)
			return TN_OK;
		TN_FORWARD_IF_ERROR(put(out, "\\u003c", 6));
		json += plain + 1;
		length -= plain + 1;
	}
	return TN_OK;
}

tn_status
tn__page_write(FILE *out, const char *json, size_t length)
{
	TN_FORWARD_IF_ERROR(put(out, tn__page_before, tn__page_before_size));
	TN_FORWARD_IF_ERROR(put_data(out, json, length));
	return put(out, tn__page_after, tn__page_after_size);
}
