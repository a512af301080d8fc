/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of facts, and the examination from part to part.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "doctor/checks.h"

#define FACTS_MAX 4096

static char *
text_of(struct tn_diagnosis *out, const char *format, va_list arguments)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) < 0) {
		out->no_memory = true;
		return NULL;
	}
	return text;
}

struct tn_fact *
tn__fact(struct tn_diagnosis *out, enum tn_machine_part part, enum tn_level level, const char *id, int card,
         const char *format, ...)
{
	static _Thread_local struct tn_fact spare;
	va_list arguments;
	if (!tn__array_room(&out->facts, &out->capacity, out->count + 1, sizeof(*out->facts), FACTS_MAX)) {
		out->no_memory = true;
		return &spare;
	}
	struct tn_fact *fact = &out->facts[out->count++];
	*fact = (struct tn_fact){ .part = part, .level = level, .id = id, .card = card };
	va_start(arguments, format);
	fact->what = text_of(out, format, arguments);
	va_end(arguments);
	return fact;
}

/* A part of a fact that is in the list; a spare one takes none. */
static void
set(struct tn_diagnosis *out, const struct tn_fact *fact, char **slot, const char *format, va_list arguments)
{
	if (out->count > 0 && fact == &out->facts[out->count - 1] && *slot == NULL)
		*slot = text_of(out, format, arguments);
}

void
tn__fact_meaning(struct tn_diagnosis *out, struct tn_fact *fact, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	set(out, fact, &fact->meaning, format, arguments);
	va_end(arguments);
}

void
tn__fact_remedy(struct tn_diagnosis *out, struct tn_fact *fact, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	set(out, fact, &fact->remedy, format, arguments);
	va_end(arguments);
}

size_t
tn__diagnosis_count(const struct tn_diagnosis *diagnosis, enum tn_level level)
{
	size_t count = 0;
	for (size_t i = 0; i < diagnosis->count; i++)
		count += diagnosis->facts[i].level == level;
	return count;
}

void
tn__diagnosis_free(struct tn_diagnosis *diagnosis)
{
	for (size_t i = 0; i < diagnosis->count; i++) {
		free(diagnosis->facts[i].what);
		free(diagnosis->facts[i].meaning);
		free(diagnosis->facts[i].remedy);
	}
	free(diagnosis->facts);
	free(diagnosis->torch.packages);
	*diagnosis = (struct tn_diagnosis){ 0 };
}
