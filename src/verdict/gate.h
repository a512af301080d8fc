/* SPDX-License-Identifier: Apache-2.0
 *
 * A run held against limits below its card's: a budget, and the peak of an earlier run, its baseline. Internal to
 * the command.
 *
 * A baseline names what held memory by category, file, function and backward. Lines have no numbers in it: they are
 * known again by their text, so that code that moves is still the same. Plain data: not thread-safe.
 */
#ifndef TN_VERDICT_GATE_H
#define TN_VERDICT_GATE_H

#include <jansson.h>

#include "verdict/model.h"

#define TN_TOLERANCE 10000 /* millionths, where none is asked for */

struct tn_held_line {
	int64_t bytes;
	uint64_t code;                /* of its text; 0: unknown */
	const struct tn_place *place; /* NULL in a baseline */
};

/* What one function held of a category. */
struct tn_held {
	enum tn_category category;
	const char *file, *function; /* as on any machine; file NULL: what no line has */
	bool backward;
	int64_t bytes;
	struct tn_held_line *lines;
	size_t line_count;
};

struct tn_held_list { /* in the order of category, file, function, backward */
	struct tn_held *items;
	size_t count;
	char **masked; /* names of files that held a secret, without it */
	size_t masked_count;
};

struct tn_baseline {
	char *path;
	json_t *document; /* the texts are borrowed from it */
	const char *gpu;
	int64_t gpus;
	int64_t device_peak;
	bool detailed;
	struct tn_held_list held; /* of every category; its bytes add up to device_peak, where they are all known */
};

/* ---- gate.c ---- */

/* Sets what follows from the budget, or the baseline, of a report whose program fits; adds the finding where it is
 * broken, and returns true. */
bool tn__gate_budget(struct tn_report *report);
bool tn__gate_baseline(struct tn_report *report);

/* ---- held.c ---- */

/* What held the memory at a report's peak; texts and places stay the report's. TN_NO_MEMORY. Release with
 * tn__held_free. */
tn_status tn__held_of_report(const struct tn_report *report, struct tn_held_list *out);
/* Sorts; what of a category's bytes no item has becomes an item of its own. TN_NO_MEMORY. */
tn_status tn__held_complete(struct tn_held_list *list, const int64_t by_category[TN_CATEGORIES]);
void tn__held_free(struct tn_held_list *list);
/* Order of the list: by category, file, function and pass. */
int tn__compare_held(const void *left, const void *right);
/* As strcmp; NULL comes first. */
int tn__compare_texts(const char *one, const char *other);

/* ---- line_code.c ---- */

/* A number that stands for the text of a line, blanks at its ends left out; 0 when the file cannot be read. */
uint64_t tn__line_code(const char *file, int64_t line);

/* ---- baseline.c ---- */

#define TN_BASELINE_SCHEMA "tonnage.baseline/1"

/* What a peak depends on beside the program. */
enum { TN_VERSIONS = 4 };
extern const char *const tn__version_names[TN_VERSIONS];
/* A run's, each to be freed by the caller; NULL: unknown. TN_NO_MEMORY. */
tn_status tn__versions_of(const struct tn_report *report, char *out[TN_VERSIONS]);

/* TN_IO, TN_FORMAT with words for a person, TN_NO_MEMORY. Release with tn__baseline_free. */
tn_status tn__baseline_read(const char *path, struct tn_baseline **out);
void tn__baseline_free(struct tn_baseline *baseline); /* NULL is allowed */
/* TN_INVALID when it was made on another card, or another number of them. */
tn_status tn__baseline_is_of(const struct tn_baseline *baseline, const char *gpu, int gpus);
/* Notes which versions are others than the baseline's. TN_NO_MEMORY. */
tn_status tn__baseline_versions(const struct tn_baseline *baseline, struct tn_report *report);

#endif
