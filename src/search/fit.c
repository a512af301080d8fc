/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_fit: the largest batch that fits, for each card.
 *
 * Two batches on a card that is never full give a line of memory against batch, and so a prediction for every card. Where
 * it lies far from both, the predicted batch is seen on that card, too: small batches often tell nothing, since something
 * else is the peak. The batch that is named then, and the next, are tried on the card itself. Where they do not part, the
 * line is drawn again through what is known by then; after a few rounds the search halves what is left. The answer is
 * always the same: a batch that was seen to fit, and the next that was seen not to.
 */
#include "tonnage/fix.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gpu/catalogue.h"
#include "report/fit.h"
#include "supervise/internal.h"
#include "search/search.h"
#include "trials/trial.h"

#define MOST_CARDS 16
#define MOST_POINTS 256
#define LARGEST_BATCH 65536
#define FIRST_BATCH 4      /* with {batch}, when none was asked for */
#define GUESSED_PROBES 6   /* on a card, before halving */
#define MOST_SIGHTINGS 5   /* of predicted batches on the card that is never full */
#define NEAR 1.25          /* a line holds this far from what it was drawn through */
#define FARTHEST 8         /* times the largest batch that is known */
#define FIRST_STRIDE 8     /* part of a batch that fits although it should not: as far as the next is beyond it */
#define LARGE (-1)

struct point {
	int card; /* LARGE, or an index */
	int batch; /* 0: as the program has it */
	bool over, fits;
	char *changes; /* NULL: none */
	char **arguments; /* with the batch in them; NULL: the program's */
	struct tn_trial trial;
};

struct target {
	struct tn_search_card card;
	char *asked;
	int low, high; /* largest that fits, 0: none known; smallest that does not, INT_MAX: none known */
	int probes, strides; /* on the card; of them, beyond all that is known */
	int sightings;       /* on the card that is never full */
};

struct search {
	const struct tn_fit_options *options;
	struct tn_trials trials;
	struct tn_progress_line line;
	struct target targets[MOST_CARDS];
	int target_count;
	struct point *points[MOST_POINTS]; /* they do not move: trials point into them */
	int count;
	bool by_word, detail;
	int own_batch; /* the program's; 0: unknown */
	int most;
	const char *failure;
	char *doubt; /* the failure's words, where they are made */
	int failure_status;
};

/* ---- points ---- */

static char *
with_batch(const char *word, int batch)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	for (const char *at = word, *mark; (mark = strstr(at, "{batch}")) != NULL || *at != '\0';) {
		if (mark == NULL) {
			fputs(at, out);
			break;
		}
		fprintf(out, "%.*s%d", (int)(mark - at), at, batch);
		at = mark + strlen("{batch}");
	}
	fclose(out);
	return text;
}

static char **
arguments_with(char *const *arguments, int batch)
{
	size_t count = 0;
	while (arguments[count] != NULL)
		count++;
	char **made = calloc(count + 1, sizeof(*made));
	for (size_t i = 0; made != NULL && i < count; i++)
		made[i] = with_batch(arguments[i], batch);
	return made;
}

static struct point *
find_point(struct search *search, int card, int batch)
{
	for (int i = 0; i < search->count; i++)
		if (search->points[i]->card == card && search->points[i]->batch == batch)
			return search->points[i];
	return NULL;
}

/* A trial of a batch; NULL when there is one, or no room for one. */
static struct tn_trial *
try_batch(struct search *search, int card, int batch)
{
	const struct target *target = &search->targets[card == LARGE ? 0 : card];
	struct point *point = find_point(search, card, batch) == NULL && search->count < MOST_POINTS
	                          ? calloc(1, sizeof(*point)) : NULL;
	if (point == NULL)
		return NULL;
	search->points[search->count++] = point;
	point->card = card;
	point->batch = batch;
	point->trial.options = target->card.options;
	point->trial.options.no_detail = batch != 0 && !search->detail;
	if (card == LARGE)
		point->trial.options.memory_bytes = TN_UNLIMITED_CARD;
	else
		point->trial.options.other_bytes += (uint64_t)target->card.hidden;
	if (batch == 0) {
		point->trial.changes = TN_CHANGE_SURVEY;
		point->trial.keep_words = true;
	} else if (search->by_word) {
		point->arguments = arguments_with(target->card.options.arguments, batch);
		point->trial.options.arguments = point->arguments;
		point->trial.keep_words = card == LARGE;
	} else {
		char value[16];
		snprintf(value, sizeof(value), "%d", batch);
		point->trial.changes = point->changes = tn__change_part("batch", value);
	}
	return &point->trial;
}

static void
free_point(struct point *point)
{
	for (size_t i = 0; point->arguments != NULL && point->arguments[i] != NULL; i++)
		free(point->arguments[i]);
	free(point->arguments);
	free(point->changes);
	tn__trial_clear(&point->trial);
	free(point);
}

/* ---- what is known ---- */

/* The batch that a point is about; 0 when that is not known. */
static int
batch_of(const struct search *search, const struct point *point)
{
	return point->batch != 0 ? point->batch : search->own_batch;
}

/* What a batch takes on a card, as far as a trial has told; TN_NO_FIGURE where it was not seen whole. */
static int64_t
device_of(const struct search *search, const struct point *point, const struct target *target)
{
	int64_t device = tn__trial_report(&point->trial)->device_peak;
	if (!point->over || !point->fits || device == TN_NO_FIGURE)
		return TN_NO_FIGURE;
	const struct target *there = &search->targets[point->card == LARGE ? 0 : point->card];
	int64_t hidden = point->card == LARGE ? 0 : there->card.hidden;
	return device - hidden - (int64_t)there->card.figures.context_bytes + (int64_t)target->card.figures.context_bytes;
}

/* The largest batch that should fit, by the line through the two points nearest to the card's room; 0: no line. */
static int
predicted(const struct search *search, const struct target *target)
{
	double room = (double)((int64_t)target->card.total - target->card.hidden);
	const struct point *near[2] = { NULL, NULL };
	double distance[2] = { INFINITY, INFINITY };
	for (int i = 0; i < search->count; i++) {
		const struct point *point = search->points[i];
		int64_t device = device_of(search, point, target);
		int batch = batch_of(search, point);
		double away = fabs((double)device - room);
		if (device == TN_NO_FIGURE || batch == 0 ||
		    (near[0] != NULL && batch_of(search, near[0]) == batch && away >= distance[0]) ||
		    (near[1] != NULL && batch_of(search, near[1]) == batch))
			continue;
		if (away < distance[0]) {
			if (near[0] != NULL && batch_of(search, near[0]) != batch) {
				near[1] = near[0];
				distance[1] = distance[0];
			}
			near[0] = point;
			distance[0] = away;
		} else if (away < distance[1]) {
			near[1] = point;
			distance[1] = away;
		}
	}
	if (near[0] == NULL || near[1] == NULL)
		return 0;
	double first = device_of(search, near[0], target), second = device_of(search, near[1], target);
	double slope = (second - first) / (batch_of(search, near[1]) - batch_of(search, near[0]));
	if (slope <= 0)
		return 0;
	double batch = floor(batch_of(search, near[0]) + (room - first) / slope);
	return batch < 1 ? 1 : batch > search->most ? search->most : (int)batch;
}

/* ---- what to try next ---- */

static bool
is_done(const struct search *search, const struct target *target)
{
	return target->low >= search->most || target->high == 1 ||
	       (target->high != INT_MAX && target->high - target->low <= 1);
}

/* Between the bounds, or beyond the one that is known. */
static int
halved(const struct search *search, const struct target *target)
{
	if (target->high == INT_MAX) {
		int64_t stride = (int64_t)(target->low / FIRST_STRIDE + 1) << target->strides;
		return target->low + stride < search->most ? (int)(target->low + stride) : search->most;
	}
	return target->low + (target->high - target->low) / 2;
}

static int
probe(const struct search *search, const struct target *target)
{
	int batch = target->probes < GUESSED_PROBES ? predicted(search, target) : 0;
	if (batch == 0)
		batch = halved(search, target);
	if (batch <= target->low)
		batch = target->low + 1;
	if (batch >= target->high)
		batch = target->high - 1;
	return batch > search->most ? search->most : batch;
}

static struct tn_trial *
next_on_card(struct search *search, int index)
{
	struct target *target = &search->targets[index];
	struct tn_trial *trial;
	if (is_done(search, target))
		return NULL;
	int batch = probe(search, target);
	trial = try_batch(search, index, batch);
	if (trial == NULL && batch + 1 < target->high && batch < search->most) /* the one beside it, at the same time */
		trial = try_batch(search, index, batch + 1);
	if (trial != NULL) {
		target->probes++;
		target->strides += target->high == INT_MAX && target->low > 0;
	}
	return trial;
}

/* The batch that should be seen on the card that is never full, before one is tried on the card: the predicted one, where
 * it is far from all that were seen; 0: none. */
static int
to_be_sighted(const struct search *search, const struct target *target)
{
	int batch = target->sightings < MOST_SIGHTINGS && target->probes == 0 ? predicted(search, target) : 0, largest = 0;
	if (batch == 0)
		return 0;
	for (int i = 0; i < search->count; i++) {
		const struct point *point = search->points[i];
		int there = point->card == LARGE ? batch_of(search, point) : 0;
		if (there > 0 && (!point->over || (batch <= there * NEAR && there <= batch * NEAR)))
			return 0;
		if (there > largest)
			largest = there;
	}
	return largest > 0 && batch / FARTHEST > largest ? FARTHEST * largest : batch;
}

static bool
is_sighting(const struct search *search)
{
	for (int i = 0; i < search->count; i++)
		if (search->points[i]->card == LARGE && !search->points[i]->over)
			return true;
	return false;
}

/* Several cards share what is seen. */
static struct tn_trial *
next_sighting(struct search *search)
{
	for (int i = 0; i < search->target_count; i++) {
		struct target *target = &search->targets[i];
		int batch = to_be_sighted(search, target);
		struct tn_trial *trial = batch > 0 ? try_batch(search, LARGE, batch) : NULL;
		if (batch > 0)
			target->sightings++;
		if (trial != NULL)
			return trial;
	}
	return NULL;
}

static struct tn_trial *
next_on_large(struct search *search)
{
	struct tn_trial *trial;
	if (search->by_word) {
		int first = search->options->batch > 0 ? search->options->batch : FIRST_BATCH;
		trial = try_batch(search, LARGE, first);
		return trial != NULL ? trial : try_batch(search, LARGE, first > 1 ? first / 2 : 2);
	}
	trial = try_batch(search, LARGE, 0);
	if (trial != NULL || search->own_batch == 0)
		return trial;
	return try_batch(search, LARGE, search->own_batch > 1 ? search->own_batch / 2 : 2);
}

/* Two were seen on the card that is never full, this one not counted. */
static bool
line_is_known(const struct search *search, const struct point *without)
{
	int known = 0;
	for (int i = 0; i < search->count; i++)
		known += search->points[i]->card == LARGE && search->points[i]->over && search->points[i] != without;
	return known >= 2;
}

static struct tn_trial *
next(void *context)
{
	struct search *search = context;
	if (search->failure != NULL)
		return NULL;
	if (!line_is_known(search, NULL))
		return next_on_large(search);
	struct tn_trial *sighting = next_sighting(search);
	if (sighting != NULL || is_sighting(search))
		return sighting;
	for (int i = 0; i < search->target_count; i++) {
		struct tn_trial *trial = next_on_card(search, i);
		if (trial != NULL)
			return trial;
	}
	return NULL;
}

/* ---- what a trial has told ---- */

static bool
was_applied(const struct tn_trial *trial)
{
	const struct tn_change_results *results = &trial->outcome.changes;
	for (size_t i = 0; i < results->count; i++)
		for (size_t j = 0; j < results->processes[i].count; j++)
			if (results->processes[i].items[j].applied)
				return true;
	return false;
}

static void
fail(struct search *search, const char *why, int status)
{
	search->failure = why;
	search->failure_status = status;
}

static void
judge_first(struct search *search, const struct point *point)
{
	const struct tn_trial *trial = &point->trial;
	const struct tn_outcome *outcome = &trial->outcome;
	const struct tn_report *report = tn__trial_report(trial);
	if (trial->end != TN_TRIAL_DONE) {
		fail(search, outcome->error != NULL ? outcome->error : "the program took too much of the computer's own memory",
		     outcome->exit_status != 0 ? outcome->exit_status : TN_EXIT_OWN_FAILURE);
	} else if (report->verdict == TN_VERDICT_FAILED) {
		tn__progress_line_erase(&search->line);
		if (trial->words != NULL)
			fputs(trial->words, stderr); /* the program's own */
		fail(search, "the program fails, and not for want of memory", report->exit_status);
	} else if (report->verdict == TN_VERDICT_UNDECIDED) {
		search->doubt = tn__trial_doubt(trial);
		fail(search, search->doubt != NULL ? search->doubt : "undecided", TN_EXIT_UNDECIDED);
	}
	search->detail |= report->growth.seen;
	tn__trials_adapt(&search->trials, report->peak_rss_bytes);
	if (point->batch != 0 || search->failure != NULL)
		return;
	search->own_batch = tn__survey_batch(&outcome->changes.survey, LARGEST_BATCH);
	if (search->own_batch == 0)
		fail(search,
		     "no data loader was seen whose batch could be set: write {batch} into the program's arguments, as in "
		     "-- python train.py --batch-size {batch}", TN_EXIT_USAGE);
}

static void
judge_card(struct search *search, const struct point *point)
{
	struct target *target = &search->targets[point->card];
	if (point->fits && point->batch > target->low)
		target->low = point->batch;
	if (!point->fits && point->batch < target->high)
		target->high = point->batch;
	tn__progress_line_say(&search->line, "batch %d %s on %s", point->batch, point->fits ? "fits" : "does not fit",
	                      target->asked);
}

static void
ended(void *context, struct tn_trial *trial)
{
	struct search *search = context;
	struct point *point = NULL;
	for (int i = 0; i < search->count && point == NULL; i++)
		if (&search->points[i]->trial == trial)
			point = search->points[i];
	if (point == NULL)
		return;
	point->over = true;
	point->fits = tn__trial_fits(trial) && tn__trial_report(trial)->steps_seen != 0;
	if (point->changes != NULL && trial->end == TN_TRIAL_DONE && !was_applied(trial)) {
		fail(search,
		     "the batch of the program's data loader could not be set: write {batch} into the program's arguments",
		     TN_EXIT_USAGE);
		return;
	}
	if (point->card == LARGE && !line_is_known(search, point))
		judge_first(search, point);
	else if (point->card != LARGE)
		judge_card(search, point);
}

static void
tick(void *context)
{
	struct search *search = context;
	tn__progress_line_show(&search->line, "trial %d, %.0f s", search->trials.count,
	                       tn__trials_seconds(&search->trials));
}

/* ---- the table ---- */

static int
by_batch(const void *one, const void *two)
{
	const struct tn_fit_point *a = one, *b = two;
	return a->batch - b->batch;
}

/* A trial on the card counts before one on the card without end. */
static void
add_to_curve(const struct search *search, const struct target *target, const struct point *point,
             struct tn_fit_card *out)
{
	int batch = batch_of(search, point);
	int64_t device = device_of(search, point, target);
	const struct tn_report *report = tn__trial_report(&point->trial);
	bool tried = point->card != LARGE;
	if (batch == 0 || !point->over)
		return;
	for (size_t i = 0; i < out->curve_count; i++)
		if (out->curve[i].batch == batch) {
			if (out->curve[i].device_peak == TN_NO_FIGURE && device != TN_NO_FIGURE) {
				out->curve[i].device_peak = device; /* all of what did not fit was seen on the card without end */
				out->curve[i].reserved_peak = report->reserved_peak;
			}
			return;
		}
	bool room = device != TN_NO_FIGURE && device + target->card.hidden <= (int64_t)target->card.total;
	bool undecided = !point->fits && report->verdict == TN_VERDICT_UNDECIDED;
	bool failed = !point->fits && report->verdict == TN_VERDICT_FAILED;
	out->curve[out->curve_count++] = (struct tn_fit_point){
		.batch = batch, .device_peak = device, .tried = tried, .fits = tried ? point->fits : room,
		.reserved_peak = point->fits ? report->reserved_peak : TN_NO_FIGURE,
		.undecided = undecided,
		.why_not = undecided ? tn__trial_doubt(&point->trial)
		           : failed  ? strdup(report->exception != NULL ? report->exception : "the trial failed")
		                     : NULL
	};
}

static void
fill_curve(struct search *search, int index, struct tn_fit_card *out)
{
	out->curve = calloc((size_t)search->count + 1, sizeof(*out->curve));
	for (int tried = 1; tried >= 0 && out->curve != NULL; tried--)
		for (int i = 0; i < search->count; i++)
			if (search->points[i]->card == (tried ? index : LARGE))
				add_to_curve(search, &search->targets[index], search->points[i], out);
	if (out->curve != NULL)
		qsort(out->curve, out->curve_count, sizeof(*out->curve), by_batch);
}

static void
fill_plan(int batch, struct tn_fit_card *out)
{
	if (batch == 0 || out->largest <= 0)
		return;
	out->micro_batch = batch < out->largest ? batch : out->largest;
	while (batch % out->micro_batch != 0)
		out->micro_batch--;
	out->steps = batch / out->micro_batch;
}

static void
fill_card(struct search *search, int index, int batch, struct tn_fit_card *out)
{
	const struct target *target = &search->targets[index];
	const struct point *best = target->low > 0 ? find_point(search, index, target->low) : NULL;
	bool known = is_done(search, target);
	*out = (struct tn_fit_card){ .gpu = target->card.figures, .asked = strdup(target->asked),
		                         .margin_wanted = target->card.hidden, .largest = known ? target->low : -1,
		                         .unbounded = target->low >= search->most, .reserved_peak = TN_NO_FIGURE,
		                         .device_peak = TN_NO_FIGURE, .margin = TN_NO_FIGURE };
	if (best != NULL) {
		out->reserved_peak = tn__trial_report(&best->trial)->reserved_peak;
		out->device_peak = tn__trial_report(&best->trial)->device_peak - target->card.hidden;
		out->margin = (int64_t)target->card.total - out->device_peak;
		out->uncertain = tn__trial_uncertain(&best->trial);
	}
	fill_curve(search, index, out);
	fill_plan(batch, out);
}

/* The card with the least memory that holds a batch with the margin that was asked for. */
static const char *
smallest_for(struct search *search, int batch)
{
	const struct point *point = find_point(search, LARGE, search->by_word ? batch : 0);
	const struct target *target = &search->targets[0];
	int64_t device = point != NULL ? device_of(search, point, target) : TN_NO_FIGURE;
	const struct tn_gpu_row *best = NULL;
	for (int i = 0; i < tn__gpu_count() && device != TN_NO_FIGURE; i++) {
		const struct tn_gpu_row *row = tn__gpu_row(i);
		double room = (double)row->figures.total_bytes * (1.0 - search->options->search.margin);
		int64_t context = (int64_t)row->figures.context_bytes - (int64_t)target->card.figures.context_bytes;
		double need = (double)(device + context);
		if (need <= room && (best == NULL || row->figures.total_bytes < best->figures.total_bytes))
			best = row;
	}
	return best != NULL ? best->figures.alias : NULL;
}

static void
fill(struct search *search, struct tn_fits *out)
{
	int batch = search->options->batch > 0 ? search->options->batch : search->own_batch;
	*out = (struct tn_fits){ .batch = batch, .interrupted = search->trials.interrupted_by != 0,
		                     .by_word = search->by_word, .trials = search->trials.count, .forked = search->trials.forked,
		                     .not_forked = tn__trials_not_forked(&search->trials), .seconds = tn__trials_seconds(&search->trials) };
	if (batch > 0 && (search->by_word || batch == search->own_batch))
		out->smallest_gpu = smallest_for(search, batch);
	out->command = tn__program_quote(search->options->search.run.arguments);
	out->cards = calloc((size_t)search->target_count, sizeof(*out->cards));
	for (int i = 0; i < search->target_count && out->cards != NULL; i++)
		fill_card(search, i, batch, &out->cards[out->card_count++]);
	for (int i = 0; i < search->count; i++)
		out->out_of_memory += tn__trial_report(&search->points[i]->trial)->verdict == TN_VERDICT_OUT_OF_MEMORY;
}

/* ---- the command ---- */

static tn_status
finish(struct search *search, const struct tn_fits *fits, int *exit_status)
{
	const struct tn_run_options *run = &search->options->search.run;
	bool some = false;
	TN_FORWARD_IF_ERROR(tn__print_document(&tn__fit_document, fits, run));
	TN_FORWARD_IF_ERROR(tn__save_document(&tn__fit_document, fits, run, true));
	for (size_t i = 0; i < fits->card_count; i++)
		some |= fits->cards[i].largest > 0;
	*exit_status = fits->interrupted ? 128 + search->trials.interrupted_by
	               : some            ? TN_EXIT_FITS
	                                 : TN_EXIT_OUT_OF_MEMORY;
	return TN_OK;
}

/* "rtx3060,a100-40,h100" */
static tn_status
take_cards(struct search *search, int *exit_status)
{
	char *names = strdup(search->options->search.run.gpu), *rest = names, *name;
	tn_status status = names != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	while (status == TN_OK && (name = strsep(&rest, ",")) != NULL) {
		struct target *target = &search->targets[search->target_count];
		if (name[0] == '\0')
			continue;
		if (search->target_count == MOST_CARDS) {
			status = tn__fail(TN_INVALID, "--gpu takes %d cards at most", MOST_CARDS);
			break;
		}
		*target = (struct target){ .asked = strdup(name), .high = INT_MAX };
		search->target_count++;
		status = tn__search_card(&search->options->search, target->asked, &target->card, exit_status);
	}
	free(names);
	if (status == TN_OK && search->target_count == 0)
		status = tn__fail(TN_INVALID, "--gpu names no card");
	return status;
}

static bool
has_word(char *const *arguments)
{
	for (; *arguments != NULL; arguments++)
		if (strstr(*arguments, "{batch}") != NULL)
			return true;
	return false;
}

static tn_status
run_search(struct search *search, int *exit_status)
{
	struct tn_fits fits;
	TN_FORWARD_IF_ERROR(tn__trials_open(&search->trials));
	tn_status status = tn__trials_run(&search->trials);
	tn__progress_line_erase(&search->line);
	tn__trials_close(&search->trials);
	*exit_status = TN_EXIT_OWN_FAILURE;
	TN_FORWARD_IF_ERROR(status);
	if (search->failure != NULL && search->trials.interrupted_by == 0) {
		*exit_status = search->failure_status;
		return tn__fail(TN_INVALID, "%s", search->failure);
	}
	fill(search, &fits);
	status = finish(search, &fits, exit_status);
	tn__fits_free(&fits);
	return status;
}

tn_status
tn_fit(const struct tn_fit_options *options, int *exit_status)
{
	struct search *search = calloc(1, sizeof(*search));
	*exit_status = TN_EXIT_USAGE;
	TN_RETURN_IF(search == NULL, TN_NO_MEMORY, "out of host memory");
	search->options = options;
	search->most = options->most > 0 ? options->most : LARGEST_BATCH;
	search->by_word = has_word(options->search.run.arguments);
	search->trials = (struct tn_trials){ .wanted_jobs = options->search.jobs, .context = search, .next = next,
		                                 .ended = ended, .tick = tick, .forks = !options->search.fresh };
	search->line = tn__progress_line_of(&options->search.run);
	tn_status status = take_cards(search, exit_status);
	if (status == TN_OK)
		status = run_search(search, exit_status);
	for (int i = 0; i < search->count; i++)
		free_point(search->points[i]);
	for (int i = 0; i < search->target_count; i++)
		free(search->targets[i].asked);
	free(search->doubt);
	free(search);
	return status;
}
