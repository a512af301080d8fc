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

#define GUESS 1         /* what only a file's name weighs, at most */
#define TRAINER_LAYER 4 /* of frameworks.def, from which on a row tells more than a package of no row */

struct phase_row {
	uint8_t phase, kind; /* enum tn_at, enum tn_evidence */
	const char *path, *function, *code;
};

static const struct phase_row phases[] = {
#define ROW(phase, kind, path, function, code) { TN_AT_##phase, TN_EVIDENCE_##kind, path, function, code },
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
			at = find_piece(text, begin, (size_t)(end - text), pattern, piece, code && text == begin);
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

/* Whether a name, which a "_" opens and closes, has the words of one of the patterns. */
static bool
has_words(const char *patterns, const char *name, size_t length)
{
	char pattern[64];
	for (size_t size; *patterns != '\0'; patterns += size + (patterns[size] == '|')) {
		size = strcspn(patterns, "|");
		int used = snprintf(pattern, sizeof(pattern), "*_%.*s_*", (int)size, patterns);
		if (used > 0 && (size_t)used < sizeof(pattern) && holds_one(pattern, (size_t)used, name, length, false))
			return true;
	}
	return false;
}

/* ---- reading ---- */

uint8_t
tn__place_higher(uint8_t framework, uint8_t other)
{
	return frameworks[other].layer > frameworks[framework].layer ? other : framework;
}

bool
tn__place_tells(const struct tn_place *place)
{
	for (size_t at = 0; at < TN_AT_COUNT; at++)
		if (place->evidence[at] != 0)
			return true;
	return place->operation != TN_AT_UNKNOWN;
}

void
tn__place_join(struct tn_place *place, const struct tn_place *inner)
{
	for (size_t at = 0; at < TN_AT_COUNT; at++) {
		place->evidence[at] |= inner->evidence[at];
		if (inner->evidence[at] != 0)
			place->innermost[at] = (uint8_t)(inner->innermost[at] < UINT8_MAX - place->count
			                                     ? place->count + inner->innermost[at]
			                                     : UINT8_MAX);
	}
	place->count = (uint8_t)(inner->count < UINT8_MAX - place->count ? place->count + inner->count : UINT8_MAX);
	if (inner->operation != TN_AT_UNKNOWN)
		place->operation = inner->operation;
	place->framework = tn__place_higher(place->framework, inner->framework);
	if (place->package[0] == '\0')
		memcpy(place->package, inner->package, sizeof(place->package));
	place->frames |= inner->frames;
	place->program |= inner->program;
	place->foreign |= inner->foreign;
}

/* The heaviest kind of evidence of some bits. */
static enum tn_evidence
heaviest(unsigned evidence)
{
	unsigned kind = TN_EVIDENCE_COUNT - 1;
	while (kind > 0 && (evidence >> kind & 1) == 0)
		kind--;
	return (enum tn_evidence)kind;
}

/* The evidence of one frame; rows of code alone are kept for the code. A row of phase UNKNOWN takes away what is weaker. */
static struct tn_place
evidence_of(const char *path, size_t path_length, const char *function, size_t function_length, const char *code,
            size_t code_length)
{
	struct tn_place found = { 0 };
	char padded[128] = "_", *lower = padded + 1;
	size_t size = function_length < sizeof(padded) - 2 ? function_length : sizeof(padded) - 2;
	for (size_t i = 0; i < size; i++)
		lower[i] = (char)tolower((unsigned char)function[i]);
	lower[size] = '_';
	bool operation = memchr(lower, '/', size) != NULL; /* of a graph, whose parts have names of all kinds */
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		const struct phase_row *row = &phases[i];
		bool words = row->kind == TN_EVIDENCE_WORD && row->phase != TN_AT_UNKNOWN && *row->function != '\0';
		if ((words && operation) || (*row->code != '\0') != (code != NULL))
			continue;
		if (holds(row->path, path, path_length, false) &&
		    (words ? has_words(row->function, padded, size + 2) : holds(row->function, lower, size, false)) &&
		    (code == NULL || holds(row->code, code, code_length, true))) {
			found.evidence[row->phase] |= (uint8_t)(1 << row->kind);
			found.innermost[row->phase] = 1;
		}
	}
	if (found.evidence[TN_AT_UNKNOWN] != 0) {
		unsigned weaker = (1U << heaviest(found.evidence[TN_AT_UNKNOWN])) - 1;
		for (size_t at = 0; at < TN_AT_COUNT; at++)
			found.evidence[at] &= (uint8_t)~weaker;
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
	struct tn_place inner = evidence_of("", 0, name, length, NULL, 0);
	if (inner.evidence[TN_AT_BACKWARD] != 0 || inner.evidence[TN_AT_UPDATE] != 0) /* what failed, whatever called it */
		inner.operation = inner.evidence[TN_AT_BACKWARD] != 0 ? TN_AT_BACKWARD : TN_AT_UPDATE;
	tn__place_join(place, &inner);
}

/* Functions with which a trainer or an engine begins a run. */
static const char drivers[] =
	"train|train_*|*_train|*_trainer|training_step|fit|fit_*|finetune*|predict|predict_*|infer|"
	"infer_*|inference|inference_*|generate|generate_*|transcribe|translate|synthesize|"
	"evaluate|validate|test_epoch|launch|launch_*|entrypoint|cli_main";

/* Parts of a package that run something. */
static const char driving[] = "/cli.py|*/cli/*|*/core/*|*/engine/*|/engine.py|*/engines/*|*/trainer*|*/training/*|"
							  "*/server/*|*/serve/*|*/api/*|*/runner*|*/worker*|*/loops/*|*/scripts/*|*/commands/*|"
							  "*/applications/*";

/* The installed package of a path, if the function of its frame begins a run. */
static void
read_package(struct tn_place *place, const char *path, size_t length, const char *function, size_t function_length)
{
	const char *end = path + length, *at = NULL;
	for (size_t i = 0; i + 10 < length; i++)
		if (memcmp(path + i, "-packages/", 10) == 0)
			at = path + i + 10;
	const char *slash = at != NULL ? memchr(at, '/', (size_t)(end - at)) : NULL;
	if (slash == NULL || (size_t)(slash - at) >= sizeof(place->package) ||
	    !(holds(drivers, function, function_length, false) || holds(driving, slash, (size_t)(end - slash), false)))
		return;
	for (size_t i = 0; at + i < slash; i++)
		place->package[i] = at[i] == '_' ? '-' : at[i];
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
	used -= ends_with(plain, used, ".pyc");
	struct tn_place inner = evidence_of(plain, used, function, function_length, NULL, 0);
	for (size_t i = 1; i < sizeof(frameworks) / sizeof(frameworks[0]) && inner.framework == 0; i++)
		if (holds(frameworks[i].paths, plain, used, false))
			inner.framework = (uint8_t)i;
	if (inner.framework == 0)
		read_package(&inner, plain, used, function, function_length);
	inner.frames = true;
	inner.foreign = inner.framework != 0 && strcmp(frameworks[inner.framework].name, "foreign") == 0;
	inner.program = inner.framework == 0 || frameworks[inner.framework].layer > 0;
	inner.count = 1;
	tn__place_join(place, &inner);
}

/* Adds the functions that code calls, by their names alone: their own frames may not have been pasted. */
static void
add_calls(struct tn_place *place, const char *code, size_t length)
{
	for (size_t i = 1; i < length; i++) {
		size_t first = i;
		while (code[i] == '(' && first > 0 && tn__name_char(code[first - 1]))
			first--;
		if (first == i)
			continue;
		struct tn_place inner = evidence_of("", 0, code + first, i - first, NULL, 0);
		for (size_t at = 0; at < TN_AT_COUNT; at++)
			inner.evidence[at] &= (uint8_t)~(1 << TN_EVIDENCE_GUESS);
		tn__place_join(place, &inner);
	}
}

void
tn__place_code(struct tn_place *place, const char *code, size_t length)
{
	struct tn_place inner = evidence_of("", 0, "", 0, code, length);
	add_calls(&inner, code, length);
	memset(inner.innermost, 0, sizeof(inner.innermost)); /* it is of the frame that was added last */
	if (holds("torch.", code, length, true))             /* a program's own code that uses it */
		inner.framework = row_of("pytorch");
	tn__place_join(place, &inner);
}

/* ---- what it says ---- */

static bool
among(const char *names, const char *name)
{
	return holds(names, name, strlen(name), false);
}

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

/* Whether a program with frames of Python that name nothing else is taken for one of PyTorch. */
static bool
may_be_torch(const struct tn_message *message)
{
	return strncmp(message->said_by, "PyTorch", 7) == 0 ||
	       (message->kind != TN_KIND_HOST &&
	        among("cuda_error_oom|other|told|cublas|cudnn|nccl|torch_0x", message->family));
}

static const uint8_t weights[TN_AT_COUNT][TN_EVIDENCE_COUNT] = {
#define PHASE(phase, guess, word, name, entry) [TN_AT_##phase] = { guess, word, name, entry },
#include "message/phase_weights.def"
#undef PHASE
};

/* The phase of the heaviest evidence, and of equal ones the innermost; `weight`: how heavy it is. */
static enum tn_at
phase_of(const struct tn_place *place, uint8_t *weight)
{
	enum tn_at phase = TN_AT_UNKNOWN;
	*weight = 0;
	for (size_t at = TN_AT_UNKNOWN + 1; at < TN_AT_COUNT; at++) {
		uint8_t own = place->evidence[at] != 0 ? weights[at][heaviest(place->evidence[at])] : 0;
		if (own > *weight || (own > 0 && own == *weight && place->innermost[at] > place->innermost[phase])) {
			*weight = own;
			phase = (enum tn_at)at;
		}
	}
	if (place->operation == TN_AT_UNKNOWN)
		return phase;
	*weight = UINT8_MAX;
	return (enum tn_at)place->operation;
}

void
tn__place_tell(const struct tn_place *place, const struct tn_family *family, const struct tn_hint *hint, uint8_t others,
               struct tn_message *message)
{
	const struct framework_row *row = &frameworks[tn__place_higher(place->framework, others)];
	const struct tn_engine *engine = engine_of(family);
	uint8_t weight;
	message->phase = phase_of(place, &weight);
	message->framework = row->name;
	if (place->package[0] != '\0' && row->layer < TRAINER_LAYER) {
		memcpy(message->package, place->package, sizeof(message->package));
		message->framework = message->package;
	} else if (engine != NULL &&
	           row->layer <= 1) /* an engine's own words tell more than a frame of what it is made of */
		message->framework = engine->framework;
	else if (row->name == NULL && place->frames && !place->foreign && may_be_torch(message))
		message->framework = "pytorch"; /* a program's own loop */
	if (hint != NULL && row->layer <= 1)
		message->framework = hint->framework;
	bool vague = weight <= GUESS;
	/* a plan is refused at one moment only; the frames may be of the trial pass that it made */
	if (family->rule == TN_RULE_REFUSAL && engine != NULL)
		vague = true;
	if (hint != NULL && hint->at != TN_AT_UNKNOWN && vague)
		message->phase = hint->at;
	else if (engine != NULL && engine->at != TN_AT_UNKNOWN && vague)
		message->phase = engine->at;
	message->framework_words = message->framework == NULL               ? ""
	                           : message->framework == message->package ? message->package
	                                                                    : words_of(message->framework);
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
