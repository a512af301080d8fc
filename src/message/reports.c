/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a phrase that errors use stands in a report of one, or in code or prose that speaks of such errors.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

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

/* A constant that code compares, or that is all of its line, as in a list of codes. */
static bool
constant(const char *line, size_t length, size_t start, size_t end)
{
	if (memchr(line + start, ' ', end - start) != NULL ||
	    (memchr(line + start, '_', end - start) == NULL && strncmp(line + start, "cudaError", 9) != 0))
		return false;
	size_t first = start, last = end;
	while (first > 0 && tn__name_char(line[first - 1]))
		first--;
	while (last < length && tn__name_char(line[last]))
		last++;
	start = first;
	end = last;
	while (first > 0 && strchr(" =!(", line[first - 1]) != NULL)
		first--;
	while (last < length && strchr(" =!)", line[last]) != NULL)
		last++;
	bool called = end < length && line[end] == '(' && islower((unsigned char)line[start]);
	if (called || strncmp(line + end, "::", 2) == 0)
		return true;
	const char *after = line + end; /* "NAME = 2," and "NAME The call failed" define it */
	if ((strncmp(after, " = ", 3) == 0 && isdigit((unsigned char)after[3 + (after[3] == '-')])) ||
	    (start == 0 && end + 3 < length && after[0] == ' ' && isupper((unsigned char)after[1]) &&
	     islower((unsigned char)after[2])))
		return true;
	return (first == 0 && last == length) || tn__has_any(line + first, start - first, "==|!=") ||
	       tn__has_any(line + end, last - end, "==|!=");
}

/* A name among names: "A, B, C,", "    * ::NAME,", "NAME = 2,", "Name()". */
static bool
name_among_names(const char *line, size_t length, size_t start, size_t end)
{
	if (memchr(line + start, ' ', end - start) != NULL)
		return false;
	while (start > 0 && (tn__name_char(line[start - 1]) || strchr(":.", line[start - 1]) != NULL))
		start--;
	while (end < length && tn__name_char(line[end]))
		end++;
	end -= line[end - 1] == ',';
	if (line[end - 1] == '_' || (end < length && line[end] == ':'))
		return false;
	size_t first = start, last = end;
	while (first > 0 && strchr(" *\"'`", line[first - 1]) != NULL)
		first--;
	while (last < length && strchr(" \"'`", line[last]) != NULL)
		last++;
	bool ends = last >= length, opens = first == 0;
	if (opens && strncmp(line + start, "::", 2) == 0 && (ends || strchr(",.", line[last]) != NULL))
		return true;
	if (opens && ((strncmp(line + end, "()", 2) == 0 && end + 2 == length) || (line[end] == '(' && end + 1 == length)))
		return true; /* its signature */
	if (tn__begins_with(line, length, "exception|class", false) && (ends || strchr("([#", line[last]) != NULL))
		return true; /* its page */
	if (opens && !ends && (line[last] == '=' || line[last - 1] == ' ') &&
	    (line[length - 1] == ',' || tn__find(line + last, length - last, ", /*") != NULL) &&
	    tn__find(line + last, length - last, " = ") != NULL)
		return true; /* of an enumeration */
	size_t value = last + 1 + (ends ? 0 : tn__skip_any(line + last + 1, length - last - 1, " "));
	if (opens && !ends && line[last] == '=' && value > last + 1 && isdigit((unsigned char)line[value]))
		return true;
	if (first > 1 && line[first - 1] == '=' && line[first - 2] == ' ' && !ends && line[last] == ',')
		return true;
	if (ends && first > 5 && line[first - 1] != ':' && strncmp(line + start - 6, "Error ", 6) == 0)
		return true;
	char before = opens ? '\0' : line[first - 1], after = ends ? '\0' : line[last];
	bool several = (before == ',' && (ends || strchr(",)]}|", after) != NULL)) ||
	               (after == ',' && (opens || strchr(",([{|", before) != NULL));
	return several && !tn__has_any(line, start, "error:|error |failed:| failed |exception:");
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

/* "error 'hipErrorOutOfMemory'", "I just get `hipErrorOutOfMemory`": a name in quotes that a program or a person reports. */
static bool
reported_name(const char *line, size_t start)
{
	static const char *const words[] = { "error", "error:", "get", "just get", "got", "getting" };
	while (start > 0 && strchr("\"'` ", line[start - 1]) != NULL)
		start--;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t size = strlen(words[i]);
		if (size < start && strncasecmp(line + start - size, words[i], size) == 0 && line[start - size - 1] == ' ')
			return true;
	}
	return false;
}

/* A phrase in backticks: code, unless what stands there before it is an error's head, as in `srun: error: out of memory`. */
static bool
named_as_code(const char *line, size_t length, size_t start, size_t end)
{
	if (start > 0 && line[start - 1] == '`' && memchr(line + start, ' ', end - start) == NULL)
		return !reported_name(line, start);
	if (end >= length || line[end] != '`' || strncmp(line, "# `", 3) == 0)
		return false;
	size_t open = start;
	while (open > 0 && line[open - 1] != '`')
		open--;
	if (open == 0) /* a closing mark that nothing opened */
		return false;
	return tn__find(line + start, end - start, "memory") == NULL ||
	       !tn__has_any(line + open, end - open, "error: |error_");
}

/* `raise ValueError("...") ValueError: ...`, as a traceback's last two lines become when they are pasted into one. */
static bool
printed_behind_code(const char *line, size_t start)
{
	bool quoted = false;
	for (size_t i = 0; i < start; i++)
		quoted ^= line[i] == '"';
	if (quoted || start < 9 || strncmp(line + start - 7, "Error: ", 7) != 0)
		return false;
	size_t head = start - 2;
	while (head > 0 && (tn__name_char(line[head - 1]) || line[head - 1] == '.'))
		head--;
	return head > 1 && line[head - 1] == ' ' && strchr(")\"", line[head - 2]) != NULL;
}

/* "AssertionError: ...", where the name of the exception opens the line and the phrase follows it. */
static bool
headed(const char *line, size_t length, size_t start)
{
	size_t first = tn__line_content(line, length);
	return first < start && tn__line_opens_with_error(line + first, length - first) &&
	       memchr(line + first, '"', start - first) == NULL &&
	       memchr(line + first, ' ', start - first) == line + start - 1;
}

static bool
code_line(const char *line, size_t length, size_t start, size_t end)
{
	if (named_as_code(line, length, start, end))
		return true;
	if (printed_behind_code(line, start) || headed(line, length, start))
		return false;
	size_t window = start > 160 ? start - 160 : 0;
	return assigned(line, start) || listed(line, length, end) ||
	       tn__has_any(line + window, start - window, code_words) ||
	       tn__has_any(line + window, start - window, prose_words) || string_line(line, start);
}

/* Words behind "... error" that tell of one that came. */
static bool
came(const char *word)
{
	static const char *const words[] = { "at ",         "on ",        "in ",      "during ",    "while ",   "occurred",
		                                 "encountered", "raised",     "from ",    "after ",     "happened", "code ",
		                                 "with ",       "executing ", "calling ", "was thrown", "thrown" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncasecmp(word, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* What such errors do: "occurs when", or "... error has become". Behind a line stands its end. */
static bool
speaks_of(const char *after)
{
	static const char *const verbs[] = { " occurs", " occur ", " happens", " happen ", " indicates ", " signifies ",
		                                 " means",  " arises", " is a ",   " is the ", " refers ",    " even " };
	after += after[0] == ')';
	if (after[0] == ' ' && after[1] == '(') { /* "(OOM)" */
		size_t close = strcspn(after, ")\n");
		after += after[close] == ')' ? close + 1 : 0;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strncasecmp(after, verbs[i], strlen(verbs[i])) == 0)
			return true;
	if (strncasecmp(after, " error", 6) != 0)
		return false;
	if (tn__has_any(after, strcspn(after, "\n.;"), " occurs when | happens when | occurs if | means that | is when "))
		return true;
	after += 6 + (after[6] == 's');
	return after[0] == ',' || (after[0] == ' ' && islower((unsigned char)after[1]) && !came(after + 1));
}

/* "Out of Memory", as a heading spells it and no program does; not behind a colon, where a program's name stands. */
static bool
heading(const char *line, size_t length, size_t start, size_t end)
{
	const char *size = tn__find(line + end, length - end, "allocate ");
	if (size != NULL && isdigit((unsigned char)size[9])) /* behind a line stands its end */
		return false;
	if (end < start + 6 || memcmp(line + end - 6, "Memory", 6) != 0)
		return false;
	if (end + 2 < length && line[end] == ' ' && isupper((unsigned char)line[end + 1]) &&
	    islower((unsigned char)line[end + 2]) && strncmp(line + end + 1, "Error", 5) != 0)
		return true; /* "Out of Memory Occurred During" */
	return memchr(line, ':', start) == NULL;
}

/* A class that is named in quotes, as a word of a sentence. */
static bool
named(const char *line, size_t length, size_t start, size_t end)
{
	while (start > 0 && (tn__name_char(line[start - 1]) || line[start - 1] == '.'))
		start--;
	while (end < length && tn__name_char(line[end]))
		end++;
	if (reported_name(line, start))
		return false;
	return start > 0 && end < length && strchr("\"'`", line[start - 1]) != NULL && line[end] == line[start - 1];
}

/* A phrase that is set in bold, or that an arrow leads on from: a heading, a row of advice. */
static bool
marked_up(const char *line, size_t length, size_t start, size_t end)
{
	static const char *const arrows[] = { "->", "=>", "\xe2\x86\x92", "\xe2\x87\x92" };
	bool bold = start > 1 && memcmp(line + start - 2, "**", 2) == 0;
	while (end < length && strchr("*_\"'` ", line[end]) != NULL)
		end++;
	for (size_t i = 0; i < sizeof(arrows) / sizeof(arrows[0]); i++)
		if (strncmp(line + end, arrows[i], strlen(arrows[i])) == 0)
			return true;
	return bold && memcmp(line + end - 1, "*", 1) == 0;
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

/* "Cumo::CUDA::OutOfMemoryError", and nothing behind it: the class, as its page names it. */
static bool
scoped_class(const char *line, size_t length, size_t start, size_t end)
{
	while (start > 0 && tn__name_char(line[start - 1]))
		start--;
	while (end < length && tn__name_char(line[end]))
		end++;
	return end == length && start > 2 && strncmp(line + start - 2, "::", 2) == 0 && end > 5 &&
	       strncmp(line + end - 5, "Error", 5) == 0;
}

/* Whether the line has a log's words beside the phrase, whose own name may end with "Error,". */
static bool
log_line(const char *line, size_t length, size_t start, size_t end)
{
	static const char words[] =
		"error|warn|info |exception|oomed|retry|trying|switch|increas|falling|fail|unload|killer|attempting";
	bool named = end > start && line[end - 1] == ',';
	return named ? tn__has_any(line, start, words) || tn__has_any(line + end, length - end, words)
	             : tn__has_any(line, length, words);
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

/* "...: Resolving ...", "...: Causes ...", "...: How to ...", the heading of a page. */
static bool
heads(const char *line, size_t length, size_t end)
{
	while (end < length && line[end] == ')')
		end++;
	if (end + 4 > length || line[end] != ':' || line[end + 1] != ' ' || !isupper((unsigned char)line[end + 2]))
		return false;
	size_t first = end + 2, last = first + 1;
	while (last < length && islower((unsigned char)line[last]))
		last++;
	return (last > first + 4 && strncmp(line + last - 3, "ing", 3) == 0) ||
	       tn__has_any(line + first, last - first, "cause|fix|how|what|why|solution");
}

/* "an exit code 137" */
static bool
one_of_many(const char *line, size_t start)
{
	char word[16];
	word_before(line, start, word);
	return strcmp(word, "an") == 0 || strcmp(word, "a") == 0;
}

/* A device and a failure are named near the phrase. */
static bool
names_device(const char *line, size_t length)
{
	return tn__has_any(line, length,
	                   "cuda|gpu|hip|rocm|device|vram|xpu|hbm|cudnn|malloc|slurm|srun|dram buffer|thrust|parallel_for|"
	                   "rmm_error") &&
	       tn__has_any(line, length,
	                   "error|fail|exception|could not|cannot|unable|abort|terminat|reason|fatal|not enough");
}

bool
tn__line_confides(const char *line, size_t length, size_t start, size_t end, enum tn_proof proof)
{
	size_t window = start > 160 ? start - 160 : 0;
	return !assigned(line, start) && !string_line(line, start) &&
	       !tn__has_any(line + window, start - window, code_words) && !heads(line, length, end) &&
	       (proof != TN_PROOF_DEVICE || names_device(line, length));
}

bool
tn__line_reports(const char *line, size_t length, size_t start, size_t end, enum tn_proof proof)
{
	if (proof == TN_PROOF_NONE)
		return true;
	if (proof == TN_PROOF_TOLD)
		return !tn__has_any(line, length,
		                    "step 1|step 2|step 3|usually |typically |often |almost always|most common|convention") &&
		       !tn__line_teaches(line, length, start, end) && !heads(line, length, end) && !speaks_of(line + end) &&
		       !one_of_many(line, start);
	if (proof == TN_PROOF_SHELL)
		return shell_line(line, length, start, end);
	if (tn__has_any(line, length, "is the most common|one of the most common"))
		return false;
	/* "CUDA out of memory - what to do", a title */
	bool title = end + 3 < length && strncmp(line + end, " - ", 3) == 0 && islower((unsigned char)line[end + 3]) &&
	             !log_line(line, length, start, end) && tn__find(line, length, "skip") == NULL;
	if (title || scoped_class(line, length, start, end) || code_line(line, length, start, end) ||
	    prose_after(line, length, end) || marked_up(line, length, start, end) || constant(line, length, start, end) ||
	    name_among_names(line, length, start, end) || tn__line_teaches(line, length, start, end))
		return false;
	if (proof == TN_PROOF_ERROR || proof == TN_PROOF_SENTENCE ? heading(line, length, start, end)
	                                                          : named(line, length, start, end))
		return false;
	if (proof == TN_PROOF_LOG)
		return log_line(line, length, start, end);
	return proof != TN_PROOF_DEVICE || names_device(line, length);
}
