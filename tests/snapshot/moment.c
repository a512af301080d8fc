/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what the analysis makes of a snapshot as JSON, for the tests that compare it with PyTorch's own books.
 *
 *     moment FILE DEVICE end
 *     moment FILE DEVICE peak [RESERVED]
 *     moment FILE DEVICE states N...    a list: after the first N events of the trace, with all blocks
 *     moment FILE DEVICE growth         a list of holdings
 *
 * Ends with 1 and one line on stderr when there is no answer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "../unit/test_analyze_at.h"
#include "print_text.h"

/* [file, line, function, backward], or null. */
static void
print_line(const struct tn_line *line)
{
	if (!line->file) {
		printf("null");
		return;
	}
	printf("[");
	print_text(line->file);
	printf(", %" PRId64 ", ", line->line);
	print_text(line->function);
	printf(", %s]", line->backward ? "true" : "false");
}

static void
print_holding(const struct tn_holding *holding)
{
	printf("{\"category\": \"%s\", \"bytes\": %" PRIu64 ", \"blocks\": %zu, \"alike\": %zu, \"layers\": %s, \"at\": ",
	       tn__category_name(holding->category), holding->bytes, holding->blocks, holding->alike,
	       holding->layers ? "true" : "false");
	print_line(&holding->at);
	printf(", \"user\": ");
	print_line(&holding->user);
	printf(", \"label\": ");
	print_text(holding->label);
	printf("}");
}

static void
print_holdings(const struct tn_holding *holdings, size_t count)
{
	printf("[");
	for (size_t index = 0; index < count; index++) {
		printf("%s\n  ", index ? "," : "");
		print_holding(&holdings[index]);
	}
	printf("]");
}

static void
print_moment(const struct tn_moment *moment)
{
	printf("\"device\": %d, \"time_us\": %" PRId64 ", \"reserved\": %" PRIu64 ", \"allocated\": %" PRIu64
	       ", \"requested\": %" PRIu64 ", \"largest_free_block\": %" PRIu64 ", \"inferred\": %s, \"named\": %" PRIu64
	       ", \"step\": %" PRId64 ", \"phase\": ",
	       moment->device, moment->time_us, moment->reserved, moment->allocated, moment->requested,
	       moment->largest_free_block, moment->inferred ? "true" : "false", moment->named_bytes, moment->step);
	print_text(moment->phase);
	printf(",\n\"by_category\": {");
	for (int category = 0; category < TN_CATEGORIES; category++)
		printf("%s\"%s\": %" PRIu64, category ? ", " : "", tn__category_name((enum tn_category)category),
		       moment->by_category[category]);
	printf("},\n\"at\": ");
	print_line(&moment->at);
	printf(", \"at_user\": ");
	print_line(&moment->at_user);
	printf(",\n\"holders\": ");
	print_holdings(moment->holders, moment->holder_count);
}

static void
print_blocks(const struct tn_analysis *analysis, uint32_t state)
{
	bool first = true;
	printf(",\n\"blocks\": [");
	for (size_t index = 0; index < analysis->blocks.count; index++) {
		const struct tn_interval *block = &analysis->blocks.intervals[index];
		if (!tn__is_alive(block, state))
			continue;
		printf("%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", first ? "" : ", ", block->address, block->size,
		       block->requested);
		first = false;
	}
	printf("]");
}

static tn_status
print_state(const struct tn_analysis *analysis, const char *number)
{
	struct tn_moment moment;
	unsigned long state = strtoul(number, NULL, 10);
	if (state > analysis->events.count)
		return TN_NOT_FOUND;
	tn_status status = tn__moment_of_state(analysis, (uint32_t)state, &moment);
	if (status != TN_OK)
		return status;
	printf("{");
	print_moment(&moment);
	print_blocks(analysis, (uint32_t)state);
	printf("}");
	tn__moment_free(&moment);
	return TN_OK;
}

static tn_status
print_states(const struct tn_snapshot *snapshot, int device, char **numbers)
{
	struct tn_analysis *analysis;
	tn_status status = tn__analysis_open(snapshot, device, &analysis);
	if (status != TN_OK)
		return status;
	printf("[");
	for (char **number = numbers; status == TN_OK && *number; number++) {
		printf("%s", number == numbers ? "" : ",\n");
		status = print_state(analysis, *number);
	}
	printf("]\n");
	tn__analysis_close(analysis);
	return status;
}

static tn_status
print_growth(const struct tn_snapshot *snapshot, int device)
{
	struct tn_holding *holdings;
	size_t count;
	tn_status status = growth_of_snapshot(snapshot, device, &holdings, &count);
	if (status != TN_OK)
		return status;
	print_holdings(holdings, count);
	printf("\n");
	free(holdings);
	return TN_OK;
}

static tn_status
print_one(const struct tn_snapshot *snapshot, int device, const char *what, const char *reserved)
{
	struct tn_moment moment;
	tn_status status = strcmp(what, "end") == 0
	                       ? end_of_snapshot(snapshot, device, &moment)
	                       : peak_of_snapshot(snapshot, device, reserved ? strtoull(reserved, NULL, 10) : TN_UNKNOWN,
	                                          &moment);
	if (status != TN_OK)
		return status;
	printf("{");
	print_moment(&moment);
	printf("}\n");
	tn__moment_free(&moment);
	return TN_OK;
}

int
main(int count, char **arguments)
{
	struct tn_snapshot *snapshot;
	if (count < 4) {
		fprintf(stderr, "usage: moment FILE DEVICE end|peak|growth|states [RESERVED|N...]\n");
		return 2;
	}
	tn_status status = tn_snapshot_open(arguments[1], NULL, &snapshot);
	if (status == TN_OK) {
		int device = atoi(arguments[2]);
		if (strcmp(arguments[3], "states") == 0)
			status = print_states(snapshot, device, &arguments[4]);
		else if (strcmp(arguments[3], "growth") == 0)
			status = print_growth(snapshot, device);
		else
			status = print_one(snapshot, device, arguments[3], count > 4 ? arguments[4] : NULL);
		tn_snapshot_close(snapshot);
	}
	if (status != TN_OK)
		fprintf(stderr, "%s: %s\n", tn_status_text(status), tn_error_text());
	return status != TN_OK;
}
