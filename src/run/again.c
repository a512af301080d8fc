/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs made again with other assumptions (doc/design/0006-values.md): after a program failed by itself, with another value
 * at the line that it read last; after one that passed, with the other extreme of all counts, to see what hangs on them.
 *
 * A run made again starts in a folder of its own, says nothing, and reads what the first one read: nothing, or a file from
 * where it stood. It is not made when the program may have told somebody something, wrote real files, or used a real card.
 * Whatever goes wrong here leaves the first report as it was.
 */
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/seconds.h"
#include "report/report.h"
#include "run/run_internal.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"

#define RETRIES 3
#define RETRY_SECONDS 120 /* after these no further one begins */
#define WISHES 8
#define LAST_READ 4
#define SITES_APART 3   /* of counts: each is looked at alone */
#define LOOK_SECONDS 60 /* a longer run is not made again to see what hangs on a count */
#define LOOK_APART_SECONDS 15
#define ASSUMPTIONS_VARIABLE "TONNAGE_ASSUMPTIONS"

/* At which line which of the offered values is wanted. */
struct wish {
	char file[PATH_MAX];
	int64_t line;
	char what[24];
	int64_t choice;
	bool kept; /* it let a run get further: not tried again */
};

struct wishes {
	struct wish items[WISHES];
	size_t count;
};

/* ---- the program's standard streams ---- */

struct streams {
	int saved[3];
};

/* What the program will read: the file from where it stood at first, or nothing. -1: what it has read is gone. */
static int
input_again(const struct tn_input *input)
{
	char path[32];
	if (input->kind == TN_INPUT_GONE)
		return -1;
	if (input->kind == TN_INPUT_NOTHING)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", STDIN_FILENO);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	if (again >= 0 && lseek(again, input->offset, SEEK_SET) < 0) {
		close(again);
		again = -1;
	}
	return again;
}

struct tn_input
tn__input_of_run(void)
{
	struct stat about;
	if (fstat(STDIN_FILENO, &about) != 0 || S_ISCHR(about.st_mode)) /* a terminal: what is typed comes only once */
		return (struct tn_input){ TN_INPUT_NOTHING, 0 };
	off_t offset = S_ISREG(about.st_mode) ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
	return offset >= 0 ? (struct tn_input){ TN_INPUT_FILE, offset } : (struct tn_input){ TN_INPUT_GONE, 0 };
}

static bool
silence(const struct tn_input *input, struct streams *streams)
{
	int in = input_again(input), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool good = in >= 0 && nothing >= 0;
	fflush(NULL);
	for (int i = 0; good && i < 3; i++)
		streams->saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
	for (int i = 0; good && i < 3; i++)
		dup2(i == STDIN_FILENO ? in : nothing, i);
	if (in >= 0)
		close(in);
	if (nothing >= 0)
		close(nothing);
	return good;
}

static void
restore(const struct streams *streams)
{
	for (int i = 0; i < 3; i++) {
		if (streams->saved[i] < 0) {
			close(i);
			continue;
		}
		dup2(streams->saved[i], i);
		close(streams->saved[i]);
	}
}

/* ---- one run ---- */

static bool
write_wishes(const struct wishes *wishes, char path[])
{
	json_t *array = json_array();
	for (size_t i = 0; i < wishes->count; i++)
		json_array_append_new(array, json_pack("{s:s, s:I, s:s, s:I}", "file", wishes->items[i].file, "line",
		                                       (json_int_t)wishes->items[i].line, "what", wishes->items[i].what,
		                                       "choice", (json_int_t)wishes->items[i].choice));
	int handle = mkstemp(path);
	bool good = handle >= 0 && json_dumpfd(array, handle, 0) == 0;
	if (handle >= 0)
		close(handle);
	json_decref(array);
	return good;
}

/* What one run is to leave: its report, and, where that is wanted, what the program wrote and its records, which a page shows. */
struct outcome {
	struct tn_report *report;
	bool keeps;
	struct tn_views *views; /* of the first run, whose folder stands longer; NULL: no records are wanted */
};

/* Opens the report's records among `views`, before their files go. One that cannot be read is missing where it is asked for. */
static void
keep_records(struct tn_report *report, struct tn_views *views)
{
	struct tn_view *opened;
	const struct tn_record *records[] = { &report->peak_record, &report->oom_record };
	for (size_t i = 0; views != NULL && i < 2; i++)
		if (records[i]->path != NULL)
			(void)tn__views_open(views, records[i]->path, &opened);
	report->views = views;
}

/* `context` is a struct outcome. */
static tn_status
keep_report(void *context, struct tn_once *once, int *exit_status)
{
	const struct outcome *outcome = context;
	tn__once_report(once, NULL, outcome->report);
	*exit_status = outcome->report->exit_status;
	keep_records(outcome->report, outcome->views);
	bool keep = outcome->keeps && outcome->report->stopped != TN_STOPPED_FAILED;
	tn_status status = keep ? tn__save_snapshot(once->options, &once->folder, outcome->report) : TN_OK;
	once->keep_files = keep && outcome->report->scratch != NULL;
	return status;
}

/* The report is the caller's afterwards; false: there was no run. */
static bool
run_again(const struct tn_again *again, const struct wishes *wishes, double assume, bool keep, struct tn_report *out)
{
	struct tn_run_options options = *again->options;
	struct streams streams;
	char path[] = "/tmp/tonnage-assumed-XXXXXX";
	int status;
	options.quiet = true;
	options.assume = assume;
	options.json_path = options.html_path = options.baseline_path = options.write_baseline_path = NULL;
	if (!keep)
		options.snapshot_path = NULL;
	tn__report_init(out);
	if (!write_wishes(wishes, path))
		return false;
	bool silent = silence(&again->input, &streams);
	setenv(ASSUMPTIONS_VARIABLE, path, 1);
	struct outcome outcome = { out, keep, keep && again->options->html_path != NULL ? again->views : NULL };
	const struct tn_once_way way = { .ended = keep_report, .context = &outcome };
	bool ran = silent && tn__run_once(&options, &way, &status) == TN_OK;
	unsetenv(ASSUMPTIONS_VARIABLE);
	if (silent)
		restore(&streams);
	unlink(path);
	return ran;
}

static bool
may_run_again(const struct tn_again *again, const struct tn_report *report)
{
	return !report->real_gpu && !report->writes_allowed && !report->connected && again->input.kind != TN_INPUT_GONE &&
	       report->stopped != TN_STOPPED_INTERRUPTED && getenv(ASSUMPTIONS_VARIABLE) == NULL;
}

/* ---- after a failure ---- */

/* A value that the program has read, and that can be another one. */
static bool
can_differ(const struct tn_assumption *item)
{
	return strcmp(item->what, "zeros") != 0;
}

static bool
is_wished(const struct wish *wish, const struct tn_assumption *item)
{
	return wish->line == item->place.line && strcmp(wish->file, item->place.file) == 0 &&
	       strcmp(wish->what, item->what) == 0;
}

/* How many values there are for one: a truth has two. */
static int64_t
choices_of(const struct tn_assumption *item)
{
	return strcmp(item->what, "truth") == 0 ? 2 : 3;
}

/* A program fails of a truth more often than of a number that it prints with the failure: of the values read last, truths
 * come first. */
static const struct tn_assumption *
item_in_turn(const struct tn_assumed_list *list, size_t turn)
{
	size_t near = list->count < LAST_READ ? list->count : LAST_READ, seen = 0;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < near; i++)
			if ((choices_of(&list->items[i]) == 2) == (pass == 0) && seen++ == turn)
				return &list->items[i];
	return &list->items[turn];
}

/* Another value at the line that was read last; where all have been tried there, at the one before. */
static bool
wish_for_another(const struct tn_assumed_list *list, struct wishes *wishes)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct tn_assumption *item = item_in_turn(list, i);
		size_t at = 0;
		if (!can_differ(item) || strlen(item->place.file) >= PATH_MAX ||
		    strlen(item->what) >= sizeof(wishes->items[0].what))
			continue;
		while (at < wishes->count && !is_wished(&wishes->items[at], item))
			at++;
		if (at == WISHES)
			return false;
		struct wish *wish = &wishes->items[at];
		if (at < wishes->count && wish->kept)
			continue;
		if (at == wishes->count) {
			wishes->count++;
			*wish = (struct wish){ .line = item->place.line };
			strcpy(wish->file, item->place.file);
			strcpy(wish->what, item->what);
		}
		if (++wish->choice < choices_of(item)) {
			struct wish last = *wish; /* the one that is tried now stands last */
			memmove(wish, wish + 1, (wishes->count - at - 1) * sizeof(*wish));
			wishes->items[wishes->count - 1] = last;
			return true;
		}
		wish->choice = 0; /* the likely one again, and the line before */
	}
	return false;
}

static bool
failed_by_itself(const struct tn_report *report)
{
	return report->stopped == TN_STOPPED_FAILED && report->misuse == TN_MISUSE_NONE &&
	       report->refused_calls.count == 0 && report->exit_status != 0 && report->exit_status < 128;
}

static void
note_passed(struct tn_report *report, const struct wish *wish, int runs)
{
	struct tn_assumed_list *list = &report->assumptions;
	list->runs = runs;
	for (size_t i = 0; i < list->count; i++)
		if (is_wished(wish, &list->items[i]))
			list->passed = i;
}

static bool
same_failure(const struct tn_report *one, const struct tn_report *two)
{
	if (one->exception_at == NULL || two->exception_at == NULL)
		return one->exception_at == two->exception_at;
	return one->exception_at->line == two->exception_at->line &&
	       strcmp(one->exception_at->file, two->exception_at->file) == 0;
}

/* Where a run got past the failure and met another one, the search goes on from there with what it was given. */
static void
retry(const struct tn_again *again, struct tn_report *report)
{
	struct wishes wishes = { .count = 0 };
	struct tn_report seen, next;
	double until = tn__now() + RETRY_SECONDS;
	bool moved = false;
	tn__report_init(&seen);
	for (int i = 0; i < RETRIES && tn__now() < until; i++) {
		const struct tn_report *from = moved ? &seen : report;
		if (!wish_for_another(&from->assumptions, &wishes))
			break;
		bool ran = run_again(again, &wishes, again->options->assume, true, &next);
		if (ran && !failed_by_itself(&next) && next.stopped != TN_STOPPED_INTERRUPTED) {
			note_passed(&next, &wishes.items[wishes.count - 1], i + 1);
			tn__report_free(report);
			*report = next;
			break;
		}
		if (ran && !same_failure(from, &next)) {
			tn__report_free(&seen);
			seen = next;
			moved = true;
			wishes.items[wishes.count - 1].kept = true;
			continue;
		}
		tn__report_free(&next);
		report->assumptions.runs = i + 1;
	}
	tn__report_free(&seen);
}

/* ---- what hangs on counts ---- */

/* A count on which bytes of the peak may hang. Where all is taken to be selected, nothing hangs on one that was read after the
 * peak: fewer could not have lowered what stood before, and the result of all of it has not raised it. */
static bool
is_open(const struct tn_assumed_list *list, const struct tn_assumption *item)
{
	return tn__assumption_is_count(item) && !(item->after_peak && list->share >= 1);
}

/* How many are open; nothing hangs on the other counts. */
static size_t
open_counts(struct tn_assumed_list *list)
{
	size_t open = 0;
	for (size_t i = 0; i < list->count; i++) {
		if (is_open(list, &list->items[i]))
			open++;
		else if (tn__assumption_is_count(&list->items[i]))
			list->items[i].bytes = 0;
	}
	return open;
}

static int64_t
apart(int64_t one, int64_t other)
{
	return one == TN_NO_FIGURE || other == TN_NO_FIGURE ? 0 : one > other ? one - other : other - one;
}

/* What another choice changes of the peak: of the device's, or of tensors, which may change below what PyTorch keeps.
 * TN_NO_FIGURE when that run says nothing. */
static int64_t
difference(const struct tn_again *again, const struct tn_report *report, const struct wishes *wishes, double assume)
{
	struct tn_report other;
	int64_t bytes = TN_NO_FIGURE;
	bool ran = run_again(again, wishes, assume, false, &other);
	if (ran && other.verdict == report->verdict && other.device_peak != TN_NO_FIGURE) {
		int64_t tensors = apart(report->allocated_peak, other.allocated_peak);
		bytes = apart(report->device_peak, other.device_peak);
		bytes = tensors > bytes ? tensors : bytes;
	}
	tn__report_free(&other);
	return bytes;
}

static void
look_at_each(const struct tn_again *again, struct tn_report *report)
{
	struct tn_assumed_list *list = &report->assumptions;
	for (size_t i = 0; i < list->count; i++) {
		struct tn_assumption *item = &list->items[i];
		struct wishes wishes = { .count = 1 };
		if (!is_open(list, item) || strlen(item->place.file) >= PATH_MAX)
			continue;
		wishes.items[0] = (struct wish){ .line = item->place.line, .choice = 1 };
		strcpy(wishes.items[0].file, item->place.file);
		strcpy(wishes.items[0].what, item->what);
		item->bytes = difference(again, report, &wishes, again->options->assume);
	}
}

static void
look_at_counts(const struct tn_again *again, bool may_run, struct tn_report *report)
{
	struct tn_assumed_list *list = &report->assumptions;
	const struct wishes none = { .count = 0 };
	if (report->verdict != TN_VERDICT_FITS)
		return;
	size_t open = open_counts(list);
	if (open > 0 && (!may_run || report->seconds > LOOK_SECONDS))
		return;
	list->bytes = open > 0 ? difference(again, report, &none, list->share > 0 ? 0 : 1) : 0;
	for (size_t i = 0; i < list->count; i++)
		if (is_open(list, &list->items[i]) && (open == 1 || list->bytes == 0))
			list->items[i].bytes = list->bytes;
	if (list->bytes > 0 && open > 1 && open <= SITES_APART && report->seconds <= LOOK_APART_SECONDS)
		look_at_each(again, report);
}

void
tn__look_again(const struct tn_again *again, struct tn_report *report)
{
	bool may_run = may_run_again(again, report);
	if (!failed_by_itself(report) || report->assumptions.count == 0)
		look_at_counts(again, may_run, report);
	else if (may_run)
		retry(again, report);
	tn__report_set_bound(report);
}
