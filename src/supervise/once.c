/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a program: checks everything that can be checked before, starts, watches, hands over what was seen, and leaves
 * nothing behind. What becomes of the report is the caller's.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/seconds.h"
#include "preload/network.h"
#include "preload/raw.h"
#include "verdict/gate.h"
#include "report/report.h"
#include "supervise/internal.h"

#define MOST_SPILLED (UINT64_C(1) << 42) /* where nobody said how much memory the computer has */
#define COMPILE_SECONDS 900              /* what compiling may take beside the time limit */

/* What is executed: a notebook by the program that runs its cells. */
static char *const *
arguments_of(const struct tn_once *once)
{
	if (once->commands.count > 0)
		return once->commands.items[0].words;
	return once->notebook != NULL ? once->notebook : once->options->arguments;
}

/* ---- before ---- */

/* What the run is held against: known to be usable before anything is started. */
static tn_status
open_baseline(struct tn_once *once)
{
	const struct tn_run_options *options = once->options;
	if (options->write_baseline_path != NULL)
		TN_FORWARD_IF_ERROR(tn__check_writable(options->write_baseline_path));
	if (options->baseline_path == NULL)
		return TN_OK;
	TN_FORWARD_IF_ERROR(tn__baseline_read(options->baseline_path, &once->baseline));
	return tn__baseline_is_of(once->baseline, once->card.figures.name, options->gpus);
}

static tn_status
check_options(struct tn_once *once, int *exit_status)
{
	const struct tn_run_options *options = once->options;
	*exit_status = TN_EXIT_USAGE;
	TN_RETURN_IF(options->gpus < 1 || options->gpus > TN_NODE_DEVICES, TN_INVALID, "--gpus must be 1 to %d",
	             TN_NODE_DEVICES);
	TN_FORWARD_IF_ERROR(tn__choose_ranks(options, &once->chosen));
	TN_FORWARD_IF_ERROR(tn__card_choose(options, &once->card));
	once->system = tn__system_of(options->system, options->forbid_fallback, options->host_memory_bytes,
	                             options->other_told);
	TN_RETURN_IF(options->system != TN_SYSTEM_LINUX && once->card.real, TN_INVALID,
	             "--host speaks of a virtual card: name one (tonnage gpus lists them)");
	TN_RETURN_IF(options->other_bytes + (uint64_t)once->system.display >= once->card.figures.total_bytes, TN_INVALID,
	             "the desktop and other processes cannot hold the whole card: --other SIZE says what they hold");
	TN_RETURN_IF(once->chosen.count > 0 && once->card.real, TN_INVALID,
	             "--nodes and --ranks run some ranks of a job, on a virtual card: name one (tonnage gpus lists them)");
	const char *paths[] = { options->json_path, options->html_path, options->snapshot_path };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (paths[i] != NULL)
			TN_FORWARD_IF_ERROR(tn__check_writable(paths[i]));
	TN_FORWARD_IF_ERROR(open_baseline(once));
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_FORWARD_IF_ERROR(tn__install_find(&once->install));
	*exit_status = TN_EXIT_USAGE;
	TN_FORWARD_IF_ERROR(tn__request_run_prepare(options, &once->requests));
	TN_RETURN_IF(options->several && once->card.real, TN_INVALID,
	             "several programs run on a virtual card: name one (tonnage gpus lists them), or leave ::: out");
	TN_FORWARD_IF_ERROR(tn__commands_split(options, &once->commands, exit_status));
	if (!options->several)
		TN_FORWARD_IF_ERROR(tn__notebook_command(options, &once->install, &once->notebook));
	TN_FORWARD_IF_ERROR(tn__program_find(arguments_of(once)[0], once->program, exit_status));
	*exit_status = TN_EXIT_OWN_FAILURE;
	return TN_OK;
}

/* The loader splits LD_PRELOAD at spaces and colons, Python splits PYTHONPATH at colons: a link in the run folder
 * gives the same files a name without either. */
static tn_status
avoid_separators(struct tn_once *once)
{
	char link[PATH_MAX];
	if (strpbrk(once->install.libraries, " :") == NULL && strchr(once->install.guest, ':') == NULL)
		return TN_OK;
	tn__folder_path(&once->folder, "lib", link);
	TN_RETURN_IF(strpbrk(link, " :") != NULL, TN_IO,
	             "the temporary folder's name holds a space or a colon: set TMPDIR");
	TN_RETURN_IF(symlink(once->install.libraries, link) != 0, TN_IO, "%s cannot be made: %s", link, strerror(errno));
	strcpy(once->install.libraries, link);
	return tn__folder_path(&once->folder, "lib/guest", once->install.guest) != NULL ? TN_OK : TN_IO;
}

static tn_status
prepare(struct tn_once *once)
{
	struct tn_gpu_figures gpus[TN_MAX_DEVICES];
	char path[PATH_MAX];
	(void)tn__folder_remove_orphans();
	TN_FORWARD_IF_ERROR(tn__folder_create(&once->folder));
	if (once->options->after != NULL)
		TN_FORWARD_IF_ERROR(tn__folder_inherit(&once->folder, once->options->after));
	TN_FORWARD_IF_ERROR(tn__folder_limit(&once->folder, once->options->scratch_bytes));
	TN_FORWARD_IF_ERROR(avoid_separators(once));
	if (once->requests != NULL)
		TN_FORWARD_IF_ERROR(tn__request_run_listen(once->requests, &once->folder));
	int cards = once->options->gpus * once->chosen.nodes;
	for (int i = 0; i < cards; i++)
		gpus[i] = once->card.figures;
	TN_FORWARD_IF_ERROR(tn__ledger_create(tn__folder_path(&once->folder, "ledger", path), gpus, cards,
	                                      once->options->other_bytes + (uint64_t)once->system.display, &once->ledger));
	for (int i = 0; i < cards && once->system.kind != TN_SYSTEM_LINUX && !once->system.forbidden; i++)
		once->ledger->devices[i].spill_bytes = once->system.limit != TN_NO_FIGURE ? (uint64_t)once->system.limit
		                                                                          : MOST_SPILLED;
	once->ledger->ranks_run = (uint32_t)once->chosen.count;
	once->ledger->node_cards = (uint32_t)once->options->gpus;
	once->ledger->program_count = (uint32_t)once->commands.count;
	if (!once->card.real && !once->options->allow_network)
		TN_RETURN_IF(tn__network_create(once->folder.path, tn__raw_pass(once->folder.path)) != TN_OK, TN_IO,
		             "%s cannot be written: %s", tn__folder_path(&once->folder, TN_NETWORK_FILE, path),
		             strerror(errno));
	if (once->options->after != NULL && !once->card.real && !once->options->allow_network)
		tn__network_go_on(once->folder.path, once->options->after);
	once->environment = tn__environment_make(once->options, &once->install, &once->folder, &once->chosen,
	                                         once->card.real);
	TN_RETURN_IF(once->environment == NULL, TN_NO_MEMORY, "out of host memory");
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
hold_signals(struct tn_once *once)
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
	sigprocmask(SIG_BLOCK, &blocked, &once->old_mask);
	once->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	TN_RETURN_IF(once->signals < 0, TN_IO, "signals cannot be watched: %s", strerror(errno));
	return TN_OK;
}

static void
release_signals(struct tn_once *once)
{
	const struct timespec none = { 0, 0 };
	sigset_t left;
	if (once->signals >= 0)
		close(once->signals);
	sigemptyset(&left);
	sigaddset(&left, SIGPIPE);
	sigaddset(&left, SIGCHLD);
	sigaddset(&left, SIGINT); /* a second Ctrl-C has been obeyed by then */
	sigaddset(&left, SIGTERM);
	while (sigtimedwait(&left, NULL, &none) > 0)
		;
	sigprocmask(SIG_SETMASK, &once->old_mask, NULL);
}

/* ---- after ---- */

void
tn__once_report(struct tn_once *once, const struct tn_need *need, struct tn_report *report)
{
	const struct tn_run_options *options = once->options;
	tn__report_init(report);
	report->views = &once->views;
	if (options->budget_bytes > 0)
		report->gate.budget = (int64_t)options->budget_bytes;
	report->gate.baseline = once->baseline;
	report->gate.tolerance = options->tolerance >= 0 ? options->tolerance : TN_TOLERANCE;
	report->gate.wanted = options->write_baseline_path;
	if (options->host_memory_bytes > 0)
		report->host.limit = (int64_t)options->host_memory_bytes;
	report->system = once->system;
	if (need != NULL)
		report->need = *need;
	tn__collect(options, &once->card, &once->watch, report);
}

tn_status
tn__explain_misuse(const struct tn_report *report)
{
	switch (report->misuse) {
	case TN_MISUSE_NO_TORCH:
		return tn__fail(TN_INVALID,
		                "this Python has no PyTorch: run with the Python of the environment that the program is used "
		                "in, or install a CUDA build of torch there (no GPU is needed)");
	case TN_MISUSE_CPU_TORCH:
		return tn__fail(TN_INVALID,
		                "this Python has a CPU-only build of PyTorch (%s): install a CUDA build of it in this "
		                "environment (no GPU is needed)",
		                report->torch != NULL ? report->torch : "unknown");
	case TN_MISUSE_NOTEBOOK:
		return tn__fail(TN_INVALID, "%s", report->exception != NULL ? report->exception : "the notebook cannot be run");
	case TN_MISUSE_NONE:
		break;
	}
	return TN_OK;
}

static tn_status
judge_start(const struct tn_once *once, int *exit_status)
{
	const struct tn_watch *watch = &once->watch;
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_RETURN_IF(watch->reaper_lost, TN_STATE,
	             "the reaper process of the run was killed, so the run was ended: no verdict");
	if (watch->not_executed)
		*exit_status = watch->exec_errno == ENOENT ? TN_EXIT_NOT_FOUND : TN_EXIT_NOT_EXECUTABLE;
	TN_RETURN_IF(watch->not_executed, TN_INVALID, "program cannot be executed: %s: %s", once->program,
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
start_and_watch(struct tn_once *once, int *exit_status)
{
	const struct tn_run_options *options = once->options;
	const struct tn_once_way *way = &once->way;
	struct tn_watch *watch = &once->watch;
	bool walled = !once->card.real && !options->allow_network;
	struct tn_start start = { once->program,
		                      once->commands.count > 0 ? options->arguments : arguments_of(once),
		                      once->environment,
		                      &once->folder,
		                      !options->allow_writes && !way->serves,
		                      walled && !way->serves,
		                      way->serves,
		                      once->commands.count > 0 ? &once->commands : NULL };
	*watch = (struct tn_watch){ .folder = &once->folder,
		                        .ledger = once->ledger,
		                        .signals = once->signals,
		                        .asked = -1,
		                        .raw_wall = -1,
		                        .install = &once->install,
		                        .real_gpu = once->card.real,
		                        .ending = { .open_decides = options->open_oom_decides },
		                        .host = { .wanted = options->host_memory_bytes > 0 },
		                        .requests = once->requests,
		                        .early = way->early != NULL ? once : NULL,
		                        .tells = way->tells,
		                        .news = way->news,
		                        .started = tn__now() };
	if (!options->quiet && isatty(fileno(options->messages)))
		watch->progress = (struct tn_progress){ .out = options->messages, .shared = isatty(STDOUT_FILENO) };
	watch->limit_seconds = limit_of(options);
	watch->compile_limit_seconds = options->compile_seconds >= 0 ? options->compile_seconds : COMPILE_SECONDS;
	if (!once->card.real && !way->serves)
		watch->asked = tn__folder_listen(&once->folder, "cudnn");
	struct tn_bytecode bytecode;
	tn__bytecode_start(&bytecode, once->program, &once->install);
	tn_status status = way->forked ? tn__reaper_start_by_server(&start, way->server, way->alive, &watch->reaper)
	                               : tn__reaper_start(&start, &once->old_mask, &watch->reaper);
	if (status == TN_OK && once->requests != NULL)
		tn__request_run_start(once->requests, watch, options);
	if (status == TN_OK)
		tn__watch_until_end(watch);
	tn__bytecode_finish(&bytecode);
	if (watch->asked >= 0)
		close(watch->asked);
	TN_FORWARD_IF_ERROR(status);
	status = judge_start(once, exit_status);
	if (status == TN_OK) {
		if (!once->card.real)
			tn__compile_cache_keep(options, &once->folder);
		status = way->ended(way->context, once, exit_status);
		tn__views_close(&once->views);
	}
	tn__folder_remove(&once->folder, once->keep_files);
	tn__reaper_finish(&watch->reaper);
	tn__process_list_free(&watch->seen);
	tn__endings_free(&watch->endings);
	tn__host_forget(&watch->host);
	return status;
}

/* What whoever started this command asks of each of its runs: to serve, or to have the program forked. */
static struct tn_once_way
way_of_environment(const struct tn_run_options *options, struct tn_once_way way)
{
	int lent = tn__server_lent();
	if (options->host_memory_bytes > 0)
		lent = -1; /* pages that are shared with a server would count half */
	way.serves |= getenv(TN_FORKS_VARIABLE) != NULL;
	if (lent >= 0 && !way.forked && !way.serves) {
		way.forked = true;
		way.server = lent;
		way.alive = -1;
	}
	return way;
}

tn_status
tn__run_once(const struct tn_run_options *options, const struct tn_once_way *way, int *exit_status)
{
	struct tn_once *once = calloc(1, sizeof(*once));
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_RETURN_IF(once == NULL, TN_NO_MEMORY, "out of host memory");
	once->options = options;
	once->way = way_of_environment(options, *way);
	once->signals = -1;
	tn_status status = check_options(once, exit_status);
	if (status == TN_OK) {
		status = hold_signals(once);
		if (status == TN_OK)
			status = prepare(once);
		if (status == TN_OK)
			status = start_and_watch(once, exit_status);
		if (once->folder.path[0] != '\0' && !once->keep_files)
			tn__folder_remove(&once->folder, false);
		if (once->ledger != NULL)
			tn__ledger_close(once->ledger);
		release_signals(once);
	}
	tn__request_run_free(once->requests);
	tn__notebook_free(once->notebook);
	tn__commands_free(&once->commands);
	tn__environment_free(once->environment);
	tn__baseline_free(once->baseline);
	free(once);
	return status;
}
