/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's memory: making, adding, releasing. Judging stands in judge.c.
 */
#include "verdict/advice.h"
#include "verdict/finding_rows.h"
#include "verdict/programs.h"
#include "verdict/stand_ins.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/secrets.h"
#include "verdict/model_fill.h"

#define ROOM(array) (sizeof(array) / sizeof((array)[0]))

void
tn__report_init_moment(struct tn_report_moment *moment)
{
	moment->split = (struct tn_report_split){ TN_NO_FIGURE, TN_NO_FIGURE, TN_NO_FIGURE, TN_NO_FIGURE, 0 };
	moment->device_bytes = moment->largest_free_block_bytes = moment->step = TN_NO_FIGURE;
	for (int i = 0; i < TN_CATEGORIES; i++)
		moment->by_category[i] = TN_NO_FIGURE;
}

static void
init_growth(struct tn_report_growth *growth)
{
	growth->bytes = growth->first = growth->last = growth->peak = growth->of = growth->full_at = TN_NO_FIGURE;
}

void
tn__report_init(struct tn_report *report)
{
	memset(report, 0, sizeof(*report));
	report->gate.budget = report->gate.over_budget = report->gate.before = TN_NO_FIGURE;
	tn__report_init_moment(&report->at_peak);
	tn__report_init_moment(&report->at_oom);
	init_growth(&report->growth);
	report->cudnn = report->steps_seen = report->input_shapes = report->batch_size = TN_NO_FIGURE;
	report->allocated_peak = report->reserved_peak = report->requested_peak = report->device_peak = TN_NO_FIGURE;
	report->retries = TN_NO_FIGURE;
	report->context_lowest = report->context_highest = TN_NO_FIGURE;
	report->uncertainty_lowest = report->uncertainty_highest = TN_NO_FIGURE;
	report->oom.requested_bytes = report->oom.free_bytes = report->oom.largest_free_block_bytes = TN_NO_FIGURE;
	report->oom.short_by_bytes = report->oom.allocated_bytes = report->oom.reserved_bytes = TN_NO_FIGURE;
	report->oom.step = report->peak_rss_bytes = TN_NO_FIGURE;
	report->launches = report->computed_read_count = TN_NO_FIGURE;
	report->assumptions = (struct tn_assumed_list){ .bytes = TN_NO_FIGURE, .share = 1 };
	tn__inputs_init(&report->inputs);
	tn__host_init(&report->host);
	tn__programs_init(&report->programs, 0);
	report->system = (struct tn_host_system){ .kind = TN_SYSTEM_LINUX,
		                                      .limit = TN_NO_FIGURE,
		                                      .spilled = TN_NO_FIGURE,
		                                      .pinned = TN_NO_FIGURE,
		                                      .pinned_limit = TN_NO_FIGURE };
	report->files.bytes = report->files.disk_bytes = report->files.limit_bytes = TN_NO_FIGURE;
}

static void
free_place(struct tn_place *place)
{
	free(place->file);
	free(place->function);
}

static void
free_sensor(struct tn_sensor *sensor)
{
	free(sensor->name);
	free(sensor->costs);
	free(sensor->error);
}

static void
free_counted(struct tn_counted_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free_place(&list->items[i].place);
		free(list->items[i].library);
		free(list->items[i].name);
	}
	free(list->items);
}

void
tn__report_free_place(struct tn_place *place)
{
	if (place != NULL)
		free_place(place);
	free(place);
}

void
tn__report_free_holders(struct tn_report_moment *moment)
{
	for (size_t i = 0; i < moment->holder_count; i++) {
		free_place(&moment->holders[i].at);
		free(moment->holders[i].what);
	}
	free(moment->holders);
	moment->holders = NULL;
	moment->holder_count = 0;
}

static void
free_moment(struct tn_report_moment *moment)
{
	tn__report_free_holders(moment);
	tn__report_free_place(moment->at);
	free(moment->phase);
}

void
tn__programs_init(struct tn_programs *programs, size_t count)
{
	*programs = (struct tn_programs){ .count = count < TN_PROGRAMS ? count : TN_PROGRAMS,
		                              .failing = TN_NO_FIGURE,
		                              .together = TN_NO_FIGURE };
	for (size_t i = 0; i < programs->count; i++) {
		struct tn_program *program = &programs->items[i];
		program->pid = program->steps = program->peak = TN_NO_FIGURE;
		program->allocated_peak = program->reserved_peak = TN_NO_FIGURE;
		tn__report_init_moment(&program->at_peak);
		tn__report_init_moment(&program->at_oom);
	}
}

void
tn__programs_free(struct tn_programs *programs)
{
	for (size_t i = 0; i < programs->count; i++) {
		struct tn_program *program = &programs->items[i];
		free(program->command);
		free(program->unit);
		free(program->record.path);
		free(program->oom_record.path);
		free_moment(&program->at_peak);
		free_moment(&program->at_oom);
	}
	tn__programs_init(programs, 0);
}

static void
free_gate(struct tn_report_gate *gate)
{
	for (size_t i = 0; i < gate->drift_count; i++)
		free_place(&gate->drifts[i].at);
	free(gate->drifts);
	for (size_t i = 0; i < gate->version_count; i++) {
		free(gate->versions[i].before);
		free(gate->versions[i].now);
	}
	free(gate->path);
	free(gate->written);
}

void
tn__report_free(struct tn_report *report)
{
	char *const texts[] = {
		report->torch,         report->cuda,           report->steps_unit,       report->oom.phase,
		report->oom.cause,     report->oom.message,    report->oom.input.shape,  report->oom.input.before,
		report->exception,     report->scratch,        report->snapshot,         report->hook_error,
		report->snapshot_made, report->working_folder, report->command,          report->fast_forward_failed,
		report->options,       report->growth.unit,    report->peak_record.path, report->oom_record.path
	};
	for (size_t i = 0; i < ROOM(texts); i++)
		free(texts[i]);
	for (size_t i = 0; i < report->oom.stack.count; i++)
		free_place(&report->oom.stack.items[i]);
	free(report->oom.stack.items);
	tn__report_free_place(report->oom.at);
	tn__report_free_place(report->exception_at);
	for (size_t i = 0; i < report->doubt_count; i++) {
		free(report->doubts[i].what);
		free(report->doubts[i].advice);
	}
	for (size_t i = 0; i < report->sensor_count; i++)
		free_sensor(&report->sensors[i]);
	free_counted(&report->handled_ooms);
	free_counted(&report->ended_inside);
	free_counted(&report->refused_calls);
	free_counted(&report->computed_reads);
	free_counted(&report->held_back);
	free(report->download_refused);
	tn__assumptions_free(&report->assumptions);
	free_counted(&report->usage);
	free_counted(&report->files.refusals);
	free_counted(&report->files.unseen);
	tn__stand_ins_free(&report->stand_ins);
	tn__report_free_place(report->inputs.at);
	tn__inputs_free(&report->inputs);
	for (size_t i = 0; i < report->host.loader_count; i++)
		tn__report_free_place(report->host.loaders[i].at);
	tn__requests_model_free(&report->requests);
	tn__report_free_place(report->kept_at);
	free(report->kept_in);
	free_moment(&report->at_peak);
	free_moment(&report->at_oom);
	tn__report_free_place(report->growth.at);
	free_gate(&report->gate);
	for (size_t i = 0; i < report->rank_count; i++) {
		free_moment(&report->ranks[i].at_peak);
		free(report->ranks[i].record.path);
		tn__report_free_place(report->ranks[i].ended_at);
	}
	for (size_t i = 0; i < report->card_count; i++)
		free_moment(&report->cards[i].at_peak);
	tn__programs_free(&report->programs);
	free(report->job.absent);
	tn__report_free_place(report->hang.who.at);
	for (size_t i = 0; i < report->hang.count; i++)
		tn__report_free_place(report->hang.waiting[i].at);
	for (size_t i = 0; i < report->not_seen_count; i++)
		free(report->not_seen[i]);
	for (size_t i = 0; i < report->region_count; i++) {
		free(report->regions[i].name);
		tn__report_free_place(report->regions[i].at);
	}
	for (size_t i = 0; i < report->finding_count; i++) {
		tn__report_free_place(report->findings[i].at);
		free(report->findings[i].what);
		free(report->findings[i].advice);
		free(report->findings[i].advice_ids);
	}
	for (size_t i = 0; i < report->source_count; i++)
		free(report->sources[i].text);
	tn__secrets_free(report->secrets);
	tn__report_init(report);
}

static char *
copy_or_null(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

tn_status
tn__report_add_counted(struct tn_counted_list *list, const struct tn_counted *item)
{
	TN_RETURN_IF(!tn__array_add(&list->items, list->count, sizeof(*list->items)), TN_NO_MEMORY, "out of host memory");
	struct tn_counted *items = list->items;
	items[list->count] = *item;
	items[list->count].place.file = copy_or_null(item->place.file);
	items[list->count].place.function = copy_or_null(item->place.function);
	items[list->count].library = copy_or_null(item->library);
	items[list->count].name = copy_or_null(item->name);
	list->count++;
	return TN_OK;
}

tn_status
tn__report_add_place(struct tn_place_list *list, const struct tn_place *place)
{
	TN_RETURN_IF(!tn__array_add(&list->items, list->count, sizeof(*list->items)), TN_NO_MEMORY, "out of host memory");
	struct tn_place *items = list->items;
	items[list->count] = *place;
	items[list->count].file = copy_or_null(place->file);
	items[list->count].function = copy_or_null(place->function);
	list->count++;
	return TN_OK;
}

static struct tn_place *
copy_place(const struct tn_place *place)
{
	if (place == NULL || place->file == NULL)
		return NULL;
	return tn__report_new_place(place->file, place->line, place->function, place->backward);
}

/* Where a finding of this severity goes: behind those that weigh as much. */
static struct tn_finding *
make_way(struct tn_report *report, enum tn_severity severity)
{
	size_t at = report->finding_count++;
	for (; at > 0 && report->findings[at - 1].severity > severity; at--)
		report->findings[at] = report->findings[at - 1];
	return &report->findings[at];
}

/* Takes `what` over. */
static struct tn_finding *
put_finding(struct tn_report *report, enum tn_finding_id id, enum tn_severity severity, int64_t bytes,
            const struct tn_place *at, const char *advice, char *what)
{
	if (report->finding_count == ROOM(report->findings)) {
		free(what);
		return NULL;
	}
	struct tn_finding *finding = make_way(report, severity);
	*finding = (struct tn_finding){ .id = tn__finding_name(id),
		                            .severity = severity,
		                            .bytes = bytes,
		                            .at = copy_place(at),
		                            .what = what,
		                            .advice = copy_or_null(advice) };
	return finding;
}

/* NULL without memory. */
static char *
text_of(const char *format, va_list arguments)
{
	char *text = NULL;
	return vasprintf(&text, format, arguments) >= 0 ? text : NULL;
}

struct tn_finding *
tn__report_add_finding(struct tn_report *report, enum tn_finding_id id, int64_t bytes, const struct tn_place *at,
                       const char *advice, const char *what_format, ...)
{
	const struct tn_finding_row *row = tn__finding_row(id);
	va_list arguments;
	va_start(arguments, what_format);
	char *what = text_of(what_format, arguments);
	va_end(arguments);
	struct tn_finding *finding = put_finding(report, id, row->severity, bytes, at, advice, what);
	if (advice == NULL)
		tn__report_advise(report, finding, row->advice);
	return finding;
}

struct tn_finding *
tn__report_add_finding_as(struct tn_report *report, enum tn_finding_id id, enum tn_severity severity, int64_t bytes,
                          const struct tn_place *at, const char *advice, const char *what_format, ...)
{
	va_list arguments;
	va_start(arguments, what_format);
	char *what = text_of(what_format, arguments);
	va_end(arguments);
	return put_finding(report, id, severity, bytes, at, advice, what);
}

void
tn__report_lead_with(struct tn_report *report, struct tn_finding *finding)
{
	struct tn_finding lead = *finding;
	size_t count = report->finding_count;
	lead.severity = TN_SEVERITY_ERROR;
	memmove(&report->findings[1], &report->findings[0], (size_t)(finding - report->findings) * sizeof(lead));
	report->findings[0] = lead;
	report->finding_count = 1;
	for (size_t i = 1; i < count; i++) { /* errors are hints now, and go behind the warnings */
		struct tn_finding other = report->findings[i];
		other.severity = other.severity == TN_SEVERITY_ERROR ? TN_SEVERITY_HINT : other.severity;
		*make_way(report, other.severity) = other;
	}
}

void
tn__report_drop_findings(struct tn_report *report, enum tn_finding_id id)
{
	size_t kept = 0;
	for (size_t i = 0; i < report->finding_count; i++) {
		struct tn_finding *finding = &report->findings[i];
		if (!tn__finding_is(finding, id)) {
			report->findings[kept++] = *finding;
			continue;
		}
		tn__report_free_place(finding->at);
		free(finding->what);
		free(finding->advice);
		free(finding->advice_ids);
	}
	report->finding_count = kept;
}

void
tn__report_add_not_seen(struct tn_report *report, const char *what)
{
	char *copy = report->not_seen_count < ROOM(report->not_seen) ? strdup(what) : NULL;
	if (copy != NULL)
		report->not_seen[report->not_seen_count++] = copy;
}

void
tn__report_add_doubt(struct tn_report *report, enum tn_finding_id id, bool failed_too, const char *advice,
                     const char *what_format, ...)
{
	va_list arguments;
	char *what = NULL;
	if (report->doubt_count == ROOM(report->doubts))
		return;
	va_start(arguments, what_format);
	if (vasprintf(&what, what_format, arguments) < 0)
		what = NULL;
	va_end(arguments);
	report->doubts[report->doubt_count++] = (struct tn_doubt){ id, what, copy_or_null(advice), failed_too };
}

void
tn__report_add_region(struct tn_report *report, const char *name, int64_t device_peak, int64_t reserved_peak,
                      int64_t taken_peak)
{
	char *copy = report->region_count < ROOM(report->regions) ? strdup(name) : NULL;
	if (copy != NULL)
		report->regions[report->region_count++] = (struct tn_region){ .name = copy,
			                                                          .device_peak = device_peak,
			                                                          .reserved_peak = reserved_peak,
			                                                          .taken_peak = taken_peak,
			                                                          .left = TN_NO_FIGURE,
			                                                          .cell = strncmp(name, "cell ", 5) == 0 };
}

const char *
tn__report_source(const struct tn_report *report, const char *field)
{
	for (size_t i = 0; i < report->source_count; i++)
		if (strcmp(report->sources[i].field, field) == 0)
			return report->sources[i].text;
	return NULL;
}

void
tn__report_add_source(struct tn_report *report, const char *field, const char *format, ...)
{
	if (report->source_count == ROOM(report->sources))
		return;
	va_list arguments;
	char *text = NULL;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	report->sources[report->source_count++] = (struct tn_source){ field, text };
}

struct tn_place *
tn__report_new_place(const char *file, int64_t line, const char *function, bool backward)
{
	struct tn_place *place = calloc(1, sizeof(*place));
	if (place == NULL)
		return NULL;
	*place = (struct tn_place){ strdup(file), line, copy_or_null(function), backward };
	if (place->file == NULL) {
		tn__report_free_place(place);
		return NULL;
	}
	return place;
}

const char *
tn__verdict_text(enum tn_verdict verdict)
{
	static const char *const texts[] = { "fits",          "out_of_memory",    "grows",  "failed",   "over_budget",
		                                 "over_baseline", "over_host_memory", "spills", "undecided" };
	return texts[verdict];
}

const char *
tn__stopped_text(enum tn_stopped stopped)
{
	static const char *const texts[] = {
		"settled", "limit", "end", "out_of_memory", "failed", "interrupted", "requests"
	};
	return texts[stopped];
}

const char *
tn__severity_text(enum tn_severity severity)
{
	static const char *const texts[] = { "error", "warning", "hint" };
	return texts[severity];
}

/* ---- sensors ---- */

/* From the least to the most important, when processes differ. */
static const char *const sensor_states[] = { "absent", "attached", "lost" };

static int
sensor_rank(const char *state)
{
	for (int i = 0; i < (int)(sizeof(sensor_states) / sizeof(sensor_states[0])); i++)
		if (strcmp(state, sensor_states[i]) == 0)
			return i;
	return -1;
}

void
tn__report_add_sensor(struct tn_report *report, const char *name, const char *state, const char *costs,
                      const char *error)
{
	int rank = state != NULL ? sensor_rank(state) : -1;
	size_t i = 0;
	if (rank < 0 || name == NULL)
		return;
	while (i < report->sensor_count && strcmp(report->sensors[i].name, name) != 0)
		i++;
	if (i == sizeof(report->sensors) / sizeof(report->sensors[0]) ||
	    (i < report->sensor_count && rank <= sensor_rank(report->sensors[i].state)))
		return;
	struct tn_sensor sensor = { .name = strdup(name),
		                        .state = sensor_states[rank],
		                        .costs = costs != NULL ? strdup(costs) : NULL,
		                        .error = error != NULL ? strdup(error) : NULL };
	if (sensor.name == NULL || (costs != NULL && sensor.costs == NULL) || (error != NULL && sensor.error == NULL)) {
		free_sensor(&sensor);
		return;
	}
	if (i < report->sensor_count)
		free_sensor(&report->sensors[i]);
	else
		report->sensor_count++;
	report->sensors[i] = sensor;
}

bool
tn__is_held_back(const struct tn_counted *item, const char *what)
{
	return item->library != NULL && strcmp(item->library, what) == 0;
}
