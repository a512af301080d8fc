/* SPDX-License-Identifier: Apache-2.0
 *
 * What each layer of a model caches. Which layers have a window, a state or a mixture of experts is written in many ways: as a list of
 * types, a pattern of letters, a period, or only in the code of the model. Where a file says that there is something and there is
 * no rule for it, the model lacks that rule; nothing is guessed.
 */
#include <string.h>

#include "base/figure.h"
#include "base/json.h"
#include "serve/architecture.h"
#include "serve/served_model.h"

static bool
is_type(const struct tn_served_model *model, const char *type)
{
	return strcmp(model->type, type) == 0;
}

static bool
starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void
set_full(const struct tn_served_model *model, struct tn_model_layer *layer)
{
	layer->cache = TN_CACHE_FULL;
	layer->kv_heads = (int32_t)model->kv_heads;
	layer->key_size = layer->value_size = (int32_t)model->head_size;
	if (model->latent > 0) {
		layer->cache = TN_CACHE_LATENT;
		layer->kv_heads = 1;
		layer->key_size = (int32_t)(model->latent + model->latent_rope);
		layer->value_size = 0;
	}
}

static void
set_windowed(struct tn_served_model *model, struct tn_model_layer *layer, enum tn_cache_kind kind, const char *field)
{
	int64_t window = tn__config_field(model->text, field);
	set_full(model, layer);
	if (window <= 0 || window > INT32_MAX) {
		tn__model_lacks(model, field);
		return;
	}
	layer->cache = kind;
	layer->window = (int32_t)window;
}

static void
set_state(struct tn_model_layer *layer)
{
	layer->cache = TN_CACHE_NONE;
	layer->state = true;
}

/* One word of layer_types or layers_block_type. */
static void
set_by_type(struct tn_served_model *model, struct tn_model_layer *layer, const char *type)
{
	if (strcmp(type, "full_attention") == 0 || strcmp(type, "attention") == 0) {
		set_full(model, layer);
	} else if (strcmp(type, "sliding_attention") == 0) {
		set_windowed(model, layer, TN_CACHE_WINDOW, "sliding_window");
	} else if (strcmp(type, "chunked_attention") == 0) {
		set_windowed(model, layer, TN_CACHE_CHUNK, "attention_chunk_size");
	} else if (strcmp(type, "linear_attention") == 0 || strcmp(type, "mamba") == 0 || strcmp(type, "conv") == 0) {
		set_state(layer);
	} else if (strcmp(type, "moe") == 0 || strcmp(type, "mlp") == 0) {
		layer->cache = TN_CACHE_NONE;
		layer->experts = strcmp(type, "moe") == 0;
		return; /* NemotronH: one part a layer */
	} else {
		char what[64];
		snprintf(what, sizeof(what), "a rule for layers of type \"%.30s\"", type);
		tn__model_lacks(model, what);
	}
	if (is_type(model, "nemotron_h"))
		layer->feed_forward = false;
}

/* False where the file has no such list, or one of another length. */
static bool
kinds_from_list(struct tn_served_model *model, const char *field)
{
	const json_t *list = json_object_get(model->text, field);
	if (!json_is_array(list) || (int64_t)json_array_size(list) < model->layer_count)
		return false;
	for (int32_t i = 0; i < model->layer_count; i++) {
		const char *type = json_string_value(json_array_get(list, (size_t)i));
		set_by_type(model, &model->layers[i], type != NULL ? type : "?");
	}
	return true;
}

/* NemotronH: M state, * attention, - feed-forward, E experts; one part a layer. */
static bool
kinds_from_letters(struct tn_served_model *model)
{
	const char *letters = tn__json_borrow_text(model->text, "hybrid_override_pattern");
	if (letters == NULL || strlen(letters) != (size_t)model->layer_count)
		return false;
	for (int32_t i = 0; i < model->layer_count; i++) {
		struct tn_model_layer *layer = &model->layers[i];
		layer->feed_forward = letters[i] == '-' || letters[i] == 'E';
		layer->experts = letters[i] == 'E';
		if (letters[i] == '*')
			set_full(model, layer);
		else if (letters[i] == 'M')
			set_state(layer);
		else if (!layer->feed_forward)
			tn__model_lacks(model, "hybrid_override_pattern of the letters M, *, - and E");
	}
	return true;
}

static bool
holds_index(const json_t *list, int32_t index)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_integer_value(json_array_get(list, i)) == index)
			return true;
	return false;
}

/* Attention in the layers that a list names, states elsewhere. */
static bool
kinds_from_indices(struct tn_served_model *model, const json_t *list, int first)
{
	if (!json_is_array(list))
		return false;
	for (int32_t i = 0; i < model->layer_count; i++)
		if (holds_index(list, i + first))
			set_full(model, &model->layers[i]);
		else
			set_state(&model->layers[i]);
	return true;
}

/* Attention in every layer whose index has this remainder, states elsewhere. */
static void
kinds_from_period(struct tn_served_model *model, int64_t period, int64_t offset)
{
	for (int32_t i = 0; i < model->layer_count; i++)
		if (period > 0 && i % period == offset)
			set_full(model, &model->layers[i]);
		else
			set_state(&model->layers[i]);
}

/* Every `pattern`th layer sees all tokens, the others a window. */
static void
windows_by_pattern(struct tn_served_model *model, int64_t pattern)
{
	for (int32_t i = 0; i < model->layer_count; i++)
		if (pattern > 0 && (i + 1) % pattern == 0)
			set_full(model, &model->layers[i]);
		else
			set_windowed(model, &model->layers[i], TN_CACHE_WINDOW, "sliding_window");
}

/* Llama 4: layers with rotation see one chunk. */
static void
chunks_by_rotation(struct tn_served_model *model)
{
	const json_t *list = json_object_get(model->text, "no_rope_layers");
	for (int32_t i = 0; i < model->layer_count; i++) {
		bool rotated = (int64_t)json_array_size(list) == model->layer_count
		                   ? json_integer_value(json_array_get(list, (size_t)i)) != 0
		                   : (i + 1) % 4 != 0;
		if (rotated && !json_is_null(json_object_get(model->text, "attention_chunk_size")))
			set_windowed(model, &model->layers[i], TN_CACHE_CHUNK, "attention_chunk_size");
		else
			set_full(model, &model->layers[i]);
	}
}

/* A window for all layers (Mistral, Phi-3), or for those behind max_window_layers where use_sliding_window is set (Qwen2). */
static void
plain_kinds(struct tn_served_model *model)
{
	int64_t window = tn__config_field(model->text, "sliding_window"),
			behind = tn__config_field(model->text, "max_window_layers");
	const json_t *use = json_object_get(model->text, "use_sliding_window");
	bool windowed = window > 0 && (use == NULL || json_is_true(use)) && model->latent == 0;
	if (windowed && use != NULL && behind >= model->layer_count)
		windowed = false;
	for (int32_t i = 0; i < model->layer_count; i++)
		if (windowed && (use == NULL || i >= behind))
			set_windowed(model, &model->layers[i], TN_CACHE_WINDOW, "sliding_window");
		else
			set_full(model, &model->layers[i]);
}

/* Models whose pattern stands in their code where config.json leaves it out. */
static bool
kinds_by_type(struct tn_served_model *model)
{
	const json_t *text = model->text, *linear = json_object_get(text, "linear_attn_config");
	int64_t pattern = tn__config_field(text, "sliding_window_pattern"),
			interval = tn__config_field(text, "full_attention_interval");
	if (starts(model->type, "gemma2") || starts(model->type, "gpt_oss"))
		windows_by_pattern(model, 2);
	else if (starts(model->type, "gemma3"))
		windows_by_pattern(model, pattern > 0 ? pattern : 6);
	else if (is_type(model, "cohere2"))
		windows_by_pattern(model, pattern > 0 ? pattern : 4);
	else if (starts(model->type, "llama4"))
		chunks_by_rotation(model);
	else if (is_type(model, "jamba"))
		kinds_from_period(model, tn__config_field(text, "attn_layer_period"),
		                  tn__config_field(text, "attn_layer_offset"));
	else if (starts(model->type, "qwen3_next") || starts(model->type, "qwen3_5"))
		kinds_from_period(model, interval > 0 ? interval : 4, (interval > 0 ? interval : 4) - 1);
	else if (is_type(model, "kimi_linear"))
		return kinds_from_indices(model, json_object_get(linear, "full_attn_layers"), 1);
	else if (is_type(model, "bamba"))
		return kinds_from_indices(model, json_object_get(text, "attn_layer_indices"), 0);
	else if (starts(model->type, "lfm2"))
		return kinds_from_indices(model, json_object_get(text, "full_attn_idxs"), 0);
	else
		return false;
	return true;
}

/* Falcon-H1 has attention and a state in each layer; pure state-space models have no attention. */
static void
kinds_of_whole_models(struct tn_served_model *model)
{
	for (int32_t i = 0; i < model->layer_count; i++)
		if (is_type(model, "falcon_h1")) {
			set_full(model, &model->layers[i]);
			model->layers[i].state = true;
		} else {
			set_state(&model->layers[i]);
			model->layers[i].feed_forward = false;
		}
}

/* Gemma 4: layers that see all tokens have heads of another size and number. */
static void
resize_global_layers(struct tn_served_model *model)
{
	int64_t size = tn__config_field(model->text, "global_head_dim"),
			heads = tn__config_field(model->text, "num_global_key_value_heads");
	for (int32_t i = 0; i < model->layer_count; i++) {
		struct tn_model_layer *layer = &model->layers[i];
		if (layer->cache != TN_CACHE_FULL)
			continue;
		if (size > 0)
			layer->key_size = layer->value_size = (int32_t)size;
		if (heads > 0)
			layer->kv_heads = (int32_t)heads;
	}
}

/* The last layers of Gemma 3n and 4 read the cache of earlier ones. */
static void
drop_shared_caches(struct tn_served_model *model)
{
	int64_t shared = tn__config_field(model->text, "num_kv_shared_layers");
	for (int64_t i = shared > 0 && shared < model->layer_count ? model->layer_count - shared : model->layer_count;
	     i < model->layer_count; i++)
		model->layers[i].cache = TN_CACHE_NONE;
}

static bool
lists_index(const json_t *text, const char *field, int32_t index)
{
	return holds_index(json_object_get(text, field), index);
}

static void
mark_experts(struct tn_served_model *model)
{
	const json_t *text = model->text;
	int64_t dense = tn__config_field(text, "first_k_dense_replace"),
			step = tn__config_field(text, "decoder_sparse_step");
	int64_t every = tn__config_field(text, "moe_layer_freq"), period = tn__config_field(text, "expert_layer_period");
	int64_t offset = tn__config_field(text, "expert_layer_offset");
	for (int32_t i = 0; i < model->layer_count && model->experts > 0; i++) {
		struct tn_model_layer *layer = &model->layers[i];
		bool sparse = i >= dense && (step <= 0 || (i + 1) % step == 0) && (every <= 0 || i % every == 0) &&
		              !lists_index(text, "mlp_only_layers", i);
		if (period > 0)
			sparse = i % period == offset;
		if (!is_type(model, "nemotron_h"))
			layer->experts = layer->feed_forward && sparse;
	}
}

/* ---- states ---- */

static int64_t
required(struct tn_served_model *model, const char *name)
{
	int64_t value = tn__config_field(model->text, name);
	if (value <= 0)
		tn__model_lacks(model, name);
	return value > 0 ? value : 0;
}

static int64_t
either(struct tn_served_model *model, const char *first, const char *second)
{
	int64_t value = tn__config_field(model->text, first);
	return value > 0 ? value : required(model, second);
}

static void
mamba2_state(struct tn_served_model *model, struct tn_state *state)
{
	const json_t *text = model->text;
	state->kind = TN_STATE_MAMBA2;
	state->heads = is_type(model, "nemotron_h") ? required(model, "mamba_num_heads")
	                                            : either(model, "mamba_n_heads", "num_heads");
	state->head_size = is_type(model, "nemotron_h") ? required(model, "mamba_head_dim")
	                                                : either(model, "mamba_d_head", "head_dim");
	state->groups = either(model, "mamba_n_groups", "n_groups");
	state->size = tn__config_field(text, "ssm_state_size") > 0 ? tn__config_field(text, "ssm_state_size")
	                                                           : either(model, "mamba_d_state", "state_size");
	state->kernel = either(model, "mamba_d_conv", "conv_kernel");
	state->inner = tn__config_field(text, "mamba_d_ssm");
	if (state->inner <= 0)
		state->inner = state->heads * state->head_size;
}

static void
mamba_state(struct tn_served_model *model, struct tn_state *state)
{
	state->kind = TN_STATE_MAMBA;
	state->size = either(model, "mamba_d_state", "state_size");
	state->kernel = either(model, "mamba_d_conv", "conv_kernel");
	state->inner = is_type(model, "jamba") ? required(model, "mamba_expand") * (model->hidden > 0 ? model->hidden : 0)
	                                       : tn__config_field(model->text, "intermediate_size");
	if (state->inner <= 0)
		state->inner = either(model, "expand", "mamba_expand") * (model->hidden > 0 ? model->hidden : 0);
}

static void
delta_state(struct tn_served_model *model, struct tn_state *state)
{
	state->kind = TN_STATE_DELTA;
	state->key_heads = required(model, "linear_num_key_heads");
	state->value_heads = required(model, "linear_num_value_heads");
	state->key_size = required(model, "linear_key_head_dim");
	state->value_size = required(model, "linear_value_head_dim");
	state->kernel = required(model, "linear_conv_kernel_dim");
}

/* Kimi Delta Attention keeps its state in 32 bits. */
static void
kimi_state(struct tn_served_model *model, struct tn_state *state)
{
	const json_t *linear = json_object_get(model->text, "linear_attn_config");
	state->kind = TN_STATE_DELTA;
	state->key_heads = state->value_heads = tn__config_field(linear, "num_heads");
	state->key_size = state->value_size = tn__config_field(linear, "head_dim");
	state->kernel = tn__config_field(linear, "short_conv_kernel_size");
	state->bytes = 4;
	if (state->key_heads <= 0 || state->key_size <= 0 || state->kernel <= 0)
		tn__model_lacks(model, "linear_attn_config");
}

/* In how many bits the recurrent part is kept: vLLM 0.26.0, model_executor/models/config.py, NemotronHForCausalLMConfig and
 * Qwen3_5ForConditionalGenerationConfig; elsewhere as the model. */
static int32_t
state_number_bytes(const struct tn_served_model *model)
{
	const char *type = tn__json_borrow_text(model->text,
	                                        is_type(model, "nemotron_h") ? "mamba_ssm_cache_dtype" : "mamba_ssm_dtype");
	if (is_type(model, "nemotron_h"))
		return type == NULL || strcmp(type, "float32") == 0 ? 4 : 2;
	return starts(model->type, "qwen3_5") && type != NULL && strcmp(type, "float32") == 0 ? 4 : model->bytes;
}

static void
read_state(struct tn_served_model *model)
{
	struct tn_state *state = &model->state;
	state->convolution_bytes = model->bytes;
	state->bytes = state_number_bytes(model);
	if (is_type(model, "kimi_linear"))
		kimi_state(model, state);
	else if (starts(model->type, "qwen3_next") || starts(model->type, "qwen3_5"))
		delta_state(model, state);
	else if (starts(model->type, "lfm2")) {
		state->kind = TN_STATE_CONVOLUTION;
		state->inner = either(model, "conv_dim", "hidden_size");
		state->kernel = required(model, "conv_L_cache");
	} else if (is_type(model, "jamba") || is_type(model, "mamba") || is_type(model, "falcon_mamba"))
		mamba_state(model, state);
	else if (is_type(model, "nemotron_h") || is_type(model, "mamba2") || is_type(model, "bamba") ||
	         is_type(model, "falcon_h1") || starts(model->type, "granitemoehybrid"))
		mamba2_state(model, state);
	else
		tn__model_lacks(model, "a rule for this model's recurrent state");
}

int64_t
tn__state_bytes(const struct tn_state *state, int ranks)
{
	int64_t groups = state->groups, channels = state->inner;
	switch (state->kind) {
	case TN_STATE_MAMBA:
		return channels / ranks * (state->kernel - 1) * state->convolution_bytes +
		       channels / ranks * state->size * state->bytes;
	case TN_STATE_MAMBA2:
		if (groups % ranks != 0) /* each rank needs the groups of its heads */
			groups = ranks;
		channels += 2 * groups * state->size;
		return channels / ranks * (state->kernel - 1) * state->convolution_bytes +
		       state->heads / ranks * state->head_size * state->size * state->bytes;
	case TN_STATE_DELTA:
		channels = 2 * state->key_heads * state->key_size + state->value_heads * state->value_size;
		return channels / ranks * (state->kernel - 1) * state->convolution_bytes +
		       state->value_heads / ranks * state->value_size * state->key_size * state->bytes;
	case TN_STATE_CONVOLUTION:
		return channels / ranks * (state->kernel - 1) * state->convolution_bytes;
	default:
		return 0;
	}
}

/* A field that speaks of a cache of another kind, in a model that is not known. */
static void
suspect_unknown(struct tn_served_model *model)
{
	static const char *const fields[] = {
		"ssm_state_size",     "mamba_d_state", "state_size",      "linear_num_value_heads",
		"linear_attn_config", "conv_L_cache",  "compress_ratios", "rwkv",
		"attn_layer_period",  "index_topk",    "rswa_window"
	};
	for (size_t i = 0; model->known == NULL && i < sizeof(fields) / sizeof(fields[0]); i++)
		if (json_object_get(model->text, fields[i]) != NULL && !is_type(model, "kimi_linear")) {
			char what[96];
			snprintf(what, sizeof(what), "a rule for \"%s\" in this model_type", fields[i]);
			tn__model_lacks(model, what);
		}
}

void
tn__model_kinds(struct tn_served_model *model)
{
	bool any = false, pure = is_type(model, "mamba") || is_type(model, "mamba2") || is_type(model, "falcon_mamba");
	for (int32_t i = 0; i < model->layer_count; i++)
		model->layers[i].feed_forward = true;
	if (pure || is_type(model, "falcon_h1"))
		kinds_of_whole_models(model);
	else if (!kinds_from_list(model, "layer_types") && !kinds_from_list(model, "layers_block_type") &&
	         !kinds_from_letters(model) && !kinds_by_type(model))
		plain_kinds(model);
	if (starts(model->type, "gemma4"))
		resize_global_layers(model);
	drop_shared_caches(model);
	mark_experts(model);
	for (int32_t i = 0; i < model->layer_count; i++)
		any |= model->layers[i].state;
	if (any)
		read_state(model);
	suspect_unknown(model);
}
