/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes an analysis, pass by pass.
 */
#include "analyze/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A trace without events where the snapshot holds none of that device. */
static struct tn_event_columns
events_of(const struct tn_snapshot *snapshot, int device)
{
	for (size_t trace = 0; trace < tn_snapshot_traces(snapshot); trace++) {
		if (tn_snapshot_trace_device(snapshot, trace) == device)
			return tn_snapshot_columns(snapshot, trace);
	}
	return (struct tn_event_columns){ 0 };
}

static tn_status
use_metadata(struct tn_analysis *analysis)
{
	size_t length;
	const char *text = tn_snapshot_metadata(analysis->snapshot, &length);
	analysis->marked = text != NULL;
	if (!text)
		return tn__guess_categories(analysis);
	TN_FORWARD_IF_ERROR(tn__metadata_parse(text, length, &analysis->metadata));
	TN_FORWARD_IF_ERROR(tn__find_claims(analysis));
	TN_FORWARD_IF_ERROR(tn__claim_graphs(analysis));
	return tn__find_runs(analysis);
}

static tn_status
fill(struct tn_analysis *analysis)
{
	TN_FORWARD_IF_ERROR(tn__find_intervals(analysis));
	TN_FORWARD_IF_ERROR(tn__find_sizes(analysis));
	TN_FORWARD_IF_ERROR(tn__find_curves(analysis));
	TN_FORWARD_IF_ERROR(tn__find_traits(analysis));
	TN_FORWARD_IF_ERROR(use_metadata(analysis));
	return tn__find_visits(analysis);
}

tn_status
tn__analysis_open(const struct tn_snapshot *snapshot, int device, struct tn_analysis **analysis)
{
	TN_RETURN_IF(device < 0, TN_INVALID, "device %d cannot be analysed", device);
	struct tn_analysis *fresh = calloc(1, sizeof(*fresh));
	TN_RETURN_IF(!fresh, TN_NO_MEMORY, "no host memory for an analysis");
	fresh->snapshot = snapshot;
	fresh->device = device;
	fresh->budget.limit = UINT64_MAX;
	fresh->events = events_of(snapshot, device);
	tn_status status = fill(fresh);
	if (status == TN_OK)
		*analysis = fresh;
	else
		tn__analysis_close(fresh);
	return status;
}

static void
free_track(struct tn_track *track)
{
	free(track->places.addresses);
	free(track->intervals);
}

void
tn__analysis_close(struct tn_analysis *analysis)
{
	if (!analysis)
		return;
	free_track(&analysis->blocks);
	free_track(&analysis->segments);
	free(analysis->by_event);
	free(analysis->allocated);
	free(analysis->reserved);
	free(analysis->traits);
	free(analysis->visits);
	tn__metadata_free(&analysis->metadata);
	free(analysis->claims);
	free(analysis->run_stacks);
	free(analysis->guesses);
	free(analysis);
}

bool
tn__was_made_in(const struct tn_analysis *analysis, const struct tn_interval *block, const char *phase)
{
	const struct tn_metadata_phase *of = block->begun ? tn__phase_at(&analysis->metadata,
	                                                                 analysis->events.times[block->from - 1])
	                                                  : NULL;
	return of && strcmp(of->name, phase) == 0;
}
