/* SPDX-License-Identifier: Apache-2.0
 *
 * What `run --json` says of the program: what it does about its memory, what it needs in all, and what it was given.
 */
#include "report/json_parts.h"

/* What the program does about its memory already; null: nothing told it. */
json_t *
tn__json_facts(const struct tn_report *report)
{
	const struct tn_facts *seen = &report->facts;
	if (!seen->known)
		return json_null();
	return json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:I}",
	                 "sharded", seen->sharded, "state_sharded", seen->state_sharded, "trains", seen->trains, "autocast",
	                 seen->autocast, "checkpointing", seen->checkpoints, "checkpointing_waits", seen->checkpoints_wait,
	                 "trained_in_eval", seen->trained_in_eval, "never_updated", seen->never_updated, "loader",
	                 seen->loader, "expandable_segments", seen->expandable_segments, "copy_called", seen->copy_called,
	                 "gradients_in_buckets", seen->gradients_in_buckets, "cudnn_benchmark", seen->cudnn_benchmark,
	                 "workspace_config", seen->workspace_config, "small_optimizer_state", seen->small_state,
	                 "parameter_bytes", (json_int_t)seen->parameter_bytes, "wide_parameter_bytes",
	                 (json_int_t)seen->wide_bytes, "small_parameter_bytes", (json_int_t)seen->small_bytes,
	                 "trained_parameter_bytes", (json_int_t)seen->trained_bytes);
}

/* What a program that ran out of memory needs in all; null: unknown. */
json_t *
tn__json_need(const struct tn_report *report)
{
	const struct tn_need *need = &report->need;
	return need->bytes > 0 ? json_pack("{s:I, s:I, s:I}", "device_bytes", (json_int_t)need->bytes, "least_device_bytes",
	                                   (json_int_t)need->least, "steps", (json_int_t)need->steps)
	                       : json_null();
}

/* "8192 x 2048" and the largest of the calls before; null: unknown, or it was the first. */
json_t *
tn__json_input(const struct tn_oom_input *input)
{
	if (input->values <= 0)
		return json_null();
	return json_pack("{s:o, s:I, s:o, s:I, s:I}", "shape", tn__json_text(input->shape), "values",
	                 (json_int_t)input->values, "before", tn__json_text(input->before), "values_before",
	                 (json_int_t)input->values_before, "calls_before", (json_int_t)input->calls_before);
}
