/* SPDX-License-Identifier: Apache-2.0
 *
 * The public view of an analysis: moments as plain data. Nothing is computed here.
 */
#include <stdlib.h>

#include "analyze/analysis.h"
#include "analyze/history.h"
#include "base/error.h"
#include "tonnage/memory.h"

struct tn_memory {
	struct tn_analysis *analysis;
};

/* The public moment comes first, so that its address is that of the whole. */
struct owned_moment {
	struct tn_memory_moment view;
	struct tn_moment moment;
	struct tn_category_bytes categories[TN_CATEGORIES];
	struct tn_use *uses;
};

tn_status
tn_memory_open(const struct tn_snapshot *snapshot, int device, struct tn_memory **memory)
{
	TN_RETURN_IF(device < 0, TN_INVALID, "the device must be 0 or above, not %d", device);
	struct tn_memory *opened = calloc(1, sizeof(*opened));
	TN_RETURN_IF(opened == NULL, TN_NO_MEMORY, "no host memory for a device's history");
	tn_status status = tn__analysis_open(snapshot, device, &opened->analysis);
	if (status != TN_OK) {
		free(opened);
		return status;
	}
	*memory = opened;
	return TN_OK;
}

void
tn_memory_close(struct tn_memory *memory)
{
	if (memory != NULL)
		tn__analysis_close(memory->analysis);
	free(memory);
}

static tn_status
state_of_time(const struct tn_event_columns *events, int64_t time_us, uint32_t *state)
{
	uint32_t count = 0;
	TN_RETURN_IF(events->count == 0 || events->times[events->count - 1] == 0, TN_NOT_FOUND, "the trace has no times");
	while (count < events->count && events->times[count] <= time_us)
		count++;
	*state = count;
	return TN_OK;
}

static tn_status
state_of_moment(const struct tn_analysis *analysis, enum tn_when when, int64_t time_us, uint32_t *state)
{
	size_t trace, index;
	switch (when) {
	case TN_AT_PEAK:
		return tn__find_peak_state(analysis, TN_UNKNOWN, state);
	case TN_AT_OUT_OF_MEMORY:
		TN_RETURN_IF(!tn_snapshot_out_of_memory(analysis->snapshot, analysis->device, &trace, &index) ||
		                 index >= analysis->events.count,
		             TN_NOT_FOUND, "the trace of device %d has no out-of-memory error", analysis->device);
		*state = (uint32_t)index + 1;
		return TN_OK;
	case TN_AT_END:
		*state = (uint32_t)analysis->events.count;
		return TN_OK;
	case TN_AT_TIME:
		return state_of_time(&analysis->events, time_us, state);
	}
	return tn__fail(TN_INVALID, "unknown moment %d", (int)when);
}

static struct tn_use
use_of(const struct tn_holding *holding)
{
	return (struct tn_use){ .category = tn__category_name(holding->category),
		                    .bytes = holding->bytes,
		                    .blocks = holding->blocks,
		                    .file = holding->at.file,
		                    .function = holding->at.function,
		                    .line = holding->at.line,
		                    .backward = holding->at.backward,
		                    .label = holding->label };
}

/* Fills the public view from the moment that `owned` holds. */
static void
fill_view(struct owned_moment *owned)
{
	const struct tn_moment *moment = &owned->moment;
	struct tn_memory_moment *view = &owned->view;
	*view = (struct tn_memory_moment){ .time_us = moment->time_us,
		                               .reserved = moment->reserved,
		                               .allocated = moment->allocated,
		                               .requested = moment->requested,
		                               .largest_free_block = moment->largest_free_block,
		                               .step = moment->step,
		                               .phase = moment->phase,
		                               .inferred = moment->inferred,
		                               .categories = owned->categories,
		                               .uses = owned->uses,
		                               .use_count = moment->holder_count };
	for (int i = 0; i < TN_CATEGORIES; i++)
		if (moment->by_category[i] > 0)
			owned->categories[view->category_count++] = (struct tn_category_bytes){
				tn__category_name((enum tn_category)i), moment->by_category[i]
			};
	for (size_t i = 0; i < moment->holder_count; i++)
		owned->uses[i] = use_of(&moment->holders[i]);
}

tn_status
tn_memory_at(const struct tn_memory *memory, enum tn_when when, int64_t time_us, const struct tn_memory_moment **moment)
{
	uint32_t state = 0;
	TN_FORWARD_IF_ERROR(state_of_moment(memory->analysis, when, time_us, &state));
	struct owned_moment *owned = calloc(1, sizeof(*owned));
	TN_RETURN_IF(owned == NULL, TN_NO_MEMORY, "no host memory for a moment");
	tn_status status = tn__moment_of_state(memory->analysis, state, &owned->moment);
	if (status != TN_OK) {
		free(owned);
		return status;
	}
	owned->uses = calloc(owned->moment.holder_count + 1, sizeof(*owned->uses));
	if (owned->uses == NULL) {
		tn_memory_moment_free(&owned->view);
		return tn__fail(TN_NO_MEMORY, "no host memory for a moment");
	}
	fill_view(owned);
	*moment = &owned->view;
	return TN_OK;
}

void
tn_memory_moment_free(const struct tn_memory_moment *moment)
{
	struct owned_moment *owned = (struct owned_moment *)(uintptr_t)moment;
	if (owned == NULL)
		return;
	tn__moment_free(&owned->moment);
	free(owned->uses);
	free(owned);
}
