/* SPDX-License-Identifier: Apache-2.0
 *
 * tonnage serve-plan: reads a checkpoint's folder, plans, and has it written.
 */
#include "tonnage/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "inspect/serve_plan.h"
#include "report/document.h"

static tn_status
find_cache_type(const char *name, enum tn_cache_type *type)
{
	static const struct {
		const char *name;
		enum tn_cache_type type;
	} types[] = { { "auto", TN_CACHE_TYPE_AUTO }, { "bfloat16", TN_CACHE_TYPE_16 }, { "float16", TN_CACHE_TYPE_16 },
		          { "fp8", TN_CACHE_TYPE_8 },     { "fp8_e4m3", TN_CACHE_TYPE_8 },  { "fp8_e5m2", TN_CACHE_TYPE_8 } };
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, name) == 0) {
			*type = types[i].type;
			return TN_OK;
		}
	return tn__fail(TN_INVALID, "--kv-cache-dtype is auto, bfloat16, float16, fp8, fp8_e4m3 or fp8_e5m2, not \"%s\"",
	                name);
}

static tn_status
make_request(const struct tn_serve_plan_options *options, struct tn_serve_request *request)
{
	*request = (struct tn_serve_request){ .gpus = options->gpus > 0 ? options->gpus : 1,
		                                  .max_model_len = options->max_model_len,
		                                  .max_num_seqs = options->max_num_seqs,
		                                  .max_num_batched_tokens = options->max_num_batched_tokens,
		                                  .concurrency = options->concurrency,
		                                  .cache_bytes = (int64_t)options->kv_cache_memory_bytes,
		                                  .utilization = options->utilization,
		                                  .eager = options->enforce_eager,
		                                  .prefix_caching = options->prefix_caching };
	TN_RETURN_IF(!tn__engine_find(options->engine != NULL ? options->engine : "vllm", &request->engine), TN_INVALID,
	             "--engine is vllm, sglang or lmdeploy, not \"%s\"", options->engine);
	if (options->kv_cache_dtype != NULL) {
		TN_FORWARD_IF_ERROR(find_cache_type(options->kv_cache_dtype, &request->cache_type));
		request->cache_type_name = options->kv_cache_dtype;
	}
	if (options->gpu == NULL)
		return TN_OK;
	return tn__gpu_named(options->gpu, &request->gpu);
}

static enum tn_serve_result
result_of(const struct tn_serve_plan *plan, const struct tn_serve_check *check)
{
	if (check != NULL && !check->agrees)
		return TN_SERVE_RESULT_DIFFERS;
	if (plan->verdict == TN_SERVE_STARTS)
		return TN_SERVE_RESULT_STARTS;
	return plan->verdict == TN_SERVE_FAILS ? TN_SERVE_RESULT_FAILS : TN_SERVE_RESULT_UNDECIDED;
}

static tn_status
show(const struct tn_serve_plan_options *options, const struct tn_shown_serving *shown)
{
	if (options->json)
		return tn__serving_document.json(shown, options->output);
	return tn__serving_document.text(shown, tn__style_of(options->output), options->output);
}

tn_status
tn_serve_plan(const struct tn_serve_plan_options *options, enum tn_serve_result *result)
{
	struct tn_serve_request request;
	struct tn_serve_check check = { 0 };
	TN_FORWARD_IF_ERROR(make_request(options, &request));
	TN_RETURN_IF(options->verify && request.gpu == NULL, TN_INVALID,
	             "--verify starts the engine on a card: it needs --gpu");
	struct tn_serving *serving = calloc(1, sizeof(*serving));
	TN_RETURN_IF(serving == NULL, TN_NO_MEMORY, "out of host memory");
	tn_status status = tn__serve(options->folder, &request, serving);
	const struct tn_shown_serving shown = { serving, &request, options->folder, options->verify ? &check : NULL };
	if (status == TN_OK && options->verify)
		tn__serve_verify(serving, options->folder, options->python, &check);
	if (status == TN_OK)
		status = show(options, &shown);
	if (status == TN_OK)
		*result = result_of(&serving->plan, shown.check);
	tn__serving_free(serving);
	free(serving);
	return status;
}
