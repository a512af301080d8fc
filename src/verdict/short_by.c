/* SPDX-License-Identifier: Apache-2.0
 *
 * What an out-of-memory lacked.
 */
#include "verdict/judge.h"

int64_t
tn__report_short_by(const struct tn_report *report)
{
	int64_t in_all = report->need.least - (int64_t)report->gpu.total_bytes;
	return report->need.least > 0 && in_all > report->oom.short_by_bytes ? in_all : report->oom.short_by_bytes;
}
