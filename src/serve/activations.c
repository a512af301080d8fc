/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine needs besides weights and cache: a model of the profile run, fitted to runs of vLLM 0.26.0 on the virtual card, where
 * PyTorch's allocator is real (bench/serve_plan/README.md has the table).
 */
#include <string.h>

#include "serve/architecture.h"
#include "serve/serve.h"

#define MIB (INT64_C(1) << 20)
#define LATENT_WORKSPACE_TOKENS 65536 /* v1/attention/backends/mla/common.py, chunked prefill's workspace */

/* Shares of the model within which profile runs lay. */
#define LOWEST 0.75
#define HIGHEST 1.35

/* Bytes a number of logits costs at the peak of sampling: the second runner keeps them in 16 bits; the first casts them to 32, sorts them
 * and keeps the indices (v1/sample/ops/topk_topp_sampler.py). */
#define SECOND_RUNNER_LOGIT 2.1
#define FIRST_RUNNER_LOGIT 32.0
#define COMPILED 1.28 /* torch.compile keeps more at once than the modules one by one */

bool
tn__second_runner(const struct tn_served_model *model)
{
	/* config/vllm.py, _is_default_v2_model_runner_model: models without states, and of those with experts only a few. */
	static const char *const names[] = { "DeepseekV2ForCausalLM", "GraniteMoeForCausalLM", "Qwen2MoeForCausalLM" };
	if (model->state.kind != TN_STATE_NONE)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(model->architecture, names[i]) == 0)
			return true;
	return model->experts <= 0;
}

static double
largest_of(double first, double second)
{
	return first > second ? first : second;
}

/* Numbers a token at the widest point of a mixture of experts: model_executor/layers/fused_moe/fused_moe.py keeps the first and third
 * product in one buffer, the second beside it. */
static double
expert_width(const struct tn_served_model *model, int ranks)
{
	double used = model->experts_used > 0 ? (double)model->experts_used : 1,
		   inner = (double)model->expert_intermediate / ranks;
	double shared = 3.0 * (double)model->shared_intermediate / ranks;
	return used * (largest_of(2 * inner, (double)model->hidden) + inner) + shared;
}

static double
state_width(const struct tn_state *state, int ranks)
{
	double channels = (double)state->inner;
	if (state->kind == TN_STATE_DELTA)
		channels = 2.0 * (double)(state->key_heads * state->key_size) +
		           2.0 * (double)(state->value_heads * state->value_size);
	else
		channels = 2.0 * channels + 2.0 * (double)(state->groups * state->size);
	return 2.5 * channels / ranks;
}

static bool
is_gated(const struct tn_served_model *model)
{
	return model->known == NULL || !(model->known->flags & (TN_ARCH_NEMOTRON | TN_ARCH_GPT | TN_ARCH_FALCON));
}

/* Numbers a token at the widest point of a layer. */
static double
widest(const struct tn_served_model *model, int ranks)
{
	double attention = 2.0 * (double)(model->heads + model->kv_heads) * (double)model->head_size / ranks,
		   width = attention > 0 ? attention : 0;
	bool dense = false, experts = false;
	for (int32_t i = 0; i < model->layer_count; i++) {
		dense |= model->layers[i].feed_forward && !model->layers[i].experts;
		experts |= model->layers[i].experts;
	}
	if (dense)
		width = largest_of(width, (is_gated(model) ? 3.0 : 2.0) * (double)model->intermediate / ranks);
	if (experts)
		width = largest_of(width, expert_width(model, ranks));
	if (model->state.kind != TN_STATE_NONE)
		width = largest_of(width, state_width(&model->state, ranks));
	return width;
}

static int64_t
latent_workspace(const struct tn_served_model *model, const struct tn_serve_request *request)
{
	int64_t tokens = 8 * request->max_model_len;
	if (model->latent <= 0)
		return 0;
	if (tokens > LATENT_WORKSPACE_TOKENS || tokens <= 0)
		tokens = LATENT_WORKSPACE_TOKENS;
	return tokens * (model->heads / request->gpus) * (model->latent_nope + model->latent_value) * 2;
}

struct tn_serve_figure
tn__activations(const struct tn_served_model *model, const struct tn_serve_request *request, bool second_runner)
{
	double tokens = (double)request->max_num_batched_tokens, hidden = (double)model->hidden;
	double forward = tokens * (3.3 * hidden + widest(model, request->gpus)) * 2.0 * (request->eager ? 1.0 : COMPILED);
	double rows = (double)request->max_num_seqs;
	double logits = rows * (double)model->vocabulary * (second_runner ? SECOND_RUNNER_LOGIT : FIRST_RUNNER_LOGIT) +
	                tokens * hidden * 2.0;
	double peak = largest_of(forward, logits) + (double)latent_workspace(model, request) + 8.0 * (double)MIB;
	return (struct tn_serve_figure){ .lowest = (int64_t)(LOWEST * peak),
		                             .bytes = (int64_t)peak,
		                             .highest = (int64_t)(HIGHEST * peak),
		                             .source = "model of the profile run" };
}

int64_t
tn__loaded_extras(const struct tn_served_model *model, int ranks)
{
	int64_t rotary = model->latent > 0 ? model->latent_rope : model->rotary, tables = 1, latent = 0;
	bool full = false, windowed = false, attends = false;
	for (int32_t i = 0; i < model->layer_count; i++) {
		full |= model->layers[i].cache == TN_CACHE_FULL;
		windowed |= model->layers[i].cache == TN_CACHE_WINDOW;
		attends |= model->layers[i].cache != TN_CACHE_NONE;
		if (model->layers[i].cache == TN_CACHE_LATENT)
			latent += model->heads / ranks * model->latent * (model->latent_nope + model->latent_value) * model->bytes;
	}
	if (full && windowed && strncmp(model->type, "gemma", 5) == 0)
		tables = 2; /* local layers turn by another base */
	if (!attends || rotary <= 0 || model->context <= 0 || strcmp(model->type, "nemotron_h") == 0 ||
	    strncmp(model->type, "gpt", 3) == 0)
		return latent;
	return latent + tables * model->context * rotary * model->bytes;
}
