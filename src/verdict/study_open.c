/* SPDX-License-Identifier: Apache-2.0
 *
 * From what `tonnage report` is given to a study: the JSON of a run is read back, a snapshot is looked at.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/secrets.h"
#include "verdict/run_reader.h"
#include "verdict/study.h"

static tn_status
fill(struct tn_study *study, const struct tn_study_wish *wish)
{
	TN_FORWARD_IF_ERROR(tn__read_run_json(wish->path, &study->document, &study->report));
	if (study->document != NULL) {
		TN_RETURN_IF(wish->at != NULL || wish->device > 0, TN_INVALID,
		             "%s is the JSON of a run: --at and --device want a snapshot", wish->path);
		study->oom_event = -1;
	} else {
		TN_FORWARD_IF_ERROR(tn__study_of_snapshot(wish, study));
	}
	if (study->report.working_folder == NULL)
		study->report.working_folder = getcwd(NULL, 0);
	study->report.secrets = tn__secrets_of(NULL, environ);
	TN_FORWARD_IF_ERROR(tn__redactor_new(study->report.secrets, wish->redact, &study->redactor));
	if (wish->redact)
		tn__redact_report(study->redactor, &study->report);
	else
		tn__mask_paths(&study->report);
	study->path = tn__redacted(study->redactor, study->path);
	return TN_OK;
}

tn_status
tn__study_open(const struct tn_study_wish *wish, struct tn_study *study)
{
	tn__study_init(study, wish->path);
	tn_status status = fill(study, wish);
	if (status != TN_OK)
		tn__study_free(study);
	return status;
}
