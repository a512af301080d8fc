/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials: the program run quietly on a virtual card under a set of changes, several side by side
 * (doc/design/0010-trials.md).
 *
 * A trial is a process of its own that is a supervisor like `tonnage run`, with its own run folder, TMPDIR and port. It
 * leaves its result in a nameless file of memory. Invariant: when tn__trials_run returns, no process of a
 * trial is left; when this process dies, the trials do. Not thread-safe.
 */
#ifndef TN_TRIALS_TRIAL_H
#define TN_TRIALS_TRIAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/roofline.h" /* struct tn_steps */
#include "report/fix.h"   /* struct tn_trial_seconds */
#include "trials/outcome.h"
#include "report/report.h"
#include "supervise/folder.h"
#include "tonnage/run.h"

enum tn_trial_end {
	TN_TRIAL_WAITS,
	TN_TRIAL_RUNS,
	TN_TRIAL_DONE,        /* it came to a report */
	TN_TRIAL_SLOW,        /* ended for want of time */
	TN_TRIAL_HOST_MEMORY, /* ended since the computer's own memory ran out */
	TN_TRIAL_FAILED,      /* never became a run: `outcome.error` says why */
	TN_TRIAL_STOPPED      /* not needed any more, or interrupted */
};

/* How a trial tells what it has seen before it has ended: the text lies in a file of memory, and a byte through a pipe says that it is there. */
struct tn_early {
	int file;
	int told, listens; /* the pipe's ends: of the trial's process, and of the one that waits */
};

struct tn_trial {
	/* what is tried; borrowed while the trial lives */
	struct tn_run_options options; /* card, program, steps */
	const char *changes;           /* TONNAGE_CHANGES, or NULL */
	const char *
		patch; /* the program's text is patched with it; NULL: it stands as it is. Only on this machine, and not kept */
	int command; /* of several (options.then), from 1, whose outcome is wanted where all fit; 0: of that with the highest peak */
	bool fresh;         /* a process that is started anew, also where forks are found to be the same */
	bool keep_words;    /* what the program says on stderr is kept */
	bool lists_modules; /* what the program has imported is kept */
	bool patient; /* where the program's text says that a later round does something new, it may take all the time */
	/* Of struct tn_survey of the unchanged program, beyond which this trial need not look for news; 0: unknown. */
	int64_t news_step, news_epoch;
	const struct tn_late_news
		*late_news; /* the same, of an unchanged program that still runs: the trial goes on until it is known */
	/* What it has seen is told (tn_trials.early) before it has ended, and its step here once memory has settled; NULL: neither. */
	struct tn_late_news *tells_early;
	bool again; /* it is stopped, and made once more */
	bool alone; /* nothing runs beside it: set for one that was ended for want of the computer's memory */
	/* the result */
	enum tn_trial_end end;
	struct tn_outcome outcome;
	struct tn_steps steps; /* what each step did, of the process that did most */
	char *words;           /* that the program said on stderr */
	double started, seconds;
	/* while it runs */
	pid_t pid;
	char *left;       /* the text of its outcome, where results are kept */
	int lost;         /* how many workers have died over it */
	int result, said; /* descriptors */
	struct tn_early early;
	int input;         /* as tn_trials has it */
	int server, alive; /* as for tn__reaper_start_by_server; server -1: a process that is started anew */
};

/* ---- trial_result.c ---- */

/* The bytes of a file of memory, of which the last `most` (0: all), with a zero behind; the caller frees. NULL when empty. */
char *tn__memory_file(int file, off_t most);
/* Releases the result of a trial. */
void tn__trial_clear(struct tn_trial *trial);
/* Takes what the process of a trial that is over has left. `left`, when not NULL, gets the text of it, which the caller frees. */
void tn__trial_read(struct tn_trial *trial, char **left);
/* Fills outcome, words and steps from such a text; both texts may be NULL. How it ended is the caller's to set. */
void tn__trial_take(struct tn_trial *trial, const char *outcome, const char *words);
/* The report of a trial; where it came to none, one in which nothing is known and the verdict is that it failed.
 * Borrowed. */
const struct tn_report *tn__trial_report(const struct tn_trial *trial);
/* How much higher its device peak may be than it was seen (the context, kernels as they load); 0 where unknown. */
int64_t tn__trial_uncertain(const struct tn_trial *trial);
/* True for a trial that is done, and fits. */
bool tn__trial_fits(const struct tn_trial *trial);
/* True when a change of the trial was made in one of its processes. */
bool tn__trial_applied(const struct tn_trial *trial);
/* Why nothing decisive was seen, as the report's first finding says it, and what would decide; the caller frees; NULL:
 * without memory. */
char *tn__trial_doubt(const struct tn_trial *trial);

/* ---- steps.c: what steps did ---- */

/* The text that the virtual GPU of the process with most steps has left in the run's folder; the caller frees; NULL:
 * none. */
char *tn__work_read(const struct tn_folder *folder);
/* Reads such a text; NULL, and one that is none, give no steps. Release with tn__steps_free. */
void tn__steps_parse(const char *text, struct tn_steps *out);
void tn__steps_free(struct tn_steps *steps);

/* ---- input.c: standard input ---- */

/* A descriptor of what standard input holds: a file from where it stands, or a pipe that holds all that will come (1 MiB at most). Nothing
 * of it is taken. Waits for a second at most. 0: there is none. The caller closes it. */
int tn__input_keep(void);
/* The same from its beginning, on its own; -1: there is none. The caller closes it. */
int tn__input_open(int kept);

/* ---- this_machine.c ---- */

/* A figure of /proc/meminfo in bytes; TN_NO_FIGURE when it cannot be read. */
int64_t tn__machine_memory(const char *name);
/* Those that this process may use; at least 1. */
int tn__machine_cores(void);
/* What the processes of a trial hold by themselves: resident pages that are not shared. */
int64_t tn__trial_bytes(const struct tn_trial *trial);

/* ---- forks.c: the fork server ---- */

#define TN_PATCH_VARIABLE "TONNAGE_PATCH"     /* a patch that is tried (python/tonnage/changes/patched.py) */
#define TN_MODULES_VARIABLE "TONNAGE_MODULES" /* wishes for a list of what was imported */

enum tn_forks_state {
	TN_FORKS_OFF,     /* not wanted */
	TN_FORKS_IMPORTS, /* it is busy importing */
	TN_FORKS_READY,   /* it forks */
	TN_FORKS_BROKEN   /* `why` says so; trials start anew */
};

/* A process that has imported what the program imports, and forks for each trial. */
struct tn_forks {
	enum tn_forks_state state;
	pid_t pid;   /* its supervisor, a child of this process */
	int channel; /* a socket */
	char why[200];
};
/* Starts the server for a program. */
void tn__forks_start(struct tn_forks *forks, const struct tn_run_options *options, const sigset_t *mask);
/* Has it import these modules, too: lines "name\tfile". */
void tn__forks_import(struct tn_forks *forks, const char *modules);
/* Takes what it has said, without waiting. */
void tn__forks_listen(struct tn_forks *forks);
/* Trials start anew from now on. */
void tn__forks_disable(struct tn_forks *forks, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends it; its supervisor is still to be waited for. */
void tn__forks_end(struct tn_forks *forks);

/* ---- modules.c ---- */

/* What the program with most modules has imported, from its run's folder; the caller frees; NULL: no list. */
char *tn__modules_read(const struct tn_folder *folder);

/* ---- several side by side ---- */

struct tn_store;
struct tn_engine;

struct tn_trials {
	int jobs;                 /* at most so many at once; tn__trials_adapt sets it */
	int wanted_jobs;          /* 0: as the machine bears */
	double limit_seconds;     /* for one trial; 0: none */
	bool forks;               /* import once and fork the rest, where that is found to be the same */
	bool over;                /* set by the caller: no more trials will be asked for */
	bool begins_again;        /* the caller begins again where forks turn out not to be the same (`mistaken`) */
	struct tn_store *store;   /* where results are kept and found again; NULL: nowhere */
	int input;                /* of tn__input_keep; 0: programs read nothing from standard input */
	bool no_table;            /* a worker's: the table of results is the command's to write */
	struct tn_engine *engine; /* that makes all trials but the first; NULL: they are made here */
	void *context;
	/* The next trial to start, or NULL when there is none for now. */
	struct tn_trial *(*next)(void *context);
	/* A trial has ended. */
	void (*ended)(void *context, struct tn_trial *trial);
	/* What a trial that tells early has seen, as tn__trial_take wants it. It runs on, and `ended` is called for it as for any other. */
	void (*early)(void *context, struct tn_trial *trial, const char *outcome);
	/* Called a few times a second; may be NULL. */
	void (*tick)(void *context);
	/* what is told */
	int interrupted_by; /* signal, or 0 */
	int count;          /* trials started */
	int ended_count;    /* that are over, those of `reused` too */
	int reused;         /* whose result was there already */
	int lost;           /* made again, since their worker died */
	int given_up;       /* whose workers always died */
	int away;           /* that an engine makes now */
	int forked;         /* of these, by a fork server */
	int unchecked; /* of those, started before it was known that a fork is the program; the check is none of them */
	bool mistaken; /* what was told is of forked trials, and those are not the same: nothing of it counts */
	struct tn_trial_seconds took;
	struct tn_forks server;
	/* inside */
	struct tn_trial *running[64];
	int running_count;
	sigset_t old_mask;
	int signals;
	int forked_ended;
	int64_t memory_bound; /* bytes of one trial's processes */
	double started;
	struct tn_trial *first;             /* started anew; what the server makes must be the same */
	struct tn_trial check;              /* which is seen here */
	bool listed, checked;               /* the server knows all modules; it was found to be the same */
	struct tn_trial *run_exclusive[64]; /* to be made again with nothing beside them */
	int run_exclusive_count;
	int *alive; /* reading ends of pipes that end with what is left of forked trials */
	int alive_count;
};

/* Starts what `next` gives until it gives nothing and nothing runs, or a signal came. */
tn_status tn__trials_run(struct tn_trials *trials);
/* True while a trial runs, here or elsewhere. */
bool tn__trials_some_run(const struct tn_trials *trials);
/* True when no result that was told depends on whether forks are the same. */
bool tn__trials_are_checked(const struct tn_trials *trials);
/* Why trials were started anew although forks were wanted; NULL where that is not so. */
const char *tn__trials_not_forked(const struct tn_trials *trials);
/* Seconds since tn__trials_open. */
double tn__trials_seconds(const struct tn_trials *trials);

/* ---- this_machine.c ---- */

#define TN_SHARE_OF_MEMORY 0.8 /* of what is available, for all trials together */

/* Sets `jobs` from the cores and from the memory that one trial took; TN_NO_FIGURE: unknown. */
void tn__trials_adapt(struct tn_trials *trials, int64_t peak_rss_bytes);

/* ---- trial_signals.c ---- */

/* Holds the signals that end the command, and looks at the machine. Close with tn__trials_close. */
tn_status tn__trials_open(struct tn_trials *trials);
void tn__trials_close(struct tn_trials *trials);
/* Ends a trial that runs. */
void tn__trials_stop(struct tn_trials *trials, struct tn_trial *trial);
/* The same, with why; nothing where it does not run. */
void tn__trial_end(struct tn_trial *trial, enum tn_trial_end why);
/* Learns of signals, and ends what runs here where there was one that ends the command. */
void tn__trials_take_signals(struct tn_trials *trials);

/* ---- trial_child.c: in the trial's process ---- */

/* Runs the trial in this process, a child of `parent`, and ends it. */
_Noreturn void tn__trial_become(const struct tn_trial *trial, const sigset_t *mask, pid_t parent);
/* The same for a fork server of the program; `channel` is its end of the socket. */
_Noreturn void tn__trial_become_server(const struct tn_run_options *options, int channel, const sigset_t *mask,
                                       pid_t parent);

/* ---- early.c: what a trial has seen before it has ended ---- */

/* Makes what a trial tells early through; where that cannot be had it tells nothing early. */
void tn__early_open(struct tn_trial *trial);
/* In the process that waits, once the trial's runs; and when that has ended. */
void tn__early_close_told(struct tn_trial *trial);
void tn__early_close(struct tn_trial *trial);
/* A descriptor that becomes readable when a running trial has told; -1: none will. */
int tn__early_listens(const struct tn_trials *trials);
/* Hands over what was told since. */
void tn__early_take(struct tn_trials *trials);
/* Says it, in a process that ends behind it. `of_run` as for tn__outcome_write, which releases it. */
void tn__early_tell(const struct tn_early *early, struct json_t *of_run, int exit_status);

#endif
