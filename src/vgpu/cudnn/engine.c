/* SPDX-License-Identifier: Apache-2.0
 *
 * Finalizing descriptors: see engine.h.
 *
 * What the real cuDNN says (ask.h) goes first: its heuristics' engines with their knobs and notes, its plans' workspaces,
 * and its refusals. Where it cannot be asked, the model speaks: every graph gets the same engines (workspace.h), whatever
 * it computes: PyTorch asks cuDNN only for what it knows cuDNN to support, and does not fall back when a graph is refused
 * that it had chosen cuDNN for. The heuristics' modes A, B and instant name all engines but the last, the fallback mode
 * names the last.
 */
#include "vgpu/cudnn/ask.h"
#include "vgpu/cudnn/engine.h"
#include "vgpu/cudnn/unlisted.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RESULTS = 256, MOST_KNOBS = 64 };

/* Shorthand: an attribute with one or no element. */
static int
set_int64(struct tn__dnn_descriptor *descriptor, int name, int64_t value)
{
	return tn__dnn_attribute_set(descriptor, name, DNN_TYPE_INT64, 1, &value);
}

static int
set_child(struct tn__dnn_descriptor *descriptor, int name, struct tn__dnn_descriptor *child)
{
	return tn__dnn_attribute_set(descriptor, name, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &child);
}

static int
finalize_tensor(const struct tn__dnn_descriptor *descriptor)
{
	struct tn__dnn_tensor tensor;
	DNN_FORWARD(tn__dnn_graph_tensor(descriptor, &tensor));
	DNN_REQUIRE(tn__dnn_type_bits(tensor.type) != 0, DNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "data type %d", tensor.type);
	for (int i = 0; i < tensor.rank; i++)
		DNN_REQUIRE(tensor.dims[i] > 0, DNN_STATUS_BAD_PARAM, "dimension %d is %lld", i, (long long)tensor.dims[i]);
	return DNN_STATUS_SUCCESS;
}

static int
finalize_graph(struct tn__dnn_descriptor *descriptor)
{
	struct tn__dnn_graph graph;
	DNN_FORWARD(tn__dnn_graph_read(descriptor, &graph));
	return set_int64(descriptor, DNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, DNN_ENGINES);
}

static int
set_notes(struct tn__dnn_descriptor *engine, int64_t count, const void *notes, int64_t behaviour_count,
          const void *behaviours)
{
	DNN_FORWARD(tn__dnn_attribute_set(engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, count, notes));
	DNN_FORWARD(tn__dnn_attribute_set(engine, DNN_ATTR_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE, behaviour_count,
	                                  behaviours));
	DNN_FORWARD(tn__dnn_attribute_set(engine, DNN_ATTR_ENGINE_LAYOUT_INFO, DNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL));
	return tn__dnn_attribute_set(engine, DNN_ATTR_ENGINE_KNOB_INFO, DNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL);
}

static int
finalize_engine(struct tn__dnn_descriptor *descriptor)
{
	static const int notes[DNN_ENGINES] = { DNN_NUMERICAL_NOTE_TENSOR_CORE, 0, DNN_NUMERICAL_NOTE_NONDETERMINISTIC, 0 };
	static const int note_count[DNN_ENGINES] = { 1, 0, 1, 0 };
	int64_t index = tn__dnn_int64(descriptor, DNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
	DNN_REQUIRE(tn__dnn_child(descriptor, DNN_ATTR_ENGINE_OPERATION_GRAPH) != NULL, DNN_STATUS_BAD_PARAM,
	            "an engine without operation graph");
	DNN_REQUIRE(index >= 0 && index < DNN_ENGINES, DNN_STATUS_NOT_SUPPORTED, "there is no engine %lld",
	            (long long)index);
	return set_notes(descriptor, note_count[index], &notes[index], 0, NULL);
}

/* The graph and engine number behind an engine descriptor. */
static int
read_engine(const struct tn__dnn_descriptor *engine, struct tn__dnn_graph *graph, int *index)
{
	DNN_REQUIRE(engine != NULL && engine->type == DNN_BACKEND_ENGINE_DESCRIPTOR, DNN_STATUS_BAD_PARAM,
	            "a configuration without engine");
	*index = (int)tn__dnn_int64(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
	return tn__dnn_graph_read(tn__dnn_child(engine, DNN_ATTR_ENGINE_OPERATION_GRAPH), graph);
}

static int
finalize_configuration(struct tn__dnn_descriptor *descriptor)
{
	static const int32_t no_shared_memory = 0;
	struct tn__dnn_graph graph;
	int engine;
	DNN_FORWARD(read_engine(tn__dnn_child(descriptor, DNN_ATTR_ENGINECFG_ENGINE), &graph, &engine));
	if (tn__dnn_attribute_any(descriptor, DNN_ATTR_ENGINECFG_KNOB_CHOICES) == NULL)
		DNN_FORWARD(
			tn__dnn_attribute_set(descriptor, DNN_ATTR_ENGINECFG_KNOB_CHOICES, DNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL));
	DNN_FORWARD(
		tn__dnn_attribute_set(descriptor, DNN_ATTR_ENGINECFG_INTERMEDIATE_INFO, DNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL));
	DNN_FORWARD(
		tn__dnn_attribute_set(descriptor, DNN_ATTR_ENGINECFG_SHARED_MEMORY_USED, DNN_TYPE_INT32, 1, &no_shared_memory));
	return set_int64(descriptor, DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, (int64_t)tn__dnn_graph_workspace(&graph, engine));
}

/* A finalized configuration of one engine for a graph; the caller releases it. */
static int
make_configuration(struct tn__dnn_descriptor *graph, int engine_index, struct tn__dnn_descriptor **out)
{
	struct tn__dnn_descriptor *engine = tn__dnn_descriptor_new(DNN_BACKEND_ENGINE_DESCRIPTOR);
	struct tn__dnn_descriptor *configuration = tn__dnn_descriptor_new(DNN_BACKEND_ENGINECFG_DESCRIPTOR);
	int status = DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	if (engine != NULL && configuration != NULL) {
		status = set_child(engine, DNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
		if (status == DNN_STATUS_SUCCESS)
			status = set_int64(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, engine_index);
		if (status == DNN_STATUS_SUCCESS)
			status = finalize_engine(engine);
		engine->finalized = status == DNN_STATUS_SUCCESS;
		if (status == DNN_STATUS_SUCCESS)
			status = set_child(configuration, DNN_ATTR_ENGINECFG_ENGINE, engine);
		if (status == DNN_STATUS_SUCCESS)
			status = finalize_configuration(configuration);
		configuration->finalized = status == DNN_STATUS_SUCCESS;
	}
	tn__dnn_descriptor_release(engine);
	if (status == DNN_STATUS_SUCCESS)
		*out = configuration;
	else
		tn__dnn_descriptor_release(configuration);
	return status;
}

/* ---- heuristics ---- */

static int
modelled_results(struct tn__dnn_descriptor *graph, int mode, struct tn__dnn_descriptor **results, int *count)
{
	bool fallback = mode == DNN_HEUR_MODE_FALLBACK;
	int last = fallback ? DNN_ENGINES : DNN_ENGINE_FALLBACK;
	for (int engine = fallback ? DNN_ENGINE_FALLBACK : 0; engine < last; engine++) {
		DNN_FORWARD(make_configuration(graph, engine, &results[*count]));
		++*count;
	}
	return DNN_STATUS_SUCCESS;
}

/* The knobs of a row as descriptors, kept alive by the configuration. */
static int
take_knobs(struct tn__dnn_descriptor *configuration, struct tn_dnn_cursor *row)
{
	struct tn__dnn_descriptor *knobs[MOST_KNOBS] = { NULL };
	uint32_t count = tn__dnn_take_u32(row);
	int status = count <= MOST_KNOBS ? DNN_STATUS_SUCCESS : DNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE;
	for (uint32_t i = 0; i < count && status == DNN_STATUS_SUCCESS; i++) {
		int32_t type = (int32_t)tn__dnn_take_i64(row);
		int64_t value = tn__dnn_take_i64(row);
		knobs[i] = tn__dnn_descriptor_new(DNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
		status = knobs[i] == NULL
		             ? DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
		             : tn__dnn_attribute_set(knobs[i], DNN_ATTR_KNOB_CHOICE_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &type);
		if (status == DNN_STATUS_SUCCESS)
			status = set_int64(knobs[i], DNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
		if (status == DNN_STATUS_SUCCESS)
			knobs[i]->finalized = true;
	}
	if (status == DNN_STATUS_SUCCESS)
		status = tn__dnn_attribute_set(configuration, DNN_ATTR_ENGINECFG_KNOB_CHOICES, DNN_TYPE_BACKEND_DESCRIPTOR,
		                               count, knobs);
	for (uint32_t i = 0; i < count && i < MOST_KNOBS; i++)
		tn__dnn_descriptor_release(knobs[i]);
	return status;
}

static int
take_notes(struct tn__dnn_descriptor *engine, struct tn_dnn_cursor *row)
{
	uint32_t count = tn__dnn_take_u32(row);
	const void *notes = tn__dnn_take(row, (size_t)count * sizeof(int32_t));
	uint32_t behaviour_count = tn__dnn_take_u32(row);
	const void *behaviours = tn__dnn_take(row, (size_t)behaviour_count * sizeof(int32_t));
	DNN_REQUIRE(!row->failed, DNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE, "an answer of cuDNN's helper is cut");
	return set_notes(engine, count, notes, behaviour_count, behaviours);
}

/* What the real configuration says of itself; what it does not say is not set. */
static int
take_sizes(struct tn__dnn_descriptor *configuration, struct tn_dnn_cursor *row)
{
	int64_t workspace = tn__dnn_take_i64(row), shared = tn__dnn_take_i64(row);
	int32_t shared_bytes = (int32_t)shared;
	if (workspace >= 0)
		DNN_FORWARD(set_int64(configuration, DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, workspace));
	if (shared >= 0)
		DNN_FORWARD(tn__dnn_attribute_set(configuration, DNN_ATTR_ENGINECFG_SHARED_MEMORY_USED, DNN_TYPE_INT32, 1,
		                                  &shared_bytes));
	return DNN_STATUS_SUCCESS;
}

/* Fills an engine and a configuration from the next row of the real heuristics. */
static int
take_row(struct tn__dnn_descriptor *graph, struct tn_dnn_cursor *row, struct tn__dnn_descriptor *engine,
         struct tn__dnn_descriptor *configuration)
{
	DNN_FORWARD(set_child(engine, DNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
	DNN_FORWARD(set_int64(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, tn__dnn_take_i64(row)));
	DNN_FORWARD(take_sizes(configuration, row));
	DNN_FORWARD(take_knobs(configuration, row));
	DNN_FORWARD(take_notes(engine, row));
	engine->real = configuration->real = engine->finalized = true;
	DNN_FORWARD(set_child(configuration, DNN_ATTR_ENGINECFG_ENGINE, engine));
	DNN_FORWARD(tn__dnn_attribute_set(configuration, DNN_ATTR_ENGINECFG_INTERMEDIATE_INFO, DNN_TYPE_BACKEND_DESCRIPTOR,
	                                  0, NULL));
	configuration->finalized = true;
	return DNN_STATUS_SUCCESS;
}

static int
real_results(const struct tn__dnn_wish *wish, struct tn__dnn_descriptor *graph, struct tn_dnn_cursor *rows,
             uint32_t wanted, struct tn__dnn_descriptor **results, int *count)
{
	int status = DNN_STATUS_SUCCESS;
	while (*count < (int)wanted && *count < MOST_RESULTS && status == DNN_STATUS_SUCCESS) {
		struct tn__dnn_descriptor *engine = tn__dnn_descriptor_new(DNN_BACKEND_ENGINE_DESCRIPTOR);
		struct tn__dnn_descriptor *configuration = tn__dnn_descriptor_new(DNN_BACKEND_ENGINECFG_DESCRIPTOR);
		status = engine == NULL || configuration == NULL ? DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
		                                                 : take_row(graph, rows, engine, configuration);
		tn__dnn_descriptor_release(engine);
		if (configuration != NULL) {
			configuration->mode = wish->mode;
			configuration->rank = *count;
			results[(*count)++] = configuration;
		}
	}
	return status;
}

static bool
has_note(const struct tn__dnn_descriptor *engine, int32_t wanted)
{
	const struct tn__dnn_attribute *notes = tn__dnn_attribute_find(engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE,
	                                                               DNN_TYPE_NUMERICAL_NOTE);
	for (int64_t i = 0; notes != NULL && i < notes->count; i++)
		if (((const int32_t *)notes->elements)[i] == wanted)
			return true;
	return false;
}

static int
fill_unlisted(struct tn__dnn_descriptor *graph, const struct tn__dnn_unlisted *unlisted,
              struct tn__dnn_descriptor *engine, struct tn__dnn_descriptor *configuration)
{
	static const int32_t tensor_core = DNN_NUMERICAL_NOTE_TENSOR_CORE;
	DNN_FORWARD(set_child(engine, DNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
	DNN_FORWARD(set_int64(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, unlisted->engine));
	DNN_FORWARD(set_notes(engine, unlisted->tensor_cores, &tensor_core, 0, NULL));
	engine->real = engine->finalized = true;
	DNN_FORWARD(set_child(configuration, DNN_ATTR_ENGINECFG_ENGINE, engine));
	DNN_FORWARD(set_int64(configuration, DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, (int64_t)unlisted->workspace));
	DNN_FORWARD(
		tn__dnn_attribute_set(configuration, DNN_ATTR_ENGINECFG_KNOB_CHOICES, DNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL));
	DNN_FORWARD(tn__dnn_attribute_set(configuration, DNN_ATTR_ENGINECFG_INTERMEDIATE_INFO, DNN_TYPE_BACKEND_DESCRIPTOR,
	                                  0, NULL));
	configuration->real = configuration->finalized = true;
	configuration->rank = DNN_RANK_UNLISTED;
	return DNN_STATUS_SUCCESS;
}

/* A finalized configuration of an engine that the real cuDNN was not asked about; the caller releases it. */
static int
make_unlisted(struct tn__dnn_descriptor *graph, const struct tn__dnn_unlisted *unlisted,
              struct tn__dnn_descriptor **out)
{
	struct tn__dnn_descriptor *engine = tn__dnn_descriptor_new(DNN_BACKEND_ENGINE_DESCRIPTOR);
	struct tn__dnn_descriptor *configuration = tn__dnn_descriptor_new(DNN_BACKEND_ENGINECFG_DESCRIPTOR);
	int status = engine == NULL || configuration == NULL ? DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
	                                                     : fill_unlisted(graph, unlisted, engine, configuration);
	tn__dnn_descriptor_release(engine);
	if (status == DNN_STATUS_SUCCESS)
		*out = configuration;
	else
		tn__dnn_descriptor_release(configuration);
	return status;
}

/* Adds what would be named on a card besides, where it would stand. */
static int
add_unlisted(const struct tn__dnn_wish *wish, struct tn__dnn_descriptor *graph, struct tn__dnn_descriptor **results,
             int *count)
{
	const struct tn_gpu_figures *gpu = tn__gpu(wish->device);
	const struct tn__dnn_attribute *operations = tn__dnn_attribute_any(graph, DNN_ATTR_OPERATIONGRAPH_OPS);
	struct tn__dnn_graph read;
	struct tn__dnn_unlisted unlisted;
	int at = 0, capability = gpu == NULL ? 0 : 10 * gpu->compute_major + gpu->compute_minor;
	if (wish->mode == DNN_HEUR_MODE_FALLBACK || *count == MOST_RESULTS ||
	    tn__dnn_graph_read(graph, &read) != DNN_STATUS_SUCCESS ||
	    !tn__dnn_unlisted(&read, operations->count == 1, capability, &unlisted))
		return DNN_STATUS_SUCCESS;
	while (!unlisted.tensor_cores && at < *count &&
	       has_note(tn__dnn_child(results[at], DNN_ATTR_ENGINECFG_ENGINE), DNN_NUMERICAL_NOTE_TENSOR_CORE))
		at++;
	struct tn__dnn_descriptor *configuration;
	DNN_FORWARD(make_unlisted(graph, &unlisted, &configuration));
	memmove(&results[at + 1], &results[at], (size_t)(*count - at) * sizeof(results[0]));
	results[at] = configuration;
	++*count;
	return DNN_STATUS_SUCCESS;
}

static int
finalize_heuristics(struct tn__dnn_descriptor *descriptor)
{
	struct tn__dnn_descriptor *results[MOST_RESULTS] = { NULL };
	struct tn__dnn_descriptor *graph = tn__dnn_child(descriptor, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	const struct tn__dnn_attribute *mode = tn__dnn_attribute_find(descriptor, DNN_ATTR_ENGINEHEUR_MODE,
	                                                              DNN_TYPE_HEUR_MODE);
	DNN_REQUIRE(graph != NULL && graph->type == DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, DNN_STATUS_BAD_PARAM,
	            "heuristics without operation graph");
	DNN_REQUIRE(mode != NULL && mode->count == 1, DNN_STATUS_BAD_PARAM, "heuristics without mode");
	const struct tn__dnn_wish wish = { TN_DNN_HEURISTICS, graph, *(const int *)mode->elements, 0,
		                               tn__current_device() };
	struct tn_dnn_cursor rows;
	uint32_t wanted;
	int count = 0, status;
	if (!tn__dnn_ask(&wish, &status, &rows, &wanted))
		status = modelled_results(graph, *(const int *)mode->elements, results, &count);
	else if (status == DNN_STATUS_SUCCESS) {
		status = real_results(&wish, graph, &rows, wanted, results, &count);
		if (status == DNN_STATUS_SUCCESS)
			status = add_unlisted(&wish, graph, results, &count);
	} else
		tn__dnn_fail(status, "cuDNN's heuristics know no engine for this graph");
	if (status == DNN_STATUS_SUCCESS)
		status = tn__dnn_attribute_set(descriptor, DNN_ATTR_ENGINEHEUR_RESULTS, DNN_TYPE_BACKEND_DESCRIPTOR, count,
		                               results);
	for (int i = 0; i < count; i++)
		tn__dnn_descriptor_release(results[i]);
	return status;
}

/* ---- plans ---- */

/* The workspace of an engine of the real heuristics. Configurations for convolutions say it by themselves: of 12,567 plans that cuDNN 9.19 made
 * of them none failed or had another one, and making one takes up to a second where it compiles. Of the others a plan is made; what is
 * refused there is refused. */
static int
real_plan(const struct tn__dnn_descriptor *configuration, struct tn__dnn_plan *plan)
{
	const struct tn__dnn_descriptor *engine = tn__dnn_child(configuration, DNN_ATTR_ENGINECFG_ENGINE);
	const struct tn__dnn_wish wish = { TN_DNN_PLAN, tn__dnn_child(engine, DNN_ATTR_ENGINE_OPERATION_GRAPH),
		                               configuration->mode, configuration->rank, tn__current_device() };
	struct tn_dnn_cursor rows;
	uint32_t count;
	int status;
	DNN_FORWARD(tn__dnn_graph_read(wish.graph, &plan->graph));
	plan->engine = has_note(engine, DNN_NUMERICAL_NOTE_TENSOR_CORE) ? DNN_ENGINE_TENSOR_CORES : DNN_ENGINE_PLAIN;
	plan->rank = configuration->rank;
	if (configuration->rank == DNN_RANK_UNLISTED)
		plan->rank = 0;
	int64_t said = tn__dnn_int64(configuration, DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, -1);
	if (said >= 0 && (plan->graph.has_convolution || configuration->rank == DNN_RANK_UNLISTED)) {
		plan->workspace = (uint64_t)said;
		return DNN_STATUS_SUCCESS;
	}
	if (!tn__dnn_ask(&wish, &status, &rows, &count)) {
		plan->workspace = tn__dnn_graph_workspace(&plan->graph, plan->engine);
		return DNN_STATUS_SUCCESS;
	}
	DNN_REQUIRE(status == DNN_STATUS_SUCCESS, status, "cuDNN has no plan of engine %lld for this graph",
	            (long long)tn__dnn_int64(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, -1));
	plan->workspace = (uint64_t)tn__dnn_take_i64(&rows);
	return DNN_STATUS_SUCCESS;
}

static int
modelled_plan(const struct tn__dnn_descriptor *configuration, struct tn__dnn_plan *plan)
{
	DNN_FORWARD(read_engine(tn__dnn_child(configuration, DNN_ATTR_ENGINECFG_ENGINE), &plan->graph, &plan->engine));
	plan->workspace = tn__dnn_graph_workspace(&plan->graph, plan->engine);
	return DNN_STATUS_SUCCESS;
}

static int
finalize_plan(struct tn__dnn_descriptor *descriptor)
{
	const struct tn__dnn_descriptor *configuration = tn__dnn_child(descriptor, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	if (configuration == NULL && tn__dnn_attribute_any(descriptor, DNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) != NULL)
		return tn__refuse("cudnn", "plan from JSON", DNN_STATUS_NOT_SUPPORTED);
	DNN_REQUIRE(configuration != NULL && configuration->type == DNN_BACKEND_ENGINECFG_DESCRIPTOR, DNN_STATUS_BAD_PARAM,
	            "a plan without engine configuration");
	struct tn__dnn_plan *plan = calloc(1, sizeof(*plan));
	DNN_REQUIRE(plan != NULL, DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of memory");
	free(descriptor->plan);
	descriptor->plan = plan;
	DNN_FORWARD(configuration->real ? real_plan(configuration, plan) : modelled_plan(configuration, plan));
	/* Its text, from which cuDNN could make it again and PyTorch 2.15 reads details of some engines, has none: that is refused. */
	DNN_FORWARD(tn__dnn_attribute_set(descriptor, DNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, DNN_TYPE_CHAR,
	                                  sizeof("{}"), "{}"));
	DNN_FORWARD(
		tn__dnn_attribute_set(descriptor, DNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS, DNN_TYPE_INT64, 0, NULL));
	return set_int64(descriptor, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, (int64_t)plan->workspace);
}

static int
finalize_variant_pack(const struct tn__dnn_descriptor *descriptor)
{
	const struct tn__dnn_attribute *pointers = tn__dnn_attribute_find(descriptor, DNN_ATTR_VARIANT_PACK_DATA_POINTERS,
	                                                                  DNN_TYPE_VOID_PTR);
	const struct tn__dnn_attribute *ids = tn__dnn_attribute_find(descriptor, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
	                                                             DNN_TYPE_INT64);
	DNN_REQUIRE(pointers != NULL && ids != NULL && pointers->count == ids->count, DNN_STATUS_BAD_PARAM,
	            "a variant pack with different numbers of pointers and ids");
	return DNN_STATUS_SUCCESS;
}

int
tn__dnn_finalize(struct tn__dnn_descriptor *descriptor)
{
	switch (descriptor->type) {
	case DNN_BACKEND_TENSOR_DESCRIPTOR:
		return finalize_tensor(descriptor);
	case DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		return finalize_graph(descriptor);
	case DNN_BACKEND_ENGINE_DESCRIPTOR:
		return finalize_engine(descriptor);
	case DNN_BACKEND_ENGINECFG_DESCRIPTOR:
		return finalize_configuration(descriptor);
	case DNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
		return finalize_heuristics(descriptor);
	case DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
		return finalize_plan(descriptor);
	case DNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
		return finalize_variant_pack(descriptor);
	default:
		return DNN_STATUS_SUCCESS;
	}
}
