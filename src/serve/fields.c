/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields of a configuration, what is said of a model while they are read, and the architectures that are known.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/figure.h"
#include "base/plain.h"
#include "serve/architecture.h"
#include "serve/served_model.h"

static const struct tn_architecture architectures[] = {
#define TN_ARCHITECTURE(name, flags) { #name, flags },
#include "serve/architectures.def"
#undef TN_ARCHITECTURE
};

const struct tn_architecture *
tn__architecture_find(const char *name)
{
	for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++)
		if (strcmp(architectures[i].name, name) == 0)
			return &architectures[i];
	return NULL;
}

void
tn__model_note(struct tn_served_model *model, const char *format, ...)
{
	va_list arguments;
	if (model->note_count == TN_MODEL_NOTES)
		return;
	char *note = model->notes[model->note_count++];
	va_start(arguments, format);
	vsnprintf(note, sizeof(model->notes[0]), format, arguments);
	va_end(arguments);
	tn__make_plain(note, '?');
}

void
tn__model_lacks(struct tn_served_model *model, const char *field)
{
	size_t length = strlen(model->missing);
	if (strstr(model->missing, field) == NULL)
		snprintf(model->missing + length, sizeof(model->missing) - length, "%s%s", length > 0 ? ", " : "", field);
}

int64_t
tn__config_field(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > TN_MODEL_LARGEST)
		return TN_NO_FIGURE;
	return json_integer_value(value);
}

int64_t
tn__config_number(const json_t *object, const char *const *names)
{
	int64_t value = TN_NO_FIGURE;
	for (; *names != NULL && value == TN_NO_FIGURE; names++)
		value = tn__config_field(object, *names);
	return value;
}
