/* SPDX-License-Identifier: Apache-2.0
 *
 * What page_course.c, page_alive.c and page_segments.c share: columns of numbers, and what was alive.
 */
#ifndef TN_REPORT_PAGE_COURSE_PARTS_H
#define TN_REPORT_PAGE_COURSE_PARTS_H

#include "base/error.h"
#include "report/page_object.h"
#include "report/page_tables.h"

#define TN_PAGE_LARGEST ((INT64_C(1) << 53) - 1) /* that a page can count to */
#define TN_PAGE_MANY_SITES (-1)

static inline json_int_t
tn__page_counted(uint64_t value)
{
	return value > (uint64_t)TN_PAGE_LARGEST ? TN_PAGE_LARGEST : (json_int_t)value;
}

/* An array that is written as differences. */
struct tn_page_steps {
	json_t *array;
	json_int_t before;
};

static inline struct tn_page_steps
tn__page_steps(void)
{
	return (struct tn_page_steps){ json_array(), 0 };
}

static inline void
tn__page_step(struct tn_page_steps *steps, json_int_t value)
{
	json_array_append_new(steps->array, json_integer(value - steps->before));
	steps->before = value;
}

static inline void
tn__page_push(json_t *array, json_int_t value)
{
	json_array_append_new(array, json_integer(value));
}

/* A change of a series, which is a category and a site. */
struct tn_page_change {
	int64_t site;
	int64_t bytes, blocks;
	uint64_t peak; /* of its series */
	uint32_t column, label;
	uint8_t category;
};

struct tn_page_alive {
	const struct tn_inspection *inspection;
	const struct tn_timeline *timeline;
	struct tn_page_tables *tables;
	struct tn_page_seen *seen;
	size_t seen_count;
	struct tn_page_change *changes;
	size_t change_count;
};

/* Frees what the lists hold. */
void tn__page_alive_free(struct tn_page_alive *alive);

/* Lists what was alive and sets `intervals` and `small` of the object. TN_NO_MEMORY. */
tn_status tn__page_write_alive(struct tn_page_alive *alive, json_t *object);

/* The `count` largest, one by one; and the changes, by series. */
json_t *tn__page_intervals(struct tn_page_alive *alive, size_t count);
json_t *tn__page_small(const struct tn_page_alive *alive);

/* Leaves one change for each column of each series. */
void tn__page_join_changes(struct tn_page_alive *alive);

/* Sets `segments` of the object. TN_NO_MEMORY. */
tn_status tn__page_write_segments(const struct tn_inspection *inspection, struct tn_page_tables *tables,
                                  json_t *object);

#endif
