/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a program on a virtual (or the real) GPU, and what it came to.
 */
#ifndef TONNAGE_RUN_H
#define TONNAGE_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Exit statuses of `tonnage run` beside the program's own. Frozen. */
enum tn_exit {
	TN_EXIT_FITS = 0,
	TN_EXIT_USAGE = 2,
	TN_EXIT_OUT_OF_MEMORY = 10,
	TN_EXIT_OVER_LIMIT = 11, /* fits the card, but not the budget or the baseline */
	TN_EXIT_UNDECIDED = 12,  /* nothing decisive was seen */
	TN_EXIT_OWN_FAILURE = 125,
	TN_EXIT_NOT_EXECUTABLE = 126,
	TN_EXIT_NOT_FOUND = 127,
	TN_EXIT_INTERRUPTED = 130
};

/* How the program's files of weights are read. */
enum tn_weights {
	TN_WEIGHTS_AUTO,  /* tensors that are missing from a file are read as zeros of their shape */
	TN_WEIGHTS_SHAPE, /* so are those that are there: they are not read */
	TN_WEIGHTS_REAL   /* files are read as they are */
};

/* On what the program is to run (doc/design/0040-windows.md). */
enum tn_system { TN_SYSTEM_LINUX, TN_SYSTEM_WINDOWS, TN_SYSTEM_WSL };

#define TN_MOST_REQUESTS 64 /* files and addresses of --request */
#define TN_MOST_THEN 15     /* commands after the first one */

/* All strings are borrowed for the time of the call. tn_run_defaults gives what a plain `tonnage run` does. */
struct tn_run_options {
	const char *gpu;       /* name or alias, "auto" or "real" */
	int gpus;              /* 1 to 8 of them, on each node */
	int nodes;             /* 1 to 8192; above 1 only some ranks are run, and stand for those like them */
	const char *ranks;     /* the ranks that are run, "0,1,7-9"; NULL: chosen, where there are several nodes */
	uint64_t memory_bytes; /* total memory instead of the card's own; 0: the card's own */
	uint64_t other_bytes;  /* held by processes that are not of this run */
	bool other_told;       /* that was said: nothing is taken for a desktop beside it */
	enum tn_system system;
	bool forbid_fallback;       /* the driver of Windows may not go on in the computer's memory */
	const char *steps;          /* "auto", "all" or a number */
	double seconds;             /* with steps "auto", after the imports; 0: TONNAGE_SECONDS, else 120 */
	double compile_seconds;     /* of compiling, which is not counted in `seconds`; below 0: 900 */
	bool real_initialization;   /* large random initialisation is done, not skipped */
	enum tn_weights weights;    /* on a virtual card; on a real one everything is read as it is */
	bool data_shape;            /* so with data: images and data sets are read for their shapes, not their values */
	const char *inputs;         /* in which order samples come: "as_is", "longest" or "pad=N" */
	double assume;              /* share of what could be selected that is taken to be: 1 all, 0 none */
	bool all_values;            /* copies of any size keep their bytes */
	bool allow_writes;          /* the program may write real files */
	bool allow_network;         /* what the program sends leaves the machine, made-up values included */
	uint64_t scratch_bytes;     /* what the scratch folder may take of the disk; 0: no limit */
	bool no_detail;             /* nothing is learnt of what the memory is for */
	bool quiet;                 /* no progress line, no report for a person */
	const char *json_path;      /* "-" is `output`; NULL: none */
	const char *snapshot_path;  /* NULL: none */
	const char *html_path;      /* NULL: none */
	uint64_t budget_bytes;      /* what the device's peak may be; 0: what the card has */
	uint64_t host_memory_bytes; /* of the computer, for all processes of the run; 0: that is not looked at */
	const char *cells;          /* of a notebook, in the order in which they are run ("1-4,4"); NULL: all */
	const char *python;         /* that a notebook is run by; NULL: its kernel's, else the active environment's */
	bool keep_going;            /* a cell that fails does not end a notebook */
	bool open_oom_decides;      /* an out-of-memory after which nothing was done on the card is the verdict, though
	                                  * the program handled it and ended with status 0: a batch that was given up */
	const char *baseline_path;  /* of an earlier run, which this one's peak may not be above; NULL: none */
	int64_t tolerance;          /* by more than so many millionths of it; below 0: 1 % */
	const char *write_baseline_path; /* NULL: none */
	char *const *arguments;          /* the program and its arguments, ended by NULL */
	bool several;                    /* these are several programs, with the word ":::" between them */
	const char *then[TN_MOST_THEN];  /* commands that are run after it, each on what the one before left in scratch */
	int then_count;
	const char *after; /* for tn_run itself: the folder of the run whose scratch this one begins with; NULL */
	const char *requests[TN_MOST_REQUESTS]; /* what is sent to the server that the program is: addresses and files */
	int request_count;
	int repeat;     /* how often all of them are sent; 0: until memory has settled */
	FILE *messages; /* words for a person */
	FILE *output;   /* for json_path "-" */
};

/* What `tonnage run` does without options. */
struct tn_run_options tn_run_defaults(void);

/* Runs the program and reports. *exit_status is always set, also on failure, to what the command should end with; on
 * failure (wrong usage, program not found, a defect of ours) tn_error_text() has the one line to show. Installs
 * signal handling for its duration and forks: not thread-safe, for command-line programs. */
tn_status tn_run(const struct tn_run_options *options, int *exit_status);

/* `tonnage __reaper LIFE NEWS LOCK PROGRAM FOLDER`: a part of a run, as a process of its own where a fork server makes
 * the program's process. Not for people. Returns an exit status, or never. */
int tn_reaper_main(int count, char **words);

/* `tonnage __cudnn`: a part of a run, the process that asks the real cuDNN; descriptor 3 is its socket. Not for people.
 * Returns an exit status. */
int tn_cudnn_main(void);

/* Reads a size such as "12GiB", "11.75GiB", "500MiB" or plain bytes (1024-based units only). TN_INVALID otherwise. */
tn_status tn_parse_size(const char *text, uint64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
