/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot by hand from its first event to a moment of it, for the tests of the analysis.
 */
#ifndef TEST_ANALYZE_MOMENTS_H
#define TEST_ANALYZE_MOMENTS_H

#include "analyze/analysis.h"
#include "test_analyze_at.h"
#include "test_analyze_writer.h"

enum { SEGMENT = 1 << 30, OTHER_SEGMENT = 1 << 29 };

static char metadata[1 << 14];

/* Adds a line to the metadata. */
static inline void __attribute__((format(printf, 1, 2)))
mark(const char *format, ...)
{
	va_list arguments;
	size_t length = strlen(metadata);
	va_start(arguments, format);
	assert_true((size_t)vsnprintf(metadata + length, sizeof(metadata) - length, format, arguments) <
	            sizeof(metadata) - length);
	va_end(arguments);
}

/* The time of a mark that comes before the event of this number. */
static inline long long
before(int number)
{
	return (1000 + number) * 1000LL;
}

static inline void
begin(void)
{
	open_snapshot();
	strcpy(metadata, "tonnage-metadata\t1\n");
	open_trace();
}

/* Ends the trace; the segments follow. */
static inline void
end_trace(void)
{
	close_trace();
	open_segments();
}

static inline struct tn_snapshot *
finish(bool with_metadata)
{
	struct tn_snapshot *snapshot = NULL;
	close_segments();
	if (with_metadata)
		put_metadata(metadata, strlen(metadata));
	close_snapshot();
	if (tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot) != TN_OK)
		fail_msg("%s", tn_error_text());
	return snapshot;
}

static inline struct tn_analysis *
analysed(const struct tn_snapshot *snapshot)
{
	struct tn_analysis *analysis = NULL;
	if (tn__analysis_open(snapshot, 0, &analysis) != TN_OK)
		fail_msg("%s", tn_error_text());
	return analysis;
}

static inline struct tn_moment
moment_of(const struct tn_snapshot *snapshot, uint32_t state)
{
	struct tn_moment moment;
	struct tn_analysis *analysis = analysed(snapshot);
	if (tn__moment_of_state(analysis, state, &moment) != TN_OK)
		fail_msg("%s", tn_error_text());
	tn__analysis_close(analysis);
	uint64_t sum = 0;
	for (int category = 0; category < TN_CATEGORIES; category++)
		sum += moment.by_category[category];
	assert_true(sum == moment.reserved);
	return moment;
}

static inline struct tn_moment
end_of(const struct tn_snapshot *snapshot)
{
	struct tn_moment moment;
	if (end_of_snapshot(snapshot, 0, &moment) != TN_OK)
		fail_msg("%s", tn_error_text());
	return moment;
}

static inline void
expect_line(const struct tn_line *line, const char *file, int number, bool backward)
{
	assert_non_null(line->file);
	assert_string_equal(line->file, file);
	assert_int_equal(line->line, number);
	assert_int_equal(line->backward, backward);
}

static inline const struct tn_holding *
holding_at(const struct tn_moment *moment, enum tn_category category, int line)
{
	for (size_t index = 0; index < moment->holder_count; index++) {
		if (moment->holders[index].category == category && moment->holders[index].at.line == line)
			return &moment->holders[index];
	}
	fail_msg("nothing of line %d in %s", line, tn__category_name(category));
	return NULL;
}

#endif
