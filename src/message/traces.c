/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracebacks of several processes, read line by line: which own frame led to an error, before it or after it.
 */
#include <string.h>

#include "message/scanner.h"

#define TRACE_LINES 60  /* between the last frame and its error */
#define WRAPPED_LINES 3 /* that the line of an exception may be wrapped to before its known phrase */
#define AFTER_LINES 15  /* between an error and the traceback that follows it */

static struct tn_trace_state *
trace_of(struct tn_message_scanner *scanner, uint64_t owner)
{
	struct tn_trace_state *oldest = &scanner->traces[0];
	for (size_t i = 0; i < TN_OWNERS; i++) {
		struct tn_trace_state *trace = &scanner->traces[i];
		if (trace->line > 0 && trace->owner == owner)
			return trace;
		if (trace->line < oldest->line)
			oldest = trace;
	}
	memset(oldest, 0, sizeof(*oldest));
	oldest->owner = owner;
	return oldest;
}

/* Gives frames that follow an error to it, if it has no own frame yet. */
static void
read_after(struct tn_message_scanner *scanner, enum tn_trace_line kind, const struct tn_frames *found)
{
	struct tn_event *event = scanner->open ? &scanner->event : &scanner->held_event;
	if ((!scanner->open && !scanner->held) || tn__strangers(event->owner, scanner->owner) || event->after == AFTER_OVER)
		return;
	if (event->after == AFTER_WAITS) {
		if (event->culprit[0] != '\0' || scanner->piece - event->last_line > AFTER_LINES) {
			event->after = AFTER_OVER;
			return;
		}
		if (kind == TN_TRACE_START || kind == TN_TRACE_FRAME) {
			event->after = AFTER_READS;
			event->place_follows = !event->place.program;
			if (event->rank < 0)
				event->rank = scanner->rank;
			if (!scanner->open && scanner->held_message.rank < 0)
				scanner->held_message.rank = scanner->rank;
		}
	}
	if (event->after != AFTER_READS)
		return;
	if (found->own)
		memcpy(event->culprit, found->culprit, TN_MESSAGE_CULPRIT);
	if (event->place_follows)
		tn__place_join(&event->place, &found->place);
	if (event->needs_trace && kind == TN_TRACE_END) /* of another error */
		event->place = (struct tn_place){ 0 };
	bool ends = kind == TN_TRACE_OTHER || kind == TN_TRACE_END || (kind == TN_TRACE_START && event->culprit[0] != '\0');
	if (ends || scanner->piece - event->last_line > 4 * TRACE_LINES)
		event->after = AFTER_OVER;
}

enum tn_trace_line
tn__traces_read(struct tn_message_scanner *scanner, const char *line, size_t length)
{
	struct tn_frames found;
	struct tn_trace_state *last = &scanner->traces[scanner->last_trace];
	bool goes_on = scanner->owner == 0 && tn__frame_goes_on(&last->reader) &&
	               scanner->last_trace_line + 1 == scanner->piece;
	struct tn_trace_state *trace = goes_on ? last : trace_of(scanner, scanner->owner); /* a wrapped line has no mark */
	enum tn_trace_line kind = tn__frame_read(&trace->reader, line, length, &found);
	scanner->framework = tn__place_higher(scanner->framework, found.place.framework);
	if (kind == TN_TRACE_START) {
		trace->culprit[0] = '\0';
		trace->place = (struct tn_place){ 0 };
		trace->used = false;
	}
	if (kind == TN_TRACE_START || kind == TN_TRACE_FRAME) {
		if (trace->ended > 0)
			trace->culprit[0] = '\0';
		if (trace->ended > 0 || (found.own && trace->used))
			trace->place = (struct tn_place){ 0 };
		trace->ended = 0;
		trace->active = true;
		trace->rank = goes_on ? trace->rank : scanner->rank;
		scanner->last_trace = (size_t)(trace - scanner->traces);
		scanner->last_trace_line = trace->line = scanner->piece;
		if (found.own && trace->used) /* a new stack without its opening line */
			trace->used = false;
		if (found.own)
			memcpy(trace->culprit, found.culprit, TN_MESSAGE_CULPRIT);
	}
	/* the code of a frame that was not pasted */
	if (kind == TN_TRACE_SOURCE && tn__place_tells(&found.place) && !trace->active) {
		trace->active = true;
		trace->line = scanner->piece;
		trace->rank = scanner->rank;
		found.place.frames = true;
	}
	tn__place_join(&trace->place, &found.place);
	if (tn__find(line, length, "another exception occurred") != NULL ||
	    tn__find(line, length, "direct cause of the following") != NULL)
		scanner->chained = true;
	if (scanner->chained && found.place.frames && (scanner->open || scanner->held)) {
		struct tn_event *event = scanner->open ? &scanner->event : &scanner->held_event;
		event->place.framework = tn__place_higher(event->place.framework, found.place.framework);
	}
	read_after(scanner, kind, &found);
	return kind;
}

void
tn__traces_take_culprit(struct tn_message_scanner *scanner, struct tn_event *event)
{
	struct tn_trace_state *trace = trace_of(scanner, event->owner);
	bool over = trace->ended > 0 && scanner->piece - trace->ended > WRAPPED_LINES;
	if (!trace->active || trace->used || over || scanner->piece - trace->line > TRACE_LINES)
		return;
	if (trace->culprit[0] != '\0')
		memcpy(event->culprit, trace->culprit, TN_MESSAGE_CULPRIT);
	if (event->heads_trace) /* which has read all frames, also those before the last one of one's own */
		tn__place_join(&event->place, &trace->place);
	else
		event->place = trace->place;
	trace->used = true;
}

void
tn__traces_end(struct tn_message_scanner *scanner)
{
	trace_of(scanner, scanner->owner)->ended = scanner->piece;
}
