/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of all that the trace holds (RFC 4180): a row for each block, and for each category in it. Holders at any
 * moment are one query away. Unknown fields are empty.
 */
#include <inttypes.h>

#include "base/error.h"
#include "report/inspection_writers.h"

static void
put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; text != NULL && *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

/* The time of the event that made a state; nothing for a block that was there before, or lives to the end. */
static void
put_time(const struct tn_inspection *inspection, uint32_t state, FILE *out)
{
	const struct tn_event_columns *events = &inspection->analysis->events;
	if (state > 0 && state <= events->count && events->times[state - 1] > 0)
		fprintf(out, "%" PRId64, events->times[state - 1]);
}

static void
put_line(const struct tn_inspection *inspection, const struct tn_line *line, FILE *out)
{
	put_text(out, tn__inspection_file(inspection, line->file));
	if (line->file != NULL)
		fprintf(out, ",%" PRId64 ",", line->line);
	else
		fputs(",,", out);
	put_text(out, line->function);
}

static void
put_stream(const struct tn_inspection *inspection, const struct tn_interval *block, FILE *out)
{
	if (!block->begun)
		return;
	uint32_t context = inspection->analysis->events.contexts[block->from - 1];
	uint64_t stream = tn_snapshot_context(inspection->snapshot, context).stream;
	if (stream != TN_UNKNOWN)
		fprintf(out, "%" PRIu64, stream);
}

static void
put_part(const struct tn_inspection *inspection, const struct tn_part *part, FILE *out)
{
	const struct tn_interval *block = &inspection->analysis->blocks.intervals[part->interval];
	struct tn_origin origin = tn__origin_of_interval(inspection->analysis, block);
	uint32_t until = block->until == TN_NEVER ? TN_NEVER : block->until;
	fprintf(out, "%" PRIu32 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", part->interval, block->address,
	        tn__category_name(part->category), part->bytes, block->requested, block->size);
	put_text(out, part->label);
	fprintf(out, ",%" PRIu32 ",", block->from);
	if (until != TN_NEVER)
		fprintf(out, "%" PRIu32, until);
	fputc(',', out);
	put_time(inspection, block->begun ? block->from : 0, out);
	fputc(',', out);
	put_time(inspection, until, out);
	fputc(',', out);
	put_stream(inspection, block, out);
	fprintf(out, ",%d,", tn__is_alive(block, inspection->named[0].state));
	put_line(inspection, &origin.at, out);
	fprintf(out, ",%d,", origin.at.backward);
	put_line(inspection, &origin.user, out);
	fputs("\r\n", out);
}

tn_status
tn__inspection_csv(const struct tn_inspection *inspection, FILE *out)
{
	fputs("block,address,category,bytes,requested_bytes,block_bytes,what,from_state,until_state,allocated_us,freed_us,"
	      "stream,alive,file,line,function,backward,user_file,user_line,user_function\r\n",
	      out);
	for (size_t i = 0; i < inspection->parts.count && !ferror(out); i++)
		put_part(inspection, &inspection->parts.items[i], out);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_STATE, "the table could not be written");
	return TN_OK;
}
