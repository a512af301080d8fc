/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a phrase that errors use stands in something that somebody wrote about such errors: a string of a program, a
 * template, a line that a search found, a row of a table, a comment.
 *
 * These signs are of the form of a line and hold for every phrase. All but tn__line_is_source give way to figures: a
 * person quotes a real error, too. Every function is linear in its line.
 */
#include <ctype.h>
#include <string.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

/* ---- strings of programs ---- */

/* A string in quotes around a phrase. */
struct literal {
	size_t open;  /* its first quote, or the letter before it: f"..." */
	size_t first; /* of what it holds */
	size_t close; /* its last quote; the length of the line where it goes on in the next one */
};

/* A quote that opens: no word before it, but for a letter that says what kind of string it is. */
static bool
opens(const char *line, size_t quote, size_t *open)
{
	*open = quote;
	if (quote > 0 && strchr("fFrRbBuU", line[quote - 1]) != NULL && (quote == 1 || !tn__name_char(line[quote - 2])))
		*open = quote - 1;
	return *open < quote || quote == 0 ||
	       !(tn__name_char(line[quote - 1]) || strchr(".,:;!?\\)", line[quote - 1]) != NULL);
}

/* Whether a string is open at `end`: a quote there closes it. */
static bool
within(const char *line, size_t end)
{
	bool open = false;
	for (size_t i = 0; i < end; i++)
		open ^= line[i] == '"' && (i == 0 || line[i - 1] != '\\');
	return open;
}

static bool
literal_around(const char *line, size_t length, size_t start, size_t end, struct literal *found)
{
	size_t quote = start;
	while (quote > 0 && start - quote < 200) {
		quote--;
		if (line[quote] == '"' && within(line, quote))
			return false;
		if ((line[quote] == '"' || line[quote] == '\'') && opens(line, quote, &found->open))
			break;
		if (line[quote] == '"') /* closes another one */
			return false;
	}
	if (line[quote] != '"' && line[quote] != '\'')
		return false;
	found->first = quote + 1;
	for (found->close = end; found->close < length; found->close++)
		if (line[found->close] == line[quote] && line[found->close - 1] != '\\')
			break;
	return true;
}

/* Where the text before `end` stops that is not blank. */
static size_t
trimmed(const char *line, size_t end)
{
	while (end > 0 && line[end - 1] == ' ')
		end--;
	return end;
}

/* Whether the text before `end` ends with one of the words, separated by '|'. */
static bool
ends_with(const char *line, size_t end, const char *words)
{
	while (*words != '\0') {
		size_t size = strcspn(words, "|");
		if (size <= end && strncmp(line + end - size, words, size) == 0 &&
		    (!tn__name_char(words[0]) || size == end || !tn__name_char(line[end - size - 1])))
			return true;
		words += size + (words[size] == '|');
	}
	return false;
}

/* The parenthesis that is open at `end`, or `end`. */
static size_t
open_parenthesis(const char *line, size_t end)
{
	size_t closed = 0;
	for (size_t i = end; i > 0; i--) {
		closed += line[i - 1] == ')';
		if (line[i - 1] == '(' && closed-- == 0)
			return i - 1;
	}
	return end;
}

/* A call of a function or a macro; not what a program prints of an object: OutOfMemoryError("..."), Cuda("..."). */
static bool
called(const char *line, size_t end)
{
	size_t open = open_parenthesis(line, end), i = open;
	if (open == end)
		return false;
	while (i > 0 && (tn__name_char(line[i - 1]) || strchr(".:>!", line[i - 1]) != NULL))
		i--;
	if (i == open)
		return ends_with(line, trimmed(line, open), "if|while|return|switch");
	size_t last = open;
	while (last > i && tn__name_char(line[last - 1]))
		last--;
	bool lower = false;
	for (size_t k = last; k < open; k++)
		lower |= islower((unsigned char)line[k]) != 0;
	return last < open && (islower((unsigned char)line[last]) || line[last] == '_' || !lower);
}

/* A string that is all of its line but for what code puts behind one. A notebook's file holds an error's lines so,
 * too, with their line ends. */
static bool
element(const char *line, size_t length, const struct literal *literal)
{
	size_t i = tn__line_content(line, length);
	i += i < length && (line[i] == '+' || line[i] == '-');
	while (i < length && line[i] == ' ')
		i++;
	if (i != literal->open || literal->close >= length)
		return false;
	bool written_end = literal->close > 1 && line[literal->close - 2] == '\\' && line[literal->close - 1] == 'n';
	size_t name = literal->first;
	while (name < literal->close && (tn__name_char(line[name]) || line[name] == '.'))
		name++;
	bool named = name < literal->close && line[name] == ':' && name > literal->first + 5 &&
	             isupper((unsigned char)line[name - 5]) && ends_with(line, name, "Error");
	const char *behind = line + literal->close + 1;
	return !written_end && !named && (*behind == ',' || *behind == ';' || *behind == ')');
}

/* "... in str(error)", "... in e.args:", not "... in the log". */
static bool
looked_for(const char *behind)
{
	if (strncmp(behind, " in ", 4) != 0)
		return false;
	size_t i = 4;
	while (tn__name_char(behind[i]))
		i++;
	return i > 4 && (behind[i] == '(' || behind[i] == ':' || behind[i] == ')' ||
	                 (behind[i] == '.' && tn__name_char(behind[i + 1])));
}

static bool
code_string(const char *line, size_t length, const struct literal *literal)
{
	size_t before = trimmed(line, literal->open);
	if (literal->close < length && looked_for(line + literal->close + 1))
		return true;
	if (element(line, length, literal))
		return true;
	if (before == 0)
		return false;
	return ends_with(line, before, "==|!=|<<|return|yield|case|elif|echo|printf|grep|print") ||
	       (before < literal->open && before > 1 && line[before - 1] == '=' && line[before - 2] == ' ') ||
	       (strchr("(,", line[before - 1]) != NULL && called(line, before));
}

bool
tn__line_is_source(const char *line, size_t length, size_t start, size_t end)
{
	struct literal literal;
	if (!literal_around(line, length, start, end, &literal))
		return false;
	size_t before = trimmed(line, literal.open);
	if (literal.close < length && looked_for(line + literal.close + 1))
		return true;
	if (ends_with(line, before, "match=|side_effect="))
		return true;
	if (before > 10 &&
	    (strncmp(line + before - 6, "Error(", 6) == 0 || strncmp(line + before - 10, "Exception(", 10) == 0) &&
	    literal.close + 2 < length &&
	    strncmp(line + literal.close + 1, "),", 2) == 0) /* one of several that a test tries */
		return true;
	return before > 0 && strchr("(,", line[before - 1]) != NULL && open_parenthesis(line, before) < before &&
	       tn__has_any(line, before, "raise |throw |assert|raises(|expect(|.tothrow(|panic!(|bail!(");
}

/* ---- forms of lines ---- */

/* A place that a program would fill: "%s", "%.2f", "{size}", "${size}", "XXXX bytes", "(...)". */
static bool
template(const char *line, size_t length)
{
	for (size_t i = 0; i + 1 < length; i++) {
		size_t k = i + 1;
		if (line[i] == '%' && (i == 0 || !isalnum((unsigned char)line[i - 1]))) {
			while (k < length && strchr("0123456789.lhz", line[k]) != NULL)
				k++;
			if (k < length && strchr("sdiufgx", line[k]) != NULL && (k + 1 == length || !tn__name_char(line[k + 1])))
				return true;
		}
		if (line[i] == '{' && isalpha((unsigned char)line[k]) && (i == 0 || line[i - 1] != '{')) {
			while (k < length && (tn__name_char(line[k]) || line[k] == '.'))
				k++;
			if (k + 1 < length && line[k] == ':' && strchr(".,<>0123456789", line[k + 1]) != NULL)
				while (k < length && strchr(":.,<>0123456789fdgs", line[k]) != NULL)
					k++;
			if (k < length && line[k] == '}' && (k + 1 == length || line[k + 1] != '}'))
				return true;
		}
		if (line[i] == '(' && strncmp(line + i, "(...)", 5) == 0)
			return true;
		if (strncmp(line + i, "X.X", 3) == 0 && (i == 0 || !tn__name_char(line[i - 1])))
			return true;
		if (strncmp(line + i, "XXX", 3) == 0 && (i == 0 || !tn__name_char(line[i - 1])))
			return true;
		if (strchr("XYN", line[i]) != NULL && i > 0 && line[i - 1] == ' ' &&
		    (strncmp(line + k, " GiB", 4) == 0 || strncmp(line + k, " MiB", 4) == 0 ||
		     strncmp(line + k, " bytes", 6) == 0))
			return true;
	}
	return false;
}

/* Length of "src/guard.py:12:" where it opens a line that a search found, or 0. Compilers put a blank behind it. */
static size_t
search_mark(const char *line, size_t length)
{
	size_t i = 0, dot = 0;
	while (i < length && tn__name_char(line[i])) /* the revision that git searched */
		i++;
	i = i > 0 && i < length && line[i] == ':' ? i + 1 : 0;
	for (; i < length && (tn__name_char(line[i]) || strchr("./-+", line[i]) != NULL); i++)
		dot = line[i] == '.' ? i : dot;
	size_t name = i;
	if (dot == 0 || name - dot < 2 || name - dot > 6 || name >= length || line[name] != ':')
		return 0;
	for (i = name + 1; i < length && isdigit((unsigned char)line[i]);)
		i++;
	return i > name + 1 && i < length && (line[i] == ':' || line[i] == '-') ? i + 1 : 0;
}

bool
tn__line_found(const char *line, size_t length)
{
	size_t i = search_mark(line, length);
	return i > 0 && i < length && (line[i] != ' ' || (i + 1 < length && strchr(" *#/-\"", line[i + 1]) != NULL));
}

static bool
search_hit(const char *line, size_t length)
{
	size_t i = search_mark(line, length);
	if (i == 0 || i >= length)
		return false;
	bool blanks = i + 1 < length && line[i] == ' ' && strchr(" *#/-\"", line[i + 1]) != NULL;
	return blanks || islower((unsigned char)line[i]) || strchr("\"'#*-|/<+", line[i]) != NULL;
}

/* A row of a table with more cells than this one. */
static bool
table_row(const char *line, size_t length)
{
	size_t i = 0, cells = 0;
	while (i < length && line[i] == ' ')
		i++;
	if (i >= length || line[i] != '|')
		return false;
	for (; i < length; i++)
		cells += line[i] == '|' && (i == 0 || line[i - 1] == ' ' || i + 1 == length || line[i + 1] == ' ');
	return cells > 2 && line[length - 1] == '|' && tn__find(line, length, "| error |") == NULL &&
	       tn__find(line, length, "| critical |") == NULL;
}

/* A comment behind code. */
static bool
commented(const char *line, size_t start)
{
	for (size_t i = 3; i + 2 < start; i++) {
		bool mark = line[i] == ' ' && ((line[i + 1] == '#' && line[i + 2] == ' ') ||
		                               (line[i + 1] == '/' && line[i + 2] == '/' && line[i + 3] == ' '));
		size_t code = trimmed(line, i);
		if (mark && code > 0 && strchr(");,]}({", line[code - 1]) != NULL)
			return true;
	}
	return false;
}

/* Whether the phrase is all that a quote holds, but for the program's name: "slurmstepd: error: ...". */
static bool
quote_holds(const char *line, const struct literal *literal, size_t start)
{
	return literal->first == start || (start > literal->first + 8 && strncmp(line + start - 7, "error: ", 7) == 0);
}

/* A quote that a sentence of nobody's own goes on behind: `you see an "Out of memory: Killed process" line in dmesg`. */
static bool
amid_sentence(const char *line, size_t length, const struct literal *literal)
{
	if (tn__line_prose_before(line, literal->open))
		return true;
	size_t after = literal->close + 1;
	if (strncmp(line + after, " Error", 6) == 0) /* a heading's spelling */
		return true;
	return literal->open > 1 && line[literal->open - 1] == ' ' && islower((unsigned char)line[literal->open - 2]) &&
	       after + 1 < length && line[after] == ' ' && islower((unsigned char)line[after + 1]) &&
	       tn__has_any(line, literal->open, "you |you'll |your |the |an ") &&
	       !tn__has_any(line, length, " i | my |i'm |i've | we | our ");
}

/* "log something like `memory cgroup out of memory: process killed`" */
static bool
likened(const char *line, size_t start)
{
	size_t mark = start;
	while (mark > 0 && start - mark < 60 && line[mark] != '`')
		mark--;
	return mark > 5 && line[mark] == '`' &&
	       ends_with(line, trimmed(line, mark), "like|starts with|contains|containing");
}

bool
tn__line_speaks(const char *line, size_t length, size_t start, size_t end)
{
	struct literal literal;
	if (literal_around(line, length, start, end, &literal) &&
	    (ends_with(line, trimmed(line, literal.open),
	               "like|starts with|starting with|begins with|contains|containing|matching") ||
	     code_string(line, length, &literal) ||
	     (literal.close >= end && literal.close <= end + 1 && quote_holds(line, &literal, start) &&
	      amid_sentence(line, length, &literal) && !tn__line_told(line, length, start, end))))
		return true;
	if (line[tn__skip_any(line, length, " ")] == '{' && line[tn__skip_any(line, length, " ") + 1] == '"' &&
	    length > 2 && strncmp(line + length - 2, "},", 2) == 0 &&
	    memchr(line, ':', start) == NULL) /* a row of a table of source */
		return true;
	if (likened(line, start))
		return true;
	return template(line, length) || search_hit(line, length) || table_row(line, length) || commented(line, start);
}

/* ---- the lines around ---- */

bool
tn__line_in_change(const char *line, size_t length, bool before)
{
	if (strncmp(line, "@@ -", 4) == 0 || strncmp(line, "diff --git ", 11) == 0)
		return true;
	return before && (length == 0 || strchr("+- \\", line[0]) != NULL || strncmp(line, "index ", 6) == 0);
}

static bool
leads_to_example(const char *line, size_t length)
{
	return length > 0 && line[length - 1] == ':' &&
	       tn__has_any(
			   line, length,
			   "instead of:|such as:|such as this:|example errors|if you see|if you get|when you see|you may see|you may get|"
			   "you might see|you might get|you may encounter|you might encounter|users may|users might|"
			   "would look like|will look like|to look for|should now|would print|will print|a typical |looks like in|look like in");
}

/* "If you get this error ..." */
static bool
teaches_example(const char *line, size_t length)
{
	size_t i = tn__line_content(line, length);
	return tn__find(line + i, length - i < 7 ? length - i : 7, "if you ") != NULL &&
	       tn__find(line, length, "error") != NULL && tn__find(line, length, " i ") == NULL;
}

enum tn_example
tn__line_example(const char *line, size_t length, enum tn_example before)
{
	bool block = before == TN_EXAMPLE_BLOCK || before == TN_EXAMPLE_TAUGHT_BLOCK;
	if (length == 0)
		return before;
	if (strncmp(line, "```", 3) == 0)
		return block || before == TN_EXAMPLE_NONE ? TN_EXAMPLE_NONE
		       : before == TN_EXAMPLE_NEXT        ? TN_EXAMPLE_BLOCK
		                                          : TN_EXAMPLE_TAUGHT_BLOCK;
	if (block)
		return before;
	return teaches_example(line, length)    ? TN_EXAMPLE_TAUGHT
	       : leads_to_example(line, length) ? TN_EXAMPLE_NEXT
	                                        : TN_EXAMPLE_NONE;
}
