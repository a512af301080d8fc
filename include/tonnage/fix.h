/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that make a program fit a card, found by trying them on the virtual GPU; and the largest batch that fits.
 */
#ifndef TONNAGE_FIX_H
#define TONNAGE_FIX_H

#include "tonnage/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is common to both commands. All strings are borrowed for the time of the call. */
struct tn_search_options {
	struct tn_run_options run; /* card, program and how it is run; json_path, messages and output are the command's */
	double margin;             /* share of the card that must stay free: 0.05 is 5 % */
	int jobs;                  /* trials side by side; 0: as cores and memory bear */
	const char *engine;        /* "ray", "ray=ADDRESS", "slurm": trials are made there; NULL: here */
	const char *results; /* a folder that keeps each trial's result, and has results that are used again; NULL: none */
	bool dry_run;        /* with "slurm": what would be handed in is printed, and nothing done */
	bool fresh;          /* each trial starts a process anew; else they are forked from one, where that can be */
	double
		seconds; /* no trial is started later, once something fits; twice that when it changes the training; 0: no limit */
};

struct tn_fix_options {
	struct tn_search_options search;
	const char *apply; /* "2": the second change of the list; "checkpoint=1": that change, without a search; or NULL */
	const char *patch_path; /* where the first change that fits goes as a diff; "-" is output; NULL: nowhere */
};

/* Runs the program as it is, and under changes, until the list is found; tells it, and writes what was asked for. *exit_status
 * is always set. On failure tn_error_text() has the line to show. Installs signal handling and forks: for
 * command-line programs. */
tn_status tn_fix(const struct tn_fix_options *options, int *exit_status);

struct tn_fit_options {
	struct tn_search_options search; /* run.gpu may name several cards, separated by commas */
	int batch;                       /* the batch that was asked for; 0: the program's own */
	int most;                        /* no batch above this is tried; 0: 65536 */
	const char *const *vary; /* "batch=1..512", "length=512,1024": these combinations instead; NULL: the batch alone */
	int vary_count;
	bool all; /* with `vary`: every combination is tried */
};

/* Finds the largest batch for each card: through the word {batch} of the program's arguments, or else through its data
 * loader. With `vary`, the largest value of the batch, or of the first name where none is "batch", for each combination of the
 * others. As tn_fix otherwise. */
tn_status tn_fit(const struct tn_fit_options *options, int *exit_status);

/* `tonnage __trials FOLDER SLICE`: a worker of an engine (doc/design/0041-engines.md). Not for people. Returns an exit status. */
int tn_worker_main(int count, char **words);

/* The name of the change at an index, as --apply takes it, and what it does; NULL behind the last. */
const char *tn_change_at(size_t index, const char **title);

#ifdef __cplusplus
}
#endif
#endif
