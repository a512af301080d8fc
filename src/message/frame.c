/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of tracebacks, in the forms that Python, IPython, rich, pytest and TensorFlow print, and whose code they
 * show.
 *
 * Every function is linear in the line; nothing is kept but one unfinished path.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
slash(char c)
{
	return c == '/' || c == '\\';
}

/* ---- whose code ---- */

/* One part of a path, between slashes. */
struct part {
	const char *text;
	size_t length;
};

static bool
part_starts(struct part part, const char *with)
{
	size_t length = strlen(with);
	return part.length >= length && strncasecmp(part.text, with, length) == 0;
}

static bool
part_is(struct part part, const char *word)
{
	return part.length == strlen(word) && part_starts(part, word);
}

/* Folders that have a standard library as their `lib`: Python38, anaconda3, envs/NAME. */
static bool
python_home(struct part part, struct part before)
{
	return part_starts(part, "python") || tn__find(part.text, part.length, "conda") != NULL ||
	       part_is(before, "envs") || part_starts(part, "pypy");
}

static bool
frozen_name(const char *path, size_t length)
{
	static const char *const names[] = { "<frozen",         "<decorator-gen",   "<__array_function__",
		                                 "<eval_with_key>", "<attrs generated", "<fx",
		                                 "<unknown>",       "<built-in" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (length >= strlen(names[i]) && strncmp(path, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

bool
tn__frame_is_library(const char *path, size_t length)
{
	struct part home = { "", 0 }, last = { "", 0 }, part = { path, 0 };
	if (frozen_name(path, length))
		return true;
	for (size_t i = 0; i <= length; i++) {
		if (i < length && !slash(path[i])) {
			part.length++;
			continue;
		}
		if (i < length && (part_is(part, "site-packages") || part_is(part, "dist-packages")))
			return true;
		bool library = part_is(last, "lib") || part_is(last, "lib64");
		if (i < length && library && (part_starts(part, "python2") || part_starts(part, "python3")))
			return true;
		if (part.length > 0 && part_is(part, "lib") && i < length && path[i] == '\\' && python_home(last, home))
			return true;
		if (part.length > 0) {
			home = last;
			last = part;
		}
		part = (struct part){ path + i + 1, 0 };
	}
	return false;
}

/* ---- reading ---- */

/* Copies a path; in quoted texts its backslashes are doubled. */
static size_t
copy_path(const char *path, size_t length, char *out)
{
	size_t used = 0;
	for (size_t i = 0; i < length; i++) {
		bool doubled = path[i] == '\\' && i > 1 && path[i - 1] == '\\';
		if (!doubled || out[used - 1] != '\\')
			out[used++] = path[i];
	}
	return used;
}

/* "in NAME" behind a line number: the name without its class, "" without one. */
static const char *
function_after(const char *text, size_t *length)
{
	text += strspn(text, "0123456789");
	text += strspn(text, ",: ");
	*length = 0;
	if (strncmp(text, "in ", 3) != 0)
		return text;
	text += 3;
	for (;;) {
		while (text[*length] != '\0' && (isalnum((unsigned char)text[*length]) || strchr("_<>", text[*length]) != NULL))
			++*length;
		if (text[*length] != '.')
			return text;
		text += *length + 1;
		*length = 0;
	}
}

/* A frame whose path and line are known. */
static void
give(const char *path, size_t length, const char *line_number, struct tn_frames *found)
{
	size_t name;
	const char *function = function_after(line_number, &name);
	tn__place_frame(&found->place, path, length, function, name);
	const char *code = function + name;
	if (strncmp(code, "\\n", 2) == 0) { /* a whole traceback in one line: the code follows */
		const char *end = strstr(code + 2, "\\n");
		if (end != NULL)
			tn__place_code(&found->place, code + 2, (size_t)(end - code - 2));
	}
	if (length == 0 || length > TN_MESSAGE_CULPRIT - 16 || tn__frame_is_library(path, length))
		return;
	char *culprit = found->culprit;
	length = copy_path(path, length, culprit);
	culprit[length++] = ':';
	size_t digits = 0;
	while (digit(line_number[digits]) && digits < 10)
		culprit[length++] = line_number[digits++];
	culprit[length] = '\0';
	found->own = true;
}

/* After the path of `File "path", line 12`: the digits, or NULL. */
static const char *
line_number_after(const char *text)
{
	while (*text == '\\' || *text == '"' || *text == ',' || *text == ' ')
		text++;
	if (strncmp(text, "line", 4) != 0)
		return NULL;
	for (text += 4; *text == ' ';)
		text++;
	return digit(*text) ? text : NULL;
}

/* A frame whose line number was taken out, as in `File "path", line xx, in name`: never the culprit. */
static void
give_unnumbered(const char *path, size_t length, const char *rest, struct tn_frames *found)
{
	const char *function = strstr(rest, ", in ");
	if (strncmp(rest, "\", line ", 8) != 0 || function == NULL || function - rest > 16)
		return;
	function += 5;
	size_t name = 0;
	while (isalnum((unsigned char)function[name]) || function[name] == '_')
		name++;
	tn__place_frame(&found->place, path, length, function, name);
}

/* All `File "path", line 12` of a line; the last own one counts. Returns whether there was any. */
static bool
read_quoted(struct tn_frame_reader *reader, const char *line, struct tn_frames *found)
{
	bool any = false;
	for (const char *at = line; (at = strstr(at, "File ")) != NULL;) {
		const char *path = at + 5;
		at = path;
		if (path[0] == '\\' && path[1] == '"')
			path++;
		if (path[0] != '"')
			continue;
		path++;
		size_t length = strcspn(path, "\"");
		any = true;
		if (path[length] == '\0') {
			if (length < sizeof(reader->partial)) {
				memcpy(reader->partial, path, length + 1);
				reader->awaits_quote = true;
			}
			break;
		}
		const char *number = line_number_after(path + length);
		at = path + length;
		if (length > 0 && path[length - 1] == '\\')
			length--;
		if (number != NULL)
			give(path, length, number, found);
		else
			give_unnumbered(path, length, path + length, found);
		if (number == NULL && strcmp(path + length, "\",") == 0 && length < sizeof(reader->partial)) {
			memcpy(reader->partial, path, length);
			reader->partial[length] = '\0';
			reader->awaits_number = true;
		}
	}
	return any;
}

/* `"path.py, line 12, name",`, as an element of a list. */
static bool
read_listed(const char *line, struct tn_frames *found)
{
	const char *end = strstr(line, ".py, line ");
	if (end == NULL || line[0] != '"' || !digit(end[10]))
		return false;
	const char *function = end + 10 + strspn(end + 10, "0123456789");
	give(line + 1, (size_t)(end + 3 - line - 1), end + 10, found);
	if (strncmp(function, ", ", 2) == 0)
		tn__place_frame(&found->place, line + 1, (size_t)(end + 3 - line - 1), function + 2,
		                strcspn(function + 2, "\","));
	return true;
}

/* `WORD "path.py", WORD 12, WORD name`, as a translated traceback has it. */
static bool
read_translated(const char *line, struct tn_frames *found)
{
	const char *quote = strstr(line, ".py\", ");
	if (quote == NULL)
		return read_listed(line, found);
	const char *path = quote, *number = quote + 6;
	while (path > line && path[-1] != '"')
		path--;
	while (isalpha((unsigned char)*number) || (unsigned char)*number >= 0x80)
		number++;
	if (path == line || number == quote + 6 || *number != ' ' || !digit(number[1]))
		return false;
	number++;
	const char *function = number + strspn(number, "0123456789");
	size_t name = 0;
	if (strncmp(function, ", ", 2) == 0 && strchr(function + 2, ' ') != NULL)
		function = strchr(function + 2, ' ') + 1;
	while (isalnum((unsigned char)function[name]) || strchr("_<>", function[name]) != NULL) {
		if (function[name] == '\0')
			break;
		name++;
	}
	give(path, (size_t)(quote + 3 - path), number, found);
	tn__place_frame(&found->place, path, (size_t)(quote + 3 - path), function, name);
	return true;
}

/* The rest of a path that was wrapped at the end of the line before. */
static bool
read_wrapped(struct tn_frame_reader *reader, const char *line, struct tn_frames *found)
{
	bool number_only = reader->awaits_number;
	reader->awaits_number = false;
	if (number_only && line_number_after(line) != NULL) {
		give(reader->partial, strlen(reader->partial), line_number_after(line), found);
		return true;
	}
	if (!reader->awaits_quote)
		return false;
	reader->awaits_quote = false;
	size_t length = strlen(reader->partial), more = strcspn(line, "\"");
	if (line[more] == '\0' || more > 256 || length + more >= sizeof(reader->partial))
		return false;
	memcpy(reader->partial + length, line, more);
	const char *number = line_number_after(line + more);
	if (number == NULL)
		return false;
	give(reader->partial, length + more, number, found);
	return true;
}

/* The name of a function that was wrapped behind "path.py:12 in". */
static bool
read_wrapped_function(struct tn_frame_reader *reader, const char *line, struct tn_frames *found)
{
	size_t name = 0;
	bool in = reader->awaits_in && strncmp(line, "in ", 3) == 0;
	if (!reader->awaits_function && !in) {
		reader->awaits_in = false;
		return false;
	}
	line += in ? 3 : 0;
	reader->awaits_function = reader->awaits_in = false;
	while (isalnum((unsigned char)line[name]) || strchr("_<>", line[name]) != NULL) {
		if (line[name] == '\0')
			break;
		name++;
	}
	if (name == 0 || line[name + strspn(line + name, " |")] != '\0')
		return false;
	tn__place_frame(&found->place, reader->partial, strlen(reader->partial), line, name);
	return true;
}

bool
tn__frame_goes_on(const struct tn_frame_reader *reader)
{
	return reader->awaits_quote || reader->awaits_number;
}

/* "Cell In[9], line 3" and "Input In [9], in <cell line: 3>()". */
static bool
read_cell(const char *line, struct tn_frames *found)
{
	const char *name = strncmp(line, "Cell In", 7) == 0 || strncmp(line, "Input In", 8) == 0 ? line : NULL;
	const char *close = name != NULL ? strchr(name, ']') : NULL;
	if (close == NULL || close - name > 24)
		return false;
	const char *number = strstr(close, "line");
	for (number = number != NULL ? number + 4 : ""; *number == ' ' || *number == ':';)
		number++;
	if (digit(*number))
		give(name, (size_t)(close - name) + 1, number, found);
	return true;
}

static bool
path_like(const char *path, size_t length)
{
	if (length == 0 || length >= TN_MESSAGE_CULPRIT - 16)
		return false;
	if (strncmp(path, "<ipython-input", 14) == 0)
		return true;
	bool python = length > 3 && (memcmp(path + length - 3, ".py", 3) == 0 ||
	                             (length > 4 && (memcmp(path + length - 4, ".pyx", 4) == 0 ||
	                                             memcmp(path + length - 4, ".pyc", 4) == 0)));
	return python && memchr(path, ' ', length) == NULL && memchr(path, '"', length) == NULL &&
	       memchr(path, '(', length) == NULL;
}

/* "path in function(args)", whose line number follows in an arrow. */
static bool
read_header(struct tn_frame_reader *reader, const char *line, struct tn_frames *found)
{
	const char *end = strstr(line, " in ");
	if (end == NULL || !path_like(line, (size_t)(end - line)))
		return false;
	const char *function = end + 4;
	size_t name = strcspn(function, "( ");
	if (function[0] != '<' && function[name] != '(' && function[name] != '\0')
		return false;
	memcpy(reader->partial, line, (size_t)(end - line));
	reader->partial[end - line] = '\0';
	reader->awaits_arrow = true;
	tn__place_frame(&found->place, line, (size_t)(end - line), function, name);
	return true;
}

/* "--> 12 code" */
static bool
read_arrow(struct tn_frame_reader *reader, const char *line, struct tn_frames *found)
{
	size_t i = strspn(line, "-");
	if (i == 0 || line[i] != '>')
		return false;
	for (i++; line[i] == ' ';)
		i++;
	if (!digit(line[i]))
		return false;
	if (reader->awaits_arrow)
		give(reader->partial, strlen(reader->partial), line + i, found);
	reader->awaits_arrow = false;
	tn__place_code(&found->place, line + i, strlen(line + i));
	found->place.frames = true; /* also where its path was not pasted */
	return true;
}

/* Ray names the method of another process that an error comes from: "ray::Actor.method() (pid=12, ...". */
static bool
read_remote(const char *line, struct tn_frames *found)
{
	const char *at = strstr(line, "ray::"), *end = at != NULL ? strstr(at, "() (pid=") : NULL;
	if (end == NULL || end - at > 200)
		return false;
	const char *name = end;
	while (name > at && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
		name--;
	tn__place_node(&found->place, name, (size_t)(end - name));
	return true; /* its frames follow */
}

/* "path.py:12 in name", "File path.py:12, in name", "path.py:12: in name", "path.py:12: SomeError". */
static bool
read_colon(struct tn_frame_reader *reader, const char *line, struct tn_frames *found)
{
	bool named = strncmp(line, "File ", 5) == 0;
	const char *path = named ? line + 5 : line, *colon = strstr(path, ".py:");
	if (colon == NULL)
		return false;
	colon += 3;
	size_t digits = strspn(colon + 1, "0123456789");
	const char *rest = colon + 1 + digits;
	if (digits == 0 || digits > 8 || !path_like(path, (size_t)(colon - path)))
		return false;
	if (strcmp(rest, " in") == 0) { /* a box cut the line: the name of the function follows */
		memcpy(reader->partial, path, (size_t)(colon - path));
		reader->partial[colon - path] = '\0';
		reader->awaits_function = true;
		give(path, (size_t)(colon - path), colon + 1, found);
		return true;
	}
	if (rest[strspn(rest, " |")] == '\0') {
		memcpy(reader->partial, path, (size_t)(colon - path));
		reader->partial[colon - path] = '\0';
		reader->awaits_in = true;
	}
	bool frame = strncmp(rest, " in ", 4) == 0 || strncmp(rest, ", in ", 5) == 0 || strncmp(rest, ": in ", 5) == 0 ||
	             (named && (*rest == '\0' || *rest == ',')) ||
	             (strncmp(rest, ": ", 2) == 0 && isupper((unsigned char)rest[2]) && strstr(rest, "Error") != NULL &&
	              strchr(rest + 2, ' ') == NULL);
	if (frame)
		give(path, (size_t)(colon - path), colon + 1, found);
	else if (strncmp(rest, ": ", 2) == 0 && strstr(rest, "Warning: ") != NULL && strstr(rest, "out of memory") != NULL)
		tn__place_frame(&found->place, path, (size_t)(colon - path), "", 0); /* a warning that quotes the error */
	return frame || found->place.frames;
}

/* "/usr/lib/python3/site-packages/torch/nn/modu", which a box cut: the line is kept. */
static void
keep_cut_path(struct tn_frame_reader *reader, const char *line, size_t length)
{
	while (length > 0 && strchr(" |", line[length - 1]) != NULL)
		length--;
	bool absolute = line[0] == '/' || (isalpha((unsigned char)line[0]) && strncmp(line + 1, ":\\", 2) == 0);
	reader->awaits_rest = absolute && length >= 24 && length < sizeof(reader->partial) &&
	                      memchr(line, ' ', length) == NULL && strstr(line, ".py:") == NULL;
	if (!reader->awaits_rest)
		return;
	memcpy(reader->partial, line, length);
	reader->partial[length] = '\0';
}

/* "les/module.py:1110 in forward", the rest of a path that a box cut. */
static bool
read_rest(struct tn_frame_reader *reader, const char *line, struct tn_frames *found)
{
	char joined[2 * TN_MESSAGE_CULPRIT];
	size_t kept = strlen(reader->partial), more = strlen(line);
	if (!reader->awaits_rest)
		return false;
	reader->awaits_rest = false;
	if (more >= TN_MESSAGE_CULPRIT)
		return false;
	memcpy(joined, reader->partial, kept);
	memcpy(joined + kept, line, more + 1);
	return read_colon(reader, joined, found);
}

/* TensorFlow: "[[node NAME (defined at path.py:12)]]". */
static bool
read_defined_at(const char *line, struct tn_frames *found)
{
	const char *at = strstr(line, "(defined at ");
	if (at == NULL)
		return false;
	const char *path = at + 12;
	size_t length = strcspn(path, ")");
	size_t colon = length;
	while (colon > 0 && digit(path[colon - 1]))
		colon--;
	if (colon < 2 || colon == length || path[colon - 1] != ':')
		return false;
	const char *node = strstr(line, "node ");
	if (node != NULL && node < at)
		tn__place_frame(&found->place, path, colon - 1, node + 5, strcspn(node + 5, " "));
	give(path, colon - 1, path + colon, found);
	return true;
}

/* A frame whose beginning was cut off: `site-packages/x.py", line 12, in name`. Its path is not whole, so it is
 * never the
 * culprit. */
static bool
read_cut(const char *line, struct tn_frames *found)
{
	const char *quote = strstr(line, ".py\", line ");
	const char *number = quote != NULL ? line_number_after(quote + 3) : NULL;
	if (number == NULL || !path_like(line, (size_t)(quote + 3 - line)))
		return false;
	size_t name;
	const char *function = function_after(number, &name);
	tn__place_frame(&found->place, line, (size_t)(quote + 3 - line), function, name);
	return true;
}

/* "SomeError: words", "pkg.SomeError" or "KeyboardInterrupt" at the start of a line. */
static bool
exception_line(const char *line)
{
	size_t name = 0;
	while (isalnum((unsigned char)line[name]) || line[name] == '_' || line[name] == '.')
		name++;
	if (name < 5 || (line[name] != ':' && line[name] != '\0'))
		return false;
	static const char *const ends[] = { "Error", "Exception", "Interrupt", "SystemExit" };
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t length = strlen(ends[i]);
		if (name >= length && strncmp(line + name - length, ends[i], length) == 0)
			return true;
	}
	return false;
}

/* Copies a line with the texts of its links alone, as notebooks make them of paths and numbers: "[path.py:12](address)". */
static size_t
without_links(const char *line, size_t length, char out[TN_MESSAGE_LINE + 1])
{
	size_t used = 0;
	for (size_t i = 0; i < length && used < TN_MESSAGE_LINE; i++) {
		size_t text = line[i] == '[' ? strcspn(line + i, "]") : 0;
		size_t address = text > 0 && line[i + text] == ']' && line[i + text + 1] == '(' ? strcspn(line + i + text, ")")
		                                                                                : 0;
		if (address == 0 || line[i + text + address] != ')') {
			out[used++] = line[i];
			continue;
		}
		memcpy(out + used, line + i + 1, text - 1);
		used += text - 1;
		i += text + address;
	}
	out[used] = '\0';
	return used;
}

enum tn_trace_line
tn__frame_read(struct tn_frame_reader *reader, const char *line, size_t length, struct tn_frames *found)
{
	char plain[TN_MESSAGE_LINE + 1];
	if (strstr(line, "](") != NULL && length <= TN_MESSAGE_LINE) {
		length = without_links(line, length, plain);
		line = plain;
	}
	size_t start = tn__line_content(line, length);
	const char *content = line + start;
	bool indented = start > 0 && line[start - 1] == ' ';
	bool awaits_code = reader->awaits_code;
	memset(found, 0, sizeof(*found));
	reader->awaits_code = false;
	if (read_wrapped(reader, content, found)) {
		reader->awaits_code = true;
		return TN_TRACE_FRAME;
	}
	if (read_wrapped_function(reader, content, found) ||
	    read_rest(reader, line + tn__skip_any(line, length, " |"), found))
		return TN_TRACE_FRAME;
	keep_cut_path(reader, content, length - start);
	if (*content == '\0') { /* a page may set a frame's line and its code apart */
		reader->awaits_code = awaits_code;
		return TN_TRACE_SOURCE;
	}
	if (strstr(content, "Traceback (most recent call last)") != NULL) {
		reader->awaits_arrow = false;
		read_quoted(reader, content, found); /* a whole traceback in one line, as in JSON */
		return TN_TRACE_START;
	}
	if (read_quoted(reader, content, found) || read_cut(content, found) || read_translated(content, found)) {
		reader->awaits_code = true;
		return TN_TRACE_FRAME;
	}
	if (read_cell(content, found) || read_remote(content, found) || read_colon(reader, content, found) ||
	    read_arrow(reader, content, found) || read_header(reader, content, found) || read_defined_at(content, found))
		return TN_TRACE_FRAME;
	if (!indented && exception_line(content))
		return TN_TRACE_END;
	/* also of a frame whose own line was not pasted */
	if (awaits_code || (indented && strncmp(content, "return ", 7) == 0))
		tn__place_code(&found->place, content, length - start);
	return awaits_code || indented || digit(*content) ? TN_TRACE_SOURCE : TN_TRACE_OTHER;
}
