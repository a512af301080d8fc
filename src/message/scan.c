/* SPDX-License-Identifier: Apache-2.0
 *
 * The scanner: text in, errors out, in one pass.
 *
 * Each line is cleaned, read as a possible frame of a traceback, and added to a window in two forms, clean and
 * squeezed. Anchors (phrases of the table) are looked for in the squeezed form, where wrapped messages read like
 * whole ones. An anchor opens a message or joins the open one; the open message is closed by the next one, by
 * distance, or by the end. One closed message is held back until the next is closed, because its traceback may follow
 * it, and because programs print one failure several times (event.c).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "message/scanner.h"
#include "message/words_of_line.h"

/* ---- making one ---- */

/* Where anchors are kept that end with the two characters before `end`. */
static size_t
head_of(const char *end)
{
	return ((unsigned char)end[-2] * 37U + (unsigned char)end[-1]) % TN_ANCHOR_HEADS;
}

static void
index_anchors(struct tn_message_scanner *scanner)
{
	memset(scanner->head, 0xff, sizeof(scanner->head));
	for (size_t i = tn__anchor_count; i-- > 0;) {
		const char *text = tn__anchors[i].text;
		size_t last = head_of(text + strlen(text));
		scanner->next[i] = scanner->head[last];
		scanner->head[last] = (int16_t)i;
	}
}

tn_status
tn__message_scanner_new(tn_message_found *found, void *context, struct tn_message_scanner **out)
{
	struct tn_message_scanner *scanner = calloc(1, sizeof(*scanner));
	TN_RETURN_IF(scanner == NULL, TN_NO_MEMORY, "out of host memory while reading a text");
	scanner->found = found;
	scanner->context = context;
	scanner->line = 1;
	tn__seen_start(&scanner->seen);
	index_anchors(scanner);
	*out = scanner;
	return TN_OK;
}

void
tn__message_scanner_free(struct tn_message_scanner *scanner)
{
	free(scanner);
}

const struct tn_seen *
tn__message_seen(const struct tn_message_scanner *scanner)
{
	return &scanner->seen;
}

/* ---- anchors ---- */

#define REMEDY_LINES 8  /* within which a heading about remedies belongs to an error */
#define TAUGHT_LINES 12 /* within which a sentence that teaches makes a heading of an error that stands alone */

static size_t
region_start(const struct tn_message_scanner *scanner, size_t position)
{
	const char *line;
	size_t length, at = tn__line_around(scanner, position, &line, &length);
	size_t first = scanner->origin[position] - at, start = position;
	while (start > 0 && position - start < TN_LOOK_BACK && scanner->origin[start - 1] >= first)
		start--;
	return start;
}

static void
strengthen(struct tn_event *event, const struct tn_anchor *anchor, size_t end, uint64_t piece, bool reported)
{
	if (anchor->weight > event->weight || (reported && event->needs_trace)) {
		event->family = &tn__families[anchor->family];
		event->weight = anchor->weight;
		event->group = anchor->group;
		event->said = anchor->proof == TN_PROOF_SAID;
	}
	if (anchor->group == event->group && anchor->order > event->order)
		event->order = anchor->order;
	event->reported |= reported && anchor->weight > TN_WEIGHT_GENERIC;
	event->reported |= reported && event->needs_trace;
	if (reported)
		event->bare = event->remedied = event->needs_trace = event->needs_trouble = false;
	event->last_end = end > event->last_end ? end : event->last_end;
	event->last_line = piece;
}

/* Whether the anchor belongs to the open message. */
static bool
belongs(const struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start)
{
	const struct tn_event *event = &scanner->event;
	if (start < event->last_end)
		return true;
	size_t gap = start - event->last_end;
	if (tn__strangers(event->owner, scanner->owner))
		return false;
	if (anchor->group == event->group && anchor->order > event->order && event->order > 0)
		return gap <= anchor->reach;
	return !event->said && event->weight <= TN_WEIGHT_GENERIC && anchor->weight > event->weight && gap <= 300;
}

static void
open_event(struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start, size_t end, bool reported)
{
	struct tn_event *event = &scanner->event;
	memset(event, 0, sizeof(*event));
	event->family = &tn__families[anchor->family];
	event->weight = anchor->weight;
	event->order = event->first_order = anchor->order;
	event->group = anchor->group;
	event->reported = reported;
	event->line = scanner->line;
	event->last_line = scanner->piece;
	event->start = region_start(scanner, start);
	event->last_end = end;
	event->rank = scanner->rank;
	event->owner = scanner->owner;
	const char *line;
	size_t length, at = tn__line_around(scanner, start, &line, &length);
	event->title = tn__line_is_title(line, length) && !tn__line_is_heading(line, length);
	event->said = anchor->proof == TN_PROOF_SAID;
	if (tn__has_any(line, at < 48 ? at : 48, "(enginecore|(apiserver pid|(vllmworker|(worker_tp"))
		event->hint = &tn__hint_vllm;
	event->heads_trace = tn__find(line + at, length - at, "traceback (most") != NULL;
	event->remedied = scanner->class_before && at == 0; /* a list of classes */
	size_t before = at - tn__skip_any(line, at, " ");
	event->bare = before <= 5 && end - start + at + 6 >= length;
	const struct tn_trace_state *last = &scanner->traces[scanner->last_trace];
	if (event->rank < 0 && last->active && last->rank >= 0 && scanner->piece - scanner->last_trace_line <= 3) {
		event->rank = last->rank;
		event->owner = last->owner;
	}
	scanner->open = true;
	if (!event->heads_trace) /* whose frames are still to come */
		tn__traces_take_culprit(scanner, event);
}

/* A line that teaches about such errors, soon behind one that stands alone: a heading. */
static void
mark_taught(struct tn_message_scanner *scanner, size_t start, size_t end)
{
	const char *line;
	size_t length, at = tn__line_around(scanner, start, &line, &length);
	size_t stop = scanner->origin[end - 1] + 1 - (scanner->origin[start] - at);
	if (!tn__line_teaches(line, length, at, stop < length ? stop : length))
		return;
	scanner->event.remedied |= scanner->open && scanner->event.bare &&
	                           scanner->piece - scanner->event.last_line <= TAUGHT_LINES;
	scanner->held_event.remedied |= scanner->held && scanner->held_event.bare &&
	                                scanner->piece - scanner->held_event.last_line <= TAUGHT_LINES;
}

static tn_status
on_anchor(struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start, size_t end)
{
	struct tn_event *event = &scanner->event;
	enum tn_worth worth = tn__anchor_worth(scanner, anchor, start, end);
	bool said = anchor->proof == TN_PROOF_SAID;
	if (worth < TN_WORTH_MENTION && said)
		return TN_OK;
	if (worth != TN_WORTH_REPORT && !said)
		mark_taught(scanner, start, end);
	if (worth != TN_WORTH_REPORT && !said && scanner->spoken_last != scanner->piece) {
		scanner->spoken_last = scanner->piece;
		scanner->spoken_lines++;
	}
	bool reported = worth == TN_WORTH_REPORT;
	if (worth == TN_WORTH_TRACE && (scanner->open || scanner->held || scanner->handed))
		return TN_OK;
	if (worth == TN_WORTH_MENTION &&
	    ((scanner->open && event->reported) || (scanner->held && !scanner->held_event.needs_trace) || scanner->handed))
		return TN_OK;
	if (worth == TN_WORTH_NOTHING)
		return TN_OK;
	if (tn__anchor_misread(scanner, anchor, start, end))
		return TN_OK;
	if (scanner->open && belongs(scanner, anchor, start)) {
		if (start < event->start)
			event->start = region_start(scanner, start);
		event->needs_trouble |= worth == TN_WORTH_MENTION;
		strengthen(event, anchor, end, scanner->piece, reported);
		tn__traces_take_culprit(scanner, event);
		return TN_OK;
	}
	if (scanner->open && anchor->weight <= TN_WEIGHT_GENERIC && !event->needs_trace &&
	    !(event->said && anchor->proof != TN_PROOF_SAID) && start - event->last_end <= 1500 &&
	    !tn__strangers(event->owner, scanner->owner))
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__event_close(scanner, start));
	open_event(scanner, anchor, start, end, reported);
	event->needs_trace = worth == TN_WORTH_TRACE || worth == TN_WORTH_MENTION;
	event->needs_trouble = worth == TN_WORTH_MENTION;
	return TN_OK;
}

/* All anchors that end with the last squeezed character. */
static tn_status
find_anchors(struct tn_message_scanner *scanner)
{
	size_t end = scanner->squeezed_used;
	if (end < 2)
		return TN_OK;
	for (int i = scanner->head[head_of(scanner->squeezed + end)]; i >= 0; i = scanner->next[i]) {
		const char *text = tn__anchors[i].text;
		size_t length = strlen(text);
		if (length <= end && scanner->squeezed[end - length] == text[0] &&
		    memcmp(scanner->squeezed + end - length, text, length) == 0)
			TN_FORWARD_IF_ERROR(on_anchor(scanner, &tn__anchors[i], end - length, end));
	}
	return TN_OK;
}

/* ---- the window ---- */

/* Makes room for a line: forgets what lies before the open message, closing it if it alone fills the window. */
static tn_status
make_room(struct tn_message_scanner *scanner, size_t length)
{
	if (scanner->clean_used + length + 2 <= TN_MESSAGE_WINDOW &&
	    scanner->squeezed_used + length + 2 <= TN_MESSAGE_WINDOW)
		return TN_OK;
	size_t keep = scanner->squeezed_used > 2048 ? scanner->squeezed_used - 2048 : 0;
	if (scanner->open) {
		size_t start = scanner->event.start > TN_LOOK_BACK ? scanner->event.start - TN_LOOK_BACK : 0;
		bool fits = scanner->clean_used - scanner->origin[start] + length + 2 <= TN_MESSAGE_WINDOW / 2;
		if (fits)
			keep = start < keep ? start : keep;
		else
			TN_FORWARD_IF_ERROR(tn__event_close(scanner, scanner->squeezed_used));
	}
	size_t first = keep < scanner->squeezed_used ? scanner->origin[keep] : scanner->clean_used;
	if (scanner->clean_used - first > TN_MESSAGE_WINDOW / 2) { /* nearly nothing but blanks: cannot be a message */
		keep = scanner->squeezed_used;
		first = scanner->clean_used;
	}
	memmove(scanner->clean, scanner->clean + first, scanner->clean_used - first);
	memmove(scanner->squeezed, scanner->squeezed + keep, scanner->squeezed_used - keep);
	for (size_t i = keep; i < scanner->squeezed_used; i++)
		scanner->origin[i - keep] = scanner->origin[i] - (uint32_t)first;
	scanner->clean_used -= first;
	scanner->squeezed_used -= keep;
	if (scanner->open) {
		scanner->event.start -= keep;
		scanner->event.last_end -= keep;
	}
	return TN_OK;
}

/* A number that was cut by a hard wrap: the line before is full, and this one goes on with digits and what may follow
 * them. */
static bool
wrapped_number(const struct tn_message_scanner *scanner, const char *text)
{
	static const char *const follow[] = { "GiB", "MiB", "KiB", "bytes", "has ", "B)", ")" };
	size_t i = strspn(text, "0123456789.");
	if (scanner->columns_before < 70)
		return false;
	for (; text[i] == ' ';)
		i++;
	for (size_t k = 0; k < sizeof(follow) / sizeof(follow[0]); k++)
		if (strncmp(text + i, follow[k], strlen(follow[k])) == 0)
			return true;
	return false;
}

static tn_status
squeeze(struct tn_message_scanner *scanner, char c, size_t origin)
{
	scanner->squeezed[scanner->squeezed_used] = c;
	scanner->origin[scanner->squeezed_used++] = (uint32_t)origin;
	return find_anchors(scanner);
}

/* Whether the squeezed text ends with a digit, or with one and a comma. */
static bool
after_digit(const struct tn_message_scanner *scanner)
{
	size_t used = scanner->squeezed_used;
	if (used > 1 && scanner->squeezed[used - 1] == ',')
		used--;
	return used > 0 && isdigit((unsigned char)scanner->squeezed[used - 1]);
}

static tn_status
add_squeezed(struct tn_message_scanner *scanner, const char *line, size_t length, size_t base)
{
	size_t i = tn__line_content(line, length);
	bool blank = true;
	while (length > i && (line[length - 1] == '|' || line[length - 1] == ' '))
		length--;
	for (bool first = true; i < length; i++) {
		char c = (char)tolower((unsigned char)line[i]);
		if (c == ' ') {
			blank = true;
			continue;
		}
		if (c == '\\') { /* escapes of quoted texts: \n, \", \\ */
			bool space = i + 1 < length && (line[i + 1] == 'n' || line[i + 1] == 't' || line[i + 1] == 'r');
			blank |= space;
			i += space;
			while (space && i + 1 < length && strchr(" #>", line[i + 1]) != NULL)
				i++;
			continue;
		}
		bool digits = blank && isdigit((unsigned char)c) && after_digit(scanner);
		if (digits && !(first && wrapped_number(scanner, line + i)))
			TN_FORWARD_IF_ERROR(squeeze(scanner, ' ', base + i));
		TN_FORWARD_IF_ERROR(squeeze(scanner, c, base + i));
		blank = first = false;
	}
	return TN_OK;
}

static bool
too_long(const struct tn_message_scanner *scanner)
{
	const struct tn_event *event = &scanner->event;
	return scanner->open && (scanner->piece - event->last_line > TN_MESSAGE_TAIL_LINES ||
	                         scanner->squeezed_used - event->start > TN_MESSAGE_REGION);
}

/* "- Fix a leak": what a change does, in its list. */
static bool
lists_change(const char *line, size_t length)
{
	if (length < 4 || strchr("-*", line[0]) == NULL || line[1] != ' ')
		return false;
	return tn__begins_with(line + 2, length - 2,
	                       "Fix |Fixes |Fixed |Add |Adds |Added |Remove |Removed |Improve |Improved ", false);
}

static tn_status
read_line(struct tn_message_scanner *scanner, const char *raw, size_t count)
{
	char line[TN_MESSAGE_LINE + 1];
	size_t length = tn__line_clean(raw, count, line);
	scanner->piece++;
	TN_FORWARD_IF_ERROR(make_room(scanner, 2 * length));
	scanner->rank = tn__line_rank(line, length);
	scanner->owner = tn__line_owner(line, length, scanner->rank);
	scanner->shown |= tn__advice_shown(line);
	tn__seen_read(&scanner->seen, line, length);
	enum tn_trace_line kind = tn__traces_read(scanner, line, length);
	size_t base = scanner->clean_used;
	scanner->in_change = tn__line_in_change(line, length, scanner->in_change);
	memcpy(scanner->clean + base, line, length);
	scanner->clean[base + length] = '\n';
	scanner->clean_used += length + 1;
	/* a name that a page sets apart within its sentence */
	const char *words = line + tn__skip_any(line, length, " ");
	bool goes_on = length > 0 && (line[0] == ',' || strncmp(words, "If ", 3) == 0 ||
	                              ((unsigned char)line[0] >= 0xe3 && (unsigned char)line[0] < 0xf0) ||
	                              strncmp(line, "is ", 3) == 0 || strncmp(line, "will ", 5) == 0 ||
	                              strncmp(line, "and ", 4) == 0 || strncmp(line, "exception", 9) == 0);
	scanner->event.remedied |= goes_on && scanner->open && scanner->event.bare &&
	                           scanner->event.last_line == scanner->last_text;
	if (scanner->open && scanner->event.title && scanner->event.last_line + 1 == scanner->piece &&
	    ((scanner->event.said && (tn__line_is_code(line, length) || strncmp(line, "# ", 2) == 0)) ||
	     (strncmp(line, "# ", 2) == 0 && islower((unsigned char)line[2])))) { /* no title, but a comment */
		scanner->event.title = false;
		scanner->event.remedied = true;
	}
	if (scanner->open && scanner->event.title && scanner->event.said &&
	    scanner->event.last_line == scanner->last_text && lists_change(line, length)) {
		scanner->event.title = false; /* of a change */
		scanner->event.remedied = true;
	}
	scanner->page |= (scanner->piece <= TN_TITLE_LINES && tn__line_titles_page(line, length)) ||
	                 (scanner->piece == 1 && strcmp(line, "---") == 0); /* what a page says of itself */
	scanner->titles += scanner->piece <= TN_TITLE_LINES && tn__line_is_title(line, length);
	bool title = scanner->piece <= TN_TITLE_LINES && scanner->titles == 1 && tn__line_is_title(line, length);
	if (kind == TN_TRACE_OTHER || title)
		tn__voice_read(&scanner->voice, line, length, title);
	TN_FORWARD_IF_ERROR(add_squeezed(scanner, line, length, base));
	if (kind == TN_TRACE_END)
		tn__traces_end(scanner);
	if (too_long(scanner))
		TN_FORWARD_IF_ERROR(tn__event_close(scanner, scanner->squeezed_used));
	if (length > 0) {
		scanner->last_text = scanner->piece;
		scanner->columns_before = count;
		scanner->class_before = memchr(line, ' ', length) == NULL && length > 8 &&
		                        (strcmp(line + length - 5, "Error") == 0 ||
		                         strcmp(line + length - 9, "Exception") == 0);
	}
	scanner->found_before = tn__line_found(line, length);
	if (tn__line_opens_chapter(line, length))
		scanner->chapter = scanner->piece;
	if (tn__line_heads_remedy(line, length)) {
		scanner->event.remedied |= scanner->open && scanner->piece - scanner->event.last_line <= REMEDY_LINES;
		scanner->held_event.remedied |= scanner->held && scanner->piece - scanner->held_event.last_line <= REMEDY_LINES;
	}
	bool traced = kind == TN_TRACE_START || kind == TN_TRACE_FRAME;
	bool shown = kind == TN_TRACE_SOURCE && scanner->last_trace_line > 0 &&
	             scanner->piece - scanner->last_trace_line <= 2;
	if (!shown && kind != TN_TRACE_END)
		tn__code_read(&scanner->code, line, length, traced);
	scanner->example = tn__line_example(line, length, scanner->example);
	return TN_OK;
}

/* ---- lines ---- */

static tn_status
end_line(struct tn_message_scanner *scanner)
{
	size_t used = scanner->raw_used;
	scanner->raw_used = 0;
	return read_line(scanner, scanner->raw, used);
}

/* A line longer than the buffer is read in pieces, cut at a blank where one is near. */
static tn_status
cut_line(struct tn_message_scanner *scanner)
{
	size_t cut = scanner->raw_used;
	while (cut > scanner->raw_used - 256 && scanner->raw[cut - 1] != ' ')
		cut--;
	if (scanner->raw[cut - 1] != ' ')
		cut = scanner->raw_used;
	tn_status status = read_line(scanner, scanner->raw, cut);
	memmove(scanner->raw, scanner->raw + cut, scanner->raw_used - cut);
	scanner->raw_used -= cut;
	return status;
}

static tn_status
take(struct tn_message_scanner *scanner, char c)
{
	bool empty_after_return = c == '\n' && scanner->after_return && scanner->raw_used == 0;
	if ((c == '\n' && !empty_after_return) || c == '\r')
		TN_FORWARD_IF_ERROR(end_line(scanner));
	scanner->line += c == '\n';
	scanner->after_return = c == '\r';
	if (c == '\n' || c == '\r')
		return TN_OK;
	if (scanner->raw_used == sizeof(scanner->raw))
		TN_FORWARD_IF_ERROR(cut_line(scanner));
	scanner->raw[scanner->raw_used++] = c;
	return TN_OK;
}

/* A unit of little-endian UTF-16, as Windows' PowerShell writes logs, becomes UTF-8; halves of pairs become '?'. */
static tn_status
take_unit(struct tn_message_scanner *scanner)
{
	unsigned unit = scanner->unit[0] | (unsigned)scanner->unit[1] << 8;
	scanner->unit_used = 0;
	if (unit < 0x80)
		return take(scanner, (char)unit);
	if (unit >= 0xd800 && unit < 0xe000)
		return take(scanner, '?');
	if (unit >= 0x800)
		TN_FORWARD_IF_ERROR(take(scanner, (char)(0xe0 | unit >> 12)));
	TN_FORWARD_IF_ERROR(take(scanner, (char)(unit >= 0x800 ? 0x80 | (unit >> 6 & 0x3f) : 0xc0 | unit >> 6)));
	return take(scanner, (char)(0x80 | (unit & 0x3f)));
}

/* Tells the encoding from the first two bytes, then hands them on. */
static tn_status
take_start(struct tn_message_scanner *scanner)
{
	bool utf16 = scanner->unit_used == 2 && scanner->unit[0] == 0xff && scanner->unit[1] == 0xfe;
	size_t used = scanner->unit_used;
	scanner->encoding = utf16 ? ENCODING_UTF16 : ENCODING_BYTES;
	scanner->unit_used = 0;
	for (size_t i = 0; i < used && !utf16; i++)
		TN_FORWARD_IF_ERROR(take(scanner, (char)scanner->unit[i]));
	return TN_OK;
}

tn_status
tn__message_scan(struct tn_message_scanner *scanner, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (scanner->encoding == ENCODING_BYTES) {
			TN_FORWARD_IF_ERROR(take(scanner, bytes[i]));
			continue;
		}
		scanner->unit[scanner->unit_used++] = (unsigned char)bytes[i];
		if (scanner->unit_used == 2)
			TN_FORWARD_IF_ERROR(scanner->encoding == ENCODING_UTF16 ? take_unit(scanner) : take_start(scanner));
	}
	return TN_OK;
}

tn_status
tn__message_scan_end(struct tn_message_scanner *scanner)
{
	if (scanner->encoding == ENCODING_OPEN)
		TN_FORWARD_IF_ERROR(take_start(scanner));
	if (scanner->raw_used > 0)
		TN_FORWARD_IF_ERROR(end_line(scanner));
	TN_FORWARD_IF_ERROR(tn__event_close(scanner, scanner->squeezed_used));
	return tn__event_hand_out(scanner);
}
