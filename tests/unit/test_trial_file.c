/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial and its result as text: all fields come back, what is torn or something else is refused, the key differs with what a trial
 * sees and with nothing else. And the digest that keys are made of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sha256.h"
#include "trials/store.h"
#include "trials/trial_file.h"

static char *arguments[] = { (char *)"python", (char *)"-c", (char *)"a = 1\nb = '\\n'", (char *)"", NULL };

static struct tn_trial
example(void)
{
	struct tn_trial trial = { .changes = "batch=4,fused", .keep_words = true, .news_step = 3, .news_epoch = -1 };
	trial.options.gpu = "rtx3060";
	trial.options.gpus = 2;
	trial.options.memory_bytes = UINT64_C(1) << 60;
	trial.options.other_bytes = 12345;
	trial.options.steps = "7";
	trial.options.seconds = 12.5;
	trial.options.real_initialization = true;
	trial.options.weights = TN_WEIGHTS_SHAPE;
	trial.options.inputs = "pad=8";
	trial.options.assume = 0.1;
	trial.options.all_values = true;
	trial.options.allow_network = true;
	trial.options.no_detail = true;
	trial.options.cells = "1-3";
	trial.options.arguments = arguments;
	return trial;
}

static char *
written(const struct tn_trial *trial)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	tn__trial_write(trial, 30.25, false, out);
	fclose(out);
	return text;
}

static void
test_a_trial_comes_back(void **state)
{
	(void)state;
	struct tn_trial trial = example();
	struct tn_read_trial read;
	assert_int_equal(tn__trial_parse(written(&trial), &read), TN_OK);
	const struct tn_run_options *there = &read.trial.options;
	assert_string_equal(there->gpu, "rtx3060");
	assert_int_equal(there->gpus, 2);
	assert_true(there->memory_bytes == UINT64_C(1) << 60 && there->other_bytes == 12345);
	assert_string_equal(there->steps, "7");
	assert_true(there->seconds == 12.5 && there->assume == 0.1 && read.limit_seconds == 30.25);
	assert_true(there->real_initialization && there->all_values && there->allow_network && there->no_detail);
	assert_int_equal(there->weights, TN_WEIGHTS_SHAPE);
	assert_string_equal(there->inputs, "pad=8");
	assert_string_equal(there->cells, "1-3");
	assert_null(there->python);
	assert_string_equal(read.trial.changes, "batch=4,fused");
	assert_true(read.trial.keep_words && !read.trial.lists_modules);
	assert_true(read.trial.news_step == 3 && read.trial.news_epoch == -1);
	for (int i = 0; arguments[i] != NULL; i++)
		assert_string_equal(there->arguments[i], arguments[i]);
	assert_null(there->arguments[4]);
	char *again = written(&read.trial), *before = written(&trial);
	assert_string_equal(again, before);
	free(again);
	free(before);
	tn__read_trial_free(&read);
}

/* More words than the room that an array begins with, and every length before the end of the text. */
static void
test_torn_trials_are_refused(void **state)
{
	(void)state;
	char *words[40] = { NULL };
	struct tn_trial trial = example();
	struct tn_read_trial read;
	for (int i = 0; i < 39; i++)
		words[i] = (char *)"word";
	trial.options.arguments = words;
	char *text = written(&trial);
	assert_int_equal(tn__trial_parse(strdup(text), &read), TN_OK);
	assert_string_equal(read.trial.options.arguments[38], "word");
	assert_null(read.trial.options.arguments[39]);
	tn__read_trial_free(&read);
	size_t whole = (size_t)(strstr(text, "\ndirectory ") - text);
	for (size_t length = 0; length < whole; length++) {
		assert_int_equal(tn__trial_parse(strndup(text, length), &read), TN_FORMAT);
		tn__read_trial_free(&read);
	}
	free(text);
}

static void
key_of(const struct tn_trial *trial, char key[TN_SHA256_TEXT])
{
	struct tn_store store = { .fingerprint = "program" };
	tn__store_key(&store, trial, key);
}

static void
test_keys(void **state)
{
	(void)state;
	char key[TN_SHA256_TEXT], other[TN_SHA256_TEXT];
	struct tn_trial trial = example();
	key_of(&trial, key);
	assert_int_equal(strlen(key), 32);
	trial.options.seconds = 99; /* how long it may take */
	trial.lists_modules = true; /* asked of whichever comes first */
	key_of(&trial, other);
	assert_string_equal(key, other);
#define DIFFERS(change)                      \
	do {                                     \
		struct tn_trial kept = trial;        \
		change;                              \
		key_of(&trial, other);               \
		assert_string_not_equal(key, other); \
		trial = kept;                        \
	} while (0)
	DIFFERS(trial.changes = NULL);
	DIFFERS(trial.changes = "");
	DIFFERS(trial.options.gpu = "t4");
	DIFFERS(trial.options.memory_bytes = 0);
	DIFFERS(trial.options.no_detail = false);
	DIFFERS(trial.options.arguments = arguments + 1);
	DIFFERS(trial.options.steps = "auto");
}

static void
test_results(void **state)
{
	(void)state;
	struct tn_trial trial = { .end = TN_TRIAL_SLOW, .seconds = 1.25, .words = (char *)"one\ntwo" }, read = { 0 };
	char *text = NULL, host[64];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	tn__trial_result_write(&trial, "{\"error\": \"it took too long\"}", out);
	fclose(out);
	char *copy = strdup(text);
	assert_int_equal(tn__trial_result_parse(copy, &read, host), TN_OK);
	assert_int_equal(read.end, TN_TRIAL_SLOW);
	assert_true(read.seconds == 1.25);
	assert_string_equal(read.words, "one\ntwo");
	assert_string_equal(read.outcome.error, "it took too long");
	tn__trial_clear(&read);
	free(copy);
	free(text);
	static const char *const broken[] = { "",
		                                  "tonnage.result 1",
		                                  "tonnage.result 2\nend done\n\n{}",
		                                  "tonnage.result 1\nend dancing\n\n{}",
		                                  "tonnage.result 1\nend done\n\n{}",
		                                  "tonnage.result 1\nend done\n\n{\"report\": " };
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		copy = strdup(broken[i]);
		assert_int_equal(tn__trial_result_parse(copy, &read, host), TN_FORMAT);
		tn__trial_clear(&read);
		free(copy);
	}
}

/* The examples of FIPS 180-4, and a length around each border of a block. */
static void
test_sha256(void **state)
{
	(void)state;
	struct tn_sha256 sha;
	char text[TN_SHA256_TEXT], parts[TN_SHA256_TEXT];
	tn__sha256_begin(&sha);
	tn__sha256_add(&sha, "abc", 3);
	tn__sha256_end(&sha, text);
	assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	tn__sha256_begin(&sha);
	tn__sha256_end(&sha, text);
	assert_string_equal(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	tn__sha256_begin(&sha);
	tn__sha256_add(&sha, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56);
	tn__sha256_end(&sha, text);
	assert_string_equal(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	unsigned char bytes[200];
	memset(bytes, 'x', sizeof(bytes));
	for (size_t length = 50; length < 140; length++) {
		tn__sha256_begin(&sha);
		tn__sha256_add(&sha, bytes, length);
		tn__sha256_end(&sha, text);
		tn__sha256_begin(&sha);
		for (size_t at = 0; at < length; at++)
			tn__sha256_add(&sha, bytes + at, 1);
		tn__sha256_end(&sha, parts);
		assert_string_equal(text, parts);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_trial_comes_back),
		cmocka_unit_test(test_torn_trials_are_refused),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_sha256),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
