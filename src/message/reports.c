/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a phrase that errors use stands in a report of one, or in code or prose that speaks of such errors.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "message/internal_message.h"

/* Words of programs, not of reports. */
static const char code_words[] = "except |raise |raises(|assert| in "
								 "str(|print(|printf|logger.|logging.|warnings.warn|warn(|def |catch |catch(|throw |"
								 "return |match=|import |expect(|if \"|if '|if (|elif |::test_|echo |grep |compile(|"
								 "regex";

/* Prose that speaks of errors that may come. */
static const char prose_words[] = "to avoid |in order to |avoid the |in case of |if you see |if you get |you would "
								  "get |you see the |you may get |"
								  "you might get |troubleshooting|known limitation|known issue|faq";

/* The last word before `start`, lower case. */
static void
word_before(const char *line, size_t start, char word[16])
{
	size_t end = start, i, used = 0;
	while (end > 0 && (line[end - 1] == ' ' || line[end - 1] == '"' || line[end - 1] == '\'' || line[end - 1] == '`'))
		end--;
	for (i = end; i > 0 && isalpha((unsigned char)line[i - 1]);)
		i--;
	for (; i < end && used < 15; i++)
		word[used++] = (char)tolower((unsigned char)line[i]);
	word[used] = '\0';
}

/* Prose speaks of errors with these words before them. */
static bool
prose_before(const char *line, size_t start)
{
	static const char words[] =
		" see get gets getting avoid avoids prevent prevents fix fixes fixed handle handles catch catches if "
		"when cause causes for of with a an the any your may might no not without into to against hit hits "
		"runs run longer never this that or and like via on by is are be can will would could should about from "
		"called raises raise throws throw possible potential common solve solving debug reduce ";
	char word[16], padded[20];
	word_before(line, start, word);
	if (word[0] == '\0')
		return false;
	padded[0] = ' ';
	strcpy(padded + 1, word);
	strcat(padded, " ");
	return strstr(words, padded) != NULL;
}

/* A line that is a string of a program: f"...", r'...'. */
static bool
string_line(const char *line, size_t start)
{
	size_t i = tn__line_content(line, start);
	if (i + 2 > start || strchr("fFrRbB", line[i]) == NULL)
		return false;
	i += line[i + 1] == '\\'; /* quoted again */
	return line[i + 1] == '"' || line[i + 1] == '\'';
}

/* A string that code gives to a name: `text = "..."`. Logs write msg="..." without blanks. */
static bool
assigned(const char *line, size_t start)
{
	size_t quote = start;
	while (quote > 0 && start - quote < 120 && line[quote - 1] != '"' && line[quote - 1] != '\'')
		quote--;
	if (quote < 2 || (line[quote - 1] != '"' && line[quote - 1] != '\''))
		return false;
	quote--;
	if (quote > 0 && strchr("fFrRbB", line[quote - 1]) != NULL)
		quote--;
	return quote > 3 && strncmp(line + quote - 3, " = ", 3) == 0;
}

/* An element of a list in code: the string is all of the line, but for a comma and a comment. */
static bool
listed(const char *line, size_t length, size_t end)
{
	const char *comma = tn__find(line + end, length - end, "\",");
	size_t i = comma != NULL ? (size_t)(comma - line) + 2 : length;
	while (i < length && line[i] == ' ')
		i++;
	return i < length && line[i] == '#' && line[tn__line_content(line, length)] == '"';
}

static bool
code_line(const char *line, size_t length, size_t start, size_t end)
{
	if ((start > 0 && line[start - 1] == '`') || (end < length && line[end] == '`'))
		return true;
	size_t window = start > 160 ? start - 160 : 0;
	return assigned(line, start) || listed(line, length, end) ||
	       tn__has_any(line + window, start - window, code_words) ||
	       tn__has_any(line + window, start - window, prose_words) || string_line(line, start);
}

/* Words behind "... error" that tell of one that came. */
static bool
came(const char *word)
{
	static const char *const words[] = { "at ",    "on ",   "in ",    "during ",  "while ", "occurred",   "encountered",
		                                 "raised", "from ", "after ", "happened", "code ",  "was thrown", "thrown" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncasecmp(word, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* What such errors do: "occurs when", or "... error has become". Behind a line stands its end. */
static bool
speaks_of(const char *after)
{
	static const char *const verbs[] = { " occurs", " occur ", " happens", " happen ",
		                                 " means",  " arises", " is a ",   " even " };
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strncasecmp(after, verbs[i], strlen(verbs[i])) == 0)
			return true;
	if (strncasecmp(after, " error", 6) != 0)
		return false;
	after += 6 + (after[6] == 's');
	return after[0] == ',' || (after[0] == ' ' && islower((unsigned char)after[1]) && !came(after + 1));
}

/* A phrase that a sentence quotes and goes on behind: the "..." error, he got "..." and. Not a value: msg="...". */
static bool
quoted_within(const char *line, size_t length, size_t start, size_t end)
{
	if (start < 2 || line[start - 1] != '"' || line[start - 2] != ' ' ||
	    (start > 2 && strchr(":=,[{(", line[start - 3]) != NULL))
		return false;
	end += end < length && (line[end] == '.' || line[end] == ',');
	return end + 2 < length && line[end] == '"' && line[end + 1] == ' ' && islower((unsigned char)line[end + 2]);
}

/* "Out of Memory", as a heading spells it and no program does; not behind a colon, where a program's name stands. */
static bool
heading(const char *line, size_t start, size_t end)
{
	return end >= start + 6 && memcmp(line + end - 6, "Memory", 6) == 0 && memchr(line, ':', start) == NULL;
}

static bool
name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* A class that is named in quotes, as a word of a sentence. */
static bool
named(const char *line, size_t length, size_t start, size_t end)
{
	while (start > 0 && (name_char(line[start - 1]) || line[start - 1] == '.'))
		start--;
	while (end < length && name_char(line[end]))
		end++;
	return start > 0 && end < length && strchr("\"'`", line[start - 1]) != NULL && line[end] == line[start - 1];
}

/* A question, or the start of a sentence about such errors. */
static bool
prose_after(const char *line, size_t length, size_t end)
{
	size_t rest = length - end < 24 ? length - end : 24;
	const char *after = line + end;
	return rest > 0 && (strncasecmp(after, " errors", 7) == 0 || strncasecmp(after, " issue", 6) == 0 ||
	                    strncasecmp(after, " problem", 8) == 0 || strncasecmp(after, " error when", 11) == 0 ||
	                    strncasecmp(after, " error?", 7) == 0 || strncasecmp(after, " exception", 10) == 0 ||
	                    strncasecmp(after, " handling", 9) == 0 || strncasecmp(after, " api", 4) == 0 ||
	                    strncasecmp(after, " condition", 10) == 0 || strncasecmp(after, "s:", 2) == 0 ||
	                    strncasecmp(after, "s ", 2) == 0 || after[0] == '?' || speaks_of(after));
}

static bool
log_line(const char *line, size_t length)
{
	return tn__has_any(
		line, length,
		"error|warn|info |exception|oomed|retry|trying|switch|increas|falling|fail|unload|killer|attempting");
}

/* "Killed" alone, or "run.sh: line 3: 4321 Killed    python train.py". */
static bool
shell_line(const char *line, size_t length, size_t start, size_t end)
{
	if (strncmp(line + start, "Killed", 6) != 0 || (end < length && line[end] != ' '))
		return false;
	size_t i = start;
	while (i > 0 && line[i - 1] == ' ')
		i--;
	if (i == 0)
		return end == length;
	return isdigit((unsigned char)line[i - 1]) && tn__find(line, i, ": line ") != NULL;
}

bool
tn__line_reports(const char *line, size_t length, size_t start, size_t end, enum tn_proof proof)
{
	if (proof == TN_PROOF_NONE)
		return true;
	if (proof == TN_PROOF_SHELL)
		return shell_line(line, length, start, end);
	/* "CUDA out of memory - what to do", a title */
	bool title = end + 3 < length && strncmp(line + end, " - ", 3) == 0 && islower((unsigned char)line[end + 3]) &&
	             !log_line(line, length) && tn__find(line, length, "skip") == NULL;
	if (title || code_line(line, length, start, end) || prose_before(line, start) || prose_after(line, length, end) ||
	    quoted_within(line, length, start, end))
		return false;
	if (proof == TN_PROOF_ERROR ? heading(line, start, end) : named(line, length, start, end))
		return false;
	if (proof == TN_PROOF_LOG)
		return log_line(line, length);
	if (proof == TN_PROOF_DEVICE)
		return tn__has_any(line, length, "cuda|gpu|hip|rocm|device|vram|xpu|hbm|cudnn|malloc|slurm|srun") &&
		       tn__has_any(line, length, "error|fail|exception|could not|cannot|unable|abort|terminat|reason|fatal");
	return true;
}
