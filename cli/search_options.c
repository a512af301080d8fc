/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that fix and fit share.
 */
#include "search_options.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"

struct tn_search_options
search_defaults(void)
{
	return (struct tn_search_options){ .run = tn_run_defaults(), .seconds = 90 };
}

/* "5%" or "0.05" */
static int
take_margin(double *out)
{
	char *end;
	double value = strtod(optarg, &end);
	if (strcmp(end, "%") == 0)
		value /= 100;
	else if (*end != '\0')
		value = -1;
	if (end == optarg || !(value >= 0 && value < 1))
		return wrong_usage("--margin is a share of the card such as 5%%, not \"%s\"", optarg);
	*out = value;
	return 0;
}

static int
take_seconds(double *out)
{
	*out = strcmp(optarg, "0") == 0 ? 0 : option_number(optarg);
	return *out < 0 ? wrong_usage("--seconds is a number of seconds, 0 or more, not \"%s\"", optarg) : 0;
}

int
search_option(const char *command, int option, char **argv, struct tn_search_options *out)
{
	switch (option) {
	case SEARCH_GPU:
		out->run.gpu = optarg;
		return 0;
	case SEARCH_GPUS:
		return option_count("gpus", TN_RUN_GPUS, &out->run.gpus);
	case SEARCH_JOBS:
		return option_count("jobs", 1000, &out->jobs);
	case SEARCH_FRESH:
		out->fresh = true;
		return 0;
	case SEARCH_ENGINE:
		out->engine = optarg;
		return 0;
	case SEARCH_RESULTS:
		out->results = optarg;
		return 0;
	case SEARCH_DRY_RUN:
		out->dry_run = true;
		return 0;
	case SEARCH_MEMORY:
		return option_size("memory", false, &out->run.memory_bytes);
	case SEARCH_OTHER:
		return option_size("other", true, &out->run.other_bytes);
	case SEARCH_HOST_MEMORY:
		return option_size("host-memory", false, &out->run.host_memory_bytes);
	case SEARCH_MARGIN:
		return take_margin(&out->margin);
	case SEARCH_STEPS:
		return option_steps(&out->run.steps);
	case SEARCH_INIT:
		return option_word("init", "skip", "real", &out->run.real_initialization);
	case SEARCH_WEIGHTS:
		return option_weights(&out->run.weights);
	case SEARCH_DATA:
		return option_word("data", "real", "shape", &out->run.data_shape);
	case SEARCH_INPUTS:
		return option_inputs(&out->run.inputs);
	case SEARCH_CELLS:
		return option_cells(&out->run.cells);
	case SEARCH_PYTHON:
		out->run.python = optarg;
		return 0;
	case SEARCH_KEEP_GOING:
		out->run.keep_going = true;
		return 0;
	case SEARCH_THEN:
		return option_then(command, &out->run);
	case SEARCH_REQUEST:
		return option_request(command, &out->run);
	case SEARCH_REPEAT:
		return option_count("repeat", TN_RUN_ROUNDS, &out->run.repeat);
	case SEARCH_VALUES:
		return option_word("values", "small", "all", &out->run.all_values);
	case SEARCH_ASSUME:
		return option_assume(&out->run.assume);
	case SEARCH_WRITES:
		return option_word("writes", "scratch", "allow", &out->run.allow_writes);
	case SEARCH_NETWORK:
		return option_word("network", "closed", "allow", &out->run.allow_network);
	case SEARCH_SECONDS:
		return take_seconds(&out->seconds);
	case SEARCH_JSON:
		out->run.json_path = optarg;
		return 0;
	case SEARCH_HTML:
		out->run.html_path = optarg;
		return 0;
	case SEARCH_QUIET:
		out->run.quiet = true;
		return 0;
	case ':':
		return wrong_usage("%s: %s needs a value (tonnage %s --help)", command, argv[optind - 1], command);
	default:
		return wrong_usage("%s: unknown option %s (tonnage %s --help)", command, argv[optind - 1], command);
	}
}
