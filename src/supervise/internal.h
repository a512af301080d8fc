/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the supervisor share. Grouped by the file that owns it.
 */
#ifndef TN_SUPERVISE_INTERNAL_H
#define TN_SUPERVISE_INTERNAL_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "analyze/view.h"
#include "device/ledger.h"
#include "report/document.h"
#include "supervise/early.h"
#include "supervise/folder.h"
#include "supervise/process.h"
#include "supervise/request_run.h"
#include "tonnage/run.h"
#include "verdict/judge.h"

/* ---- install.c: where our own files are ---- */

struct tn_install {
	char libraries[PATH_MAX]; /* holds libtonnage-preload.so */
	char guest[PATH_MAX];     /* holds sitecustomize.py */
};
/* TN_NOT_FOUND when the installation is incomplete. */
tn_status tn__install_find(struct tn_install *out);

/* ---- card.c: which card the program sees ---- */

struct tn_card {
	struct tn_gpu_figures figures;
	bool real; /* --gpu real */
	char total_source[160], context_source[160];
	double context_share; /* the context is known to within this share of itself */
};
/* From the options: catalogue, this machine's GPU, --memory. TN_NOT_FOUND or TN_INVALID with words for a person. */
tn_status tn__card_choose(const struct tn_run_options *options, struct tn_card *out);

/* ---- program.c: what is started ---- */

/* The file that execve will get, in a buffer of PATH_MAX. On failure *exit_status is 127 (TN_NOT_FOUND) or 126. */
tn_status tn__program_find(const char *name, char path[PATH_MAX], int *exit_status);
/* The command line as a person would type it; the caller frees; NULL without memory. */
char *tn__program_quote(char *const *arguments);
/* Writes `OPTION VALUE ` so. */
void tn__program_put_option(FILE *out, const char *option, const char *value);
/* The options without which the program would not be the same one on another card ("--data shape --python /usr/bin/python3 "), as a person would
 * type them; the caller frees; NULL without memory. */
char *tn__program_options(const struct tn_run_options *options);

/* ---- then.c: the commands that follow ---- */

struct tn_command {
	char *text, **words; /* the words end with NULL; a text that is none of plain words is the shell's */
};
/* TN_NO_MEMORY; nothing is held then. Release with tn__command_free. */
tn_status tn__command_words(const char *text, struct tn_command *out);
void tn__command_free(struct tn_command *command);
/* Can all commands be started? Before the first one is. *exit_status is set where not. */
tn_status tn__check_commands(const struct tn_run_options *options, int *exit_status);

/* ---- programs.c: several programs at the same time ---- */

struct tn_one_command {
	char **words; /* an array of our own of the options' words, ended by NULL */
	char path[PATH_MAX];
};
struct tn_commands {
	size_t count; /* 0: there is one program */
	struct tn_one_command items[TN_LEDGER_PROGRAMS];
};
/* The commands between the words ":::". TN_INVALID with words for a person; of a program that is not there, or cannot be executed,
 * *exit_status is set as by tn__program_find. Release with tn__commands_free in any case. */
tn_status tn__commands_split(const struct tn_run_options *options, struct tn_commands *commands, int *exit_status);
void tn__commands_free(struct tn_commands *commands);

/* ---- chosen_ranks.c: which ranks of a job are run ---- */

struct tn_chosen_ranks {
	int count; /* 0: all are */
	int ranks[TN_LEDGER_RANKS];
	int nodes;                      /* how many nodes these are on */
	char text[TN_LEDGER_RANKS * 8]; /* as the program's processes get them: "0,1,7" */
};
/* From --nodes, --gpus and --ranks. TN_INVALID with words for a person. */
tn_status tn__choose_ranks(const struct tn_run_options *options, struct tn_chosen_ranks *chosen);

/* ---- environment.c ---- */

/* The program's environment; NULL without memory. Release with tn__environment_free. */
char **tn__environment_make(const struct tn_run_options *options, const struct tn_install *install,
                            const struct tn_folder *folder, const struct tn_chosen_ranks *chosen, bool real_gpu);
void tn__environment_free(char **environment);
/* The time limit of --steps auto: --seconds, else TONNAGE_SECONDS, else 120. */
double tn__limit_seconds(const struct tn_run_options *options);

/* ---- compile_cache.c: what Inductor and Triton have compiled ---- */

/* The folder of the cache that the program of these options is told of, or NULL where there is no home for it. */
const char *tn__compile_cache(const struct tn_run_options *options, char path[PATH_MAX]);
/* Moves what the program has written there out of the run's scratch folder. Called when no process of the run lives. */
void tn__compile_cache_keep(const struct tn_run_options *options, const struct tn_folder *folder);

/* ---- bytecode.c: Python's byte code of our own files ---- */

struct tn_bytecode {
	pid_t pid; /* of who compiles; 0: nobody does */
	struct timespec began;
	char mark[PATH_MAX];
};

/* Begins to compile our Python files with the program's Python, beside it, where that has not been done. Never fails. */
void tn__bytecode_start(struct tn_bytecode *bytecode, const char *program, const struct tn_install *install);
/* Ends it. */
void tn__bytecode_finish(struct tn_bytecode *bytecode);

/* ---- reaper.c: the process between supervisor and program ---- */

enum tn_news_kind {
	TN_NEWS_STARTED,
	TN_NEWS_ENDED,
	TN_NEWS_NOT_EXECUTED,
	TN_NEWS_NO_NET,
	TN_NEWS_RAW_WALL,
	TN_NEWS_COMMAND_STARTED, /* one of several */
	TN_NEWS_COMMAND_ENDED
};
struct tn_news { /* through a pipe, whole at once since it is shorter than PIPE_BUF */
	int32_t kind;
	int32_t pid;
	int32_t status; /* wait status, errno, tn_status or enum tn__raw_wall */
	int32_t
		program; /* of ENDED: 1 when it is the program itself, 0 for an orphan that the reaper reaped; of COMMAND_*: its number */
	uint64_t peak_rss_bytes;
};

struct tn_start {
	const char *path;
	char *const *arguments;
	char *const *environment;
	const struct tn_folder *folder;
	bool net;     /* forbid writing outside the run folder, where the kernel can */
	bool network; /* the run has a network wall: calls that pass libc are asked about, where the kernel can */
	bool serves;  /* the program is a fork server: processes of other runs will be below it */
	const struct tn_commands *several; /* these are started instead, by the program's process; NULL: there is one */
};
/* Starts them and waits for them, as the program's process behind its walls (programs.c). */
_Noreturn void tn__commands_run(const struct tn_start *start, const sigset_t *mask, int news);

#define TN_REAPER_NAME "tonnage-reaper" /* of the process; the guest of a fork server looks for it */

struct tn_reaper {
	pid_t pid;
	pid_t group; /* not 0: pid is somebody else's child, and the program is found by its process group */
	int life;    /* writing end: closed (or its owner dead) means the supervisor is gone */
	int news;    /* reading end */
};
/* Forks the reaper, which forks the program. The caller has blocked the signals that it handles; `mask` is what the
 * program gets instead. */
tn_status tn__reaper_start(const struct tn_start *start, const sigset_t *mask, struct tn_reaper *out);
/* The two pipes between a supervisor and its reaper; [0] is the reading end. TN_IO with words, and none is open. */
tn_status tn__reaper_pipes(int life[2], int news[2]);
/* Tells the reaper that all is done, and waits for it. */
void tn__reaper_finish(struct tn_reaper *reaper);

/* ---- reaper_by_server.c: the program's process comes from a fork server ---- */

#define TN_FORKS_VARIABLE "TONNAGE_FORKS"    /* its descriptor, in the server's environment */
#define TN_LENT_VARIABLE "TONNAGE_FORKED_BY" /* the descriptor of one that is lent, in the command's */

/* As tn__reaper_start: the server behind `server` forks the program. `alive`, when not -1, is open in the reaper as long
 * as anything of the run is left. Tells TN_STATE when the server does not do it. */
tn_status tn__reaper_start_by_server(const struct tn_start *start, int server, int alive, struct tn_reaper *out);
/* The socket of a fork server that whoever started this command lends to all of its runs, or -1. Ours start many programs so
 * (tests/forked.py): their process group is to be this command's alone. The variable is gone afterwards. */
int tn__server_lent(void);

/* ---- helper.c: the process with the real cuDNN ---- */

/* The folder of its answers; NULL when there is no home for it. */
const char *tn__helper_cache(char path[PATH_MAX]);
/* Where `tonnage fetch` keeps models without their weights, in the form of the hub's cache (fetch.c); NULL as above. */
const char *tn__fetched_store(char path[PATH_MAX]);
/* For a child of this process that works beside the run: ends with `parent`, with no signal blocked, in a group of its own, and its
 * streams lead nowhere. Ends the child where that cannot be had. */
void tn__go_to_background(pid_t parent);
/* Starts the helper, which takes the connections; its pid, or -1. */
pid_t tn__helper_start(int listening, const struct tn_install *install);

/* ---- progress.c ---- */

struct tn_progress {
	FILE *out;   /* NULL: no line */
	bool shared; /* the program writes to a terminal as well: no line once it is at work */
	bool shown;
	double last;
};
/* Rewrites the line when it is time. */
void tn__progress_show(struct tn_progress *progress, const struct tn_ledger *ledger, double seconds, bool compiling);
void tn__progress_erase(struct tn_progress *progress);

/* ---- compiling.c: the time limit waits for compilers ---- */

/* True for a process that is a compiler by its name. */
bool tn__is_compiler(pid_t pid);
/* True while the hook of a living process says that it compiles. */
bool tn__guest_compiles(const struct tn_folder *folder);

/* ---- endings.c: how processes of the run ended ---- */

struct tn_process_end {
	pid_t pid;
	int status; /* as wait(2) gives it */
};
struct tn_endings {
	struct tn_process_end *items; /* in the order in which it was learned */
	size_t count, capacity;
	off_t read; /* of the file in the run's folder */
};
/* Takes what processes of the run have written since. */
void tn__endings_read(struct tn_endings *endings, const struct tn_folder *folder);
void tn__endings_add(struct tn_endings *endings, pid_t pid, int status);
/* Asks the kernel about one that may have ended without being waited for. */
void tn__endings_look(struct tn_endings *endings, pid_t pid);
bool tn__endings_find(const struct tn_endings *endings, pid_t pid, int *status);
void tn__endings_free(struct tn_endings *endings);

/* ---- host_memory.c: what the run holds of the computer's memory ---- */

enum tn_host_state {
	TN_HOST_GONE,
	TN_HOST_ENDING, /* it has no memory of its own any more, and its pages are being given back */
	TN_HOST_THERE
};
struct tn_host_known { /* a process */
	pid_t pid;
	enum tn_host_state state; /* at the last look */
	double ending;            /* since when; 0: it is not */
	bool walked;
	int64_t now;          /* what is resident of anonymous memory */
	int64_t anonymous;    /* its part of it when they were walked, */
	int64_t resident;     /* and all that was resident then */
	int64_t file, shared; /* likewise its parts */
	int64_t highest;      /* its part of anonymous memory since a process came or went */
};
struct tn_host_watch {
	bool wanted;
	struct tn_host_known *known;
	size_t known_count, known_capacity, walked_count;
	double walk,
		walk_if_changed; /* when all pages are walked again, at the earliest; and where a process has come or gone */
	int64_t highest,
		highest_shared;            /* were each at its highest at once; of shared memory since a process came or went */
	double next;                   /* when it is looked again, at the earliest */
	int64_t peak;                  /* 0: nothing was seen yet */
	struct tn_host_moment at_peak; /* whose processes are of no kind yet */
};
struct tn_watch;
/* Looks, where it is wanted and time. `list` is of the live processes of the run; helper is none of the program's. */
void tn__host_look(struct tn_watch *watch, const struct tn_process_list *list, pid_t helper);
void tn__host_forget(struct tn_host_watch *host);
/* What was seen, with processes told apart. After the guests'. */
void tn__host_collect(const struct tn_watch *watch, struct tn_report *report);

/* ---- watch.c: while the program runs ---- */

struct tn_command_end { /* of one of several programs */
	pid_t pid;
	bool ended;
	int wait_status;
};

struct tn_watch {
	struct tn_folder *folder;
	struct tn_ledger *ledger;
	struct tn_reaper reaper;
	struct tn_progress progress;
	bool real_gpu;
	int signals; /* signalfd */
	int asked;   /* the helper's listening socket; -1: none */
	const struct tn_install *install;
	double started;
	double limit_seconds;         /* with --steps auto: after torch was imported, compiling not counted; 0: none */
	double compile_limit_seconds; /* what of compiling is not counted */
	/* the result */
	pid_t program;
	struct tn_ending ending;
	bool compiling;          /* now, or when it ended */
	double compiled_seconds; /* that the limit has waited for */
	bool reaper_lost;
	bool not_executed; /* execve failed with exec_errno */
	int exec_errno;
	bool no_sandbox;
	int raw_wall; /* enum tn__raw_wall; -1: the program was put behind no wall */
	enum tn_misuse misuse;
	uint64_t peak_rss_bytes;
	struct tn_host_watch host;
	uint64_t real_device_peak; /* --gpu real: sampled, 0 when unknown */
	double seconds;
	struct tn_process_list seen;     /* every process of the run that was met */
	struct tn_endings endings;       /* until it was ended from here */
	struct tn_request_run *requests; /* requests that are sent to it; NULL: none */
	struct tn_command_end commands[TN_LEDGER_PROGRAMS];
	struct tn_once *early;           /* told once the hook has written what it has seen; NULL: nobody asks */
	struct tn_late_news *tells;      /* where the step is told once memory has settled; NULL: nowhere */
	const struct tn_late_news *news; /* that the hook waits for; NULL: it does not */
};
/* What a program's starter says of one of several (programs.c). */
void tn__commands_take_news(struct tn_watch *watch, const struct tn_news *news);
/* Runs until the program and all its descendants are gone. */
void tn__watch_until_end(struct tn_watch *watch);

/* ---- notebook.c: a notebook as the program ---- */

/* True for the name of a notebook. */
bool tn__is_notebook(const char *name);
/* The command that runs the cells of options->arguments[0], where that is a notebook; else *out is NULL. TN_NOT_FOUND: there is no
 * Python for it. */
tn_status tn__notebook_command(const struct tn_run_options *options, const struct tn_install *install, char ***out);
void tn__notebook_free(char **words);
/* Takes over what kept a notebook from being run. */
void tn__notebook_collect(const struct tn_folder *folder, struct tn_report *report);

/* ---- guest.c: what the guest hooks wrote ---- */

/* PyTorch that cannot be used for a run, as the guests' files say at this moment; *settled is set once a usable
 * one was seen, so that asking can end. */
enum tn_misuse tn__guest_misuse(const struct tn_folder *folder, bool *settled);
struct tn_guest_record { /* a snapshot of PyTorch's allocator, as the guest names it */
	char *path;          /* NULL: none */
	int device;          /* PyTorch's number */
};
struct tn_guest_news { /* what else the guests know */
	int count;
	int64_t out_pid;    /* the process that the report's out-of-memory is of; 0: none */
	bool refused_guest; /* a guest watched the process that the card refused memory last */
	int sharers;        /* processes whose allocators held memory of the peak's device */
	int64_t peak_bytes; /* what the process of `peak` held at the device's peak, by the ledger; 0: unknown */
	struct tn_guest_record peak, oom;
};
/* Fills the report and the guests' part of the ending from all guests' files. refused_pid is the process that the card
 * refused memory last, peak_device the device that the report is about. Release *news with tn__guest_news_free. */
void tn__guest_collect(const struct tn_folder *folder, const struct tn_ledger *ledger, pid_t refused_pid,
                       int peak_device, struct tn_report *report, struct tn_ending *ending, struct tn_guest_news *news);
void tn__guest_news_free(struct tn_guest_news *news);

/* ---- detail.c ---- */

/* Adds to the moments of the report, whose split is known, what the allocator's records say of them. Where they cannot
 * be joined the moment stays as it is, and a finding says why. */
void tn__detail_collect(const struct tn_folder *folder, const struct tn_guest_news *news, struct tn_report *report);

/* ---- ranks.c ---- */

struct tn_rank_watch {
	double since;     /* when ranks began to wait as they do */
	uint64_t numbers; /* changes when any of them goes on */
};
/* The ledger's row of a process; NULL: it is no rank. */
static inline const struct tn_ledger_rank *
tn__rank_row(const struct tn_ledger *ledger, int64_t pid)
{
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++)
		if (ledger->ranks[i].pid == pid)
			return &ledger->ranks[i];
	return NULL;
}

/* Learns which ranks have ended, and how. */
void tn__ranks_look(const struct tn_ledger *ledger, const struct tn_folder *folder, struct tn_endings *endings);
/* True when ranks wait for something that will not come. Call it a few times a second, after tn__ranks_look. */
bool tn__ranks_hang(const struct tn_ledger *ledger, const struct tn_endings *endings, struct tn_rank_watch *watch,
                    double now);
/* Who waited for whom, when that ended the run. */
void tn__ranks_collect_hang(const struct tn_ledger *ledger, const struct tn_endings *endings, struct tn_report *report);
/* Of a job of which not all ranks are run, which of those that are the others are like, in report->job. `ranks` stand by rank. */
void tn__collect_job(const struct tn_ledger *ledger, struct tn_report *report);
/* Of a program that is no rank the card that refused it last is the one that ran out. */
void tn__mark_refusing_card(const struct tn_ledger *ledger, struct tn_report *report);
/* Adds a finding of what ranks hold of other ranks' cards; after the verdict, which it may be the reason of. out_pid: the
 * process that the out-of-memory is of. */
void tn__ranks_find_strangers(const struct tn_ledger *ledger, int64_t out_pid, struct tn_report *report);
/* Adds a finding where the rank that ran out of memory works on a card that others work on, too. Arguments and order as above. */
void tn__ranks_find_same_card(int64_t out_pid, struct tn_report *report);
/* Adds a finding where a program on several cards fills one of them and would fit if it were spread evenly. After the verdict,
 * with what the program needs of each card (report->need). */
void tn__find_uneven_cards(struct tn_report *report);
/* What each rank that the guests told of, and each card, held; and the rank that failed first. */
void tn__ranks_collect(const struct tn_watch *watch, const struct tn_guest_news *news, struct tn_report *report);

/* ---- programs.c, once they have ended ---- */

/* Makes a row for each of several programs; before the guests'. */
void tn__commands_begin(const struct tn_run_options *options, const struct tn_watch *watch, struct tn_report *report);
/* What each held at the peak of a device, and as the device that refused one of them was full (NULL: none). After the details. */
void tn__commands_collect(const struct tn_watch *watch, int device, const struct tn_ledger_device *refusing,
                          struct tn_report *report);

/* ---- network.c ---- */

/* Adds what was held back from the network. Call when no process of the run is left. */
void tn__network_collect(const struct tn_run_options *options, const struct tn_watch *watch, struct tn_report *report);

/* ---- usage_warnings.c ---- */

/* Adds the findings that need no trace. */
void tn__add_usage_warnings(struct tn_report *report);

/* ---- files.c ---- */

/* What became of the program's files: sizes, what was refused, which walls stood. */
void tn__files_collect(const struct tn_run_options *options, const struct tn_watch *watch,
                       struct tn_report_files *files);
/* Findings on them: a full disk, a missing wall. */
void tn__files_findings(const struct tn_watch *watch, struct tn_report *report);

/* ---- stand_ins.c ---- */

/* Which files of weights were stood in for. What cannot be read is left out. */
void tn__stand_ins_collect(const struct tn_folder *folder, struct tn_stand_in_list *list);
/* What stood in for data (data_stand_ins.c), behind these. */
void tn__data_stand_ins_collect(const struct tn_folder *folder, struct tn_stand_in_list *list);
/* A program that failed after it had read bytes that were not there: the finding names the file. After the guests'. */
void tn__stand_ins_findings(const struct tn_watch *watch, struct tn_report *report);

/* ---- collect.c ---- */

/* Fills the report from the options, the card, the ledger, the guests and the watch, and judges it. */
void tn__collect(const struct tn_run_options *options, const struct tn_card *card, struct tn_watch *watch,
                 struct tn_report *report);

/* ---- save.c: the files that a run is asked to leave ---- */

/* TN_IO with words when a file of this name could not be written; nothing is left of the asking. "-" is the output, as for
 * tn__save_to. */
tn_status tn__check_writable(const char *path);
/* Writes into a file, or into `output` for "-". */
tn_status tn__save_to(const char *path, FILE *output, tn_status (*write)(const void *what, FILE *out),
                      const void *what);
/* Writes the JSON and, with `page`, the page of a result, as far as they are asked for. */
tn_status tn__save_document(const struct tn_document *kind, const void *what, const struct tn_run_options *options,
                            bool page);
/* The result for a person, unless quiet. */
tn_status tn__print_document(const struct tn_document *kind, const void *what, const struct tn_run_options *options);
/* Copies the snapshot that the program's hook says it made, if it lies in the run's folder. */
tn_status tn__save_snapshot(const struct tn_run_options *options, const struct tn_folder *folder,
                            struct tn_report *report);
/* The report as JSON and as a page, and a baseline, as far as they are asked for. */
tn_status tn__save_report(const struct tn_run_options *options, struct tn_report *report);

/* ---- once.c: one run of a program ---- */

/* How a program is run, and who hears of it. */
struct tn_once_way {
	/* Called when the program has ended and the run's folder still stands. *exit_status is the run's. */
	tn_status (*ended)(void *context, struct tn_once *once, int *exit_status);
	/* Called in a process of its own, once, with what was seen until then; TN_EARLY_VARIABLE asks the hook for it. May be NULL. */
	void (*early)(void *context, struct tn_once *once);
	struct tn_late_news *tells; /* as in struct tn_watch */
	const struct tn_late_news *news;
	void *context;
	bool serves;       /* the program is a fork server; so it is where the environment has TN_FORKS_VARIABLE */
	bool forked;       /* a fork server makes the program's process: */
	int server, alive; /* as for tn__reaper_start_by_server */
};

struct tn_once {
	const struct tn_run_options *options;
	struct tn_once_way way;
	struct tn_install install;
	struct tn_card card;
	struct tn_chosen_ranks chosen;
	struct tn_folder folder;
	struct tn_ledger *ledger;
	struct tn_watch watch;
	char program[PATH_MAX];
	struct tn_host_system system;
	struct tn_commands commands;     /* several programs; count 0: there is one */
	struct tn_request_run *requests; /* NULL: no requests are sent */
	char **notebook;                 /* the command that runs a notebook's cells; NULL: the program is none */
	char **environment;
	sigset_t old_mask;            /* what the program's processes get */
	int signals;                  /* signalfd: those that end the run */
	struct tn_baseline *baseline; /* NULL: none is asked for */
	struct tn_views views;        /* the records in the folder, lent to every report of the run */
	bool keep_files;              /* `ended` sets it: what the program wrote stays */
};

tn_status tn__run_once(const struct tn_run_options *options, const struct tn_once_way *way, int *exit_status);

/* Makes the report of a run that has ended; its views are lent until `ended` returns. `need`: what the program needs in all, or NULL. */
void tn__once_report(struct tn_once *once, const struct tn_need *need, struct tn_report *report);
/* Where the Python cannot be used for a run, one line that says what to do: no report would make sense. */
tn_status tn__explain_misuse(const struct tn_report *report);

#endif
