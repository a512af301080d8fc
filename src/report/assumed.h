/* SPDX-License-Identifier: Apache-2.0
 *
 * Assumptions of a report as JSON.
 */
#ifndef TN_REPORT_ASSUMED_H
#define TN_REPORT_ASSUMED_H

#include <jansson.h>

#include "verdict/model.h"

/* New references. */
json_t *tn__assumptions_json(const struct tn_assumed_list *list);
json_t *tn__assumption_passed_json(const struct tn_assumed_list *list); /* null: none let the program pass */
json_t *tn__bound_json(enum tn_peak_bound bound);

#endif
