/* SPDX-License-Identifier: Apache-2.0
 *
 * How a tensor is divided among tensor-parallel ranks, by its name. Linear layers come in pairs, by columns and by rows (vLLM 0.26.0,
 * model_executor/layers/linear.py); KV heads are repeated where there are more ranks than heads (QKVParallelLinear); vocabularies are padded to
 * 64 rows (vocab_parallel_embedding.py); norms, routers and compressions of latent attention are whole on each rank.
 */
#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "serve/architecture.h"
#include "serve/tensors.h"

#define VOCABULARY_PADDING 64

int
tn__type_bits(const char *type)
{
	static const struct {
		const char *name;
		int bits;
	} types[] = { { "BF16", 16 },   { "F16", 16 }, { "F32", 32 }, { "F64", 64 }, { "F8_E4M3", 8 }, { "F8_E5M2", 8 },
		          { "F8_E8M0", 8 }, { "I8", 8 },   { "U8", 8 },   { "BOOL", 8 }, { "I16", 16 },    { "U16", 16 },
		          { "I32", 32 },    { "U32", 32 }, { "I64", 64 }, { "U64", 64 }, { "F4", 4 } };
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, type) == 0)
			return types[i].bits;
	return 0;
}

/* The parts of a name that decide: "model.layers.3.self_attn.q_proj.weight" has the module "q_proj" and the leaf "weight". */
struct parts {
	const char *name;
	char module[64], leaf[64];
	int64_t layer; /* -1: none */
};

static void
copy_part(char to[64], const char *begin, const char *end)
{
	size_t length = (size_t)(end - begin);
	if (length > 63)
		length = 63;
	memcpy(to, begin, length);
	to[length] = '\0';
}

static struct parts
take_apart(const char *name)
{
	struct parts parts = { .name = name, .layer = -1 };
	const char *leaf = strrchr(name, '.'), *module = NULL;
	for (const char *at = name; leaf != NULL && at < leaf; at++)
		if (*at == '.')
			module = at;
	const char *last = leaf != NULL ? leaf + 1 : name;
	copy_part(parts.leaf, last, last + strlen(last));
	if (leaf != NULL)
		copy_part(parts.module, module != NULL ? module + 1 : name, leaf);
	static const char *const before[] = { "layers.", "h.", "blocks." };
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]) && parts.layer < 0; i++) {
		const char *found = strstr(name, before[i]);
		if (found != NULL && (found == name || found[-1] == '.') && found[strlen(before[i])] >= '0' &&
		    found[strlen(before[i])] <= '9')
			parts.layer = strtol(found + strlen(before[i]), NULL, 10);
	}
	return parts;
}

static bool
is_one_of(const char *word, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

#define ONE_OF(word, ...) is_one_of(word, (const char *const[]){ __VA_ARGS__, NULL })

/* The scales and zeros of a quantised matrix are leaves of its module; "experts.gate_up_proj" has no leaf of its own. */
static bool
is_matrix_leaf(const char *leaf)
{
	return ONE_OF(leaf, "weight", "bias", "qweight", "qzeros", "scales", "g_idx", "weight_scale", "weight_scale_inv",
	              "weight_scale_2", "weight_packed", "weight_zero_point", "weight_shape", "weight_g_idx", "input_scale",
	              "k_scale", "v_scale", "weight_global_scale", "input_global_scale") ||
	       strchr(leaf, '.') != NULL;
}

static bool
is_norm(const char *module, const char *leaf)
{
	return strstr(module, "norm") != NULL || strncmp(module, "ln_", 3) == 0 || strstr(leaf, "norm") != NULL ||
	       ONE_OF(module, "ln_f", "ln1", "ln2");
}

static bool
is_whole(const struct parts *parts)
{
	return is_norm(parts->module, parts->leaf) ||
	       ONE_OF(parts->module, "q_a_proj", "kv_a_proj_with_mqa", "fused_qkv_a_proj", "gate", "router",
	              "shared_expert_gate", "wpe", "position_embeddings", "patch_embed") ||
	       ONE_OF(parts->leaf, "e_score_correction_bias", "expert_bias");
}

static bool
is_vocabulary(const struct parts *parts)
{
	return ONE_OF(parts->module, "embed_tokens", "lm_head", "wte", "word_embeddings", "embeddings", "embed_in",
	              "embed_out", "tok_embeddings") &&
	       strcmp(parts->leaf, "weight") == 0;
}

/* By rows: each rank has a part of the inputs, and the bias is whole. */
static bool
is_by_rows(const char *module)
{
	return ONE_OF(module, "o_proj", "out_proj", "down_proj", "c_proj", "fc2", "dense_4h_to_h", "w2", "wo", "x_proj",
	              "output_linear", "dense");
}

static bool
is_by_columns(const char *module)
{
	return ONE_OF(module, "q_proj", "q_b_proj", "kv_b_proj", "gate_proj", "up_proj", "gate_up_proj", "fc1", "c_fc",
	              "dense_h_to_4h", "w1", "w3", "input_linear", "in_proj", "dt_proj", "conv1d", "in_proj_qkvz",
	              "in_proj_ba", "in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "experts", "conv", "qkv",
	              "linear_fc1", "linear_fc2", "proj");
}

static bool
is_absent(const struct tn_served_model *model, const struct parts *parts)
{
	if (strncmp(parts->name, "mtp.", 4) == 0 || strstr(parts->name, ".mtp.") != NULL ||
	    strstr(parts->name, "inv_freq") != NULL)
		return true;
	if (parts->layer >= model->layer_count &&
	    strstr(parts->name, "vis") == NULL) /* layers of prediction heads stand behind the model's */
		return true;
	if (model->tied && strcmp(parts->module, "lm_head") == 0)
		return true;
	/* GPTQ's order of columns is dropped unless it says something (vLLM 0.26.0, gptq_marlin.py). */
	return (strcmp(parts->leaf, "g_idx") == 0 && !model->quant.ordered) ||
	       ONE_OF(parts->leaf, "k_scale", "v_scale", "weight_shape");
}

static enum tn_split
split_of(const struct tn_served_model *model, const struct parts *parts, const struct tn_tensor *tensor)
{
	bool matrix = is_matrix_leaf(parts->leaf);
	if (is_absent(model, parts))
		return TN_SPLIT_ABSENT;
	if (is_whole(parts))
		return TN_SPLIT_WHOLE;
	if (is_vocabulary(parts))
		return TN_SPLIT_VOCABULARY;
	if (matrix && ONE_OF(parts->module, "k_proj", "v_proj"))
		return TN_SPLIT_KEY_VALUE;
	if (matrix && ONE_OF(parts->module, "qkv_proj", "query_key_value", "c_attn", "Wqkv", "W_pack"))
		return TN_SPLIT_FUSED;
	if (matrix && is_by_rows(parts->module))
		return tensor->dimensions < 2 ? TN_SPLIT_WHOLE : TN_SPLIT_EVENLY;
	if ((matrix && is_by_columns(parts->module)) || ONE_OF(parts->leaf, "A_log", "D", "dt_bias", "sinks"))
		return TN_SPLIT_EVENLY;
	if (strcmp(parts->module, "experts") == 0) /* experts in one tensor; their last biases are whole */
		return strcmp(parts->leaf, "down_proj_bias") == 0 ? TN_SPLIT_WHOLE : TN_SPLIT_EVENLY;
	return tensor->dimensions < 2 ? TN_SPLIT_WHOLE : TN_SPLIT_UNKNOWN;
}

/* Numbers that an engine keeps as they are, although the model has another type. */
static bool
keeps_type(const struct parts *parts)
{
	return strstr(parts->leaf, "scale") != NULL || strstr(parts->leaf, "absmax") != NULL ||
	       strstr(parts->leaf, "quant_") != NULL || ONE_OF(parts->leaf, "e_score_correction_bias", "qzeros");
}

/* Bits of a number in the engine: 16 or 32 bits become the model's type; the decay of a state is kept in 32 (mamba_mixer2.py). */
static int
kept_bits(const struct tn_served_model *model, const struct parts *parts, const char *type)
{
	int bits = tn__type_bits(type);
	bool floating = type[0] == 'F' || type[0] == 'B';
	if (strcmp(parts->leaf, "A_log") == 0)
		return 32;
	return floating && bits >= 16 && !keeps_type(parts) ? model->bytes * 8 : bits;
}

struct tn_tensor_row
tn__tensor_row(const struct tn_served_model *model, const struct tn_tensor *tensor)
{
	struct parts parts = take_apart(tensor->name);
	struct tn_tensor_row row = { .split = split_of(model, &parts, tensor) };
	int64_t numbers = tensor->count;
	for (int i = 0; i < tensor->dimensions; i++)
		numbers *= tensor->shape[i];
	row.bytes = numbers * kept_bits(model, &parts, tensor->type) / 8;
	row.rows = tensor->dimensions > 0 ? tensor->shape[0] : 1;
	return row;
}

static int64_t
share(int64_t bytes, int64_t parts)
{
	return (bytes + parts - 1) / parts;
}

/* Queries evenly, keys and values no finer than a head. */
static int64_t
fused_share(const struct tn_served_model *model, int64_t bytes, int ranks)
{
	int64_t heads = model->heads > 0 ? model->heads : 1, pairs = model->kv_heads > 0 ? model->kv_heads : heads;
	int64_t own = pairs > ranks ? pairs / ranks : 1;
	return bytes / (heads + 2 * pairs) * (share(heads, ranks) + 2 * own);
}

static int64_t
row_share(const struct tn_served_model *model, const struct tn_tensor_row *row, int ranks)
{
	int64_t padded;
	switch (row->split) {
	case TN_SPLIT_WHOLE:
		return row->bytes;
	case TN_SPLIT_KEY_VALUE:
		return share(row->bytes, model->kv_heads > 0 && model->kv_heads < ranks ? model->kv_heads : ranks);
	case TN_SPLIT_FUSED:
		return ranks == 1 ? row->bytes : fused_share(model, row->bytes, ranks);
	case TN_SPLIT_VOCABULARY:
		padded = (row->rows + VOCABULARY_PADDING - 1) / VOCABULARY_PADDING * VOCABULARY_PADDING;
		return row->rows > 0 ? share(row->bytes / row->rows * padded, ranks) : 0;
	default:
		return share(row->bytes, ranks);
	}
}

int64_t
tn__weights_of_rank(const struct tn_weights_list *list, const struct tn_served_model *model, int ranks,
                    int64_t *highest)
{
	int64_t bytes = 0, unknown = 0;
	for (size_t i = 0; i < list->count; i++) {
		int64_t own = row_share(model, &list->rows[i], ranks);
		bytes += own;
		if (list->rows[i].split == TN_SPLIT_UNKNOWN)
			unknown += list->rows[i].bytes - own;
	}
	*highest = bytes + unknown;
	return bytes;
}
