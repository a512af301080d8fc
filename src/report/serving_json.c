/* SPDX-License-Identifier: Apache-2.0
 *
 * What serve-plan found, as JSON.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/error.h"
#include "base/figure.h"
#include "report/json_parts.h"
#include "report/serving.h"

static json_t *
whole(int64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *
text_or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? tn__json_text(text) : json_null();
}

static json_t *
figure_of(const struct tn_serve_figure *figure)
{
	if (figure->source == NULL)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:s}", "bytes", whole(figure->bytes), "lowest", whole(figure->lowest), "highest",
	                 whole(figure->highest), "source", figure->source);
}

static json_t *
card_of(const struct tn_gpu_row *row)
{
	if (row == NULL)
		return json_null();
	return json_pack("{s:s, s:s, s:o, s:o}", "name", row->figures.name, "alias", row->figures.alias, "total_bytes",
	                 whole((int64_t)row->figures.total_bytes), "context_bytes",
	                 whole((int64_t)row->figures.context_bytes));
}

static json_t *
kinds_of(const struct tn_cache_layout *layout)
{
	static const char *const names[] = { "state", "full", "window", "chunk", "latent" };
	json_t *array = json_array();
	for (int i = 0; i < layout->kind_count; i++) {
		const struct tn_cache_layers *kind = &layout->kinds[i];
		json_array_append_new(array, json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:i}", "kind", names[kind->cache],
		                                       "layers", (int)kind->layers, "window",
		                                       kind->window > 0 ? whole(kind->window) : json_null(), "token_bytes",
		                                       kind->cache != TN_CACHE_NONE ? whole(kind->token_bytes) : json_null(),
		                                       "page_bytes", whole(kind->page_bytes), "block_tokens",
		                                       whole(kind->block_tokens), "groups", kind->groups));
	}
	return array;
}

static json_t *
cache_of(const struct tn_serve_plan *plan)
{
	const struct tn_cache_layout *layout = &plan->layout;
	bool known = layout->block_bytes > 0, counted = plan->available.source != NULL;
	if (!known)
		return json_null();
	json_t *cache = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "token_bytes", whole(layout->token_bytes),
	                          "window_bytes", whole(layout->window_bytes), "state_bytes", whole(layout->state_bytes),
	                          "block_tokens", whole(layout->block_tokens), "block_bytes", whole(layout->block_bytes),
	                          "kinds", kinds_of(layout), "available", figure_of(&plan->available));
	json_object_set_new(cache, "blocks", counted ? whole(plan->blocks) : json_null());
	json_object_set_new(cache, "lowest_blocks", counted ? whole(plan->lowest_blocks) : json_null());
	json_object_set_new(cache, "highest_blocks", counted ? whole(plan->highest_blocks) : json_null());
	json_object_set_new(cache, "needed_blocks", counted ? whole(plan->needed_blocks) : json_null());
	json_object_set_new(cache, "needed_bytes", counted ? whole(plan->needed_bytes) : json_null());
	json_object_set_new(cache, "tokens", counted ? whole(plan->tokens) : json_null());
	json_object_set_new(cache, "sequences", counted ? json_real(plan->sequences) : json_null());
	json_object_set_new(cache, "longest", counted ? whole(plan->longest) : json_null());
	return cache;
}

static json_t *
request_of(const struct tn_serve_request *request)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "max_model_len",
	                 request->max_model_len > 0 ? whole(request->max_model_len) : json_null(), "max_num_seqs",
	                 request->max_num_seqs > 0 ? whole(request->max_num_seqs) : json_null(), "max_num_batched_tokens",
	                 request->max_num_batched_tokens > 0 ? whole(request->max_num_batched_tokens) : json_null(),
	                 "concurrency", whole(request->concurrency > 0 ? request->concurrency : 1), "utilization",
	                 request->utilization > 0 ? json_real(request->utilization) : json_null(), "kv_cache_dtype",
	                 json_string(request->cache_type_name != NULL ? request->cache_type_name : "auto"), "eager",
	                 request->eager);
}

static json_t *
model_of(const struct tn_serving *serving)
{
	static const char *const sources[] = { "unknown", "headers", "index", "total", "architecture" };
	const struct tn_served_model *model = &serving->model;
	json_t *notes = json_array();
	for (int i = 0; i < model->note_count; i++)
		json_array_append_new(notes, tn__json_text(model->notes[i]));
	if (serving->weights.problem[0] != '\0')
		json_array_append_new(notes, tn__json_text(serving->weights.problem));
	return json_pack(
		"{s:o, s:o, s:b, s:i, s:o, s:o, s:s, s:o, s:o, s:o}", "architecture", text_or_null(model->architecture),
		"model_type", text_or_null(model->type), "known", model->known != NULL, "layers", (int)model->layer_count,
		"context", tn__json_figure(model->context > 0 ? model->context : TN_NO_FIGURE), "quantization",
		text_or_null(model->quant.name), "weights_from", sources[serving->weights.source], "stored_bytes",
		tn__json_figure(serving->weights.stored_bytes), "missing", text_or_null(model->missing), "notes", notes);
}

static json_t *
option_of(const struct tn_serve_option *option)
{
	if (option->gpu == NULL)
		return json_null();
	return json_pack("{s:s, s:i, s:s, s:o, s:f}", "gpu", option->gpu->figures.alias, "gpus", option->gpus, "verdict",
	                 tn__serve_verdict_name(option->verdict), "tokens", whole(option->tokens), "sequences",
	                 option->sequences);
}

static json_t *
changes_of(const struct tn_serving *serving)
{
	json_t *array = json_array();
	for (int i = 0; i < serving->change_count; i++) {
		const struct tn_serve_change *change = &serving->changes[i];
		json_array_append_new(array, json_pack("{s:s, s:o, s:s, s:o, s:f}", "option", change->option, "value",
		                                       text_or_null(change->value), "effect", change->effect, "longest",
		                                       whole(change->longest), "sequences", change->sequences));
	}
	return array;
}

/* Null for an engine that does not start with the same options. */
static json_t *
command_of(const struct tn_shown_serving *shown, enum tn_engine engine)
{
	char text[1024];
	if (!shown->serving->starts[engine])
		return json_null();
	tn__serve_command(shown->asked, shown->folder, engine, text, sizeof(text));
	return tn__json_text(text);
}

static json_t *
commands_of(const struct tn_shown_serving *shown)
{
	if (shown->serving->plan.verdict != TN_SERVE_STARTS)
		return json_null();
	json_t *commands = json_object();
	for (int engine = 0; engine < TN_ENGINES; engine++)
		json_object_set_new(commands, tn__engine_words((enum tn_engine)engine)->name,
		                    command_of(shown, (enum tn_engine)engine));
	return commands;
}

static json_t *
check_of(const struct tn_serve_check *check)
{
	if (check == NULL)
		return json_null();
	if (check->blocks <= 0)
		return json_pack("{s:o, s:b, s:n, s:n, s:n, s:n, s:b, s:o}", "engine", text_or_null(check->engine), "started",
		                 0, "blocks", "block_tokens", "available_bytes", "planned_blocks", "agrees", 0, "problem",
		                 text_or_null(check->problem));
	return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:b, s:o}", "engine", text_or_null(check->engine), "started",
	                 check->started, "blocks", whole(check->blocks), "block_tokens", whole(check->block_tokens),
	                 "available_bytes", whole(check->available_bytes), "planned_blocks", whole(check->planned_blocks),
	                 "agrees", check->agrees, "problem", text_or_null(check->problem));
}

static json_t *
document_of(const struct tn_shown_serving *shown)
{
	const struct tn_serving *serving = shown->serving;
	const struct tn_serve_plan *plan = &serving->plan;
	char limit[192];
	const struct tn_engine_words *words = tn__engine_words(plan->request.engine);
	json_t *degrees = json_array();
	for (int i = 0; i < serving->degree_count; i++)
		json_array_append_new(degrees, option_of(&serving->degrees[i]));
	tn__serve_limit_text(plan, limit);
	json_t *object = json_pack("{s:s, s:s, s:o, s:{s:s, s:s}, s:o, s:i, s:o, s:o}", "schema", "tonnage.serve-plan/1",
	                           "verdict", tn__serve_verdict_name(plan->verdict), "reason", text_or_null(limit),
	                           "engine", "name", words->name, "rules_of", words->version, "gpu",
	                           card_of(plan->request.gpu), "gpus", plan->request.gpus, "model", model_of(serving),
	                           "request", request_of(&plan->request));
	json_object_set_new(object, "weights",
	                    serving->weights.source != TN_WEIGHTS_UNKNOWN ? figure_of(&plan->weights) : json_null());
	json_object_set_new(object, "activations", figure_of(&plan->activations));
	json_object_set_new(object, "libraries", figure_of(&plan->other));
	json_object_set_new(object, "cuda_graphs", figure_of(&plan->graphs));
	json_object_set_new(object, "cuda_graphs_counted", json_boolean(plan->graphs_counted));
	json_object_set_new(object, "requested_bytes",
	                    plan->requested_bytes > 0 ? whole(plan->requested_bytes) : json_null());
	json_object_set_new(object, "kv_cache", cache_of(plan));
	json_object_set_new(object, "degrees", degrees);
	json_object_set_new(object, "smallest", option_of(&serving->smallest));
	json_object_set_new(object, "changes", changes_of(serving));
	json_object_set_new(object, "commands", commands_of(shown));
	json_object_set_new(object, "verified", check_of(shown->check));
	return object;
}

tn_status
tn__serving_json(const struct tn_shown_serving *shown, FILE *out)
{
	json_t *object = document_of(shown);
	TN_RETURN_IF(object == NULL, TN_NO_MEMORY, "out of host memory while writing JSON");
	int failed = tn__json_write(object, out, JSON_INDENT(2));
	json_decref(object);
	TN_RETURN_IF(failed != 0 || fputc('\n', out) == EOF || fflush(out) != 0, TN_IO, "writing failed: %s",
	             strerror(errno));
	return TN_OK;
}
