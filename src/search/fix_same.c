/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a change that promises the same results made the same updates: as many samples, the same loss, the same learning
 * rates, and no loss of pieces that compares samples with each other. What a trial and the unchanged program were seen to do
 * (python/tonnage/changes/pace.py) is held against each other.
 */
#include <math.h>
#include <stdlib.h>

#include "search/fix_search.h"

#define NEAR 1e-4 /* shares and rates are sums of rounded numbers */

static bool
are_near(double one, double two)
{
	return fabs(one - two) <= NEAR * fmax(fabs(one), fabs(two));
}

/* The first update whose learning rate differs; -1: none of those that both have seen. */
static int64_t
other_rate(const struct tn_pace *before, const struct tn_pace *after)
{
	for (size_t i = 0; i < before->rate_count && i < after->rate_count; i++)
		if (!are_near(before->rates[i], after->rates[i]))
			return (int64_t)i;
	return -1;
}

/* A number of backward passes that is another one than when unchanged, where a batch may be cut into pieces. */
struct other_passes {
	int64_t was, is;               /* 0: there is none */
	int64_t pieces_was, pieces_is; /* backward passes of an update */
	bool since;                    /* since the update before; else what a gradient is made of */
};

static int64_t
passes_of(const struct tn_pace *pace)
{
	return pace->backward > 0 ? pace->backward : 1;
}

static bool
is_other(int64_t was, int64_t is, const struct tn_pace *before, const struct tn_pace *after)
{
	return was > 0 && is > 0 && was * passes_of(after) != is * passes_of(before);
}

/* A batch that has too few samples for all pieces, as the last of an epoch may: every pass since the update before adds to the gradient all the
 * same. */
static bool
is_short_batch(const struct tn_followed *was, const struct tn_followed *is, size_t i, int64_t pieces)
{
	return was->own[i] == was->since[i] && is->own[i] == is->since[i] && is->own[i] >= was->own[i] &&
	       is->own[i] < was->own[i] * pieces;
}

static struct other_passes
other_passes(const struct tn_pace *before, const struct tn_pace *after)
{
	for (size_t each = 0; each < before->followed_count && each < after->followed_count; each++) {
		const struct tn_followed *was = &before->followed[each], *is = &after->followed[each];
		for (size_t i = 0; i < was->count && i < is->count; i++) {
			if (is_short_batch(was, is, i, passes_of(after) / passes_of(before)))
				continue;
			if (is_other(was->own[i], is->own[i], before, after))
				return (struct other_passes){ was->own[i], is->own[i], passes_of(before), passes_of(after), false };
			if (i > 0 && is_other(was->since[i], is->since[i], before, after))
				return (struct other_passes){ was->since[i], is->since[i], 0, 0, true };
		}
	}
	return (struct other_passes){ 0 };
}

/* True where a side shrank, and by how much. */
static bool
shrank(int64_t before, int64_t after, double *by)
{
	*by = after > 0 ? (double)before / (double)after : 0;
	return after > 0 && after < before;
}

/* True where both sides of a product shrank alike, or what is summed away did and no side: samples are compared with each other, so
 * that the loss of a piece is no part of the loss of the whole. */
static bool
compares_samples(const struct tn_product *before, const struct tn_product *after)
{
	double rows, summed, columns;
	bool fewer_rows = shrank(before->rows, after->rows, &rows);
	bool fewer_columns = shrank(before->columns, after->columns, &columns);
	bool fewer_summed = shrank(before->summed, after->summed, &summed);
	if (fewer_rows && fewer_columns)
		return are_near(rows, columns);
	return fewer_summed && before->rows == after->rows && before->columns == after->columns;
}

/* The product of the unchanged loss that compares samples; NULL: none was seen. */
static const struct tn_product *
coupled_product(const struct tn_pace *before, const struct tn_pace *after)
{
	for (size_t i = 0; i < before->product_count && i < after->product_count; i++)
		if (compares_samples(&before->products[i], &after->products[i]))
			return &before->products[i];
	return NULL;
}

/* True where an update is made of as much in more calls, each as long as before along its first dimension: the batch is another one. */
static bool
is_cut_behind_first(const struct tn_pace *before, const struct tn_pace *after)
{
	return before->samples_of_call > 0 && before->samples_of_call == after->samples_of_call && before->elements > 0 &&
	       before->elements == after->elements;
}

static bool
is_of_other_samples(const struct tn_pace *before, const struct tn_pace *after)
{
	return before->samples > 0 && after->samples > 0 && before->samples != after->samples &&
	       !is_cut_behind_first(before, after);
}

/* Why the updates are not the same; the caller frees; NULL: nothing that was seen differs. */
static char *
difference(const struct tn_pace *before, const struct tn_pace *after)
{
	char *words = NULL;
	int64_t rate = other_rate(before, after);
	struct other_passes passes = other_passes(before, after);
	const struct tn_product *product = coupled_product(before, after);
	int length = 0;
	if (after->updates <= 0)
		length = asprintf(&words, "no update was seen");
	else if (is_of_other_samples(before, after))
		length = asprintf(&words, "an update uses %lld samples, %lld when unchanged", (long long)after->samples,
		                  (long long)before->samples);
	else if (before->tokens > 0 && after->tokens > 0 && before->tokens != after->tokens)
		length = asprintf(&words, "an update uses %lld tokens, %lld when unchanged", (long long)after->tokens,
		                  (long long)before->tokens);
	else if (!isnan(before->loss_share) && !isnan(after->loss_share) &&
	         !are_near(before->loss_share, after->loss_share))
		length = asprintf(&words, "the losses of an update are weighted %.3g times, %.3g times when unchanged",
		                  after->loss_share, before->loss_share);
	else if (passes.is > 0 && passes.since)
		length = asprintf(&words, "there are %lld backward passes from update to update, %lld when unchanged",
		                  (long long)passes.is, (long long)passes.was);
	else if (passes.is > 0)
		length = asprintf(
			&words,
			"the backward passes of an update and of its gradients are %lld and %lld, %lld and %lld when unchanged",
			(long long)passes.pieces_is, (long long)passes.is, (long long)passes.pieces_was, (long long)passes.was);
	else if (product != NULL)
		length = asprintf(&words, "the loss compares the samples of a batch with each other (a product of %lld x %lld)",
		                  (long long)product->rows, (long long)product->columns);
	else if (rate >= 0)
		length = asprintf(&words, "the learning rate of update %lld is %g, %g when unchanged", (long long)rate + 1,
		                  after->rates[rate], before->rates[rate]);
	return length < 0 ? NULL : words;
}

/* The same of every rank of a job: each is compared with itself. A process that is no rank is compared by what made most updates. */
static char *
difference_of_ranks(const struct tn_change_results *before, const struct tn_change_results *after)
{
	size_t ranks = 0;
	for (size_t i = 0; i < before->count; i++) {
		const struct tn_change_process *was = &before->processes[i];
		if (was->rank == TN_NO_FIGURE || was->pace.updates <= 0)
			continue;
		struct tn_pace is = { 0 };
		for (size_t j = 0; j < after->count; j++)
			if (after->processes[j].rank == was->rank && after->processes[j].pace.updates > is.updates)
				is = after->processes[j].pace;
		char *why = difference(&was->pace, &is), *words = NULL;
		ranks++;
		if (why == NULL)
			continue;
		if (asprintf(&words, "on rank %lld %s", (long long)was->rank, why) < 0)
			words = NULL;
		free(why);
		return words;
	}
	return ranks == 0 ? difference(&before->pace, &after->pace) : NULL;
}

/* Samples of an update over all ranks; 0: unknown. */
static int64_t
samples_of_update(const struct tn_change_results *results)
{
	int64_t sum = 0;
	for (size_t i = 0; i < results->count; i++) {
		const struct tn_change_process *process = &results->processes[i];
		if (process->rank == TN_NO_FIGURE || process->pace.updates <= 0)
			continue;
		if (process->pace.samples <= 0)
			return 0;
		sum += process->pace.samples;
	}
	return sum > 0 ? sum : results->pace.samples;
}

char *
tn__fix_other_updates(const struct tn_fix_search *search, const struct tn_trial *trial)
{
	const struct tn_change_results *before = &search->unchanged_large.outcome.changes;
	return before->pace.updates > 0 ? difference_of_ranks(before, &trial->outcome.changes) : NULL;
}

void
tn__fix_judge_updates(const struct tn_fix_search *search, struct tn_attempt *attempt, const struct tn_trial *trial)
{
	struct tn_fix_change *found = &attempt->found;
	if (attempt->without_others || found->results == TN_GUARANTEE_DIFFERENT)
		return;
	char *why = tn__fix_other_updates(search, trial), *how = NULL;
	if (why != NULL) {
		found->results = TN_GUARANTEE_DIFFERENT;
		if (asprintf(&how, "%s\nNot the same training: %s.", found->how != NULL ? found->how : "", why) >= 0) {
			free(found->how);
			found->how = how;
		}
	}
	free(why);
}

double
tn__fix_share_of_samples(const struct tn_fix_search *search, const struct tn_trial *trial)
{
	const struct tn_change_results *unchanged = &search->unchanged_large.outcome.changes,
								   *changed = &trial->outcome.changes;
	int64_t before = samples_of_update(unchanged), after = samples_of_update(changed);
	if (is_cut_behind_first(&unchanged->pace, &changed->pace))
		return 1;
	return before > 0 && after > 0 ? (double)after / (double)before : 0;
}
