/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading kernels' parameters out of cubins and fat binaries: plain, by LZ4, by zstd; cut anywhere, and with any byte changed,
 * there is a status and no read outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lz4.h>
#include <zstd.h>

#include "code/code.h"
#include "test_code_writer.h"

static const uint16_t three[] = { 8, 200, 4 };

static void
make_cubin(struct cubin *cubin)
{
	cubin_begin(cubin);
	cubin_kernel(cubin, "_Z6secondv", NULL, 0);
	cubin_kernel(cubin, "_Z5firstPf4Dimsi", three, 3);
	cubin_end(cubin);
}

enum packing { PLAIN, BY_LZ4, BY_ZSTD };

/* A fat binary with PTX before the cubin. Returns its bytes. */
static size_t
make_fat(unsigned char *out, const struct cubin *cubin, enum packing packing)
{
	static const uint64_t flags[] = { 0x11, 0x2011, 0x8011 };
	unsigned char packed[2 * CUBIN_ROOM];
	size_t bytes = cubin->size;
	if (packing == PLAIN)
		memcpy(packed, cubin->bytes, bytes);
	else if (packing == BY_LZ4)
		bytes = (size_t)LZ4_compress_default((const char *)cubin->bytes, (char *)packed, (int)bytes, sizeof(packed));
	else
		bytes = ZSTD_compress(packed, sizeof(packed), cubin->bytes, bytes, 1);
	struct {
		uint32_t magic;
		uint16_t version, bytes;
		uint64_t entries_bytes;
	} header = { 0xba55ed50, 1, 16, 0 };
	struct entry {
		uint16_t kind, unknown;
		uint32_t bytes;
		uint64_t padded;
		uint32_t packed, unknown_too;
		uint16_t minor, major;
		uint32_t architecture, name_offset, name_bytes;
		uint64_t flags, zero, plain;
	} ptx = { .kind = 1, .bytes = sizeof(ptx) + 16, .padded = 8 }, entry = { .kind = 2,
		                                                                     .bytes = sizeof(entry),
		                                                                     .padded = (bytes + 7) & ~(size_t)7,
		                                                                     .architecture = 75,
		                                                                     .flags = flags[packing] };
	if (packing != PLAIN) {
		entry.packed = (uint32_t)bytes;
		entry.plain = cubin->size;
	}
	header.entries_bytes = ptx.bytes + ptx.padded + entry.bytes + entry.padded;
	memset(out, 0, sizeof(header) + header.entries_bytes);
	memcpy(out, &header, sizeof(header));
	size_t at = sizeof(header);
	memcpy(out + at, &ptx, sizeof(ptx));
	at += ptx.bytes + ptx.padded;
	memcpy(out + at, &entry, sizeof(entry));
	memcpy(out + at + sizeof(entry), packed, bytes);
	return sizeof(header) + header.entries_bytes;
}

static void
check(const void *image, size_t room)
{
	struct tn_code *code = NULL;
	uint16_t sizes[TN_CODE_PARAMETERS_MAX];
	assert_int_equal(tn__code_open(image, room, &code), TN_OK);
	assert_int_equal(tn__code_parameters(code, "_Z5firstPf4Dimsi", sizes), 3);
	assert_memory_equal(sizes, three, sizeof(three));
	assert_int_equal(tn__code_parameters(code, "_Z6secondv", sizes), 0);
	assert_int_equal(tn__code_parameters(code, "_Z5thirdv", sizes), -1);
	tn__code_close(code);
}

static void
test_every_packing_says_the_same(void **state)
{
	struct cubin cubin;
	unsigned char fat[3 * CUBIN_ROOM];
	make_cubin(&cubin);
	check(cubin.bytes, cubin.size);
	check(cubin.bytes, SIZE_MAX);
	for (enum packing packing = PLAIN; packing <= BY_ZSTD; packing++) {
		size_t size = make_fat(fat, &cubin, packing);
		check(fat, size);
		check(fat, SIZE_MAX);
	}
}

/* What a module may be loaded from besides: text of PTX, and an empty one. */
static void
test_anything_else_is_refused(void **state)
{
	struct tn_code *code = NULL;
	char *empty = calloc(1, 1);
	assert_int_equal(tn__code_open(empty, SIZE_MAX, &code), TN_FORMAT);
	assert_int_equal(tn__code_open("\x7f"
	                               "EL",
	                               SIZE_MAX, &code),
	                 TN_FORMAT);
	assert_int_equal(tn__code_open(".version 8.0\n.target sm_75", SIZE_MAX, &code), TN_FORMAT);
	assert_null(code);
	free(empty);
}

/* In a block of exactly that size, so that a sanitizer sees what is read beyond. Returns whether it could be opened. */
static bool
try_exactly(const unsigned char *bytes, size_t size)
{
	unsigned char *block = malloc(size ? size : 1);
	struct tn_code *code = NULL;
	uint16_t sizes[TN_CODE_PARAMETERS_MAX];
	memcpy(block, bytes, size);
	bool opened = tn__code_open(block, size, &code) == TN_OK;
	if (opened)
		assert_in_range(tn__code_parameters(code, "_Z5firstPf4Dimsi", sizes) + 1, 0, 4);
	else
		assert_null(code);
	tn__code_close(code);
	free(block);
	return opened;
}

static void
test_cut_anywhere(void **state)
{
	struct cubin cubin;
	unsigned char fat[3 * CUBIN_ROOM];
	make_cubin(&cubin);
	for (enum packing packing = PLAIN; packing <= BY_ZSTD; packing++) {
		size_t size = make_fat(fat, &cubin, packing);
		for (size_t cut = 0; cut < size; cut++)
			assert_false(try_exactly(fat, cut));
		assert_true(try_exactly(fat, size));
	}
	for (size_t cut = 0; cut < cubin.size; cut++)
		assert_false(try_exactly(cubin.bytes, cut));
}

/* Sizes in headers that a changed byte makes huge must not be asked of the heap: the room bounds them all but the unpacked
 * size, which has a bound of its own. */
static void
test_any_byte_changed(void **state)
{
	static const unsigned char changes[] = { 0x01, 0x80, 0xff };
	struct cubin cubin;
	unsigned char fat[3 * CUBIN_ROOM];
	make_cubin(&cubin);
	for (size_t change = 0; change < sizeof(changes); change++) {
		for (size_t i = 0; i < cubin.size; i++) {
			cubin.bytes[i] ^= changes[change];
			try_exactly(cubin.bytes, cubin.size);
			cubin.bytes[i] ^= changes[change];
		}
		for (enum packing packing = PLAIN; packing <= BY_ZSTD; packing++) {
			size_t size = make_fat(fat, &cubin, packing);
			for (size_t i = 0; i < size; i++) {
				fat[i] ^= changes[change];
				try_exactly(fat, size);
				fat[i] ^= changes[change];
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_packing_says_the_same),
		cmocka_unit_test(test_anything_else_is_refused),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_any_byte_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
