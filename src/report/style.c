/* SPDX-License-Identifier: Apache-2.0
 *
 * What a stream can show.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/printer.h"
#include "report/report.h"

#define FEWEST_COLUMNS 60

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

/* As wide as the terminal, within what reads well; 100 where there is none. */
static int
columns_of(FILE *stream)
{
	const char *wish = getenv("COLUMNS");
	struct winsize size = { 0 };
	int columns = wish != NULL ? atoi(wish) : 0;
	if (columns <= 0 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0)
		columns = size.ws_col;
	if (columns <= 0 || columns > TN_COLUMNS)
		return TN_COLUMNS;
	return columns < FEWEST_COLUMNS ? FEWEST_COLUMNS : columns;
}

struct tn_style
tn__style_of(FILE *stream)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	bool colour = isatty(fileno(stream)) && (no_colour == NULL || no_colour[0] == '\0') &&
	              (terminal == NULL || strcmp(terminal, "dumb") != 0);
	return (struct tn_style){ .colour = colour, .utf8 = utf8_locale(), .columns = columns_of(stream) };
}
