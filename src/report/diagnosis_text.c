/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor's screen.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "report/diagnosis.h"

#define COLUMN 12

const char *
tn__level_name(enum tn_level level)
{
	static const char *const names[] = { "fact", "hint", "warning", "error" };
	return names[level];
}

const char *
tn__part_name(enum tn_machine_part part)
{
	static const char *const names[] = { "driver", "card", "memory", "toolkit", "torch", "settings", "host" };
	return names[part];
}

/* "1 error, 2 warnings": appends one count. */
static void
add_count(char *text, size_t capacity, size_t count, enum tn_level level)
{
	size_t length = strlen(text);
	if (count > 0)
		snprintf(text + length, capacity - length, "%s%zu %s%s", length > 0 ? ", " : "", count, tn__level_name(level),
		         count > 1 ? "s" : "");
}

static void
say_head(const struct tn_printer *printer, const struct tn_diagnosis *diagnosis)
{
	char counts[96] = "";
	for (int level = TN_LEVEL_ERROR; level >= TN_LEVEL_HINT; level--)
		add_count(counts, sizeof(counts), tn__diagnosis_count(diagnosis, (enum tn_level)level), (enum tn_level)level);
	bool bad = tn__diagnosis_count(diagnosis, TN_LEVEL_ERROR) + tn__diagnosis_count(diagnosis, TN_LEVEL_WARNING) > 0;
	if (counts[0] == '\0')
		tn__say(printer, TN_TINT_GOOD, 0, "Nothing found that keeps CUDA programs from the cards of this machine");
	else
		tn__say(printer, bad ? TN_TINT_BAD : TN_TINT_STRONG, 0, "Found: %s", counts);
}

static bool
same_text(const char *first, const char *second)
{
	return first == second || (first != NULL && second != NULL && strcmp(first, second) == 0);
}

static bool
same_finding(const struct tn_fact *first, const struct tn_fact *second)
{
	return first->level == second->level && first->card >= 0 && second->card >= 0 &&
	       strcmp(first->id, second->id) == 0 && same_text(first->what, second->what) &&
	       same_text(first->meaning, second->meaning) && same_text(first->remedy, second->remedy);
}

/* "Card 0: " or, where others have the same, "Cards 0, 1, 2: "; "" for a finding that is no card's. False where an earlier card
 * has said it. */
static bool
list_cards(const struct tn_diagnosis *diagnosis, size_t at, char *text, size_t capacity)
{
	const struct tn_fact *fact = &diagnosis->facts[at];
	size_t length = 0, count = 0;
	text[0] = '\0';
	for (size_t i = 0; i < at; i++)
		if (same_finding(&diagnosis->facts[i], fact))
			return false;
	for (size_t i = at; fact->card >= 0 && i < diagnosis->count && length + 16 < capacity; i++)
		if (same_finding(&diagnosis->facts[i], fact))
			length += (size_t)snprintf(text + length, capacity - length, "%s%d", count++ > 0 ? ", " : "",
			                           diagnosis->facts[i].card);
	if (length > 0)
		snprintf(text + length, capacity - length, ": ");
	return true;
}

static void
say_finding(const struct tn_printer *printer, const struct tn_diagnosis *diagnosis, size_t at)
{
	const struct tn_fact *fact = &diagnosis->facts[at];
	char cards[320];
	if (!list_cards(diagnosis, at, cards, sizeof(cards)))
		return;
	fputc('\n', printer->out);
	tn__say_labelled(printer, tn__level_name(fact->level), COLUMN, "%s%s%s",
	                 cards[0] == '\0'             ? ""
	                 : strchr(cards, ',') != NULL ? "Cards "
	                                              : "Card ",
	                 cards, fact->what);
	if (fact->meaning != NULL)
		tn__say_labelled(printer, "", COLUMN, "%s", fact->meaning);
	if (fact->remedy != NULL)
		tn__say_labelled(printer, "do", COLUMN, "%s", fact->remedy);
}

/* Facts of one card share a paragraph; other facts have one each. */
static char *
join_facts(const struct tn_diagnosis *diagnosis, size_t *at)
{
	const struct tn_fact *first = &diagnosis->facts[*at];
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	fputs(first->what, out);
	for (; *at + 1 < diagnosis->count; (*at)++) {
		const struct tn_fact *next = &diagnosis->facts[*at + 1];
		if (first->card < 0 || next->card != first->card)
			break;
		if (next->level == TN_LEVEL_FINE && next->part != TN_PART_TORCH)
			fprintf(out, "; %s", next->what);
		else if (next->level == TN_LEVEL_FINE)
			break;
	}
	fclose(out);
	return text;
}

static void
say_facts(const struct tn_printer *printer, const struct tn_diagnosis *diagnosis, enum tn_machine_part part)
{
	bool first = true;
	for (size_t i = 0; i < diagnosis->count; i++) {
		const struct tn_fact *fact = &diagnosis->facts[i];
		if (fact->level != TN_LEVEL_FINE || fact->part != part)
			continue;
		char label[16];
		if (fact->card >= 0 && part == TN_PART_CARD)
			snprintf(label, sizeof(label), "card %d", fact->card);
		else
			snprintf(label, sizeof(label), "%s", first ? tn__part_name(part) : "");
		char *text = part == TN_PART_CARD ? join_facts(diagnosis, &i) : NULL;
		if (text != NULL || fact->card < 0)
			tn__say_labelled(printer, label, COLUMN, "%s", text != NULL ? text : fact->what);
		else
			tn__say_labelled(printer, label, COLUMN, "Card %d: %s", fact->card, fact->what);
		free(text);
		first = false;
	}
}

tn_status
tn__diagnosis_text(const struct tn_shown_diagnosis *shown, struct tn_style style, FILE *out)
{
	const struct tn_diagnosis *diagnosis = shown->diagnosis;
	struct tn_printer printer = { out, style };
	say_head(&printer, diagnosis);
	for (int level = TN_LEVEL_ERROR; level >= TN_LEVEL_HINT; level--)
		for (size_t i = 0; i < diagnosis->count; i++)
			if (diagnosis->facts[i].level == (enum tn_level)level)
				say_finding(&printer, diagnosis, i);
	fputc('\n', out);
	for (int part = 0; part < TN_PARTS; part++)
		if (part != TN_PART_MEMORY) /* it stands in its card's paragraph */
			say_facts(&printer, diagnosis, (enum tn_machine_part)part);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_IO, "writing failed: %s", strerror(errno));
	return TN_OK;
}
