/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of the last failure, by thread.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/plain.h"

static _Thread_local char last_text[512];

const char *
tn_status_text(tn_status status)
{
	switch (status) {
#define TN_STATUS_CASE(name, number, text) \
	case TN_##name:                        \
		return text;
		TN_STATUS_LIST(TN_STATUS_CASE)
#undef TN_STATUS_CASE
	}
	return "unknown status";
}

const char *
tn_error_text(void)
{
	return last_text;
}

tn_status
tn__fail(tn_status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(last_text, sizeof(last_text), format, arguments);
	va_end(arguments);
	tn__make_plain(last_text, ' '); /* it goes to a terminal, and names of files and documents stand in it */
	return status;
}
