/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of result, from the writers of each.
 */
#include "report/document.h"

#include "report/cleaned.h"
#include "report/fit.h"
#include "report/fix.h"

/* The writers take their own type: here it is forgotten. */
#define WRITERS(kind, writers) \
	static tn_status kind##_text(const void *what, struct tn_style style, FILE *out) \
	{ \
		return writers##_text(what, style, out); \
	} \
	static tn_status kind##_json(const void *what, FILE *out) \
	{ \
		return writers##_json(what, out); \
	}
#define DOCUMENT(kind, writers) \
	WRITERS(kind, writers) \
	static tn_status kind##_page(const void *what, FILE *out) \
	{ \
		return writers##_page(what, out); \
	} \
	const struct tn_document tn__##kind##_document = { kind##_text, kind##_json, kind##_page };

DOCUMENT(run, tn__report)
DOCUMENT(fix, tn__fixes)
DOCUMENT(fit, tn__fits)
WRITERS(clean, tn__cleaned)
const struct tn_document tn__clean_document = { clean_text, clean_json, NULL };
