/* SPDX-License-Identifier: Apache-2.0
 *
 * What a find of an anchor is worth: nothing, a message if figures prove it, or a report, by the line that it stands in and the
 * lines around.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "message/scanner.h"
#include "message/words_of_line.h"

#define SPOKEN_OFTEN 3
#define CHAPTER_LINES 40 /* within which a chapter about errors goes on */

/* Whether a line ends at this place of the clean text, also as "\n" written out in a quoted text. */
static bool
line_ends(const struct tn_message_scanner *scanner, size_t at)
{
	const char *text = scanner->clean + at;
	return text[0] == '\n' || (text[0] == '\\' && at + 1 < scanner->clean_used && text[1] == 'n');
}

size_t
tn__line_around(const struct tn_message_scanner *scanner, size_t position, const char **line, size_t *length)
{
	size_t at = scanner->origin[position], begin = at, end = at;
	while (begin > 0 && at - begin < 1024 && !line_ends(scanner, begin - 1))
		begin--;
	begin += begin > 0 && scanner->clean[begin - 1] == '\\'; /* the n of a written-out line end */
	while (end < scanner->clean_used && end - at < 1024 && !line_ends(scanner, end))
		end++;
	*line = scanner->clean + begin;
	*length = end - begin;
	return at - begin;
}

/* Whether the line at `line` is a string that an opening parenthesis in the line before waits for. */
static bool
goes_on_as_string(const struct tn_message_scanner *scanner, const char *line, size_t length)
{
	const char *before = line, *text = line + tn__line_content(line, length);
	text += *text == '\\'; /* quoted again */
	if (*text != '"' && *text != '\'')
		return false;
	if (before > scanner->clean + 1 && before[-1] == 'n' && before[-2] == '\\') /* a line end that is written out */
		before -= 2;
	while (before > scanner->clean && (before[-1] == '\n' || before[-1] == ' '))
		before--;
	return before > scanner->clean && (before[-1] == '(' || before[-1] == '"' || before[-1] == '\'');
}

/* A phrase as words of their own: "OOM", "OOMs", but not "zoom", "oom_score", "--oom-retry". */
static bool
own_word(const struct tn_message_scanner *scanner, size_t start, size_t end)
{
	size_t first = scanner->origin[start], last = scanner->origin[end - 1] + 1;
	const char *text = scanner->clean;
	bool letters = end - start == 3; /* "oom" */
	if (last - first > end - start + 6)
		return false;
	if ((unsigned char)text[first] >= 0x80 || (unsigned char)text[last - 1] >= 0x80) /* of a script without blanks */
		return true;
	bool counted = first > 0 && isdigit((unsigned char)text[first - 1]) && strncasecmp(text + first, "gb", 2) == 0;
	if (first > 0 && !counted &&
	    (isalnum((unsigned char)text[first - 1]) || strchr(letters ? "_-/.$" : "_-/$", text[first - 1]) != NULL))
		return false;
	if (!letters) /* "out of memory", "OutOfMemoryError", not "out of ramps" */
		return !isalpha((unsigned char)text[last]) || text[last] == 's' || strncasecmp(text + last, "err", 3) == 0 ||
		       strncasecmp(text + last, "exc", 3) == 0;
	last += strncasecmp(text + last, "ed", 2) == 0 ? 2 : strncmp(text + last, "'d", 2) == 0 ? 2 : text[last] == 's';
	return !isalnum((unsigned char)text[last]) && strchr("_-/=(", text[last]) == NULL;
}

/* Whether the text opens with a title that reports the phrase, or somebody tells of it. */
static bool
told(const struct tn_message_scanner *scanner, const char *line, size_t length, size_t start, size_t end,
     enum tn_proof proof)
{
	bool title = tn__line_is_title(line, length);
	if (proof == TN_PROOF_SAID && strchr("\"'", line[tn__skip_any(line, length, " ")]) != NULL) /* a program's string */
		return false;
	if (title && (scanner->piece > TN_TITLE_LINES || scanner->titles > 1))
		return false;
	return (title ? tn__title_reports(line, length, start, end)
	              : tn__line_placed(line, length, start, end) == TN_PHRASE_TOLD) &&
	       tn__line_confides(line, length, start, end, proof);
}

/* Whether a head of an error stands before `at`, or soon above the line. */
static bool
headed(const struct tn_message_scanner *scanner, const char *line, size_t length, size_t at)
{
	static const char heads[] = "error|exception|failed|fatal|panicked|caused by|aborted|terminated|traceback (most";
	size_t above = (size_t)(line - scanner->clean) < 300 ? (size_t)(line - scanner->clean) : 300;
	size_t first = tn__line_content(line, length);
	first = first < at ? first : at;
	return tn__has_any(line + first, at - first, heads) ||
	       tn__has_any(line - above, above, "error: |panicked|caused by|traceback (most");
}

static enum tn_worth
worth_of(const struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start, size_t end)
{
	const char *line;
	size_t length, at = tn__line_around(scanner, start, &line, &length);
	size_t stop = scanner->origin[end - 1] + 1 - (scanner->origin[start] - at);
	enum tn_proof proof = anchor->proof == TN_PROOF_TORCH ? TN_PROOF_ERROR : anchor->proof;
	bool asks = proof != TN_PROOF_NONE && anchor->proof != TN_PROOF_TORCH;
	if (stop > length) /* the phrase goes on in the next line */
		stop = length;
	size_t slug = at;
	while (slug > 0 && (tn__name_char(line[slug - 1]) || line[slug - 1] == '-'))
		slug--;
	size_t name_end = stop;
	while (name_end < length && tn__name_char(line[name_end]))
		name_end++;
	if (at > slug && memchr(line + slug, '-', at - slug) != NULL && line[name_end] == '-') /* the name of a branch */
		return TN_WORTH_NOTHING;
	if (proof == TN_PROOF_SHELL &&
	    tn__find(line, at, ": line ") != NULL && /* also where a viewer of logs has columns */
	    tn__line_reports(line, length, at, stop, proof))
		return TN_WORTH_REPORT;
	if (tn__line_is_source(line, length, at, stop) || scanner->example == TN_EXAMPLE_TAUGHT_BLOCK)
		return TN_WORTH_NOTHING;
	bool in_code = tn__code_is_around(&scanner->code), is_code = tn__line_is_code(line, length);
	if ((in_code || is_code) && tn__phrase_is_string_or_name(line, length, at, stop))
		return TN_WORTH_NOTHING;
	if (is_code || (in_code && (scanner->code.quoted || !tn__line_opens_with_error(line, length))))
		return asks ? TN_WORTH_NOTHING : TN_WORTH_FIGURES;
	if (scanner->page || (scanner->chapter > 0 && scanner->piece - scanner->chapter <= CHAPTER_LINES))
		return asks ? TN_WORTH_NOTHING : TN_WORTH_FIGURES;
	bool anywhere = proof != TN_PROOF_ERROR && proof != TN_PROOF_DEVICE && proof != TN_PROOF_HEADED &&
	                proof != TN_PROOF_SAID;
	if (!anywhere && proof != TN_PROOF_HEADED && tn__line_is_title(line, length) &&
	    (proof != TN_PROOF_SAID || own_word(scanner, start, end)) && told(scanner, line, length, at, stop, proof))
		return TN_WORTH_REPORT;
	if (scanner->in_change || (scanner->found_before && tn__line_found(line, length)) ||
	    scanner->example != TN_EXAMPLE_NONE || tn__line_speaks(line, length, at, stop) ||
	    (proof != TN_PROOF_NONE && goes_on_as_string(scanner, line, length)))
		return asks ? TN_WORTH_NOTHING : TN_WORTH_FIGURES;
	if (proof == TN_PROOF_SAID && !own_word(scanner, start, end))
		return TN_WORTH_NOTHING;
	/* In a text that speaks of such errors, what has no head of an error is an example. */
	if (proof != TN_PROOF_NONE && scanner->spoken_lines >= SPOKEN_OFTEN &&
	    (!scanner->held || scanner->held_event.needs_trace) && (!scanner->open || scanner->event.needs_trace) &&
	    !tn__has_any(line, length, "error|exception|fail|fatal|abort|terminate called|warn|killed process"))
		return asks ? TN_WORTH_NOTHING : TN_WORTH_FIGURES;
	if (proof != TN_PROOF_NONE && tn__line_is_comment(line, length) &&
	    (proof == TN_PROOF_SAID || line[tn__skip_any(line, length, " ")] != '#')) /* logs are kept behind "#", too */
		return asks ? TN_WORTH_NOTHING : TN_WORTH_FIGURES;
	if (!anywhere && proof != TN_PROOF_HEADED && told(scanner, line, length, at, stop, proof))
		return TN_WORTH_REPORT;
	if (proof == TN_PROOF_SAID || (!anywhere && tn__line_placed(line, length, at, stop) == TN_PHRASE_NOWHERE))
		return asks ? TN_WORTH_NOTHING : TN_WORTH_FIGURES;
	if (proof == TN_PROOF_HEADED)
		return headed(scanner, line, length, at) && tn__line_reports(line, length, at, stop, TN_PROOF_ERROR)
		           ? TN_WORTH_REPORT
		           : TN_WORTH_NOTHING;
	size_t from = proof == TN_PROOF_DEVICE && at > 200 ? at - 200 : 0;
	size_t to = proof == TN_PROOF_DEVICE && length - at > 200 ? at + 200 : length;
	if (tn__line_reports(line + from, to - from, at - from, stop < to ? stop - from : to - from, proof))
		return TN_WORTH_REPORT;
	if (proof == TN_PROOF_DEVICE && length < 60 && strncmp(line, "error: ", 7) == 0 &&
	    tn__line_reports(line, length, at, stop, TN_PROOF_ERROR)) {
		size_t above = (size_t)(line - scanner->clean) < 300 ? (size_t)(line - scanner->clean) : 300;
		if (tn__has_any(line - above, above, "cuda|hip|gpu|device"))
			return TN_WORTH_REPORT;
	}
	return anchor->proof == TN_PROOF_TORCH ? TN_WORTH_FIGURES : TN_WORTH_NOTHING;
}

enum tn_worth
tn__anchor_worth(const struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start, size_t end)
{
	enum tn_worth worth = worth_of(scanner, anchor, start, end);
	if (worth == TN_WORTH_REPORT || scanner->page)
		return worth;
	bool said = anchor->proof == TN_PROOF_SAID;
	bool phrase = anchor->proof == TN_PROOF_TORCH || anchor->proof == TN_PROOF_ERROR ||
	              anchor->proof == TN_PROOF_DEVICE || anchor->proof == TN_PROOF_HEADED;
	const char *line;
	size_t length, at = tn__line_around(scanner, start, &line, &length);
	size_t stop = at + scanner->origin[end - 1] + 1 - scanner->origin[start];
	if (said) /* nobody says that it came to him, and nobody doubts it either */
		return own_word(scanner, start, end) && !scanner->in_change && !tn__code_is_around(&scanner->code) &&
		               !tn__line_speaks(line, length, at, stop) && tn__line_may_tell(line, length, at, stop)
		           ? TN_WORTH_MENTION
		           : worth;
	if (phrase && tn__line_is_title(line, length))
		return scanner->piece > TN_TITLE_LINES            ? worth
		       : tn__title_wishes(line, length, at, stop) ? TN_WORTH_TRACE
		                                                  : TN_WORTH_MENTION;
	while (at > 0 && (tn__name_char(line[at - 1]) || line[at - 1] == '.'))
		at--;
	while (stop < length && tn__name_char(line[stop]))
		stop++;
	if (!phrase || stop > length)
		return worth;
	if (at <= tn__skip_any(line, length, " `>") && length > stop &&
	    line[stop] == ' ' && /* a notebook's head of a traceback */
	    strncmp(line + stop + tn__skip_any(line + stop, length - stop, " "), "Traceback (most", 15) == 0)
		return TN_WORTH_REPORT;
	return at > 2 && line[at - 1] == ' ' && line[at - 2] == ':' && stop == length ? TN_WORTH_TRACE : worth;
}

/* "inspectorMemoryError" */
static bool
part_of_name(const struct tn_message_scanner *scanner, size_t start)
{
	size_t at = scanner->origin[start], first = at;
	while (first > 0 && isalnum((unsigned char)scanner->clean[first - 1]))
		first--;
	return first < at && islower((unsigned char)scanner->clean[first]);
}

bool
tn__anchor_misread(const struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start, size_t end)
{
	if (strcmp(anchor->text, "triedtoallocate") == 0 && start >= 3 &&
	    memcmp(scanner->squeezed + start - 3, "you", 3) == 0)
		return true;
	if (strcmp(anchor->text, "oomkilled") == 0 && scanner->origin[start] > 0 &&
	    isalnum((unsigned char)scanner->clean[scanner->origin[start] - 1])) /* "ContainerOOMKilled" */
		return true;
	if (strcmp(anchor->text, "memoryerror") == 0 &&
	    ((start > 0 && scanner->squeezed[start - 1] == 'f') ||
	     isalpha((unsigned char)scanner->clean[scanner->origin[end - 1] + 1]) || part_of_name(scanner, start) ||
	     scanner->origin[end - 1] - scanner->origin[start] + 1 != end - start))
		return true; /* OutOfMemoryError, and "memory error" in prose */
	return false;
}
