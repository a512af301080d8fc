/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program was doing, from the frames of its traceback: two tables, phases.def and frameworks.def, which say how
 * they are read.
 *
 * Frames come outermost first. A place is the answer for the frames so far, and answers are joined in their order.
 * Every function is linear in its text, times the rows.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "message/internal_message.h"
#include "message/words_of_line.h"

#define GUESS 1 /* the lightest weight of phases.def */

struct phase_row {
	uint8_t phase, weight;
	const char *path, *function, *code;
};

static const struct phase_row phases[] = {
#define ROW(phase, weight, path, function, code) { TN_AT_##phase, weight, path, function, code },
#include "message/phases.def"
#undef ROW
};

struct framework_row {
	const char *name, *words;
	uint8_t layer;
	const char *paths;
};

static const struct framework_row frameworks[] = {
	{ NULL, NULL, 0, "" }, /* 0: none */
#define ROW(name, words, layer, paths) { name, words, layer, paths },
#include "message/frameworks.def"
#undef ROW
};
_Static_assert(sizeof(frameworks) / sizeof(frameworks[0]) <= UINT8_MAX, "struct tn_place counts rows in a byte");

/* ---- patterns ---- */

/* Where a piece of a pattern stands in a text, in code only where a name begins; NULL if nowhere. */
static const char *
find_piece(const char *text, const char *begin, size_t length, const char *piece, size_t size, bool code)
{
	const char *end = text + length;
	for (const char *at = text; (at = memchr(at, piece[0], (size_t)(end - at))) != NULL; at++) {
		if ((size_t)(end - at) < size)
			return NULL;
		if (memcmp(at, piece, size) == 0 && !(code && tn__name_char(piece[0]) && at > begin && tn__name_char(at[-1])))
			return at;
	}
	return NULL;
}

/* One alternative. Names must be covered from end to end, code needs only to have the pattern. */
static bool
holds_one(const char *pattern, size_t size, const char *text, size_t length, bool code)
{
	const char *begin = text, *end = text + length;
	bool loose = code;
	while (size > 0) {
		size_t piece = strcspn(pattern, "*|");
		if (piece > size)
			piece = size;
		bool last = piece == size;
		if (piece == 0) {
			loose = true;
			pattern++;
			size--;
			continue;
		}
		const char *at = text;
		if (last && !code && loose) { /* at the end */
			if ((size_t)(end - text) < piece)
				return false;
			at = end - piece;
		} else if (loose)
			at = find_piece(text, begin, (size_t)(end - text), pattern, piece, code);
		if (at == NULL || (size_t)(end - at) < piece || memcmp(at, pattern, piece) != 0)
			return false;
		text = at + piece;
		pattern += piece;
		size -= piece;
		loose = false;
	}
	return code || loose || text == end;
}

static bool
holds(const char *pattern, const char *text, size_t length, bool code)
{
	if (*pattern == '\0')
		return true;
	if (length == 0)
		return false;
	for (;;) {
		size_t size = strcspn(pattern, "|");
		if (holds_one(pattern, size, text, length, code))
			return true;
		if (pattern[size] == '\0')
			return false;
		pattern += size + 1;
	}
}

/* ---- reading ---- */

void
tn__place_join(struct tn_place *place, const struct tn_place *inner)
{
	if (inner->phase != TN_AT_UNKNOWN && inner->weight >= place->weight) {
		place->phase = inner->phase;
		place->weight = inner->weight;
	}
	if (frameworks[inner->framework].layer > frameworks[place->framework].layer)
		place->framework = inner->framework;
	place->frames |= inner->frames;
}

/* The heaviest row that holds; rows of code alone are kept for the code. */
static struct tn_place
phase_of(const char *path, size_t path_length, const char *function, size_t function_length, const char *code,
         size_t code_length)
{
	struct tn_place found = { 0 };
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		const struct phase_row *row = &phases[i];
		if (row->weight > found.weight && (*row->code != '\0') == (code != NULL) &&
		    holds(row->path, path, path_length, false) && holds(row->function, function, function_length, false) &&
		    (code == NULL || holds(row->code, code, code_length, true)))
			found = (struct tn_place){ .phase = row->phase, .weight = row->weight };
	}
	return found;
}

static bool
ends_with(const char *text, size_t length, const char *word)
{
	size_t size = strlen(word);
	return length >= size && memcmp(text + length - size, word, size) == 0;
}

static uint8_t
row_of(const char *framework)
{
	for (size_t i = 1; i < sizeof(frameworks) / sizeof(frameworks[0]); i++)
		if (strcmp(frameworks[i].name, framework) == 0)
			return (uint8_t)i;
	return 0;
}

void
tn__place_node(struct tn_place *place, const char *name, size_t length)
{
	struct tn_place inner = phase_of("", 0, name, length, NULL, 0);
	if (inner.phase == TN_AT_UPDATE || inner.phase == TN_AT_BACKWARD) /* what failed, whatever called it */
		inner.weight = UINT8_MAX;
	tn__place_join(place, &inner);
}

void
tn__place_frame(struct tn_place *place, const char *path, size_t length, const char *function, size_t function_length)
{
	char plain[TN_MESSAGE_CULPRIT];
	size_t used = 0;
	for (size_t i = 0; i < length && used < sizeof(plain); i++) {
		char c = path[i] == '\\' ? '/' : (char)tolower((unsigned char)path[i]);
		if (c == '/' && used > 0 && plain[used - 1] == '/') /* in quoted texts backslashes are doubled */
			continue;
		plain[used++] = c;
		/* an environment's name tells nothing */
		if (ends_with(plain, used, "/envs/") || ends_with(plain, used, "/.virtualenvs/"))
			while (i + 1 < length && path[i + 1] != '/' && path[i + 1] != '\\')
				i++;
	}
	struct tn_place inner = phase_of(plain, used, function, function_length, NULL, 0);
	for (size_t i = 1; i < sizeof(frameworks) / sizeof(frameworks[0]) && inner.framework == 0; i++)
		if (holds(frameworks[i].paths, plain, used, false))
			inner.framework = (uint8_t)i;
	inner.frames = true;
	tn__place_join(place, &inner);
}

/* The heaviest of the functions that code calls, by their names alone: their own frames may not have been pasted. */
static struct tn_place
phase_of_calls(const char *code, size_t length)
{
	struct tn_place found = { 0 };
	for (size_t i = 1; i < length; i++) {
		size_t first = i;
		while (code[i] == '(' && first > 0 && tn__name_char(code[first - 1]))
			first--;
		if (first == i)
			continue;
		struct tn_place inner = phase_of("", 0, code + first, i - first, NULL, 0);
		if (inner.phase != TN_AT_UNKNOWN && inner.weight > found.weight)
			found = inner;
	}
	return found;
}

void
tn__place_code(struct tn_place *place, const char *code, size_t length)
{
	struct tn_place inner = phase_of("", 0, "", 0, code, length), calls = phase_of_calls(code, length);
	if (calls.weight > GUESS && calls.weight > inner.weight)
		inner = calls;
	if (holds("torch.", code, length, true)) /* a program's own code that uses it */
		inner.framework = row_of("pytorch");
	tn__place_join(place, &inner);
}

/* ---- what it says ---- */

/* What the message's own words tell; NULL: nothing. */
static const struct tn_engine *
engine_of(const struct tn_family *family)
{
	for (size_t i = 0; i < tn__engine_count; i++)
		if (&tn__families[tn__engines[i].family] == family)
			return &tn__engines[i];
	return NULL;
}

static const char *
words_of(const char *framework)
{
	uint8_t row = row_of(framework);
	return row > 0 ? frameworks[row].words : "";
}

uint8_t
tn__place_higher(uint8_t framework, uint8_t other)
{
	return frameworks[other].layer > frameworks[framework].layer ? other : framework;
}

void
tn__place_tell(const struct tn_place *place, const struct tn_family *family, const struct tn_hint *hint, uint8_t others,
               struct tn_message *message)
{
	const struct framework_row *row = &frameworks[tn__place_higher(place->framework, others)];
	const struct tn_engine *engine = engine_of(family);
	message->phase = (enum tn_at)place->phase;
	message->framework = row->name;
	if (engine != NULL && row->layer <= 1) /* an engine's own words tell more than a frame of what it is made of */
		message->framework = engine->framework;
	else if (row->name == NULL && place->frames && strncmp(message->said_by, "PyTorch", 7) == 0)
		message->framework = "pytorch"; /* a program's own loop */
	if (hint != NULL && row->layer <= 1)
		message->framework = hint->framework;
	bool vague = message->phase == TN_AT_UNKNOWN || place->weight <= GUESS;
	/* a plan is refused at one moment only; the frames may be of the trial pass that it made */
	if (family->rule == TN_RULE_REFUSAL && engine != NULL)
		vague = true;
	if (hint != NULL && hint->at != TN_AT_UNKNOWN && vague)
		message->phase = hint->at;
	else if (engine != NULL && engine->at != TN_AT_UNKNOWN && vague)
		message->phase = engine->at;
	message->framework_words = message->framework != NULL ? words_of(message->framework) : "";
}

static const struct {
	const char *text, *words, *link;
} at_texts[] = {
#define TN_AT_TEXT(name, text, words, link) { text, words, link },
	TN_AT_LIST(TN_AT_TEXT)
#undef TN_AT_TEXT
};

const char *
tn__at_text(enum tn_at at)
{
	return at_texts[at].text;
}

/* An engine that loads makes its cache and tries a pass, too: which of these it was only its frames tell, if there are any. */
static bool
starts_an_engine(const struct tn_message *message)
{
	for (size_t i = 0; message->phase == TN_AT_LOAD && message->framework != NULL && i < tn__engine_count; i++)
		if (tn__engines[i].at == TN_AT_LOAD && strcmp(tn__engines[i].framework, message->framework) == 0)
			return true;
	return false;
}

const char *
tn__at_words(const struct tn_message *message, char buffer[128])
{
	const char *framework = message->framework_words, *words = at_texts[message->phase].words;
	if (starts_an_engine(message)) {
		snprintf(buffer, 128, "while starting %s", framework);
		return buffer;
	}
	if (framework[0] == '\0' || message->phase == TN_AT_UNKNOWN)
		snprintf(buffer, 128, "%s%s", framework[0] != '\0' ? "with " : words, framework);
	else
		snprintf(buffer, 128, "%s %s %s", words, at_texts[message->phase].link, framework);
	return buffer;
}
