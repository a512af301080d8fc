/* SPDX-License-Identifier: Apache-2.0
 *
 * What a verdict says of the requests that it has seen: a line for all, and, where there are several or one was not answered well, one for each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/text.h"

#define LISTED 12
#define NUMBER 32

const char *
tn__step_word(const struct tn_report *report)
{
	return report->requests.known ? "request" : "step";
}

static const struct tn_request_row *
largest(const struct tn_requests *requests)
{
	const struct tn_request_row *found = NULL;
	for (size_t i = 0; i < requests->count; i++)
		if (requests->rows[i].peak != TN_NO_FIGURE && (found == NULL || requests->rows[i].peak > found->peak))
			found = &requests->rows[i];
	return found;
}

static void
say_row(const struct tn_printer *printer, const struct tn_request_row *row, size_t number)
{
	char peak[48] = "", bytes[32], failed[256] = "", status[32] = "";
	if (row->peak != TN_NO_FIGURE)
		snprintf(peak, sizeof(peak), ", %s", tn__human_bytes(row->peak, bytes));
	if (row->status > 0)
		snprintf(status, sizeof(status), " %" PRId64, row->status);
	if (row->failed > 0)
		snprintf(failed, sizeof(failed), "; request %" PRId64 " %s%s%s%s", row->failed,
		         row->out_of_memory ? "ran out of memory"
		         : row->status > 0  ? "was answered"
		                            : "had no answer",
		         status, row->words != NULL && row->words[0] != '\0' ? ", " : "", row->words != NULL ? row->words : "");
	tn__say(printer, row->failed > 0 ? TN_TINT_BAD : TN_TINT_NONE, 4,
	        "%zu %s (%s): %" PRId64 " of %" PRId64 " answered%s%s", number, row->name, row->from, row->answered,
	        row->sent, peak, failed);
}

void
tn__say_requests(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_requests *requests = &report->requests;
	char sent[NUMBER];
	int64_t answered = 0;
	bool failed = false;
	if (!requests->known || requests->port == 0)
		return;
	for (size_t i = 0; i < requests->count; i++) {
		answered += requests->rows[i].answered;
		failed |= requests->rows[i].failed > 0;
	}
	const struct tn_request_row *most = largest(requests);
	char which[128] = "";
	if (requests->count > 1 && most != NULL)
		snprintf(which, sizeof(which), "; request %zu of the list takes most", (size_t)(most - requests->rows) + 1);
	tn__say(printer, TN_TINT_NONE, 2, "Requests: %s sent to port %" PRId64 " in %" PRId64 " round%s%s%s%s",
	        tn__grouped(requests->sent, sent), requests->port, requests->rounds, requests->rounds == 1 ? "" : "s",
	        requests->sent == 0          ? ""
	        : answered == requests->sent ? ", all answered"
	                                     : ", not all answered",
	        which, requests->all ? "" : "; there was no time for more");
	for (size_t i = 0; (requests->count > 1 || failed) && i < requests->count && i < LISTED; i++)
		say_row(printer, &requests->rows[i], i + 1);
	if (requests->count > LISTED)
		tn__say(printer, TN_TINT_NONE, 4, "and %zu more", requests->count - LISTED);
}
