/* SPDX-License-Identifier: Apache-2.0
 *
 * The found changes as JSON (doc/format/fix.schema.json), and what the two writers share.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/secrets.h"
#include "report/fix.h"
#include "report/json_parts.h"

bool
tn__fix_is_narrow(const struct tn_fix_change *change)
{
	return change->end == TN_FIX_FITS && change->margin != TN_NO_FIGURE && change->margin < change->uncertain &&
	       change->fits_with_less < change->uncertain;
}

const char *
tn__fix_end_name(enum tn_fix_end end)
{
	static const char *const names[] = {
		"fits", "not_enough", "no_help", "not_applied", "broke", "own_error", "unknown"
	};
	return names[end];
}

void
tn__fix_change_free(struct tn_fix_change *change)
{
	for (size_t i = 0; i < change->part_count; i++)
		free(change->parts[i]);
	free(change->parts);
	free(change->changes);
	free(change->title);
	free(change->how);
	free(change->why_not);
	free(change->patch);
	free(change->command);
	*change = (struct tn_fix_change){ 0 };
}

void
tn__fixes_free(struct tn_fixes *fixes)
{
	for (size_t i = 0; i < fixes->change_count; i++)
		tn__fix_change_free(&fixes->changes[i]);
	free(fixes->changes);
	free(fixes->cause);
	free(fixes->why);
	free(fixes->own_error);
	free(fixes->advice);
	free(fixes->at);
	free(fixes->why_at);
	free(fixes->command);
	free(fixes->card_options);
	free(fixes->unseen);
	free(fixes->deciding);
	tn__secrets_free(fixes->secrets);
	*fixes = (struct tn_fixes){ 0 };
}

char *
tn__fix_shown_patch(const struct tn_fixes *fixes, const struct tn_fix_change *change)
{
	return change->patch != NULL ? tn__mask_known(fixes->secrets, change->patch) : NULL;
}

static json_t *
patch_text(const struct tn_fixes *fixes, const struct tn_fix_change *change)
{
	char *patch = tn__fix_shown_patch(fixes, change);
	json_t *text = tn__json_text(patch);
	free(patch);
	return text;
}

static json_t *
parts(const struct tn_fix_change *change)
{
	json_t *array = json_array();
	for (size_t i = 0; i < change->part_count; i++)
		json_array_append_new(array, tn__json_text(change->parts[i]));
	return array;
}

/* An estimate has no more than three digits behind the point. */
static json_t *
ratio(bool known, double value)
{
	return known ? json_real(round(value * 1000) / 1000) : json_null();
}

static json_t *
time_range(const struct tn_time_ratio *time)
{
	return time->known ? json_pack("[o, o]", ratio(true, time->low), ratio(true, time->high)) : json_null();
}

static json_t *
change_object(const struct tn_fixes *fixes, const struct tn_fix_change *change)
{
	return json_pack(
		"{s:o, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o, s:o, s:o}",
		"id", tn__json_text(change->changes), "title", tn__json_text(change->title), "combination", parts(change),
		"outcome", tn__fix_end_name(change->end), "fits", change->end == TN_FIX_FITS, "peak_reserved_bytes",
		tn__json_figure(change->reserved_peak), "peak_device_bytes", tn__json_figure(change->device_peak),
		"needed_bytes", tn__json_figure(change->need), "saved_bytes",
		tn__json_figure(change->device_peak == TN_NO_FIGURE ? TN_NO_FIGURE : change->saved), "margin_bytes",
		change->end == TN_FIX_FITS ? tn__json_figure(change->margin) : json_null(), "step_time_ratio",
		ratio(change->time.known, change->time.ratio), "step_time_range", time_range(&change->time), "results",
		tn__guarantee_name(change->results), "how", tn__json_text(change->how), "command",
		tn__json_text(change->command), "patch", patch_text(fixes, change), "patch_tried",
		change->patch != NULL ? json_boolean(change->patch_tried) : json_null(), "why_not",
		tn__json_text(change->why_not), "remedy", change->remedy, "enough", change->enough, "narrowly",
		tn__fix_is_narrow(change), "fits_with_less_bytes",
		change->fits_with_less > 0 ? tn__json_figure(change->fits_with_less) : json_null(), "trial",
		change->trial > 0 ? json_integer(change->trial) : json_null(), "steps_seen",
		tn__json_figure(change->steps_seen));
}

static json_t *
all_changes(const struct tn_fixes *fixes)
{
	json_t *array = json_array();
	for (size_t i = 0; i < fixes->change_count; i++)
		json_array_append_new(array, change_object(fixes, &fixes->changes[i]));
	return array;
}

static const char *
verdict(const struct tn_fixes *fixes)
{
	if (fixes->fits_unchanged)
		return "fits";
	if (fixes->failed)
		return "failed";
	if (fixes->undecided)
		return "undecided";
	for (size_t i = 0; i < fixes->change_count; i++)
		if (fixes->changes[i].end == TN_FIX_FITS)
			return "fits_changed";
	return fixes->interrupted ? "interrupted" : "nothing_fits";
}

static json_t *
unchanged(const struct tn_fixes *fixes)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "command",
	                 tn__json_text(fixes->deciding), "not_seen", tn__json_text(fixes->unseen), "host_memory_bytes",
	                 tn__json_figure(fixes->host_memory), "needed_bytes", tn__json_figure(fixes->need), "missing_bytes",
	                 tn__json_figure(fixes->missing), "smallest_gpu", tn__json_text(fixes->smallest_gpu), "cause",
	                 tn__json_text(fixes->cause), "why", tn__json_text(fixes->why), "at", tn__json_text(fixes->at),
	                 "do_first", tn__json_text(fixes->wrong ? fixes->advice : NULL), "own_error",
	                 tn__json_text(fixes->own_error));
}

static json_t *
multi_gpu(const struct tn_fixes *fixes)
{
	json_t *array = json_array();
	for (size_t i = 0; i < fixes->multi_gpu_count; i++) {
		const struct tn_multi_gpu_estimate *more = &fixes->multi_gpu[i];
		json_array_append_new(array, json_pack("{s:s, s:i, s:I}", "method",
		                                       more->method == TN_CARDS_FSDP ? "fsdp" : "ddp", "cards", more->cards,
		                                       "estimated_device_bytes", (json_int_t)more->device_bytes));
	}
	return array;
}

static json_t *
seconds(double value)
{
	return value > 0 ? json_real(value) : json_null();
}

static json_t *
trial_seconds(const struct tn_trial_seconds *took)
{
	return json_pack("{s:o, s:o, s:o}", "fresh", seconds(took->fresh), "forked", seconds(took->forked), "forked_least",
	                 seconds(took->forked_least));
}

static json_t *
gpu(const struct tn_fixes *fixes)
{
	return json_pack("{s:o, s:I, s:I}", "name", tn__json_text(fixes->gpu.name), "total_bytes",
	                 (json_int_t)fixes->gpu.total_bytes, "context_bytes", (json_int_t)fixes->gpu.context_bytes);
}

tn_status
tn__fixes_json(const struct tn_fixes *fixes, FILE *out)
{
	json_t *object = json_pack(
		"{s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:i, s:i, s:o, s:o, s:f, s:o}", "schema", "tonnage.fix/1", "verdict",
		verdict(fixes), "gpu", gpu(fixes), "unchanged", unchanged(fixes), "margin_wanted_bytes",
		(json_int_t)fixes->margin_wanted, "changes", all_changes(fixes), "multi_gpu", multi_gpu(fixes), "trials",
		fixes->trials, "forked_trials", fixes->forked, "not_forked_because", tn__json_text(fixes->not_forked),
		"trial_seconds", trial_seconds(&fixes->took), "seconds", fixes->seconds, "seconds_to_first",
		fixes->first_seconds < 0 ? json_null() : json_real(fixes->first_seconds));
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory");
	bool good = tn__json_write(object, out, JSON_INDENT(1)) == 0 && fputc('\n', out) != EOF && fflush(out) == 0;
	json_decref(object);
	TN_RETURN_IF(!good, TN_IO, "the list could not be written: %s", strerror(errno));
	return TN_OK;
}
