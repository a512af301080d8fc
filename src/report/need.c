/* SPDX-License-Identifier: Apache-2.0
 *
 * What a card that is never full tells of a program that ran out of memory: its need, and what it does about its memory
 * once it gets there. With that, the cause is another one where the moment of the out-of-memory had misled.
 */
#include <stdlib.h>
#include <string.h>

#include "report/json_parts.h"
#include "report/report.h"
#include "report/study.h"

static int64_t
known(const json_t *object, const char *name)
{
	int64_t value = tn__json_read_figure(object, name);
	return value == TN_NO_FIGURE ? 0 : value;
}

static bool
is_true(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

static void
read_facts(const json_t *object, struct tn_facts *facts)
{
	facts->known = json_is_object(object);
	facts->trains = is_true(object, "trains");
	facts->autocast = is_true(object, "autocast");
	facts->checkpoints = is_true(object, "checkpointing");
	facts->checkpoints_wait = is_true(object, "checkpointing_waits");
	facts->trained_in_eval = is_true(object, "trained_in_eval");
	facts->never_updated = is_true(object, "never_updated");
	facts->loader = is_true(object, "loader");
	facts->expandable_segments = is_true(object, "expandable_segments");
	facts->copy_called = is_true(object, "copy_called");
	facts->cudnn_benchmark = is_true(object, "cudnn_benchmark");
	facts->workspace_config = is_true(object, "workspace_config");
	facts->small_state = is_true(object, "small_optimizer_state");
	facts->parameter_bytes = known(object, "parameter_bytes");
	facts->wide_bytes = known(object, "wide_parameter_bytes");
	facts->small_bytes = known(object, "small_parameter_bytes");
	facts->trained_bytes = known(object, "trained_parameter_bytes");
}

/* Parameters of a second copy of the model. */
static int64_t
copied_parameters(const json_t *holders)
{
	const json_t *holder;
	int64_t bytes = 0;
	size_t i;
	json_array_foreach(holders, i, holder) {
		const char *what = json_string_value(json_object_get(holder, "what"));
		if (what != NULL && strcmp(what, "copy of the model") == 0 &&
		    tn__json_read_category(holder) == TN_CATEGORY_parameters)
			bytes += known(holder, "bytes");
	}
	return bytes;
}

struct tn_need
tn__need_of(const json_t *report)
{
	const json_t *peak = json_object_get(report, "peak"), *at_peak = json_object_get(report, "at_peak");
	const json_t *parts = json_object_get(at_peak, "by_category");
	const char *verdict = json_string_value(json_object_get(report, "verdict"));
	struct tn_need need = { .steps = known(json_object_get(report, "steps"), "seen") };
	int64_t device = known(peak, "device_bytes"), reserved = known(peak, "reserved_bytes");
	int64_t allocated = known(peak, "allocated_bytes");
	/* A program that failed, or took no step, may have been about to take more. */
	if (verdict == NULL || (strcmp(verdict, "fits") != 0 && strcmp(verdict, "grows") != 0) || need.steps <= 0 ||
	    device <= 0 || reserved < allocated || allocated <= 0)
		return (struct tn_need){ 0 };
	need.bytes = device;
	need.least = device - (reserved - allocated); /* a card that fills up makes PyTorch give back what it only caches */
	need.parameters = known(parts, "parameters");
	need.gradients = known(parts, "gradients");
	need.state = known(parts, "optimizer_state");
	need.parameters -= copied_parameters(json_object_get(at_peak, "holders")); /* they need not be there */
	need.lasting = need.parameters + need.gradients + need.state;
	read_facts(json_object_get(report, "facts"), &need.facts);
	return need;
}

/* What either run has seen the program do, it does. */
static void
add_facts(struct tn_facts *own, const struct tn_facts *later)
{
	if (!later->known)
		return;
	own->known = true;
	own->trains |= later->trains;
	own->autocast |= later->autocast;
	own->checkpoints |= later->checkpoints;
	own->checkpoints_wait = (own->checkpoints_wait || later->checkpoints_wait) && !own->checkpoints;
	own->trained_in_eval |= later->trained_in_eval;
	own->loader |= later->loader;
	own->expandable_segments |= later->expandable_segments;
	own->copy_called |= later->copy_called;
	own->cudnn_benchmark |= later->cudnn_benchmark;
	own->workspace_config |= later->workspace_config;
	own->small_state |= later->small_state;
	if (later->parameter_bytes <= own->parameter_bytes)
		return;
	own->parameter_bytes = later->parameter_bytes;
	own->wide_bytes = later->wide_bytes;
	own->small_bytes = later->small_bytes;
	own->trained_bytes = later->trained_bytes;
}

void
tn__report_take_need(struct tn_report *report, const struct tn_need *need)
{
	const struct tn_report_oom *oom = &report->oom;
	/* Less than was there already: the other run did not get as far, or was another program on another card. */
	if (need->bytes <= 0 || (oom->allocated_bytes != TN_NO_FIGURE && need->least < oom->allocated_bytes))
		return;
	report->need = *need;
	add_facts(&report->facts, &need->facts);
}

/* Drops the lead that a cause gave; one that the trace gave stays where it is enough, else it is one finding of many. */
static bool
drop_lead(struct tn_report *report)
{
	struct tn_finding *lead = report->findings;
	if (report->finding_count == 0 || lead->severity != TN_SEVERITY_ERROR)
		return true;
	if (tn__is_cause(lead->id)) {
		tn__report_drop_findings(report, lead->id);
		return true;
	}
	if (lead->bytes >= tn__report_short_by(report))
		return false;
	lead->severity = TN_SEVERITY_WARNING;
	return true;
}

void
tn__report_judge_need(json_t *document, const json_t *large)
{
	struct tn_report report;
	struct tn_need need = tn__need_of(large);
	json_t *out = json_object_get(document, "out_of_memory");
	tn__report_init(&report);
	if (need.bytes > 0 && json_is_object(out) && tn__run_json_read(document, &report) == TN_OK && report.oom.seen) {
		read_facts(json_object_get(document, "facts"), &report.facts);
		tn__report_take_need(&report, &need);
		if (report.need.bytes > 0 && drop_lead(&report)) {
			free(report.oom.cause);
			report.oom.cause = NULL;
			tn__report_find_cause(&report);
			json_object_set_new(out, "cause", json_string(report.oom.cause != NULL ? report.oom.cause : "unknown"));
			json_object_set_new(document, "findings", tn__json_findings(&report));
		}
	}
	tn__report_free(&report);
}
