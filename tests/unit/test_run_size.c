/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes as people type them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/figure.h"
#include "tonnage/run.h"

static void
test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "12345", 12345 },
		{ "12B", 12 },
		{ "12GiB", UINT64_C(12) << 30 },
		{ "12gib", UINT64_C(12) << 30 },
		{ "11.75GiB", (UINT64_C(47) << 30) / 4 },
		{ "500MiB", UINT64_C(500) << 20 },
		{ "1400GiB", UINT64_C(1400) << 30 },
		{ ".5K", 512 },
		{ "1.T", UINT64_C(1) << 40 },
		{ "0.1KiB", 102 },
		{ "0.12345678901234567890GiB", (UINT64_C(123456) << 30) / 1000000 },
		{ "72057594037927936", UINT64_C(1) << 56 },
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t bytes = 1;
		assert_int_equal(tn_parse_size(good[i].text, &bytes), TN_OK);
		assert_int_equal(bytes, good[i].bytes);
	}
}

static void
test_not_sizes(void **state)
{
	static const char *const bad[] = { "",         "GiB", ".",    "-1",   "+1",     "12GB",
		                               "12 GiB",   "1e9", "1..2", "0x10", "12GiB ", "99999999999999999999999",
		                               "65537TiB", "nan" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t bytes = 77;
		assert_int_equal(tn_parse_size(bad[i], &bytes), TN_INVALID);
		assert_int_equal(bytes, 77);
	}
}

/* What we print to be typed again is read as the same number, and is short. */
static void
test_typed(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {
		{ 0, "0" },
		{ 1023, "1023" },
		{ 1024, "1KiB" },
		{ 524288000, "500MiB" },
		{ 524288001, "524288001" },
		{ UINT64_C(6) << 30, "6GiB" },
		{ UINT64_C(5) << 28, "1280MiB" },
		{ UINT64_C(1) << 50, "1024TiB" },
	};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char text[32];
		uint64_t bytes = 77;
		assert_string_equal(tn__typed_bytes(sizes[i].bytes, text), sizes[i].text);
		assert_int_equal(tn_parse_size(text, &bytes), TN_OK);
		assert_int_equal(bytes, sizes[i].bytes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sizes), cmocka_unit_test(test_not_sizes),
		                                cmocka_unit_test(test_typed) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
