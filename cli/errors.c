/* SPDX-License-Identifier: Apache-2.0
 *
 * One line on stderr for what went wrong.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "tonnage/run.h" /* exit statuses */

static void
say(const char *format, va_list arguments)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) >= 0)
		fprintf(stderr, "tonnage: %s\n", tn_plain_text(text));
	free(text);
}

void
say_error(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

int
wrong_usage(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	return TN_EXIT_USAGE;
}
