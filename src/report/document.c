/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of result, from the writers of each.
 */
#include "report/document.h"

#include "report/cleaned.h"
#include "report/diagnosis.h"
#include "report/fit.h"
#include "report/fix.h"
#include "report/frontier.h"
#include "report/gpus.h"
#include "report/inspection_writers.h"
#include "report/serving.h"

/* The writers take their own type: here it is forgotten. */
#define WRITERS(kind, writers)                                                       \
	static tn_status kind##_text(const void *what, struct tn_style style, FILE *out) \
	{                                                                                \
		return writers##_text(what, style, out);                                     \
	}                                                                                \
	static tn_status kind##_json(const void *what, FILE *out)                        \
	{                                                                                \
		return writers##_json(what, out);                                            \
	}
#define DOCUMENT(kind, writers)                               \
	WRITERS(kind, writers)                                    \
	static tn_status kind##_page(const void *what, FILE *out) \
	{                                                         \
		return writers##_page(what, out);                     \
	}                                                         \
	const struct tn_document tn__##kind##_document = { kind##_text, kind##_json, kind##_page };

#define DOCUMENT_WITHOUT_PAGE(kind, writers) \
	WRITERS(kind, writers)                   \
	const struct tn_document tn__##kind##_document = { kind##_text, kind##_json, NULL };

DOCUMENT(run, tn__report)
DOCUMENT(fix, tn__fixes)
DOCUMENT(fit, tn__fits)
DOCUMENT(frontier, tn__frontier)
DOCUMENT(inspection, tn__inspection)
DOCUMENT_WITHOUT_PAGE(clean, tn__cleaned)
DOCUMENT_WITHOUT_PAGE(doctor, tn__diagnosis)
DOCUMENT_WITHOUT_PAGE(gpus, tn__cards)
DOCUMENT_WITHOUT_PAGE(serving, tn__serving)
