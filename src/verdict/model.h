/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known about a run, in one place: filled (model_fill.h) from the ledger and the guest's files, judged (judge.h),
 * written by one writer a format. No writer computes a figure of its own.
 *
 * Unknown is TN_NO_FIGURE for figures and NULL for texts, never 0 or "". All texts are owned by the model; pointers to
 * places may be NULL. Plain data: not thread-safe.
 *
 * Invariant: the known by_category figures of a moment add up to its device_bytes, where those are known.
 */
#ifndef TN_VERDICT_MODEL_H
#define TN_VERDICT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/finding_ids.h"
#include "analyze/moment.h"   /* tn_category, tn_moment */
#include "base/figure.h"      /* TN_NO_FIGURE */
#include "gpu/gpu.h"          /* tn_gpu_figures */
#include "tonnage/status.h"   /* tn_status */
#include "verdict/host.h"     /* tn_host */
#include "verdict/inputs.h"   /* tn_inputs */
#include "verdict/requests.h" /* tn_requests */
#include "verdict/system.h"   /* tn_host_system */

enum tn_verdict {
	TN_VERDICT_FITS,
	TN_VERDICT_OUT_OF_MEMORY,
	TN_VERDICT_GROWS,
	TN_VERDICT_FAILED,
	TN_VERDICT_OVER_BUDGET, /* these three fit the card */
	TN_VERDICT_OVER_BASELINE,
	TN_VERDICT_OVER_HOST_MEMORY, /* fits the card, and not the computer */
	TN_VERDICT_SPILLS,    /* the card is too small, and the driver of Windows uses the computer's memory beside it */
	TN_VERDICT_UNDECIDED, /* nothing decisive was seen: doc/design/0018-evidence.md */
	TN_VERDICTS           /* how many there are */
};
enum tn_stopped {
	TN_STOPPED_SETTLED,
	TN_STOPPED_LIMIT,
	TN_STOPPED_END,
	TN_STOPPED_OUT_OF_MEMORY,
	TN_STOPPED_FAILED,
	TN_STOPPED_INTERRUPTED,
	TN_STOPPED_REQUESTS, /* all requests were sent */
	TN_STOPPED_KINDS     /* how many there are */
};

/* Why the run cannot be a verdict about memory although the program started. */
enum tn_misuse { TN_MISUSE_NONE, TN_MISUSE_NO_TORCH, TN_MISUSE_CPU_TORCH, TN_MISUSE_NOTEBOOK };

struct tn_place {
	char *file; /* NULL only in holders: unknown */
	int64_t line;
	char *function;
	bool backward;
};

struct tn_place_list {
	struct tn_place *items;
	size_t count;
};

struct tn_counted { /* a place and how often, or a name and how often */
	struct tn_place place;
	char *library, *name;
	int64_t count;
	int64_t bytes;
	bool unfollowed; /* of a refused call: no complete step or pass came after it */
	bool by_library; /* of an out-of-memory: a library asked, and made do with less */
};

struct tn_counted_list {
	struct tn_counted *items;
	size_t count;
};

/* A part of the guest hook that learns one kind of thing. */
struct tn_sensor {
	char *name;
	const char
		*state;  /* "attached", "absent" (this release of PyTorch has no place for it) or "lost"; never released */
	char *costs; /* what is missing without it; NULL for an attached one */
	char *error; /* of a lost one; NULL: unknown */
};

/* What became of the program's files, and what is known of it. */
struct tn_report_files {
	int64_t bytes,
		disk_bytes;      /* of the scratch folder: lengths, and what they take on the disk; TN_NO_FIGURE: no run */
	int64_t limit_bytes; /* --scratch; TN_NO_FIGURE: none */
	bool full;           /* the disk, or the limit, was full at some time */
	int64_t refused;     /* changes that the walls refused, as far as they were seen */
	struct tn_counted_list refusals; /* library: the call, name: the program, count; the first ones */
	struct tn_counted_list unseen;   /* name of programs that call the kernel themselves */
	bool no_landlock, no_filter;     /* which of the kernel's walls is missing */
};

enum tn_stand_in_kind {
	TN_STAND_IN_WEIGHTS,                /* a file whose tensors are not there */
	TN_STAND_IN_WEIGHTS_NOT_READ,       /* they are, and were not to be read (--weights shape) */
	TN_STAND_IN_WEIGHTS_NOT_DOWNLOADED, /* a URL that could not be downloaded: the model's own tensors stayed */
	TN_STAND_IN_IMAGES,                 /* --data shape: a tree of images that were not decoded */
	TN_STAND_IN_DATA_SET,               /* --data shape: a file of a data set whose values were made up */
	TN_STAND_IN_KINDS
};

/* What nobody knows of data that was stood in for, and was taken to be likely: bits. */
enum { TN_ASSUMED_ROWS = 1, TN_ASSUMED_LENGTHS = 2, TN_ASSUMED_SIZES = 4 };

/* A file of weights, or data, that the run stood in for (stand_ins.h). */
struct tn_stand_in {
	char *path; /* of images the folder, "(memory)" for those that lay in no file */
	enum tn_stand_in_kind kind;
	unsigned assumed;   /* of data: TN_ASSUMED_* */
	int64_t count;      /* of data: images, rows; TN_NO_FIGURE for weights */
	int64_t tensors;    /* TN_NO_FIGURE: not counted (a file with holes), or data */
	int64_t bytes;      /* of the tensors, of the image files, of the values that were stood in for */
	int64_t read_bytes; /* of these, what calls that read (not mappings) handed to the program, as zeros */
};

struct tn_stand_in_list {
	struct tn_stand_in *items;
	size_t count;
};

/* What the model was given in the call that ran out of memory, and the most that it was given before: the tensor with most values. */
struct tn_oom_input {
	char *shape, *before;                        /* "8192 x 2048" */
	int64_t values, values_before, calls_before; /* 0: unknown, or it was the first call */
};

/* An out-of-memory that ended the program. */
struct tn_report_oom {
	bool seen;
	int64_t requested_bytes, free_bytes, largest_free_block_bytes, short_by_bytes;
	int64_t allocated_bytes, reserved_bytes;
	int64_t step;
	struct tn_place *at;
	struct tn_place_list stack; /* innermost first */
	char *phase, *cause, *message;
	bool computed;  /* the size asked for came from a value that was not computed */
	bool workspace; /* a library asked, for a workspace */
	bool swallowed; /* PyTorch caught it, and returned what has lost its tensors */
	struct tn_oom_input input;
	int64_t vocabulary; /* it is logits over so many words; not known: it is not, or nobody can tell */
	double fraction;    /* of the card that PyTorch may use, as the program has set it; 0: unknown */
};

/* The ledger's split of a device at one moment: adds up to the device's used bytes. */
struct tn_report_split {
	int64_t context, program, libraries, other_processes, communication;
};

/* Live bytes of one category from one line of the program. */
struct tn_report_holder {
	enum tn_category category;
	int64_t bytes, blocks;
	struct tn_place at; /* file NULL: unknown */
	int64_t alike;      /* made of so many equal parts; 1: of no equal parts */
	bool layers;        /* the parts are layers of the model */
	char *what;         /* "exp_avg, exp_avg_sq float32", or NULL */
	bool in_module;     /* made within a call of a module */
};

/* What a device held at one moment. */
struct tn_report_moment {
	struct tn_report_split split;
	int64_t device_bytes; /* held by everybody together */
	int64_t by_category[TN_CATEGORIES];
	int64_t activations_of_training;  /* those that were not made in an evaluation; 0 where that is unknown */
	bool detailed;                    /* PyTorch's part is told apart; else the program's bytes are `other` */
	bool inferred;                    /* the categories are guessed: nothing in the program's process told them */
	int64_t largest_free_block_bytes; /* of what PyTorch keeps */
	struct tn_place *at;
	int64_t step;
	char *phase;
	struct tn_report_holder *holders; /* largest first */
	size_t holder_count;
};

/* Memory that survives every step, and more of it each time. */
struct tn_report_growth {
	bool seen;
	char *unit;          /* "step" */
	int64_t bytes;       /* a unit */
	int64_t first, last; /* units between which it was seen */
	int64_t peak;        /* allocated in the last unit */
	int64_t of;          /* how many units the program means to do */
	int64_t full_at;     /* the unit at which the card is full; not known when too far away */
	struct tn_place *at;
};

struct tn_region { /* a phase of the program, or a part that it has named */
	char *name;
	int64_t device_peak, reserved_peak;
	int64_t taken_peak; /* as device_peak, when it took memory itself; 0: it lived on what was there */
	struct tn_place *at;
	int64_t left; /* by a cell of a notebook: bytes that it made and that are alive at its end; TN_NO_FIGURE: unknown */
	bool cell;
};

enum tn_severity { TN_SEVERITY_ERROR, TN_SEVERITY_WARNING, TN_SEVERITY_HINT };

struct tn_finding {
	const char *id; /* of the table of findings (findings.def), or of a document that knows others; never released */
	enum tn_severity severity;
	int64_t bytes;
	struct tn_place *at;
	char *what, *advice;
	char *advice_ids; /* of the table of advice, separated by spaces; NULL: not from there */
	const char *sure; /* literal: how sure it is, where it is not; else NULL */
};

struct tn_source {     /* where a figure comes from that was not measured */
	const char *field; /* literal */
	char *text;
};

/* A snapshot of PyTorch's allocator inside the run folder, and PyTorch's number of the device that it is about. */
struct tn_record {
	char *path; /* NULL: none */
	int device;
};

/* What one function held of a category at two peaks. */
struct tn_drift {
	enum tn_category category;
	struct tn_place at; /* of now; file NULL: of no line; line unknown: gone */
	int64_t before, after;
};

struct tn_version {     /* of something that is not the same as when the baseline was made */
	const char *name;   /* literal */
	char *before, *now; /* NULL: unknown */
};

/* What the program does about its memory already (src/verdict/advice.c). Nothing is true that was not seen. */
struct tn_facts {
	bool known;
	bool trains;
	bool autocast;
	bool checkpoints;
	bool checkpoints_wait; /* checkpointing is configured, and has not acted */
	bool trained_in_eval;  /* the model is trained, and in eval() */
	bool never_updated;    /* an optimizer was made and gradients were, and no update */
	bool loader;
	bool expandable_segments;
	bool copy_called;          /* a second copy of the model is called, too */
	bool gradients_in_buckets; /* DistributedDataParallel keeps them, whatever zero_grad() does */
	bool sharded;              /* parameters are (FSDP) */
	bool state_sharded;        /* the optimizer's state is (ZeroRedundancyOptimizer) */
	bool cudnn_benchmark;      /* cuDNN searches for the fastest algorithm */
	bool workspace_config;     /* CUBLAS_WORKSPACE_CONFIG is set */
	bool small_state;          /* no optimizer is known to keep two full numbers a parameter */
	int64_t parameter_bytes, wide_bytes, small_bytes,
		trained_bytes; /* of 32 bits and more; of 8 and fewer; 0: unknown */
	int32_t
		kernels[32]; /* compute capabilities that the wheel has kernels for, 86 is 8.6; negative: code that the driver
	                      * compiles for that one and all newer ones */
	size_t kernel_count; /* 0: unknown */
};

#define TN_PROGRAMS 16 /* that run at the same time */

/* What the program needs on a card that is never full, as far as a few steps show. */
struct tn_need {
	int64_t bytes; /* of the device; 0: unknown */
	int64_t least; /* without what PyTorch only caches */
	int64_t steps;
	int64_t parameters, gradients, state, lasting; /* at that peak; lasting: all three */
	int64_t cards[32]; /* of each card of a program that has several, in the order of the report's */
	size_t card_count;
	int64_t programs[TN_PROGRAMS]; /* of several: its own peak */
	size_t program_count;
	struct tn_facts facts; /* that were seen there */
};

struct tn_baseline;

/* What a run is held against beside its card, and the result: see gate.h. */
struct tn_report_gate {
	int64_t budget;                     /* not known: none */
	int64_t over_budget;                /* 0: within it; not known where the program was not seen to its peak */
	bool budget_narrowly;               /* the bounds of the peak lie on both sides of it */
	const struct tn_baseline *baseline; /* lent; NULL: none */
	int64_t tolerance;                  /* millionths */
	char *path;                         /* of the baseline that was compared with; NULL: none was */
	int64_t before;                     /* the device's peak then */
	bool told;                          /* of both runs it is known what the memory was for */
	struct tn_drift *drifts;            /* what changed; what grew most is first */
	size_t drift_count;
	struct tn_version versions[8];
	size_t version_count;
	const char *wanted; /* where a baseline is to be written; lent */
	char *written;      /* where one was */
};

/* A reason why what was seen decides nothing. Told as the first findings of a verdict that is undecided. */
struct tn_doubt {
	enum tn_finding_id id;
	char *what, *advice;
	bool
		failed_too; /* a program that failed may have done so because of this, so that its failure decides nothing either */
};

#define TN_RANK_OPERATIONS 10 /* enum tn_collective of the ledger */

struct tn_rank {
	int64_t rank, pid, steps, allocated_peak, reserved_peak;
	bool out_of_memory;
	int64_t card;                    /* TN_NO_FIGURE: it has none, or nobody knows */
	struct tn_report_moment at_peak; /* of the process alone */
	struct {
		int64_t calls, bytes; /* bytes: of its own part */
	} communication[TN_RANK_OPERATIONS];
	struct tn_record record;   /* of its allocator, in the run's folder */
	struct tn_place *ended_at; /* its exception, or its call of exit; NULL: unknown */
	int64_t
		failed_ns; /* when it raised that, or left with another status than 0 (CLOCK_MONOTONIC); TN_NO_FIGURE: it did not */
};

/* One of several programs that ran at the same time, with all of its processes. */
struct tn_program {
	char *command;
	int64_t pid;
	bool ended; /* by itself; else we ended it */
	int wait_status;
	int64_t steps, passes; /* passes: complete ones of every kind */
	char *unit;
	bool out_of_memory;
	int64_t allocated_peak, reserved_peak; /* of the process that reserved most */
	int64_t peak;                          /* of the card, whenever that was */
	struct tn_report_moment at_peak;       /* its part of what the card held at its peak */
	struct tn_report_moment at_oom;        /* likewise as one of them ran out of memory */
	struct tn_record record, oom_record;   /* in the run's folder */
};

struct tn_programs {
	size_t count;     /* 0: there was one */
	int64_t failing;  /* the index of the one that ran out of memory, or failed; TN_NO_FIGURE: none */
	int64_t together; /* all at their own peaks at once, with what --other says */
	struct tn_program items[TN_PROGRAMS];
};

/* What shows that a rank that is not run is like one that is. */
enum tn_likeness {
	TN_LIKENESS_NONE,          /* nothing: those beside it that are run did not do the same */
	TN_LIKENESS_NOT_ITS_PLACE, /* nothing: those with the same place in a smaller group did something else */
	TN_LIKENESS_NEXT, /* the next ones that are run, below and above, did the same, up to the last step of both that is known */
	TN_LIKENESS_PLACE, /* they differ only in places within groups that are seen to make no difference */
	TN_LIKENESSES
};

struct tn_absent_rank {
	int64_t rank;
	size_t like; /* in `ranks` */
	enum tn_likeness why;
};

/* Where not all ranks of the job are run (doc/design/0031-absent-ranks.md), how many there are, and cards of a node; else 0. */
struct tn_job {
	int64_t ranks, cards;
	struct tn_absent_rank *absent; /* by rank; owned */
	size_t absent_count;
};

/* A card of a run that has several. */
struct tn_card_held {
	int64_t index;
	struct tn_report_moment at_peak; /* of all processes on it */
	bool out_of_memory;
};

struct tn_waiting_rank {
	int64_t rank, operation; /* operation: enum tn_collective, -1: making a communicator; TN_NO_FIGURE: none */
	struct tn_place *at;
};

/* Ranks that waited for ever. */
struct tn_hang {
	bool seen;
	struct tn_waiting_rank who; /* the one that the others waited for, and what it did instead */
	struct tn_waiting_rank waiting[64];
	size_t count;
};

/* The rank that failed first, where one did. */
struct tn_dead {
	bool seen;
	int64_t rank;
	int wait_status;     /* as wait(2) gives it */
	struct tn_place *at; /* the rank's own; NULL: unknown */
};

/* A part of the device's peak that was not measured: how much less and more it may be. */
struct tn_unmeasured {
	const char *part;
	int64_t below, above;
};

/* What a computed value was taken to be at a line that reads it (doc/design/0006-values.md). */
struct tn_assumption {
	struct tn_place place;
	char *what;  /* owned: "count", "truth", ... */
	char *value; /* owned, for a person: "true", "300 of 1200" */
	int64_t reads, choice;
	int64_t bound;   /* of a count: of how many at most; else 0 */
	int64_t bytes;   /* of the peak that hang on it; TN_NO_FIGURE: unknown */
	bool endless;    /* read again and again while nothing else went on, whatever it was taken to be */
	bool chosen;     /* it was given another value than the likely one */
	bool after_peak; /* a count: PyTorch's peaks stood before it was read for the first time, and stayed */
};

struct tn_assumed_list {
	struct tn_assumption *items; /* the one that was read last first */
	size_t count;
	int64_t bytes; /* of the peak that hang on all of them together; TN_NO_FIGURE: unknown */
	int runs;      /* made again with other assumptions, before this one */
	size_t passed; /* with runs: the item that another value let the program pass; `count`: none did */
	double share;  /* of --assume: 1 full, 0 none */
};

enum tn_peak_bound { TN_PEAK_MEASURED, TN_PEAK_LOWER, TN_PEAK_UPPER };

struct tn_views;
struct tn_executions;

struct tn_report {
	struct tn_views *views; /* of the records below; lent while the run's folder stands; NULL: nobody lends any */
	const struct tn_executions
		*executions;            /* of a run of several commands: all of them (executions.h); lent; NULL: one command */
	struct tn_secrets *secrets; /* that the run was started with; NULL: not known */
	enum tn_verdict verdict;
	enum tn_misuse misuse;
	int exit_status;

	bool real_gpu; /* figures of the card are the machine's own; device_bytes was sampled */
	int gpus;
	struct tn_gpu_figures gpu;
	char *torch, *cuda;
	int64_t cudnn;

	int64_t steps_seen, input_shapes, batch_size;
	char *steps_unit;
	enum tn_stopped stopped;
	char *not_seen[16]; /* parts of the program that the verdict does not speak of */
	size_t not_seen_count;
	bool not_seen_known;
	char *fast_forward_failed; /* what went wrong only because the program was made to end early */

	int64_t allocated_peak, reserved_peak, requested_peak, device_peak;
	int64_t retries; /* of the allocator, when the card had no room and its cache had; TN_NO_FIGURE: not known */
	struct tn_report_moment at_peak;
	int64_t context_lowest, context_highest; /* bounds of one context, for the uncertainty */
	int64_t unseen_below, unseen_above;      /* what else the driver may hold less or more, for each context */
	int64_t uncertainty_lowest, uncertainty_highest;
	struct tn_unmeasured bounds[3]; /* what the uncertainty is made of; a part without a name is none */
	bool narrowly;
	const char *smallest_gpu; /* alias in the catalogue, which is never released */

	struct tn_report_oom oom;
	struct tn_report_moment at_oom;
	struct tn_facts facts;
	struct tn_need need; /* of a program that ran out of memory */
	struct tn_report_growth growth;
	struct tn_report_gate gate;
	struct tn_region regions[64]; /* in the order of first appearance */
	size_t region_count;
	struct tn_counted_list handled_ooms;  /* place, count, bytes asked for */
	struct tn_counted_list ended_inside;  /* name (the program's), place, bytes asked for: what ended processes of a run
	                                        * that itself ended well */
	struct tn_counted_list refused_calls; /* library, name, count */
	struct tn_counted_list computed_reads; /* place, count */
	struct tn_assumed_list assumptions;
	bool connected;           /* a connection led out of the run: something may have been sent */
	enum tn_peak_bound bound; /* what the peak is while bytes of it hang on assumptions */
	int64_t launches, computed_read_count;
	int64_t init_skipped_tensors, init_skipped_bytes;
	struct tn_counted_list
		held_back;          /* library (what: "call", "connection" or "data"), name (whose, or the host), count */
	bool network_raw_open;  /* --network closed, but calls that pass the C library are not held back */
	char *download_refused; /* host of a download that the network wall refused, NULL: none is known of */
	bool network_allowed;
	struct tn_place *kept_at;     /* the line that adds to what keeps tensors; NULL: unknown */
	char *kept_in;                /* its name; NULL: nothing was seen */
	struct tn_counted_list usage; /* name (what it is), place, count, bytes; told as findings only */

	struct tn_finding findings[16];
	size_t finding_count;
	struct tn_source sources[16];
	size_t source_count;
	struct tn_rank ranks[64]; /* by rank */
	size_t rank_count;
	struct tn_card_held cards[32]; /* none for one card */
	size_t card_count;
	struct tn_programs programs;
	struct tn_job job;
	struct tn_hang hang;
	struct tn_dead dead;

	bool passed;                                 /* a process of the run completed a step or pass */
	bool compiling;                              /* as the time limit came */
	double compiled_seconds;                     /* that the time limit waited for */
	double limit_seconds, compile_limit_seconds; /* 0: none */
	struct tn_doubt doubts[8];
	size_t doubt_count;

	char *exception; /* "ValueError: words" of a program that failed */
	struct tn_place *exception_at;
	struct tn_report_files files;
	struct tn_stand_in_list stand_ins;
	struct tn_inputs inputs;
	struct tn_host host;
	struct tn_host_system system;
	struct tn_requests requests;
	char *scratch, *snapshot, *hook_error;
	char *snapshot_made;          /* where the guest left it, inside the run folder */
	struct tn_sensor sensors[32]; /* of all processes: lost where one lost it */
	size_t sensor_count;
	struct tn_record peak_record, oom_record;
	bool writes_allowed;
	char *working_folder; /* places below it are shown relative to it */
	char *command;        /* the program and its arguments, for the next step */
	char *options;        /* of the run that belong to it there (tn__program_options); NULL: not known */
	int64_t peak_rss_bytes;
	double seconds;
};

/* A report in which nothing is known. Release with tn__report_free. */
void tn__report_init(struct tn_report *report);
void tn__report_free(struct tn_report *report);

/* True for a count of what is selected: sizes of tensors may follow from it. */
bool tn__assumption_is_count(const struct tn_assumption *item);
/* Where a field of the JSON comes from; NULL when nothing is said of it. */
const char *tn__report_source(const struct tn_report *report, const char *field);
/* True when anything is known of what a moment's bytes were for. */
bool tn__report_is_told(const struct tn_report_moment *moment);
/* Is the item of `held_back` one of this kind? */
bool tn__is_held_back(const struct tn_counted *item, const char *what);

const char *tn__verdict_text(enum tn_verdict verdict);
const char *tn__stopped_text(enum tn_stopped stopped);
const char *tn__severity_text(enum tn_severity severity);

#endif
