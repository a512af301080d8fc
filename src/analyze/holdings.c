/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of blocks joined by category and line, parameters by the module that they are of as well, with what they have in common.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/labels.h"
#include "base/error.h"

enum {
	SMALL_PERCENT = 2, /* sizes and labels with less of a holding do not count */
	MOST_LABELS = 8,   /* that are told apart in one holding */
	MOST_LAYERS = 32,  /* different counts of layers */
	A_FEW = 4,         /* equal parts of one line, or visits of it, in a layer */
	STEPS_OF_LAYERS = 2,
	LEAST_LAYERS = 10, /* a count that explains less than this part of the layers' bytes is by chance */
};

struct words {
	struct tn_budget budget;
	char *text;
	size_t count, capacity;
};

/* ---- order ---- */

/* A snapshot keeps each text once, in the order in which its file has them: addresses are compared, since names may be
 * as long as their writer likes. NULL is last. */
static int
compare_texts(const char *left, const char *right)
{
	uintptr_t one = (uintptr_t)left - 1, other = (uintptr_t)right - 1;
	return (one > other) - (one < other);
}

static int
compare_lines(const struct tn_line *left, const struct tn_line *right)
{
	int order = compare_texts(left->file, right->file);
	if (order == 0)
		order = (left->line > right->line) - (left->line < right->line);
	if (order == 0)
		order = compare_texts(left->function, right->function);
	return order ? order : (left->backward > right->backward) - (left->backward < right->backward);
}

int
tn__compare_origins(const struct tn_piece *left, const struct tn_piece *right)
{
	int order = (left->category > right->category) - (left->category < right->category);
	if (order == 0)
		order = compare_lines(&left->origin.at, &right->origin.at);
	return order ? order : compare_lines(&left->origin.user, &right->origin.user);
}

/* One line may move several modules to the card: they are not joined. */
static int
compare_keys(const struct tn_piece *left, const struct tn_piece *right)
{
	int order = tn__compare_origins(left, right);
	if (order || left->category != TN_CATEGORY_parameters)
		return order;
	const char *one = tn__module_of_label(left->label), *other = tn__module_of_label(right->label);
	return strcmp(one ? one : "", other ? other : "");
}

static int
compare_pieces(const void *left, const void *right)
{
	const struct tn_piece *one = left, *other = right;
	int order = compare_keys(one, other);
	if (order)
		return order;
	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	return (one->origin.stack > other->origin.stack) - (one->origin.stack < other->origin.stack);
}

static int
compare_holdings(const void *left, const void *right)
{
	const struct tn_holding *one = left, *other = right;
	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	if (one->category != other->category)
		return one->category < other->category ? -1 : 1;
	int order = compare_lines(&one->at, &other->at);
	return order ? order : compare_lines(&one->user, &other->user);
}

void
tn__sort_holdings(struct tn_holding *holdings, size_t count)
{
	if (count)
		qsort(holdings, count, sizeof(*holdings), compare_holdings);
}

/* ---- equal parts ---- */

static size_t
common_divisor(size_t left, size_t right)
{
	while (right) {
		size_t rest = left % right;
		left = right;
		right = rest;
	}
	return left;
}

/* Bytes below which a part of a whole does not count. */
static uint64_t
least_of(uint64_t bytes)
{
	return bytes / 100 * SMALL_PERCENT;
}

/* How often the same set of sizes is there; the pieces are sorted by size. */
static size_t
count_alike(const struct tn_piece *pieces, size_t count, uint64_t bytes)
{
	size_t common = 0, end;
	for (size_t first = 0; first < count; first = end) {
		for (end = first + 1; end < count && pieces[end].bytes == pieces[first].bytes;)
			end++;
		if (pieces[first].bytes * (end - first) >= least_of(bytes))
			common = common_divisor(end - first, common);
	}
	return common ? common : 1;
}

static int
compare_visits(const void *left, const void *right)
{
	const struct tn_piece *one = left, *other = right;
	return (one->visit > other->visit) - (one->visit < other->visit);
}

/* How often the program came to the line of the pieces; 0 when unknown. The pieces are put in another order. */
static size_t
count_visits(struct tn_piece *pieces, size_t count)
{
	size_t visits = 1;
	qsort(pieces, count, sizeof(*pieces), compare_visits);
	for (size_t index = 1; index < count; index++)
		visits += pieces[index].visit != pieces[index - 1].visit;
	return pieces->visit ? visits : 0;
}

/* Whether pieces were made in more steps than layers are: one makes all of them, or two. */
static bool
are_of_many_steps(const struct tn_piece *pieces, size_t count)
{
	uint32_t steps[STEPS_OF_LAYERS];
	size_t known = 0;
	for (size_t index = 0; index < count; index++) {
		size_t same = 0;
		while (same < known && steps[same] != pieces[index].step)
			same++;
		if (same == STEPS_OF_LAYERS)
			return true;
		if (same == known)
			steps[known++] = pieces[index].step;
	}
	return false;
}

/* Equal parts of modules inside of others are counted against the visits: both have a few in each layer. Where they do
 * not agree some of a layer has gone, and nothing is said. */
static void
count_layers(struct tn_piece *pieces, size_t count, struct tn_holding *holding)
{
	size_t visits = holding->alike > 1 && holding->layers ? count_visits(pieces, count) : 0;
	if (visits < 2)
		return;
	size_t common = common_divisor(holding->alike, visits);
	size_t fewer = holding->alike < visits ? holding->alike : visits;
	holding->alike = common >= fewer / A_FEW ? common : 1;
}

/* How many layers there are, as holdings made in layers say: a count of equal parts, and the bytes that it explains. */
struct layers {
	size_t count;
	uint64_t bytes;
};

/* The counts of the largest holdings made in layers; returns how many. The holdings are sorted. */
static size_t
list_layers(const struct tn_holding *holdings, size_t count, struct layers layers[MOST_LAYERS])
{
	size_t known = 0;
	for (size_t index = 0; index < count; index++) {
		size_t same = 0;
		if (!holdings[index].layers || holdings[index].alike < 2)
			continue;
		while (same < known && layers[same].count != holdings[index].alike)
			same++;
		if (same == MOST_LAYERS)
			continue;
		if (same == known)
			layers[known++] = (struct layers){ holdings[index].alike, 0 };
		layers[same].bytes += holdings[index].bytes;
	}
	return known;
}

/* Of the counts that divide one, that which explains most; 1 when others explain far more than all of these. */
static size_t
choose_layers(const struct layers *layers, size_t known, size_t alike)
{
	uint64_t most = 0, all = 0;
	size_t chosen = 1;
	for (size_t index = 0; index < known; index++) {
		all += layers[index].bytes;
		if (alike % layers[index].count || layers[index].bytes <= most)
			continue;
		most = layers[index].bytes;
		chosen = layers[index].count;
	}
	return most < all / LEAST_LAYERS ? 1 : chosen;
}

/* A line that is met twice in a layer has twice as many equal parts as there are layers, and once more where a step ran
 * out in the middle of one. */
static void
settle_layers(struct tn_holding *holdings, size_t count)
{
	struct layers layers[MOST_LAYERS];
	size_t known = list_layers(holdings, count, layers);
	for (size_t index = 0; index < count; index++) {
		if (holdings[index].layers && holdings[index].alike > 1)
			holdings[index].alike = choose_layers(layers, known, holdings[index].alike);
	}
}

/* ---- labels ---- */

struct label {
	const char *text;
	uint64_t bytes;
};

static int
compare_labels(const void *left, const void *right)
{
	return strcmp(((const struct label *)left)->text, ((const struct label *)right)->text);
}

/* The labels that hold much of the pieces, sorted; returns how many. */
static size_t
list_labels(const struct tn_piece *pieces, size_t count, uint64_t bytes, struct label labels[MOST_LABELS])
{
	size_t known = 0, kept = 0;
	for (size_t index = 0; index < count; index++) {
		size_t same = 0;
		if (!pieces[index].label)
			continue;
		while (same < known && strcmp(labels[same].text, pieces[index].label) != 0)
			same++;
		if (same == MOST_LABELS)
			continue;
		if (same == known)
			labels[known++] = (struct label){ pieces[index].label, 0 };
		labels[same].bytes += pieces[index].bytes;
	}
	for (size_t index = 0; index < known; index++) {
		if (labels[index].bytes >= least_of(bytes))
			labels[kept++] = labels[index];
	}
	if (kept)
		qsort(labels, kept, sizeof(*labels), compare_labels);
	return kept;
}

static tn_status
add_bytes(struct words *words, const char *bytes, size_t length)
{
	TN_FORWARD_IF_ERROR(tn__grow(&words->budget, &words->text, &words->capacity, words->count + length + 1, 1));
	memcpy(words->text + words->count, bytes, length);
	words->count += length;
	words->text[words->count] = '\0';
	return TN_OK;
}

/* The last word of a label with its blank ("exp_avg float32"), or its end. */
static const char *
kind_of(const char *label)
{
	const char *blank = strrchr(label, ' ');
	return blank ? blank : label + strlen(label);
}

/* The labels of the same kind as one of them, then the kind. */
static tn_status
add_kind(struct words *words, const struct label *labels, size_t count, size_t first, bool *done)
{
	const char *kind = kind_of(labels[first].text);
	for (size_t index = first; index < count; index++) {
		const char *end = kind_of(labels[index].text);
		if (strcmp(end, kind) != 0)
			continue;
		if (index > first)
			TN_FORWARD_IF_ERROR(add_bytes(words, ", ", 2));
		TN_FORWARD_IF_ERROR(add_bytes(words, labels[index].text, (size_t)(end - labels[index].text)));
		done[index] = true;
	}
	return add_bytes(words, kind, strlen(kind));
}

/* "exp_avg float32" and "exp_avg_sq float32" become "exp_avg, exp_avg_sq float32". */
static tn_status
add_labels(struct words *words, const struct label *labels, size_t count)
{
	bool done[MOST_LABELS] = { false };
	for (size_t index = 0; index < count; index++) {
		if (done[index])
			continue;
		if (index)
			TN_FORWARD_IF_ERROR(add_bytes(words, ", ", 2));
		TN_FORWARD_IF_ERROR(add_kind(words, labels, count, index, done));
	}
	words->count++; /* the zero byte stays */
	return TN_OK;
}

/* What the pieces of one holding are; nothing for many tensors with names of their own. *place is where it begins in
 * the words, or SIZE_MAX. */
static tn_status
label_holding(struct words *words, const struct tn_piece *pieces, size_t count, uint64_t bytes, size_t *place)
{
	struct label labels[MOST_LABELS];
	bool names = pieces->category == TN_CATEGORY_parameters || pieces->category == TN_CATEGORY_gradients;
	*place = SIZE_MAX;
	size_t known = list_labels(pieces, count, bytes, labels);
	bool one = known == 1 && labels[0].bytes > bytes / 2;
	if (known == 0 || (names && count > 1 && !one))
		return TN_OK;
	*place = words->count;
	return add_labels(words, labels, known);
}

/* ---- joining ---- */

struct joining {
	struct tn_holding *holdings;
	size_t *label_places; /* by holding */
	size_t count;
	struct words words;
};

static tn_status
join_one(const struct tn_analysis *analysis, struct joining *joining, struct tn_piece *pieces, size_t count)
{
	uint64_t bytes = 0;
	for (size_t index = 0; index < count; index++)
		bytes += pieces[index].bytes;
	joining->holdings[joining->count] = (struct tn_holding){
		.category = (enum tn_category)pieces->category,
		.bytes = bytes,
		.blocks = count,
		.at = pieces->origin.at,
		.user = pieces->origin.user,
		.alike = count_alike(pieces, count, bytes),
		.layers = analysis->traits[pieces->origin.stack] & TN_STACK_NESTED && !are_of_many_steps(pieces, count),
		.in_module = analysis->traits[pieces->origin.stack] & TN_STACK_MODULE,
		.stack = pieces->origin.stack,
	};
	TN_FORWARD_IF_ERROR(label_holding(&joining->words, pieces, count, bytes, &joining->label_places[joining->count]));
	count_layers(pieces, count, &joining->holdings[joining->count]);
	joining->count++;
	return TN_OK;
}

static tn_status
join(const struct tn_analysis *analysis, struct tn_piece *pieces, size_t count, struct joining *joining)
{
	size_t end;
	joining->holdings = malloc((count + 1) * sizeof(*joining->holdings));
	joining->label_places = malloc((count + 1) * sizeof(*joining->label_places));
	TN_RETURN_IF(!joining->holdings || !joining->label_places, TN_NO_MEMORY, "no host memory for %zu holdings", count);
	if (count)
		qsort(pieces, count, sizeof(*pieces), compare_pieces);
	for (size_t first = 0; first < count; first = end) {
		for (end = first + 1; end < count && compare_keys(&pieces[first], &pieces[end]) == 0;)
			end++;
		TN_FORWARD_IF_ERROR(join_one(analysis, joining, &pieces[first], end - first));
	}
	for (size_t index = 0; index < joining->count; index++) {
		size_t place = joining->label_places[index];
		joining->holdings[index].label = place == SIZE_MAX ? NULL : joining->words.text + place;
	}
	tn__sort_holdings(joining->holdings, joining->count);
	settle_layers(joining->holdings, joining->count);
	return TN_OK;
}

tn_status
tn__join_pieces(const struct tn_analysis *analysis, struct tn_piece *pieces, size_t count, struct tn_moment *moment)
{
	struct joining joining = { .words.budget.limit = UINT64_MAX };
	tn_status status = join(analysis, pieces, count, &joining);
	free(joining.label_places);
	moment->holders = joining.holdings; /* tn__moment_free releases them in any case */
	moment->holder_count = joining.count;
	moment->labels = joining.words.text;
	return status;
}
