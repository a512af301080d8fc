/* SPDX-License-Identifier: Apache-2.0
 *
 * One explained error for a person: in full, or in one line.
 */
#include "report/explain_error.h"

#include <string.h>

static const char *
cause_words(const struct tn_message *message)
{
	if (message->cause == TN_CAUSE_UNKNOWN && strcmp(message->family, "engine_refusal") == 0)
		return "what it wants to hold does not fit";
	static const char *const words[] = {
		[TN_CAUSE_UNKNOWN] = "cannot be told from this text",
		[TN_CAUSE_TOO_BIG] = "this one request is too big",
		[TN_CAUSE_MODEL_OR_BATCH] = "the model or the batch is too big",
		[TN_CAUSE_FRAGMENTATION] = "enough memory is reserved but unused, in pieces that are too small (fragmentation)",
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

void
tn__explain_error_text(const struct tn_printer *printer, const struct tn_message *message, uint64_t number)
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
	tn__say(printer, TN_TINT_NONE, 2, "Why: %s. %s", cause_words(message), upper_first(message->reason, reason));
	tn__say(printer, TN_TINT_NONE, 2, "Do first:");
	for (size_t i = 0; i < message->advice_count; i++)
		tn__say(printer, TN_TINT_NONE, 4, "%zu. %s", i + 1, message->advice[i]);
	if (!tn__message_can_run(message))
		tn__say(printer, TN_TINT_DIM, 2,
		        "tonnage run and fix simulate NVIDIA cards only, so they cannot try these for you.");
}

void
tn__explain_error_line(const struct tn_printer *printer, const struct tn_message *message)
{
	char buffer[64], rank[32] = "";
	if (message->rank >= 0)
		snprintf(rank, sizeof(rank), "rank %lld, ", (long long)message->rank);
	tn__say(printer, TN_TINT_NONE, 2, "line %llu: %s%s %s; %s", (unsigned long long)message->line, rank,
	        message->unclear ? "perhaps out of memory" : "out of memory", device_words(message, buffer),
	        cause_words(message));
}
