/* SPDX-License-Identifier: Apache-2.0
 *
 * What an inference engine caches and loads, against counts made by hand: bytes of cache a token, of windows and states a sequence, numbers
 * in the weights (as published with the models), blocks and lengths; then damaged files, each with words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/figure.h"
#include "serve/serve.h"
#include "tonnage/status.h"

#define GIB (INT64_C(1) << 30)

struct counted {
	const char *name, *config;
	int64_t token_bytes, window_bytes, state_bytes; /* with 16 bits a number, on one card */
	int64_t parameters;                             /* 0: not compared */
};

/* Figures of the published configurations; the sums beside them by hand. */
static const struct counted models[] = {
	{ "MHA: Llama-2-7B",
	  "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"torch_dtype\":\"float16\",\"hidden_size\":4096,\"intermediate_size\":11008,"
	  "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":32,\"vocab_size\":32000,\"max_position_embeddings\":4096}",
	  32 * 32 * 128 * 2 * 2, 0, 0, 6738415616 },
	{ "GQA: Llama-3.1-8B",
	  "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":14336,"
	  "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":128256,\"max_position_embeddings\":131072}",
	  32 * 8 * 128 * 2 * 2, 0, 0, 8030261248 },
	{ "MQA: Falcon-7B",
	  "{\"architectures\":[\"FalconForCausalLM\"],\"model_type\":\"falcon\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4544,\"num_hidden_layers\":32,"
	  "\"num_attention_heads\":71,\"multi_query\":true,\"parallel_attn\":true,\"new_decoder_architecture\":false,\"bias\":false,\"vocab_size\":65024,"
	  "\"max_position_embeddings\":2048}",
	  32 * 1 * 64 * 2 * 2, 0, 0, 6921720704 },
	{ "MLA: DeepSeek-V2-Lite",
	  "{\"architectures\":[\"DeepseekV2ForCausalLM\"],\"model_type\":\"deepseek_v2\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":2048,"
	  "\"intermediate_size\":10944,\"moe_intermediate_size\":1408,\"num_hidden_layers\":27,\"num_attention_heads\":16,\"num_key_value_heads\":16,"
	  "\"n_shared_experts\":2,\"n_routed_experts\":64,\"num_experts_per_tok\":6,\"kv_lora_rank\":512,\"q_lora_rank\":null,\"qk_rope_head_dim\":64,"
	  "\"qk_nope_head_dim\":128,\"v_head_dim\":128,\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"vocab_size\":102400,"
	  "\"max_position_embeddings\":163840}",
	  27 * (512 + 64) * 2, 0, 0, 15706484224 },
	{ "window in all layers: Mistral-7B-v0.1",
	  "{\"architectures\":[\"MistralForCausalLM\"],\"model_type\":\"mistral\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":14336,"
	  "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"vocab_size\":32000,\"max_position_embeddings\":32768,"
	  "\"sliding_window\":4096}",
	  0, INT64_C(32) * 4096 * 4096, 0, 7241732096 },
	{ "windows in every second layer: Gemma-2-9b",
	  "{\"architectures\":[\"Gemma2ForCausalLM\"],\"model_type\":\"gemma2\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":3584,\"intermediate_size\":14336,"
	  "\"num_hidden_layers\":42,\"num_attention_heads\":16,\"num_key_value_heads\":8,\"head_dim\":256,\"sliding_window\":4096,\"vocab_size\":256000,"
	  "\"max_position_embeddings\":8192}",
	  21 * 8 * 256 * 2 * 2, INT64_C(21) * 8 * 256 * 2 * 2 * 4096, 0, 9241705984 },
	{ "five windows to one: Gemma-3-1b",
	  "{\"architectures\":[\"Gemma3ForCausalLM\"],\"model_type\":\"gemma3_text\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":1152,"
	  "\"intermediate_size\":6912,\"num_hidden_layers\":26,\"num_attention_heads\":4,\"num_key_value_heads\":1,\"head_dim\":256,\"sliding_window\":512,"
	  "\"sliding_window_pattern\":6,\"vocab_size\":262144,\"max_position_embeddings\":32768}",
	  4 * 256 * 2 * 2, INT64_C(22) * 256 * 2 * 2 * 512, 0, 999885952 },
	{ "attention and Mamba: Jamba-v0.1",
	  "{\"architectures\":[\"JambaForCausalLM\"],\"model_type\":\"jamba\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":14336,"
	  "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"attn_layer_period\":8,\"attn_layer_offset\":4,"
	  "\"expert_layer_period\":2,\"expert_layer_offset\":1,\"num_experts\":16,\"num_experts_per_tok\":2,\"mamba_d_state\":16,\"mamba_d_conv\":4,"
	  "\"mamba_expand\":2,\"mamba_dt_rank\":256,\"vocab_size\":65536,\"max_position_embeddings\":262144}",
	  4 * 8 * 128 * 2 * 2, 0, 28 * (8192 * 3 * 2 + 8192 * 16 * 2), 51570323328 },
	{ "attention and gated delta net: Qwen3-Next-80B-A3B",
	  "{\"architectures\":[\"Qwen3NextForCausalLM\"],\"model_type\":\"qwen3_next\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":2048,"
	  "\"intermediate_size\":5120,\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512,\"num_experts\":512,\"num_experts_per_tok\":10,"
	  "\"num_hidden_layers\":48,\"num_attention_heads\":16,\"num_key_value_heads\":2,\"head_dim\":256,\"full_attention_interval\":4,"
	  "\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,\"linear_num_key_heads\":16,\"linear_num_value_heads\":32,"
	  "\"decoder_sparse_step\":1,\"mlp_only_layers\":[],\"vocab_size\":151936,\"max_position_embeddings\":262144}",
	  12 * 2 * 256 * 2 * 2, 0, 36 * ((2 * 2048 + 4096) * 3 * 2 + 32 * 128 * 128 * 2), 0 },
	{ "attention and Mamba-2, state in 32 bits: Nemotron-H-8B",
	  "{\"architectures\":[\"NemotronHForCausalLM\"],\"model_type\":\"nemotron_h\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,"
	  "\"intermediate_size\":21504,\"num_hidden_layers\":52,\"hybrid_override_pattern\":\"M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-\","
	  "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,\"mamba_num_heads\":128,\"mamba_head_dim\":64,\"ssm_state_size\":128,"
	  "\"n_groups\":8,\"conv_kernel\":4,\"vocab_size\":131072,\"max_position_embeddings\":8192}",
	  4 * 8 * 128 * 2 * 2, 0, 24 * ((8192 + 2 * 8 * 128) * 3 * 2 + 128 * 64 * 128 * 4), 0 },
	{ "states alone: Mamba-130m",
	  "{\"architectures\":[\"MambaForCausalLM\"],\"model_type\":\"mamba\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":768,\"intermediate_size\":1536,"
	  "\"num_hidden_layers\":24,\"state_size\":16,\"conv_kernel\":4,\"expand\":2,\"time_step_rank\":48,\"vocab_size\":50280}",
	  0, 0, 24 * (1536 * 3 * 2 + 1536 * 16 * 2), 129135360 },
	{ "experts: Mixtral-8x7B",
	  "{\"architectures\":[\"MixtralForCausalLM\"],\"model_type\":\"mixtral\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":4096,\"intermediate_size\":14336,"
	  "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_local_experts\":8,\"num_experts_per_tok\":2,"
	  "\"vocab_size\":32000,\"max_position_embeddings\":32768,\"sliding_window\":null}",
	  32 * 8 * 128 * 2 * 2, 0, 0, 46702792704 },
	{ "many small experts: Qwen3-30B-A3B",
	  "{\"architectures\":[\"Qwen3MoeForCausalLM\"],\"model_type\":\"qwen3_moe\",\"torch_dtype\":\"bfloat16\",\"hidden_size\":2048,"
	  "\"intermediate_size\":6144,\"moe_intermediate_size\":768,\"num_experts\":128,\"num_experts_per_tok\":8,\"num_hidden_layers\":48,"
	  "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"decoder_sparse_step\":1,\"mlp_only_layers\":[],\"vocab_size\":151936,"
	  "\"max_position_embeddings\":40960}",
	  48 * 4 * 128 * 2 * 2, 0, 0, 30532122624 },
};

/* A folder with these files (name, text, ..., NULL), which stays until the test ends. */
static char folder[] = "/tmp/tonnage-serve-XXXXXX";

static void
put(const char *name, const void *bytes, size_t length)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	fclose(file);
}

static void
take_away(const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
}

static struct tn_serving *
plan_of(const char *config, const struct tn_serve_request *request, tn_status *status)
{
	struct tn_serving *serving = calloc(1, sizeof(*serving));
	assert_non_null(serving);
	put("config.json", config, strlen(config));
	*status = tn__serve(folder, request, serving);
	return serving;
}

static void
drop(struct tn_serving *serving)
{
	tn__serving_free(serving);
	free(serving);
}

static void
counts_by_hand(void **state)
{
	const struct tn_serve_request request = { .gpus = 1, .max_model_len = 2048 };
	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		tn_status status;
		struct tn_serving *serving = plan_of(models[i].config, &request, &status);
		print_message("%s\n", models[i].name);
		assert_int_equal(status, TN_OK);
		assert_string_equal(serving->model.missing, "");
		assert_int_equal(serving->plan.layout.token_bytes, models[i].token_bytes);
		assert_int_equal(serving->plan.layout.window_bytes, models[i].window_bytes);
		assert_int_equal(serving->plan.layout.state_bytes, models[i].state_bytes);
		assert_int_equal(serving->weights.source, TN_WEIGHTS_ARCHITECTURE);
		if (models[i].parameters > 0)
			assert_int_equal(serving->weights.stored_bytes, 2 * models[i].parameters);
		drop(serving);
	}
}

/* A cache of 8 bits is half; KV heads are repeated where there are more ranks than heads. */
static void
ranks_and_bits(void **state)
{
	struct tn_serve_request request = { .gpus = 1, .max_model_len = 2048, .cache_type = TN_CACHE_TYPE_8 };
	tn_status status;
	(void)state;
	struct tn_serving *serving = plan_of(models[1].config, &request, &status);
	assert_int_equal(serving->plan.layout.token_bytes, 32 * 8 * 128 * 2);
	drop(serving);
	request = (struct tn_serve_request){ .gpus = 16, .max_model_len = 2048 };
	serving = plan_of(models[1].config, &request, &status);
	assert_int_equal(serving->plan.layout.token_bytes, 32 * 1 * 128 * 2 * 2);
	int64_t highest, own = tn__weights_of_rank(&serving->weights, &serving->model, 16, &highest);
	int64_t layer = 4096 * 4096 / 16 * 2 + 2 * 128 * 4096 + 3 * 4096 * 14336 / 16 + 2 * 4096;
	assert_int_equal(own, 2 * (32 * layer + 2 * 128256 * 4096 / 16 + 4096));
	assert_int_equal(highest, own);
	drop(serving);
	request.gpus = 3;
	serving = plan_of(models[1].config, &request, &status);
	assert_int_equal(serving->plan.verdict, TN_SERVE_FAILS);
	assert_int_equal(serving->plan.limit, TN_SERVE_LIMIT_DEGREE);
	drop(serving);
}

/* As vLLM 0.26.0 itself decided on the virtual card (bench/serve_plan/README.md): blocks, tokens of a block, blocks for one sequence. */
static void
layouts_of_the_engine(void **state)
{
	struct tn_serve_request request = { .gpus = 1,
		                                .max_model_len = 8192,
		                                .max_num_batched_tokens = 8192,
		                                .gpu = tn__gpu_find("h100"),
		                                .cache_bytes = 56 * GIB };
	tn_status status;
	(void)state;
	struct tn_serving *serving = plan_of(models[9].config, &request,
	                                     &status); /* 4 attention layers, 24 states: groups of 4 */
	assert_int_equal(serving->plan.layout.block_tokens, 1040);
	assert_int_equal(serving->plan.layout.block_bytes, 4 * 1040 * 4096);
	assert_int_equal(serving->plan.needed_blocks, 8 + 6);
	drop(serving);
	request.max_model_len = 32768;
	request.max_num_batched_tokens = 2048;
	serving = plan_of(models[6].config, &request,
	                  &status); /* 4 full layers, 22 windows: 6 groups, of which one is padded */
	assert_int_equal(serving->plan.layout.group_layers, 4);
	assert_int_equal(serving->plan.needed_blocks, 2048 + 6 * ((512 - 1 + 2 * 2048 + 15) / 16 + 1));
	drop(serving);
}

static void
longest_is_the_longest(void **state)
{
	struct tn_serve_request request = { .gpus = 1, .gpu = tn__gpu_find("l4") };
	tn_status status;
	(void)state;
	struct tn_serving *serving = plan_of(models[1].config, &request, &status);
	const struct tn_serve_plan *plan = &serving->plan;
	assert_int_equal(plan->verdict, TN_SERVE_FAILS);
	assert_int_equal(plan->limit, TN_SERVE_LIMIT_LENGTH);
	assert_true(tn__cache_blocks_of(&plan->layout, &plan->cache, plan->longest) <= plan->blocks);
	assert_true(tn__cache_blocks_of(&plan->layout, &plan->cache, plan->longest + 1) > plan->blocks);
	assert_true(serving->change_count > 0);
	drop(serving);
}

/* Every change that is named makes it start, and none repeats what is asked for. */
static void
changes_work(void **state)
{
	static const char *const cards[] = { "l4", "rtx3090", "rtx4090", "a100-40" };
	(void)state;
	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
		struct tn_serve_request request = { .gpus = 1,
			                                .gpu = tn__gpu_find(cards[i]),
			                                .cache_type = TN_CACHE_TYPE_8,
			                                .cache_type_name = "fp8",
			                                .eager = true };
		tn_status status;
		struct tn_serving *serving = plan_of(models[0].config, &request, &status);
		for (int c = 0; c < serving->change_count; c++) {
			struct tn_serve_request changed = request;
			struct tn_serve_plan plan;
			const struct tn_serve_change *change = &serving->changes[c];
			assert_string_not_equal(change->option, "--kv-cache-dtype");
			assert_string_not_equal(change->option, "--enforce-eager");
			if (strcmp(change->option, "--max-model-len") == 0)
				changed.max_model_len = atoi(change->value);
			else if (strcmp(change->option, "--gpu-memory-utilization") == 0)
				changed.utilization = atof(change->value);
			else if (strcmp(change->option, "--tensor-parallel-size") == 0)
				changed.gpus = atoi(change->value);
			else if (strcmp(change->option, "--max-num-seqs") == 0)
				changed.max_num_seqs = atoi(change->value);
			else
				changed.max_num_batched_tokens = atoi(change->value);
			tn__serve_compute(&serving->model, &serving->weights, &changed, &plan);
			assert_int_equal(plan.verdict, TN_SERVE_STARTS);
		}
		drop(serving);
	}
}

/* ---- files ---- */

static void
put_header(const char *name, const char *header)
{
	char bytes[4096] = { 0 };
	size_t length = strlen(header);
	for (int i = 0; i < 8; i++)
		bytes[i] = (char)(length >> 8 * i);
	memcpy(bytes + 8, header, length);
	put(name, bytes, 8 + length);
}

static void
headers_go_before_the_architecture(void **state)
{
	const struct tn_serve_request request = { .gpus = 1, .max_model_len = 2048 };
	tn_status status;
	(void)state;
	put_header(
		"model.safetensors",
		"{\"__metadata__\":{\"format\":\"pt\"},"
		"\"model.layers.0.self_attn.k_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[1024,4096],\"data_offsets\":[0,8388608]},"
		"\"model.layers.0.input_layernorm.weight\":{\"dtype\":\"F32\",\"shape\":[4096],\"data_offsets\":[8388608,8404992]},"
		"\"mtp.layers.0.weight\":{\"dtype\":\"BF16\",\"shape\":[64,64],\"data_offsets\":[8404992,8413184]}}");
	struct tn_serving *serving = plan_of(models[1].config, &request, &status);
	assert_int_equal(status, TN_OK);
	assert_int_equal(serving->weights.source, TN_WEIGHTS_HEADERS);
	assert_int_equal(serving->weights.stored_bytes, 8413184);
	int64_t highest;
	/* 32 bits become 16; what predicts further tokens is not loaded; 8 KV heads on 16 ranks are repeated. */
	assert_int_equal(tn__weights_of_rank(&serving->weights, &serving->model, 1, &highest), 8388608 + 8192);
	assert_int_equal(tn__weights_of_rank(&serving->weights, &serving->model, 16, &highest), 8388608 / 8 + 8192);
	drop(serving);
	take_away("model.safetensors");
}

static void
an_index_alone(void **state)
{
	const struct tn_serve_request request = { .gpus = 1, .max_model_len = 2048 };
	static const char same[] =
		"{\"metadata\":{\"total_size\":16060522496},\"weight_map\":{\"lm_head.weight\":\"model-00001-of-00001.safetensors\"}}";
	static const char other[] =
		"{\"metadata\":{\"total_size\":5000000000},\"weight_map\":{\"lm_head.weight\":\"model-00001-of-00001.safetensors\"}}";
	tn_status status;
	(void)state;
	put("model.safetensors.index.json", same, strlen(same));
	struct tn_serving *serving = plan_of(models[1].config, &request, &status);
	assert_int_equal(serving->weights.source, TN_WEIGHTS_INDEX);
	drop(serving);
	put("model.safetensors.index.json", other, strlen(other));
	serving = plan_of(models[1].config, &request, &status);
	assert_int_equal(serving->weights.source, TN_WEIGHTS_TOTAL);
	int64_t highest;
	assert_int_equal(tn__weights_of_rank(&serving->weights, &serving->model, 2, &highest), 2500000000);
	assert_int_equal(highest, 5000000000); /* nobody knows how they are divided */
	drop(serving);
	take_away("model.safetensors.index.json");
}

static void
damaged_files_have_words(void **state)
{
	static const struct {
		const char *config, *words;
		tn_status status;
	} configs[] = { { "", "no JSON", TN_FORMAT },
		            { "[]", "no object", TN_FORMAT },
		            { "{}", "architectures", TN_FORMAT },
		            { "{\"model_type\":\"llama\"}", "num_hidden_layers", TN_FORMAT },
		            { "{\"model_type\":\"llama\",\"num_hidden_layers\":99999999}", "num_hidden_layers", TN_FORMAT },
		            { "{\"model_type\":\"llama\",\"num_hidden_layers\":-1}", "num_hidden_layers", TN_FORMAT },
		            { "{\"architectures\":[\"T5ForConditionalGeneration\"],\"model_type\":\"t5\"}", "encoder-decoder",
		              TN_UNSUPPORTED } };
	static const struct {
		const char *bytes;
		size_t length;
		const char *words;
	} files[] = { { "abc", 3, "too short" },
		          { "version https://git-lfs.github.com/spec/v1", 42, "Git LFS" },
		          { "\x40\0\0\0\0\0\0\0{\"a\":", 13, "ends inside" },
		          { "\x08\0\0\0\0\0\0\0{\"a\":{}}", 16, "damaged at the tensor" },
		          { "\x08\0\0\0\0\0\0\0nonsense", 16, "damaged" } };
	const struct tn_serve_request request = { .gpus = 1 };
	tn_status status;
	(void)state;
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		struct tn_serving *serving = plan_of(configs[i].config, &request, &status);
		assert_int_equal(status, configs[i].status);
		assert_non_null(strstr(tn_error_text(), configs[i].words));
		drop(serving);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		put("model.safetensors", files[i].bytes, files[i].length);
		struct tn_serving *serving = plan_of(models[1].config, &request, &status);
		assert_int_equal(status, TN_FORMAT);
		assert_non_null(strstr(tn_error_text(), files[i].words));
		drop(serving);
	}
	take_away("model.safetensors");
}

/* Each byte of a configuration is damaged once: no crash, no sanitizer's word. */
static void
every_byte_damaged(void **state)
{
	const char *config = models[9].config;
	size_t length = strlen(config);
	struct tn_served_model *model = calloc(1, sizeof(*model));
	char *copy = malloc(length + 1);
	(void)state;
	assert_true(model != NULL && copy != NULL);
	for (size_t i = 0; i < length; i++) {
		memcpy(copy, config, length + 1);
		copy[i] = copy[i] == '9' ? '-' : '9';
		(void)tn__model_parse(copy, length, model);
		struct tn_weights_list none = { .stored_bytes = TN_NO_FIGURE };
		struct tn_serve_request request = { .gpus = 1, .gpu = tn__gpu_find("h100") };
		struct tn_serve_plan plan;
		if (model->layer_count > 0)
			tn__serve_compute(model, &none, &request, &plan);
		tn__model_free(model);
	}
	free(copy);
	free(model);
}

static void
unknown_architectures_say_what_is_decided(void **state)
{
	struct tn_serve_request request = { .gpus = 1, .max_model_len = 2048, .gpu = tn__gpu_find("h100") };
	tn_status status;
	(void)state;
	struct tn_serving *serving = plan_of(
		"{\"architectures\":[\"NewForCausalLM\"],\"model_type\":\"new\",\"hidden_size\":1024,\"num_hidden_layers\":4,"
		"\"num_attention_heads\":8,\"vocab_size\":1000,\"max_position_embeddings\":4096}",
		&request, &status);
	assert_int_equal(serving->plan.layout.token_bytes, 4 * 8 * 128 * 2 * 2); /* the cache is */
	assert_int_equal(serving->plan.verdict, TN_SERVE_UNDECIDED);             /* the weights are not */
	assert_non_null(strstr(serving->plan.reason, "headers"));
	drop(serving);
	serving = plan_of(
		"{\"architectures\":[\"NewForCausalLM\"],\"model_type\":\"new\",\"hidden_size\":1024,\"num_hidden_layers\":4,\"ssm_state_size\":16,"
		"\"num_attention_heads\":8,\"vocab_size\":1000,\"max_position_embeddings\":4096}",
		&request, &status);
	assert_int_equal(serving->plan.verdict, TN_SERVE_UNDECIDED);
	assert_non_null(strstr(serving->plan.reason, "ssm_state_size"));
	drop(serving);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_by_hand),        cmocka_unit_test(ranks_and_bits),
		cmocka_unit_test(layouts_of_the_engine), cmocka_unit_test(longest_is_the_longest),
		cmocka_unit_test(changes_work),          cmocka_unit_test(headers_go_before_the_architecture),
		cmocka_unit_test(an_index_alone),        cmocka_unit_test(damaged_files_have_words),
		cmocka_unit_test(every_byte_damaged),    cmocka_unit_test(unknown_architectures_say_what_is_decided)
	};
	if (mkdtemp(folder) == NULL)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	take_away("config.json");
	rmdir(folder);
	return failed;
}
