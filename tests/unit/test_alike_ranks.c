/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom a rank that is not run is like, and what is called proven: meshes of two and three dimensions whose ranks do what they do by some of
 * their places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "supervise/internal.h"
#include "verdict/job.h"

#define DIMENSIONS 3

/* The last dimension is the innermost. */
struct mesh {
	int32_t sizes[DIMENSIONS];
	bool last_differs[DIMENSIONS]; /* who is last in it does something else, as the shortest of uneven parts */
	bool first_differs[DIMENSIONS];
};

static int32_t
ranks_of(const struct mesh *mesh)
{
	return mesh->sizes[0] * mesh->sizes[1] * mesh->sizes[2];
}

static int32_t
stride_of(const struct mesh *mesh, int dimension)
{
	int32_t stride = 1;
	for (int i = dimension + 1; i < DIMENSIONS; i++)
		stride *= mesh->sizes[i];
	return stride;
}

/* A number of what a rank does. */
static uint64_t
does(const struct mesh *mesh, int64_t rank)
{
	uint64_t hash = 1;
	for (int i = 0; i < DIMENSIONS; i++) {
		int64_t place = rank / stride_of(mesh, i) % mesh->sizes[i];
		hash = 4 * hash + (mesh->last_differs[i] && place == mesh->sizes[i] - 1) +
		       2 * (mesh->first_differs[i] && place == 0);
	}
	return hash;
}

/* What a run of these ranks leaves: a bit of `run` each. Every rank of the job says its groups. */
static void
look(struct tn_ledger *ledger, const struct mesh *mesh, uint32_t run, struct tn_report *report)
{
	tn__report_init(report);
	ledger->node_cards = (uint32_t)ranks_of(mesh);
	ledger->rank_count = 0;
	for (int32_t rank = 0; rank < ranks_of(mesh); rank++) {
		if (!(run & UINT32_C(1) << rank))
			continue;
		struct tn_ledger_rank *row = &ledger->ranks[ledger->rank_count++];
		*row = (struct tn_ledger_rank){ .pid = 1000 + rank, .rank = rank, .ranks = ranks_of(mesh) };
		row->marks[1].step = 1;
		row->marks[1].hash = does(mesh, rank);
		for (int i = 0, count = 0; i < DIMENSIONS; i++)
			if (mesh->sizes[i] > 1) {
				row->groups[count].ranks = mesh->sizes[i];
				row->groups[count++].stride = stride_of(mesh, i);
			}
		report->ranks[report->rank_count].rank = rank;
		report->ranks[report->rank_count++].pid = 1000 + rank;
	}
	tn__collect_job(ledger, report);
}

/* Two copies of a model in two uneven parts: the one that is not run has its part, not its neighbour's. */
static void
test_a_rank_is_like_the_one_with_its_part(void **state)
{
	struct tn_ledger *ledger = *state;
	struct mesh mesh = { .sizes = { 1, 2, 2 }, .last_differs = { false, false, true } };
	struct tn_report report;
	look(ledger, &mesh, 7, &report); /* 0, 1 and 2 */
	assert_int_equal(report.job.absent_count, 1);
	assert_int_equal(report.ranks[report.job.absent[0].like].rank, 1);
	assert_int_equal(report.job.absent[0].why, TN_LIKENESS_PLACE);
	assert_true(tn__job_is_proven(&report));
	assert_int_equal(tn__job_count_like(&report, &report.ranks[1], TN_LIKENESS_PLACE), 1);
	tn__report_free(&report);
	look(ledger, &mesh, 11,
	     &report); /* 0, 1 and 3: nobody has rank 2's part and nobody shows that copies are alike but 1 and 3 */
	assert_int_equal(report.job.absent_count, 1);
	assert_int_equal(report.ranks[report.job.absent[0].like].rank, 0);
	assert_int_equal(report.job.absent[0].why, TN_LIKENESS_PLACE);
	tn__report_free(&report);
	mesh.last_differs[1] = true; /* and the last copy does something else: no rank that is run is like the fourth */
	look(ledger, &mesh, 7, &report);
	assert_false(tn__job_is_proven(&report));
	tn__report_free(&report);
}

static void
test_what_is_proven_by_places_is_so(void **state)
{
	struct tn_ledger *ledger = *state;
	int proven = 0, open = 0;
	for (uint32_t seed = 1; seed <= 4000; seed++) {
		srand(seed);
		struct mesh mesh = { .sizes = { 1, 1, 1 } };
		for (int i = 0; i < DIMENSIONS; i++) {
			mesh.sizes[i] = 1 + rand() % 4;
			mesh.last_differs[i] = rand() % 3 == 0;
			mesh.first_differs[i] = rand() % 6 == 0;
		}
		if (ranks_of(&mesh) > 32)
			continue;
		struct tn_report report;
		look(ledger, &mesh, 1 | (uint32_t)rand() | (uint32_t)rand() << 16, &report);
		int32_t met = 0;
		for (size_t i = 0; i < report.job.absent_count; i++) {
			const struct tn_absent_rank *absent = &report.job.absent[i];
			met += absent->rank < ranks_of(&mesh);
			open += absent->why == TN_LIKENESS_NONE || absent->why == TN_LIKENESS_NOT_ITS_PLACE;
			if (absent->why != TN_LIKENESS_PLACE)
				continue;
			proven++;
			assert_int_equal(does(&mesh, absent->rank), does(&mesh, report.ranks[absent->like].rank));
		}
		assert_int_equal(met + (int32_t)report.rank_count, ranks_of(&mesh));
		tn__report_free(&report);
	}
	assert_true(proven > 100 && open > 100); /* both were met */
}

/* Where the groups do not tell two ranks apart, something that is not known does. */
static void
test_nothing_is_proven_by_places_that_tell_nothing(void **state)
{
	struct tn_ledger *ledger = *state;
	struct mesh mesh = { .sizes = { 1, 2, 2 }, .last_differs = { false, false, true } };
	struct tn_report report;
	look(ledger, &mesh, 7, &report);
	tn__report_free(&report);
	tn__report_init(&report);
	for (uint32_t i = 0; i < ledger->rank_count; i++) {
		ledger->ranks[i].groups[1].ranks = 0; /* only one kind of group is known */
		report.ranks[i].rank = ledger->ranks[i].rank;
		report.ranks[i].pid = ledger->ranks[i].pid;
	}
	report.rank_count = ledger->rank_count;
	tn__collect_job(ledger, &report);
	assert_int_not_equal(report.job.absent[0].why, TN_LIKENESS_PLACE);
	assert_false(tn__job_is_proven(&report));
	tn__report_free(&report);
}

static int
make_ledger(void **state)
{
	*state = calloc(1, sizeof(struct tn_ledger));
	return *state == NULL;
}

static int
free_ledger(void **state)
{
	free(*state);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_rank_is_like_the_one_with_its_part, make_ledger, free_ledger),
		cmocka_unit_test_setup_teardown(test_what_is_proven_by_places_is_so, make_ledger, free_ledger),
		cmocka_unit_test_setup_teardown(test_nothing_is_proven_by_places_that_tell_nothing, make_ledger, free_ledger),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
