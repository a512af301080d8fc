/* SPDX-License-Identifier: Apache-2.0
 *
 * How a checkpoint's linear layers are stored: quantization_config of config.json, whose names and forms differ by tool.
 */
#include <ctype.h>
#include <regex.h>
#include <string.h>
#include <strings.h>

#include "base/figure.h"
#include "base/json.h"
#include "base/plain.h"
#include "serve/served_model.h"

static const json_t *
find_config(const struct tn_served_model *model)
{
	static const char *const names[] = { "quantization_config", "compression_config" };
	for (size_t i = 0; i < 4; i++) {
		const json_t *config = json_object_get(i < 2 ? model->document : model->text, names[i % 2]);
		if (json_is_object(config))
			return config;
	}
	return NULL;
}

/* Bits of a number and weights a scale, where compressed-tensors has one group of settings. */
static void
read_groups(struct tn_quant *quant, const json_t *config)
{
	const json_t *groups = json_object_get(config, "config_groups"), *group = NULL;
	const char *name, *format = tn__json_borrow_text(config, "format");
	json_object_foreach((json_t *)groups, name, group)
		break;
	const json_t *weights = json_object_get(group, "weights");
	const char *kind = tn__json_borrow_text(weights, "type");
	int64_t bits = tn__config_field(weights, "num_bits"), size = tn__config_field(weights, "group_size");
	quant->bits = bits > 0 && bits <= 16 ? (int32_t)bits : 0;
	quant->group = size > 0 && size <= 65536 ? (int32_t)size : 0;
	if (quant->bits == 8 && kind != NULL && strcmp(kind, "float") == 0)
		quant->kind = TN_QUANT_FP8;
	else if (quant->bits == 8 && (format == NULL || strstr(format, "pack") == NULL))
		quant->kind = TN_QUANT_INT8;
	else if (quant->bits == 4 && kind != NULL && strcmp(kind, "float") == 0)
		quant->kind = TN_QUANT_NVFP4;
	else if (quant->bits > 0 && quant->group > 0)
		quant->kind = TN_QUANT_PACKED;
}

static void
read_fp8(struct tn_quant *quant, const json_t *config)
{
	const json_t *block = json_object_get(config, "weight_block_size");
	json_int_t rows = json_integer_value(json_array_get(block, 0)),
			   columns = json_integer_value(json_array_get(block, 1));
	quant->kind = TN_QUANT_FP8;
	if (rows > 0 && rows <= 65536 && columns > 0 && columns <= 65536) {
		quant->block_rows = (int32_t)rows;
		quant->block_columns = (int32_t)columns;
	}
}

/* GPTQ's and AWQ's bits and groups. */
static void
read_packed(struct tn_quant *quant, const json_t *config, enum tn_quantisation kind)
{
	int64_t bits = tn__config_field(config, "bits"), group = tn__config_field(config, "group_size");
	if (bits < 0)
		bits = tn__config_field(config, "w_bit");
	if (group < 0)
		group = tn__config_field(config, "q_group_size");
	quant->bits = bits == 2 || bits == 4 || bits == 8 ? (int32_t)bits : 0;
	quant->group = group > 0 && group <= 65536 ? (int32_t)group : 0; /* -1: a scale a row */
	quant->ordered = tn__json_read_truth(config, "desc_act");
	quant->kind = quant->bits > 0 ? kind : TN_QUANT_UNKNOWN;
}

static void
read_modelopt(struct tn_quant *quant, const json_t *config)
{
	const json_t *inner = json_object_get(config, "quantization");
	const char *algorithm = tn__json_borrow_text(json_is_object(inner) ? inner : config, "quant_algo");
	const char *cache = tn__json_borrow_text(json_is_object(inner) ? inner : config, "kv_cache_quant_algo");
	quant->cache_fp8 = cache != NULL && strcasecmp(cache, "FP8") == 0;
	if (algorithm != NULL && strncasecmp(algorithm, "FP8", 3) == 0)
		quant->kind = TN_QUANT_FP8;
	else if (algorithm != NULL && strcasecmp(algorithm, "NVFP4") == 0) {
		quant->kind = TN_QUANT_NVFP4;
		quant->group = 16;
	}
}

static void
read_method(struct tn_quant *quant, const json_t *config, const char *method)
{
	if (strcmp(method, "fp8") == 0 || strcmp(method, "fbgemm_fp8") == 0)
		read_fp8(quant, config);
	else if (strcmp(method, "gptq") == 0)
		read_packed(quant, config, TN_QUANT_GPTQ);
	else if (strcmp(method, "awq") == 0)
		read_packed(quant, config, TN_QUANT_AWQ);
	else if (strcmp(method, "bitsandbytes") == 0) {
		quant->kind = tn__json_read_truth(config, "load_in_4bit") || tn__json_read_truth(config, "_load_in_4bit")
		                  ? TN_QUANT_NF4
		                  : TN_QUANT_INT8;
		quant->double_scales = tn__json_read_truth(config, "bnb_4bit_use_double_quant");
	} else if (strncmp(method, "compressed", 10) == 0)
		read_groups(quant, config);
	else if (strncmp(method, "modelopt", 8) == 0)
		read_modelopt(quant, config);
	else if (strcmp(method, "mxfp4") == 0)
		quant->kind = TN_QUANT_MXFP4;
}

void
tn__model_quantisation(struct tn_served_model *model)
{
	static const char *const lists[] = { "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules",
		                                 "llm_int8_skip_modules" };
	struct tn_quant *quant = &model->quant;
	const json_t *config = find_config(model);
	if (config == NULL)
		return;
	const char *method = tn__json_borrow_text(config, "quant_method");
	snprintf(quant->name, sizeof(quant->name), "%s", method != NULL ? method : "unnamed");
	tn__make_plain(quant->name, '?');
	quant->kind = TN_QUANT_UNKNOWN;
	const json_t *scheme = json_object_get(config, "kv_cache_scheme");
	quant->cache_fp8 = tn__config_field(scheme, "num_bits") == 8;
	read_method(quant, config, quant->name);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && quant->left_out == NULL; i++)
		if (json_is_array(json_object_get(config, lists[i])))
			quant->left_out = json_object_get(config, lists[i]);
}

/* "re:.*lm_head" is an expression over the whole name. */
static bool
matches_expression(const char *pattern, const char *name)
{
	regex_t expression;
	if (strlen(pattern) > 256 || regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	bool found = regexec(&expression, name, 0, NULL, 0) == 0;
	regfree(&expression);
	return found;
}

bool
tn__is_quantised(const struct tn_quant *quant, const char *module)
{
	if (quant->kind == TN_QUANT_NONE || quant->kind == TN_QUANT_UNKNOWN)
		return false;
	for (size_t i = 0; i < json_array_size(quant->left_out); i++) {
		const char *pattern = json_string_value(json_array_get(quant->left_out, i));
		if (pattern == NULL)
			continue;
		if (strncmp(pattern, "re:", 3) == 0 ? matches_expression(pattern + 3, module) : strstr(module, pattern) != NULL)
			return false;
	}
	return true;
}
