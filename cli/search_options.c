/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that fix and fit share.
 */
#include "search_options.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"

struct tn_search_options
search_defaults(void)
{
	return (struct tn_search_options){ .run = tn_run_defaults(), .seconds = 90 };
}

int
search_number(const char *text)
{
	long value = 0;
	for (const char *c = text; *c != '\0'; c++) {
		if (*c < '0' || *c > '9' || value > 100000000)
			return -1;
		value = value * 10 + (*c - '0');
	}
	return value > 0 ? (int)value : -1;
}

static int
one_of(const char *option, const char *first, const char *second, bool *out)
{
	if (strcmp(optarg, first) != 0 && strcmp(optarg, second) != 0)
		return wrong_usage("--%s is %s or %s, not \"%s\"", option, first, second, optarg);
	*out = strcmp(optarg, second) == 0;
	return 0;
}

static int
take_size(const char *option, bool zero_is_fine, uint64_t *out)
{
	if (tn_parse_size(optarg, out) != TN_OK)
		return wrong_usage("--%s: %s", option, tn_error_text());
	if (*out == 0 && !zero_is_fine)
		return wrong_usage("--%s must be more than nothing", option);
	return 0;
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
	*out = strcmp(optarg, "0") == 0 ? 0 : search_number(optarg);
	return *out < 0 ? wrong_usage("--seconds is a number, not \"%s\"", optarg) : 0;
}

static int
take_count(const char *option, int most, int *out)
{
	*out = search_number(optarg);
	return *out < 1 || *out > most ? wrong_usage("--%s is 1 to %d, not \"%s\"", option, most, optarg) : 0;
}

int
search_option(const char *command, int option, char **argv, struct tn_search_options *out)
{
	switch (option) {
	case SEARCH_GPU:
		out->run.gpu = optarg;
		return 0;
	case SEARCH_GPUS:
		return take_count("gpus", 8, &out->run.gpus);
	case SEARCH_JOBS:
		return take_count("jobs", 64, &out->jobs);
	case SEARCH_MEMORY:
		return take_size("memory", false, &out->run.memory_bytes);
	case SEARCH_OTHER:
		return take_size("other", true, &out->run.other_bytes);
	case SEARCH_MARGIN:
		return take_margin(&out->margin);
	case SEARCH_STEPS:
		out->run.steps = optarg;
		if (strcmp(optarg, "auto") != 0 && strcmp(optarg, "all") != 0 && search_number(optarg) < 0)
			return wrong_usage("--steps is a number, auto or all, not \"%s\"", optarg);
		return 0;
	case SEARCH_INIT:
		return one_of("init", "skip", "real", &out->run.real_initialization);
	case SEARCH_VALUES:
		return one_of("values", "small", "all", &out->run.all_values);
	case SEARCH_WRITES:
		return one_of("writes", "scratch", "allow", &out->run.allow_writes);
	case SEARCH_SECONDS:
		return take_seconds(&out->seconds);
	case SEARCH_JSON:
		out->run.json_path = optarg;
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
