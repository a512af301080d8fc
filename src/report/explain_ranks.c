/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rank failed first and which only followed, for a person and as JSON.
 */
#include "report/explain_ranks.h"

#include <inttypes.h>
#include <string.h>

#include "report/explain_snapshot.h" /* tn__write_json_string */

#define RANKS_SHOWN 8

static uint64_t
line_of(const struct tn_ranks_log *log, int64_t rank)
{
	const struct tn_rank_end *end = &log->ends[rank];
	return end->failed_at != 0 ? end->failed_at : end->followed_at != 0 ? end->followed_at : log->root_at;
}

/* Ranks other than `first` that failed by themselves, or else that only followed. */
static bool
is_among(const struct tn_ranks_log *log, int64_t rank, int64_t first, bool failed)
{
	const struct tn_rank_end *end = &log->ends[rank];
	if (rank == first)
		return false;
	return failed ? end->failed_at != 0 : end->failed_at == 0 && end->followed_at != 0;
}

static void
write_list(const struct tn_ranks_log *log, int64_t first, bool failed, const char *name, FILE *out)
{
	bool any = false;
	fprintf(out, "    \"%s\": [", name);
	for (int64_t rank = 0; rank <= log->highest; rank++)
		if (is_among(log, rank, first, failed)) {
			fprintf(out, "%s%" PRId64, any ? ", " : "", rank);
			any = true;
		}
	fputs("]", out);
}

void
tn__ranks_json(const struct tn_ranks_log *log, FILE *out)
{
	bool by_launcher = false;
	int64_t first = tn__ranks_log_first(log, &by_launcher);
	if (first < 0)
		return;
	fputs(",\n  \"ranks\": {\n    \"count\": ", out);
	if (log->stated > log->highest)
		fprintf(out, "%" PRId64, log->stated);
	else
		fputs("null", out);
	fprintf(out, ",\n    \"first\": %" PRId64 ",\n    \"line\": %" PRIu64 ",\n    \"what\": ", first,
	        line_of(log, first));
	if (log->ends[first].what[0] != '\0')
		tn__write_json_string(out, log->ends[first].what);
	else
		fputs("null", out);
	fprintf(out, ",\n    \"said_by\": \"%s\",\n", by_launcher ? "launcher" : "order");
	write_list(log, first, true, "failed_too", out);
	fputs(",\n", out);
	write_list(log, first, false, "followed", out);
	fputs("\n  }", out);
}

/* "3, 7, 9 and 12 more"; how many there are. */
static size_t
list_ranks(const struct tn_ranks_log *log, int64_t first, bool failed, char *text, size_t capacity)
{
	size_t count = 0, length = 0;
	text[0] = '\0';
	for (int64_t rank = 0; rank <= log->highest; rank++)
		if (is_among(log, rank, first, failed) && count++ < RANKS_SHOWN)
			length += (size_t)snprintf(text + length, capacity - length, "%s%" PRId64, length > 0 ? ", " : "", rank);
	if (count > RANKS_SHOWN)
		snprintf(text + length, capacity - length, " and %zu more", count - RANKS_SHOWN);
	return count;
}

void
tn__ranks_text(const struct tn_ranks_log *log, const struct tn_printer *printer)
{
	bool by_launcher = false;
	char list[160];
	int64_t first = tn__ranks_log_first(log, &by_launcher);
	if (first < 0)
		return;
	const struct tn_rank_end *end = &log->ends[first];
	fputc('\n', printer->out);
	char of[48] = "Of the ranks named here";
	if (log->stated > log->highest)
		snprintf(of, sizeof(of), "Of %" PRId64 " ranks", log->stated);
	tn__say(printer, TN_TINT_STRONG, 0, "%s, rank %" PRId64 " failed first (line %" PRIu64 "%s)%s%s", of, first,
	        line_of(log, first), by_launcher ? ", as the launcher says" : "", end->what[0] != '\0' ? ": " : "",
	        end->what);
	size_t count = list_ranks(log, first, true, list, sizeof(list));
	if (count > 0)
		tn__say(printer, TN_TINT_NONE, 2, "%s %s failed by %s, too", count == 1 ? "rank" : "ranks", list,
		        count == 1 ? "itself" : "themselves");
	count = list_ranks(log, first, false, list, sizeof(list));
	if (count > 0)
		tn__say(printer, TN_TINT_NONE, 2,
		        "%s %s only followed: what %s says (a timeout, a closed connection, SIGTERM) is no cause",
		        count == 1 ? "rank" : "ranks", list, count == 1 ? "it" : "each");
}

void
tn__ranks_of_error(const struct tn_ranks_log *log, int64_t rank, bool all, FILE *out)
{
	bool by_launcher = false, any = false;
	int64_t first = tn__ranks_log_first(log, &by_launcher);
	if (first < 0) /* the only one that is named */
		first = rank;
	fputs("\"ranks\": [", out);
	for (int64_t i = 0; i <= log->highest || i == rank; i++) {
		bool ended = i <= log->highest && (log->ends[i].failed_at != 0 || log->ends[i].followed_at != 0);
		if (i != rank && !(all && (ended || i == first)))
			continue;
		fprintf(out, "%s{ \"rank\": %" PRId64 ", \"first\": %s }", any ? ", " : "", i, i == first ? "true" : "false");
		any = true;
	}
	fputc(']', out);
}
