/* SPDX-License-Identifier: Apache-2.0
 *
 * Of a job of which not all ranks are run: which of those that are each of the others is taken to be like, and what proves it
 * (doc/design/0031-absent-ranks.md).
 */
#include <stdlib.h>
#include <string.h>

#include "supervise/internal.h"
#include "verdict/job.h"

#define MOST_GROUPS 32 /* kinds of groups of all ranks together: bits of a mask */

/* A kind of smaller groups that the job's ranks talk within: so many ranks, each so far from the next. */
struct group {
	int32_t ranks, stride;
	bool differ; /* two that are run and have different places in it alone did not do the same */
	bool first_same,
		last_same; /* of two such that did the same one has the first place, the last one: where uneven parts differ */
};

struct job {
	const struct tn_ledger_rank
		*rows[sizeof(((struct tn_report *)0)->ranks) / sizeof(((struct tn_report *)0)->ranks[0])];
	size_t count; /* of ranks that are run */
	struct group groups[MOST_GROUPS];
	size_t group_count;
	bool places_tell; /* no two ranks of the job have the same place in every group */
};

/* Whether two ranks did the same up to the end of the last step that both have marked. */
static bool
did_the_same(const struct tn_ledger_rank *one, const struct tn_ledger_rank *other)
{
	uint64_t last = 0;
	bool same = false;
	for (int i = 0; one != NULL && other != NULL && i < TN_LEDGER_MARKS; i++) {
		if (one->marks[i].step <= last || one->marks[i].step != other->marks[i].step)
			continue;
		last = one->marks[i].step;
		same = one->marks[i].hash == other->marks[i].hash;
	}
	return same;
}

static int64_t
place_in(const struct group *group, int64_t rank)
{
	return rank / group->stride % group->ranks;
}

/* A bit for each kind of groups in which two ranks have different places. */
static uint32_t
different_places(const struct job *job, int64_t one, int64_t other)
{
	uint32_t mask = 0;
	for (size_t i = 0; i < job->group_count; i++)
		if (place_in(&job->groups[i], one) != place_in(&job->groups[i], other))
			mask |= UINT32_C(1) << i;
	return mask;
}

static void
add_groups(struct job *job, const struct tn_ledger_rank *row)
{
	for (int i = 0; i < TN_LEDGER_GROUPS && row->groups[i].ranks > 0; i++) {
		struct group group = { .ranks = row->groups[i].ranks, .stride = row->groups[i].stride };
		size_t same = 0;
		while (same < job->group_count &&
		       (job->groups[same].ranks != group.ranks || job->groups[same].stride != group.stride))
			same++;
		if (same == job->group_count && same < MOST_GROUPS && group.stride > 0)
			job->groups[job->group_count++] = group;
	}
}

/* Two that are run and have different places in one kind of groups alone show whether these places make a difference. */
static void
compare_places(struct job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		for (size_t j = i + 1; j < job->count; j++) {
			const struct tn_ledger_rank *one = job->rows[i], *other = job->rows[j];
			if (one == NULL || other == NULL)
				continue;
			uint32_t mask = different_places(job, one->rank, other->rank);
			for (size_t k = 0; k < job->group_count; k++) {
				struct group *group = &job->groups[k];
				if (mask != UINT32_C(1) << k)
					continue;
				int64_t a = place_in(group, one->rank), b = place_in(group, other->rank), last = group->ranks - 1;
				bool same = did_the_same(one, other);
				group->differ |= !same;
				group->first_same |= same && (a == 0 || b == 0);
				group->last_same |= same && (a == last || b == last);
			}
		}
	}
}

static int
compare_numbers(const void *one, const void *two)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)two;
	return (a > b) - (a < b);
}

/* False where two ranks have the same place in every group, so that something else tells them apart. */
static bool
places_tell(const struct job *job, int64_t ranks)
{
	uint64_t *keys = malloc((size_t)ranks * sizeof(*keys));
	bool distinct = keys != NULL && job->group_count > 0;
	for (int64_t rank = 0; distinct && rank < ranks; rank++) {
		uint64_t key = 0;
		for (size_t i = 0; i < job->group_count; i++)
			key = key * (uint64_t)job->groups[i].ranks + (uint64_t)place_in(&job->groups[i], rank);
		keys[rank] = key;
	}
	if (distinct)
		qsort(keys, (size_t)ranks, sizeof(*keys), compare_numbers);
	for (int64_t rank = 1; distinct && rank < ranks; rank++)
		distinct = keys[rank] != keys[rank - 1];
	free(keys);
	return distinct;
}

/* The rank that is run and differs from `absent` only in places that are seen to make no difference, in the fewest of them; else `count`. */
static size_t
with_the_same_places(const struct job *job, int64_t absent)
{
	size_t best = job->count;
	int fewest = MOST_GROUPS + 1;
	for (size_t i = 0; job->places_tell && i < job->count; i++) {
		uint32_t mask = job->rows[i] != NULL ? different_places(job, absent, job->rows[i]->rank) : UINT32_MAX;
		bool alike = job->rows[i] != NULL;
		for (size_t k = 0; alike && k < job->group_count; k++)
			if (mask & UINT32_C(1) << k)
				alike = job->groups[k].first_same && job->groups[k].last_same && !job->groups[k].differ;
		if (!alike || __builtin_popcount(mask) >= fewest)
			continue;
		fewest = __builtin_popcount(mask);
		best = i;
	}
	return best;
}

/* Whether the ranks that are run and have the same place in a smaller group as `absent` did something else than the one that stands
 * for it, all of them. With two pipeline stages that take turns, the ranks beside an absent one may both be of the other stage. */
static bool
is_unlike_its_place(const struct job *job, const struct tn_ledger_rank *stand_in, int64_t absent)
{
	for (size_t i = 0; i < job->group_count; i++) {
		int64_t place = place_in(&job->groups[i], absent);
		bool alike = place == place_in(&job->groups[i], stand_in->rank), others = false;
		for (size_t j = 0; !alike && j < job->count; j++) {
			if (job->rows[j] == NULL || place_in(&job->groups[i], job->rows[j]->rank) != place)
				continue;
			others = true;
			alike = did_the_same(stand_in, job->rows[j]);
		}
		if (others && !alike)
			return true;
	}
	return false;
}

/* Whether the two that are run beside an absent one did the same; behind the last one, the two before. */
static bool
neighbours_are_alike(const struct job *job, size_t below)
{
	if (below + 1 < job->count)
		return did_the_same(job->rows[below], job->rows[below + 1]);
	return below > 0 && did_the_same(job->rows[below - 1], job->rows[below]);
}

static struct tn_absent_rank
liken(const struct job *job, int64_t rank, size_t below)
{
	struct tn_absent_rank absent = { .rank = rank, .like = below, .why = TN_LIKENESS_NONE };
	bool unlike = job->rows[below] == NULL || is_unlike_its_place(job, job->rows[below], rank);
	size_t other;
	if (!unlike && neighbours_are_alike(job, below)) {
		absent.why = TN_LIKENESS_NEXT;
	} else if ((other = with_the_same_places(job, rank)) < job->count) {
		absent.like = other;
		absent.why = TN_LIKENESS_PLACE;
	} else if (unlike) {
		absent.why = TN_LIKENESS_NOT_ITS_PLACE;
	}
	return absent;
}

void
tn__collect_job(const struct tn_ledger *ledger, struct tn_report *report)
{
	struct job job = { .count = report->rank_count };
	struct tn_job *found = &report->job;
	found->cards = ledger->node_cards;
	for (size_t i = 0; i < report->rank_count; i++) {
		job.rows[i] = tn__rank_row(ledger, report->ranks[i].pid);
		if (job.rows[i] == NULL)
			continue;
		add_groups(&job, job.rows[i]);
		if (job.rows[i]->ranks > found->ranks)
			found->ranks = job.rows[i]->ranks;
	}
	if (report->rank_count == 0 || found->ranks <= (int64_t)report->rank_count)
		return;
	compare_places(&job);
	job.places_tell = places_tell(&job, found->ranks);
	found->absent = calloc((size_t)found->ranks, sizeof(*found->absent));
	size_t below = 0;
	for (int64_t rank = 0; found->absent != NULL && rank < found->ranks; rank++) {
		while (below + 1 < report->rank_count && report->ranks[below + 1].rank <= rank)
			below++;
		if (report->ranks[below].rank != rank)
			found->absent[found->absent_count++] = liken(&job, rank, below);
	}
}
