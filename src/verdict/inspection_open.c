/* SPDX-License-Identifier: Apache-2.0
 *
 * From what `tonnage report` is given to an inspection: the JSON of a run is read back, a snapshot is looked at.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/secrets.h"
#include "verdict/run_reader.h"
#include "verdict/inspection.h"

static tn_status
fill(struct tn_inspection *inspection, const struct tn_inspection_request *wish)
{
	TN_FORWARD_IF_ERROR(tn__read_run_json(wish->path, &inspection->document, &inspection->report));
	if (inspection->document != NULL) {
		TN_RETURN_IF(wish->at != NULL || wish->device > 0, TN_INVALID,
		             "%s is the JSON of a run: --at and --device want a snapshot", wish->path);
		inspection->oom_event = -1;
	} else {
		TN_FORWARD_IF_ERROR(tn__inspection_of_snapshot(wish, inspection));
	}
	if (inspection->report.working_folder == NULL)
		inspection->report.working_folder = getcwd(NULL, 0);
	inspection->report.secrets = tn__secrets_of(NULL, environ);
	TN_FORWARD_IF_ERROR(tn__redactor_new(inspection->report.secrets, wish->redact, &inspection->redactor));
	if (wish->redact)
		tn__redact_report(inspection->redactor, &inspection->report);
	else
		tn__mask_paths(&inspection->report);
	inspection->path = tn__redacted(inspection->redactor, inspection->path);
	return TN_OK;
}

tn_status
tn__inspection_open(const struct tn_inspection_request *wish, struct tn_inspection *inspection)
{
	tn__inspection_init(inspection, wish->path);
	tn_status status = fill(inspection, wish);
	if (status != TN_OK)
		tn__inspection_free(inspection);
	return status;
}
