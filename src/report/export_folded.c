/* SPDX-License-Identifier: Apache-2.0
 *
 * Folded stacks for flame graphs: "outermost;...;innermost bytes", a line a stack of the moment shown. The last part
 * says what the bytes are for. A semicolon in a name would part it, and becomes a colon.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plain.h"
#include "report/inspection_writers.h"
#include "report/text.h"
#include "verdict/paths.h"

static void
put_name(FILE *out, const char *name)
{
	char *copy = strdup(name != NULL ? name : "");
	if (copy == NULL)
		return;
	tn__make_plain(copy, '?');
	for (char *at = copy; (at = strchr(at, ';')) != NULL;)
		*at = ':';
	fputs(copy, out);
	free(copy);
}

static void
put_frame(const struct tn_inspection *inspection, uint32_t number, FILE *out)
{
	struct tn_frame frame = tn_snapshot_frame(inspection->snapshot, number);
	put_name(out, frame.function[0] != '\0' ? frame.function : "?");
	fputs(" (", out);
	put_name(out, tn__file_name(tn__inspection_file(inspection, frame.file)));
	fprintf(out, ":%" PRId64 ");", frame.line);
}

static void
put_site(const struct tn_inspection *inspection, const struct tn_site *site, FILE *out)
{
	const uint32_t *frames;
	size_t count = tn_snapshot_stack(inspection->snapshot, site->origin.stack, &frames);
	for (size_t i = count; i-- > 0;)
		put_frame(inspection, frames[i], out);
	if (count == 0)
		fputs("[no stack];", out);
	fprintf(out, "[%s%s] %" PRIu64 "\n", tn__category_words(site->category),
	        site->origin.at.backward ? ", backward" : "", site->bytes);
}

tn_status
tn__inspection_folded(const struct tn_inspection *inspection, FILE *out)
{
	struct tn_site *sites;
	size_t count;
	TN_FORWARD_IF_ERROR(
		tn__sites_of(inspection->analysis, &inspection->parts, inspection->named[0].state, NULL, &sites, &count));
	for (size_t i = 0; i < count; i++)
		put_site(inspection, &sites[i], out);
	free(sites);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_STATE, "the folded stacks could not be written");
	return TN_OK;
}
