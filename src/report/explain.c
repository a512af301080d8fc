/* SPDX-License-Identifier: Apache-2.0
 *
 * Out-of-memory messages for a person and as JSON, each written as soon as it is found: nothing is collected, so a
 * log of any length needs no more memory than a short one.
 */
#include "tonnage/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain.h"
#include "message/message.h"
#include "message/ranks_log.h"
#include "message/seen.h"
#include "report/explain_error.h"
#include "report/explain_ranks.h"
#include "report/explain_seen.h"
#include "report/explain_snapshot.h"
#include "report/printer.h"

#define FULL_EXPLANATIONS 3 /* later errors get one line each ... */
#define PHRASE_MAX 128
#define SHORT_LINES 20 /* ... and the rest is counted */

struct writer {
	FILE *text, *json;
	FILE *errors;    /* their JSON, until all ranks are known; NULL: no JSON */
	uint8_t *failed; /* of TN_RANKS_MAX: which ranks have an error */
	struct tn_printer printer;
	struct tn_evidence *evidence; /* NULL: no snapshot */
	uint64_t count;
	bool machine; /* the text has words that point at driver, card or settings */
};

/* Copies the errors, with the ranks in their places. The error of the rank that failed first has all of them; where no error is that
 * rank's, the first one that names no rank has. */
static tn_status
copy_errors(struct writer *writer, const struct tn_ranks_log *ranks)
{
	bool by_launcher = false, given = false;
	int64_t first = tn__ranks_log_first(ranks, &by_launcher), rank;
	bool named = first >= 0 && writer->failed[first] != 0;
	rewind(writer->errors);
	for (int c; (c = fgetc(writer->errors)) != EOF;) {
		if (c != TN_RANKS_HERE) {
			fputc(c, writer->json);
			continue;
		}
		TN_RETURN_IF(fscanf(writer->errors, "%" SCNd64 " ", &rank) != 1, TN_IO, "reading back the errors failed");
		bool all = !given && first >= 0 && (named ? rank == first : rank < 0);
		given |= all;
		tn__ranks_of_error(ranks, rank, all, writer->json);
	}
	TN_RETURN_IF(ferror(writer->errors), TN_IO, "reading back the errors failed: %s", strerror(errno));
	return TN_OK;
}

static void
write_text(struct writer *writer, const struct tn_message *message)
{
	if (writer->count < FULL_EXPLANATIONS)
		tn__explain_error_text(&writer->printer, message, writer->count);
	else if (writer->count < FULL_EXPLANATIONS + SHORT_LINES) {
		if (writer->count == FULL_EXPLANATIONS)
			fputs("\nMore in the same text\n", writer->text);
		tn__explain_error_line(&writer->printer, message);
	}
}

static void
end_text(struct writer *writer)
{
	if (writer->count == 0)
		tn__say(&writer->printer, TN_TINT_NONE, 0,
		        "No out-of-memory error in this text: nothing in it reports an allocation "
		        "that failed for lack of memory.");
	if (writer->count == 0 && writer->machine)
		tn__say(
			&writer->printer, TN_TINT_NONE, 0,
			"It points at the driver, the card or a setting: tonnage doctor, on that machine, says what and what to do.");
	if (writer->count > FULL_EXPLANATIONS + SHORT_LINES)
		tn__say(&writer->printer, TN_TINT_NONE, 2, "and %llu more (--json lists all)",
		        (unsigned long long)(writer->count - FULL_EXPLANATIONS - SHORT_LINES));
}

static tn_status
write_one(void *context, const struct tn_message *message)
{
	struct writer *writer = context;
	if (writer->text != NULL)
		write_text(writer, message);
	if (writer->errors != NULL)
		tn__explain_error_json(writer->errors, message, writer->count);
	if (writer->errors != NULL && message->rank >= 0 && message->rank < TN_RANKS_MAX)
		writer->failed[message->rank] = 1;
	if (writer->evidence != NULL)
		tn__evidence_match(writer->evidence, message, writer->count);
	writer->count++;
	bool failed = (writer->text != NULL && ferror(writer->text)) || (writer->errors != NULL && ferror(writer->errors));
	TN_RETURN_IF(failed, TN_IO, "writing failed: %s", strerror(errno));
	return TN_OK;
}

/* What PyTorch and the CUDA runtime say when the machine, not the program's memory, stands in the way (torch/csrc
 * and libcudart of
 * 2.6.0 and 2.11.0). */
static bool
points_at_machine(const char *bytes, size_t count)
{
	static const char *const phrases[] = {
		"Found no NVIDIA driver on your system",
		"NVIDIA driver on your system is too old",
		"No CUDA GPUs are available",
		"no kernel image is available for execution on the device",
		"is/are busy or unavailable",
		"CUDA driver version is insufficient",
		"unsupported display driver",
		"CUDA driver is a stub library",
		"no CUDA-capable device is detected",
		"incorrectly set up environment",
		"uncorrectable ECC error",
		"insufficient shared memory",
		"Driver/library version mismatch",
		"Unrecognized CachingAllocator option",
		"in CUDA allocator config",
	};
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (memmem(bytes, count, phrases[i], strlen(phrases[i])) != NULL)
			return true;
	return false;
}

static tn_status
read_all(FILE *in, struct writer *writer, struct tn_message_scanner *scanner, struct tn_ranks_log *ranks)
{
	char buffer[16384 + PHRASE_MAX]; /* the end of the piece before, and the piece */
	size_t count, before = 0;
	while ((count = fread(buffer + before, 1, sizeof(buffer) - PHRASE_MAX, in)) > 0) {
		tn__ranks_log_read(ranks, buffer + before, count);
		TN_FORWARD_IF_ERROR(tn__message_scan(scanner, buffer + before, count));
		writer->machine |= points_at_machine(buffer, before + count);
		size_t all = before + count;
		before = all < PHRASE_MAX ? all : PHRASE_MAX;
		memmove(buffer, buffer + all - before, before);
	}
	TN_RETURN_IF(ferror(in), TN_IO, "reading failed: %s", strerror(errno));
	tn__ranks_log_end(ranks);
	return tn__message_scan_end(scanner);
}

/* All errors of the text, in its order. */
static tn_status
scan_text(FILE *in, struct writer *writer, struct tn_message_scanner *scanner, struct tn_ranks_log *ranks)
{
	if (in == NULL)
		return TN_OK;
	TN_FORWARD_IF_ERROR(read_all(in, writer, scanner, ranks));
	if (writer->text == NULL)
		return TN_OK;
	end_text(writer);
	if (writer->count > 0)
		tn__seen_text(tn__message_seen(scanner), &writer->printer);
	tn__ranks_text(ranks, &writer->printer);
	return TN_OK;
}

static tn_status
finish_json(struct writer *writer, const struct tn_message_scanner *scanner, const struct tn_ranks_log *ranks)
{
	fputs("{\n  \"schema\": \"tonnage.explain/1\",\n  \"errors\": [", writer->json);
	TN_FORWARD_IF_ERROR(copy_errors(writer, ranks));
	fputs(writer->count > 0 ? "\n  ]" : "]", writer->json);
	tn__ranks_json(ranks, writer->json);
	tn__seen_json(tn__message_seen(scanner), writer->json);
	return TN_OK;
}

static tn_status
explain_text(FILE *in, struct writer *writer, struct tn_ranks_log *ranks)
{
	struct tn_message_scanner *scanner;
	TN_FORWARD_IF_ERROR(tn__message_scanner_new(write_one, writer, &scanner));
	tn_status status = scan_text(in, writer, scanner, ranks);
	if (status == TN_OK && writer->json != NULL)
		status = finish_json(writer, scanner, ranks);
	tn__message_scanner_free(scanner);
	return status;
}

/* Where the errors' JSON waits: in a file, since a log may hold any number of them. */
static tn_status
open_errors(struct writer *writer)
{
	if (writer->json == NULL)
		return TN_OK;
	writer->errors = tmpfile();
	TN_RETURN_IF(writer->errors == NULL, TN_IO, "no temporary file can be made: %s", strerror(errno));
	writer->failed = calloc(TN_RANKS_MAX, 1);
	TN_RETURN_IF(writer->failed == NULL, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

static tn_status
explain_snapshot(FILE *in, struct writer *writer)
{
	TN_FORWARD_IF_ERROR(tn__evidence_weigh(writer->evidence));
	if (writer->text != NULL) {
		if (in != NULL)
			fputc('\n', writer->text);
		tn__evidence_text(writer->evidence, &writer->printer, writer->count);
	}
	if (writer->json != NULL) {
		fputs(",\n", writer->json);
		tn__evidence_json(writer->evidence, writer->json);
	}
	return TN_OK;
}

static tn_status
finish(FILE *stream)
{
	TN_RETURN_IF(stream != NULL && (fflush(stream) != 0 || ferror(stream)), TN_IO, "writing failed: %s",
	             strerror(errno));
	return TN_OK;
}

tn_status
tn_explain(FILE *in, const struct tn_snapshot *snapshot, FILE *text, FILE *json)
{
	struct writer writer = { .text = text, .json = json };
	if (text != NULL)
		writer.printer = (struct tn_printer){ text, tn__style_of(text) };
	if (snapshot != NULL)
		TN_FORWARD_IF_ERROR(tn__evidence_new(snapshot, &writer.evidence));
	struct tn_ranks_log ranks = { 0 };
	tn_status status = tn__ranks_log_start(&ranks);
	if (status == TN_OK)
		status = open_errors(&writer);
	if (status == TN_OK)
		status = explain_text(in, &writer, &ranks);
	tn__ranks_log_free(&ranks);
	if (writer.errors != NULL)
		fclose(writer.errors);
	free(writer.failed);
	if (status == TN_OK && snapshot != NULL)
		status = explain_snapshot(in, &writer);
	tn__evidence_free(writer.evidence);
	TN_FORWARD_IF_ERROR(status);
	if (json != NULL)
		fputs("\n}\n", json);
	TN_FORWARD_IF_ERROR(finish(text));
	return finish(json);
}
