/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a search for changes. Internal to the files fix*.c: fix_command.c is the command, fix.c asks for trials, fix_plan.c says what to try,
 * fix_judge.c what a trial has shown, fix_list.c what all came to.
 */
#ifndef TN_SEARCH_FIX_SEARCH_H
#define TN_SEARCH_FIX_SEARCH_H

#include "report/fix.h"
#include "search/remedies.h"
#include "search/search.h"
#include "supervise/internal.h"
#include "trials/trial.h"

#define TN_FIX_ATTEMPTS 160
#define TN_FIX_LEAST_SHARE 50 /* a change that can save no more than this part of what is missing is not tried */

enum tn_stage {
	TN_STAGE_WAITS,
	TN_STAGE_ON_LARGE,
	TN_STAGE_RETRY_ON_CARD, /* the unlimited card gave reason to try the card itself */
	TN_STAGE_ON_CARD,
	TN_STAGE_RETRY_WITH_LESS, /* it fits narrowly: a card with a little less memory shall tell whether that is luck */
	TN_STAGE_WITH_LESS,
	TN_STAGE_TOO_SMALL, /* the card itself is too small: how much it saves is to be seen on the unlimited card */
	TN_STAGE_OVER,
	TN_STAGE_LOW_PRIORITY /* it can do nothing for the peak as it is, but may for one that another change leaves */
};

struct tn_attempt {
	struct tn_fix_change found;
	enum tn_stage stage;
	bool kept;              /* tn_fix_change was handed over */
	bool wished;            /* tried whatever else fits */
	bool said;              /* that it fits */
	int turn;               /* the lowest is tried first */
	bool unplanned;         /* the last plan has it no more */
	struct tn_trial *waits; /* it has ended, and is judged once the unchanged program has */
	bool soon;              /* comes next, and waits for no other promise */
	bool acted;             /* some change of it made a difference in its last trial */
	bool fresh;             /* its trials are started anew, not forked, and see all that the unchanged program's does */
	bool without_others;    /* the card is tried without other processes, and nothing is changed */
	int64_t most;           /* what it may save, at most */
	struct tn_trial large, card, less;  /* less: the card with less memory */
	struct tn_trial patched;            /* on the card, of the text that its patch makes */
	struct tn_search_commands commands; /* where options of the program's own are set */
	char steps[16];                     /* of the trial on the unlimited card, where a few tell enough */
};

struct tn_fix_search {
	const struct tn_fix_options *options;
	struct tn_search_card card;
	struct tn_trials trials;
	struct tn_search_place place;
	struct tn_progress_line line;
	struct tn_trial unchanged_card, unchanged_large;
	struct tn_trial survey;       /* the process of unchanged_large, which is what it has said last */
	int command;                  /* of several, from 1: the one that does not fit; 0: not known yet */
	char *const *words;           /* of that one: the program's, or then_words */
	struct tn_command then_words; /* where it is one of --then */
	struct tn_attempt *attempts;
	int count;
	bool planned, over;
	bool went_on;                   /* the survey was made again, to go as far as the card itself did */
	struct tn_late_news *late_news; /* of it, for trials that began before it had ended */
	int round;                      /* of planning: fix.c */
	enum tn_guarantee allowed;      /* changes that do more to the results wait */
	bool direct;                    /* only the card itself is asked */
	bool host;       /* the card fits: what is missing is the computer's memory, and `need`, too, is of that */
	int64_t missing; /* bytes, margin included; TN_NO_FIGURE: unknown */
	int64_t need;    /* tn__fix_need of the program as it is; TN_NO_FIGURE: unknown */
	int batch;       /* the largest of the program; 0: unknown */
	int tried;       /* attempts that were begun */
	double first_seconds;
	double trial_seconds; /* after which a trial ends by itself; 0: not known */
	const char *failure;  /* why there is no list */
	int failure_status;
};

/* ---- fix.c ---- */

/* The trials of a search, with its answers to the scheduler's questions. */
struct tn_trials tn__fix_trials(struct tn_fix_search *search);
/* Says what fits, once it is known that a fork is the program, and what the program as it is shows. */
void tn__fix_say_what_fits(struct tn_fix_search *search);

/* ---- fix_start.c ---- */

/* The trials of an attempt, to be run next. On the card itself; on the unlimited card; on the card with as much less memory as the peak may be higher:
 * where it fits that, too, what it leaves is no matter of luck; on the card, from the text that its patch makes. */
struct tn_trial *tn__fix_start_on_card(struct tn_fix_search *search, struct tn_attempt *attempt);
struct tn_trial *tn__fix_start_on_large(struct tn_fix_search *search, struct tn_attempt *attempt);
struct tn_trial *tn__fix_start_with_less(struct tn_fix_search *search, struct tn_attempt *attempt);
struct tn_trial *tn__fix_start_patched(struct tn_fix_search *search, struct tn_attempt *attempt);
/* True where what its peak is made of is wanted: it should have been enough and was not, so something else has to follow. */
bool tn__fix_seeks_sequels(const struct tn_fix_search *search, const struct tn_attempt *attempt);

/* ---- fix_proof.c ---- */

/* What stands first in the list, where its patch was not tried as it stands and can be; else NULL. */
struct tn_attempt *tn__fix_with_untried_patch(struct tn_fix_search *search);
/* Takes what it has shown: a patch that does not fit, or makes other updates than the change promises, is none. */
void tn__fix_judge_patched(const struct tn_fix_search *search, struct tn_attempt *attempt);

/* ---- fix_early.c ---- */

/* Plans once more, by what the unchanged program has shown since. What is new is added, what was planned takes its new turn, and nothing moves. */
void tn__fix_plan_again(struct tn_fix_search *search);
/* Tells the trials that began before the unchanged program had ended how far they have to go. False where what they went by until then does not
 * hold: inputs that vary, another step than was told when memory had settled. */
bool tn__fix_tell_news(struct tn_fix_search *search);
/* Notes how far a trial has to go. */
void tn__fix_take_news(const struct tn_fix_search *search, struct tn_trial *trial);

/* ---- fix_worth.c ---- */

/* How many changes fit that promise no less of the results; those that fit narrowly count only where `safely` is false. */
int tn__fix_fitting(const struct tn_fix_search *search, enum tn_guarantee worst, bool safely);
/* False for an attempt that can add nothing to what has come so far. */
bool tn__fix_is_worth_it(const struct tn_fix_search *search, const struct tn_attempt *attempt);

/* ---- fix_list.c ---- */

/* True where a change stands before another one in the list. */
bool tn__fix_comes_before(const struct tn_fix_change *one, const struct tn_fix_change *two);
/* Puts changes into the order of the list, and marks the first that is enough. */
void tn__fix_order(struct tn_fix_change *changes, size_t count);
/* Hands over what the search has found; attempts that are listed are marked `kept`. Release with tn__fixes_free. */
void tn__fix_list(struct tn_fix_search *search, struct tn_fixes *out);

/* ---- fix_apply.c ---- */

/* "2" means a line of the list; anything else is the change itself. */
bool tn__fix_is_number(const char *text);
/* The change that a number of the list means; NULL when there is none. */
const struct tn_fix_change *tn__fix_chosen(const struct tn_fixes *fixes, const char *number);
/* Writes the patch that was asked for, of the change that --apply names or the first that has one. */
tn_status tn__fix_write_patch(const struct tn_fix_search *search, const struct tn_fixes *fixes);
/* The program with a change, as `tonnage run` does it, on the card that was named. */
tn_status tn__fix_apply(const struct tn_fix_options *options, const char *changes, int *exit_status);

/* ---- fix_plan.c ---- */

/* Adds the single changes that the survey allows, in the order of trying. Attempts do not move afterwards. */
void tn__fix_plan(struct tn_fix_search *search);
/* Adds the `most` most promising combinations of an attempt of so many changes and a single one, but those that are there:
 * those that together save this share of what is missing come first. */
void tn__fix_plan_combinations(struct tn_fix_search *search, size_t parts, size_t most, bool only_promising,
                               double share);
/* Adds the `most` cheapest pairs of an attempt that was not enough and a change that may save what is left of its peak; only
 * where its trial on the unlimited card told what that peak is made of. */
void tn__fix_plan_sequels(struct tn_fix_search *search, int index, size_t most);
/* True when two attempts have a change in common. */
bool tn__fix_excludes(const struct tn_attempt *one, const struct tn_attempt *two);

/* ---- fix_judge.c ---- */

/* True of a phase that a training step consists of; not of an evaluation, a save or what comes before the steps. NULL: unknown. */
bool tn__fix_is_of_training(const char *phase);
/* True when the peak of the program as it is comes behind the steps in which memory settled: in a round of epochs that were shortened. */
bool tn__fix_peaks_behind_settling(const struct tn_fix_search *search);
/* Takes what the trial on the unlimited card, or on the card itself, has shown. */
void tn__fix_judge_large(struct tn_fix_search *search, struct tn_attempt *attempt);
void tn__fix_judge_card(struct tn_fix_search *search, struct tn_attempt *attempt);
/* Takes what the card with less memory has shown: a change that fits it fits safely. */
void tn__fix_judge_less(struct tn_attempt *attempt);
/* What a run needs of a card: its allocated peak and what lies outside PyTorch. What PyTorch only caches it gives back
 * where memory is short, and never on an unlimited card. TN_NO_FIGURE: unknown. */
int64_t tn__fix_need(const struct tn_report *report);
/* True when the program as it is takes more memory with every step: its peak says nothing of its need. */
bool tn__fix_grows(const struct tn_fix_search *search);
/* The exception with which the program as it is ends where memory is enough; NULL: none, or it is not known. Borrowed. */
const char *tn__fix_own_error(const struct tn_fix_search *search);
/* Replaces an owned text by a copy of `value`, which may be NULL. */
void tn__replace_text(char **text, const char *value);

/* ---- fix_same.c ---- */

/* Takes the promise away from a change whose trial was seen to make other updates than the unchanged program, and says why. */
void tn__fix_judge_updates(const struct tn_fix_search *search, struct tn_attempt *attempt,
                           const struct tn_trial *trial);
/* What of its updates is other than in the unchanged program; the caller frees; NULL: nothing that was seen. */
char *tn__fix_other_updates(const struct tn_fix_search *search, const struct tn_trial *trial);
/* How much of the samples of an unchanged update one of the trial sees; 0: unknown. */
double tn__fix_share_of_samples(const struct tn_fix_search *search, const struct tn_trial *trial);

/* ---- multi_gpu.c ---- */

/* Sets what the program would take on several of the card, where the survey and the peak tell: an estimate. */
void tn__multi_gpu_estimate(const struct tn_fix_search *search, struct tn_fixes *out);

/* ---- cost.c ---- */

/* Sets the time of the attempt's step from what its trial's steps did, where they can be compared. */
void tn__fix_judge_time(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial);
/* Rank of a change by its time, estimated or as it usually is: 0 for all that is nearly as fast as the unchanged program. */
double tn__fix_time(const struct tn_fix_change *change);

#endif
