/* SPDX-License-Identifier: Apache-2.0
 *
 * Answering questions from the real cuDNN: which engines its heuristics name for a graph and a card, and what the plan
 * of one takes.
 */
#include <stdlib.h>
#include <string.h>

#include "dnn/abi.h"
#include "dnn/real.h"

enum { MOST_RESULTS = 256, MOST_KNOBS = 64, MOST_NOTES = 32 };

struct asked {
	struct tn_dnn_made made;
	tn_dnn_descriptor card, graph;
};

static int
make_asked(const struct tn_dnn_real *real, const struct tn_dnn_question *question, struct asked *out)
{
	struct tn_dnn_cursor cursor = question->graph;
	*out = (struct asked){ .made = { .real = real } };
	int status = tn__dnn_make_card(&out->made, question->card, question->head.card, &out->card);
	return status == DNN_STATUS_SUCCESS ? tn__dnn_make_node(&out->made, &cursor, &out->graph) : status;
}

/* ---- heuristics ---- */

/* Elements of an attribute of plain numbers; how many there are. */
static int64_t
numbers_of(const struct tn_dnn_real *real, tn_dnn_descriptor descriptor, int name, int type, int64_t most, void *out)
{
	int64_t count = 0;
	if (real->get(descriptor, name, type, most, &count, out) != DNN_STATUS_SUCCESS)
		return 0;
	return count < most ? count : most;
}

/* Empty descriptors that an attribute is answered into; how many were filled. */
static int64_t
children_of(struct asked *asked, tn_dnn_descriptor parent, int name, int type, int64_t most, tn_dnn_descriptor *out)
{
	int64_t count = 0;
	for (int64_t i = 0; i < most; i++)
		if (tn__dnn_make(&asked->made, type, &out[i]) != DNN_STATUS_SUCCESS)
			return 0;
	if (asked->made.real->get(parent, name, DNN_TYPE_BACKEND_DESCRIPTOR, most, &count, out) != DNN_STATUS_SUCCESS)
		return 0;
	return count < most ? count : most;
}

static int64_t
count_of(const struct tn_dnn_real *real, tn_dnn_descriptor descriptor, int name, int64_t most)
{
	int64_t count = 0;
	if (real->get(descriptor, name, DNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL) != DNN_STATUS_SUCCESS)
		return 0;
	return count < most ? count : most;
}

static void
add_notes(const struct tn_dnn_real *real, tn_dnn_descriptor engine, struct tn_dnn_bytes *out)
{
	int32_t notes[MOST_NOTES], behaviours[MOST_NOTES];
	int64_t note_count = numbers_of(real, engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, MOST_NOTES,
	                                notes);
	int64_t behaviour_count = numbers_of(real, engine, DNN_ATTR_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE,
	                                     MOST_NOTES, behaviours);
	tn__dnn_add_u32(out, (uint32_t)note_count);
	tn__dnn_add(out, notes, (size_t)note_count * sizeof(notes[0]));
	tn__dnn_add_u32(out, (uint32_t)behaviour_count);
	tn__dnn_add(out, behaviours, (size_t)behaviour_count * sizeof(behaviours[0]));
}

static void
add_row(struct asked *asked, tn_dnn_descriptor configuration, struct tn_dnn_bytes *out)
{
	const struct tn_dnn_real *real = asked->made.real;
	tn_dnn_descriptor engine = NULL, choices[MOST_KNOBS];
	int64_t index = -1, workspace = -1;
	int32_t shared = -1;
	if (children_of(asked, configuration, DNN_ATTR_ENGINECFG_ENGINE, DNN_BACKEND_ENGINE_DESCRIPTOR, 1, &engine) == 1)
		(void)numbers_of(real, engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &index);
	int64_t count = children_of(asked, configuration, DNN_ATTR_ENGINECFG_KNOB_CHOICES,
	                            DNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, MOST_KNOBS, choices);
	(void)numbers_of(real, configuration, DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, &workspace);
	(void)numbers_of(real, configuration, DNN_ATTR_ENGINECFG_SHARED_MEMORY_USED, DNN_TYPE_INT32, 1, &shared);
	tn__dnn_add_i64(out, index);
	tn__dnn_add_i64(out, workspace);
	tn__dnn_add_i64(out, shared);
	tn__dnn_add_u32(out, (uint32_t)count);
	for (int64_t i = 0; i < count; i++) {
		int32_t type = -1;
		int64_t value = -1;
		(void)numbers_of(real, choices[i], DNN_ATTR_KNOB_CHOICE_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &type);
		(void)numbers_of(real, choices[i], DNN_ATTR_KNOB_CHOICE_KNOB_VALUE, DNN_TYPE_INT64, 1, &value);
		tn__dnn_add_i64(out, type);
		tn__dnn_add_i64(out, value);
	}
	add_notes(real, engine, out);
}

/* The configurations that the heuristics of a mode name, in their order. */
static int
ask_heuristics(struct asked *asked, int32_t mode, tn_dnn_descriptor results[MOST_RESULTS], int64_t *count)
{
	const struct tn_dnn_real *real = asked->made.real;
	tn_dnn_descriptor heuristics;
	int status = tn__dnn_make(&asked->made, DNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics);
	if (status == DNN_STATUS_SUCCESS)
		status = tn__dnn_set_child(&asked->made, heuristics, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, asked->graph);
	if (status == DNN_STATUS_SUCCESS)
		status = real->set(heuristics, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1, &mode);
	if (status == DNN_STATUS_SUCCESS)
		status = tn__dnn_set_child(&asked->made, heuristics, DNN_ATTR_ENGINEHEUR_DEVICEPROP, asked->card);
	if (status == DNN_STATUS_SUCCESS)
		status = real->finalize(heuristics);
	if (status != DNN_STATUS_SUCCESS)
		return status;
	*count = count_of(real, heuristics, DNN_ATTR_ENGINEHEUR_RESULTS, MOST_RESULTS);
	*count = children_of(asked, heuristics, DNN_ATTR_ENGINEHEUR_RESULTS, DNN_BACKEND_ENGINECFG_DESCRIPTOR, *count,
	                     results);
	return status;
}

/* ---- plans ---- */

static int
answer_plan(struct asked *asked, tn_dnn_descriptor configuration, int64_t *workspace)
{
	tn_dnn_descriptor plan;
	int64_t count = 0;
	int status = tn__dnn_make(&asked->made, DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan);
	if (status == DNN_STATUS_SUCCESS)
		status = tn__dnn_set_child(&asked->made, plan, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
	if (status == DNN_STATUS_SUCCESS)
		status = tn__dnn_set_child(&asked->made, plan, DNN_ATTR_EXECUTION_PLAN_DEVICEPROP, asked->card);
	if (status == DNN_STATUS_SUCCESS)
		status = asked->made.real->finalize(plan);
	if (status == DNN_STATUS_SUCCESS)
		status = asked->made.real->get(plan, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, &count,
		                               workspace);
	return status;
}

/* ---- both ---- */

static int
answer(struct asked *asked, const struct tn_dnn_question *question, struct tn_dnn_bytes *rows, uint32_t *row_count)
{
	tn_dnn_descriptor results[MOST_RESULTS];
	int64_t count = 0, workspace = 0;
	int status = ask_heuristics(asked, question->head.mode, results, &count);
	if (status != DNN_STATUS_SUCCESS)
		return status;
	if (question->head.kind == TN_DNN_HEURISTICS) {
		for (int64_t i = 0; i < count; i++)
			add_row(asked, results[i], rows);
		*row_count = (uint32_t)count;
		return status;
	}
	if (question->head.rank >= count)
		return DNN_STATUS_BAD_PARAM;
	status = answer_plan(asked, results[question->head.rank], &workspace);
	tn__dnn_add_i64(rows, workspace);
	*row_count = 1;
	return status;
}

void
tn__dnn_answer(const struct tn_dnn_real *real, const struct tn_dnn_question *question, struct tn_dnn_bytes *out)
{
	struct asked asked;
	struct tn_dnn_bytes rows = { .at = NULL };
	uint32_t count = 0;
	int status = make_asked(real, question, &asked);
	if (status == DNN_STATUS_SUCCESS)
		status = answer(&asked, question, &rows, &count);
	tn__dnn_add_u32(out, (uint32_t)real->version());
	tn__dnn_add_u32(out, (uint32_t)status);
	tn__dnn_add_u32(out, status == DNN_STATUS_SUCCESS ? count : 0);
	if (status == DNN_STATUS_SUCCESS)
		tn__dnn_add(out, rows.at, rows.length);
	out->failed |= rows.failed;
	tn__dnn_bytes_free(&rows);
	tn__dnn_unmake(&asked.made);
}
