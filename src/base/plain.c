/* SPDX-License-Identifier: Apache-2.0
 *
 * Unicode's general categories Cc, Cf, Zl and Zp, and bytes that are no UTF-8 (RFC 3629), do not reach a terminal.
 */
#include "base/plain.h"
#include "tonnage/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int
tn__utf8(const char *text, uint32_t *code)
{
	const unsigned char *at = (const unsigned char *)text;
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	int length = at[0] < 0x80 ? 1 : at[0] >= 0xf5 || at[0] < 0xc2 ? 0 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	if (length <= 1) {
		*code = at[0];
		return length;
	}
	uint32_t value = at[0] & (0xffu >> (length + 1));
	for (int i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (at[i] & 0x3f);
	}
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	*code = value;
	return length;
}

static bool
is_plain(uint32_t code)
{
	static const uint32_t not[][2] = { { 0, 0x1f },         { 0x7f, 0x9f },       { 0xad, 0xad },
		                               { 0x600, 0x605 },    { 0x61c, 0x61c },     { 0x6dd, 0x6dd },
		                               { 0x70f, 0x70f },    { 0x180e, 0x180e },   { 0x200b, 0x200f },
		                               { 0x2028, 0x202e },  { 0x2060, 0x206f },   { 0xfeff, 0xfeff },
		                               { 0xfff9, 0xfffb },  { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
		                               { 0xe0000, 0xe0fff } };
	for (size_t i = 0; i < sizeof(not) / sizeof(not[0]); i++)
		if (code >= not[i][0] && code <= not[i][1])
			return false;
	return true;
}

void
tn__make_plain(char *text, char instead)
{
	char *to = text;
	for (const char *at = text; *at != '\0';) {
		uint32_t code;
		int length = tn__utf8(at, &code);
		if (length == 0 || !is_plain(code)) {
			*to++ = instead;
			at += length > 0 ? length : 1;
		} else {
			memmove(to, at, (size_t)length);
			to += length;
			at += length;
		}
	}
	*to = '\0';
}

char *
tn_plain_text(char *text)
{
	tn__make_plain(text, ' ');
	return text;
}

void
tn__tell(FILE *out, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	tn__make_plain(text, ' ');
	fprintf(out, "tonnage: %s\n", text);
	free(text);
}
