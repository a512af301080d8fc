/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside serve-plan: the engine's own start. Internal to src/inspect.
 */
#ifndef TN_INSPECT_SERVE_PLAN_H
#define TN_INSPECT_SERVE_PLAN_H

#include "report/serving.h"

/* Starts the engine of `python` (NULL: python3) on a virtual card with made-up weights, as the plan has it, and compares its blocks or tokens with ours for
 * the memory that it found. What goes wrong stands in check->problem. */
void tn__serve_verify(const struct tn_serving *serving, const char *folder, const char *python,
                      struct tn_serve_check *check);

#endif
