/* SPDX-License-Identifier: Apache-2.0
 *
 * From a folder to what is written of it: the model is read, planned, and held against other cards and options.
 */
#include <string.h>

#include "serve/serve.h"

tn_status
tn__serve(const char *folder, const struct tn_serve_request *request, struct tn_serving *out)
{
	memset(out, 0, sizeof(*out));
	tn_status status = tn__model_read(folder, &out->model);
	if (status == TN_OK)
		status = tn__weights_read(folder, &out->model, &out->weights);
	if (status != TN_OK)
		return status;
	tn__serve_compute(&out->model, &out->weights, request, &out->plan);
	struct tn_serve_request other = *request;
	struct tn_serve_plan others;
	other.engine = request->engine == TN_ENGINE_VLLM ? TN_ENGINE_SGLANG : TN_ENGINE_VLLM;
	tn__serve_compute(&out->model, &out->weights, &other, &others);
	out->starts[request->engine] = out->plan.verdict == TN_SERVE_STARTS;
	out->starts[other.engine] = others.verdict == TN_SERVE_STARTS;
	tn__serve_options(out, request);
	tn__serve_changes(out);
	return TN_OK;
}

void
tn__serving_free(struct tn_serving *serving)
{
	tn__weights_free(&serving->weights);
	tn__model_free(&serving->model);
}
