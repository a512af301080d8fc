/* SPDX-License-Identifier: Apache-2.0
 *
 * What the searches of `fix` and `fit` share.
 */
#include "search/search.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/figure.h"
#include "base/plain.h"
#include "trials/trial.h"

tn_status
tn__search_card(const struct tn_search_options *options, const char *gpu, struct tn_search_card *out, int *exit_status)
{
	struct tn_card card;
	struct tn_install install;
	char program[PATH_MAX];
	*exit_status = TN_EXIT_USAGE;
	*out = (struct tn_search_card){ .options = options->run };
	out->options.gpu = strcmp(gpu, "real") == 0 ? "auto" : gpu; /* a virtual card like the machine's own */
	out->options.quiet = true;
	out->options.allow_writes = false;
	out->options.json_path = out->options.snapshot_path = out->options.html_path = NULL;
	TN_RETURN_IF(options->run.gpus < 1 || options->run.gpus > TN_NODE_DEVICES, TN_INVALID, "--gpus must be 1 to %d",
	             TN_NODE_DEVICES);
	TN_FORWARD_IF_ERROR(tn__card_choose(&out->options, &card));
	const char *paths[] = { options->run.json_path, options->run.html_path };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (paths[i] != NULL)
			TN_FORWARD_IF_ERROR(tn__check_writable(paths[i]));
	TN_FORWARD_IF_ERROR(tn__check_commands(&options->run, exit_status));
	if (!tn__is_notebook(options->run.arguments[0])) /* each trial finds its Python */
		TN_FORWARD_IF_ERROR(tn__program_find(options->run.arguments[0], program, exit_status));
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_FORWARD_IF_ERROR(tn__install_find(&install));
	out->figures = card.figures;
	out->total = card.figures.total_bytes;
	out->hidden = (int64_t)(options->margin * (double)out->total);
	*exit_status = TN_EXIT_USAGE;
	TN_RETURN_IF(options->run.other_bytes + (uint64_t)out->hidden >= out->total, TN_INVALID,
	             "--margin and --other leave nothing of the card");
	return TN_OK;
}

tn_status
tn__search_cards(const struct tn_search_options *options, struct tn_search_card *cards, char **asked, int *count,
                 int *exit_status)
{
	char *names = strdup(options->run.gpu), *rest = names, *name;
	tn_status status = names != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	*count = 0;
	*exit_status = TN_EXIT_USAGE;
	while (status == TN_OK && (name = strsep(&rest, ",")) != NULL) {
		if (name[0] == '\0')
			continue;
		if (*count == TN_SEARCH_CARDS) {
			status = tn__fail(TN_INVALID, "--gpu takes %d cards at most", TN_SEARCH_CARDS);
			break;
		}
		asked[*count] = strdup(name);
		status = tn__search_card(options, asked[*count], &cards[*count], exit_status);
		++*count;
	}
	free(names);
	if (status == TN_OK && *count == 0)
		status = tn__fail(TN_INVALID, "--gpu names no card");
	return status;
}

/* ---- other machines ---- */

#define RESULTS "tonnage-results"

/* Sets `store` and `engine` of the trials as the options ask for; both stay in *out. */
static tn_status
take_place(const struct tn_search_options *options, struct tn_search_place *out, struct tn_trials *trials,
           int *exit_status)
{
	char here[PATH_MAX];
	bool engine = options->engine != NULL;
	const char *folder = options->results != NULL ? options->results : engine ? RESULTS : NULL;
	*exit_status = TN_EXIT_USAGE;
	*out = (struct tn_search_place){ .engine.dry_run = options->dry_run };
	TN_RETURN_IF(options->dry_run && !engine, TN_INVALID, "--dry-run needs --engine slurm");
	if (folder == NULL)
		return TN_OK;
	TN_RETURN_IF(engine && (strcmp(options->run.gpu, "auto") == 0 || strcmp(options->run.gpu, "real") == 0), TN_INVALID,
	             "--engine needs --gpu NAME: this machine's card may be another one there");
	TN_RETURN_IF(options->run.then_count > 0 || options->run.request_count > 0, TN_INVALID,
	             "--engine and --results are for one command: leave --then and --request out");
	TN_FORWARD_IF_ERROR(options->dry_run ? tn__store_name(folder, options->run.arguments, &out->store)
	                                     : tn__store_open(folder, options->run.arguments, &out->store));
	trials->store = &out->store;
	if (!engine)
		return TN_OK;
	out->engine.arguments = options->run.arguments;
	out->engine.wanted_jobs = options->jobs;
	out->engine.output = options->run.output;
	out->engine.store = &out->store;
	TN_RETURN_IF(getcwd(here, sizeof(here)) == NULL, TN_IO, "this folder has no name");
	tn_status status = tn__trial_engine(options->engine, &out->engine);
	if (status == TN_NOT_FOUND)
		*exit_status = TN_EXIT_NOT_FOUND;
	TN_FORWARD_IF_ERROR(status);
	snprintf(out->engine.directory, sizeof(out->engine.directory), "%s", here);
	trials->engine = &out->engine;
	return TN_OK;
}

void
tn__search_place_say(const struct tn_search_options *options, const struct tn_trials *trials, int *exit_status)
{
	char lost[80] = "";
	if (trials->given_up > 0 && exit_status != NULL && trials->interrupted_by == 0)
		*exit_status = TN_EXIT_OWN_FAILURE;
	if (trials->given_up > 0)
		tn__tell(options->run.messages,
		         "%d trials could not be made, since their workers always died: %s/log says more", trials->given_up,
		         trials->store->folder);
	if (trials->store == NULL || options->run.quiet || options->dry_run)
		return;
	if (trials->lost > 0)
		snprintf(lost, sizeof(lost), ", %d made again because a worker was lost", trials->lost);
	tn__tell(options->run.messages, "%s: %d trials made, %d found in %s%s",
	         trials->engine != NULL ? trials->engine->kind->name : "results", trials->ended_count - trials->reused,
	         trials->reused, trials->store->folder, lost);
	if (trials->interrupted_by != 0)
		tn__tell(options->run.messages, "the same command goes on from there");
}

/* True after a dry run, which is good, and is told where there was nothing to hand in. */
static bool
was_dry(const struct tn_search_options *options, const struct tn_trials *trials, int *exit_status)
{
	if (!options->dry_run)
		return false;
	if (trials->count == 0)
		tn__tell(options->run.messages, "nothing would be handed in: %d trials were found in %s", trials->reused,
		         trials->store->folder);
	*exit_status = 0;
	return true;
}

struct tn_trials
tn__search_trials(const struct tn_search_options *options, void *context, struct tn_trial *(*next)(void *context),
                  void (*ended)(void *context, struct tn_trial *trial), void (*tick)(void *context))
{
	return (struct tn_trials){ .wanted_jobs = options->jobs,
		                       .context = context,
		                       .next = next,
		                       .ended = ended,
		                       .tick = tick,
		                       .forks = !options->fresh };
}

tn_status
tn__search_make_trials(const struct tn_search_options *options, struct tn_search_place *place, struct tn_trials *trials,
                       struct tn_progress_line *line, bool *dry, int *exit_status)
{
	TN_FORWARD_IF_ERROR(take_place(options, place, trials, exit_status));
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_FORWARD_IF_ERROR(tn__trials_open(trials));
	if (trials->store == NULL) /* results are of a program that reads no other input elsewhere, or later */
		trials->input = tn__input_keep();
	tn_status status = tn__trials_run(trials);
	tn__progress_line_erase(line);
	tn__trials_close(trials);
	if (trials->input > 0)
		close(trials->input);
	*exit_status = TN_EXIT_OWN_FAILURE;
	*dry = status == TN_OK && was_dry(options, trials, exit_status);
	return status;
}

/* "40 s", "3 min", "2.5 h" */
static const char *
time_words(double seconds, char *words)
{
	if (seconds < 120)
		snprintf(words, 32, "%.0f s", seconds);
	else if (seconds < 7200)
		snprintf(words, 32, "%.0f min", seconds / 60);
	else
		snprintf(words, 32, "%.1f h", seconds / 3600);
	return words;
}

#define WORTH_A_RATE 10 /* trials */

const char *
tn__search_progress(const struct tn_trials *trials, int most, char words[200])
{
	char left[32], all[32] = "", rate[64];
	double seconds = tn__trials_seconds(trials);
	int made = trials->ended_count - trials->reused;
	if (most > 0)
		snprintf(all, sizeof(all), " of at most %d", most);
	if (made >= WORTH_A_RATE && seconds > 0 && most > 0)
		snprintf(rate, sizeof(rate), "%.1f/s, at most %s left", made / seconds,
		         time_words((most - trials->ended_count) * seconds / made, left));
	else
		time_words(seconds, rate);
	snprintf(words, 200, "%d%s trials, %d run, %s%s%s", trials->ended_count, all, trials->away + trials->running_count,
	         rate, trials->engine != NULL ? "; " : "", trials->engine != NULL ? trials->engine->words : "");
	return words;
}

struct tn_run_options
tn__search_trial_options(const struct tn_search_card *card, bool never_full)
{
	struct tn_run_options options = card->options;
	if (never_full)
		options.memory_bytes = TN_UNLIMITED_CARD;
	else
		options.other_bytes += (uint64_t)card->hidden;
	return options;
}

char *
tn__search_batch_change(int batch)
{
	char value[16];
	snprintf(value, sizeof(value), "%d", batch);
	return tn__change_part("batch", value);
}

void
tn__search_plan(int wanted, int largest, int *micro_batch, int *steps)
{
	*micro_batch = *steps = 0;
	if (wanted <= 0 || largest <= 0)
		return;
	*micro_batch = wanted < largest ? wanted : largest;
	while (wanted % *micro_batch != 0)
		--*micro_batch;
	*steps = wanted / *micro_batch;
}

const char *
tn__search_failure(const struct tn_trial *trial, struct tn_progress_line *line, char **made, int *exit_status)
{
	const struct tn_outcome *outcome = &trial->outcome;
	const struct tn_report *report = tn__trial_report(trial);
	if (trial->end != TN_TRIAL_DONE) {
		*exit_status = outcome->exit_status != 0 ? outcome->exit_status : TN_EXIT_OWN_FAILURE;
		return outcome->error != NULL ? outcome->error : "the program took too much of the computer's own memory";
	}
	if (report->verdict == TN_VERDICT_FAILED) {
		tn__progress_line_erase(line);
		if (trial->words != NULL)
			fputs(trial->words, stderr); /* the program's own */
		*exit_status = report->exit_status;
		return "the program fails, and not for lack of memory";
	}
	if (report->verdict == TN_VERDICT_UNDECIDED) {
		*made = tn__trial_doubt(trial);
		*exit_status = TN_EXIT_UNDECIDED;
		return *made != NULL ? *made : "undecided";
	}
	return NULL;
}

char *
tn__search_card_options(const struct tn_run_options *options)
{
	char *text = NULL, bytes[32];
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	if (strcmp(options->gpu, "auto") != 0)
		fprintf(out, "--gpu %s ", options->gpu);
	if (options->gpus != 1)
		fprintf(out, "--gpus %d ", options->gpus);
	if (options->memory_bytes != 0)
		fprintf(out, "--memory %s ", tn__typed_bytes(options->memory_bytes, bytes));
	if (options->other_bytes != 0)
		fprintf(out, "--other %s ", tn__typed_bytes(options->other_bytes, bytes));
	if (options->host_memory_bytes != 0)
		fprintf(out, "--host-memory %s ", tn__typed_bytes(options->host_memory_bytes, bytes));
	if (options->inputs != NULL && strcmp(options->inputs, "as_is") != 0)
		fprintf(out, "--inputs %s ", options->inputs);
	char *program = tn__program_options(options);
	fputs(program != NULL ? program : "", out);
	free(program);
	for (int i = 0; i < options->then_count; i++)
		tn__program_put_option(out, "--then", options->then[i]);
	for (int i = 0; i < options->request_count; i++)
		tn__program_put_option(out, "--request", options->requests[i]);
	if (options->repeat != 0)
		fprintf(out, "--repeat %d ", options->repeat);
	fclose(out);
	return text;
}

/* ---- a line on a terminal ---- */

#define LINE 100

struct tn_progress_line
tn__progress_line_of(const struct tn_run_options *options)
{
	bool shown = !options->quiet && isatty(fileno(options->messages));
	return (struct tn_progress_line){ .out = shown ? options->messages : NULL };
}

void
tn__progress_line_show(struct tn_progress_line *line, const char *format, ...)
{
	char text[512];
	va_list arguments;
	if (line->out == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(line->out, "\r\033[Ktonnage: %.*s", LINE - 20, text);
	fflush(line->out);
	line->shown = true;
}

void
tn__progress_line_say(struct tn_progress_line *line, const char *format, ...)
{
	va_list arguments;
	if (line->out == NULL)
		return;
	tn__progress_line_erase(line);
	fputs("tonnage: ", line->out);
	va_start(arguments, format);
	vfprintf(line->out, format, arguments);
	va_end(arguments);
	fputc('\n', line->out);
	fflush(line->out);
}

void
tn__progress_line_erase(struct tn_progress_line *line)
{
	if (line->out == NULL || !line->shown)
		return;
	fputs("\r\033[K", line->out);
	fflush(line->out);
	line->shown = false;
}
