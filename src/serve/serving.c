/* SPDX-License-Identifier: Apache-2.0
 *
 * From a folder to what is written of it: the model is read, planned, and held against other cards and options.
 */
#include <string.h>

#include "serve/serve.h"

/* A share of the card means another thing to each engine: another one is asked for its own. */
static bool
starts(const struct tn_serving *serving, const struct tn_serve_request *asked, enum tn_engine engine)
{
	struct tn_serve_request request = *asked;
	struct tn_serve_plan plan;
	request.engine = engine;
	if (engine != asked->engine)
		request.utilization = 0;
	tn__serve_compute(&serving->model, &serving->weights, &request, &plan);
	return plan.verdict == TN_SERVE_STARTS;
}

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
	for (int engine = 0; engine < TN_ENGINES; engine++)
		out->starts[engine] = starts(out, request, (enum tn_engine)engine);
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
