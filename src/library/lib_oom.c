/* SPDX-License-Identifier: Apache-2.0
 *
 * The public view of src/message: errors as plain data.
 */
#include "message/message.h"
#include "tonnage/oom.h"

struct reader {
	tn_oom_found *found;
	void *context;
};

static tn_status
pass_on(void *context, const struct tn_message *message)
{
	const struct reader *reader = context;
	struct tn_oom_figure figures[TN_FIGURE_COUNT];
	const char *advice[sizeof(message->advice) / sizeof(message->advice[0])];
	struct tn_oom_error error = { .family = message->family,
		                          .certain = !message->unclear,
		                          .device = message->device_index,
		                          .rank = message->rank,
		                          .line = message->line,
		                          .figures = figures,
		                          .at = message->culprit[0] != '\0' ? message->culprit : NULL,
		                          .cause = tn__cause_text(message->cause),
		                          .reason = message->reason,
		                          .advice = advice,
		                          .advice_count = message->advice_count };
	for (int i = 0; i < TN_FIGURE_COUNT; i++)
		if (message->figures[i] != TN_MESSAGE_NONE)
			figures[error.figure_count++] = (struct tn_oom_figure){ tn__figure_text((enum tn_figure)i),
				                                                    message->figures[i] };
	for (size_t i = 0; i < message->advice_count; i++)
		advice[i] = message->advice[i];
	return reader->found(reader->context, &error);
}

tn_status
tn_oom_scan(const char *text, size_t size, tn_oom_found *found, void *context)
{
	struct reader reader = { found, context };
	struct tn_message_scanner *scanner;
	tn_status status = tn__message_scanner_new(pass_on, &reader, &scanner);
	if (status != TN_OK)
		return status;
	status = tn__message_scan(scanner, text, size);
	if (status == TN_OK)
		status = tn__message_scan_end(scanner);
	tn__message_scanner_free(scanner);
	return status;
}
