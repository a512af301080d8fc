/* SPDX-License-Identifier: Apache-2.0
 *
 * From what was seen to a verdict and its reasons. Each function belongs to the file of its name.
 */
#ifndef TN_VERDICT_JUDGE_H
#define TN_VERDICT_JUDGE_H

#include "verdict/model.h"

/* Who ended a program, in the words that guest and supervisor share (the ledger's stop_reason). */
enum tn_reason { TN_REASON_NONE, TN_REASON_SETTLED, TN_REASON_LIMIT, TN_REASON_REQUESTS };

/* How the program ended, as the supervisor saw it. */
struct tn_ending {
	int wait_status;     /* of wait4, when `ended` */
	bool ended;          /* by itself, or by a signal that is not ours */
	int stop_reason;     /* enum tn_reason; not 0: we ended it */
	int interrupted_by;  /* signal that reached the supervisor, or 0 */
	bool guest_oom_last; /* an out-of-memory ended a process of the run, and no other one took the work up after it */
	bool guest_oom_open; /* a process saw one, and did nothing on the card after that */
	bool open_decides;   /* such a one is the verdict whatever the exit status is (run.h, open_oom_decides) */
	int guest_stop;      /* as stop_reason, for a program that was made to end early and then ended by itself */
	bool hung;           /* ranks waited for ever, and we ended them */
	bool ledger_refused_last; /* the card refused memory to a process that had no guest and took nothing after that */
};

/* Sets verdict, exit status and `stopped` from the ending, and everything that follows from other fields:
 * growth, shortage, cause, uncertainty, smallest card. Call once, last. */
void tn__report_judge(struct tn_report *report, const struct tn_ending *ending);
/* Bytes of the card when a growth whose end is known has come to it; TN_NO_FIGURE where there is none, or the program was seen to its end. */
int64_t tn__report_at_the_end(const struct tn_report *report);

/* Looks for evidence behind an ending that would be `fits` (doc/design/0018-evidence.md); adds a doubt for each that is
 * missing. Part of judging. */
void tn__report_find_doubts(struct tn_report *report, const struct tn_ending *ending);
/* True where a process with a guest ran out of memory for good. */
bool tn__ended_out_of_memory(const struct tn_ending *ending);
/* True for an exit status of 0 that the program came to by itself, not through a stop. */
bool tn__ended_well(const struct tn_ending *ending);

/* ---- requests_judge.c ---- */

/* Adds a doubt for requests that no answer shows anything of; true where there is one. `well`: the server ended by itself. */
bool tn__requests_doubt(struct tn_report *report, bool well);

/* ---- refusals.c ---- */

/* What a refused call is to a person. */
struct tn_refusal {
	const char *library, *prefix; /* prefix of the call's name; "": any */
	const char *name;             /* of the family: "a communicator of several ranks" */
	const char *means;            /* what the program goes without */
	const char *advice;           /* what to do; NULL: nothing helps */
	bool asks_only;               /* a question or a measurement: no memory hangs on it, and none on what comes after */
};
/* The family of a refused call; never NULL. */
const struct tn_refusal *tn__refusal_of(const char *library, const char *name);
/* Adds a finding for each family of refused calls that work depends on. */
void tn__report_explain_refusals(struct tn_report *report);

/* What an out-of-memory lacked: what the program needs in all, where that is known, else what the request that failed
 * lacked. Not known when neither is. */
int64_t tn__report_short_by(const struct tn_report *report);

/* True when the program's PyTorch has kernels for a card, or nothing is known of them. */
bool tn__report_has_kernels(const struct tn_report *report, const struct tn_gpu_figures *card);
/* The smallest card of the catalogue that holds so many bytes, context included, for sure, and that the program's PyTorch has
 * kernels for; NULL: none. */
const struct tn_gpu_row *tn__report_smallest_card(const struct tn_report *report, int64_t needed);

/* Names the cause of an out-of-memory, and adds the finding that says why and what to do. Part of judging. */
void tn__report_find_cause(struct tn_report *report);

/* True for a finding that a cause gives. */
bool tn__is_cause(const struct tn_finding *finding);

/* What another run on a card that is never full has shown, where it got at least as far. To be called before the report is
 * judged. */
void tn__report_take_need(struct tn_report *report, const struct tn_need *need);
/* What a run on a card that is never full has shown; all 0 where it shows nothing. */
struct tn_need tn__need_of(const struct tn_report *large);
/* Finds the cause of an out-of-memory in a report that was judged anew, with what the same program did on a card that is
 * never full: changes cause and findings. */
void tn__report_judge_need(struct tn_report *report, const struct tn_report *large);

#endif
