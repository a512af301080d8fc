/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_run: checks everything that can be checked before, starts, watches, reports, and leaves nothing behind.
 */
#include "tonnage/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "preload/network.h"
#include "preload/raw.h"
#include "report/gate.h"
#include "report/report.h"
#include "run/internal.h"

#define COMPILE_SECONDS 900 /* what compiling may take beside the time limit */

struct run {
	const struct tn_run_options *options;
	struct tn_install install;
	struct tn_card card;
	struct tn_folder folder;
	struct tn_ledger *ledger;
	char program[PATH_MAX];
	char **environment;
	sigset_t old_mask;
	int signals;
	struct tn_baseline *baseline; /* NULL: none is asked for */
	FILE *json; /* opened before the start, so that a full disk or a wrong path is known before */
	bool keep_files;
	const struct tn_run_caller *caller;
	struct tn_input input;
};

struct tn_run_options
tn_run_defaults(void)
{
	return (struct tn_run_options){ .gpu = "auto", .gpus = 1, .steps = "auto", .compile_seconds = -1, .tolerance = -1,
		                            .assume = 1, .messages = stderr, .output = stdout };
}

/* ---- before ---- */

tn_status
tn__check_writable(const char *path)
{
	struct stat about;
	bool existed = stat(path, &about) == 0;
	if (existed && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) { /* opening a pipe would be noticed */
		TN_RETURN_IF(access(path, W_OK) != 0, TN_IO, "%s cannot be written: %s", path, strerror(errno));
		return TN_OK;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	TN_RETURN_IF(fd < 0, TN_IO, "%s cannot be written: %s", path, strerror(errno));
	close(fd);
	if (!existed)
		unlink(path);
	return TN_OK;
}

/* What the run is held against: known to be usable before anything is started. */
static tn_status
open_baseline(struct run *run)
{
	const struct tn_run_options *options = run->options;
	if (options->write_baseline_path != NULL)
		TN_FORWARD_IF_ERROR(tn__check_writable(options->write_baseline_path));
	if (options->baseline_path == NULL)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__baseline_read(options->baseline_path, &run->baseline));
	return tn__baseline_is_of(run->baseline, run->card.figures.name, options->gpus);
}

static tn_status
check_options(struct run *run, int *exit_status)
{
	const struct tn_run_options *options = run->options;
	*exit_status = TN_EXIT_USAGE;
	TN_RETURN_IF(options->gpus < 1 || options->gpus > TN_MAX_DEVICES, TN_INVALID, "--gpus must be 1 to %d",
	             TN_MAX_DEVICES);
	TN_FORWARD_IF_ERROR(tn__card_choose(options, &run->card));
	if (options->json_path != NULL && strcmp(options->json_path, "-") != 0)
		TN_FORWARD_IF_ERROR(tn__check_writable(options->json_path));
	if (options->html_path != NULL)
		TN_FORWARD_IF_ERROR(tn__check_writable(options->html_path));
	if (options->snapshot_path != NULL)
		TN_FORWARD_IF_ERROR(tn__check_writable(options->snapshot_path));
	TN_FORWARD_IF_ERROR(open_baseline(run));
	TN_FORWARD_IF_ERROR(tn__program_find(options->arguments[0], run->program, exit_status));
	*exit_status = TN_EXIT_OWN_FAILURE;
	return tn__install_find(&run->install);
}

/* The loader splits LD_PRELOAD at spaces and colons, Python splits PYTHONPATH at colons: a link in the run folder
 * gives the same files a name without either. */
static tn_status
avoid_separators(struct run *run)
{
	char link[PATH_MAX];
	if (strpbrk(run->install.libraries, " :") == NULL && strchr(run->install.guest, ':') == NULL)
		return TN_OK;
	tn__folder_path(&run->folder, "lib", link);
	TN_RETURN_IF(strpbrk(link, " :") != NULL, TN_IO,
	             "the temporary folder's name holds a space or a colon: set TMPDIR");
	TN_RETURN_IF(symlink(run->install.libraries, link) != 0, TN_IO, "%s cannot be made: %s", link, strerror(errno));
	strcpy(run->install.libraries, link);
	return tn__folder_path(&run->folder, "lib/guest", run->install.guest) != NULL ? TN_OK : TN_IO;
}

static tn_status
prepare(struct run *run)
{
	struct tn_gpu_figures gpus[TN_MAX_DEVICES];
	char path[PATH_MAX];
	(void)tn__folder_remove_orphans();
	TN_FORWARD_IF_ERROR(tn__folder_create(&run->folder));
	TN_FORWARD_IF_ERROR(tn__folder_limit(&run->folder, run->options->scratch_bytes));
	TN_FORWARD_IF_ERROR(avoid_separators(run));
	for (int i = 0; i < run->options->gpus; i++)
		gpus[i] = run->card.figures;
	TN_FORWARD_IF_ERROR(tn_ledger_create(tn__folder_path(&run->folder, "ledger", path), gpus, run->options->gpus,
	                                     run->options->other_bytes, &run->ledger));
	if (!run->card.real && !run->options->allow_network)
		TN_RETURN_IF(tn_network_create(run->folder.path, tn__raw_pass(run->folder.path)) != TN_OK, TN_IO, "%s cannot be written: %s",
		             tn__folder_path(&run->folder, TN_NETWORK_FILE, path), strerror(errno));
	run->environment = tn__environment_make(run->options, &run->install, &run->folder, run->card.real);
	TN_RETURN_IF(run->environment == NULL, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

/* Signals that were ignored from the start (nohup, a shell's background) stay ignored. */
static void
add_unless_ignored(sigset_t *set, int signal)
{
	struct sigaction action;
	if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(set, signal);
}

/* The signals that end a run are read from a descriptor; those of children and closed pipes are only kept from
 * acting. */
static tn_status
hold_signals(struct run *run)
{
	sigset_t watched, blocked;
	sigemptyset(&watched);
	add_unless_ignored(&watched, SIGINT);
	add_unless_ignored(&watched, SIGTERM);
	add_unless_ignored(&watched, SIGHUP);
	add_unless_ignored(&watched, SIGQUIT);
	blocked = watched;
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, SIGPIPE);
	sigprocmask(SIG_BLOCK, &blocked, &run->old_mask);
	run->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	TN_RETURN_IF(run->signals < 0, TN_IO, "signals cannot be watched: %s", strerror(errno));
	return TN_OK;
}

static void
release_signals(struct run *run)
{
	const struct timespec none = { 0, 0 };
	sigset_t left;
	if (run->signals >= 0)
		close(run->signals);
	sigemptyset(&left);
	sigaddset(&left, SIGPIPE);
	sigaddset(&left, SIGCHLD);
	sigaddset(&left, SIGINT); /* a second Ctrl-C has been obeyed by then */
	sigaddset(&left, SIGTERM);
	while (sigtimedwait(&left, NULL, &none) > 0)
		;
	sigprocmask(SIG_SETMASK, &run->old_mask, NULL);
}

/* ---- after ---- */

static tn_status
copy_file(const char *from, const char *to)
{
	char buffer[1 << 16];
	FILE *in = fopen(from, "re"), *out = in != NULL ? fopen(to, "we") : NULL;
	bool good = out != NULL;
	size_t length;
	while (good && (length = fread(buffer, 1, sizeof(buffer), in)) > 0)
		good = fwrite(buffer, 1, length, out) == length;
	good = good && ferror(in) == 0;
	if (in != NULL)
		fclose(in);
	if (out != NULL && fclose(out) != 0)
		good = false;
	TN_RETURN_IF(!good, TN_IO, "%s could not be written: %s", to, strerror(errno));
	return TN_OK;
}

/* The guest says which file it left; only one inside the run folder is believed. */
static tn_status
save_snapshot(const struct run *run, struct tn_report *report)
{
	const char *wanted = run->options->snapshot_path, *made = report->snapshot_made;
	if (wanted == NULL || made == NULL || !tn__folder_owns(&run->folder, made))
		return TN_OK;
	TN_FORWARD_IF_ERROR(copy_file(made, wanted));
	report->snapshot = strdup(wanted);
	return TN_OK;
}

static tn_status
save_json(const struct run *run, const struct tn_report *report)
{
	const char *path = run->options->json_path;
	if (path == NULL)
		return TN_OK;
	if (strcmp(path, "-") == 0)
		return tn__report_json(report, run->options->output);
	FILE *out = fopen(path, "we");
	TN_RETURN_IF(out == NULL, TN_IO, "%s cannot be written: %s", path, strerror(errno));
	tn_status status = tn__report_json(report, out);
	TN_RETURN_IF(fclose(out) != 0, TN_IO, "%s could not be written: %s", path, strerror(errno));
	return status;
}

static tn_status
save_baseline(const struct run *run, struct tn_report *report)
{
	const char *path = run->options->write_baseline_path;
	bool seen = report->verdict == TN_VERDICT_FITS || report->verdict == TN_VERDICT_OVER_BUDGET ||
	            report->verdict == TN_VERDICT_OVER_BASELINE;
	if (path == NULL || !seen)
		return TN_OK;
	FILE *out = fopen(path, "we");
	TN_RETURN_IF(out == NULL, TN_IO, "%s cannot be written: %s", path, strerror(errno));
	tn_status status = tn__baseline_write(report, out);
	TN_RETURN_IF(fclose(out) != 0, TN_IO, "%s could not be written: %s", path, strerror(errno));
	report->gate.written = strdup(path);
	return status;
}

static tn_status
save_html(const struct run *run, const struct tn_report *report)
{
	const char *path = run->options->html_path;
	if (path == NULL)
		return TN_OK;
	FILE *out = fopen(path, "we");
	TN_RETURN_IF(out == NULL, TN_IO, "%s cannot be written: %s", path, strerror(errno));
	tn_status status = tn__report_page(report, out);
	TN_RETURN_IF(fclose(out) != 0, TN_IO, "%s could not be written: %s", path, strerror(errno));
	return status;
}

/* One line that says what to do: no report would make sense. */
static tn_status
explain_misuse(const struct tn_report *report)
{
	switch (report->misuse) {
	case TN_MISUSE_NO_TORCH:
		return tn__fail(TN_INVALID,
		                "this Python has no PyTorch: run with the Python of the environment that the program is used "
		                "in, or install a CUDA build of torch there (no GPU is needed)");
	case TN_MISUSE_CPU_TORCH:
		return tn__fail(TN_INVALID,
		                "this Python has a CPU-only build of PyTorch (%s): install a CUDA build of it in this "
		                "environment (no GPU is needed)", report->torch != NULL ? report->torch : "unknown");
	case TN_MISUSE_NONE:
		break;
	}
	return TN_OK;
}

/* To a caller that keeps the report. */
static tn_status
hand_over(struct run *run, struct tn_report *report)
{
	bool keep = run->caller->keeps && report->stopped != TN_STOPPED_FAILED;
	tn_status status = keep ? save_snapshot(run, report) : TN_OK;
	run->keep_files = keep && report->scratch != NULL;
	*run->caller->into = *report;
	return status;
}

static void
begin_report(const struct run *run, struct tn_report *report)
{
	tn__report_init(report);
	if (run->options->budget_bytes > 0)
		report->gate.budget = (int64_t)run->options->budget_bytes;
	report->gate.baseline = run->baseline;
	report->gate.tolerance = run->options->tolerance >= 0 ? run->options->tolerance : TN_TOLERANCE;
	report->gate.wanted = run->options->write_baseline_path;
}

/* With what the program needs in all, other causes may be the right ones: all is judged anew. */
static void
collect_with_need(struct run *run, struct tn_watch *watch, struct tn_report *report)
{
	struct tn_need need = tn__need_find(run->options, report, run->signals, &run->old_mask);
	if (need.bytes <= 0)
		return;
	tn__report_free(report);
	begin_report(run, report);
	report->need = need;
	tn__collect(run->options, &run->card, watch, report);
}

static tn_status
report_run(struct run *run, struct tn_watch *watch, int *exit_status)
{
	struct tn_report report;
	begin_report(run, &report);
	tn__collect(run->options, &run->card, watch, &report);
	if (run->caller->take == NULL && run->caller->into == NULL)
		collect_with_need(run, watch, &report);
	if (run->caller->take != NULL) {
		*exit_status = report.exit_status;
		run->caller->take(run->caller->context, &run->folder, &report);
		tn_status told = explain_misuse(&report);
		tn__report_free(&report);
		return told;
	}
	if (run->caller->into != NULL)
		return hand_over(run, &report);
	if (run->caller->look != NULL)
		run->caller->look(run->caller->context, &run->folder, &report);
	tn_status status = save_snapshot(run, &report);
	const char *scratch = report.scratch;
	tn__look_again(&(struct tn_again){ run->options, run->input }, &report);
	run->keep_files = report.scratch != NULL && report.scratch == scratch; /* another run's report tells of its own */
	if (status == TN_OK)
		status = save_baseline(run, &report);
	if (status == TN_OK)
		status = save_json(run, &report);
	if (status == TN_OK && report.misuse == TN_MISUSE_NONE)
		status = save_html(run, &report);
	*exit_status = status == TN_OK ? report.exit_status : TN_EXIT_OWN_FAILURE;
	if (status == TN_OK && report.misuse != TN_MISUSE_NONE)
		status = explain_misuse(&report);
	else if (status == TN_OK && !run->options->quiet)
		(void)tn__report_text(&report, tn__style_of(run->options->messages), run->options->messages);
	tn__report_free(&report);
	return status;
}

static tn_status
judge_start(const struct run *run, const struct tn_watch *watch, int *exit_status)
{
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_RETURN_IF(watch->keeper_lost, TN_STATE,
	             "the keeper process of the run was killed, so the run was ended: no verdict");
	if (watch->not_executed)
		*exit_status = watch->exec_errno == ENOENT ? TN_EXIT_NOT_FOUND : TN_EXIT_NOT_EXECUTABLE;
	TN_RETURN_IF(watch->not_executed, TN_INVALID, "program cannot be executed: %s: %s", run->program,
	             strerror(watch->exec_errno));
	return TN_OK;
}

/* ---- the run ---- */

/* The time limit of --steps auto, as the hook has it from the environment. */
static double
limit_of(const struct tn_run_options *options)
{
	return strcmp(options->steps, "auto") == 0 ? tn__limit_seconds(options) : 0;
}

static tn_status
start_and_watch(struct run *run, int *exit_status)
{
	const struct tn_run_caller *caller = run->caller;
	struct tn_start start = { run->program, run->options->arguments, run->environment, &run->folder,
		                      !run->options->allow_writes && !caller->serves,
		                      !run->card.real && !run->options->allow_network && !caller->serves, caller->serves };
	struct tn_watch watch = { .folder = &run->folder, .ledger = run->ledger, .signals = run->signals,
		                      .asked = -1, .raw_wall = -1, .install = &run->install, .real_gpu = run->card.real, .started = tn__now() };
	if (!run->options->quiet && isatty(fileno(run->options->messages)))
		watch.progress = (struct tn_progress){ .out = run->options->messages, .shared = isatty(STDOUT_FILENO) };
	watch.limit_seconds = limit_of(run->options);
	watch.compile_limit_seconds = run->options->compile_seconds >= 0 ? run->options->compile_seconds : COMPILE_SECONDS;
	if (!run->card.real && !caller->serves)
		watch.asked = tn__helper_listen(&run->folder);
	tn_status status =
		caller->forked ? tn__keeper_start_by_server(&start, caller->server, caller->alive, &watch.keeper)
					   : tn__keeper_start(&start, &run->old_mask, &watch.keeper);
	if (status == TN_OK)
		tn__watch_until_end(&watch);
	if (watch.asked >= 0)
		close(watch.asked);
	TN_FORWARD_IF_ERROR(status);
	status = judge_start(run, &watch, exit_status);
	if (status == TN_OK) {
		if (!run->card.real)
			tn__compile_cache_keep(run->options, &run->folder);
		status = report_run(run, &watch, exit_status);
	}
	tn__folder_remove(&run->folder, run->keep_files);
	tn__keeper_finish(&watch.keeper);
	tn__process_list_free(&watch.seen);
	return status;
}

tn_status
tn__run_for(const struct tn_run_options *options, const struct tn_run_caller *caller, int *exit_status)
{
	struct run *run = calloc(1, sizeof(*run));
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_RETURN_IF(run == NULL, TN_NO_MEMORY, "out of host memory");
	run->options = options;
	run->caller = caller;
	run->signals = -1;
	run->input = tn__input_of_run();
	tn_status status = check_options(run, exit_status);
	if (status == TN_OK) {
		status = hold_signals(run);
		if (status == TN_OK)
			status = prepare(run);
		if (status == TN_OK)
			status = start_and_watch(run, exit_status);
		if (run->folder.path[0] != '\0' && !run->keep_files)
			tn__folder_remove(&run->folder, false);
		if (run->ledger != NULL)
			tn_ledger_close(run->ledger);
		release_signals(run);
	}
	tn__environment_free(run->environment);
	tn__baseline_free(run->baseline);
	free(run);
	return status;
}

tn_status
tn_run(const struct tn_run_options *options, int *exit_status)
{
	return tn__run_for(options, &(struct tn_run_caller){ .take = NULL }, exit_status);
}
