/* SPDX-License-Identifier: Apache-2.0
 *
 * config.json of a checkpoint. Names of fields are those of transformers' configurations; where several models name one thing
 * differently, the order is vLLM's (0.26.0, transformers_utils/model_arch_config_convertor.py).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/figure.h"
#include "base/json.h"
#include "base/plain.h"
#include "serve/architecture.h"
#include "serve/served_model.h"

#define LARGEST_CONFIG (4u << 20)

#define NUMBER(object, ...) tn__config_number(object, (const char *const[]){ __VA_ARGS__, NULL })

/* A copy, cut to its room, that a terminal can show. */
static void
copy_text(char *to, size_t room, const char *from)
{
	snprintf(to, room, "%s", from != NULL ? from : "");
	tn__make_plain(to, '?');
}

/* The part that describes the language model; the whole where there is none. */
static const json_t *
find_text_part(const json_t *root)
{
	static const char *const names[] = { "text_config", "llm_config", "language_config", "thinker_config" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *part = json_object_get(root, names[i]);
		if (json_is_object(part))
			return json_is_object(json_object_get(part, "text_config")) ? json_object_get(part, "text_config") : part;
	}
	return root;
}

static bool
is_encoder_decoder(const struct tn_served_model *model)
{
	static const char *const kinds[] = { "t5",      "mt5",     "umt5",   "bart",    "mbart",
		                                 "pegasus", "whisper", "marian", "m2m_100", "led" };
	if (tn__json_read_truth(model->document, "is_encoder_decoder"))
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(model->type, kinds[i]) == 0)
			return true;
	return false;
}

static int32_t
bytes_of_type(const char *name)
{
	static const struct {
		const char *name;
		int32_t bytes;
	} types[] = { { "bfloat16", 2 }, { "float16", 2 }, { "half", 2 }, { "float32", 4 }, { "float", 4 } };
	for (size_t i = 0; name != NULL && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(name, types[i].name) == 0)
			return types[i].bytes;
	return 0;
}

/* How an engine keeps a number: float32 checkpoints are cast to bfloat16 (vLLM 0.26.0, config/model.py, _get_and_verify_dtype). */
static void
read_type(struct tn_served_model *model)
{
	const json_t *const parts[] = { model->document, model->text };
	const char *name = NULL;
	for (size_t i = 0; i < 2 && name == NULL; i++) {
		name = tn__json_borrow_text(parts[i], "dtype");
		if (name == NULL)
			name = tn__json_borrow_text(parts[i], "torch_dtype");
	}
	model->bytes = 2;
	model->bytes_known = bytes_of_type(name) > 0;
	if (bytes_of_type(name) == 4)
		tn__model_note(model, "the checkpoint is float32; engines load it as bfloat16 unless --dtype says otherwise");
}

/* The positions that the model was made for, as the engine derives them. */
static int64_t
read_context(const json_t *text)
{
	static const char *const names[] = { "max_position_embeddings", "n_positions",    "max_seq_len", "seq_length",
		                                 "max_sequence_length",     "max_seq_length", "seq_len",     "n_ctx" };
	int64_t context = TN_NO_FIGURE;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t value = tn__config_field(text, names[i]);
		if (value > 0 && (context == TN_NO_FIGURE || value < context))
			context = value;
	}
	int64_t longest = tn__config_field(text, "model_max_length");
	return longest > 0 ? longest : context;
}

/* YaRN and its like stretch the positions unless the figure holds them already (vLLM 0.26.0, config/model.py,
 * _get_and_verify_max_len). */
static void
stretch_context(struct tn_served_model *model)
{
	static const char *const settled[] = { "su", "longrope", "llama3", "mrope", "default" };
	const json_t *scaling = json_object_get(model->text, "rope_scaling");
	if (!json_is_object(scaling))
		scaling = json_object_get(model->text, "rope_parameters");
	const char *kind = tn__json_borrow_text(scaling, "rope_type");
	if (kind == NULL)
		kind = tn__json_borrow_text(scaling, "type");
	double factor = tn__json_read_number(scaling, "factor");
	for (size_t i = 0; kind != NULL && i < sizeof(settled) / sizeof(settled[0]); i++)
		if (strcmp(kind, settled[i]) == 0)
			return;
	if (kind == NULL || strncmp(model->type, "gemma3", 6) == 0 || factor <= 1.0 || model->context <= 0)
		return;
	int64_t original = tn__config_field(scaling, "original_max_position_embeddings");
	if (strcmp(kind, "yarn") != 0 || original <= 0)
		original = model->context;
	double stretched = (double)original * factor;
	if (stretched < (double)TN_MODEL_LARGEST)
		model->context = (int64_t)stretched;
}

static int64_t
read_kv_heads(const struct tn_served_model *model)
{
	const json_t *text = model->text, *attention = json_object_get(text, "attn_config");
	if (strcmp(model->type, "falcon") == 0 && !tn__json_read_truth(text, "new_decoder_architecture"))
		return tn__json_read_truth(text, "multi_query") ? 1 : model->heads;
	if (strcmp(model->type, "gpt_bigcode") == 0 && tn__json_read_truth(text, "multi_query"))
		return 1;
	if (tn__config_field(attention, "kv_n_heads") > 0) /* DBRX, MPT */
		return tn__config_field(attention, "kv_n_heads");
	int64_t heads = NUMBER(text, "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num",
	                       "num_attention_groups");
	return heads > 0 ? heads : model->heads;
}

static bool
is_latent(const struct tn_served_model *model)
{
	static const char *const kinds[] = { "deepseek_v2",     "deepseek_v3",   "deepseek_v32", "glm_moe_dsa",
		                                 "glm4_moe_lite",   "kimi_k2",       "kimi_linear",  "longcat_flash",
		                                 "pangu_ultra_moe", "bailing_hybrid" };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(model->type, kinds[i]) == 0)
			return tn__config_field(model->text, "kv_lora_rank") > 0;
	return false;
}

static void
read_latent(struct tn_served_model *model)
{
	const json_t *text = model->text;
	if (!is_latent(model)) {
		if (tn__config_field(text, "kv_lora_rank") > 0 && model->known == NULL)
			tn__model_lacks(model, "a rule for kv_lora_rank in this model_type");
		return;
	}
	model->latent = tn__config_field(text, "kv_lora_rank");
	model->latent_rope = tn__config_field(text, "qk_rope_head_dim");
	model->latent_nope = tn__config_field(text, "qk_nope_head_dim");
	model->latent_value = tn__config_field(text, "v_head_dim");
	model->query_latent = tn__config_field(text, "q_lora_rank");
	if (model->latent_rope < 0 || model->latent_nope < 0 || model->latent_value < 0)
		tn__model_lacks(model, "qk_rope_head_dim, qk_nope_head_dim, v_head_dim");
	if (json_object_get(text, "index_topk") != NULL)
		tn__model_lacks(model, "a rule for the sparse attention's index (index_topk)");
}

static void
read_heads(struct tn_served_model *model)
{
	const json_t *text = model->text;
	model->heads = NUMBER(text, "num_attention_heads", "n_head", "n_heads");
	model->kv_heads = read_kv_heads(model);
	model->head_size = NUMBER(text, "head_dim", "hidden_size_per_head", "attention_head_dim");
	if (model->head_size <= 0)
		model->head_size = model->heads > 0 && model->hidden > 0 ? model->hidden / model->heads : TN_NO_FIGURE;
	double share = tn__json_read_number(text, "partial_rotary_factor");
	model->rotary = model->head_size > 0 && share > 0 && share < 1 ? (int64_t)((double)model->head_size * share)
	                                                               : model->head_size;
}

static void
read_feed_forward(struct tn_served_model *model)
{
	const json_t *text = model->text;
	model->intermediate = NUMBER(text, "ffn_hidden_size", "n_inner", "intermediate_size", "ffn_dim");
	if (model->intermediate <= 0 && model->hidden > 0)
		model->intermediate = 4 * model->hidden;
	model->experts = NUMBER(text, "num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts");
	model->experts_used = NUMBER(text, "num_experts_per_tok", "moe_top_k", "num_experts_per_token");
	model->expert_intermediate = NUMBER(text, "moe_intermediate_size");
	if (model->expert_intermediate <= 0)
		model->expert_intermediate = model->intermediate;
	model->shared_intermediate = NUMBER(text, "shared_expert_intermediate_size", "shared_intermediate_size",
	                                    "moe_shared_expert_intermediate_size");
	int64_t shared = tn__config_field(text, "n_shared_experts");
	if (model->shared_intermediate <= 0)
		model->shared_intermediate = shared > 0 && shared < 1024 ? shared * model->expert_intermediate : 0;
}

static void
read_sizes(struct tn_served_model *model)
{
	const json_t *text = model->text, *tied = json_object_get(text, "tie_word_embeddings");
	model->hidden = NUMBER(text, "hidden_size", "n_embd", "d_model");
	model->vocabulary = NUMBER(text, "vocab_size", "padded_vocab_size");
	model->context = read_context(text);
	stretch_context(model);
	read_heads(model);
	read_latent(model);
	read_feed_forward(model);
	if (tied == NULL)
		tied = json_object_get(model->document, "tie_word_embeddings");
	/* Where the file says nothing, transformers' class decides: these are tied. */
	bool by_class = strncmp(model->type, "gemma", 5) == 0 || strncmp(model->type, "gpt", 3) == 0 ||
	                strncmp(model->type, "falcon", 6) == 0 || strcmp(model->type, "mamba") == 0;
	model->tied = json_is_true(tied) || (tied == NULL && by_class && strcmp(model->type, "gpt_oss") != 0);
	static const struct {
		const char *name;
		size_t offset;
	} needed[] = { { "hidden_size", offsetof(struct tn_served_model, hidden) },
		           { "vocab_size", offsetof(struct tn_served_model, vocabulary) },
		           { "max_position_embeddings", offsetof(struct tn_served_model, context) } };
	bool pure = model->known != NULL && (model->known->flags & TN_ARCH_PURE_STATE) != 0;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (*(int64_t *)((char *)model + needed[i].offset) <= 0 && !(pure && i == 2))
			tn__model_lacks(model, needed[i].name);
	if (!pure && model->heads <= 0)
		tn__model_lacks(model, "num_attention_heads");
	if (!pure && model->head_size <= 0)
		tn__model_lacks(model, "head_dim");
}

static tn_status
read_names(struct tn_served_model *model)
{
	const json_t *names = json_object_get(model->document, "architectures");
	const char *name = json_string_value(json_array_get(names, 0)),
			   *type = tn__json_borrow_text(model->text, "model_type");
	copy_text(model->architecture, sizeof(model->architecture), name);
	copy_text(model->type, sizeof(model->type),
	          type != NULL ? type : tn__json_borrow_text(model->document, "model_type"));
	TN_RETURN_IF(
		name == NULL && model->type[0] == '\0', TN_FORMAT,
		"config.json names neither architectures nor model_type: is it the configuration of a language model?");
	model->known = tn__architecture_find(model->architecture);
	model->multimodal = model->text != model->document;
	TN_RETURN_IF(is_encoder_decoder(model), TN_UNSUPPORTED,
	             "%s is an encoder-decoder model: its second cache has no rule here; vLLM's own start decides",
	             model->architecture[0] != '\0' ? model->architecture : model->type);
	return TN_OK;
}

/* Where no number is given, a list has one word a layer. */
static int64_t
read_layer_count(const json_t *text)
{
	int64_t layers = NUMBER(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers");
	const char *letters = tn__json_borrow_text(text, "hybrid_override_pattern");
	if (layers == TN_NO_FIGURE && letters != NULL)
		return (int64_t)strlen(letters);
	return layers != TN_NO_FIGURE ? layers : (int64_t)json_array_size(json_object_get(text, "layers_block_type"));
}

tn_status
tn__model_parse(const char *text, size_t length, struct tn_served_model *out)
{
	json_error_t error;
	memset(out, 0, sizeof(*out));
	out->document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	TN_RETURN_IF(out->document == NULL, TN_FORMAT, "config.json is no JSON: line %d: %s", error.line, error.text);
	TN_RETURN_IF(!json_is_object(out->document), TN_FORMAT, "config.json holds no object");
	out->text = find_text_part(out->document);
	TN_FORWARD_IF_ERROR(read_names(out));
	int64_t layers = read_layer_count(out->text);
	TN_RETURN_IF(layers <= 0 || layers > TN_MODEL_LAYERS, TN_FORMAT,
	             "config.json has no num_hidden_layers from 1 to %d", TN_MODEL_LAYERS);
	out->layer_count = (int32_t)layers;
	read_type(out);
	read_sizes(out);
	tn__model_quantisation(out);
	tn__model_kinds(out);
	if (out->known == NULL)
		tn__model_note(out,
		               "%s is not among the architectures that are known here; its cache is read from the fields alone",
		               out->architecture[0] != '\0' ? out->architecture : out->type);
	return TN_OK;
}

void
tn__model_free(struct tn_served_model *model)
{
	json_decref(model->document);
	model->document = NULL;
	model->text = NULL;
}

static tn_status
read_file(const char *path, char **text, size_t *length)
{
	FILE *file = fopen(path, "rb");
	TN_RETURN_IF(file == NULL && errno == ENOENT, TN_NOT_FOUND,
	             "no config.json in \"%.*s\": give the folder of a checkpoint in Hugging Face's format",
	             (int)(strlen(path) - strlen("/config.json")), path);
	TN_RETURN_IF(file == NULL, TN_IO, "cannot read \"%s\": %s", path, strerror(errno));
	*text = malloc(LARGEST_CONFIG + 1);
	*length = *text != NULL ? fread(*text, 1, LARGEST_CONFIG + 1, file) : 0;
	int failure = ferror(file) ? errno : 0;
	fclose(file);
	TN_RETURN_IF(*text == NULL, TN_NO_MEMORY, "out of host memory");
	TN_RETURN_IF(failure != 0, TN_IO, "cannot read \"%s\": %s", path, strerror(failure));
	TN_RETURN_IF(*length > LARGEST_CONFIG, TN_FORMAT, "\"%s\" is larger than 4 MiB: no configuration", path);
	return TN_OK;
}

tn_status
tn__model_read(const char *folder, struct tn_served_model *out)
{
	char path[PATH_MAX], *text = NULL;
	size_t length = 0, name = strlen(folder);
	struct stat status;
	memset(out, 0, sizeof(*out));
	if (name > 5 && strcmp(folder + name - 5, ".gguf") == 0)
		return tn__fail(TN_UNSUPPORTED,
		                "\"%s\" is a GGUF file: give the folder of the checkpoint that it was made from", folder);
	TN_RETURN_IF(
		stat(folder, &status) != 0, TN_NOT_FOUND,
		"no folder \"%s\": give the folder of a checkpoint (config.json and *.safetensors); nothing is downloaded",
		folder);
	TN_RETURN_IF(snprintf(path, sizeof(path), "%s/config.json", folder) >= (int)sizeof(path), TN_NOT_FOUND,
	             "\"%s\" is too long for a path", folder);
	tn_status result = read_file(path, &text, &length);
	if (result == TN_OK)
		result = tn__model_parse(text, length, out);
	free(text);
	return result;
}
