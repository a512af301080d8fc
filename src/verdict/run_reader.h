/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON of a run, read back.
 */
#ifndef TN_VERDICT_RUN_READER_H
#define TN_VERDICT_RUN_READER_H

#include <jansson.h>

#include "verdict/model.h"

/* When the file is the JSON of a run, it is read into `report`, which borrows from *document (released by json_decref);
 * else *document is NULL. TN_FORMAT where it is broken. The report is initialised by the caller. */
tn_status tn__read_run_json(const char *path, json_t **document, struct tn_report *report);
/* The same of a document that was read already. */
tn_status tn__run_json_read(const json_t *root, struct tn_report *report);
/* Its "facts", which a report that is only shown again does not need. */
void tn__facts_read(const json_t *object, struct tn_facts *facts);

#endif
