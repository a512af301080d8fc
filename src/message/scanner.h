/* SPDX-License-Identifier: Apache-2.0
 *
 * The scanner's state: shared by scan.c, which fills it, traces.c, which follows tracebacks, and event.c, which
 * closes messages.
 *
 * Invariant: everything between the open message's start and the end of the window is kept; nothing else is needed.
 */
#ifndef TN_MESSAGE_SCANNER_H
#define TN_MESSAGE_SCANNER_H

#include "message/internal_message.h"
#include "message/seen.h"

#define TN_LOOK_BACK 512 /* squeezed characters of the same line that belong to a message before its anchor */
enum { TN_ANCHORS_MOST = 768, TN_ANCHOR_HEADS = 1024 };
#define TN_OWNERS 64 /* processes whose tracebacks are followed at a time */

/* One process's traceback: its last own frame, and where all its frames are. */
struct tn_trace_state {
	uint64_t owner, line;
	uint64_t ended; /* the piece in which its exception stood, 0 while it is open */
	int64_t rank;
	bool active, used;
	struct tn_frame_reader reader;
	char culprit[TN_MESSAGE_CULPRIT];
	struct tn_place place; /* of all its frames */
};

enum tn_after { AFTER_WAITS, AFTER_READS, AFTER_OVER };

/* A message that is being read, and, once it is closed, what is needed to tell repetitions. */
struct tn_event {
	const struct tn_family *family;
	uint8_t weight, order, first_order, group;
	bool reported; /* a line of it looks like an error report */
	enum tn_after after;
	uint64_t owner, line, last_line;
	size_t start, last_end; /* in the squeezed window */
	int64_t rank;
	char culprit[TN_MESSAGE_CULPRIT];
	struct tn_place place;
	bool title;                 /* it stands in a thread's title */
	bool said;                  /* somebody tells of it in words of his own */
	bool needs_trace;           /* a mention, unless a traceback that ends in no other error follows ... */
	bool needs_trouble;         /* ... or somebody writes because something of his fails */
	bool heads_trace;           /* a notebook's head of a traceback, whose own line follows it */
	bool bare;                  /* its line holds nothing else */
	bool remedied;              /* a heading behind it says what to do about such errors */
	bool place_follows;         /* it is read from the traceback behind the error */
	const struct tn_hint *hint; /* what words near it tell; NULL: nothing */
};

struct tn_message_scanner {
	tn_message_found *found;
	void *context;
	int16_t head[TN_ANCHOR_HEADS], next[TN_ANCHORS_MOST]; /* anchors by their last two characters */

	enum { ENCODING_OPEN, ENCODING_BYTES, ENCODING_UTF16 } encoding; /* by the first two bytes */
	unsigned char unit[2];                                           /* of UTF-16, or of the text's start */
	size_t unit_used;
	char raw[TN_MESSAGE_LINE];
	size_t raw_used;
	bool after_return; /* the last byte was a carriage return */
	uint64_t line;     /* of the text, from 1 */
	uint64_t piece;    /* like line, but pieces of long lines count, too */

	char clean[TN_MESSAGE_WINDOW], squeezed[TN_MESSAGE_WINDOW];
	uint32_t origin[TN_MESSAGE_WINDOW]; /* of each squeezed character in clean */
	size_t clean_used, squeezed_used;
	uint64_t last_text;    /* the last piece that is not blank */
	size_t columns_before; /* of the line before */
	bool in_change;        /* the last line is one of a change, as diff writes them */
	bool chained;          /* what led to one exception comes from what another one came from */
	bool found_before;     /* the line before is what a search found */
	struct tn_code_around code;
	struct tn_voice voice;
	bool class_before; /* the line before is the name of an exception and nothing else */
	uint8_t titles;    /* lines among the first that look like a title */
	bool page;         /* the text's title is one of a page that teaches */
	uint64_t chapter;  /* the line that opened a chapter about errors; 0: none */
	enum tn_example example;
	uint64_t spoken_lines, spoken_last; /* in how many lines such errors were spoken of, and the last of them */

	int64_t rank;
	uint64_t owner;
	uint64_t shown; /* what the text has shown of advice.def so far */
	struct tn_seen seen;
	uint8_t framework; /* the highest that any frame has shown */

	struct tn_trace_state traces[TN_OWNERS];
	uint64_t last_trace_line;
	size_t last_trace;

	bool open, held, handed; /* one message has been handed out */
	struct tn_event event, held_event;
	struct tn_message message, held_message;
};

/* Whether two lines come from different processes, as far as their prefixes tell: ranks are compared with ranks, pids
 * with pids. */
bool tn__strangers(uint64_t a, uint64_t b);

/* Reads a clean line as a possible frame of the current process's traceback; frames behind an error go to it. */
enum tn_trace_line tn__traces_read(struct tn_message_scanner *scanner, const char *line, size_t length);

/* The current process's exception stands in this line. */
void tn__traces_end(struct tn_message_scanner *scanner);

/* Gives an error the own frame that led to it, and the place of all frames. */
void tn__traces_take_culprit(struct tn_message_scanner *scanner, struct tn_event *event);

/* ---- worth.c ---- */

#define TN_TITLE_LINES 3 /* of a text, among which the title of a page stands */

/* What a find of an anchor is worth. */
enum tn_worth {
	TN_WORTH_NOTHING,
	TN_WORTH_TRACE /* only if a traceback follows */,
	TN_WORTH_MENTION /* that, or if who writes has trouble */,
	TN_WORTH_FIGURES /* only with figures */,
	TN_WORTH_REPORT
};

/* The clean line around a squeezed position, at most 1 KiB to each side; returns the position within it. */
size_t tn__line_around(const struct tn_message_scanner *scanner, size_t position, const char **line, size_t *length);

/* What an anchor at the squeezed [start, end) is worth. */
enum tn_worth tn__anchor_worth(const struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start,
                               size_t end);

/* Whether an anchor that was found is a part of another word or of prose. */
bool tn__anchor_misread(const struct tn_message_scanner *scanner, const struct tn_anchor *anchor, size_t start,
                        size_t end);

/* ---- event.c ---- */

/* Closes the open message, if there is one: `end` is where the next begins, or the end of the window. Fails only as
 * the receiver does. */
tn_status tn__event_close(struct tn_message_scanner *scanner, size_t end);

/* Hands out the message that is held back, if there is one. */
tn_status tn__event_hand_out(struct tn_message_scanner *scanner);

#endif
