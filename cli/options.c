/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of options that several commands take.
 */
#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "tonnage/run.h"

bool
has_separator(char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(*words, ":::") == 0)
			return true;
	return false;
}

int
option_number(const char *text)
{
	long value = 0;
	for (const char *c = text; *c != '\0'; c++) {
		if (*c < '0' || *c > '9' || value > 100000000)
			return -1;
		value = value * 10 + (*c - '0');
	}
	return value > 0 ? (int)value : -1;
}

int
option_count(const char *option, int most, int *out)
{
	int value = option_number(optarg);
	if (value < 1 || value > most)
		return wrong_usage("--%s is 1 to %d, not \"%s\"", option, most, optarg);
	*out = value;
	return 0;
}

int
option_word(const char *option, const char *first, const char *second, bool *out)
{
	if (strcmp(optarg, first) != 0 && strcmp(optarg, second) != 0)
		return wrong_usage("--%s is %s or %s, not \"%s\"", option, first, second, optarg);
	*out = strcmp(optarg, second) == 0;
	return 0;
}

int
option_weights(enum tn_weights *out)
{
	static const char *const words[] = {
		[TN_WEIGHTS_AUTO] = "auto", [TN_WEIGHTS_SHAPE] = "shape", [TN_WEIGHTS_REAL] = "real"
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(optarg, words[i]) == 0) {
			*out = (enum tn_weights)i;
			return 0;
		}
	return wrong_usage("--weights is auto, shape or real, not \"%s\"", optarg);
}

int
option_system(enum tn_system *out)
{
	static const char *const words[] = {
		[TN_SYSTEM_LINUX] = "linux", [TN_SYSTEM_WINDOWS] = "windows", [TN_SYSTEM_WSL] = "wsl"
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(optarg, words[i]) == 0) {
			*out = (enum tn_system)i;
			return 0;
		}
	return wrong_usage("--host is linux, windows or wsl, not \"%s\"", optarg);
}

int
option_size(const char *option, bool zero_is_fine, uint64_t *out)
{
	uint64_t value;
	if (tn_parse_size(optarg, &value) != TN_OK)
		return wrong_usage("--%s: %s", option, tn_error_text());
	if (value == 0 && !zero_is_fine)
		return wrong_usage("--%s must be above 0", option);
	*out = value;
	return 0;
}

int
option_share(const char *option, int64_t *out)
{
	int64_t value = 0, unit = 10000; /* millionths in a percent, then in a tenth of one ... */
	const char *at = optarg;
	for (; *at >= '0' && *at <= '9' && value < 1000 * unit; at++)
		value = value * 10 + (*at - '0') * unit;
	bool digits = at > optarg;
	if (digits && *at == '.')
		for (at++; *at >= '0' && *at <= '9' && unit > 1; at++) {
			unit /= 10;
			value += (*at - '0') * unit;
		}
	if (!digits || strcmp(at, "%") != 0 || value > 1000 * INT64_C(10000))
		return wrong_usage("--%s is a share such as 1%% or 0.25%%, at most 1000%%, not \"%s\"", option, optarg);
	*out = value;
	return 0;
}

int
option_assume(double *out)
{
	char *end = optarg;
	double share = strcmp(optarg, "full") == 0 ? 1 : strcmp(optarg, "none") == 0 ? 0 : strtod(optarg, &end);
	bool word = end == optarg && (strcmp(optarg, "full") == 0 || strcmp(optarg, "none") == 0);
	if (!word && (end == optarg || *end != '\0' || !(share >= 0 && share <= 1)))
		return wrong_usage("--assume is full, none or a share from 0 to 1, not \"%s\"", optarg);
	*out = share;
	return 0;
}

int
option_inputs(const char **out)
{
	static const char pad[] = "pad=";
	bool padded = strncmp(optarg, pad, sizeof(pad) - 1) == 0 && option_number(optarg + sizeof(pad) - 1) > 0;
	if (strcmp(optarg, "as_is") != 0 && strcmp(optarg, "longest") != 0 && !padded)
		return wrong_usage("--inputs is as_is, longest or pad=N with a whole number, not \"%s\"", optarg);
	*out = optarg;
	return 0;
}

int
option_steps(const char **out)
{
	if (strcmp(optarg, "auto") != 0 && strcmp(optarg, "all") != 0 && option_number(optarg) < 0)
		return wrong_usage("--steps is a number, auto or all, not \"%s\"", optarg);
	*out = optarg;
	return 0;
}

int
option_seconds(const char *option, bool zero_is_fine, double *out)
{
	int value = strcmp(optarg, "0") == 0 ? 0 : option_number(optarg);
	if (value < 0 || (value == 0 && !zero_is_fine))
		return wrong_usage("--%s is a whole number of seconds, not \"%s\"", option, optarg);
	*out = value;
	return 0;
}

/* A number of up to six digits, from 1; *text is behind it. 0: none. */
static int
next_number(const char **text)
{
	int value = 0, digits = 0;
	for (; **text >= '0' && **text <= '9' && digits < 7; ++*text, digits++)
		value = value * 10 + (**text - '0');
	return digits > 0 && digits < 7 ? value : 0;
}

int
option_cells(const char **out)
{
	const char *at = optarg;
	bool good = true;
	for (bool more = true; more && good;) {
		int first = next_number(&at), last = first;
		if (*at == '-') {
			at++;
			last = next_number(&at);
		}
		good = first > 0 && last >= first && (*at == '\0' || *at == ',');
		more = *at == ',';
		at += more;
	}
	if (!good)
		return wrong_usage("--cells is a list such as 1-4,4, not \"%s\"", optarg);
	*out = optarg;
	return 0;
}

int
option_then(const char *command, struct tn_run_options *out)
{
	if (optarg[strspn(optarg, " \t\n")] == '\0')
		return wrong_usage("%s: --then needs a command: --then 'python train.py --resume'", command);
	if (out->then_count == TN_MOST_THEN)
		return wrong_usage("%s: --then may be given %d times", command, TN_MOST_THEN);
	out->then[out->then_count++] = optarg;
	return 0;
}

int
option_request(const char *command, struct tn_run_options *out)
{
	if (optarg[0] == '\0')
		return wrong_usage("%s: --request needs a file or an address: --request http://127.0.0.1:8000/health", command);
	if (out->request_count == TN_MOST_REQUESTS)
		return wrong_usage("%s: --request may be given %d times", command, TN_MOST_REQUESTS);
	out->requests[out->request_count++] = optarg;
	return 0;
}

int
check_requests(const char *command, const struct tn_run_options *options)
{
	if (options->request_count == 0)
		return options->repeat == 0 ? 0 : wrong_usage("%s: --repeat goes with --request", command);
	if (strcmp(options->steps, "auto") != 0)
		return wrong_usage("%s: --steps does not go with --request: --repeat N says how often requests are sent",
		                   command);
	if (options->then_count > 0)
		return wrong_usage("%s: --then does not go with --request", command);
	if (options->nodes > 1 || options->ranks != NULL)
		return wrong_usage("%s: --nodes and --ranks do not go with --request", command);
	return 0;
}
