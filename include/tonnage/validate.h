/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of our own run on a real card and on its virtual copy, and what PyTorch and the driver counted compared.
 */
#ifndef TONNAGE_VALIDATE_H
#define TONNAGE_VALIDATE_H

#include <stdbool.h>
#include <stdio.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All strings are borrowed for the time of the call. */
struct tn_validate_options {
	const char *gpu;    /* "real": this machine's card; else a name of the catalogue: a virtual card stands in for it */
	const char *python; /* whose PyTorch runs the jobs */
	const char *jobs;   /* only those whose name holds this text; NULL: all */
	double seconds;     /* no job is started later; 0: no limit */
	const char *json_path; /* what is known so far: read, gone on with, written after each job; NULL: nowhere */
	bool quiet;            /* no line for each job, no table */
	FILE *messages;        /* words for a person */
};

/* Runs the jobs that the file does not know yet. *exit_status is always set: 0 all that ran agree, 1 something differs,
 * 2 wrong usage, 125 a failure of ours, 128 + a signal. On failure tn_error_text() has the line to show. Installs signal
 * handling and forks: for command-line programs. */
tn_status tn_validate(const struct tn_validate_options *options, int *exit_status);

/* Writes the names of the jobs, one a line. */
tn_status tn_validate_list(const struct tn_validate_options *options, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
