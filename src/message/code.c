/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a line is one of a program's source, and whether a phrase in it is a string or a name of that source.
 *
 * Logs print what looks like code, too: tracebacks (frame.c knows them), dumps of settings ("lr = 0.1", `"a": 1,`), models
 * ("(0): Linear(...)") and exceptions ("RuntimeError('...')"). Such lines tell nothing here. Linear in the line.
 */
#include <ctype.h>
#include <string.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

/* What only opens a line of source that goes on like this. */
static bool
statement(const char *text, size_t length)
{
	char last = text[length - 1];
	bool calls = memchr(text, '(', length) != NULL;
	if (tn__begins_with(text, length,
	                    "#include|#define|#if|#ifdef|#ifndef|#endif|#else|#pragma|/*|*/|/**|@pytest|@staticmethod|"
	                    "@property|assert(|assert!(|assert_eq!(|panic!(|EXPECT_|ASSERT_|std::|fmt.|self.|"
	                    "} else|} catch|pub fn|pub struct|export ",
	                    false))
		return true;
	if (tn__begins_with(text, length, "def|async def|class|if|elif|else|for|while|try|except|with|finally|case|match",
	                    false))
		return last == ':' || last == '{' || last == '(' || last == ';' ||
		       (length > 5 && strncmp(text + length - 5, ": ...", 5) == 0); /* of a stub */
	if (tn__begins_with(text, length, "import|from", false))
		return tn__find(text, length, " import ") != NULL || tn__begins_with(text, length, "import", false);
	if (tn__begins_with(text, length,
	                    "return|raise|throw|assert|yield|await|func|fn|let|const|var|static|template|namespace|"
	                    "void|int|bool|auto|char|size_t|cdef|cpdef|using|struct|enum|public|private|else if|del",
	                    false))
		return calls || last == ';' || last == '{' || strchr("\"'=[]", last) != NULL || length < 40;
	return false;
}

/* "RuntimeError(", "torch.cuda.OutOfMemoryError(": what a program prints of an exception. */
static bool
exception_name(const char *name, size_t size)
{
	return size > 5 &&
	       (strncmp(name + size - 5, "Error", 5) == 0 || (size > 9 && strncmp(name + size - 9, "Exception", 9) == 0));
}

bool
tn__line_opens_with_error(const char *line, size_t length)
{
	size_t i = 0;
	while (i < length && (tn__name_char(line[i]) || line[i] == '.'))
		i++;
	return i + 1 < length && line[i] == ':' && line[i + 1] == ' ' && exception_name(line, i);
}

/* "name.part(", with nothing before it: the length of the name, or 0. */
static size_t
call_name(const char *text, size_t length)
{
	size_t i = 0;
	while (i < length && (tn__name_char(text[i]) || strchr(".:>-!", text[i]) != NULL)) {
		if (text[i] == ':' && text[i + 1] != ':' && (i == 0 || text[i - 1] != ':'))
			return 0;
		if (text[i] == '-' && text[i + 1] != '>')
			return 0;
		i++;
	}
	return i > 1 && i < length && text[i] == '(' && !isdigit((unsigned char)text[0]) ? i : 0;
}

/* "name = call(...)", "a, b = x.y", "x := ...", "self.a += b" */
static bool
assignment(const char *text, size_t length)
{
	size_t i = 0;
	while (i < length && (tn__name_char(text[i]) || strchr("., []*&:_'\"", text[i]) != NULL))
		i++;
	if (i > 0 && i + 2 < length && text[i] == '=' && text[i - 1] == ':' && text[i + 1] == ' ')
		return true;
	i += i < length && strchr("+-|/", text[i]) != NULL;
	if (i < 2 || i + 2 >= length || text[i] != '=' || text[i + 1] != ' ')
		return false;
	const char *value = text + i + 2;
	size_t size = length - i - 2;
	size_t name = call_name(value, size);
	size_t dotted = 0, dots = 0;
	for (; dotted < size && (tn__name_char(value[dotted]) || value[dotted] == '.'); dotted++)
		dots += value[dotted] == '.';
	return name > 0 || (dotted == size && dots > 0 && !isdigit((unsigned char)value[0])) ||
	       (size == 1 && strchr("([{", value[0]) != NULL) ||
	       tn__begins_with(value, size, "None|True|False|[]|{}|lambda|new|await|self.|f\"|f'|&", false);
}

/* Where the source of a line starts: behind blanks and quote marks. */
static size_t
indent(const char *line, size_t length)
{
	return tn__skip_any(line, length, " >|");
}

bool
tn__line_is_code(const char *line, size_t length)
{
	size_t first = indent(line, length);
	const char *text = line + first;
	length -= first;
	if (length < 2 || tn__line_opens_with_error(text, length))
		return false;
	if (statement(text, length) || assignment(text, length))
		return true;
	char last = text[length - 1];
	if (last == '{' && text[0] == '"') /* a member of JSON, which logs hold, too */
		return false;
	size_t name = call_name(text, length);
	bool closed = last == ')' || last == ';' || last == '(' || last == ',' || last == '{';
	if (name > 0 && closed && !exception_name(text, name))
		return true;
	if (last == ';' || last == '{')
		return memchr(text, '(', length) != NULL || memchr(text, '=', length) != NULL || length < 60;
	return length > 4 && (strncmp(text + length - 2, "):", 2) == 0 || strncmp(text + length - 2, "];", 2) == 0);
}

/* Whether a line fits code and everything else as well: brackets, comments, strings of a list, blanks. */
static bool
says_nothing(const char *line, size_t length)
{
	size_t first = indent(line, length);
	while (first < length && strchr("()[]{}, ;", line[first]) != NULL)
		first++;
	if (first == length)
		return true;
	char last = line[length - 1];
	return tn__begins_with(line + first, length - first, "#|//|*|\"\"\"", false) || strchr(",({[", last) != NULL ||
	       line[first] == '"' || line[first] == '\'' || strncmp(line, "    ", 4) == 0;
}

/* A line of a comment that documents a function: "* @throws", ":raises", "/// text". */
static bool
documents(const char *line, size_t length)
{
	size_t first = indent(line, length);
	return tn__begins_with(line + first, length - first,
	                       "* @|/**|///|:param|:raises|:return|* \\|Raises:|Args:|Returns:", false);
}

bool
tn__line_is_comment(const char *line, size_t length)
{
	size_t blanks = tn__skip_any(line, length, " ");
	return tn__begins_with(line + blanks, length - blanks, "//|/*|# -|#  ", false) ||
	       (blanks > 0 && tn__begins_with(line + blanks, length - blanks, "# |* ", false) && line[blanks + 1] == ' ' &&
	        (line[blanks] == '#' || blanks % 2 == 1));
}

static bool
quotes_trace(const char *line, size_t length)
{
	return tn__find(line, length, "\"\"\"traceback (") != NULL || tn__find(line, length, "'''traceback (") != NULL;
}

/* The first line of a docstring that goes on. */
static bool
opens_docstring(const char *line, size_t length)
{
	size_t first = indent(line, length);
	return length > first + 3 && strncmp(line + first, "\"\"\"", 3) == 0 && isupper((unsigned char)line[first + 3]) &&
	       tn__find(line + first + 3, length - first - 3, "\"\"\"") == NULL;
}

void
tn__code_read(struct tn_code_around *around, const char *line, size_t length, bool traced)
{
	if (traced && quotes_trace(line, length))
		around->quoted = true;
	else if (opens_docstring(line, length))
		around->quoted = around->docstring = true;
	else if (around->docstring && (traced || strncmp(line, "```", 3) == 0)) /* it was none, or it was cut off */
		around->quoted = false;
	else if (around->quoted)
		around->quoted = tn__find(line, length, "\"\"\"") == NULL && tn__find(line, length, "'''") == NULL;
	if (around->quoted)
		return;
	around->docstring = false;
	if (traced || strncmp(line, "```", 3) == 0) {
		memset(around, 0, sizeof(*around));
		return;
	}
	if (length == 0)
		return;
	bool code = tn__line_is_code(line, length) || documents(line, length);
	around->code = (uint16_t)(around->code << 1 | code);
	around->other = (uint16_t)(around->other << 1 | (!code && !says_nothing(line, length)));
}

static unsigned
bits(unsigned value)
{
	unsigned count = 0;
	for (; value != 0; value &= value - 1)
		count++;
	return count;
}

bool
tn__code_is_around(const struct tn_code_around *around)
{
	unsigned code = bits(around->code);
	return around->quoted || (code >= 2 && bits(around->other) < code);
}

bool
tn__phrase_is_string_or_name(const char *line, size_t length, size_t start, size_t end)
{
	while (start > 0 && (tn__name_char(line[start - 1]) || strchr(".:", line[start - 1]) != NULL))
		start--;
	while (end < length && tn__name_char(line[end]))
		end++;
	size_t quotes = 0;
	for (size_t i = 0; i < start; i++)
		quotes += line[i] == '"' || line[i] == '\'' || line[i] == '`';
	if (quotes % 2 == 1) /* an open string */
		return true;
	char after = end < length ? line[end] : '\0', before = start > 0 ? line[start - 1] : '\0';
	return (after != '\0' && strchr(",;)(]", after) != NULL) || (before != '\0' && strchr("([{,", before) != NULL);
}
