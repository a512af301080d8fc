/* SPDX-License-Identifier: Apache-2.0
 *
 * What a search for changes came to: filled by src/search/fix.c, written for a person and as JSON. Unknown is TN_NO_FIGURE
 * or NULL. All texts are owned. Plain data: not thread-safe.
 */
#ifndef TN_REPORT_FIX_H
#define TN_REPORT_FIX_H

#include "gpu/roofline.h" /* struct tn_time_ratio */
#include "change/change.h"
#include "report/report.h"
#include "report/search_words.h"

enum tn_fix_end {
	TN_FIX_FITS,
	TN_FIX_NOT_ENOUGH,  /* it saves, but too little */
	TN_FIX_NO_HELP,     /* it saves nothing */
	TN_FIX_NOT_APPLIED, /* the program has nothing that it acts on */
	TN_FIX_BROKE,       /* the program failed under it */
	TN_FIX_OWN_ERROR,   /* the program failed as it does without any change once memory is enough */
	TN_FIX_UNKNOWN      /* not tried to the end */
};

struct tn_fix_change {
	char *changes; /* as TONNAGE_CHANGES has it: "accumulate=4,alloc=expandable_segments:True" */
	char **parts;  /* each by itself */
	size_t part_count;
	char *title, *how, *why_not, *patch; /* how: one line a part */
	bool patch_tried;                    /* the program was run from the patched text, and fitted */
	enum tn_guarantee results;
	enum tn_fix_end end;
	bool own;                                   /* made of nothing but options of the program's own */
	char *command;                              /* then: the command line to copy */
	bool remedy;                                /* of a cause that is no want of room */
	bool enough;                                /* the first that is enough and keeps the results */
	int cost;                                   /* rank of what it costs in time, least first */
	int trial;                                  /* 1: what was tried first of all; 0: it was not */
	struct tn_time_ratio time;                  /* of a step, for as many samples, to the unchanged program's */
	int pieces;                                 /* that a batch is cut into; 0: it stays whole */
	int64_t reserved_peak, device_peak, margin; /* on the card */
	int64_t need, saved;    /* the allocated peak and what lies outside PyTorch; what that is less than unchanged */
	int64_t steps_seen;     /* how far the trial of these figures went */
	int64_t uncertain;      /* so much higher may the peak be; 0: unknown */
	int64_t fits_with_less; /* it was seen to fit a card with so much less memory, too; 0: not tried, or it did not */
};

enum tn_cards_method { TN_CARDS_DDP, TN_CARDS_FSDP };

/* An estimate, never tried: what each of several cards would hold. */
struct tn_multi_gpu_estimate {
	enum tn_cards_method method;
	int cards;
	int64_t device_bytes;
};

/* How long trials took; 0: there was none. */
struct tn_trial_seconds {
	double fresh;                /* the first, a process that was started anew */
	double forked, forked_least; /* of those that were forked: on average, the quickest */
};

struct tn_fixes {
	struct tn_gpu_figures gpu;
	int gpus;
	bool fits_unchanged, failed, undecided, interrupted;
	bool infers; /* no backward pass was seen */
	int64_t
		need; /* of the program as it is, seen on a card large enough: its allocated peak and what lies outside PyTorch */
	int64_t missing; /* what the card lacks for that */
	int64_t
		host_memory; /* where the computer's memory is what lacks: how much it has; all sizes above and of the changes are then of
	                      * that. TN_NO_FIGURE: it does not */
	const char *smallest_gpu;
	char *cause, *why, *advice, *at; /* of the out-of-memory; at: "model.py:32" */
	char *why_at;                    /* what `why` speaks of, where that is another line; else NULL */
	char *own_error; /* with which the program ends by itself where memory is enough; NULL: it does not */
	bool wrong;      /* it is no want of room, and none of the changes remedies it: the advice comes before the list */
	char *command, *card_options; /* to be typed again */
	char *unseen;                 /* of a program that fits: what that does not speak of; NULL: nothing */
	char *deciding;               /* of several commands (--then), the one that does not fit; NULL: there is one */
	struct tn_secrets *secrets;   /* that the program was started with */
	int64_t margin_wanted;
	struct tn_multi_gpu_estimate multi_gpu[2]; /* the fewest that do, a row for each method that does at all */
	size_t multi_gpu_count;
	struct tn_fix_change *changes; /* best first */
	size_t change_count;
	int trials, forked;     /* forked: from a process that had imported everything */
	const char *not_forked; /* why they were not; NULL: they were, or were not to be */
	struct tn_trial_seconds took;
	double seconds, first_seconds; /* first: until something fitted; negative: never */
};

void tn__fixes_free(struct tn_fixes *fixes);
void tn__fix_change_free(struct tn_fix_change *change);
const char *tn__fix_end_name(enum tn_fix_end end);
/* It fits, and leaves less than what is not known of its peak; one that was seen to fit with that much less is not narrow. */
bool tn__fix_is_narrow(const struct tn_fix_change *change);

/* For a person: "results the same up to rounding"; "1.3x the time (1.2-1.5)", into `words`, or a literal. */
const char *tn__guarantee_words(const struct tn_fixes *fixes, enum tn_guarantee promise);
/* "Does not fit on NVIDIA GeForce RTX 3060 (11.75 GiB): ...", into `words`. */
const char *tn__fixes_title(const struct tn_fixes *fixes, char words[TN_WORDS_ROOM]);
/* Why, with the line; and the error that the program itself ends with. The caller frees; NULL: unknown, or there is none. */
char *tn__fixes_why(const struct tn_fixes *fixes);
char *tn__fixes_own_error(const struct tn_fixes *fixes);
/* What to do next: the command line of the first change that fits, or advice; the caller frees; NULL: nothing. */
char *tn__fixes_next(const struct tn_fixes *fixes);
/* "or the smallest card that fits it unchanged: ..."; NULL: unknown. */
const char *tn__fixes_smallest(const struct tn_fixes *fixes, char words[TN_WORDS_ROOM]);
/* That a change fits only narrowly, or would seem to and was tried with less memory, into `words`; NULL: it does not fit, or
 * surely. */
const char *tn__fix_narrow_words(const struct tn_fixes *fixes, const struct tn_fix_change *change,
                                 char words[TN_WORDS_ROOM]);
const char *tn__time_words(const struct tn_time_ratio *time, char words[64]);
/* The change's patch as a report may show it, with no secret in it; --patch writes the real one. The caller frees; NULL: none. */
char *tn__fix_shown_patch(const struct tn_fixes *fixes, const struct tn_fix_change *change);
/* What the cards are used with, for a person: "DistributedDataParallel (gradient_as_bucket_view=True)". */
const char *tn__cards_words(enum tn_cards_method method);

/* The list for a person; TN_IO when writing fails. */
tn_status tn__fixes_text(const struct tn_fixes *fixes, struct tn_style style, FILE *out);
/* The object of doc/format/fix.schema.json. */
tn_status tn__fixes_json(const struct tn_fixes *fixes, FILE *out);
/* The whole list as a page (doc/format/page.md). TN_STATE when writing fails. */
tn_status tn__fixes_page(const struct tn_fixes *fixes, FILE *out);

#endif
