/* SPDX-License-Identifier: Apache-2.0
 *
 * What a stream can show, and figures as people read them.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "report/report.h"

static bool
utf8_locale(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		if (value != NULL && value[0] != '\0')
			return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
	}
	return false;
}

struct tn_style
tn__style_of(FILE *stream)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	bool colour = isatty(fileno(stream)) && (no_colour == NULL || no_colour[0] == '\0') &&
	              (terminal == NULL || strcmp(terminal, "dumb") != 0);
	return (struct tn_style){ .colour = colour, .utf8 = utf8_locale() };
}

const char *
tn__human_bytes(int64_t bytes, char buffer[32])
{
	if (bytes == TN_UNKNOWN)
		return "unknown";
	if (bytes >= INT64_C(1) << 30)
		snprintf(buffer, 32, "%.2f GiB", (double)bytes / (double)(INT64_C(1) << 30));
	else if (bytes >= INT64_C(1) << 20)
		snprintf(buffer, 32, "%.1f MiB", (double)bytes / (double)(INT64_C(1) << 20));
	else if (bytes >= 1024)
		snprintf(buffer, 32, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(buffer, 32, "%lld B", (long long)bytes);
	return buffer;
}
