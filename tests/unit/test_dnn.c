/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes between the virtual cuDNN and its helper (src/dnn): questions that are cut or foreign are none, a key tells
 * questions apart, and a damaged cache loses no more than what is behind the damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dnn/cache.h"
#include "dnn/wire.h"

static struct tn_dnn_bytes
question_of(const char *library, const char *card, int32_t mode, uint32_t rank, const char *graph)
{
	struct tn_dnn_bytes bytes = { .at = NULL };
	const struct tn_dnn_head head = { .version = TN_DNN_WIRE_VERSION,
		                              .kind = TN_DNN_PLAN,
		                              .mode = mode,
		                              .rank = rank,
		                              .library = (uint32_t)strlen(library),
		                              .card = (uint32_t)strlen(card),
		                              .graph = (uint32_t)strlen(graph) };
	tn__dnn_add(&bytes, &head, sizeof(head));
	tn__dnn_add(&bytes, library, head.library);
	tn__dnn_add(&bytes, card, head.card);
	tn__dnn_add(&bytes, graph, head.graph);
	assert_false(bytes.failed);
	return bytes;
}

static struct tn_dnn_key
key_of(const char *library, const char *card, int32_t mode, uint32_t rank, const char *graph)
{
	struct tn_dnn_bytes bytes = question_of(library, card, mode, rank, graph);
	struct tn_dnn_question question;
	assert_true(tn__dnn_question_read(bytes.at, bytes.length, &question));
	struct tn_dnn_key key = tn__dnn_key_of(&question);
	tn__dnn_bytes_free(&bytes);
	return key;
}

static bool
same(struct tn_dnn_key one, struct tn_dnn_key other)
{
	return one.one == other.one && one.other == other.other;
}

static void
test_a_question_is_read_whole_or_not(void **state)
{
	struct tn_dnn_bytes bytes = question_of("/lib", "{}", 3, 5, "graph");
	struct tn_dnn_question question;
	for (size_t length = 0; length < bytes.length; length++) {
		unsigned char *cut = malloc(length + 1); /* so that a sanitizer sees a byte too many */
		memcpy(cut, bytes.at, length);
		assert_false(tn__dnn_question_read(cut, length, &question));
		free(cut);
	}
	assert_true(tn__dnn_question_read(bytes.at, bytes.length, &question));
	assert_int_equal(question.head.mode, 3);
	assert_memory_equal(question.library, "/lib", 4);
	assert_memory_equal(question.graph.at, "graph", 5);
	tn__dnn_add(&bytes, "x", 1);
	assert_false(tn__dnn_question_read(bytes.at, bytes.length, &question));
	bytes.at[0]++; /* another version */
	assert_false(tn__dnn_question_read(bytes.at, bytes.length - 1, &question));
	tn__dnn_bytes_free(&bytes);
}

static void
test_a_key_tells_questions_apart(void **state)
{
	struct tn_dnn_key key = key_of("/lib", "{}", 3, 5, "graph");
	assert_true(same(key, key_of("/another/lib", "{}", 3, 5, "graph"))); /* the cache's file is the library's */
	assert_false(same(key, key_of("/lib", "{ }", 3, 5, "graph")));
	assert_false(same(key, key_of("/lib", "{}", 4, 5, "graph")));
	assert_false(same(key, key_of("/lib", "{}", 3, 6, "graph")));
	assert_false(same(key, key_of("/lib", "{}", 3, 5, "grapH")));
	assert_int_not_equal(key.one, key.other);
}

static void
test_bytes_have_a_bound(void **state)
{
	struct tn_dnn_bytes bytes = { .at = NULL };
	char *much = calloc(1, TN_DNN_MOST_BYTES);
	tn__dnn_add(&bytes, much, TN_DNN_MOST_BYTES);
	assert_false(bytes.failed);
	tn__dnn_add(&bytes, much, 1);
	assert_true(bytes.failed);
	assert_int_equal(bytes.length, TN_DNN_MOST_BYTES);
	tn__dnn_bytes_free(&bytes);
	free(much);
}

/* ---- the cache ---- */

struct walked {
	int count;
	uint64_t keys[8];
	char answers[8][8];
};

static void
take(void *context, const struct tn_dnn_record *record)
{
	struct walked *walked = context;
	walked->keys[walked->count] = record->key.one;
	memcpy(walked->answers[walked->count++], record->answer, record->length);
}

static size_t
contents(const char *path, unsigned char *out, size_t room)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t length = fread(out, 1, room, file);
	fclose(file);
	return length;
}

static void
add(const char *path, uint64_t key, const char *answer)
{
	const struct tn_dnn_record record = { { key, key }, (const unsigned char *)answer, (uint32_t)strlen(answer) };
	int file = tn__dnn_cache_open(path);
	assert_true(file >= 0);
	tn__dnn_cache_add(file, &record);
	close(file);
}

static void
test_what_is_damaged_is_cut_off(void **state)
{
	char folder[] = "/tmp/tonnage-dnn-XXXXXX", path[128];
	unsigned char bytes[512];
	struct walked walked = { 0 };
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/not/yet/there", folder);
	add(path, 1, "one");
	add(path, 2, "two");
	size_t length = contents(path, bytes, sizeof(bytes));
	assert_int_equal(tn__dnn_cache_walk(bytes, length, take, &walked), length);
	assert_int_equal(walked.count, 2);
	assert_int_equal(walked.keys[1], 2);
	assert_string_equal(walked.answers[1], "two");
	for (size_t cut = 0; cut < length; cut++) {
		walked.count = 0;
		assert_true(tn__dnn_cache_walk(bytes, cut, take, &walked) <= cut);
		assert_in_range(walked.count, 0, 1);
	}
	assert_int_equal(truncate(path, (off_t)length - 1), 0);
	add(path, 3, "three");
	length = contents(path, bytes, sizeof(bytes));
	memset(&walked, 0, sizeof(walked));
	assert_int_equal(tn__dnn_cache_walk(bytes, length, take, &walked), length);
	assert_int_equal(walked.count, 2);
	assert_string_equal(walked.answers[0], "one");
	assert_string_equal(walked.answers[1], "three");
	bytes[length - 1] ^= 1; /* a bit of the last answer */
	walked.count = 0;
	(void)tn__dnn_cache_walk(bytes, length, take, &walked);
	assert_int_equal(walked.count, 1);
	unlink(path);
	for (int up = 0; up < 3; up++) {
		*strrchr(path, '/') = '\0';
		assert_int_equal(rmdir(path), 0);
	}
}

static void
test_a_file_of_the_cache_is_of_one_build(void **state)
{
	char folder[] = "/tmp/tonnage-dnn-XXXXXX", one[PATH_MAX], other[PATH_MAX], library[128], part[128];
	assert_non_null(mkdtemp(folder));
	snprintf(library, sizeof(library), "%s/libcudnn.so.9", folder);
	snprintf(part, sizeof(part), "%s/libcudnn_heuristic.so.9", folder);
	assert_null(tn__dnn_cache_path("/cache", library, one));
	fclose(fopen(library, "w"));
	assert_non_null(tn__dnn_cache_path("/cache", library, one));
	FILE *file = fopen(part, "w");
	fputs("longer", file);
	fclose(file);
	assert_non_null(tn__dnn_cache_path("/cache", library, other));
	assert_string_not_equal(one, other);
	assert_memory_equal(other, "/cache/", 7);
	unlink(part);
	unlink(library);
	rmdir(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_question_is_read_whole_or_not),
		cmocka_unit_test(test_a_key_tells_questions_apart),
		cmocka_unit_test(test_bytes_have_a_bound),
		cmocka_unit_test(test_what_is_damaged_is_cut_off),
		cmocka_unit_test(test_a_file_of_the_cache_is_of_one_build),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
