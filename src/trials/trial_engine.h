/* SPDX-License-Identifier: Apache-2.0
 *
 * Where trials are made that the command does not make itself (doc/design/0041-engines.md): an engine hands slices, names of
 * lists of trials in the folder of results, to workers (`tonnage __trials`), and says which slices nobody works on any more.
 * Results of trials are in the folder alone. Not thread-safe.
 */
#ifndef TN_TRIALS_TRIAL_ENGINE_H
#define TN_TRIALS_TRIAL_ENGINE_H

#include "trials/store.h"
#include "trials/trial.h"

#define TN_SLICE_MOST 32 /* trials */

struct tn_slice {
	char name[64];
	long id, index; /* the engine's own */
	bool over;      /* set by the engine: nobody works on it */
	double since;   /* when that was seen */
	int count;      /* of its trials that have no result yet */
};

struct tn_engine {
	const struct tn_engine_kind *kind;
	const char *argument;     /* what stands behind "ray="; NULL: nothing */
	char directory[PATH_MAX]; /* that the command stands in */
	char *const *arguments;   /* of the program */
	int wanted_jobs;          /* --jobs; 0: as the engine has it */
	bool dry_run;             /* print what would be handed in */
	FILE *output;
	const struct tn_store *store;
	sigset_t mask; /* what processes get */
	/* set by `open` */
	int slots;      /* trials at once */
	char words[64]; /* for the line of progress: "2 nodes, 4 cores" */
	/* its own */
	pid_t pid;
	int to, from; /* pipes to pid; -1: none */
	char line[512];
	size_t line_length;
	char tonnage[PATH_MAX];
	double looked;
	void (*on_broken_pipe)(int); /* before it was opened */
};

struct tn_engine_kind {
	const char *name;
	bool waits;    /* in a queue: nothing is handed in while something is out */
	double settle; /* seconds that a result may take to be seen behind its worker's end */
	/* Looks whether it is installed, TN_NOT_FOUND with the line to show where not. Starts nothing that stays. */
	tn_status (*check)(struct tn_engine *engine);
	/* Connects to it, and learns of its slots. */
	tn_status (*open)(struct tn_engine *engine);
	/* Hands slices out. */
	tn_status (*submit)(struct tn_engine *engine, struct tn_slice *const *slices, int count);
	/* Sets `over` of slices that are. A failure ends the search. */
	tn_status (*poll)(struct tn_engine *engine, struct tn_slice *const *slices, int count);
	/* Ends what is out, and what the engine has started. */
	void (*close)(struct tn_engine *engine, struct tn_slice *const *slices, int count);
};

/* "ray", "ray=ADDRESS", "slurm". TN_INVALID where there is none of the name, TN_NOT_FOUND where it is not installed; each with the line to
 * show. The fields of *out above `slots` are the caller's, and borrowed, but for kind, argument and mask. */
tn_status tn__trial_engine(const char *text, struct tn_engine *out);

extern const struct tn_engine_kind tn__engine_ray, tn__engine_slurm, tn__engine_processes;

/* ---- spawn.c: commands of engines ---- */

/* Starts a command with the engine's mask, a group of its own and its error output in the log of this name. `to` and `from`, where not NULL,
 * get pipes to its input and from its output. -1: it could not be started. */
pid_t tn__engine_spawn(const struct tn_engine *engine, const char *const *words, const char *log, int *to, int *from);
/* Runs a command to its end, and gives what it said on its output and, with `errors`, on its error output. -1: it could not be started;
 * else its exit status, 128 and more for a signal. The caller frees *said. */
int tn__engine_run(const struct tn_engine *engine, const char *const *words, const char *input, bool errors,
                   char **said);

/* ---- away.c ---- */

/* As tn__trials_run, with an engine; `run_here` makes the trials that it is not for, the first. */
tn_status tn__trials_run_away(struct tn_trials *trials, tn_status (*run_here)(struct tn_trials *trials));

#endif
