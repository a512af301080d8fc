/* SPDX-License-Identifier: Apache-2.0
 *
 * Where tensors lie in files of weights: what a header says is found, and no damaged one leads anywhere it should not. Each
 * text is handed over in memory of its own size, so that sanitizers see a read beyond its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/weights_file.h"

struct seen {
	uint64_t count, bytes;
};

static void
count(void *context, uint64_t begin, uint64_t end)
{
	struct seen *seen = context;
	assert_true(begin <= end);
	seen->count++;
	seen->bytes += end - begin;
}

static bool
scan(const char *text, size_t size, struct seen *seen, uint64_t *end)
{
	char *exact = malloc(size > 0 ? size : 1);
	memcpy(exact, text, size);
	*seen = (struct seen){ 0, 0 };
	bool known = tn__safetensors_scan(exact, size, 100, count, seen, end);
	free(exact);
	return known;
}

static const char good[] =
	"{\"__metadata__\":{\"format\":\"pt\",\"x\":\"}]\\\"\"},\"a\\\"{\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
	" \"b\": {\"data_offsets\" : [ 24 , 30 ], \"new\": [{\"deep\": [1, \"]\"]}, null], \"dtype\":\"U8\",\"shape\":[6]}}  ";

static void
test_a_header(void **state)
{
	struct seen seen;
	uint64_t end;
	(void)state;
	assert_true(scan(good, sizeof(good) - 1, &seen, &end));
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.bytes, 30);
	assert_int_equal(end, 130);
}

static void
test_no_prefix_is_one(void **state)
{
	struct seen seen;
	uint64_t end;
	(void)state;
	for (size_t size = 0; size < sizeof(good) - 3; size++) /* without the spaces at its end it is whole */
		assert_false(scan(good, size, &seen, &end));
}

static void
test_damaged_bytes(void **state)
{
	char text[sizeof(good)];
	struct seen seen;
	uint64_t end;
	(void)state;
	for (size_t i = 0; i + 1 < sizeof(good); i++)
		for (int value = 0; value < 256; value++) {
			memcpy(text, good, sizeof(good));
			text[i] = (char)value;
			if (scan(text, sizeof(good) - 1, &seen, &end))
				assert_true(end >= 100 && end < INT64_MAX);
		}
}

static void
test_figures_that_do_not_fit(void **state)
{
	static const char *const wrong[] = { "{\"a\":{\"data_offsets\":[0,18446744073709551616]}}",
		                                 "{\"a\":{\"data_offsets\":[0,9223372036854775807]}}",
		                                 "{\"a\":{\"data_offsets\":[5,4]}}",
		                                 "{\"a\":{\"data_offsets\":[-1,4]}}",
		                                 "{\"a\":{\"data_offsets\":[4]}}",
		                                 "{\"a\":{}}",
		                                 "{\"a\":7}",
		                                 "[]",
		                                 "" };
	struct seen seen;
	uint64_t end;
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(scan(wrong[i], strlen(wrong[i]), &seen, &end));
}

struct file {
	const unsigned char *bytes;
	size_t size;
};

static bool
read_file(void *context, uint64_t at, void *buffer, size_t size)
{
	const struct file *file = context;
	if (at > file->size || size > file->size - at)
		return false;
	memcpy(buffer, file->bytes + at, size);
	return true;
}

/* An archive of one stored entry, "m/data/0", of five bytes. */
static const unsigned char archive[] =
	"PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0\5\0\0\0\10\0\0\0m/data/0hello"
	"PK\1\2\24\0\24\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0\5\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0m/data/0"
	"PK\5\6\0\0\0\0\1\0\1\0\66\0\0\0\53\0\0\0\0\0";

static void
test_an_archive(void **state)
{
	unsigned char text[sizeof(archive)];
	struct file file = { archive, sizeof(archive) - 1 };
	struct seen seen = { 0, 0 };
	(void)state;
	assert_true(tn__torch_zip_scan(file.size, read_file, &file, count, &seen));
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.bytes, 5);
	for (size_t i = 0; i < file.size; i++)
		for (int value = 0; value < 256; value++) {
			memcpy(text, archive, sizeof(archive));
			text[i] = (unsigned char)value;
			struct file damaged = { text, file.size };
			seen = (struct seen){ 0, 0 };
			if (tn__torch_zip_scan(damaged.size, read_file, &damaged, count, &seen))
				assert_true(seen.bytes <= file.size);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_header),      cmocka_unit_test(test_no_prefix_is_one),
		cmocka_unit_test(test_damaged_bytes), cmocka_unit_test(test_figures_that_do_not_fit),
		cmocka_unit_test(test_an_archive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
