/* SPDX-License-Identifier: Apache-2.0
 *
 * What a snapshot adds to an error, for a person and as JSON.
 */
#include "report/explain_snapshot.h"

#include <inttypes.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define MOST_ROWS 8     /* for a person */
#define MOST_HOLDERS 50 /* in JSON */

/* ---- for a person ---- */

static bool
is_small(const struct tn_evidence *evidence)
{
	return evidence->reserved < GIB;
}

/* Figures of a file that lies may be any. */
static int64_t
shown(uint64_t bytes)
{
	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

static void
say_row(const struct tn_evidence *evidence, const struct tn_printer *printer, const char *name, uint64_t bytes,
        const char *remark)
{
	tn__say_table_row(printer, &(struct tn_row){ .name = name,
	                                             .bytes = shown(bytes),
	                                             .total = shown(evidence->reserved),
	                                             .small = is_small(evidence),
	                                             .remark = remark });
}

/* "train.py:41 forward, 24 blocks", in the longest form that fits `room` columns. */
static void
say_place(const struct tn_evidence_row *row, int room, char out[512])
{
	char blocks[40] = "";
	if (row->blocks > 1)
		snprintf(blocks, sizeof(blocks), ", %zu blocks", row->blocks);
	for (int form = 0; form < 4; form++) {
		const char *file = row->at.file ? form == 0 ? row->at.file : tn__evidence_last_part(row->at.file) : NULL;
		bool function = form <= 1 && row->at.function && row->at.function[0];
		if (!file)
			snprintf(out, 512, "no line of Python%s", blocks);
		else
			snprintf(out, 512, "%s%.300s:%" PRId64 "%s%.80s%s", row->at.backward ? "backward of " : "", file,
			         row->at.line, function ? " " : "", function ? row->at.function : "", form < 3 ? blocks : "");
		if (tn__columns_of(out) <= room)
			break;
	}
	tn__make_plain(out, '?');
	if (tn__columns_of(out) > room && room > 3) {
		out[room - 3] = '\0';
		strcat(out, "...");
	}
}

static void
say_rows(const struct tn_evidence *evidence, const struct tn_printer *printer)
{
	uint64_t named = 0, live = evidence->categories ? evidence->moment.requested : evidence->allocated;
	size_t count = tn__evidence_rows(evidence), rows = count < MOST_ROWS ? count : MOST_ROWS;
	fputc('\n', printer->out);
	tn__say_table_head(printer, evidence->at_request ? "What held the memory then" : "What held the memory at its end",
	                   is_small(evidence) ? "MiB" : "GiB");
	for (size_t index = 0; index < rows; index++) {
		char place[512];
		struct tn_evidence_row row = tn__evidence_row(evidence, index);
		say_place(&row, tn__remark_columns(printer), place);
		say_row(evidence, printer, row.words, row.bytes, place);
		named += row.bytes;
	}
	if (count > rows && live > named)
		say_row(evidence, printer, "the rest", live - named, NULL);
	if (evidence->categories && evidence->moment.by_category[TN_CATEGORY_rounding])
		say_row(evidence, printer, tn__category_words(TN_CATEGORY_rounding),
		        evidence->moment.by_category[TN_CATEGORY_rounding], NULL);
	if (evidence->reserved > evidence->allocated) {
		char piece[40], remark[80];
		snprintf(remark, sizeof(remark), "largest free block %s", tn__message_size(evidence->largest_free, piece));
		say_row(evidence, printer, tn__category_words(TN_CATEGORY_cached), evidence->reserved - evidence->allocated,
		        remark);
	}
	fputc('\n', printer->out);
}

static void
say_headline(const struct tn_evidence *evidence, const struct tn_printer *printer, uint64_t errors)
{
	char asked[40], room[40];
	const struct tn_failed_request *request = evidence->request;
	if (!request) {
		tn__say(printer, TN_TINT_STRONG, 0, "The snapshot of GPU %d has no failed request", evidence->device);
		return;
	}
	tn__say(printer, TN_TINT_STRONG, 0, "The snapshot: GPU %d was asked for %s%s%s", evidence->device,
	        tn__message_size(request->size, asked), request->device_free == TN_UNKNOWN ? "" : ", free on the card ",
	        request->device_free == TN_UNKNOWN ? "" : tn__message_size(request->device_free, room));
	if (evidence->error != TN_EVIDENCE_NO_ERROR && errors > 1)
		tn__say(printer, TN_TINT_NONE, 2, "It belongs to error %llu of the text.",
		        (unsigned long long)evidence->error + 1);
	else if (evidence->error == TN_EVIDENCE_NO_ERROR && errors > 0)
		tn__say(printer, TN_TINT_NONE, 2,
		        "No error of the text asks for that much on that device: text and snapshot "
		        "may be of different failures. What follows is the snapshot's last one.");
}

void
tn__evidence_text(const struct tn_evidence *evidence, const struct tn_printer *printer, uint64_t errors)
{
	say_headline(evidence, printer, errors);
	if (evidence->at.file)
		tn__say(printer, TN_TINT_NONE, 2, "asked by: %.300s:%" PRId64 " %.80s%s", evidence->at.file, evidence->at.line,
		        evidence->at.function ? evidence->at.function : "", evidence->at.backward ? " (its backward)" : "");
	say_rows(evidence, printer);
	if (evidence->categories && evidence->moment.inferred)
		tn__say(printer, TN_TINT_DIM, 2,
		        "The kinds of memory are inferred from stacks and lifetimes: the snapshot has "
		        "no metadata of tonnage run.");
	tn__say(printer, TN_TINT_NONE, 2, "Why: %s.", evidence->reason);
	if (evidence->error != TN_EVIDENCE_NO_ERROR && evidence->cause != TN_CAUSE_UNKNOWN &&
	    evidence->cause != evidence->text_cause)
		tn__say(printer, TN_TINT_NONE, 2, "That is more than the text could tell, and counts before its likely cause.");
	for (size_t index = 0; index < evidence->advice_count; index++)
		tn__say(printer, TN_TINT_NONE, index ? 12 : 2, "%s%s", index ? "" : "Do first: ", evidence->advice[index]);
}

/* ---- JSON ---- */

static void
write_bytes(FILE *out, const char *name, uint64_t bytes)
{
	if (bytes == TN_UNKNOWN)
		fprintf(out, "    \"%s\": null,\n", name);
	else
		fprintf(out, "    \"%s\": %" PRIu64 ",\n", name, bytes);
}

static void
write_text_or_null(FILE *out, const char *text)
{
	if (text && text[0])
		tn__write_json_string(out, text);
	else
		fputs("null", out);
}

/* "file", "line", "function", "backward". */
static void
write_line(FILE *out, const struct tn_line *line)
{
	fputs("\"file\": ", out);
	write_text_or_null(out, line->file);
	if (line->file)
		fprintf(out, ", \"line\": %" PRId64, line->line);
	else
		fputs(", \"line\": null", out);
	fputs(", \"function\": ", out);
	write_text_or_null(out, line->function);
	fprintf(out, ", \"backward\": %s", line->backward ? "true" : "false");
}

static void
write_categories(const struct tn_evidence *evidence, FILE *out)
{
	fprintf(out, "    \"inferred\": %s,\n    \"by_category\": ",
	        !evidence->categories       ? "null"
	        : evidence->moment.inferred ? "true"
	                                    : "false");
	for (int category = 0; evidence->categories && category <= TN_CATEGORY_cached; category++)
		fprintf(out, "%s\n      \"%s\": %" PRIu64, category ? "," : "{", tn__category_name((enum tn_category)category),
		        evidence->moment.by_category[category]);
	fputs(evidence->categories ? "\n    },\n" : "null,\n", out);
}

static void
write_holders(const struct tn_evidence *evidence, FILE *out)
{
	size_t count = tn__evidence_rows(evidence);
	fputs("    \"holders\": [", out);
	for (size_t index = 0; index < count && index < MOST_HOLDERS; index++) {
		struct tn_evidence_row row = tn__evidence_row(evidence, index);
		fprintf(out, "%s\n      {\"category\": ", index ? "," : "");
		write_text_or_null(out, row.category);
		fprintf(out, ", \"bytes\": %" PRIu64 ", \"blocks\": %zu, ", row.bytes, row.blocks);
		write_line(out, &row.at);
		fputc('}', out);
	}
	fputs(count ? "\n    ],\n" : "],\n", out);
}

static void
write_moment(const struct tn_evidence *evidence, FILE *out)
{
	int grows = tn__evidence_expandable(evidence->snapshot);
	write_bytes(out, "reserved_bytes", evidence->reserved);
	write_bytes(out, "allocated_bytes", evidence->allocated);
	write_bytes(out, "largest_free_block_bytes", evidence->largest_free);
	fprintf(out, "    \"expandable_segments\": %s,\n", grows < 0 ? "null" : grows ? "true" : "false");
	fputs("    \"at\": ", out);
	if (evidence->at.file) {
		fputc('{', out);
		write_line(out, &evidence->at);
		fputc('}', out);
	} else {
		fputs("null", out);
	}
	fputs(",\n    \"phase\": ", out);
	write_text_or_null(out, evidence->categories ? evidence->moment.phase : NULL);
	fputs(",\n", out);
}

void
tn__evidence_json(const struct tn_evidence *evidence, FILE *out)
{
	const struct tn_failed_request *request = evidence->request;
	fprintf(out, "  \"snapshot\": {\n    \"device_index\": %d,\n    \"moment\": \"%s\",\n", evidence->device,
	        evidence->at_request ? "out_of_memory" : "end");
	write_bytes(out, "error", evidence->error == TN_EVIDENCE_NO_ERROR ? TN_UNKNOWN : evidence->error);
	write_bytes(out, "requested_bytes", request ? request->size : TN_UNKNOWN);
	write_bytes(out, "free_bytes", request ? request->device_free : TN_UNKNOWN);
	write_moment(evidence, out);
	write_categories(evidence, out);
	write_holders(evidence, out);
	fprintf(out, "    \"likely_cause\": \"%s\",\n    \"reason\": ", tn__cause_text(evidence->cause));
	tn__write_json_string(out, evidence->reason);
	fputs(",\n    \"do\": [", out);
	for (size_t index = 0; index < evidence->advice_count; index++) {
		fputs(index ? ",\n      " : "\n      ", out);
		tn__write_json_string(out, evidence->advice[index]);
	}
	fputs(evidence->advice_count ? "\n    ]\n  }" : "]\n  }", out);
}
