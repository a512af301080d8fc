/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a phrase stands where a program puts an error, or where a person says that one came.
 *
 * Programs print "HEAD: phrase", "file.cc:12] phrase", "... failed: phrase" or the phrase alone, behind the marks of a log.
 * Nothing else leads to it. In a sentence a phrase counts only if the sentence says that it happened, to whoever writes.
 * Every function is linear in its line.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

/* ---- what a program prints ---- */

/* Where the phrase starts with the words and the name that belong to it: "CUDA ", "torch.cuda.", "RMM_ERROR_". */
static size_t
whole_phrase(const char *line, size_t start)
{
	static const char own[] =
		" cuda gpu hip rocm xpu npu mps device vram host system process memory ran is was went run runs ";
	char word[24];
	for (;;) {
		size_t before = start;
		while (start > 0 && (tn__name_char(line[start - 1]) || line[start - 1] == '.' ||
		                     (line[start - 1] == ':' && start > 1 && line[start - 2] == ':') ||
		                     (line[start - 1] == ':' && line[start] == ':')))
			start--;
		size_t end = start;
		while (end > 0 && line[end - 1] == ' ')
			end--;
		size_t size = end < start ? tn__word_ending(line, end, word) : 0;
		if (size > 0 && strstr(own, word) != NULL)
			start = end - size;
		size_t name = end;
		while (name > 0 && tn__name_char(line[name - 1])) /* "alloc_req_slots runs ..." */
			name--;
		if (end < start && memchr(line + name, '_', end - name) != NULL && strncmp(line + start, "ru", 2) == 0)
			start = name;
		if (start == before)
			return start;
	}
}

/* Quotes, marks of bold text and opening brackets before the phrase, and blanks. */
static size_t
unwrapped(const char *line, size_t start)
{
	while (start > 0 && strchr(" \"'`*(<", line[start - 1]) != NULL)
		start--;
	return start;
}

/* What opens a line and is no part of a text: quote marks, a heading's. */
static size_t
margin(const char *line, size_t length)
{
	return tn__skip_any(line, length, " #>*|\"'`(");
}

/* Whether the line has marks of a log: a time, a rank or a level opens it, or it has a level in brackets. */
static bool
logged(const char *line, size_t length)
{
	size_t content = tn__line_content(line, length), plain = 0;
	while (plain < content && strchr(" #>*|/", line[plain]) != NULL)
		plain++;
	if (content > plain)
		return true;
	return tn__has_any(line, length, "[fatal]|[error]|[err]|[critical]|[warning]|[warn]");
}

/* Words that a program's error follows. */
static bool
names_failure(const char *word)
{
	static const char words[] = " error errors exception failed failure fatal warning warn killed aborted caught "
								"abort panicked alloc malloc cudamalloc allocate ";
	size_t size = strlen(word);
	return strstr(words, word) != NULL || (size > 6 && strcmp(word + size - 6, "error ") == 0) ||
	       (size > 10 && strcmp(word + size - 10, "exception ") == 0);
}

/* A word that a sentence goes on behind: "an error when CUDA is out of memory". */
static bool
leads_on(const char *line, size_t at)
{
	char word[24];
	return tn__word_ending(line, at, word) > 0 &&
	       strstr(" when if a an the of for to on in no any avoid prevent against without ", word) != NULL;
}

/* "fix: ...", as commits begin */
static bool
names_change(const char *word)
{
	return strstr(
			   " fix fixes fixed feat feature docs doc chore refactor perf test tests resolve resolves closes todo note "
			   "tip example faq runbook playbook guide tutorial alert ",
			   word) != NULL;
}

/* Where the head stops before a phrase at `at`: "RuntimeError: " */
static size_t
unwrapped_head(const char *line, size_t at)
{
	while (at > 0 && strchr(": ", line[at - 1]) != NULL)
		at--;
	return at;
}

static bool
printed(const char *line, size_t length, size_t start)
{
	size_t first = whole_phrase(line, start), at = unwrapped(line, first);
	char word[24];
	if (at <= tn__line_content(line, length) || at <= margin(line, length))
		return true;
	unsigned char before = (unsigned char)line[at - 1];
	if (at > 0 && line[at - 1] == ':' && tn__word_ending(line, at - 1, word) > 0 && names_change(word))
		return false;
	if (first > 1 && line[first - 1] == ' ' && line[first - 2] == ' ') /* a column of a table */
		return true;
	if (before == '=' && at > 2 && line[at - 2] == ' ' && line[at] == ' ') /* code gives it to a name */
		return false;
	bool head = tn__word_ending(line, unwrapped_head(line, at), word) > 0 && names_failure(word);
	if (!head && tn__line_prose_before(line, start))
		return false;
	if (first > 0 && line[first - 1] == '(' && isdigit(before)) /* "failed: 2 (out of memory)" */
		return true;
	bool bullet = before == '-' && unwrapped(line, at - 1) == 0;
	if ((strchr(":=]|>-),;}", before) != NULL && !bullet) || before >= 0x80)
		return true;
	bool sentence = strchr(".!?", before) != NULL; /* the one before has ended */
	return sentence || head || (logged(line, length) && !leads_on(line, at));
}

/* "OOMKilled: false" */
static bool
denied(const char *value)
{
	value += *value == '"';
	return strncasecmp(value, "false", 5) == 0 ||
	       (strncasecmp(value, "no", 2) == 0 && value[2] != ' ' && !isalnum((unsigned char)value[2])) ||
	       strncmp(value, "null", 4) == 0 || (value[0] == '0' && !isalnum((unsigned char)value[1]));
}

/* What may follow: nothing, a stop, a figure, a name, or a word that says when or where. A verb makes the phrase a
 * sentence's subject: "CUDA out of memory occurs when". */
static bool
ends_as_printed(const char *line, size_t length, size_t end)
{
	static const char when_or_where[] =
		" at in on while during when by for to trying allocating from after with error exception "
		"and or but as within of code even occurred encountered "
		"raised thrown happened left available remaining ";
	char word[24];
	while (end < length && tn__name_char(line[end]))
		end++;
	while (end < length && strchr("\"'`*)>", line[end]) != NULL)
		end++;
	if (end + 2 < length && strchr(":=", line[end]) != NULL && denied(line + end + 1 + (line[end + 1] == ' ')))
		return false;
	if (end >= length || line[end] != ' ')
		return true;
	bool takes_object = tn__word_ending(line, end, word) > 0 && strncmp(word, " alloc", 6) == 0;
	while (end < length && line[end] == ' ')
		end++;
	size_t last = end;
	while (last < length && isalpha((unsigned char)line[last]))
		last++;
	if (takes_object || last == end || !islower((unsigned char)line[end]) ||
	    (last < length && line[last] == '=')) /* device=0 */
		return true;
	tn__word_ending(line, last, word);
	return strstr(when_or_where, word) != NULL;
}

/* ---- what a person tells ---- */

/* A sentence that asks or advises, up to the head of an error in it: "How to fix RuntimeError: ...". Not what a colon
 * shows: "help me with this: RuntimeError: ...". */
static bool
advised(const char *line, size_t length, size_t start)
{
	size_t head = unwrapped_head(line, start);
	if (tn__has_any(line, head, "if you |if you've |you've hit|you've seen|you'll see|you will see|you've probably") &&
	    !tn__has_any(line, length, " i | my |i'm "))
		return true;
	while (head < start && head > 0 && (tn__name_char(line[head - 1]) || line[head - 1] == '.'))
		head--;
	head = unwrapped(line, head);
	if (head == 0 || line[head - 1] == ':' || logged(line, length))
		return false;
	struct tn_heard heard = tn__hear(line, tn__sentence_start(line, start), head);
	return heard.advised && !heard.alone && !heard.came;
}

/* A heading below a title: "### CUDA out of memory". */
static bool
section(const char *line, size_t length)
{
	size_t marks = strspn(line, "#");
	return marks >= 2 && marks <= 6 && marks < length && line[marks] == ' ';
}

/* "...: this can be addressed by ...", and nobody speaks of himself. */
static bool
mended(const char *line, size_t length, size_t start)
{
	return tn__has_any(
			   line + start, length - start,
			   "can be addressed|can be fixed|can be solved|can be resolved|can be avoided|consider reducing") &&
	       !tn__has_any(line, length, " i | my ");
}

/* "Q: I get ...", "Step 1: Confirm ..." */
static bool
answered(const char *line, size_t length)
{
	size_t i = margin(line, length);
	if (strncasecmp(line + i, "step ", 5) == 0 && isdigit((unsigned char)line[i + 5]))
		return true;
	return length > i + 2 && line[i] == 'Q' &&
	       (line[i + 1] == ':' || (isdigit((unsigned char)line[i + 1]) && strchr(":.", line[i + 2]) != NULL));
}

/* "(e.g. MemoryError)", a code that is explained, "crashes like `out of memory`", "such as MemoryError", "i.e. CUDA out of memory" */
static bool
for_instance(const char *line, size_t start)
{
	size_t at = unwrapped(line, whole_phrase(line, start));
	char word[24];
	if (at > 3 && strncmp(line + at - 2, "`:", 2) == 0 && isupper((unsigned char)line[at - 3])) /* `ENOMEM`: ... */
		return true;
	if (at > 0 && line[at - 1] != ':' && tn__word_ending(line, at, word) > 0 && strcmp(word, " like ") == 0)
		return true;
	return at > 3 && (tn__find(line + at - 4, 4, "e.g.") != NULL || tn__find(line + at - 4, 4, "i.e.") != NULL ||
	                  (at > 6 && tn__find(line + at - 7, 7, "such as") != NULL));
}

enum tn_place_of_phrase
tn__line_placed(const char *line, size_t length, size_t start, size_t end)
{
	if (section(line, length) || for_instance(line, start) || tn__title_wishes(line, length, start, end) ||
	    answered(line, length) || mended(line, length, start))
		return TN_PHRASE_NOWHERE;
	if (tn__line_told(line, length, start, end))
		return TN_PHRASE_TOLD;
	bool found = printed(line, length, start) && ends_as_printed(line, length, end);
	return found && !advised(line, length, start) ? TN_PHRASE_PRINTED : TN_PHRASE_NOWHERE;
}
