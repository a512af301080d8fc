/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of extents against an array of bytes: random extents come and go, by the thousand, so that blocks fill, split, empty
 * and join.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vgpu/core/extents.h"

#define ROOM 20000
#define BASE UINT64_C(0x300000000000)

static unsigned char value[ROOM];
static bool known[ROOM];

static uint32_t
draw(uint32_t below)
{
	static uint64_t state = 88172645463325252;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16) % below;
}

static void
add(uint64_t at, uint64_t size, bool own)
{
	struct tn_extent extent = { .address = BASE + at, .size = size };
	tn__extents_cut(extent.address, size);
	if (own) {
		extent.bytes = malloc(size);
		assert_non_null(extent.bytes);
		for (uint64_t i = 0; i < size; i++)
			extent.bytes[i] = value[at + i] = (unsigned char)draw(256);
	} else {
		extent.pattern_bytes = (uint8_t)(1 + draw(16));
		for (size_t i = 0; i < extent.pattern_bytes; i++)
			extent.pattern[i] = (unsigned char)draw(256);
		for (uint64_t i = 0; i < size; i++)
			value[at + i] = extent.pattern[i % extent.pattern_bytes];
	}
	memset(&known[at], 1, size);
	assert_true(tn__extents_add(&extent));
}

static void
cut(uint64_t at, uint64_t size)
{
	memset(&known[at], 0, size);
	tn__extents_cut(BASE + at, size);
}

/* The whole table is in order, does not overlap, and says what the array says. */
static void
check(void)
{
	static bool seen[ROOM];
	struct tn_place place;
	uint64_t end = 0, stored = 0;
	size_t count = 0;
	memset(seen, 0, sizeof(seen));
	for (struct tn_extent *extent = tn__extents_first(&place, 0); extent; extent = tn__extents_next(&place)) {
		unsigned char bytes[64];
		uint64_t at = extent->address - BASE;
		assert_true(extent->address >= end && extent->size > 0);
		end = extent->address + extent->size;
		tn__extent_copy(extent, extent->address, end, bytes);
		assert_memory_equal(bytes, &value[at], extent->size);
		memset(&seen[at], 1, extent->size);
		stored += extent->bytes ? extent->size : 0;
		count++;
	}
	assert_memory_equal(seen, known, sizeof(seen));
	assert_int_equal(count, tn__extents_count());
	assert_int_equal(stored, tn__extents_stored());
}

/* Any part of it is found and read as the whole. */
static void
check_part(uint64_t at, uint64_t size)
{
	unsigned char bytes[512];
	uint64_t read = 0;
	struct tn_place place;
	struct tn_extent *first = tn__extents_first(&place, BASE + at);
	for (uint64_t i = 0; i < size; i++)
		read += known[at + i];
	assert_int_equal(tn__extents_read(BASE + at, bytes, size, TN_KNOWN), read);
	assert_int_equal(tn__extents_cover(BASE + at, size), read == size);
	assert_true(!known[at] || (first && first->address <= BASE + at));
	for (uint64_t i = 0; i < size; i++)
		assert_true(!known[at + i] || bytes[i] == value[at + i]);
}

static void
test_random(void **state)
{
	for (int phase = 0; phase < 6; phase++) {
		for (int i = 0; i < 8000; i++) {
			uint64_t size = 1 + draw(phase % 2 ? 60 : 4), at = draw((uint32_t)(ROOM - size));
			if (draw(8) < (phase % 2 ? 6U : 1U))
				cut(at, size);
			else
				add(at, size, draw(2));
			check_part(draw(ROOM - 500), 1 + draw(500));
		}
		check();
	}
	tn__extents_clear();
	memset(known, 0, sizeof(known));
	check();
}

/* In rising and falling order, and what is pinned stays. */
static void
test_order(void **state)
{
	for (uint64_t i = 0; i < 2000; i++)
		add(i * 3, 2, true);
	for (uint64_t i = 2000; i-- > 0;)
		add(10000 + i * 3, 2, false);
	check();
	struct tn_place place;
	for (struct tn_extent *extent = tn__extents_first(&place, 0); extent; extent = tn__extents_next(&place))
		extent->pinned = (extent->address - BASE) % 2;
	tn__extents_clear();
	assert_int_equal(tn__extents_count(), 2000);
	for (struct tn_extent *extent = tn__extents_first(&place, 0); extent; extent = tn__extents_next(&place))
		assert_true(extent->pinned);
	tn__extents_cut(BASE, ROOM);
	assert_int_equal(tn__extents_count(), 0);
	assert_int_equal(tn__extents_stored(), 0);
	memset(known, 0, sizeof(known));
}

static void
test_limit(void **state)
{
	struct tn_extent extent = { .size = 1, .pattern_bytes = 1 };
	for (uint64_t i = 0; i < TN_EXTENTS_MAX; i++) {
		extent.address = BASE + 2 * i;
		assert_true(tn__extents_add(&extent));
	}
	extent.address++;
	assert_false(tn__extents_add(&extent));
	tn__extents_clear();
	assert_int_equal(tn__extents_count(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
