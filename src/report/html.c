/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of plain HTML: see html.h.
 */
#include "report/html.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/secrets.h"
#include "report/page_template.h"

void
tn__html_text(FILE *out, const char *text)
{
	char *masked = text != NULL ? tn__mask_known(NULL, text) : NULL;
	for (const char *at = masked != NULL ? masked : ""; *at != '\0'; at++) {
		unsigned char c = (unsigned char)*at;
		if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '&')
			fputs("&amp;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t')
			fputc(c, out);
	}
	free(masked);
}

static void
say(FILE *out, const char *format, va_list arguments)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) < 0)
		return;
	tn__html_text(out, text);
	free(text);
}

void
tn__html_say(FILE *out, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say(out, format, arguments);
	va_end(arguments);
}

void
tn__html_begin(FILE *out, const char *title)
{
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>", out);
	tn__html_text(out, title);
	fputs("</title>\n<style>", out);
	fwrite(tn__page_style, 1, tn__page_style_size, out);
	fputs("pre.code{white-space:pre-wrap;background:var(--panel);padding:.5rem .8rem;"
	      "border-radius:5px;overflow-wrap:anywhere}\n.curve{max-width:760px;display:block}\n.curve text{fill:var(--soft);"
	      "font-size:12px}\n.curve .limit{stroke:var(--bad);stroke-dasharray:6 4}\n.curve .axis{stroke:var(--edge)}\n"
	      ".curve .way{stroke:var(--link);fill:none;stroke-width:1.5}\n.curve .good{fill:var(--good)}\n"
	      ".curve .bad{fill:var(--bad)}\n.bar{fill:var(--link)}\n.bars{white-space:nowrap}\n.good{color:var(--good)}\n"
	      ".bad{color:var(--bad)}\n"
	      "summary{cursor:pointer;color:var(--link)}\n</style>\n</head>\n<body>\n<header class=\"top\">"
	      "<span class=\"mark\">Tonnage</span><span>", out);
	tn__html_text(out, title);
	fputs("</span></header>\n<main>\n", out);
}

tn_status
tn__html_end(FILE *out, const char *format, ...)
{
	va_list arguments;
	fputs("</main>\n<footer class=\"note\"><p>", out);
	va_start(arguments, format);
	say(out, format, arguments);
	va_end(arguments);
	fputs("</p></footer>\n</body>\n</html>\n", out);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "the page could not be written: %s", strerror(errno));
	return TN_OK;
}
