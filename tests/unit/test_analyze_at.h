/* SPDX-License-Identifier: Apache-2.0
 *
 * Moments and growth of a snapshot that nobody else looks at: each call analyses it anew.
 */
#ifndef TEST_ANALYZE_AT_H
#define TEST_ANALYZE_AT_H

#include "analyze/history.h"

static inline tn_status
peak_of_snapshot(const struct tn_snapshot *snapshot, int device, uint64_t reserved, struct tn_moment *out)
{
	struct tn_analysis *analysis;
	tn_status status = tn__analysis_open(snapshot, device, &analysis);
	if (status != TN_OK)
		return status;
	status = tn__moment_of_peak(analysis, reserved, out);
	tn__analysis_close(analysis);
	return status;
}

static inline tn_status
end_of_snapshot(const struct tn_snapshot *snapshot, int device, struct tn_moment *out)
{
	struct tn_analysis *analysis;
	tn_status status = tn__analysis_open(snapshot, device, &analysis);
	if (status != TN_OK)
		return status;
	status = tn__moment_of_end(analysis, out);
	tn__analysis_close(analysis);
	return status;
}

static inline tn_status
growth_of_snapshot(const struct tn_snapshot *snapshot, int device, struct tn_holding **holdings, size_t *count)
{
	struct tn_analysis *analysis;
	tn_status status = tn__analysis_open(snapshot, device, &analysis);
	if (status != TN_OK)
		return status;
	status = tn__growth_of(analysis, holdings, count);
	tn__analysis_close(analysis);
	return status;
}

#endif
