/* SPDX-License-Identifier: Apache-2.0
 *
 * What else would start: each option is tried by planning with it. Nothing is named that the request already says, nor what does not
 * make it start.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "serve/serve.h"

#define LENGTH_STEP 1024
#define STEPS_OF_UTILIZATION 0.01
#define MARGIN_BYTES (UINT64_C(256) << 20) /* that a card keeps free beside its context */

static bool
starts(const struct tn_serving *serving, const struct tn_serve_request *request, struct tn_serve_plan *plan)
{
	tn__serve_compute(&serving->model, &serving->weights, request, plan);
	return plan->verdict == TN_SERVE_STARTS;
}

static struct tn_serve_change *
add(struct tn_serving *serving, const struct tn_serve_plan *plan, const char *option, const char *value,
    const char *effect)
{
	if (serving->change_count == TN_SERVE_CHANGES)
		return NULL;
	struct tn_serve_change *change = &serving->changes[serving->change_count++];
	*change = (struct tn_serve_change){ .longest = plan->longest, .sequences = plan->sequences };
	snprintf(change->option, sizeof(change->option), "--%s", option);
	snprintf(change->value, sizeof(change->value), "%s", value);
	snprintf(change->effect, sizeof(change->effect), "%s", effect);
	return change;
}

static const struct tn_engine_words *
words_of(const struct tn_serving *serving)
{
	return tn__engine_words(serving->plan.request.engine);
}

/* The longest length that starts, in round steps. */
static void
try_length(struct tn_serving *serving)
{
	struct tn_serve_request request = serving->plan.request;
	struct tn_serve_plan plan;
	char value[24], effect[96];
	int64_t low = 0, high = request.max_model_len / LENGTH_STEP;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;
		request.max_model_len = middle * LENGTH_STEP;
		if (starts(serving, &request, &plan))
			low = middle;
		else
			high = middle - 1;
	}
	if (low == 0 || low * LENGTH_STEP >= serving->plan.request.max_model_len)
		return;
	request.max_model_len = low * LENGTH_STEP;
	starts(serving, &request, &plan);
	snprintf(value, sizeof(value), "%" PRId64, request.max_model_len);
	snprintf(effect, sizeof(effect), "requests up to %" PRId64 " tokens instead of %" PRId64, request.max_model_len,
	         serving->plan.request.max_model_len);
	add(serving, &plan, words_of(serving)->length, value, effect);
}

static double
highest_utilization(const struct tn_gpu_figures *gpu)
{
	if (gpu->total_bytes <= gpu->context_bytes + MARGIN_BYTES)
		return 0;
	return floor((double)(gpu->total_bytes - gpu->context_bytes - MARGIN_BYTES) / (double)gpu->total_bytes * 100.0) /
	       100.0;
}

/* More where the cache is too small, less where more is asked for than is free. */
static void
try_utilization(struct tn_serving *serving)
{
	struct tn_serve_request request = serving->plan.request;
	struct tn_serve_plan plan;
	char value[24];
	double highest = highest_utilization(&request.gpu->figures), own = request.utilization;
	bool less = serving->plan.limit == TN_SERVE_LIMIT_UTILIZATION;
	if (request.cache_bytes > 0 || highest <= 0)
		return;
	for (double share = less ? highest : floor(own * 100.0 + 1.0) / 100.0; share <= highest + 1e-9;
	     share += STEPS_OF_UTILIZATION) {
		request.utilization = share;
		if (!starts(serving, &request, &plan))
			continue;
		snprintf(value, sizeof(value), "%.2f", share);
		add(serving, &plan, words_of(serving)->utilization, value,
		    less ? "what the context leaves free" : "less is left for other processes and for CUDA graphs");
		return;
	}
}

static void
try_cache_type(struct tn_serving *serving)
{
	struct tn_serve_request request = serving->plan.request;
	struct tn_serve_plan plan;
	int capability = request.gpu->figures.compute_major * 10 + request.gpu->figures.compute_minor;
	if (serving->plan.cache.number_bytes == 1 || capability < 89 || serving->plan.layout.token_bytes == 0)
		return;
	request.cache_type = TN_CACHE_TYPE_8;
	request.cache_type_name = tn__cache_type_word(words_of(serving), "fp8");
	if (starts(serving, &request, &plan))
		add(serving, &plan, words_of(serving)->cache_type, request.cache_type_name,
		    "half the cache a token; answers change a little");
}

static void
try_eager(struct tn_serving *serving)
{
	struct tn_serve_request request = serving->plan.request;
	struct tn_serve_plan plan;
	request.eager = true;
	if (!serving->plan.request.eager && starts(serving, &request, &plan))
		add(serving, &plan, words_of(serving)->eager, "", "slower answers");
}

/* A smaller profile run: half as many tokens or sequences, as often as it takes. */
static void
try_batch(struct tn_serving *serving, bool tokens)
{
	struct tn_serve_request request = serving->plan.request;
	struct tn_serve_plan plan;
	char value[24];
	int64_t *figure = tokens ? &request.max_num_batched_tokens : &request.max_num_seqs, lowest = tokens ? 256 : 8;
	if (!words_of(serving)->profiles)
		return;
	while (*figure / 2 >= lowest) {
		*figure /= 2;
		if (!tokens && *figure < request.concurrency)
			return;
		if (!starts(serving, &request, &plan))
			continue;
		snprintf(value, sizeof(value), "%" PRId64, *figure);
		add(serving, &plan, tokens ? words_of(serving)->tokens : words_of(serving)->sequences, value,
		    tokens ? "prompts are read in smaller pieces" : "fewer requests at once");
		return;
	}
}

static void
try_degree(struct tn_serving *serving)
{
	struct tn_serve_request request = serving->plan.request;
	struct tn_serve_plan plan;
	char value[24];
	for (request.gpus *= 2; request.gpus <= 8; request.gpus *= 2) {
		if (!starts(serving, &request, &plan))
			continue;
		snprintf(value, sizeof(value), "%d", request.gpus);
		add(serving, &plan, words_of(serving)->cards, value, "so many cards of this kind");
		return;
	}
}

void
tn__serve_changes(struct tn_serving *serving)
{
	const struct tn_serve_plan *plan = &serving->plan;
	bool memory = plan->limit == TN_SERVE_LIMIT_WEIGHTS || plan->limit == TN_SERVE_LIMIT_LENGTH ||
	              plan->limit == TN_SERVE_LIMIT_CONCURRENCY;
	if (plan->verdict != TN_SERVE_FAILS && plan->verdict != TN_SERVE_NARROW)
		return;
	if (plan->request.gpu == NULL || plan->limit == TN_SERVE_LIMIT_DEGREE || plan->limit == TN_SERVE_LIMIT_CONTEXT ||
	    plan->limit == TN_SERVE_LIMIT_MODEL)
		return;
	try_utilization(serving);
	if (!memory)
		return;
	try_length(serving);
	try_cache_type(serving);
	if (plan->graphs_counted)
		try_eager(serving);
	try_batch(serving, false);
	try_batch(serving, true);
	try_degree(serving);
}

/* ---- cards ---- */

static struct tn_serve_option
option_of(const struct tn_serving *serving, const struct tn_serve_request *asked, const struct tn_gpu_row *gpu,
          int gpus)
{
	struct tn_serve_request request = *asked;
	struct tn_serve_plan plan;
	request.gpu = gpu;
	request.gpus = gpus;
	tn__serve_compute(&serving->model, &serving->weights, &request, &plan);
	return (struct tn_serve_option){
		.gpu = gpu, .gpus = gpus, .verdict = plan.verdict, .tokens = plan.tokens, .sequences = plan.sequences
	};
}

/* The card with the least memory that starts it by itself. */
static void
find_smallest(struct tn_serving *serving, const struct tn_serve_request *asked)
{
	for (int i = 0; i < tn__gpu_count(); i++) {
		const struct tn_gpu_row *row = tn__gpu_row(i);
		if (serving->smallest.gpu != NULL && row->figures.total_bytes >= serving->smallest.gpu->figures.total_bytes)
			continue;
		struct tn_serve_option option = option_of(serving, asked, row, 1);
		if (option.verdict == TN_SERVE_STARTS)
			serving->smallest = option;
	}
}

void
tn__serve_options(struct tn_serving *serving, const struct tn_serve_request *asked)
{
	bool sized = serving->weights.source != TN_WEIGHTS_UNKNOWN && serving->plan.layout.problem[0] == '\0' &&
	             asked->cache_bytes <= 0;
	if (!sized)
		return;
	for (int gpus = 1; asked->gpu != NULL && serving->degree_count < TN_SERVE_DEGREES; gpus *= 2)
		serving->degrees[serving->degree_count++] = option_of(serving, asked, asked->gpu, gpus);
	find_smallest(serving, asked);
}
