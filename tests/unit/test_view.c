/* SPDX-License-Identifier: Apache-2.0
 *
 * Records are opened once and lent (src/analyze/view.h): parses and analyses are counted by wrapping what makes them, and what is lent
 * is released with the list (the sanitizer would report what is not).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/view.h"
#include "test_analyze_moments.h"

static int parses, analyses;

tn_status __real_tn_snapshot_open(const char *path, const struct tn_snapshot_options *options,
                                  struct tn_snapshot **snapshot);
tn_status
__wrap_tn_snapshot_open(const char *path, const struct tn_snapshot_options *options, struct tn_snapshot **snapshot)
{
	parses++;
	return __real_tn_snapshot_open(path, options, snapshot);
}

tn_status __real_tn__analysis_open(const struct tn_snapshot *snapshot, int device, struct tn_analysis **analysis);
tn_status
__wrap_tn__analysis_open(const struct tn_snapshot *snapshot, int device, struct tn_analysis **analysis)
{
	analyses++;
	return __real_tn__analysis_open(snapshot, device, analysis);
}

/* Writes a snapshot without events into a new file. */
static void
write_record(char path[32])
{
	strcpy(path, "/tmp/test-view-XXXXXX");
	int file = mkstemp(path);
	assert_true(file >= 0);
	begin();
	end_trace();
	tn_snapshot_close(finish(false));
	assert_int_equal(write(file, writer.bytes, writer.size), writer.size);
	close(file);
	parses = analyses = 0;
}

static void
test_record_is_parsed_once(void **state)
{
	char path[32];
	struct tn_views views = { 0 };
	struct tn_view *one, *other;
	write_record(path);
	assert_int_equal(tn__views_open(&views, path, &one), TN_OK);
	unlink(path); /* what is open needs no file */
	assert_int_equal(tn__views_open(&views, path, &other), TN_OK);
	assert_ptr_equal(one, other);
	assert_non_null(tn__view_snapshot(one));
	assert_int_equal(parses, 1);
	tn__views_close(&views);
}

static void
test_device_is_analysed_once(void **state)
{
	char path[32];
	struct tn_views views = { 0 };
	struct tn_view *view;
	const struct tn_analysis *analysis, *again, *second;
	const struct tn_part_list *parts, *parts_again;
	write_record(path);
	assert_int_equal(tn__views_open(&views, path, &view), TN_OK);
	assert_int_equal(tn__view_parts(view, 0, &parts), TN_OK);
	assert_int_equal(tn__view_analysis(view, 0, &analysis), TN_OK);
	assert_int_equal(tn__view_analysis(view, 1, &second), TN_OK);
	assert_int_equal(tn__view_analysis(view, 0, &again), TN_OK);
	assert_int_equal(tn__view_parts(view, 0, &parts_again), TN_OK);
	assert_ptr_equal(analysis, again);
	assert_ptr_equal(parts, parts_again);
	assert_int_equal(second->device, 1);
	assert_int_equal(analyses, 2);
	tn__views_close(&views);
	unlink(path);
}

static void
test_failure_is_not_kept(void **state)
{
	char path[32], kept[32];
	struct tn_views views = { 0 };
	struct tn_view *view = NULL;
	const struct tn_analysis *analysis;
	assert_int_equal(tn__views_open(&views, "/nonexistent/record", &view), TN_IO);
	assert_null(views.first);
	write_record(path);
	strcpy(kept, path);
	assert_int_equal(tn__views_open(&views, kept, &view), TN_OK);
	assert_int_equal(tn__view_analysis(view, -1, &analysis), TN_INVALID);
	assert_int_equal(tn__view_analysis(view, 0, &analysis), TN_OK);
	tn__views_close(&views);
	unlink(path);
}

static void
test_dropped_record_is_read_again(void **state)
{
	char path[32];
	struct tn_views views = { 0 };
	struct tn_view *view;
	write_record(path);
	assert_int_equal(tn__views_open(&views, path, &view), TN_OK);
	tn__views_drop(&views, "/another");
	assert_int_equal(tn__views_open(&views, path, &view), TN_OK);
	assert_int_equal(parses, 1);
	tn__views_drop(&views, path);
	assert_null(views.first);
	assert_int_equal(tn__views_open(&views, path, &view), TN_OK);
	assert_int_equal(parses, 2);
	tn__views_close(&views);
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_is_parsed_once),
		cmocka_unit_test(test_device_is_analysed_once),
		cmocka_unit_test(test_failure_is_not_kept),
		cmocka_unit_test(test_dropped_record_is_read_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
