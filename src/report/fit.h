/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search for the largest batch came to: filled by src/search/fit.c, written for a person and as JSON. Unknown is
 * TN_NO_FIGURE or NULL. All texts are owned but those of the catalogue. Plain data: not thread-safe.
 */
#ifndef TN_REPORT_FIT_H
#define TN_REPORT_FIT_H

#include "report/report.h"
#include "report/search_words.h"

struct tn_fit_point {
	int batch;
	int64_t reserved_peak, device_peak; /* of a batch that does not fit: unknown, or as an unlimited card told */
	bool fits;
	bool tried;     /* on this card; else told from an unlimited card */
	bool undecided; /* nothing decisive was seen */
	char *why_not;  /* a program that broke, or showed nothing */
};

struct tn_fit_card {
	struct tn_gpu_figures gpu;
	int gpus;    /* of these; the peak is that of the fullest */
	char *asked; /* as it was named */
	int64_t margin_wanted;
	int largest;    /* 0: none fits; -1: not known */
	bool unbounded; /* the largest that may be tried fits */
	int64_t reserved_peak, device_peak, margin;
	int64_t uncertain;          /* so much higher may the peak be; 0: unknown */
	int micro_batch, steps;     /* the accumulation plan; 0: none */
	struct tn_fit_point *curve; /* by batch */
	size_t curve_count;
};

struct tn_fits {
	struct tn_fit_card *cards;
	size_t card_count;
	int batch;                /* that was asked for, or the program's own; 0: unknown */
	const char *smallest_gpu; /* for that batch */
	bool interrupted;
	bool by_word; /* through {batch} */
	char *command;
	int forked;                /* trials, from a process that had imported everything */
	const char *not_forked;    /* why they were not; NULL: they were, or were not to be */
	int trials, out_of_memory; /* trials that ended so; never on a real card */
	double seconds;
};

void tn__fits_free(struct tn_fits *fits);
/* For a person, into `words`: the result for a card, how the batch that was asked for comes about in pieces, that it is narrow,
 * the smallest card for that batch; NULL where there is nothing to say. */
const char *tn__fit_title(const struct tn_fit_card *card, char words[TN_WORDS_ROOM]);
const char *tn__fit_plan(const struct tn_fit_card *card, int batch, char words[TN_WORDS_ROOM]);
const char *tn__fit_narrow(const struct tn_fit_card *card, char words[TN_WORDS_ROOM]);
const char *tn__fits_smallest(const struct tn_fits *fits, char words[TN_WORDS_ROOM]);
/* "does not fit" */
const char *tn__fit_point_words(const struct tn_fit_point *point);

/* The table for a person; TN_IO when writing fails. */
tn_status tn__fits_text(const struct tn_fits *fits, struct tn_style style, FILE *out);
/* The object of doc/format/fit.schema.json. */
tn_status tn__fits_json(const struct tn_fits *fits, FILE *out);
/* The cards and their curves as a page (doc/format/page.md). TN_STATE when writing fails. */
tn_status tn__fits_page(const struct tn_fits *fits, FILE *out);

#endif
