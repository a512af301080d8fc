/* SPDX-License-Identifier: Apache-2.0
 *
 * What `fix` tries, and in which order: single changes by what they promise, then combinations of what saved something.
 */
#include "search/fix_search.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "verdict/finding_rows.h"

#define MOST_OPTION_VALUES 3
#define MORE_PIECES 1.5 /* than were not enough */

/* ---- attempts ---- */

static struct tn_attempt *
add_attempt(struct tn_fix_search *search, const char *title, enum tn_guarantee results)
{
	if (search->count == TN_FIX_ATTEMPTS)
		return NULL;
	struct tn_attempt *attempt = &search->attempts[search->count];
	*attempt = (struct tn_attempt){ .turn = search->count++,
		                            .found = { .title = strdup(title),
		                                       .results = results,
		                                       .end = TN_FIX_UNKNOWN,
		                                       .reserved_peak = TN_NO_FIGURE,
		                                       .device_peak = TN_NO_FIGURE,
		                                       .steps_seen = TN_NO_FIGURE,
		                                       .need = TN_NO_FIGURE,
		                                       .margin = TN_NO_FIGURE } };
	return attempt;
}

static void
add_part(struct tn_attempt *attempt, const char *part)
{
	struct tn_fix_change *found = &attempt->found;
	if (!tn__array_add(&found->parts, found->part_count, sizeof(*found->parts)))
		return;
	found->parts[found->part_count++] = strdup(part);
	tn__change_join(&found->changes, part);
}

static bool
is_tried(const struct tn_fix_search *search, const char *part)
{
	for (int i = 0; i < search->count; i++)
		if (search->attempts[i].found.part_count == 1 && strcmp(search->attempts[i].found.parts[0], part) == 0)
			return true;
	return false;
}

static bool
ends_with(char *const *arguments, const struct tn_text_list *words)
{
	size_t count = 0;
	while (arguments[count] != NULL)
		count++;
	if (words->count >= count)
		return false;
	for (size_t i = 0; i < words->count; i++)
		if (words->items[i] == NULL || strcmp(arguments[count - words->count + i], words->items[i]) != 0)
			return false;
	return true;
}

/* As the survey tells of it, or of something like it. */
static void
add_single(struct tn_fix_search *search, const struct tn_possible_change *row, const char *value, int pieces)
{
	const struct tn_change_facts *facts = tn__change_facts(row->id);
	int64_t most = tn__remedy_most(facts, &search->unchanged_large, pieces);
	if (row->at_most != TN_NO_FIGURE && row->at_most < most)
		most = row->at_most;
	bool of_host = tn__finding_has_remedy(TN_FINDING_host_ram, facts->id);
	if (of_host != search->host) /* what frees the computer's memory frees none of a card, and the other way round */
		return;
	bool not_of_room, remedies = tn__remedy_fits(facts, &search->unchanged_card, &not_of_room);
	char *part = tn__change_part(row->id, value);
	char *title = tn__change_title(row->title != NULL ? row->title : facts->title, value);
	/* Of what suits the kind of program it may be seen that it cannot be enough: then it takes its turn with the others. So it is of
	 * the allocator's settings: what is missing are bytes of tensors. */
	bool settings = facts->choice == TN_CHOICE_SETTINGS && !search->host;
	bool seen = (row->at_most != TN_NO_FIGURE || settings) && !not_of_room;
	bool first = remedies && !(seen && most < search->missing);
	bool hopeless = !first && search->missing != TN_NO_FIGURE && most < search->missing / TN_FIX_LEAST_SHARE;
	struct tn_attempt *attempt = part != NULL && title != NULL && !is_tried(search, part)
	                                 ? add_attempt(search, title, row->results)
	                                 : NULL;
	if (attempt != NULL) {
		add_part(attempt, part);
		attempt->found.cost = facts->cost;
		attempt->found.pieces = pieces;
		attempt->found.remedy = not_of_room;
		attempt->found.own = tn__change_is_own(part);
		bool kept = attempt->found.results != TN_GUARANTEE_DIFFERENT;
		attempt->most = first && (kept || not_of_room) ? INT64_MAX
		                                               : most; /* what was found wrong is tried first of all */
		attempt->wished = tn__change_is(part, TN_CHANGE_NOTHING);
		if (attempt->wished)
			attempt->most = 0;
		else if (hopeless)
			attempt->stage = TN_STAGE_LOW_PRIORITY;
	}
	free(part);
	free(title);
}

/* ---- which values ---- */

/* A batch in k pieces: the fewest that should do, and the next. */
static void
add_accumulation(struct tn_fix_search *search, const struct tn_possible_change *row)
{
	const struct tn_change_facts *facts = tn__change_facts(row->id);
	int added = 0;
	for (size_t i = 0; i < row->values.count; i++) {
		const char *text = row->values.items[i];
		int pieces = text != NULL ? atoi(text) : 0;
		bool last = i + 1 == row->values.count;
		bool should = search->missing == TN_NO_FIGURE ||
		              tn__remedy_most(facts, &search->unchanged_large, pieces) >= search->missing;
		if (pieces > 1 && added < 2 && (should || last)) {
			add_single(search, row, text, pieces);
			added++;
		}
	}
}

/* An option of the program's own: where it cuts a batch, the fewest pieces that should do, and more in case. */
static void
add_option(struct tn_fix_search *search, const struct tn_possible_change *row, const struct tn_survey *survey)
{
	const struct tn_change_facts *facts = tn__change_facts(row->id);
	char *const *words = search->words;
	bool set = search->command <= 1 || tn__search_same_script(search->card.options.arguments, words);
	bool reached = set && ends_with(words, &survey->command_line);
	double next = 0;
	int added = 0;
	for (size_t i = 0; i < row->values.count && added < MOST_OPTION_VALUES; i++) {
		int pieces = i < row->pieces.count ? (int)row->pieces.items[i] : 0;
		bool last = i + 1 == row->values.count;
		bool should = search->missing == TN_NO_FIGURE || pieces == 0 ||
		              tn__remedy_most(facts, &search->unchanged_large, pieces) >= search->missing;
		char *part = row->values.items[i] != NULL ? tn__change_part(row->id, row->values.items[i]) : NULL;
		/* Where a script or a launcher started the program, what is added to the line would not reach it. */
		if (part != NULL && (reached || !tn__change_is_on_line(part)) && ((should && pieces >= next) || last)) {
			add_single(search, row, row->values.items[i], pieces);
			added++;
			next = MORE_PIECES * pieces;
		}
		free(part);
	}
}

/* The largest half, quarter ... of a batch that should do, and the next. */
static void
add_batch(struct tn_fix_search *search, const struct tn_possible_change *row, int batch)
{
	const struct tn_change_facts *facts = tn__change_facts(row->id);
	char text[16];
	int pieces = 2;
	while (batch / pieces > 1 && search->missing != TN_NO_FIGURE &&
	       tn__remedy_most(facts, &search->unchanged_large, pieces) < search->missing)
		pieces *= 2;
	for (int i = 0; i < 2 && batch / pieces >= 1; i++, pieces *= 2) {
		snprintf(text, sizeof(text), "%d", batch / pieces);
		add_single(search, row, text, pieces);
	}
}

/* All settings are tried where the cache is to blame; else only the one that may help anywhere. Of the computer's memory each
 * takes more away than the one before, so that the first that does is enough. */
static void
add_settings(struct tn_fix_search *search, const struct tn_possible_change *row)
{
	const struct tn_change_facts *facts = tn__change_facts(row->id);
	bool all;
	tn__remedy_fits(facts, &search->unchanged_card, &all);
	if (!all && search->missing != TN_NO_FIGURE)
		all = tn__remedy_most(facts, &search->unchanged_large, 0) >= search->missing;
	for (size_t i = 0; i < row->values.count; i++)
		if (row->values.items[i] != NULL && (all || i == 0))
			add_single(search, row, row->values.items[i], search->host ? (int)i + 1 : 0);
}

static void
add_first(struct tn_fix_search *search, const struct tn_possible_change *row)
{
	if (row->values.count > 0)
		add_single(search, row, row->values.items[0], 0);
}

static void
add_row(struct tn_fix_search *search, const struct tn_possible_change *row, const struct tn_survey *survey)
{
	switch (tn__change_facts(row->id)->choice) {
	case TN_CHOICE_FIRST:
		add_first(search, row);
		break;
	case TN_CHOICE_PIECES:
		add_accumulation(search, row);
		break;
	case TN_CHOICE_BATCH:
		add_batch(search, row, search->batch);
		break;
	case TN_CHOICE_EVALUATION_BATCH:
		add_batch(search, row, tn__survey_evaluation_batch(survey));
		break;
	case TN_CHOICE_SETTINGS:
		add_settings(search, row);
		break;
	case TN_CHOICE_OPTION_VALUES:
		add_option(search, row, survey);
		break;
	}
}

/* The other processes are not the program's: the remedy is tried as a card without them. */
static void
add_without_others(struct tn_fix_search *search)
{
	const char *cause = tn__trial_report(&search->unchanged_card)->oom.cause;
	char held[32], *how = NULL;
	if (search->card.options.other_bytes == 0)
		return;
	struct tn_attempt *attempt = add_attempt(search, "stop the other processes", TN_GUARANTEE_SAME);
	if (attempt == NULL)
		return;
	add_part(attempt, TN_CHANGE_WITHOUT_OTHERS);
	attempt->without_others = true;
	attempt->most = INT64_MAX;
	attempt->stage = TN_STAGE_RETRY_ON_CARD;
	attempt->found.remedy = cause != NULL && strcmp(cause, "other_process") == 0;
	if (asprintf(&how, "Stop the processes that hold %s of the card (nvidia-smi lists them), or wait for them.",
	             tn__human_bytes((int64_t)search->card.options.other_bytes, held)) >= 0)
		attempt->found.how = how;
}

/* ---- the order of trying ---- */

static bool
should_do(const struct tn_attempt *attempt, int64_t missing)
{
	return missing == TN_NO_FIGURE || attempt->most >= missing;
}

static int64_t order_missing; /* for qsort: single-threaded */

/* What should do and keeps the results; then the program's own options that should do, of which a smaller batch is the first that anybody
 * tries; then what saves a part; other trainings last. */
static int
turn(const struct tn_attempt *attempt)
{
	bool should = should_do(attempt, order_missing);
	if (attempt->found.results == TN_GUARANTEE_DIFFERENT)
		return should && attempt->found.own ? 1 : 3;
	return should ? 0 : 2;
}

static int
by_guarantee(const void *one, const void *two)
{
	const struct tn_attempt *a = one, *b = two;
	if ((a->most == INT64_MAX) != (b->most == INT64_MAX))
		return a->most == INT64_MAX ? -1 : 1;
	if (turn(a) != turn(b))
		return turn(a) - turn(b);
	if (a->found.own != b->found.own)
		return a->found.own ? -1 : 1;
	if (a->found.cost != b->found.cost)
		return a->found.cost - b->found.cost;
	if (a->found.pieces != b->found.pieces)
		return a->found.pieces - b->found.pieces; /* a batch is cut no more than it must be */
	return a->most == b->most ? 0 : a->most > b->most ? -1 : 1;
}

/* Nothing was learnt of the program: only what acts on every program. */
static void
add_unsurveyed(struct tn_fix_search *search)
{
	char id[] = "alloc";
	struct tn_possible_change row = { .id = id, .results = tn__change_facts(id)->results, .at_most = TN_NO_FIGURE };
	add_single(search, &row, "expandable_segments:True", 0);
}

void
tn__fix_plan(struct tn_fix_search *search)
{
	const struct tn_survey *survey = &search->unchanged_large.outcome.changes.survey;
	search->batch = tn__survey_batch(survey, INT_MAX);
	add_without_others(search);
	if (!survey->known)
		add_unsurveyed(search);
	for (size_t i = 0; i < survey->possible_count; i++)
		add_row(search, &survey->possible[i], survey);
	order_missing = search->missing;
	qsort(search->attempts, (size_t)search->count, sizeof(*search->attempts), by_guarantee);
	for (int i = 0; i < search->count; i++) {
		search->attempts[i].turn = i;
		if (search->direct && search->attempts[i].stage == TN_STAGE_WAITS && !search->attempts[i].wished)
			search->attempts[i].stage = TN_STAGE_RETRY_ON_CARD;
	}
	search->planned = true;
}

/* ---- combinations ---- */

static bool
saves_something(const struct tn_attempt *attempt, int64_t missing)
{
	bool short_of_it = attempt->found.end == TN_FIX_NOT_ENOUGH || tn__fix_is_narrow(&attempt->found);
	return attempt->stage == TN_STAGE_OVER && short_of_it && !attempt->without_others &&
	       (missing == TN_NO_FIGURE || attempt->found.saved >= missing / TN_FIX_LEAST_SHARE);
}

bool
tn__fix_excludes(const struct tn_attempt *one, const struct tn_attempt *two)
{
	for (size_t i = 0; i < one->found.part_count; i++)
		for (size_t j = 0; j < two->found.part_count; j++) {
			char id[64];
			if (tn__change_is(two->found.parts[j], tn__change_id(one->found.parts[i], id)))
				return true;
		}
	return false;
}

static bool
go_together(const struct tn_attempt *one, const struct tn_attempt *two)
{
	for (size_t i = 0; i < one->found.part_count; i++)
		for (size_t j = 0; j < two->found.part_count; j++)
			if (tn__change_conflicts(one->found.parts[i], two->found.parts[j]))
				return false;
	return !tn__fix_excludes(one, two);
}

static bool
has_part(const struct tn_attempt *attempt, const char *part)
{
	for (size_t i = 0; i < attempt->found.part_count; i++)
		if (strcmp(attempt->found.parts[i], part) == 0)
			return true;
	return false;
}

/* True when an attempt of exactly these changes is there. */
static bool
is_there(const struct tn_fix_search *search, const struct tn_attempt *a, const struct tn_attempt *b)
{
	for (int i = 0; i < search->count; i++) {
		const struct tn_attempt *attempt = &search->attempts[i];
		bool same = attempt->found.part_count == a->found.part_count + b->found.part_count;
		for (size_t j = 0; same && j < attempt->found.part_count; j++)
			same = has_part(a, attempt->found.parts[j]) || has_part(b, attempt->found.parts[j]);
		if (same)
			return true;
	}
	return false;
}

/* An attempt of the changes of both; NULL when there is no room for one more. */
static struct tn_attempt *
combine(struct tn_fix_search *search, int one, int two)
{
	const struct tn_attempt *a = &search->attempts[one], *b = &search->attempts[two];
	enum tn_guarantee results = a->found.results > b->found.results ? a->found.results : b->found.results;
	char words[700];
	snprintf(words, sizeof(words), "%s, and %s", a->found.title, b->found.title);
	int cost = a->found.cost + b->found.cost;
	int pieces = a->found.pieces > b->found.pieces ? a->found.pieces : b->found.pieces;
	bool remedy = a->found.remedy || b->found.remedy, own = a->found.own && b->found.own;
	struct tn_attempt *made = add_attempt(search, words, results);
	if (made == NULL)
		return NULL;
	for (size_t i = 0; i < a->found.part_count; i++)
		add_part(made, a->found.parts[i]);
	for (size_t i = 0; i < b->found.part_count; i++)
		add_part(made, b->found.parts[i]);
	made->found.cost = cost;
	made->found.pieces = pieces;
	made->found.remedy = remedy;
	made->found.own = own;
	made->most = a->found.saved + b->found.saved;
	made->stage = search->direct ? TN_STAGE_RETRY_ON_CARD : TN_STAGE_WAITS;
	return made;
}

struct pair {
	int one, two;
	int rank; /* worse results and more time last */
	int64_t sum;
};

static int
by_rank(const void *one, const void *two)
{
	const struct pair *a = one, *b = two;
	if (a->rank != b->rank)
		return a->rank - b->rank;
	return a->sum == b->sum ? 0 : a->sum > b->sum ? -1 : 1;
}

/* Adds the most promising combinations of an attempt of `parts` changes and a single one. */
void
tn__fix_plan_combinations(struct tn_fix_search *search, size_t parts, size_t most, bool only_promising, double share)
{
	struct pair pairs[512];
	size_t count = 0;
	for (int i = 0; i < search->count; i++)
		for (int j = 0; j < search->count && count < sizeof(pairs) / sizeof(pairs[0]); j++) {
			const struct tn_attempt *a = &search->attempts[i], *b = &search->attempts[j];
			if (a->found.part_count != parts || b->found.part_count != 1 || (parts == 1 && j <= i) ||
			    !saves_something(a, search->missing) || !saves_something(b, search->missing) || !go_together(a, b) ||
			    is_there(search, a, b))
				continue;
			int64_t sum = a->found.saved + b->found.saved;
			enum tn_guarantee worst = a->found.results > b->found.results ? a->found.results : b->found.results;
			bool kept = worst != TN_GUARANTEE_DIFFERENT;
			bool reaches = search->missing == TN_NO_FIGURE || (double)sum >= share * (double)search->missing;
			pairs[count++] = (struct pair){ i, j,
				                            (reaches ? 0 : 1000) + (kept ? 0 : 100) + a->found.cost + b->found.cost,
				                            sum };
		}
	qsort(pairs, count, sizeof(pairs[0]), by_rank);
	for (size_t i = 0; i < count && i < most && !(only_promising && pairs[i].rank >= 100); i++)
		(void)combine(search, pairs[i].one, pairs[i].two);
}

/* A single change that keeps the results, and was not seen to be of no use. */
static bool
may_join(const struct tn_attempt *attempt)
{
	const struct tn_fix_change *found = &attempt->found;
	bool judged = attempt->stage == TN_STAGE_OVER || found->end == TN_FIX_FITS;
	return found->part_count == 1 && !attempt->wished && found->results != TN_GUARANTEE_DIFFERENT &&
	       !attempt->without_others &&
	       (!judged || found->end == TN_FIX_NOT_ENOUGH || found->end == TN_FIX_NO_HELP || tn__fix_is_narrow(found));
}

/* What a change may save of the peak that is left under another, at most. */
static int64_t
most_of_rest(const struct tn_attempt *first, const struct tn_attempt *then)
{
	return tn__remedy_most(tn__change_facts(then->found.parts[0]), &first->large, then->found.pieces);
}

void
tn__fix_plan_sequels(struct tn_fix_search *search, int index, size_t most)
{
	const struct tn_attempt *first = &search->attempts[index];
	struct pair pairs[TN_FIX_ATTEMPTS];
	size_t count = 0;
	if (!may_join(first) || first->found.need == TN_NO_FIGURE || !tn__remedy_is_told(&first->large))
		return;
	int64_t rest = first->found.need + search->card.hidden - (int64_t)search->card.total;
	for (int i = 0; i < search->count; i++) {
		const struct tn_attempt *then = &search->attempts[i];
		if (i == index || !may_join(then) || !go_together(first, then) || is_there(search, first, then))
			continue;
		int64_t sum = most_of_rest(first, then);
		bool of_phase = tn__change_facts(then->found.parts[0])->phases[0] !=
		                '\0'; /* what is for this peak comes first */
		if (sum >= rest)
			pairs[count++] = (struct pair){ index, i, then->found.cost + (of_phase ? 0 : 100), sum };
	}
	qsort(pairs, count, sizeof(pairs[0]), by_rank);
	for (size_t i = 0; i < count && i < most; i++) {
		struct tn_attempt *made = combine(search, pairs[i].one, pairs[i].two);
		if (made != NULL)
			made->stage = TN_STAGE_RETRY_ON_CARD;
	}
}
