/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/holder_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "verdict/model_fill.h"

const struct tn_holder_kind *
tn__holder_kind(const struct tn_holder_kind *kinds, size_t count, const char *name)
{
	for (size_t i = 0; name != NULL && i < count; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static char *
words_of(const char *pattern, int64_t bytes, tn_holder_put put, const void *holder)
{
	char *text = NULL, size_words[32];
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	for (const char *at = pattern; *at != '\0'; at++) {
		if (*at != '%')
			fputc(*at, out);
		else if (*++at == '%')
			fputc('%', out);
		else if (*at == 'B')
			fputs(tn__human_bytes(bytes, size_words), out);
		else
			put(*at, holder, out);
	}
	fclose(out);
	return text;
}

void
tn__holder_tell(const struct tn_holder_kind *kind, int64_t bytes, const struct tn_place *at, tn_holder_put put,
                const void *holder, struct tn_report *report)
{
	char *what = words_of(kind->what, bytes, put, holder), *advice = words_of(kind->advice, bytes, put, holder);
	if (what != NULL && advice != NULL)
		tn__report_add_finding(report, kind->id, bytes, at, advice, "%s", what);
	free(what);
	free(advice);
}
