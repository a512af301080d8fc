/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target of the message scanner: any bytes, in pieces of any size, end without a fault, and the size of the
 * pieces does not change what is found.
 *
 * With clang's libFuzzer this is the target; built without it (TN_FUZZ_REPLAY) a program that replays the files
 * named.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/message.h"
#include "message/ranks_log.h"

struct sum {
	uint64_t count, mix;
};

static void
stir(struct sum *sum, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum->mix = (sum->mix ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
}

static tn_status
add(void *context, const struct tn_message *message)
{
	struct sum *sum = context;
	sum->count++;
	stir(sum, message->family, strlen(message->family));
	stir(sum, message->culprit, strlen(message->culprit));
	stir(sum, &message->phase, sizeof(message->phase));
	stir(sum, message->framework_words, strlen(message->framework_words));
	stir(sum, message->reason, strlen(message->reason));
	stir(sum, message->figures, sizeof(message->figures));
	for (size_t i = 0; i < message->advice_count; i++)
		stir(sum, message->advice[i], strlen(message->advice[i]));
	return TN_OK;
}

static struct sum
scan(const char *bytes, size_t count, size_t piece)
{
	struct sum sum = { 0, 0 };
	struct tn_message_scanner *scanner;
	if (tn__message_scanner_new(add, &sum, &scanner) != TN_OK)
		return sum;
	for (size_t at = 0; at < count; at += piece)
		tn__message_scan(scanner, bytes + at, count - at < piece ? count - at : piece);
	tn__message_scan_end(scanner);
	tn__message_scanner_free(scanner);
	return sum;
}

static struct sum
read_ranks(const char *bytes, size_t count, size_t piece)
{
	struct sum sum = { 0, 0 };
	struct tn_ranks_log log;
	bool by_launcher;
	if (tn__ranks_log_start(&log) != TN_OK)
		return sum;
	for (size_t at = 0; at < count; at += piece)
		tn__ranks_log_read(&log, bytes + at, count - at < piece ? count - at : piece);
	tn__ranks_log_end(&log);
	sum.count = (uint64_t)(tn__ranks_log_first(&log, &by_launcher) + 1);
	for (int64_t rank = 0; rank <= log.highest; rank++)
		stir(&sum, &log.ends[rank].failed_at, sizeof(log.ends[rank].failed_at));
	tn__ranks_log_free(&log);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole = scan((const char *)data, size, size + 1), pieces = scan((const char *)data, size, 7);
	if (whole.count != pieces.count || whole.mix != pieces.mix)
		abort();
	whole = read_ranks((const char *)data, size, size + 1);
	pieces = read_ranks((const char *)data, size, 7);
	if (whole.count != pieces.count || whole.mix != pieces.mix)
		abort();
	return 0;
}

#ifdef TN_FUZZ_REPLAY
int
main(int argc, char **argv)
{
	static uint8_t data[4 << 20];
	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");
		if (file == NULL) {
			fprintf(stderr, "cannot open %s\n", argv[i]);
			return 1;
		}
		size_t size = fread(data, 1, sizeof(data), file);
		fclose(file);
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("%d files\n", argc - 1);
	return 0;
}
#endif
