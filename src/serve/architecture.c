/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors that a checkpoint of a known architecture has, from its configuration: names, types and shapes as transformers writes
 * them. Quantised linear layers are written as their tools write them.
 */
#include <stdarg.h>
#include <string.h>

#include "base/figure.h"
#include "base/json.h"
#include "serve/architecture.h"
#include "serve/tensors.h"

struct writer {
	const struct tn_served_model *model;
	tn__tensor_visit *visit;
	void *context;
	char prefix[96]; /* "model.layers.3." */
	unsigned flags;
	bool attention_bias, feed_forward_bias;
};

static void
emit(struct writer *writer, const char *type, const char *name, int64_t count, int dimensions, ...)
{
	struct tn_tensor tensor = { .dimensions = dimensions, .count = count };
	va_list sizes;
	snprintf(tensor.name, sizeof(tensor.name), "%s%s", writer->prefix, name);
	snprintf(tensor.type, sizeof(tensor.type), "%s", type);
	va_start(sizes, dimensions);
	for (int i = 0; i < dimensions; i++)
		tensor.shape[i] = va_arg(sizes, int64_t);
	va_end(sizes);
	writer->visit(writer->context, &tensor);
}

/* A part of a linear layer: "self_attn.q_proj" and "qweight". */
static void
emit_part(struct writer *writer, const char *type, const char *module, const char *leaf, int64_t count, int64_t rows,
          int64_t columns)
{
	char name[96];
	snprintf(name, sizeof(name), "%s.%s", module, leaf);
	emit(writer, type, name, count, columns > 0 ? 2 : 1, rows, columns);
}

static int64_t
divide_up(int64_t number, int64_t by)
{
	return by > 0 ? (number + by - 1) / by : 1;
}

static void
emit_fp8(struct writer *writer, const char *module, int64_t count, int64_t out, int64_t in)
{
	const struct tn_quant *quant = &writer->model->quant;
	emit_part(writer, "F8_E4M3", module, "weight", count, out, in);
	if (quant->block_rows > 0)
		emit_part(writer, "F32", module, "weight_scale_inv", count, divide_up(out, quant->block_rows),
		          divide_up(in, quant->block_columns));
	else if (strcmp(quant->name, "fbgemm_fp8") == 0)
		emit_part(writer, "F32", module, "weight_scale", count, out, 1);
	else
		emit_part(writer, "F32", module, "weight_scale", count, 1, 0);
}

static void
emit_gptq(struct writer *writer, const char *module, int64_t count, int64_t out, int64_t in)
{
	const struct tn_quant *quant = &writer->model->quant;
	int64_t packed = 32 / quant->bits, groups = divide_up(in, quant->group > 0 ? quant->group : in);
	bool awq = quant->kind == TN_QUANT_AWQ;
	emit_part(writer, "I32", module, "qweight", count, awq ? in : in / packed, awq ? out / packed : out);
	emit_part(writer, "I32", module, "qzeros", count, groups, out / packed);
	emit_part(writer, "F16", module, "scales", count, groups, out);
	if (!awq)
		emit_part(writer, "I32", module, "g_idx", count, in, 0);
}

static void
emit_nf4(struct writer *writer, const char *module, int64_t count, int64_t out, int64_t in)
{
	int64_t blocks = divide_up(out * in, 64);
	emit_part(writer, "U8", module, "weight", count, divide_up(out * in, 2), 1);
	if (writer->model->quant.double_scales) {
		emit_part(writer, "U8", module, "weight.absmax", count, blocks, 0);
		emit_part(writer, "F32", module, "weight.nested_absmax", count, divide_up(blocks, 256), 0);
		emit_part(writer, "F32", module, "weight.nested_quant_map", count, 256, 0);
	} else {
		emit_part(writer, "F32", module, "weight.absmax", count, blocks, 0);
	}
	emit_part(writer, "F32", module, "weight.quant_map", count, 16, 0);
}

static void
emit_quantised(struct writer *writer, const char *module, int64_t count, int64_t out, int64_t in)
{
	const struct tn_quant *quant = &writer->model->quant;
	switch (quant->kind) {
	case TN_QUANT_FP8:
		emit_fp8(writer, module, count, out, in);
		break;
	case TN_QUANT_GPTQ:
	case TN_QUANT_AWQ:
		emit_gptq(writer, module, count, out, in);
		break;
	case TN_QUANT_NF4:
		emit_nf4(writer, module, count, out, in);
		break;
	case TN_QUANT_INT8:
		emit_part(writer, "I8", module, "weight", count, out, in);
		emit_part(writer, "F32", module, "weight_scale", count, out, 1);
		break;
	case TN_QUANT_PACKED:
		emit_part(writer, "I32", module, "weight_packed", count, out, divide_up(in * quant->bits, 32));
		emit_part(writer, "BF16", module, "weight_scale", count, out, divide_up(in, quant->group));
		break;
	default: /* NVFP4 */
		emit_part(writer, "U8", module, "weight", count, out, in / 2);
		emit_part(writer, "F8_E4M3", module, "weight_scale", count, out, in / 16);
		emit_part(writer, "F32", module, "weight_scale_2", count, 1, 0);
		break;
	}
}

/* `count` linear layers of the same sizes. */
static void
linear(struct writer *writer, const char *module, int64_t count, int64_t out, int64_t in, bool bias)
{
	char whole[192];
	snprintf(whole, sizeof(whole), "%s%s", writer->prefix, module);
	if (writer->model->quant.kind != TN_QUANT_MXFP4 && tn__is_quantised(&writer->model->quant, whole))
		emit_quantised(writer, module, count, out, in);
	else
		emit_part(writer, "BF16", module, "weight", count, out, in);
	if (bias)
		emit_part(writer, "BF16", module, "bias", count, out, 0);
}

static void
norm(struct writer *writer, const char *module, int64_t size, bool bias)
{
	emit_part(writer, "BF16", module, "weight", 1, size, 0);
	if (bias)
		emit_part(writer, "BF16", module, "bias", 1, size, 0);
}

/* ---- attention ---- */

static void
latent_attention(struct writer *writer)
{
	const struct tn_served_model *model = writer->model;
	int64_t width = model->heads * (model->latent_nope + model->latent_rope);
	if (model->query_latent > 0) {
		linear(writer, "self_attn.q_a_proj", 1, model->query_latent, model->hidden, writer->attention_bias);
		norm(writer, "self_attn.q_a_layernorm", model->query_latent, false);
		linear(writer, "self_attn.q_b_proj", 1, width, model->query_latent, false);
	} else {
		linear(writer, "self_attn.q_proj", 1, width, model->hidden, false);
	}
	linear(writer, "self_attn.kv_a_proj_with_mqa", 1, model->latent + model->latent_rope, model->hidden,
	       writer->attention_bias);
	norm(writer, "self_attn.kv_a_layernorm", model->latent, false);
	linear(writer, "self_attn.kv_b_proj", 1, model->heads * (model->latent_nope + model->latent_value), model->latent,
	       false);
	linear(writer, "self_attn.o_proj", 1, model->hidden, model->heads * model->latent_value, writer->attention_bias);
}

static void
plain_attention(struct writer *writer)
{
	const struct tn_served_model *model = writer->model;
	int64_t queries = model->heads * model->head_size, keys = model->kv_heads * model->head_size;
	bool in_bias = writer->attention_bias || (writer->flags & TN_ARCH_QKV_BIAS);
	linear(writer, "self_attn.q_proj", 1, writer->flags & TN_ARCH_GATED_QUERY ? 2 * queries : queries, model->hidden,
	       in_bias);
	linear(writer, "self_attn.k_proj", 1, keys, model->hidden, in_bias);
	linear(writer, "self_attn.v_proj", 1, keys, model->hidden, in_bias);
	linear(writer, "self_attn.o_proj", 1, model->hidden, queries, writer->attention_bias);
	if (writer->flags & (TN_ARCH_QK_NORM | TN_ARCH_WIDE_QK_NORM)) {
		bool wide = writer->flags & TN_ARCH_WIDE_QK_NORM;
		norm(writer, "self_attn.q_norm", wide ? queries : model->head_size, false);
		norm(writer, "self_attn.k_norm", wide ? keys : model->head_size, false);
	}
	if (writer->flags & TN_ARCH_GPT_OSS)
		emit(writer, "BF16", "self_attn.sinks", 1, 1, model->heads);
}

/* ---- states ---- */

static void
mamba2(struct writer *writer, const char *name)
{
	const struct tn_state *state = &writer->model->state;
	int64_t channels = state->inner + 2 * state->groups * state->size;
	char module[64];
	bool bias = tn__json_read_truth(writer->model->text, "use_bias") ||
	            tn__json_read_truth(writer->model->text, "mamba_proj_bias");
	const json_t *taps = json_object_get(writer->model->text, "use_conv_bias");
	if (taps == NULL)
		taps = json_object_get(writer->model->text, "mamba_conv_bias");
	snprintf(module, sizeof(module), "%s.in_proj", name);
	linear(writer, module, 1, state->inner + channels + state->heads, writer->model->hidden, bias);
	snprintf(module, sizeof(module), "%s.conv1d.weight", name);
	emit(writer, "BF16", module, 1, 3, channels, INT64_C(1), state->kernel);
	snprintf(module, sizeof(module), "%s.conv1d.bias", name);
	if (taps == NULL || json_is_true(taps))
		emit(writer, "BF16", module, 1, 1, channels);
	static const char *const vectors[] = { "A_log", "D", "dt_bias" };
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		snprintf(module, sizeof(module), "%s.%s", name, vectors[i]);
		emit(writer, "BF16", module, 1, 1, state->heads);
	}
	snprintf(module, sizeof(module), "%s.norm", name);
	norm(writer, module, state->inner, false);
	snprintf(module, sizeof(module), "%s.out_proj", name);
	linear(writer, module, 1, writer->model->hidden, state->inner, bias);
}

static void
mamba(struct writer *writer, const char *name)
{
	const struct tn_served_model *model = writer->model;
	const struct tn_state *state = &model->state;
	static const char *const ranks[] = { "time_step_rank", "mamba_dt_rank", NULL };
	int64_t rank = tn__config_number(model->text, ranks);
	char module[64];
	if (rank <= 0)
		rank = divide_up(model->hidden, 16);
	snprintf(module, sizeof(module), "%s.in_proj", name);
	linear(writer, module, 1, 2 * state->inner, model->hidden, tn__json_read_truth(model->text, "use_bias"));
	snprintf(module, sizeof(module), "%s.conv1d.weight", name);
	emit(writer, "BF16", module, 1, 3, state->inner, INT64_C(1), state->kernel);
	snprintf(module, sizeof(module), "%s.conv1d.bias", name);
	emit(writer, "BF16", module, 1, 1, state->inner);
	snprintf(module, sizeof(module), "%s.x_proj", name);
	linear(writer, module, 1, rank + 2 * state->size, state->inner, false);
	snprintf(module, sizeof(module), "%s.dt_proj", name);
	linear(writer, module, 1, state->inner, rank, true);
	snprintf(module, sizeof(module), "%s.A_log", name);
	emit(writer, "BF16", module, 1, 2, state->inner, state->size);
	snprintf(module, sizeof(module), "%s.D", name);
	emit(writer, "BF16", module, 1, 1, state->inner);
	snprintf(module, sizeof(module), "%s.out_proj", name);
	linear(writer, module, 1, model->hidden, state->inner, tn__json_read_truth(model->text, "use_bias"));
	if (writer->flags & TN_ARCH_JAMBA) {
		norm(writer, "mamba.dt_layernorm", rank, false);
		norm(writer, "mamba.b_layernorm", state->size, false);
		norm(writer, "mamba.c_layernorm", state->size, false);
	}
}

static void
delta_net(struct writer *writer)
{
	const struct tn_served_model *model = writer->model;
	const struct tn_state *state = &model->state;
	int64_t keys = state->key_heads * state->key_size, values = state->value_heads * state->value_size;
	if (writer->flags & TN_ARCH_SPLIT_DELTA) {
		linear(writer, "linear_attn.in_proj_qkv", 1, 2 * keys + values, model->hidden, false);
		linear(writer, "linear_attn.in_proj_z", 1, values, model->hidden, false);
		linear(writer, "linear_attn.in_proj_b", 1, state->value_heads, model->hidden, false);
		linear(writer, "linear_attn.in_proj_a", 1, state->value_heads, model->hidden, false);
	} else {
		linear(writer, "linear_attn.in_proj_qkvz", 1, 2 * keys + 2 * values, model->hidden, false);
		linear(writer, "linear_attn.in_proj_ba", 1, 2 * state->value_heads, model->hidden, false);
	}
	emit(writer, "BF16", "linear_attn.conv1d.weight", 1, 3, 2 * keys + values, INT64_C(1), state->kernel);
	emit(writer, "BF16", "linear_attn.A_log", 1, 1, state->value_heads);
	emit(writer, "BF16", "linear_attn.dt_bias", 1, 1, state->value_heads);
	norm(writer, "linear_attn.norm", state->value_size, false);
	linear(writer, "linear_attn.out_proj", 1, model->hidden, values, false);
}

static void
recurrent(struct writer *writer)
{
	const char *name = writer->flags & (TN_ARCH_NEMOTRON | TN_ARCH_PURE_STATE) ? "mixer" : "mamba";
	switch (writer->model->state.kind) {
	case TN_STATE_MAMBA:
		mamba(writer, name);
		break;
	case TN_STATE_MAMBA2:
		mamba2(writer, name);
		break;
	default:
		delta_net(writer);
		break;
	}
}

/* ---- feed-forward ---- */

/* Three matrices; names as the model has them. */
static void
gated(struct writer *writer, const char *name, int64_t count, int64_t width)
{
	static const char *const parts[] = { "gate_proj", "up_proj", "down_proj" }, *const mixtral[] = { "w1", "w3", "w2" };
	const char *const *names = writer->flags & TN_ARCH_MIXTRAL ? mixtral : parts;
	char module[64];
	for (int i = 0; i < 3; i++) {
		snprintf(module, sizeof(module), "%s.%s", name, names[i]);
		linear(writer, module, count, i < 2 ? width : writer->model->hidden, i < 2 ? writer->model->hidden : width,
		       writer->feed_forward_bias);
	}
}

/* gpt-oss: MXFP4 blocks of 32 with a scale of one byte; biases in 16 bits. */
static void
gpt_oss_experts(struct writer *writer)
{
	const struct tn_served_model *model = writer->model;
	int64_t width = model->expert_intermediate, hidden = model->hidden, experts = model->experts;
	linear(writer, "mlp.router", 1, experts, hidden, true);
	if (model->quant.kind == TN_QUANT_MXFP4) {
		emit(writer, "U8", "mlp.experts.gate_up_proj_blocks", 1, 4, experts, 2 * width, hidden / 32, INT64_C(16));
		emit(writer, "U8", "mlp.experts.gate_up_proj_scales", 1, 3, experts, 2 * width, hidden / 32);
		emit(writer, "U8", "mlp.experts.down_proj_blocks", 1, 4, experts, hidden, width / 32, INT64_C(16));
		emit(writer, "U8", "mlp.experts.down_proj_scales", 1, 3, experts, hidden, width / 32);
	} else {
		emit(writer, "BF16", "mlp.experts.gate_up_proj", 1, 3, experts, hidden, 2 * width);
		emit(writer, "BF16", "mlp.experts.down_proj", 1, 3, experts, width, hidden);
	}
	emit(writer, "BF16", "mlp.experts.gate_up_proj_bias", 1, 2, experts, 2 * width);
	emit(writer, "BF16", "mlp.experts.down_proj_bias", 1, 2, experts, hidden);
}

static void
router(struct writer *writer, const char *name)
{
	char module[64];
	snprintf(module, sizeof(module), "%s.weight", name);
	emit(writer, "BF16", module, 1, 2, writer->model->experts, writer->model->hidden);
}

static void
experts(struct writer *writer)
{
	const struct tn_served_model *model = writer->model;
	bool mixtral = writer->flags & TN_ARCH_MIXTRAL;
	if (writer->flags & TN_ARCH_GPT_OSS) {
		gpt_oss_experts(writer);
		return;
	}
	if (writer->flags & TN_ARCH_JAMBA) {
		router(writer, "feed_forward.router");
		gated(writer, "feed_forward.experts.0", model->experts, model->expert_intermediate);
		return;
	}
	router(writer, mixtral ? "block_sparse_moe.gate" : "mlp.gate");
	gated(writer, mixtral ? "block_sparse_moe.experts.0" : "mlp.experts.0", model->experts, model->expert_intermediate);
	if (writer->flags & TN_ARCH_SCORE_BIAS)
		emit(writer, "F32", "mlp.gate.e_score_correction_bias", 1, 1, model->experts);
	if (model->shared_intermediate > 0 && (writer->flags & (TN_ARCH_SHARED_GATE | TN_ARCH_DEEPSEEK)))
		gated(writer, writer->flags & TN_ARCH_SHARED_GATE ? "mlp.shared_expert" : "mlp.shared_experts", 1,
		      model->shared_intermediate);
	if (writer->flags & TN_ARCH_SHARED_GATE)
		emit(writer, "BF16", "mlp.shared_expert_gate.weight", 1, 2, INT64_C(1), model->hidden);
}

static void
feed_forward(struct writer *writer, const struct tn_model_layer *layer)
{
	const struct tn_served_model *model = writer->model;
	if (layer->experts) {
		experts(writer);
	} else if (writer->flags & TN_ARCH_NEMOTRON) {
		linear(writer, "mixer.up_proj", 1, model->intermediate, model->hidden, writer->feed_forward_bias);
		linear(writer, "mixer.down_proj", 1, model->hidden, model->intermediate, writer->feed_forward_bias);
	} else if (writer->flags & TN_ARCH_GRANITE_HYBRID) {
		int64_t width = model->shared_intermediate > 0 ? model->shared_intermediate : model->intermediate;
		linear(writer, "shared_mlp.input_linear", 1, 2 * width, model->hidden, false);
		linear(writer, "shared_mlp.output_linear", 1, model->hidden, width, false);
	} else {
		gated(writer, writer->flags & TN_ARCH_JAMBA ? "feed_forward" : "mlp", 1, model->intermediate);
	}
}

/* ---- whole models ---- */

static void
norms(struct writer *writer)
{
	static const char *const two[] = { "input_layernorm", "post_attention_layernorm", NULL }, *const one[] = { "norm",
		                                                                                                       NULL };
	static const char *const four[] = { "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
		                                "post_feedforward_layernorm", NULL };
	const char *const *names = writer->flags & (TN_ARCH_NEMOTRON | TN_ARCH_PURE_STATE) ? one
	                           : writer->flags & TN_ARCH_FOUR_NORMS                    ? four
	                                                                                   : two;
	for (; *names != NULL; names++)
		norm(writer, *names, writer->model->hidden, false);
}

static void
decoder_layer(struct writer *writer, int32_t index)
{
	const struct tn_model_layer *layer = &writer->model->layers[index];
	snprintf(writer->prefix, sizeof(writer->prefix), "%s.layers.%d.",
	         writer->flags & (TN_ARCH_NEMOTRON | TN_ARCH_PURE_STATE) ? "backbone" : "model", index);
	norms(writer);
	if (layer->state)
		recurrent(writer);
	if (layer->cache == TN_CACHE_LATENT)
		latent_attention(writer);
	else if (layer->cache != TN_CACHE_NONE)
		plain_attention(writer);
	if (layer->feed_forward)
		feed_forward(writer, layer);
}

static void
gpt_layer(struct writer *writer, int32_t index)
{
	const struct tn_served_model *model = writer->model;
	int64_t keys = model->kv_heads * model->head_size;
	snprintf(writer->prefix, sizeof(writer->prefix), "transformer.h.%d.", index);
	norm(writer, "ln_1", model->hidden, true);
	norm(writer, "ln_2", model->hidden, true);
	linear(writer, "attn.c_attn", 1, model->hidden + 2 * keys, model->hidden, true);
	linear(writer, "attn.c_proj", 1, model->hidden, model->hidden, true);
	linear(writer, "mlp.c_fc", 1, model->intermediate, model->hidden, true);
	linear(writer, "mlp.c_proj", 1, model->hidden, model->intermediate, true);
}

static void
falcon_layer(struct writer *writer, int32_t index)
{
	const struct tn_served_model *model = writer->model;
	bool bias = tn__json_read_truth(model->text, "bias"),
		 two = tn__json_read_truth(model->text, "new_decoder_architecture");
	snprintf(writer->prefix, sizeof(writer->prefix), "transformer.h.%d.", index);
	if (two) {
		norm(writer, "ln_attn", model->hidden, true);
		norm(writer, "ln_mlp", model->hidden, true);
	} else {
		norm(writer, "input_layernorm", model->hidden, true);
		if (!json_is_true(json_object_get(model->text, "parallel_attn")))
			norm(writer, "post_attention_layernorm", model->hidden, true);
	}
	linear(writer, "self_attention.query_key_value", 1, (model->heads + 2 * model->kv_heads) * model->head_size,
	       model->hidden, bias);
	linear(writer, "self_attention.dense", 1, model->hidden, model->heads * model->head_size, bias);
	linear(writer, "mlp.dense_h_to_4h", 1, model->intermediate, model->hidden, bias);
	linear(writer, "mlp.dense_4h_to_h", 1, model->hidden, model->intermediate, bias);
}

static void
ends(struct writer *writer)
{
	const struct tn_served_model *model = writer->model;
	bool gpt = writer->flags & TN_ARCH_GPT, falcon = writer->flags & TN_ARCH_FALCON;
	const char *words = gpt      ? "transformer.wte.weight"
	                    : falcon ? "transformer.word_embeddings.weight"
	                             : "model.embed_tokens.weight";
	writer->prefix[0] = '\0';
	emit(writer, "BF16", writer->flags & (TN_ARCH_NEMOTRON | TN_ARCH_PURE_STATE) ? "backbone.embeddings.weight" : words,
	     1, 2, model->vocabulary, model->hidden);
	if (gpt)
		emit(writer, "BF16", "transformer.wpe.weight", 1, 2, model->context, model->hidden);
	norm(writer, gpt || falcon ? "transformer.ln_f" : "model.final_norm", model->hidden, gpt || falcon);
	if (!model->tied)
		emit(writer, "BF16", "lm_head.weight", 1, 2, model->vocabulary, model->hidden);
}

static bool
has_experts(const struct tn_served_model *model)
{
	for (int32_t i = 0; i < model->layer_count; i++)
		if (model->layers[i].experts)
			return true;
	return false;
}

static const char *
why_not(const struct tn_served_model *model)
{
	if (model->known == NULL)
		return "the architecture is not known here: put the headers of its safetensors files into the folder";
	if (model->known->flags & TN_ARCH_VISION)
		return "the sizes of the model's vision part stand in the headers alone: put the safetensors files into the folder";
	if (model->known->flags & TN_ARCH_CACHE_ONLY)
		return "of this architecture only the cache is known: put the headers of its safetensors files into the folder";
	if (model->missing[0] != '\0')
		return "config.json lacks fields";
	if (model->quant.kind == TN_QUANT_UNKNOWN)
		return "the kind of quantisation is not known here: put the headers of the safetensors files into the folder";
	if ((model->known->flags & TN_ARCH_NEMOTRON) && has_experts(model))
		return "experts of this architecture stand in the headers alone: put the safetensors files into the folder";
	return NULL;
}

bool
tn__architecture_tensors(const struct tn_served_model *model, tn__tensor_visit *visit, void *context, char reason[192])
{
	const char *problem = why_not(model);
	if (problem != NULL) {
		snprintf(reason, 192, "%s", problem);
		return false;
	}
	struct writer writer = { .model = model, .visit = visit, .context = context, .flags = model->known->flags };
	writer.attention_bias = tn__json_read_truth(model->text, "attention_bias");
	writer.feed_forward_bias = tn__json_read_truth(model->text, "mlp_bias");
	for (int32_t i = 0; i < model->layer_count; i++)
		if (writer.flags & TN_ARCH_GPT)
			gpt_layer(&writer, i);
		else if (writer.flags & TN_ARCH_FALCON)
			falcon_layer(&writer, i);
		else
			decoder_layer(&writer, i);
	ends(&writer);
	return true;
}
