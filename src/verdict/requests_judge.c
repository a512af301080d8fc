/* SPDX-License-Identifier: Apache-2.0
 *
 * Which requests decide nothing, and why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verdict/judge.h"
#include "verdict/model_fill.h"

#define TOLD 2 /* requests that were refused; the others are in the table */

static void
doubt_listening(struct tn_report *report, bool well)
{
	const struct tn_requests *requests = &report->requests;
	char advice[256];
	if (well) {
		tn__report_add_doubt(report, TN_FINDING_no_listener, false, "give the command that starts the server and stays",
		                     "the program ended before it listened for the first request");
	} else if (requests->others != NULL) {
		snprintf(advice, sizeof(advice),
		         "name the address in the request: http://127.0.0.1:PORT/...; the run listens at %s", requests->others);
		tn__report_add_doubt(report, TN_FINDING_no_listener, false, advice,
		                     "no process of the run listened at the port of the first request within %.0f s",
		                     report->limit_seconds);
	} else {
		tn__report_add_doubt(
			report, TN_FINDING_no_listener, false, "--seconds N gives it more time (compiling is not counted)",
			"the server did not listen at any port of this machine within %.0f s", report->limit_seconds);
	}
}

/* What became of the first one that was not answered well. */
static const char *
failure_of(const struct tn_request_row *row, char status[64])
{
	if (row->status > 0 && (row->words == NULL || row->words[0] == '\0'))
		snprintf(status, 64, "was answered %" PRId64, row->status);
	else if (row->words != NULL && row->words[0] != '\0')
		snprintf(status, 64, "failed (%.50s)", row->words);
	else
		snprintf(status, 64, "had no answer");
	return status;
}

/* Where fewer than half are answered, nothing is known of what the request needs. */
static bool
is_unanswered(const struct tn_request_row *row)
{
	return row->sent > 0 && 2 * row->answered < row->sent;
}

static void
doubt_row(struct tn_report *report, const struct tn_request_row *row)
{
	char status[64];
	tn__report_add_doubt(report, TN_FINDING_requests_refused, false,
	                     row->status >= 400 && row->status < 500 ? "correct its path, headers or body"
	                                                             : "the server's own output says why",
	                     "request %" PRId64 ", %s (%s), %s: %" PRId64 " of %" PRId64 " were answered", row->failed,
	                     row->name, row->from, failure_of(row, status), row->answered, row->sent);
}

/* The others decide, and are told. */
static void
warn_row(struct tn_report *report, const struct tn_request_row *row)
{
	char status[64];
	tn__report_add_finding_as(report, TN_FINDING_requests_refused, TN_SEVERITY_WARNING, TN_NO_FIGURE, NULL, NULL,
	                          "request %" PRId64 ", %s (%s), %s: %" PRId64 " of %" PRId64 " were answered", row->failed,
	                          row->name, row->from, failure_of(row, status), row->answered, row->sent);
}

bool
tn__requests_doubt(struct tn_report *report, bool well)
{
	const struct tn_requests *requests = &report->requests;
	size_t told = 0;
	if (requests->port == 0) {
		doubt_listening(report, well);
		return true;
	}
	for (size_t i = 0; i < requests->count && told < TOLD; i++)
		if (is_unanswered(&requests->rows[i])) {
			doubt_row(report, &requests->rows[i]);
			told++;
		}
	for (size_t i = 0, warned = 0; told == 0 && i < requests->count && warned < TOLD; i++)
		if (requests->rows[i].failed > 0 && !requests->rows[i].out_of_memory) {
			warn_row(report, &requests->rows[i]);
			warned++;
		}
	if (told == 0 && requests->sent == 0) {
		tn__report_add_doubt(report, TN_FINDING_requests_refused, false, "--seconds N gives it more time",
		                     well ? "the server ended by itself while it had the first request"
		                          : "the first request was not answered within %.0f s",
		                     report->limit_seconds);
		told++;
	}
	return told > 0;
}
