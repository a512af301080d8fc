/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of a run: copied and released. Must not know the model (requests_judge.c does).
 */
#include "verdict/requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/figure.h"

void
tn__requests_model_free(struct tn_requests *requests)
{
	for (size_t i = 0; i < requests->count; i++) {
		free(requests->rows[i].name);
		free(requests->rows[i].from);
		free(requests->rows[i].words);
	}
	free(requests->rows);
	free(requests->others);
	*requests = (struct tn_requests){ .full_at = TN_NO_FIGURE };
}

static char *
copy(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

bool
tn__requests_model_copy(const struct tn_requests *from, struct tn_requests *to)
{
	struct tn_request_row *rows = calloc(from->count + 1, sizeof(*rows));
	if (rows == NULL)
		return false;
	*to = *from;
	to->rows = rows;
	to->others = copy(from->others);
	for (size_t i = 0; i < from->count; i++) {
		rows[i] = from->rows[i];
		rows[i].name = copy(from->rows[i].name);
		rows[i].from = copy(from->rows[i].from);
		rows[i].words = copy(from->rows[i].words);
	}
	return true;
}
