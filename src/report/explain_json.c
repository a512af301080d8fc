/* SPDX-License-Identifier: Apache-2.0
 *
 * One explained error as JSON. It is written by hand, because its sizes may exceed a signed 64-bit integer.
 */
#include "report/explain_error.h"

#include <inttypes.h>

#include "base/plain.h"
#include "report/explain_snapshot.h"

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

void
tn__explain_error_json(FILE *out, const struct tn_message *message, uint64_t number)
{
	fprintf(out, "%s    {\n      \"is_oom\": \"%s\",\n      \"family\": \"%s\",\n", number > 0 ? ",\n" : "\n",
	        message->unclear ? "unclear" : "yes", message->family);
	write_fields(out, message);
	fprintf(out, "      %c%" PRId64 " ,\n", TN_RANKS_HERE, message->rank);
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
