/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials: the program run quietly on a virtual card under a set of changes, several side by side
 * (doc/design/0010-trials.md).
 *
 * A trial is a process of its own that is a supervisor like `tonnage run`, with its own run folder, TMPDIR and port. It
 * leaves what came of it in a nameless file of memory. Invariant: when tn__trials_run returns, no process of a
 * trial is left; when this process dies, the trials do. Not thread-safe.
 */
#ifndef TN_RUN_TRIAL_H
#define TN_RUN_TRIAL_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/roofline.h" /* struct tn_steps */
#include "report/report.h"
#include "run/folder.h"
#include "tonnage/run.h"

enum tn_trial_end {
	TN_TRIAL_WAITS,
	TN_TRIAL_RUNS,
	TN_TRIAL_DONE,        /* `report` says what came of it */
	TN_TRIAL_SLOW,        /* ended for want of time */
	TN_TRIAL_HOST_MEMORY, /* ended since the computer's own memory ran out */
	TN_TRIAL_FAILED,      /* never became a run: `error` says why */
	TN_TRIAL_STOPPED      /* not needed any more, or interrupted */
};

struct tn_trial {
	/* what is tried; borrowed while the trial lives */
	struct tn_run_options options; /* card, program, steps */
	const char *changes;           /* TONNAGE_CHANGES, or NULL */
	bool keep_words;               /* what the program says on stderr is kept */
	/* what came of it */
	enum tn_trial_end end;
	json_t *report;  /* as `tonnage run --json` writes it */
	json_t *changes_told; /* array of what <run>/changes/ held */
	struct tn_steps steps; /* what each step did, of the process that did most */
	char *exception; /* of a program that failed, or NULL */
	char *error;     /* of a trial that failed */
	int error_status;
	char *words;
	double started, seconds;
	/* while it runs */
	pid_t pid;
	int result, said; /* descriptors */
};

/* Releases what came of a trial. */
void tn__trial_clear(struct tn_trial *trial);

/* A figure of a trial's report, such as ("peak", "device_bytes"); TN_NO_FIGURE where unknown. */
int64_t tn__trial_figure(const struct tn_trial *trial, const char *object, const char *name);
/* The verdict of a trial that is done, else NULL. */
const char *tn__trial_verdict(const struct tn_trial *trial);
bool tn__trial_fits(const struct tn_trial *trial);
/* A text of the report, such as ("out_of_memory", "cause"); NULL where there is none. */
const char *tn__trial_text(const struct tn_trial *trial, const char *object, const char *name);

/* ---- cost.c: what steps did ---- */

/* The text that the virtual GPU of the process with most steps has left in the run's folder; the caller frees; NULL:
 * none. */
char *tn__work_read(const struct tn_folder *folder);
/* Reads such a text; NULL, and one that is none, give no steps. Release with tn__steps_free. */
void tn__steps_parse(const char *text, struct tn_steps *out);
void tn__steps_free(struct tn_steps *steps);

/* ---- several side by side ---- */

struct tn_trials {
	int jobs;             /* at most so many at once; tn__trials_adapt sets it */
	int wanted_jobs;      /* 0: as the machine bears */
	double limit_seconds; /* for one trial; 0: none */
	void *context;
	/* The next trial to start, or NULL when there is none for now. */
	struct tn_trial *(*next)(void *context);
	/* A trial has ended. */
	void (*ended)(void *context, struct tn_trial *trial);
	/* Called a few times a second; may be NULL. */
	void (*tick)(void *context);
	/* what is told */
	int interrupted_by; /* signal, or 0 */
	int count;          /* trials started */
	/* inside */
	struct tn_trial *running[64];
	int running_count;
	sigset_t old_mask;
	int signals;
	int64_t memory_bound; /* bytes of one trial's processes */
	double started;
};

/* Holds the signals that end the command, and looks at the machine. Close with tn__trials_close. */
tn_status tn__trials_open(struct tn_trials *trials);
void tn__trials_close(struct tn_trials *trials);
/* Starts what `next` gives until it gives nothing and nothing runs, or a signal came. */
tn_status tn__trials_run(struct tn_trials *trials);
/* Ends a trial that runs. */
void tn__trials_stop(struct tn_trials *trials, struct tn_trial *trial);
/* Sets `jobs` from the cores and from the memory that one trial took; TN_NO_FIGURE: unknown. */
void tn__trials_adapt(struct tn_trials *trials, int64_t peak_rss_bytes);
/* Seconds since tn__trials_open. */
double tn__trials_seconds(const struct tn_trials *trials);

/* ---- trial_child.c: in the trial's process ---- */

/* Runs the trial in this process, a child of `parent`, and ends it. */
_Noreturn void tn__trial_become(const struct tn_trial *trial, const sigset_t *mask, pid_t parent);

#endif
