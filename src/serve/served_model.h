/* SPDX-License-Identifier: Apache-2.0
 *
 * A language model as an inference engine sees it: its layers, what each of them caches, and its tensors. Read from the folder of a
 * checkpoint, whose files come from others and are not trusted: every figure is bounded before it is used.
 */
#ifndef TN_SERVE_SERVED_MODEL_H
#define TN_SERVE_SERVED_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#define TN_MODEL_LAYERS 1024
#define TN_MODEL_LARGEST (INT64_C(1) << 32) /* no size in a config.json is larger */
#define TN_MODEL_NOTES 8

/* What a layer caches. */
enum tn_cache_kind {
	TN_CACHE_NONE,   /* nothing: a feed-forward layer, or one that reads another layer's cache */
	TN_CACHE_FULL,   /* keys and values of every token */
	TN_CACHE_WINDOW, /* of the last tokens */
	TN_CACHE_CHUNK,  /* of the tokens of one chunk */
	TN_CACHE_LATENT, /* one compressed vector a token (MLA), the same on each rank */
	TN_CACHE_KINDS
};

struct tn_model_layer {
	enum tn_cache_kind cache;
	bool state;                             /* a state of fixed size, too, or instead */
	int32_t window;                         /* tokens of a window or chunk */
	int32_t kv_heads, key_size, value_size; /* a latent has one head, and key_size is all of it */
	bool experts;                           /* its feed-forward part is a mixture of experts */
	bool feed_forward;
};

enum tn_state_kind { TN_STATE_NONE, TN_STATE_MAMBA, TN_STATE_MAMBA2, TN_STATE_DELTA, TN_STATE_CONVOLUTION };

/* The recurrent state of a layer. */
struct tn_state {
	enum tn_state_kind kind;
	int64_t inner;                                        /* channels */
	int64_t size;                                         /* state size a channel */
	int64_t heads, head_size, groups;                     /* Mamba-2 */
	int64_t key_heads, key_size, value_heads, value_size; /* gated delta net */
	int64_t kernel;                                       /* taps of the convolution */
	int32_t convolution_bytes, bytes;                     /* a number of each part */
};

enum tn_tied { TN_TIED_NO, TN_TIED_YES };

/* How the linear layers are stored. */
enum tn_quantisation {
	TN_QUANT_NONE,
	TN_QUANT_FP8, /* one byte, scales a tensor or a block */
	TN_QUANT_GPTQ,
	TN_QUANT_AWQ,
	TN_QUANT_NF4,    /* bitsandbytes, 4 bits */
	TN_QUANT_INT8,   /* one byte, a scale a row */
	TN_QUANT_PACKED, /* compressed-tensors: integers packed into 32 bits, scales a group */
	TN_QUANT_NVFP4,
	TN_QUANT_MXFP4, /* experts only */
	TN_QUANT_UNKNOWN
};

struct tn_quant {
	enum tn_quantisation kind;
	char name[48];                     /* quant_method */
	int32_t bits, group;               /* group: weights a scale */
	int32_t block_rows, block_columns; /* 0: no blocks */
	bool ordered;                      /* GPTQ with desc_act */
	bool double_scales;                /* NF4: scales are quantised, too */
	bool cache_fp8;                    /* the checkpoint asks for an 8-bit cache */
	const json_t *left_out;            /* array of names that are not quantised, or NULL; the document owns it */
};

struct tn_architecture {
	const char *name;
	unsigned flags; /* of architectures.def */
};

struct tn_served_model {
	char architecture[96], type[64];
	const struct tn_architecture *known; /* NULL: not in architectures.def */
	json_t *document;                    /* config.json */
	const json_t *text;                  /* its part for the language model */
	bool multimodal;
	int32_t layer_count;
	struct tn_model_layer layers[TN_MODEL_LAYERS];
	struct tn_state state;
	int64_t hidden, heads, kv_heads, head_size, vocabulary, context;
	int64_t intermediate, expert_intermediate, experts, experts_used, shared_intermediate;
	int64_t rotary;                                                       /* size of the rotated part; 0: no rotation */
	int64_t latent, latent_rope, latent_nope, latent_value, query_latent; /* MLA; 0: none */
	int32_t bytes;                                                        /* of a number, as the engine keeps it */
	bool tied, bytes_known;
	struct tn_quant quant;
	char missing[256]; /* fields without which the cache is not decided; "": none */
	char notes[TN_MODEL_NOTES][192];
	int note_count;
};

/* Reads config.json of a folder. TN_NOT_FOUND, TN_IO, TN_FORMAT or TN_UNSUPPORTED with words that say what to do. What is not known of
 * the model is in `missing`. Released with tn__model_free, also after an error. */
tn_status tn__model_read(const char *folder, struct tn_served_model *out);
/* The same from a text. */
tn_status tn__model_parse(const char *text, size_t length, struct tn_served_model *out);
void tn__model_free(struct tn_served_model *model);

/* The row of architectures.def; NULL. */
const struct tn_architecture *tn__architecture_find(const char *name);

/* Bytes of one layer's state on one of so many ranks. */
int64_t tn__state_bytes(const struct tn_state *state, int ranks);

/* The first of the names (ended by NULL) that is a number from 0 to TN_MODEL_LARGEST; else TN_NO_FIGURE. */
int64_t tn__config_number(const json_t *object, const char *const *names);
int64_t tn__config_field(const json_t *object, const char *name);

void tn__model_note(struct tn_served_model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds the name of a field to `missing`. */
void tn__model_lacks(struct tn_served_model *model, const char *field);

/* ---- kinds.c ---- */

/* Fills `layers` and `state` once the sizes are known. */
void tn__model_kinds(struct tn_served_model *model);

/* ---- quantisation.c ---- */

void tn__model_quantisation(struct tn_served_model *model);
/* Is the linear layer of this name quantised? */
bool tn__is_quantised(const struct tn_quant *quant, const char *module);

#endif
