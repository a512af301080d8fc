/* SPDX-License-Identifier: Apache-2.0
 *
 * Out-of-memory messages for a person and as JSON, each written as soon as it is found: nothing is collected, so a
 * log of any length needs no more memory than a short one. The JSON is written by hand for the same reason, and
 * because its sizes may exceed a signed 64-bit integer.
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
#include "report/explain_ranks.h"
#include "report/explain_seen.h"
#include "report/explain_snapshot.h"
#include "report/printer.h"

#define FULL_EXPLANATIONS 3 /* later errors get one line each ... */
#define PHRASE_MAX 128
#define SHORT_LINES 20      /* ... and the rest is counted */

#define RANKS_HERE '\001'   /* in the errors' JSON, before the rank and a blank; strings of JSON hold no such byte */

struct writer {
	FILE *text, *json;
	FILE *errors;          /* their JSON, until all ranks are known; NULL: no JSON */
	uint8_t *failed;       /* of TN_RANKS_MAX: which ranks have an error */
	struct tn_printer printer;
	struct tn_evidence *evidence; /* NULL: no snapshot */
	uint64_t count;
	bool machine; /* the text has words that point at driver, card or settings */
};

/* ---- JSON ---- */

static void
write_size(FILE *out, uint64_t bytes)
{
	if (bytes == TN_MESSAGE_NONE)
		fputs("null", out);
	else
		fprintf(out, "%" PRIu64, bytes);
}

static void
write_index(FILE *out, const char *name, int64_t value)
{
	fprintf(out, "        \"%s\": ", name);
	if (value < 0)
		fputs("null", out);
	else
		fprintf(out, "%" PRId64, value);
}

/* A text, or null for "" and NULL. */
static void
write_text_or_null(FILE *out, const char *text)
{
	if (text == NULL || text[0] == '\0')
		fputs("null", out);
	else
		tn__write_json_string(out, text);
}

static void
write_processes(FILE *out, const struct tn_message *message)
{
	fputs("        \"other_processes\": [", out);
	for (size_t i = 0; i < message->process_count; i++) {
		fprintf(out, "%s[%" PRIu64 ", ", i > 0 ? ", " : "", message->processes[i].pid);
		write_size(out, message->processes[i].bytes);
		fputc(']', out);
	}
	fputs("],\n", out);
}

static void
write_fields(FILE *out, const struct tn_message *message)
{
	fprintf(out, "      \"fields\": {\n        \"device_kind\": \"%s\",\n", tn__device_kind_text(message->kind));
	write_index(out, "device_index", message->device_index);
	fputs(",\n", out);
	for (int i = 0; i < TN_FIGURE_COUNT; i++) {
		fprintf(out, "        \"%s\": ", tn__figure_text((enum tn_figure)i));
		write_size(out, message->figures[i]);
		fputs(",\n", out);
	}
	write_processes(out, message);
	write_index(out, "rank", message->rank);
	fputs(",\n        \"culprit\": ", out);
	write_text_or_null(out, message->culprit);
	fputs("\n      },\n      \"phase\": ", out);
	write_text_or_null(out, tn__at_text(message->phase));
	fputs(",\n      \"framework\": ", out);
	write_text_or_null(out, message->framework);
	fputs(",\n", out);
}

static void
write_need(FILE *out, const struct tn_message *message)
{
	fputs("      \"need\": ", out);
	if (!tn__message_has_need(message)) {
		fputs("null,\n", out);
		return;
	}
	for (enum tn_message_need i = 0; i < TN_NEED_COUNT; i++) {
		fprintf(out, "%s\"%s\": ", i == 0 ? "{ " : ", ", tn__need_text(i));
		write_size(out, message->need[i]);
	}
	fputs(" },\n", out);
}

static void
write_json(FILE *out, const struct tn_message *message, uint64_t number)
{
	fprintf(out, "%s    {\n      \"is_oom\": \"%s\",\n      \"family\": \"%s\",\n", number > 0 ? ",\n" : "\n",
	        message->unclear ? "unclear" : "yes", message->family);
	write_fields(out, message);
	fprintf(out, "      %c%" PRId64 " ,\n", RANKS_HERE, message->rank);
	write_need(out, message);
	fprintf(out, "      \"likely_cause\": \"%s\",\n      \"reason\": ", tn__cause_text(message->cause));
	tn__write_json_string(out, message->reason);
	fputs(",\n      \"do\": [", out);
	for (size_t i = 0; i < message->advice_count; i++) {
		fputs(i > 0 ? ",\n        " : "\n        ", out);
		tn__write_json_string(out, message->advice[i]);
	}
	fputs("\n      ]\n    }", out);
}

/* Copies the errors, with the ranks in their places. The error of the rank that failed first has all of them; where
 * no error is
 * that rank's, the first one that names no rank has. */
static tn_status
copy_errors(struct writer *writer, const struct tn_ranks_log *ranks)
{
	bool by_launcher = false, given = false;
	int64_t first = tn__ranks_log_first(ranks, &by_launcher), rank;
	bool named = first >= 0 && writer->failed[first] != 0;
	rewind(writer->errors);
	for (int c; (c = fgetc(writer->errors)) != EOF;) {
		if (c != RANKS_HERE) {
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

/* ---- for a person ---- */

static const char *
cause_words(const struct tn_message *message)
{
	if (message->cause == TN_CAUSE_UNKNOWN && strcmp(message->family, "engine_refusal") == 0)
		return "what it wants to hold does not fit";
	static const char *const words[] = {
		[TN_CAUSE_UNKNOWN] = "cannot be told from this text",
		[TN_CAUSE_TOO_BIG] = "this one request is too big",
		[TN_CAUSE_MODEL_OR_BATCH] = "the model or the batch is too big",
		[TN_CAUSE_FRAGMENTATION] =
		    "enough memory is reserved but unused, in pieces that are too small (fragmentation)",
		[TN_CAUSE_OTHER_PROCESS] = "something else holds the memory",
		[TN_CAUSE_FRACTION_LIMIT] = "a limit that the program set, not the card",
		[TN_CAUSE_HOST_RAM] = "the computer's own memory is full, not the GPU's",
		[TN_CAUSE_LIBRARY_WORKSPACE] = "a library's own memory, outside the tensors",
	};
	return words[message->cause];
}

static const char *
device_words(const struct tn_message *message, char buffer[64])
{
	static const char *const names[] = { "",
	                                     "on the GPU",
	                                     "on the AMD GPU",
	                                     "on the Mac's GPU",
	                                     "on the Intel GPU",
	                                     "on the computer itself, not on the GPU",
	                                     "on the device" };
	if (message->device_index < 0 || message->kind == TN_KIND_HOST)
		return names[message->kind];
	snprintf(buffer, 64, "%s %lld",
	         message->kind == TN_KIND_OTHER || message->kind == TN_KIND_NONE ? "on device" : "on GPU",
	         (long long)message->device_index);
	return buffer;
}

static void
say_headline(const struct tn_printer *printer, const struct tn_message *message)
{
	char buffer[64], rank[32] = "";
	if (message->rank >= 0)
		snprintf(rank, sizeof(rank), ", rank %lld", (long long)message->rank);
	tn__say(printer, message->unclear ? TN_TINT_NONE : TN_TINT_BAD, 0, "%s %s%s (line %llu, said by %s)",
	        message->unclear ? "Perhaps out of memory" : "Out of memory", device_words(message, buffer), rank,
	        (unsigned long long)message->line, message->said_by);
}

/* "asked 2.00 GiB, 0.50 GiB free of 8.00 GiB: short by 1.50 GiB" */
static void
say_request(const struct tn_printer *printer, const struct tn_message *message)
{
	const uint64_t *f = message->figures;
	char a[40], line[200];
	int used = 0;
	line[0] = '\0';
	if (f[TN_FIGURE_TRIED] != TN_MESSAGE_NONE)
		used += snprintf(line, sizeof(line), "asked %s", tn__message_size(f[TN_FIGURE_TRIED], a));
	if (f[TN_FIGURE_FREE] != TN_MESSAGE_NONE)
		used += snprintf(line + used, sizeof(line) - (size_t)used, "%s%s free", used > 0 ? ", " : "",
		                 tn__message_size(f[TN_FIGURE_FREE], a));
	if (f[TN_FIGURE_TOTAL] != TN_MESSAGE_NONE)
		used += snprintf(line + used, sizeof(line) - (size_t)used, "%s %s", used > 0 ? " of" : "the card has",
		                 tn__message_size(f[TN_FIGURE_TOTAL], a));
	if (f[TN_FIGURE_TRIED] != TN_MESSAGE_NONE && f[TN_FIGURE_FREE] != TN_MESSAGE_NONE &&
	    f[TN_FIGURE_TRIED] > f[TN_FIGURE_FREE])
		snprintf(line + used, sizeof(line) - (size_t)used, ": short by %s",
		         tn__message_size(f[TN_FIGURE_TRIED] - f[TN_FIGURE_FREE], a));
	if (line[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", line);
}

static int64_t
signed_size(uint64_t bytes)
{
	return bytes == TN_MESSAGE_NONE || bytes > INT64_MAX ? TN_NO_FIGURE : (int64_t)bytes;
}

static uint64_t
idle_size(const struct tn_message *message)
{
	const uint64_t *f = message->figures;
	if (f[TN_FIGURE_RESERVED_UNALLOCATED] != TN_MESSAGE_NONE)
		return f[TN_FIGURE_RESERVED_UNALLOCATED];
	if (f[TN_FIGURE_RESERVED] == TN_MESSAGE_NONE || message->reserved_is_idle)
		return f[TN_FIGURE_RESERVED];
	if (f[TN_FIGURE_ALLOCATED] == TN_MESSAGE_NONE || f[TN_FIGURE_RESERVED] < f[TN_FIGURE_ALLOCATED])
		return TN_MESSAGE_NONE;
	return f[TN_FIGURE_RESERVED] - f[TN_FIGURE_ALLOCATED];
}

static void
say_processes(const struct tn_printer *printer, const struct tn_message *message, int64_t total, const char *mark)
{
	bool theirs = message->cause == TN_CAUSE_OTHER_PROCESS;
	size_t largest = 0;
	for (size_t i = 1; i < message->process_count; i++)
		if (signed_size(message->processes[i].bytes) > signed_size(message->processes[largest].bytes))
			largest = i;
	bool unknown = message->process_count == 0 ||
	               signed_size(message->unaccounted) > signed_size(message->processes[largest].bytes);
	for (size_t i = 0; i < message->process_count && i < 4; i++) {
		size_t at = i == 0 ? largest : i <= largest ? i - 1 : i; /* the largest first */
		char name[32];
		snprintf(name, sizeof(name), "process %llu", (unsigned long long)message->processes[at].pid);
		tn__say_row(printer, name, signed_size(message->processes[at].bytes), total,
		            theirs && !unknown && i == 0 ? mark : NULL);
	}
	if (message->process_count > 4)
		tn__say(printer, TN_TINT_DIM, 4, "and %zu more processes", message->process_count - 4);
	if (theirs)
		tn__say_row(printer, "not accounted", signed_size(message->unaccounted), total, unknown ? mark : NULL);
}

/* The rows of the card; the one that decides is marked. */
static void
say_table(const struct tn_printer *printer, const struct tn_message *message)
{
	const uint64_t *f = message->figures;
	int64_t total = signed_size(f[TN_FIGURE_TOTAL] != TN_MESSAGE_NONE ? f[TN_FIGURE_TOTAL] : f[TN_FIGURE_ALLOWED]);
	int64_t used = signed_size(f[TN_FIGURE_ALLOCATED]);
	if (total == TN_NO_FIGURE || used == TN_NO_FIGURE)
		return;
	const char *mark = printer->style.utf8 ? "\u25c0 this decides" : "<- this decides";
	enum tn_cause cause = message->cause;
	fputc('\n', printer->out);
	tn__say_table_head(printer, "", "GiB");
	tn__say_row(printer, "tensors", used, total, cause == TN_CAUSE_MODEL_OR_BATCH ? mark : NULL);
	tn__say_row(printer, "reserved, unused", signed_size(idle_size(message)), total,
	            cause == TN_CAUSE_FRAGMENTATION ? mark : NULL);
	tn__say_row(printer, "outside the pool", signed_size(f[TN_FIGURE_MPS_OTHER]), total,
	            cause == TN_CAUSE_LIBRARY_WORKSPACE ? mark : NULL);
	say_processes(printer, message, total, mark);
	tn__say_row(printer, "free", signed_size(f[TN_FIGURE_FREE]), total, NULL);
	tn__say_row(printer, "limit", signed_size(f[TN_FIGURE_ALLOWED]), total,
	            cause == TN_CAUSE_FRACTION_LIMIT ? mark : NULL);
	tn__say_row(printer, "asked", signed_size(f[TN_FIGURE_TRIED]), total, cause == TN_CAUSE_TOO_BIG ? mark : NULL);
	fputc('\n', printer->out);
}

/* A sentence of its own. */
static const char *
upper_first(const char *text, char buffer[256])
{
	snprintf(buffer, 256, "%s", text);
	size_t word = strcspn(buffer, " "), lower = strspn(buffer, "abcdefghijklmnopqrstuvwxyz");
	if (lower > 0 && lower >= word) /* not a name such as cuBLAS */
		buffer[0] = (char)(buffer[0] - 'a' + 'A');
	return buffer;
}

static void
write_full(const struct tn_printer *printer, const struct tn_message *message, uint64_t number)
{
	char reason[256], place[128];
	if (number > 0)
		fputc('\n', printer->out);
	say_headline(printer, message);
	if (message->culprit[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "your code: %s", message->culprit);
	if (tn__at_words(message, place)[0] != '\0')
		tn__say(printer, TN_TINT_NONE, 2, "%s", place);
	say_request(printer, message);
	say_table(printer, message);
	tn__say(printer, TN_TINT_NONE, 2, "Why: %s. %s", cause_words(message),
	        upper_first(message->reason, reason));
	tn__say(printer, TN_TINT_NONE, 2, "Do first:");
	for (size_t i = 0; i < message->advice_count; i++)
		tn__say(printer, TN_TINT_NONE, 4, "%zu. %s", i + 1, message->advice[i]);
	if (!tn__message_can_run(message))
		tn__say(printer, TN_TINT_DIM, 2,
		        "tonnage run and fix play NVIDIA cards only, so they cannot try these for you.");
}

static void
write_short(const struct tn_printer *printer, const struct tn_message *message)
{
	char buffer[64], rank[32] = "";
	if (message->rank >= 0)
		snprintf(rank, sizeof(rank), "rank %lld, ", (long long)message->rank);
	tn__say(printer, TN_TINT_NONE, 2, "line %llu: %s%s %s; %s", (unsigned long long)message->line, rank,
	        message->unclear ? "perhaps out of memory" : "out of memory", device_words(message, buffer),
	        cause_words(message));
}

static void
write_text(struct writer *writer, const struct tn_message *message)
{
	if (writer->count < FULL_EXPLANATIONS)
		write_full(&writer->printer, message, writer->count);
	else if (writer->count < FULL_EXPLANATIONS + SHORT_LINES) {
		if (writer->count == FULL_EXPLANATIONS)
			fputs("\nMore in the same text\n", writer->text);
		write_short(&writer->printer, message);
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
		tn__say(&writer->printer, TN_TINT_NONE, 0,
		        "It points at the driver, the card or a setting: tonnage doctor, on that machine, says what and what to do.");
	if (writer->count > FULL_EXPLANATIONS + SHORT_LINES)
		tn__say(&writer->printer, TN_TINT_NONE, 2, "and %llu more (--json lists all)",
		        (unsigned long long)(writer->count - FULL_EXPLANATIONS - SHORT_LINES));
}

/* ---- both ---- */

static tn_status
write_one(void *context, const struct tn_message *message)
{
	struct writer *writer = context;
	if (writer->text != NULL)
		write_text(writer, message);
	if (writer->errors != NULL)
		write_json(writer->errors, message, writer->count);
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
		"Found no NVIDIA driver on your system", "NVIDIA driver on your system is too old", "No CUDA GPUs are available",
		"no kernel image is available for execution on the device", "is/are busy or unavailable", "CUDA driver version is insufficient",
		"unsupported display driver", "CUDA driver is a stub library", "no CUDA-capable device is detected",
		"incorrectly set up environment", "uncorrectable ECC error", "insufficient shared memory", "Driver/library version mismatch",
		"Unrecognized CachingAllocator option", "in CUDA allocator config",
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
