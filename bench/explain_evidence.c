/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what the frames of each text's first error tell of its phase, for bench/explain_fit.py: a line a file, with the
 * phase that is told, "frames" if their evidence decides it (else an operation was named), and PHASE:KINDS:FRAME for every
 * phase that some frame tells.
 */
#include <stdio.h>
#include <string.h>

#include "message/scanner.h"

static struct tn_message_scanner *scanner;
static bool found;

static tn_status
on_error(void *context, const struct tn_message *message)
{
	const struct tn_place *place = &scanner->held_event.place;
	(void)context;
	if (found)
		return TN_OK;
	found = true;
	printf("%s %s", message->phase == TN_AT_UNKNOWN ? "-" : tn__at_text(message->phase),
	       place->operation == TN_AT_UNKNOWN ? "frames" : "operation");
	for (size_t at = TN_AT_UNKNOWN + 1; at < TN_AT_COUNT; at++)
		if (place->evidence[at] != 0)
			printf(" %s:%u:%u", tn__at_text((enum tn_at)at), place->evidence[at], place->innermost[at]);
	return TN_OK;
}

int
main(int count, char **paths)
{
	static char text[1 << 20];
	for (int i = 1; i < count; i++) {
		FILE *file = fopen(paths[i], "rb");
		if (file == NULL || tn__message_scanner_new(on_error, NULL, &scanner) != TN_OK)
			return 1;
		size_t size = fread(text, 1, sizeof(text), file);
		fclose(file);
		found = false;
		if (tn__message_scan(scanner, text, size) != TN_OK || tn__message_scan_end(scanner) != TN_OK)
			return 1;
		tn__message_scanner_free(scanner);
		printf("%s\n", found ? "" : "-");
	}
	return 0;
}
