/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that fix and fit share.
 */
#ifndef TN_CLI_SEARCH_OPTIONS_H
#define TN_CLI_SEARCH_OPTIONS_H

#include <getopt.h>

#include "tonnage/fix.h"

enum {
	SEARCH_GPU = 1,
	SEARCH_GPUS,
	SEARCH_MEMORY,
	SEARCH_OTHER,
	SEARCH_HOST_MEMORY, /* of fix alone */
	SEARCH_MARGIN,
	SEARCH_STEPS,
	SEARCH_INIT,
	SEARCH_VALUES,
	SEARCH_WEIGHTS,
	SEARCH_DATA,
	SEARCH_INPUTS,
	SEARCH_CELLS,
	SEARCH_PYTHON,
	SEARCH_KEEP_GOING,
	SEARCH_THEN, /* of fix alone, as the next two */
	SEARCH_REQUEST,
	SEARCH_REPEAT,
	SEARCH_ASSUME,
	SEARCH_WRITES,
	SEARCH_NETWORK,
	SEARCH_SECONDS,
	SEARCH_JOBS,
	SEARCH_FRESH,
	SEARCH_ENGINE,
	SEARCH_RESULTS,
	SEARCH_DRY_RUN,
	SEARCH_JSON,
	SEARCH_HTML,
	SEARCH_QUIET,
	SEARCH_HELP,
	SEARCH_OPTIONS_END
};

#define SEARCH_OPTIONS                                                                                                \
	{ "gpu", required_argument, NULL, SEARCH_GPU }, { "gpus", required_argument, NULL, SEARCH_GPUS },                 \
		{ "memory", required_argument, NULL, SEARCH_MEMORY }, { "other", required_argument, NULL, SEARCH_OTHER },     \
		{ "margin", required_argument, NULL, SEARCH_MARGIN }, { "steps", required_argument, NULL, SEARCH_STEPS },     \
		{ "init", required_argument, NULL, SEARCH_INIT }, { "values", required_argument, NULL, SEARCH_VALUES },       \
		{ "weights", required_argument, NULL, SEARCH_WEIGHTS }, { "data", required_argument, NULL, SEARCH_DATA },     \
		{ "inputs", required_argument, NULL, SEARCH_INPUTS }, { "cells", required_argument, NULL, SEARCH_CELLS },     \
		{ "python", required_argument, NULL, SEARCH_PYTHON }, { "keep-going", no_argument, NULL, SEARCH_KEEP_GOING }, \
		{ "assume", required_argument, NULL, SEARCH_ASSUME }, { "writes", required_argument, NULL, SEARCH_WRITES },   \
		{ "network", required_argument, NULL, SEARCH_NETWORK },                                                       \
		{ "seconds", required_argument, NULL, SEARCH_SECONDS }, { "jobs", required_argument, NULL, SEARCH_JOBS },     \
		{ "json", required_argument, NULL, SEARCH_JSON }, { "html", required_argument, NULL, SEARCH_HTML },           \
		{ "engine", required_argument, NULL, SEARCH_ENGINE }, { "results", required_argument, NULL, SEARCH_RESULTS }, \
		{ "dry-run", no_argument, NULL, SEARCH_DRY_RUN }, { "fresh", no_argument, NULL, SEARCH_FRESH },               \
		{ "quiet", no_argument, NULL, SEARCH_QUIET },                                                                 \
	{                                                                                                                 \
		"help", no_argument, NULL, SEARCH_HELP                                                                        \
	}

/* What a search without options does. */
struct tn_search_options search_defaults(void);
/* Takes one of the options above; 0, or the status for wrong usage, said. */
int search_option(const char *command, int option, char **argv, struct tn_search_options *out);

#endif
