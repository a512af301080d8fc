/* SPDX-License-Identifier: Apache-2.0
 *
 * Compressed snapshots: what is read, where cut and changed files are refused, and that bombs stay within the limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "tonnage/snapshot.h"

enum { ROOM = 256 << 10 };

struct bytes {
	uint8_t *at;
	size_t size;
};

static struct bytes plain; /* a whole snapshot */

static struct bytes
packed_by_zstd(const void *from, size_t size)
{
	struct bytes packed = { malloc(ROOM), 0 };
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 17); /* below the limits of every test */
	packed.size = ZSTD_compress2(context, packed.at, ROOM, from, size);
	assert_false(ZSTD_isError(packed.size));
	ZSTD_freeCCtx(context);
	return packed;
}

static struct bytes
packed_by_gzip(const void *from, size_t size)
{
	struct bytes packed = { malloc(ROOM), 0 };
	z_stream stream = { .next_in = (Bytef *)from, .avail_in = (uInt)size, .next_out = packed.at, .avail_out = ROOM };
	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	packed.size = stream.total_out;
	deflateEnd(&stream);
	return packed;
}

typedef struct bytes packer(const void *from, size_t size);
static packer *const packers[] = { packed_by_zstd, packed_by_gzip };
static const char *const names[] = { "zstd", "gzip" };
enum { PACKERS = 2 };

static void
append(struct bytes *bytes, const void *more, size_t size)
{
	assert_true(bytes->size + size <= ROOM);
	memcpy(bytes->at + bytes->size, more, size);
	bytes->size += size;
}

static tn_status
parse(struct bytes bytes, const struct tn_snapshot_options *options, uint64_t *reserved)
{
	struct tn_snapshot *snapshot = NULL;
	tn_status status = tn_snapshot_parse(bytes.at, bytes.size, options, &snapshot);
	if (status == TN_OK && reserved)
		*reserved = tn_snapshot_sum(snapshot, TN_ALL_DEVICES).reserved;
	tn_snapshot_close(snapshot);
	return status;
}

static void
expect_failure(struct bytes bytes, const struct tn_snapshot_options *options, tn_status status, const char *words)
{
	tn_status got = parse(bytes, options, NULL);
	if (got != status || strncmp(tn_error_text(), words, strlen(words)) != 0)
		fail_msg("status %d: %s", got, tn_error_text());
}

static uint64_t
reserved_of_plain(void)
{
	uint64_t reserved = 0;
	assert_int_equal(parse(plain, NULL, &reserved), TN_OK);
	assert_int_not_equal(reserved, 0);
	return reserved;
}

static void
test_both_are_read(void **state)
{
	for (int index = 0; index < PACKERS; index++) {
		uint64_t reserved = 0;
		struct bytes packed = packers[index](plain.at, plain.size);
		if (parse(packed, NULL, &reserved) != TN_OK)
			fail_msg("%s", tn_error_text());
		assert_int_equal(reserved, reserved_of_plain());
		free(packed.at);
	}
}

/* A source that gives one byte at a time. */
static tn_status
one_byte(void *context, void *buffer, size_t size, size_t *got)
{
	struct bytes *left = context;
	*got = left->size ? 1 : 0;
	if (left->size) {
		memcpy(buffer, left->at++, 1);
		left->size--;
	}
	return TN_OK;
}

static void
test_pieces_of_any_size(void **state)
{
	for (int index = 0; index < PACKERS; index++) {
		struct tn_snapshot *snapshot = NULL;
		struct bytes packed = packers[index](plain.at, plain.size), left = packed;
		assert_int_equal(tn_snapshot_read(one_byte, &left, NULL, &snapshot), TN_OK);
		assert_int_equal(tn_snapshot_sum(snapshot, TN_ALL_DEVICES).reserved, reserved_of_plain());
		tn_snapshot_close(snapshot);
		free(packed.at);
	}
}

/* Two halves packed by themselves, one behind the other; an empty one between them. */
static void
test_frames_in_a_row(void **state)
{
	for (int index = 0; index < PACKERS; index++) {
		uint64_t reserved = 0;
		size_t half = plain.size / 2;
		struct bytes first = packers[index](plain.at, half), none = packers[index]("", 0);
		struct bytes second = packers[index](plain.at + half, plain.size - half);
		append(&first, none.at, none.size);
		append(&first, second.at, second.size);
		assert_int_equal(parse(first, NULL, &reserved), TN_OK);
		assert_int_equal(reserved, reserved_of_plain());
		free(first.at);
		free(second.at);
		free(none.at);
	}
}

/* A skippable frame before the data, as an index of a seekable file is; zeros behind gzip, as tapes have. */
static void
test_what_is_passed_over(void **state)
{
	struct bytes index = { malloc(ROOM), 0 };
	struct bytes zstd = packed_by_zstd(plain.at, plain.size), gzip = packed_by_gzip(plain.at, plain.size);
	append(&index, "\x5e\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
	append(&index, zstd.at, zstd.size);
	assert_int_equal(parse(index, NULL, NULL), TN_OK);
	append(&gzip, (uint8_t[1000]){ 0 }, 1000);
	assert_int_equal(parse(gzip, NULL, NULL), TN_OK);
	append(&gzip, "more", 4);
	expect_failure(gzip, NULL, TN_FORMAT, "the gzip data is corrupt, at byte ");
	append(&zstd, "more", 4);
	expect_failure(zstd, NULL, TN_FORMAT, "the zstd data is corrupt, at byte ");
	free(index.at);
	free(zstd.at);
	free(gzip.at);
}

/* Cut at every byte, the checksum's last one included. */
static void
test_cut_anywhere(void **state)
{
	for (int index = 0; index < PACKERS; index++) {
		struct bytes packed = packers[index](plain.at, plain.size);
		char words[80];
		snprintf(words, sizeof(words), "the %s data ends in the middle, at byte", names[index]);
		for (size_t size = 4; size < packed.size; size++) {
			struct bytes copy = { malloc(size), size }; /* so that a sanitizer sees a read beyond the end */
			memcpy(copy.at, packed.at, size);
			expect_failure(copy, NULL, TN_FORMAT, words);
			free(copy.at);
		}
		free(packed.at);
	}
}

/* A changed bit anywhere behind the first bytes is noticed, or says nothing else than before. */
static void
test_changed_anywhere(void **state)
{
	for (int index = 0; index < PACKERS; index++) {
		struct bytes packed = packers[index](plain.at, plain.size);
		size_t refused = 0;
		for (size_t bit = 32; bit < 8 * packed.size; bit++) {
			uint64_t reserved = 0;
			packed.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (parse(packed, NULL, &reserved) == TN_OK)
				assert_int_equal(reserved, reserved_of_plain());
			else
				refused++;
			packed.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		assert_true(refused > 7 * (packed.size - 20));
		free(packed.at);
	}
}

/* A cut plain file inside: the offset is that of the plain bytes. */
static void
test_offsets_are_of_the_plain_bytes(void **state)
{
	for (int index = 0; index < PACKERS; index++) {
		char words[80];
		struct bytes packed = packers[index](plain.at, plain.size - 1);
		snprintf(words, sizeof(words), "decompressed from %s: byte %zu: the file ends in the middle", names[index],
		         plain.size - 1);
		expect_failure(packed, NULL, TN_FORMAT, words);
		free(packed.at);
	}
}

static void
test_compressed_twice(void **state)
{
	struct bytes once = packed_by_gzip(plain.at, plain.size), twice = packed_by_zstd(once.at, once.size);
	expect_failure(twice, NULL, TN_UNSUPPORTED, "decompressed from zstd: byte 0: compressed twice");
	free(once.at);
	free(twice.at);
}

/* A frame of zstd that asks for a window of 2^exponent bytes and holds nothing. */
static struct bytes
wide_frame(uint8_t frame[9], int exponent)
{
	static const uint8_t head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 0, 1, 0, 0 };
	memcpy(frame, head, sizeof(head));
	frame[5] = (uint8_t)((exponent - 10) << 3);
	return (struct bytes){ frame, 9 };
}

static void
test_windows_are_limited(void **state)
{
	uint8_t frame[9];
	struct tn_snapshot_options options = tn_snapshot_defaults();
	expect_failure(wide_frame(frame, 27), NULL, TN_FORMAT, "decompressed from zstd: byte 0: the file is empty");
	expect_failure(wide_frame(frame, 28), NULL, TN_LIMIT,
	               "the zstd data wants a window of more than 134217728 bytes, at byte 0");
	options.memory_bytes *= 2;
	expect_failure(wide_frame(frame, 28), &options, TN_FORMAT, "decompressed from zstd: byte 0: the file is empty");
	options.memory_bytes = 64 << 20;
	expect_failure(wide_frame(frame, 21), &options, TN_LIMIT,
	               "the zstd data wants a window of more than 1048576 bytes");
	options.memory_bytes = 1000;
	expect_failure(wide_frame(frame, 10), &options, TN_LIMIT, "more than 1000 bytes of memory would be needed");
}

/* `count` bytes of a pattern of two, packed; zstd makes it some ten thousand times smaller. */
static struct bytes
bomb(packer *pack, const char *pattern, size_t count)
{
	uint8_t *bytes = malloc(count);
	for (size_t index = 0; index < count; index++)
		bytes[index] = (uint8_t)pattern[index % 2];
	struct bytes packed = pack(bytes, count);
	free(bytes);
	return packed;
}

/* 65 MiB of PROTO opcodes, which do nothing: refused by what they come from. */
static void
test_bombs_of_time(void **state)
{
	struct tn_snapshot_options options = tn_snapshot_defaults();
	struct bytes zstd = bomb(packed_by_zstd, "\x80\x04", 65 << 20), gzip = bomb(packed_by_gzip, "\x80\x04", 3 << 20);
	assert_true(zstd.size < 13 << 10);
	expect_failure(zstd, NULL, TN_LIMIT, "the first ");
	assert_non_null(strstr(tn_error_text(), "bytes of the file decompress to more than 1000 times their size"));
	options.unpack_ratio = 1000000;
	expect_failure(zstd, &options, TN_FORMAT, "decompressed from zstd: byte 68157440: the file ends in the middle");
	expect_failure(gzip, NULL, TN_FORMAT, "decompressed from gzip: byte 3145728: the file ends in the middle");
	free(zstd.at);
	free(gzip.at);
}

/* Ten million lists that wait for a container, out of a kilobyte: refused by the limit of memory. */
static void
test_bombs_of_memory(void **state)
{
	struct tn_snapshot_options options = tn_snapshot_defaults();
	options.memory_bytes = 16 << 20;
	for (int index = 0; index < PACKERS; index++) {
		struct bytes packed = bomb(packers[index], "]]", 10 << 20);
		struct bytes start = packers[index]("\x80\x04", 2);
		append(&start, packed.at, packed.size);
		expect_failure(start, &options, TN_LIMIT, "decompressed from ");
		assert_non_null(strstr(tn_error_text(), "more than 16777216 bytes of memory would be needed"));
		free(packed.at);
		free(start.at);
	}
}

static int
load(void **state)
{
	FILE *file = fopen(TN_CORPUS "/snapshot_p4", "rb");
	plain = (struct bytes){ malloc(ROOM), 0 };
	plain.size = file ? fread(plain.at, 1, ROOM, file) : 0;
	return file == NULL || fclose(file) != 0 || plain.size == 0;
}

static int
unload(void **state)
{
	free(plain.at);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_are_read),
		cmocka_unit_test(test_pieces_of_any_size),
		cmocka_unit_test(test_frames_in_a_row),
		cmocka_unit_test(test_what_is_passed_over),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_changed_anywhere),
		cmocka_unit_test(test_offsets_are_of_the_plain_bytes),
		cmocka_unit_test(test_compressed_twice),
		cmocka_unit_test(test_windows_are_limited),
		cmocka_unit_test(test_bombs_of_time),
		cmocka_unit_test(test_bombs_of_memory),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
