/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of a log: colours off, the marks at its start, whose line it is, and whether it reports an error.
 *
 * Every function is linear in the line.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "message/internal_message.h"

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* ---- cleaning ---- */

/* Length of the terminal sequence at `bytes`, or 0: CSI, OSC, two-character ones, and "[0;31m" whose escape was lost.
 */
static size_t
terminal_sequence(const char *bytes, size_t count)
{
	size_t i = 1;
	if (bytes[0] == '[') {
		while (i < count && i < 14 && (digit(bytes[i]) || bytes[i] == ';'))
			i++;
		return i > 1 && i < count && bytes[i] == 'm' ? i + 1 : 0;
	}
	if (bytes[0] != '\033' || count < 2)
		return bytes[0] == '\033';
	if (bytes[1] == '[') {
		for (i = 2; i < count && i < 64 && (unsigned char)bytes[i] >= 0x20 && (unsigned char)bytes[i] < 0x40;)
			i++;
		return i < count ? i + 1 : i;
	}
	if (bytes[1] == ']') {
		for (i = 2; i < count && i < 512 && bytes[i] != '\007' && bytes[i] != '\033';)
			i++;
		return i < count && bytes[i] == '\033' && i + 1 < count ? i + 2 : i + (i < count);
	}
	return 2;
}

/* Length of an escape that was itself written out, as in JSON: \u001b[0m or \x1b[31m. */
static size_t
written_sequence(const char *bytes, size_t count)
{
	static const char *const forms[] = { "\\u001b", "\\x1b", "\\033", "\\e[" };
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		size_t length = strlen(forms[f]) - (f == 3);
		if (count > length && strncasecmp(bytes, forms[f], strlen(forms[f])) == 0 && bytes[length] == '[')
			return length + terminal_sequence(bytes + length, count - length);
	}
	return 0;
}

/* UTF-8 that only draws or separates: box drawing, blocks, no-break space, zero-width marks, the arrow of tracebacks.
 */
static size_t
drawing(const unsigned char *bytes, size_t count)
{
	if (count >= 2 && bytes[0] == 0xc2 && bytes[1] == 0xa0)
		return 2;
	if (count < 3 || bytes[0] != 0xe2)
		return count >= 3 && bytes[0] == 0xef && bytes[1] == 0xbb && bytes[2] == 0xbf ? 3 : 0;
	if (bytes[1] == 0x80 && bytes[2] >= 0x80 && bytes[2] <= 0x8f)
		return 3;
	return (bytes[1] == 0x94 || bytes[1] == 0x95 || bytes[1] == 0x96 || (bytes[1] == 0x9d && bytes[2] == 0xb1)) ? 3 : 0;
}

/* The straight quote for a typographic one (U+2018 to U+201F) at `bytes`, or 0. */
static char
straight_quote(const unsigned char *bytes, size_t count)
{
	if (count < 3 || bytes[0] != 0xe2 || bytes[1] != 0x80 || bytes[2] < 0x98 || bytes[2] > 0x9f)
		return 0;
	return bytes[2] < 0x9c ? '\'' : '"';
}

/* Length of an entity of HTML at `bytes`, and the character that it stands for; 0 for none. */
static size_t
entity(const char *bytes, size_t count, char *c)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = { { "&quot;", '"' }, { "&lt;", '<' },    { "&gt;", '>' },  { "&amp;", '&' },
		             { "&#39;", '\'' }, { "&#x27;", '\'' }, { "&#34;", '"' }, { "&nbsp;", ' ' } };
	for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
		size_t size = strlen(entities[i].name);
		if (size <= count && memcmp(bytes, entities[i].name, size) == 0) {
			*c = entities[i].c;
			return size;
		}
	}
	return 0;
}

size_t
tn__line_clean(const char *bytes, size_t count, char *out)
{
	size_t used = 0;
	for (size_t i = 0; i < count;) {
		unsigned char c = (unsigned char)bytes[i];
		size_t skip = 0;
		char quote = straight_quote((const unsigned char *)bytes + i, count - i);
		if (quote != 0) {
			out[used++] = quote;
			i += 3;
			continue;
		}
		size_t escaped = c == '&' ? entity(bytes + i, count - i, &out[used]) : 0;
		if (escaped > 0) {
			used++;
			i += escaped;
			continue;
		}
		if (c == '\033' || c == '[')
			skip = terminal_sequence(bytes + i, count - i);
		else if (c == '\\')
			skip = written_sequence(bytes + i, count - i);
		else if (c >= 0xc2)
			skip = drawing((const unsigned char *)bytes + i, count - i);
		if (skip > 0) {
			if (c >= 0xc2)
				out[used++] = ' ';
			i += skip;
			continue;
		}
		if (c == '\t')
			out[used++] = ' ';
		else if (c >= 0x20 && c != 0x7f)
			out[used++] = (char)c;
		i++;
	}
	while (used > 0 && out[used - 1] == ' ')
		used--;
	out[used] = '\0';
	return used;
}

/* ---- searching ---- */

#define MOST_WORDS 48 /* of a list that is looked for together */

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Whether the word, lower case, stands at `text`. */
static bool
stands_at(const char *text, size_t length, const char *word, size_t size)
{
	if (size > length)
		return false;
	for (size_t i = 0; i < size; i++)
		if (lower(text[i]) != word[i])
			return false;
	return true;
}

const char *
tn__find(const char *text, size_t length, const char *word)
{
	size_t size = strlen(word);
	for (size_t i = 0; i + size <= length; i++)
		if (stands_at(text + i, length - i, word, size))
			return text + i;
	return NULL;
}

/* The words of a list, by their first letters. */
struct words {
	const char *text[MOST_WORDS + 1];
	uint8_t size[MOST_WORDS + 1], next[MOST_WORDS + 1]; /* 0: no other word begins so */
	uint8_t head[256];
};

static void
read_words(const char *list, struct words *words)
{
	uint8_t count = 0;
	memset(words->head, 0, sizeof(words->head));
	while (*list != '\0' && count < MOST_WORDS) {
		size_t size = strcspn(list, "|");
		unsigned char first = (unsigned char)list[0];
		words->text[++count] = list;
		words->size[count] = (uint8_t)size;
		words->next[count] = words->head[first];
		words->head[first] = count;
		list += size + (list[size] == '|');
	}
	assert(*list == '\0');
}

bool
tn__has_any(const char *text, size_t length, const char *list)
{
	struct words words;
	read_words(list, &words);
	for (size_t i = 0; i < length; i++)
		for (uint8_t k = words.head[(unsigned char)lower(text[i])]; k != 0; k = words.next[k])
			if (stands_at(text + i, length - i, words.text[k], words.size[k]))
				return true;
	return false;
}

/* ---- marks at the start ---- */

/* Length of "[rank3]:", "(EngineCore pid=194)", "[1,3]<stderr>:" or "trainer-1  |" at `line`, or 0. */
static size_t
owner_mark(const char *line, size_t length)
{
	size_t i = 0;
	if (length > 0 && (line[0] == '[' || line[0] == '(')) {
		char close = line[0] == '[' ? ']' : ')';
		while (i < length && i < 96 && line[i] != close)
			i++;
		if (i >= length || line[i] != close)
			return 0;
		bool owner = tn__find(line, i, "rank") != NULL || tn__find(line, i, "pid=") != NULL;
		i++;
		if (!owner && length - i > 4 && (strncmp(line + i, "<std", 4) != 0))
			return 0;
		if (!owner && length - i <= 4)
			return 0;
		while (i < length && line[i] != ' ' && line[i] != ':' && line[i - 1] != '>')
			i++;
		return i + (i < length && line[i] == ':');
	}
	while (i < length && i < 48 && (word_char(line[i]) || line[i] == '-' || line[i] == '.'))
		i++;
	size_t name = i;
	while (i < length && line[i] == ' ')
		i++;
	return name > 0 && i > name && i < length && line[i] == '|' ? i + 1 : 0;
}

/* Length of a time or date at `line`, or 0: digits with - : . , / T and Z between, two separators at least. */
static size_t
time_mark(const char *line, size_t length)
{
	size_t i = 0, separators = 0;
	if (length == 0 || !digit(line[0]))
		return 0;
	for (; i < length && i < 36; i++) {
		bool separator = strchr("-:.,/+", line[i]) != NULL;
		bool clock = i + 3 < length && digit(line[i + 1]) && digit(line[i + 2]) && line[i + 3] == ':';
		bool between = line[i] == 'T' || line[i] == 'Z' || (line[i] == ' ' && clock);
		if (!digit(line[i]) && !separator && !between)
			break;
		separators += line[i] == '-' || line[i] == ':' || line[i] == '/';
	}
	if (i < length && line[i] != ' ' && line[i] != ']')
		return 0;
	bool slurm = separators == 1 && line[i - 1] == ':' && i <= 5;
	return separators >= 2 || slurm ? i : 0;
}

/* Length of "[core.py:99]" or "[2025-05-05 10:11:12]" (a bracket with a digit in it), or 0. */
static size_t
bracket_mark(const char *line, size_t length)
{
	size_t i = 1;
	bool digits = false;
	if (length < 2 || line[0] != '[' || line[1] == '[')
		return 0;
	for (; i < length && i < 64 && line[i] != ']'; i++)
		digits |= digit(line[i]);
	if (i >= length || line[i] != ']' || !digits)
		return 0;
	i++;
	return i + (i < length && line[i] == ':');
}

/* Length of "ERROR ", "- root - ERROR - " and the like, or 0. */
static size_t
level_mark(const char *line, size_t length)
{
	static const char *const levels[] = { "ERROR", "WARNING", "WARN", "INFO", "CRITICAL", "FATAL", "DEBUG" };
	size_t start = 0;
	if (length > 2 && line[0] == '-' && line[1] == ' ') { /* "- name - LEVEL -" */
		size_t i = 2;
		while (i < length && i < 64 && (word_char(line[i]) || line[i] == '.'))
			i++;
		if (i + 3 >= length || strncmp(line + i, " - ", 3) != 0)
			return 0;
		start = i + 3;
	}
	for (size_t k = 0; k < sizeof(levels) / sizeof(levels[0]); k++) {
		size_t size = strlen(levels[k]);
		if (length > start + size && strncmp(line + start, levels[k], size) == 0 && line[start + size] == ' ')
			return start + size + (length > start + size + 2 && line[start + size + 1] == '-' ? 3 : 1);
	}
	return 0;
}

size_t
tn__line_content(const char *line, size_t length)
{
	size_t i = 0;
	for (;;) {
		size_t before = i;
		while (i < length && (line[i] == ' ' || line[i] == '#' || line[i] == '>' || line[i] == '|' || line[i] == '*'))
			i++;
		if (i + 1 < length && line[i] == '/' && line[i + 1] == '/')
			i += 2;
		i += owner_mark(line + i, length - i);
		i += time_mark(line + i, length - i);
		i += bracket_mark(line + i, length - i);
		i += level_mark(line + i, length - i);
		if (i == before)
			return i;
	}
}

/* ---- ranks and owners ---- */

/* Whether "rank" at `at` is the rank in the whole job, not one within a node or a parallel group. */
static bool
whole_job_rank(const char *line, size_t at)
{
	if (at == 0)
		return true;
	size_t i = at;
	if (line[i - 1] == '_' || line[i - 1] == '-' || line[i - 1] == ' ')
		i--;
	else if (word_char(line[i - 1]))
		return false;
	size_t end = i;
	while (i > 0 && isalpha((unsigned char)line[i - 1]))
		i--;
	static const char *const others[] = {
		"local", "node", "tp", "dp", "pp", "ep", "cp", "group", "attn", "sp", "lora"
	};
	for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
		if (end - i == strlen(others[k]) && strncasecmp(line + i, others[k], end - i) == 0)
			return false;
	return end == at || line[end] == ' ' || (end - i == 6 && strncasecmp(line + i, "global", 6) == 0) || end == i;
}

static int64_t
number_at(const char *line, size_t length, size_t i, size_t *end)
{
	int64_t value = 0;
	size_t start = i;
	for (; i < length && digit(line[i]) && i - start < 7; i++)
		value = value * 10 + (line[i] - '0');
	*end = i;
	return i > start && i - start < 7 ? value : -1;
}

int64_t
tn__line_rank(const char *line, size_t length)
{
	size_t end;
	if (length > 6 && line[0] == '[' && digit(line[1])) { /* mpirun's tag: [job,rank]<stderr> */
		number_at(line, length, 1, &end);
		int64_t rank = end < length && line[end] == ',' ? number_at(line, length, end + 1, &end) : -1;
		if (rank >= 0 && length - end > 5 && strncmp(line + end, "]<std", 5) == 0)
			return rank;
	}
	size_t limit = length < 2048 ? length : 2048;
	for (const char *found = line; (found = tn__find(found, limit - (size_t)(found - line), "rank")) != NULL; found++) {
		size_t at = (size_t)(found - line), i = at + 4;
		for (int skip = 0; i < limit && skip < 2 && strchr(" =:[#", line[i]) != NULL; skip++)
			i++;
		int64_t rank = number_at(line, limit, i, &end);
		if (rank >= 0 &&
		    !(end < length && (word_char(line[end]) || line[end] == '.') && end + 1 < length &&
		      word_char(line[end + 1])) &&
		    whole_job_rank(line, at))
			return rank;
	}
	return -1;
}

uint64_t
tn__line_owner(const char *line, size_t length, int64_t rank)
{
	if (rank >= 0)
		return (uint64_t)rank + 1;
	size_t limit = length < 160 ? length : 160, end;
	const char *pid = tn__find(line, limit, "pid=");
	if (pid == NULL || memchr(line, '(', (size_t)(pid - line)) == NULL)
		return 0;
	if (tn__find(line, (size_t)(pid - line), "ray::") != NULL) /* whose error is told here, not who tells it */
		return 0;
	int64_t value = number_at(line, length, (size_t)(pid - line) + 4, &end);
	return value < 0 ? 0 : (uint64_t)value + (UINT64_C(1) << 32);
}
