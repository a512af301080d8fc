/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage report: what held the memory, from a snapshot or the JSON of a run.
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "outputs.h"
#include "tonnage/report.h"
#include "tonnage/run.h" /* exit statuses */

static const char help[] =
	"usage: tonnage report [OPTIONS] SNAPSHOT|RUN.json\n"
	"\n"
	"Says what held the memory, from a snapshot of PyTorch's allocator (plain, gzip or zstd) or from what\n"
	"tonnage run --json wrote.\n"
	"\n"
	"  --at MOMENT      peak, oom, end, or seconds after the first event (default: oom when the trace ends\n"
	"                   with one, else peak)\n"
	"  --device N       of this GPU (default: the one that ran out of memory, else the fullest)\n"
	"  --top N          list the N largest holders\n"
	"  --diff OTHER     say what grew or shrank since OTHER, a snapshot or the JSON of a run\n"
	"  --text           the report for a person; the default unless another format goes to stdout\n"
	"  --json FILE      write the report as JSON (- is stdout, here and below)\n"
	"  --html FILE      write it as a page that needs nothing but a browser\n"
	"  --folded FILE    write what was alive as folded stacks, for flame graphs\n"
	"  --csv FILE       write every block of the trace as a table\n"
	"  --perfetto FILE  write a trace for ui.perfetto.dev\n"
	"  --markdown FILE  write it as Markdown, for the summary of a CI job or a comment\n"
	"  --github FILE    write annotations of the lines concerned, as commands of a GitHub workflow\n"
	"  --codequality FILE  write them as a code quality report of GitLab\n"
	"  --redact         show file names instead of paths, for sharing\n"
	"  --help           this text\n"
	"\n"
	"Ends with 0, 2 wrong usage or an input that cannot be read, 125 a failure of tonnage itself.\n";

enum {
	AT = 1,
	DEVICE,
	TOP,
	DIFF,
	TEXT,
	JSON,
	HTML,
	FOLDED,
	CSV,
	PERFETTO,
	MARKDOWN,
	GITHUB,
	CODEQUALITY,
	REDACT,
	HELP
};

static const struct option long_options[] = {
	{ "at", required_argument, NULL, AT },
	{ "device", required_argument, NULL, DEVICE },
	{ "top", required_argument, NULL, TOP },
	{ "diff", required_argument, NULL, DIFF },
	{ "text", no_argument, NULL, TEXT },
	{ "json", required_argument, NULL, JSON },
	{ "html", required_argument, NULL, HTML },
	{ "folded", required_argument, NULL, FOLDED },
	{ "csv", required_argument, NULL, CSV },
	{ "perfetto", required_argument, NULL, PERFETTO },
	{ "markdown", required_argument, NULL, MARKDOWN },
	{ "github", required_argument, NULL, GITHUB },
	{ "codequality", required_argument, NULL, CODEQUALITY },
	{ "redact", no_argument, NULL, REDACT },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

/* Whole numbers up to 100,000,000; -1 for anything else. */
static long
number(const char *text)
{
	long value = 0;
	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || value > 10000000)
			return -1;
		value = value * 10 + (*text - '0');
	}
	return value;
}

static int
take_number(int option, struct tn_report_options *out)
{
	long value = number(optarg);
	if (value < 0 || (option == TOP && value == 0))
		return wrong_usage("--%s is a number of 0 or more, not \"%s\"", option == TOP ? "top" : "device", optarg);
	if (option == TOP)
		out->top = (size_t)value;
	else
		out->device = (int)value;
	return 0;
}

static int
take_option(int option, char **argv, struct tn_report_options *out, bool *text)
{
	const char **const paths[HELP + 1] = {
		[AT] = &out->at,
		[DIFF] = &out->other_path,
		[JSON] = &out->json_path,
		[HTML] = &out->html_path,
		[FOLDED] = &out->folded_path,
		[CSV] = &out->csv_path,
		[PERFETTO] = &out->perfetto_path,
		[MARKDOWN] = &out->markdown_path,
		[GITHUB] = &out->github_path,
		[CODEQUALITY] = &out->codequality_path,
	};
	if (option == DEVICE || option == TOP)
		return take_number(option, out);
	if (option == TEXT)
		*text = true;
	else if (option == REDACT)
		out->redact = true;
	else if (option == ':')
		return wrong_usage("report: %s needs a value (tonnage report --help)", argv[optind - 1]);
	else if (option > 0 && option < HELP && paths[option] != NULL)
		*paths[option] = optarg;
	else
		return wrong_usage("report: unknown option %s (tonnage report --help)", argv[optind - 1]);
	return 0;
}

/* Formats of the options that go to stdout. */
static int
count_on_stdout(const struct tn_report_options *options)
{
	const char *const paths[] = { options->json_path,   options->html_path,       options->folded_path,
		                          options->csv_path,    options->perfetto_path,   options->markdown_path,
		                          options->github_path, options->codequality_path };
	int count = 0;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		count += paths[i] != NULL && strcmp(paths[i], "-") == 0;
	return count;
}

static int
finish(tn_status status)
{
	if (status == TN_OK)
		return 0;
	say_error("%s", tn_error_text());
	return status == TN_STATE || status == TN_NO_MEMORY ? TN_EXIT_OWN_FAILURE : TN_EXIT_USAGE;
}

static int
cmd_report(int argc, char **argv)
{
	struct tn_report_options options = tn_report_defaults();
	bool text = false;
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option == HELP)
			return fputs(help, stdout) == EOF || fflush(stdout) != 0 ? TN_EXIT_OWN_FAILURE : 0;
		int wrong = take_option(option, argv, &options, &text);
		if (wrong != 0)
			return wrong;
	}
	if (argc - optind != 1)
		return wrong_usage("report: give one snapshot, or the JSON of a run: tonnage report snapshot.pickle");
	if (count_on_stdout(&options) + text > 1)
		return wrong_usage("report: only one format can go to stdout");
	options.path = argv[optind];
	const struct output outputs[] = { { "--json", options.json_path },
		                              { "--html", options.html_path },
		                              { "--folded", options.folded_path },
		                              { "--csv", options.csv_path },
		                              { "--perfetto", options.perfetto_path },
		                              { "--markdown", options.markdown_path },
		                              { "--github", options.github_path },
		                              { "--codequality", options.codequality_path },
		                              { NULL, NULL } };
	char *inputs[] = { argv[optind], (char *)(uintptr_t)options.other_path, NULL };
	int usage = check_outputs("report", outputs, inputs);
	if (usage != 0)
		return usage;
	options.text = text || count_on_stdout(&options) == 0;
	return finish(tn_report_write(&options));
}

const struct command report_command = { "report",   "a memory snapshot, or the JSON of a run: what held the memory",
	                                    cmd_report, long_options,
	                                    help,       A_FILE };
