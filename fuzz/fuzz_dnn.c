/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target of what passes between the virtual cuDNN and the helper with the real one: any bytes as a question get an
 * answer or a refusal, and any bytes as a file of answers are walked up to where they are no longer sound.
 *
 * The library behind the helper is a fake, named so: it reads every element that it is handed and answers what the bytes
 * say. With clang's libFuzzer this is the target; built without it (TN_FUZZ_REPLAY) a program that replays the files named.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dnn/abi.h"
#include "dnn/cache.h"
#include "dnn/real.h"

enum { LONGEST = 64 << 10 };

static struct {
	const uint8_t *at; /* what the fake's answers are taken from */
	size_t left, living;
	unsigned sum; /* of all that it was handed, so that nothing of it is left out */
} fake;

static int
fake_byte(void)
{
	return fake.left > 0 ? (fake.left--, *fake.at++) : 0;
}

static size_t
fake_version(void)
{
	return 91900;
}

static int
fake_create(int type, tn_dnn_descriptor *out)
{
	if (fake_byte() > 250 || (*out = malloc(1)) == NULL)
		return 3000;
	fake.living++;
	return DNN_STATUS_SUCCESS;
}

static int
fake_destroy(tn_dnn_descriptor descriptor)
{
	free(descriptor);
	fake.living--;
	return DNN_STATUS_SUCCESS;
}

static int
fake_finalize(tn_dnn_descriptor descriptor)
{
	return descriptor == NULL || fake_byte() > 250 ? 3000 : DNN_STATUS_SUCCESS;
}

static int
fake_set(tn_dnn_descriptor descriptor, int name, int type, int64_t count, const void *elements)
{
	size_t size = tn__dnn_element_bytes(type);
	if (descriptor == NULL || size == 0 || count < 0)
		abort();
	for (size_t i = 0; i < (size_t)count * size; i++)
		fake.sum += ((const unsigned char *)elements)[i];
	return fake_byte() > 250 ? 3000 : DNN_STATUS_SUCCESS;
}

/* Says that there is more than was asked for now and then, as the real one does, and fills what was asked for. */
static int
fake_get(tn_dnn_descriptor descriptor, int name, int type, int64_t requested, int64_t *count, void *elements)
{
	int byte = fake_byte();
	*count = byte % 8;
	for (int64_t i = 0; elements != NULL && type != DNN_TYPE_BACKEND_DESCRIPTOR && i < requested && i < *count; i++)
		memset((char *)elements + (size_t)i * tn__dnn_element_bytes(type), byte, tn__dnn_element_bytes(type));
	return byte > 250 ? 3000 : DNN_STATUS_SUCCESS;
}

static void
ask(const uint8_t *bytes, size_t size)
{
	const struct tn_dnn_real real = {
		NULL, fake_version, fake_create, fake_destroy, fake_finalize, fake_set, fake_get
	};
	struct tn_dnn_question question;
	struct tn_dnn_bytes answer = { .at = NULL };
	if (!tn__dnn_question_read(bytes, size, &question))
		return;
	(void)tn__dnn_key_of(&question);
	fake.at = bytes;
	fake.left = size;
	tn__dnn_answer(&real, &question, &answer);
	if (fake.living != 0 || answer.failed || answer.length < 3 * sizeof(uint32_t))
		abort();
	tn__dnn_bytes_free(&answer);
}

static void
take(void *context, const struct tn_dnn_record *record)
{
	size_t *total = context;
	for (uint32_t i = 0; i < record->length; i++)
		fake.sum += record->answer[i];
	*total += record->length;
}

static void
walk(const uint8_t *bytes, size_t size)
{
	size_t total = 0, sound = tn__dnn_cache_walk(bytes, size, take, &total);
	if (sound > size || total > sound || tn__dnn_cache_walk(bytes, sound, NULL, NULL) != sound)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The copy ends where the input does, so that a sanitizer sees a byte too far. */
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = size <= LONGEST ? malloc(size + (size == 0)) : NULL;
	if (copy == NULL)
		return 0;
	memcpy(copy, bytes, size);
	ask(copy, size);
	walk(copy, size);
	free(copy);
	return 0;
}

#ifdef TN_FUZZ_REPLAY
int
main(int count, char **arguments)
{
	static uint8_t bytes[LONGEST];
	for (int index = 1; index < count; index++) {
		FILE *file = fopen(arguments[index], "rb");
		if (file == NULL)
			return 1;
		size_t size = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		LLVMFuzzerTestOneInput(bytes, size);
	}
	return 0;
}
#endif
