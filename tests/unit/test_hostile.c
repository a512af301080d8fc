/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots that mean harm: each ends in a failure that names the offset, or is read, and never takes more host memory
 * than a small multiple of its own size. Every allocation is counted.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tonnage/snapshot.h"

enum { INPUT_BYTES = 1 << 20, SMALL_BYTES = 64 << 10 };

/* ---- host memory, counted ---- */

static size_t held, peak;

void *__real_realloc(void *memory, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void __real_free(void *memory);

static void *
counted(void *memory)
{
	held += memory ? malloc_usable_size(memory) : 0;
	peak = held > peak ? held : peak;
	return memory;
}

void *
__wrap_malloc(size_t size)
{
	return counted(__real_malloc(size));
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return counted(__real_calloc(count, size));
}

void *
__wrap_realloc(void *memory, size_t size)
{
	size_t old = memory ? malloc_usable_size(memory) : 0;
	void *grown = __real_realloc(memory, size);
	held -= grown ? old : 0;
	return counted(grown);
}

void
__wrap_free(void *memory)
{
	held -= memory ? malloc_usable_size(memory) : 0;
	__real_free(memory);
}

/* ---- writing ---- */

static uint8_t input[INPUT_BYTES + 4096];
static size_t size;

static void
put(const void *bytes, size_t count)
{
	assert_true(size + count <= sizeof(input));
	memcpy(input + size, bytes, count);
	size += count;
}

#define PUT(literal) put(literal, sizeof(literal) - 1)

static void
begin(void)
{
	size = 0;
	PUT("\x80\x04");
}

static void
put_text(const char *text)
{
	PUT("\x8c");
	put(&(uint8_t){ (uint8_t)strlen(text) }, 1);
	put(text, strlen(text));
}

/* The same bytes until the input is full. */
static void
fill_with(const void *bytes, size_t count)
{
	while (size + count <= INPUT_BYTES)
		put(bytes, count);
}

#define FILL(literal) fill_with(literal, sizeof(literal) - 1)

/* Reads the input and counts; the words of a failure begin with an offset. */
static tn_status
read_input(size_t *took)
{
	struct tn_snapshot *snapshot = NULL;
	size_t before = held;
	peak = held;
	tn_status status = tn_snapshot_parse(input, size, NULL, &snapshot);
	*took = peak - before;
	if (status == TN_OK)
		tn_snapshot_sum(snapshot, TN_ALL_DEVICES);
	else if (strncmp(tn_error_text(), "byte ", 5) != 0)
		fail_msg("no offset: %s", tn_error_text());
	tn_snapshot_close(snapshot);
	assert_int_equal(held, before);
	return status;
}

/* ---- wrong types ---- */

static const char *const keys[] = {
#define KEY(name, text) text,
#define ACTION(text)
#define STATE(text, state)
#include "trace/keys.def"
#undef KEY
#undef ACTION
#undef STATE
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static const struct {
	const char *bytes;
	size_t count;
} values[] = {
#define VALUE(literal) { literal, sizeof(literal) - 1 }
	VALUE("N"),
	VALUE("\x88"),
	VALUE("K\x05"),
	VALUE("J\xff\xff\xff\xff"),
	VALUE("\x8a\x09\xfe\xff\xff\xff\xff\xff\xff\xff\x00"),     /* 2^64 - 2 */
	VALUE("\x8a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"), /* 2^72 - 1 */
	VALUE("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"),         /* -2^63 */
	VALUE("G\x7f\xf0\x00\x00\x00\x00\x00\x00"),                /* infinity */
	VALUE("\x8c\x01x"),
	VALUE("]"),
	VALUE("](K\x01"
	      "e"),
	VALUE("](]e"),
	VALUE("](}e"),
	VALUE("}"),
	VALUE("}\x8c\x01xK\x01s"),
	VALUE(")"),
	VALUE("K\x01K\x02\x86"),
	VALUE("\x8c\x01xN\x86"),
	VALUE("]\x94(h\x00"
	      "e"),                 /* a list that holds itself */
	VALUE("}\x94(K\x01h\x00u"), /* a dict that holds itself */
#undef VALUE
};
enum { VALUES = sizeof(values) / sizeof(values[0]) };

enum dict { TOP, SEGMENT, BLOCK, HISTORY, FRAME, EVENT, ANNOTATION, DICTS };

static struct {
	enum dict dict;
	size_t key, value;
} odd;

/* The end of a dict, with the odd pair when it is this dict's turn. */
static void
end_dict(enum dict dict)
{
	if (odd.dict == dict) {
		put_text(keys[odd.key]);
		put(values[odd.value].bytes, values[odd.value].count);
	}
	PUT("u");
}

static void
put_frames(void)
{
	put_text("frames");
	PUT("](}(");
	put_text("filename");
	put_text("a.py");
	put_text("line");
	PUT("K\x01");
	end_dict(FRAME);
	PUT("e");
}

static void
put_segments(void)
{
	put_text("segments");
	PUT("](}(");
	put_text("total_size");
	PUT("K\x08");
	put_text("blocks");
	PUT("](}(");
	put_text("state");
	put_text("inactive");
	put_text("size");
	PUT("K\x08");
	put_text("history");
	PUT("](}(");
	put_text("real_size");
	PUT("K\x07");
	put_frames();
	end_dict(HISTORY);
	PUT("e");
	end_dict(BLOCK);
	PUT("e");
	end_dict(SEGMENT);
	PUT("e");
}

static void
put_odd_snapshot(void)
{
	begin();
	PUT("}(");
	put_segments();
	put_text("device_traces");
	PUT("](](}(");
	put_text("action");
	put_text("alloc");
	put_frames();
	end_dict(EVENT);
	PUT("ee");
	put_text("external_annotations");
	PUT("](}(");
	put_text("name");
	put_text("n");
	put_text("stage");
	put_text("START");
	end_dict(ANNOTATION);
	PUT("e");
	end_dict(TOP);
	PUT(".");
}

/* Every key in every dict with every kind of value. */
static void
test_wrong_types(void **state)
{
	size_t took, refused = 0, read = 0;
	for (odd.dict = TOP; odd.dict < DICTS; odd.dict++) {
		for (odd.key = 0; odd.key < KEYS; odd.key++) {
			for (odd.value = 0; odd.value < VALUES; odd.value++) {
				put_odd_snapshot();
				tn_status status = read_input(&took);
				assert_true(status == TN_OK || status == TN_FORMAT || status == TN_UNSUPPORTED);
				assert_true(took < SMALL_BYTES);
				*(status == TN_OK ? &read : &refused) += 1;
			}
		}
	}
	assert_true(read > 500 && refused > 500);
}

/* A figure of bytes is an integer from 0 to 2^64, or None. */
static void
test_sizes_that_are_none(void **state)
{
	static const struct {
		enum dict dict;
		const char *key;
	} sizes[] = {
		{ SEGMENT, "address" },
		{ SEGMENT, "total_size" },
		{ SEGMENT, "allocated_size" },
		{ SEGMENT, "active_size" },
		{ SEGMENT, "requested_size" },
		{ BLOCK, "address" },
		{ BLOCK, "size" },
		{ BLOCK, "requested_size" },
		{ HISTORY, "real_size" },
		{ EVENT, "addr" },
		{ EVENT, "size" },
		{ EVENT, "device_free" },
	};
	size_t took;
	for (size_t index = 0; index < sizeof(sizes) / sizeof(sizes[0]); index++) {
		odd.dict = sizes[index].dict;
		for (odd.key = 0; strcmp(keys[odd.key], sizes[index].key) != 0;)
			odd.key++;
		for (odd.value = 1; odd.value < VALUES - 2; odd.value++) {
			bool number = odd.value == 1 || odd.value == 2 || odd.value == 4;
			put_odd_snapshot();
			assert_int_equal(read_input(&took), number ? TN_OK : TN_FORMAT);
			if (!number && !strstr(tn_error_text(), sizes[index].key))
				fail_msg("%s: %s", sizes[index].key, tn_error_text());
		}
	}
}

/* ---- opcodes that import, call or build ---- */

static void
test_refused_opcodes(void **state)
{
	static const struct {
		const char *name;
		uint8_t byte;
	} refused[] = {
#define READ(name, byte)
#define REFUSE(name, byte) { #name, byte },
#include "pickle/opcodes.def"
#undef READ
#undef REFUSE
	};
	char words[100];
	size_t took;
	for (size_t index = 0; index < sizeof(refused) / sizeof(refused[0]); index++) {
		begin();
		PUT("\x8c\x02os\x8c\x06system");
		put(&refused[index].byte, 1);
		PUT("os\nsystem\n.");
		snprintf(words, sizeof(words), "byte 14: the pickle opcode %s,", refused[index].name);
		assert_int_equal(read_input(&took), TN_UNSUPPORTED);
		if (strncmp(tn_error_text(), words, strlen(words)) != 0)
			fail_msg("%s", tn_error_text());
		assert_true(took < SMALL_BYTES);
	}
}

/* ---- a megabyte of harm ---- */

static void
nested_lists(void)
{
	FILL("]");
}

static void
open_metadata(void)
{
	FILL("(");
}

static void
memo_of_one_object(void)
{
	PUT("]");
	FILL("\x94");
}

/* Entries as far up as is allowed: the offset of the opcode. */
static void
memo_that_climbs(void)
{
	while (size + 6 <= INPUT_BYTES) {
		uint32_t index = (uint32_t)size + 1;
		PUT("Nr");
		put(&index, 4);
	}
}

static void
memo_index_beyond(void)
{
	PUT("Nr\xff\xff\xff\x7f.");
}

/* Each list holds the one before ten times. */
static void
laughing_lists(void)
{
	PUT("]\x94");
	for (uint32_t level = 0; size + 100 <= INPUT_BYTES; level++) {
		PUT("]\x94(");
		for (int times = 0; times < 10; times++) {
			PUT("j");
			put(&level, 4);
		}
		PUT("e");
	}
}

/* Each tuple is the one before twice. */
static void
laughing_tuples(void)
{
	PUT(")\x94");
	for (uint32_t level = 0; size + 20 <= INPUT_BYTES; level++) {
		for (int times = 0; times < 2; times++) {
			PUT("j");
			put(&level, 4);
		}
		PUT("\x86\x94");
	}
}

/* Each dict of settings holds the one before under two keys. */
static void
laughing_dicts(void)
{
	PUT("}\x94");
	for (uint32_t level = 0; size + 30 <= INPUT_BYTES; level++) {
		PUT("}\x94(");
		for (int times = 0; times < 2; times++) {
			put_text(times ? "a" : "b");
			PUT("j");
			put(&level, 4);
		}
		PUT("u");
	}
}

static void
string_of_an_exabyte(void)
{
	PUT("\x8d\x00\x00\x00\x00\x00\x00\x00\x10short");
}

static void
string_of_the_limit(void)
{
	PUT("X\x00\x00\x00\x01short"); /* 16 MiB */
}

static void
integer_of_two_gigabytes(void)
{
	PUT("\x8b\xff\xff\xff\x7fshort");
}

static void
integer_of_negative_length(void)
{
	PUT("\x8b\xff\xff\xff\xffshort");
}

static void
floats(void)
{
	PUT("(");
	FILL("G\x3f\xf0\x00\x00\x00\x00\x00\x00");
}

static void
frame_of_an_exabyte(void)
{
	FILL("\x95\xff\xff\xff\xff\xff\xff\xff\x7f");
}

static void
different_texts(void)
{
	for (uint32_t number = 0; size + 6 <= INPUT_BYTES; number++) {
		PUT("\x8c\x04");
		put(&number, 4);
	}
}

static void
different_lists_of_references(void)
{
	for (uint32_t index = 0; index < 256; index++)
		PUT("]\x94");
	PUT("](");
	for (uint32_t number = 0; size + 10 <= INPUT_BYTES; number++) {
		PUT("](h");
		put(&number, 1);
		PUT("h");
		put((uint8_t *)&number + 1, 1);
		PUT("e");
	}
}

/* The smallest dicts that are told by a key, in a list. */
static void
rows_of(const char *key, const char *value)
{
	PUT("](}");
	put_text(key);
	PUT("\x94");
	put_text(value);
	PUT("\x94s");
	FILL("}h\x00h\x01s");
	PUT("e.");
}

static void
segments_without_blocks(void)
{
	PUT("](}");
	put_text("total_size");
	PUT("\x94K\x01s");
	FILL("}h\x00K\x01s");
	PUT("e.");
}

static void
events_alone(void)
{
	rows_of("action", "alloc");
}

static void
blocks_alone(void)
{
	rows_of("state", "x");
}

/* A stack that grows in the steps of a pickler, anew as often as there is room. */
static void
deep_stacks(void)
{
	for (int frame = 0; frame < 2; frame++) {
		PUT("}\x94(");
		put_text("filename");
		put_text(frame ? "a.py" : "b.py");
		put_text("line");
		PUT("K\x01u");
	}
	for (int stack = 0; size + 32 * 2003 <= INPUT_BYTES; stack++) {
		PUT("]");
		for (int batch = 0; batch < 32; batch++) {
			PUT("(");
			for (int frame = 0; frame < 1000; frame++)
				put(frame == stack ? "h\x01" : "h\x00", 2);
			PUT("e");
		}
	}
}

static const struct {
	const char *name;
	void (*write)(void);
	tn_status status;
	const char *words;
	size_t factor; /* of the input's size that may be taken, beside SMALL_BYTES */
} harms[] = {
	{ "nested lists", nested_lists, TN_FORMAT, "byte 1048576: the file ends in the middle", 24 },
	{ "open metadata", open_metadata, TN_LIMIT, "byte 202: nested more than 200 deep", 1 },
	{ "one object, memoised often", memo_of_one_object, TN_FORMAT, "the file ends in the middle", 8 },
	{ "memo entries far up", memo_that_climbs, TN_FORMAT, "the file ends in the middle", 12 },
	{ "a memo entry beyond the file", memo_index_beyond, TN_FORMAT, "byte 3: memo entry 2147483647 before", 0 },
	{ "laughing lists", laughing_lists, TN_FORMAT, "the file ends in the middle", 10 },
	{ "laughing tuples", laughing_tuples, TN_FORMAT, "the file ends in the middle", 4 },
	{ "laughing dicts", laughing_dicts, TN_FORMAT, "the file ends in the middle", 12 },
	{ "a string of 2^60 bytes", string_of_an_exabyte, TN_LIMIT, "byte 2: a string of 1152921504606846976 bytes", 0 },
	{ "a string of the limit", string_of_the_limit, TN_FORMAT, "byte 2: the file ends in the middle", 0 },
	{ "an integer of 2 GiB", integer_of_two_gigabytes, TN_LIMIT, "byte 2: an integer of 2147483647 bytes", 0 },
	{ "an integer of -1 bytes", integer_of_negative_length, TN_FORMAT, "byte 2: an integer of negative length", 0 },
	{ "floats", floats, TN_FORMAT, "the file ends in the middle", 6 },
	{ "frames of 2^63 bytes", frame_of_an_exabyte, TN_FORMAT, "the file ends in the middle", 0 },
	{ "different texts", different_texts, TN_FORMAT, "the file ends in the middle", 20 },
	{ "different lists", different_lists_of_references, TN_FORMAT, "the file ends in the middle", 16 },
	{ "segments", segments_without_blocks, TN_OK, "", 64 },
	{ "events", events_alone, TN_FORMAT, "no memory snapshot", 16 },
	{ "blocks", blocks_alone, TN_FORMAT, "not there", 0 },
	{ "deep stacks", deep_stacks, TN_FORMAT, "the file ends in the middle", 72 },
};

static void
test_a_megabyte_of_harm(void **state)
{
	for (size_t index = 0; index < sizeof(harms) / sizeof(harms[0]); index++) {
		size_t took;
		begin();
		harms[index].write();
		tn_status status = read_input(&took);
		const char *words = status == TN_OK ? "" : tn_error_text();
		print_message("  %-30s %8zu bytes read, %9zu bytes of memory\n", harms[index].name, size, took);
		if (status != harms[index].status || !strstr(words, harms[index].words))
			fail_msg("%s: %d %s", harms[index].name, status, words);
		if (took > SMALL_BYTES + harms[index].factor * size)
			fail_msg("%s: %zu bytes of memory", harms[index].name, took);
	}
}

/* ---- cycles ---- */

static void
test_cycles(void **state)
{
	static const struct {
		const char *bytes, *words;
	} cycles[] = {
		{ "}(\x8c\x08segments]\x94(h\xff"
		  "eu.",
		  "a list holds itself" },
		{ "}\x94(\x8c\x08segments](h\xff"
		  "eu.",
		  "a dict holds itself" },
		{ "}(\x8c\x0d"
		  "device_traces]\x94(h\xff"
		  "eu.",
		  "a list holds itself" },
		{ "](}(\x8c\x06"
		  "action\x8c\x05"
		  "alloc\x8c\x06"
		  "frames]\x94(h\xff"
		  "eue.",
		  "a list holds itself" },
		{ "](}\x94(\x8c\x06"
		  "blocks](h\xff"
		  "eue.",
		  "a dict holds itself" },
		{ "]\x94(h\xff"
		  "e.",
		  "a list holds itself" },
	};
	for (size_t index = 0; index < sizeof(cycles) / sizeof(cycles[0]); index++) {
		size_t took;
		begin();
		put(cycles[index].bytes, strlen(cycles[index].bytes));
		for (size_t at = 2; at < size; at++)
			input[at] = input[at] == 0xff ? 0 : input[at]; /* memo entry 0 */
		assert_int_equal(read_input(&took), TN_FORMAT);
		if (!strstr(tn_error_text(), cycles[index].words))
			fail_msg("%zu: %s", index, tn_error_text());
		assert_true(took < SMALL_BYTES);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_types),     cmocka_unit_test(test_sizes_that_are_none),
		cmocka_unit_test(test_refused_opcodes), cmocka_unit_test(test_a_megabyte_of_harm),
		cmocka_unit_test(test_cycles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
