/* SPDX-License-Identifier: Apache-2.0
 *
 * The pickle subset: what is read, what is refused and where, and that no input makes the reader allocate or go wild.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pickle/pickle.h"
#include "test_pickle_writer.h"

/* Writes what the visitor was told as text: containers get the number of their event as a word. */
struct record {
	char text[4096];
	size_t length;
	uint32_t events;
	const struct tn_pickle *pickle;
};

static void
say(struct record *record, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int count = vsnprintf(record->text + record->length, sizeof(record->text) - record->length, format, arguments);
	va_end(arguments);
	record->length += (size_t)count < sizeof(record->text) - record->length ? (size_t)count : 0;
}

static void
say_value(struct record *record, tn_value value)
{
	int64_t number;
	uint64_t large;
	double real;
	const struct tn_pickle *pickle = record->pickle;
	if (tn__value_kind(value) == TN_VALUE_NONE)
		say(record, " None");
	else if (tn__value_kind(value) == TN_VALUE_STRING)
		say(record, " '%s'", (const char *)tn__interned(pickle->strings, tn__value_number(value)));
	else if (tn__value_kind(value) >= TN_VALUE_LIST)
		say(record, " #%u", tn__pickle_word(pickle, value));
	else if (tn__pickle_int64(pickle, value, &number))
		say(record, " %lld", (long long)number);
	else if (tn__pickle_uint64(pickle, value, &large))
		say(record, " %llu", (unsigned long long)large);
	else if (tn__pickle_double(pickle, value, &real))
		say(record, " %g", real);
	else
		say(record, " huge");
}

static tn_status
tell(struct record *record, const char *what, const tn_value *values, size_t count, uint32_t *word)
{
	*word = ++record->events;
	say(record, "%s", what);
	for (size_t index = 0; index < count; index++)
		say_value(record, values[index]);
	say(record, ";");
	return TN_OK;
}

static tn_status
on_dict(void *context, const tn_value *pairs, size_t count, uint32_t *word)
{
	return tell(context, "dict", pairs, 2 * count, word);
}

static tn_status
on_list(void *context, const tn_value *items, size_t count, uint32_t *word)
{
	return tell(context, "list", items, count, word);
}

static tn_status
on_tuple(void *context, const tn_value *items, size_t count, uint32_t *word)
{
	return tell(context, "tuple", items, count, word);
}

static bool
is_value(uint32_t word)
{
	return word % 2 == 0;
}

static struct record told;

/* Reads bytes and leaves in `told` what the visitor heard and the value. */
static tn_status
read_limited(const void *bytes, size_t size, const struct tn_pickle_limits *limits, uint64_t memory)
{
	struct tn_budget budget = { .limit = memory };
	struct tn_intern strings;
	struct tn_cursor cursor;
	struct tn_pickle pickle;
	struct tn_pickle_visitor visitor = { &told, on_dict, on_list, on_tuple, is_value };
	tn_value value;
	told = (struct record){ .pickle = &pickle };
	tn__intern_init(&strings, &budget);
	tn__cursor_memory(&cursor, bytes, size);
	tn__pickle_init(&pickle, &cursor, &budget, &strings, limits, &visitor);
	tn_status status = tn__pickle_read(&pickle, &value);
	if (status == TN_OK)
		say_value(&told, value);
	tn__pickle_destroy(&pickle);
	tn__intern_destroy(&strings);
	tn__cursor_destroy(&cursor);
	assert_int_equal(budget.used, 0);
	return status;
}

static tn_status
read_bytes(const void *bytes, size_t size)
{
	return read_limited(bytes, size, NULL, 64 << 20);
}

#define READS(literal, expected)                               \
	do {                                                       \
		if (read_bytes(literal, sizeof(literal) - 1) != TN_OK) \
			fail_msg("%s", tn_error_text());                   \
		assert_string_equal(told.text, expected);              \
	} while (0)

#define FAILS(literal, status, words)                                       \
	do {                                                                    \
		assert_int_equal(read_bytes(literal, sizeof(literal) - 1), status); \
		assert_non_null(strstr(tn_error_text(), words));                    \
	} while (0)

static void
test_scalars(void **state)
{
	READS("\x80\x04N.", " None");
	READS("\x80\x02\x88.", " 1");
	READS("\x80\x05\x89.", " 0");
	READS("\x80\x04K\xff.", " 255");
	READS("\x80\x04M\xff\xff.", " 65535");
	READS("\x80\x04J\xff\xff\xff\xff.", " -1");
	READS("\x80\x04G\x3f\xf8\x00\x00\x00\x00\x00\x00.", " 1.5");
	READS("\x80\x04\x8c\x02hi.", " 'hi'");
	READS("\x80\x04X\x02\x00\x00\x00hi.", " 'hi'");
	READS("\x80\x04\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi.", " 'hi'");
}

static void
test_integers_of_any_length(void **state)
{
	READS("\x80\x04\x8a\x00.", " 0");
	READS("\x80\x04\x8a\x01\x80.", " -128");
	READS("\x80\x04\x8a\x02\xff\x00.", " 255");
	READS("\x80\x04\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", " 9223372036854775807");
	READS("\x80\x04\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", " -9223372036854775808");
	READS("\x80\x04\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", " 18446744073709551615");
	READS("\x80\x04\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00.", " 1");
	READS("\x80\x04\x8a\x09\xfe\xff\xff\xff\xff\xff\xff\xff\xff.", " -2");
	READS("\x80\x04\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x80.", " huge");
	READS("\x80\x04\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01.", " huge");
	READS("\x80\x04\x8b\x01\x00\x00\x00\x05.", " 5");
	FAILS("\x80\x04\x8b\xff\xff\xff\xff\x05.", TN_FORMAT, "byte 2: an integer of negative length");
	FAILS("\x80\x04\x8b\x01\x10\x00\x00\x05.", TN_LIMIT, "byte 2: an integer of 4097 bytes");
}

static void
test_containers(void **state)
{
	READS("\x80\x04].", " #0");
	READS("\x80\x04}.", " #0");
	READS("\x80\x04].", " #0");
	READS("\x80\x04).", "tuple; #1");
	READS("\x80\x04(K\x01K\x02t.", "tuple 1 2; #1");
	READS("\x80\x04K\x01\x85.", "tuple 1; #1");
	READS("\x80\x04K\x01K\x02\x86.", "tuple 1 2; #1");
	READS("\x80\x04K\x01K\x02K\x03\x87.", "tuple 1 2 3; #1");
	READS("\x80\x04](K\x01K\x02"
	      "e.",
	      "list 1 2; #1");
	READS("\x80\x04]K\x07"
	      "a.",
	      "list 7; #1");
	READS("\x80\x04}(K\x01NK\x02\x88u.", "dict 1 None 2 1; #1");
	READS("\x80\x04}K\x01K\x02s.", "dict 1 2; #1");
	READS("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00](](K\x01"
	      "ee.",
	      "list 1;list #1; #2");
}

static void
test_memo(void **state)
{
	READS("\x80\x04](\x8c\x01x\x94h\x00"
	      "e.",
	      "list 'x' 'x'; #1");
	READS("\x80\x02](\x8c\x01xq\x05h\x05"
	      "e.",
	      "list 'x' 'x'; #1");
	READS("\x80\x02](\x8c\x01xr\x03\x00\x00\x00j\x03\x00\x00\x00"
	      "e.",
	      "list 'x' 'x'; #1");
	READS("\x80\x04](]\x94h\x00h\x00"
	      "e.",
	      "list #0 #0 #0; #1"); /* empty, three times */
	FAILS("\x80\x04h\x00.", TN_FORMAT, "byte 2: memo entry 0 does not exist");
	FAILS("\x80\x04Nr\xff\xff\xff\xff.", TN_FORMAT, "byte 3: memo entry 4294967295 before");
	FAILS("\x80\x04\x94.", TN_FORMAT, "byte 2: nothing there");
}

static void
test_what_holds_itself(void **state)
{
	FAILS("\x80\x04]\x94h\x00"
	      "a.",
	      TN_FORMAT, "byte 6: a list holds itself");
	FAILS("\x80\x04]\x94(h\x00"
	      "e.",
	      TN_FORMAT, "byte 7: a list holds itself");
	FAILS("\x80\x04]\x94]h\x00"
	      "aa.",
	      TN_FORMAT, "byte 8: a list holds itself");
	FAILS("\x80\x04]\x94(]](K\x01h\x00"
	      "ee.",
	      TN_FORMAT, "byte 13: a list holds itself");
	FAILS("\x80\x04}\x94K\x01h\x00s.", TN_FORMAT, "byte 8: a dict holds itself");
	FAILS("\x80\x04]\x94}(K\x01h\x00u\x85"
	      "a.",
	      TN_FORMAT, "byte 12: a list holds itself");
}

/* The third list has the bytes of the second and takes over its word, until the memo entry is changed. */
static void
test_lists_of_references(void **state)
{
	READS("\x80\x04\x8c\x01x\x94](](h\x00"
	      "e](h\x00"
	      "e](h\x00"
	      "ee\x86.",
	      "list 'x';list 'x';list #1 #2 #2;tuple 'x' #3; #4");
	READS("\x80\x04\x8c\x01x\x94](](h\x00"
	      "e](h\x00"
	      "e\x8c\x01yq\x00](h\x00"
	      "ee\x86.",
	      "list 'x';list 'x';list 'y';list #1 #2 'y' #3;tuple 'x' #4; #5");
}

static void
test_what_is_refused(void **state)
{
	FAILS("\x80\x02"
	      "cos\nsystem\n(\x8c\x02idtR.",
	      TN_UNSUPPORTED, "byte 2: the pickle opcode GLOBAL,");
	FAILS("\x80\x04\x8c\x02os\x8c\x06system\x93.", TN_UNSUPPORTED, "byte 14: the pickle opcode STACK_GLOBAL,");
	FAILS("\x80\x04N)R.", TN_UNSUPPORTED, "REDUCE");
	FAILS("\x80\x04N)\x81.", TN_UNSUPPORTED, "NEWOBJ");
	FAILS("\x80\x04NNb.", TN_UNSUPPORTED, "BUILD");
	FAILS("\x80\x04(ios\nsystem\n.", TN_UNSUPPORTED, "INST");
	FAILS("\x80\x04NQ.", TN_UNSUPPORTED, "BINPERSID");
	FAILS("\x80\x04\x82\x01.", TN_UNSUPPORTED, "EXT1");
	FAILS("\x80\x04\xff.", TN_FORMAT, "byte 2: 0xff is no pickle opcode");
	FAILS("\x80\x07N.", TN_UNSUPPORTED, "byte 0: pickle protocol 7");
	FAILS("\x80\x01N.", TN_UNSUPPORTED, "byte 0: pickle protocol 1");
}

static void
test_broken_nesting(void **state)
{
	FAILS("\x80\x04"
	      "e.",
	      TN_FORMAT, "byte 2: a container ends that did not begin");
	FAILS("\x80\x04(e.", TN_FORMAT, "byte 3: items for something that is not a list");
	FAILS("\x80\x04}(e.", TN_FORMAT, "not a list");
	FAILS("\x80\x04](u.", TN_FORMAT, "not a dict");
	FAILS("\x80\x04](a.", TN_FORMAT, "an item is missing");
	FAILS("\x80\x04}(Nu.", TN_FORMAT, "a key of a dict without a value");
	FAILS("\x80\x04(](N.", TN_FORMAT, "ends with open containers");
	FAILS("\x80\x04.", TN_FORMAT, "ends with open containers");
	FAILS("\x80\x04NN.", TN_FORMAT, "ends with open containers");
	FAILS("\x80\x04](N\x86.", TN_FORMAT, "an item is missing");
	FAILS("\x80\x04"
	      "a.",
	      TN_FORMAT, "byte 2");
}

static void
test_cut_anywhere(void **state)
{
	static const char whole[] = "\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01x\x94](h\x01h\x01"
								"eX\x03\x00\x00\x00"
								"abc\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00K\x01M\x01\x02u.";
	assert_int_equal(read_bytes(whole, sizeof(whole) - 1), TN_OK);
	for (size_t size = 0; size < sizeof(whole) - 3; size++) {
		uint8_t *copy = malloc(size + 1); /* so that a sanitizer sees a read beyond the end */
		memcpy(copy + 1, whole, size);
		assert_int_equal(read_bytes(copy + 1, size), TN_FORMAT);
		assert_non_null(strstr(tn_error_text(), "the file ends in the middle"));
		free(copy);
	}
}

static void
test_strings_that_claim_too_much(void **state)
{
	FAILS("\x80\x04X\xff\xff\xff\xffhi.", TN_LIMIT, "byte 2: a string of 4294967295 bytes");
	FAILS("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi.", TN_LIMIT, "byte 2: a string");
	FAILS("\x80\x04X\xff\xff\xff\x00hi.", TN_FORMAT, "byte 2: the file ends");
}

/* A source that promises nothing: every call gives one byte. */
static tn_status
one_byte(void *context, void *buffer, size_t size, size_t *got)
{
	const char **at = context;
	memcpy(buffer, (*at)++, 1);
	*got = 1;
	return TN_OK;
}

static void
test_claims_are_not_allocated(void **state)
{
	struct tn_budget budget = { .limit = 1 << 20 };
	const char *at = "X\xff\xff\xff\x00short";
	struct tn_cursor cursor;
	tn__cursor_source(&cursor, one_byte, &at, &budget);
	assert_int_equal(tn__cursor_fill(&cursor, 10), TN_OK);
	assert_true(budget.used <= 256 << 10);
	assert_int_equal(tn__cursor_left(&cursor), 10);
	assert_int_equal(tn__cursor_offset(&cursor), 0);
	tn__cursor_destroy(&cursor);
	assert_int_equal(budget.used, 0);
}

static void
test_limits_can_be_set(void **state)
{
	struct tn_pickle_limits limits = tn__pickle_defaults();
	limits.depth = 3;
	assert_int_equal(read_limited("\x80\x04((((", 6, &limits, 1 << 20), TN_LIMIT);
	assert_non_null(strstr(tn_error_text(), "byte 5: nested more than 3 deep"));
	limits.memo = 1;
	assert_int_equal(read_limited("\x80\x04N\x94"
	                              "Nr\x64\x00\x00\x00",
	                              10, &limits, 1 << 20),
	                 TN_FORMAT);
	limits.string_bytes = 1;
	assert_int_equal(read_limited("\x80\x04\x8c\x02hi.", 7, &limits, 1 << 20), TN_LIMIT);
}

/* Ten million Nones on the stack, in a budget that holds fewer. */
static void
test_memory_is_limited(void **state)
{
	size_t size = 10 << 20;
	char *bytes = malloc(size);
	memset(bytes, 'N', size);
	memcpy(bytes, "\x80\x04", 2);
	assert_int_equal(read_limited(bytes, size, NULL, 1 << 20), TN_LIMIT);
	assert_non_null(strstr(tn_error_text(), "more than 1048576 bytes"));
	memset(bytes + 2, ']', size - 2);
	assert_int_equal(read_limited(bytes, size, NULL, 1 << 20), TN_LIMIT);
	free(bytes);
}

/* Each list holds the one before ten times: expanded, 10^100 items. */
static void
test_billion_laughs(void **state)
{
	struct writer writer;
	put_start(&writer);
	put_ops(&writer, "]\x94");
	for (uint32_t level = 0; level < 100; level++) {
		put_ops(&writer, "]\x94(");
		for (int times = 0; times < 10; times++)
			put_with(&writer, 'j', level);
		put_ops(&writer, "e");
	}
	put_ops(&writer, "\x86.");
	assert_int_equal(read_bytes(writer.bytes, writer.size), TN_FORMAT); /* 101 values remain */
	assert_true(told.events >= 100);
}

static void
test_interning(void **state)
{
	struct tn_budget budget = { .limit = 64 << 20 };
	struct tn_intern intern;
	tn__intern_init(&intern, &budget);
	for (uint32_t index = 0; index < 20000; index++) {
		char text[16];
		uint32_t number = 0, again = 1;
		snprintf(text, sizeof(text), "%u", index);
		assert_int_equal(tn__intern(&intern, text, strlen(text), &number), TN_OK);
		assert_int_equal(tn__intern(&intern, text, strlen(text), &again), TN_OK);
		assert_int_equal(number, index);
		assert_int_equal(again, index);
		assert_string_equal(tn__interned(&intern, number), text);
		assert_int_equal((uintptr_t)tn__interned(&intern, number) % 8, 0);
	}
	tn__intern_clear(&intern);
	uint32_t number = 1;
	assert_int_equal(tn__intern(&intern, "", 0, &number), TN_OK);
	assert_int_equal(number, 0);
	tn__intern_destroy(&intern);
	assert_int_equal(budget.used, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_integers_of_any_length),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_memo),
		cmocka_unit_test(test_what_holds_itself),
		cmocka_unit_test(test_lists_of_references),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_broken_nesting),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_strings_that_claim_too_much),
		cmocka_unit_test(test_claims_are_not_allocated),
		cmocka_unit_test(test_limits_can_be_set),
		cmocka_unit_test(test_memory_is_limited),
		cmocka_unit_test(test_billion_laughs),
		cmocka_unit_test(test_interning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
