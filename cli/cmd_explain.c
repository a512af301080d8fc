/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage explain: out-of-memory errors in a text, and what a snapshot knows of them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "outputs.h"
#include "tonnage/listen.h"
#include "tonnage/message.h"
#include "tonnage/run.h" /* exit statuses */

static const char help[] =
	"usage: tonnage explain [FILE|-] [--snapshot SNAPSHOT] [--json [OUT|-]]\n"
	"       tonnage explain [--json OUT] -- COMMAND [ARGUMENT ...]\n"
	"\n"
	"Finds the out-of-memory errors in a text (a pasted error, a log of any length) and says what was asked,\n"
	"what was free, the likely cause, and what to do first. Without FILE, or with -, reads standard input.\n"
	"\n"
	"  --snapshot SNAPSHOT  join it with a memory snapshot of PyTorch (plain, gzip or zstd): what held the memory,\n"
	"                       and whether the cache was in pieces; without FILE the snapshot alone is explained\n"
	"  --json [OUT]         as JSON: to OUT when the text is named, too, else to standard output\n"
	"  --help               this text\n"
	"\n"
	"With a command: runs it as it is, passes its output on, and when it has failed explains what its output\n"
	"ends with, on standard error. The exit status is the command's own.\n"
	"\n"
	"  tonnage explain error.log\n"
	"  tonnage explain error.log --snapshot snapshot.pickle\n"
	"  python train.py 2>&1 | tonnage explain\n"
	"  tonnage explain -- python train.py\n";

/* For completion alone: what --json means hangs on the other words, so read_options reads them itself. */
static const struct option long_options[] = {
	{ "snapshot", required_argument, NULL, 0 },
	{ "json", optional_argument, NULL, 0 },
	{ "help", no_argument, NULL, 0 },
	{ NULL, 0, NULL, 0 },
};

struct options {
	const char *input, *output, *snapshot; /* NULL: not named */
	bool json, help;
	char **command; /* NULL: a text is explained */
};

/* A word directly behind --json is the output if a text is named elsewhere, else the text itself: so no form of the
 * command writes over the only file that is named. */
static int
read_options(int argc, char **argv, struct options *options)
{
	const char *behind_json = NULL;
	for (int i = 1; i < argc && options->command == NULL; i++) {
		char *word = argv[i];
		if (strcmp(word, "--") == 0) {
			if (i + 1 == argc)
				return wrong_usage("explain: no command behind -- (tonnage explain --help)");
			options->command = argv + i + 1;
		} else if (strcmp(word, "--help") == 0) {
			options->help = true;
		} else if (strncmp(word, "--json", 6) == 0 && (word[6] == '\0' || word[6] == '=')) {
			options->json = true;
			if (word[6] == '=')
				options->output = word + 7;
			else if (i + 1 < argc && (argv[i + 1][0] != '-' || argv[i + 1][1] == '\0'))
				behind_json = argv[++i];
		} else if (strcmp(word, "--snapshot") == 0) {
			if (i + 1 == argc)
				return wrong_usage("explain: --snapshot wants a file (tonnage explain --help)");
			options->snapshot = argv[++i];
		} else if (strncmp(word, "--snapshot=", 11) == 0) {
			options->snapshot = word + 11;
		} else if (word[0] == '-' && word[1] != '\0') {
			return wrong_usage("explain: unknown option %s (tonnage explain --help)", word);
		} else if (options->input != NULL) {
			return wrong_usage("explain: one text at most (tonnage explain --help)");
		} else {
			options->input = word;
		}
	}
	if (options->command != NULL && (options->input != NULL || options->snapshot != NULL))
		return wrong_usage("explain: a command stands alone, without a text or a snapshot (tonnage explain --help)");
	if (options->command != NULL && options->json && behind_json == NULL && options->output == NULL)
		return wrong_usage("explain: --json wants a file where a command is run (tonnage explain --help)");
	if (behind_json != NULL && options->input == NULL && options->command == NULL)
		options->input = behind_json;
	else if (behind_json != NULL)
		options->output = behind_json;
	return 0;
}

/* An existing file that holds something other than JSON is not an output: the two names were probably exchanged. */
static bool
holds_other_things(const char *path)
{
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return false;
	int first = fgetc(file);
	fclose(file);
	return first != EOF && first != '{';
}

static int
explain(const struct options *options, FILE *in, const struct tn_snapshot *snapshot)
{
	bool to_file = options->output != NULL && strcmp(options->output, "-") != 0;
	FILE *json = options->json ? stdout : NULL;
	char *inputs[] = { (char *)(uintptr_t)(options->input != NULL ? options->input : options->snapshot),
		               (char *)(uintptr_t)options->snapshot, NULL };
	const struct output outputs[] = { { "--json", options->output }, { NULL, NULL } };
	int usage = inputs[0] != NULL ? check_outputs("explain", outputs, inputs) : 0;
	if (usage != 0)
		return usage;
	if (to_file && holds_other_things(options->output))
		return wrong_usage("explain: %s exists and holds no JSON; it is left as it is", options->output);
	if (to_file && (json = fopen(options->output, "w")) == NULL)
		return wrong_usage("explain: cannot write %s: %s", options->output, strerror(errno));
	tn_status status = tn_explain(in, snapshot, json == stdout ? NULL : stdout, json);
	if (status != TN_OK)
		say_error("%s", tn_error_text());
	if (to_file && fclose(json) != 0 && status == TN_OK) {
		say_error("cannot write %s: %s", options->output, strerror(errno));
		return TN_EXIT_OWN_FAILURE;
	}
	return status == TN_OK ? 0 : TN_EXIT_OWN_FAILURE;
}

/* The text that is named, or standard input. */
static int
explain_input(const struct options *options, const struct tn_snapshot *snapshot)
{
	if (options->input == NULL && snapshot != NULL)
		return explain(options, NULL, snapshot);
	if (options->input == NULL || strcmp(options->input, "-") == 0) {
		if (isatty(STDIN_FILENO))
			fputs("tonnage: paste the text, then press Ctrl-D\n", stderr);
		return explain(options, stdin, snapshot);
	}
	FILE *in = fopen(options->input, "r");
	if (in == NULL || fgetc(in) == EOF) {
		bool unreadable = in == NULL || ferror(in);
		int why = errno;
		if (in != NULL && unreadable)
			fclose(in);
		if (unreadable)
			return wrong_usage("explain: cannot read %s: %s", options->input, strerror(why));
	}
	rewind(in);
	int status = explain(options, in, snapshot);
	fclose(in);
	return status;
}

/* Runs the command and gives its own status. */
static int
explain_output_of(const struct options *options)
{
	int exit_status = TN_EXIT_OWN_FAILURE;
	bool to_file = options->output != NULL && strcmp(options->output, "-") != 0;
	FILE *json = options->json ? stdout : NULL;
	if (to_file && holds_other_things(options->output))
		return wrong_usage("explain: %s exists and holds no JSON; it is left as it is", options->output);
	if (to_file && (json = fopen(options->output, "we")) == NULL)
		return wrong_usage("explain: cannot write %s: %s", options->output, strerror(errno));
	tn_status status = tn_listen(options->command, json, &exit_status);
	if (status != TN_OK)
		say_error("%s", tn_error_text());
	if (to_file && fclose(json) != 0 && status == TN_OK) {
		say_error("cannot write %s: %s", options->output, strerror(errno));
		return TN_EXIT_OWN_FAILURE;
	}
	return status == TN_OK || status == TN_NOT_FOUND || status == TN_INVALID ? exit_status : TN_EXIT_OWN_FAILURE;
}

static int
cmd_explain(int argc, char **argv)
{
	struct options options = { 0 };
	int usage = read_options(argc, argv, &options);
	if (usage != 0)
		return usage;
	if (options.help)
		return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
	if (options.command != NULL)
		return explain_output_of(&options);
	struct tn_snapshot *snapshot = NULL;
	if (options.snapshot != NULL) {
		tn_status status = tn_snapshot_open(options.snapshot, NULL, &snapshot);
		if (status == TN_NO_MEMORY) {
			say_error("%s", tn_error_text());
			return TN_EXIT_OWN_FAILURE;
		}
		if (status != TN_OK)
			return wrong_usage("explain: %s", tn_error_text());
	}
	int status = explain_input(&options, snapshot);
	tn_snapshot_close(snapshot);
	return status;
}

const struct command explain_command = { "explain",   "an out-of-memory error, from a pasted text or a log",
	                                     cmd_explain, long_options,
	                                     help,        A_FILE };
