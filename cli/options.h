/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of options, as run, fit and fix read them: getopt's `optarg` is what is looked at. Each returns 0, or the status
 * for wrong usage, said; *out is set only with 0.
 */
#ifndef TN_CLI_OPTIONS_H
#define TN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tonnage/run.h"

#define TN_RUN_GPUS 8 /* at most */
#define TN_RUN_NODES 8192
#define TN_RUN_ROUNDS 100000 /* of requests */

/* True where one of the words is ":::", which stands between programs that run at the same time. */
bool has_separator(char *const *words);
/* Whole numbers from 1 on; -1 for anything else. */
int option_number(const char *text);
int option_count(const char *option, int most, int *out);
/* *out says whether it was the second word. */
int option_word(const char *option, const char *first, const char *second, bool *out);
int option_size(const char *option, bool zero_is_fine, uint64_t *out);
/* full, none, or a share from 0 to 1. */
int option_assume(double *out);
/* "1%", "0.25%": in millionths. */
int option_share(const char *option, int64_t *out);
/* A number of seconds above 0, or, where zero_is_fine, 0. */
int option_seconds(const char *option, bool zero_is_fine, double *out);
/* linux, windows or wsl. */
int option_system(enum tn_system *out);
/* auto, shape or real. */
int option_weights(enum tn_weights *out);
/* Numbers and ranges of them: "1-4,4". */
int option_cells(const char **out);
/* as_is, longest or pad=N. */
int option_inputs(const char **out);
/* One more command that follows (--then), one more thing to send (--request). `command` is the one that they are given to. */
int option_then(const char *command, struct tn_run_options *out);
int option_request(const char *command, struct tn_run_options *out);
/* Do these options go with requests? */
int check_requests(const char *command, const struct tn_run_options *options);
/* A number, "auto" or "all". */
int option_steps(const char **out);

#endif
