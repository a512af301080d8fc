/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a message: read once from left to right, each given its meaning by the phrase around it.
 *
 * A number that is cut inside itself or its unit gives nothing. Invariant: a figure is set at most once.
 */
#include <string.h>

#include "message/internal_message.h"

/* A printed number of a squeezed text. */
struct number {
	size_t start, digits_end, end; /* end is behind the unit */
	uint64_t whole;                /* when it is one */
	bool is_whole, fits;
	bool has_unit; /* KiB and up, or bytes */
	bool bytes;    /* the unit is bytes */
	double factor;
};

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
letter(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool
starts(const char *text, size_t length, const char *with)
{
	size_t size = strlen(with);
	return size <= length && memcmp(text, with, size) == 0;
}

/* Three digits after a comma, and not four. */
static bool
thousands(const char *text, size_t length, size_t comma)
{
	size_t i = comma + 1;
	while (i < length && i < comma + 5 && digit(text[i]))
		i++;
	return i == comma + 4;
}

/* Whether a number's fraction begins at `mark`, which may be empty before a unit: NumPy prints "117. GiB". */
static bool
fraction_at(const char *text, size_t length, size_t mark)
{
	const char *after = text + mark + 1;
	size_t rest = length - mark - 1;
	return rest > 0 && (digit(*after) || starts(after, rest, "gib") || starts(after, rest, "mib") ||
	                    starts(after, rest, "kib") || starts(after, rest, "tib"));
}

static void
read_digits(const char *text, size_t length, struct number *number)
{
	size_t i = number->start;
	bool fraction = false, grouped = false;
	number->fits = number->is_whole = true;
	for (; i < length; i++) {
		char c = text[i];
		if (digit(c) && !fraction) {
			uint64_t next = number->whole * 10 + (uint64_t)(c - '0');
			number->fits &= number->whole < UINT64_MAX / 10 - 1;
			number->whole = number->fits ? next : 0;
		} else if (digit(c)) {
			continue;
		} else if (c == ',' && !fraction && thousands(text, length, i)) {
			grouped = true;
		} else if ((c == '.' || (c == ',' && !grouped)) && !fraction && fraction_at(text, length, i)) {
			fraction = true;
			number->is_whole = false;
		} else {
			break;
		}
	}
	number->digits_end = i;
}

static void
read_unit(const char *text, size_t length, struct number *number)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = { { "bytes", 1 },
		          { "kib", 1024.0 },
		          { "mib", 1048576.0 },
		          { "gib", 1073741824.0 },
		          { "tib", 1099511627776.0 },
		          { "pib", 1125899906842624.0 },
		          { "eib", 1152921504606846976.0 },
		          { "kb", 1024.0 },
		          { "mb", 1048576.0 },
		          { "gb", 1073741824.0 },
		          { "tb", 1099511627776.0 },
		          { "byte", 1 } };
	static const struct {
		char name;
		double factor;
	} letters[] = { { 'b', 1 }, { 'k', 1024.0 }, { 'm', 1048576.0 }, { 'g', 1073741824.0 }, { 't', 1099511627776.0 } };
	size_t first = number->digits_end;
	if (first + 1 < length && text[first] == '/' && digit(text[first + 1])) /* "2.60/15.49 GiB" */
		for (first++; first < length && (digit(text[first]) || text[first] == '.');)
			first++;
	bool shared = first > number->digits_end;
	const char *at = text + first;
	size_t rest = length - first;
	number->end = number->digits_end;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (starts(at, rest, units[i].name)) {
			number->has_unit = true;
			number->factor = units[i].factor;
			number->bytes = units[i].factor == 1;
			number->end += shared ? 0 : strlen(units[i].name);
			return;
		}
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (rest > 1 && at[0] == letters[i].name && !letter(at[1]) && !digit(at[1])) {
			number->has_unit = true;
			number->factor = letters[i].factor;
			number->bytes = letters[i].factor == 1;
			number->end += !shared;
			return;
		}
}

/* Reads the number that starts at `start`. */
static struct number
read_number(const char *text, size_t length, size_t start)
{
	struct number number = { .start = start };
	read_digits(text, length, &number);
	read_unit(text, length, &number);
	return number;
}

/* The exact decimal value times the unit, to a whole byte. The digits are read again so that two decimals stay exact.
 */
static uint64_t
to_bytes(const char *text, const struct number *number)
{
	if (!number->has_unit || (number->bytes && number->is_whole)) /* Paddle prints "0.000000B" */
		return number->is_whole && number->fits ? number->whole : TN_MESSAGE_NONE;
	char plain[48];
	size_t used = 0;
	for (size_t i = number->start; i < number->digits_end && used < sizeof(plain) - 1; i++) {
		bool group = text[i] == ',' && thousands(text, number->digits_end, i);
		if (!group)
			plain[used++] = text[i] == ',' ? '.' : text[i];
	}
	plain[used] = '\0';
	long double whole = 0, scale = 1;
	bool fraction = false;
	for (size_t i = 0; i < used; i++) {
		if (plain[i] == '.') {
			fraction = true;
			continue;
		}
		whole = whole * 10 + (plain[i] - '0');
		scale *= fraction ? 10 : 1;
	}
	long double bytes = whole * (long double)number->factor / scale + 0.5L;
	/* 2^64 bytes, printed as 17179869184.00 GiB, stands for "no limit" or "not known". */
	return bytes >= 18446744073709551615.0L ? TN_MESSAGE_NONE : (uint64_t)bytes;
}

/* ---- phrases ---- */

static bool
ends_with(const char *text, size_t end, const char *word)
{
	size_t size = strlen(word);
	return size <= end && memcmp(text + end - size, word, size) == 0;
}

static bool
phrase_holds(const struct tn_phrase *phrase, const char *text, size_t length, const struct number *number)
{
	size_t end = number->digits_end;
	if (!ends_with(text, number->start, phrase->before))
		return false;
	if (phrase->form == TN_FORM_SIZE) {
		if (!number->has_unit)
			return false;
		end = number->end;
	} else if (phrase->form == TN_FORM_GIB) {
		if (number->has_unit)
			return false;
	} else if (!number->is_whole || (phrase->form == TN_FORM_INDEX && (number->whole > 4095 || !number->fits))) {
		return false;
	} else if (phrase->form == TN_FORM_BYTES && phrase->after[0] == '\0' && number->has_unit && !number->bytes) {
		return false;
	}
	return starts(text + end, length - end, phrase->after);
}

static void
set_figure(const struct tn_phrase *phrase, const char *text, const struct number *number, struct tn_message *message)
{
	if (phrase->figure == TN_DEVICE_INDEX) {
		if (message->device_index < 0)
			message->device_index = (int64_t)number->whole;
		return;
	}
	struct number gib = *number;
	if (phrase->form == TN_FORM_GIB) {
		gib.has_unit = true;
		gib.factor = 1073741824.0;
	}
	uint64_t bytes = phrase->form != TN_FORM_BYTES ? to_bytes(text, &gib)
	                                               : (number->fits ? number->whole : TN_MESSAGE_NONE);
	uint64_t *figure = phrase->figure >= TN_NEED ? &message->need[phrase->figure - TN_NEED]
	                                             : &message->figures[phrase->figure];
	if (*figure == TN_MESSAGE_NONE)
		*figure = bytes;
	if (phrase->figure == TN_FIGURE_RESERVED && strcmp(phrase->after, "cached") == 0)
		message->reserved_is_idle = true;
}

/* "Process 12 has 3.00 GiB": the pid is the number before. */
static bool
read_process(const char *text, const struct number *number, struct tn_message *message)
{
	size_t i = number->start;
	if (!number->has_unit || !ends_with(text, i, "has"))
		return false;
	size_t end = i - 3;
	for (i = end; i > 0 && digit(text[i - 1]);)
		i--;
	if (i == end || end - i > 18 || !ends_with(text, i, "process"))
		return false;
	if (message->process_count < TN_MESSAGE_PROCESSES) {
		struct tn_message_process *process = &message->processes[message->process_count++];
		process->pid = 0;
		for (; i < end; i++)
			process->pid = process->pid * 10 + (uint64_t)(text[i] - '0');
		process->bytes = to_bytes(text, number);
	}
	return true;
}

/* A later phrase of the list must not beat an earlier one: the list is tried for each number, and for each figure the
 * phrase that stands first in the list wins over the whole text. */
static void
read_phrases(const struct tn_phrase *phrases, const char *text, size_t length, struct tn_message *message)
{
	size_t best[TN_FOUND_COUNT];
	memset(best, 0xff, sizeof(best));
	for (size_t i = 0; i < length; i++) {
		if (!digit(text[i]))
			continue;
		struct number number = read_number(text, length, i);
		bool process = read_process(text, &number, message);
		for (size_t p = 0; !process && phrases[p].before != NULL; p++) {
			if (p >= best[phrases[p].figure] || !phrase_holds(&phrases[p], text, length, &number))
				continue;
			best[phrases[p].figure] = p;
			if (phrases[p].figure == TN_DEVICE_INDEX)
				message->device_index = -1;
			else if (phrases[p].figure >= TN_NEED)
				message->need[phrases[p].figure - TN_NEED] = TN_MESSAGE_NONE;
			else
				message->figures[phrases[p].figure] = TN_MESSAGE_NONE;
			set_figure(&phrases[p], text, &number, message);
			break;
		}
		i = (number.digits_end > i ? number.digits_end : i + 1) - 1;
	}
}

void
tn__figures_read(const struct tn_family *family, const char *squeezed, size_t length, struct tn_message *message)
{
	message->device_index = -1;
	message->process_count = 0;
	message->reserved_is_idle = false;
	for (size_t i = 0; i < TN_FIGURE_COUNT; i++)
		message->figures[i] = TN_MESSAGE_NONE;
	for (size_t i = 0; i < TN_NEED_COUNT; i++)
		message->need[i] = TN_MESSAGE_NONE;
	if (family->phrases != NULL)
		read_phrases(family->phrases, squeezed, length, message);
	if (message->need[TN_NEED_NEEDED_BYTES] != TN_MESSAGE_NONE &&
	    message->need[TN_NEED_BUDGET_BYTES] == TN_MESSAGE_NONE)
		message->need[TN_NEED_BUDGET_BYTES] = message->figures[TN_FIGURE_FREE]; /* all that it can have */
}
