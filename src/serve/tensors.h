/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a model and how an engine divides them among ranks. They come from the headers of its files, or from what is known of its
 * architecture; both give the same list, and one rule divides it (shard.c).
 */
#ifndef TN_SERVE_TENSORS_H
#define TN_SERVE_TENSORS_H

#include "serve/served_model.h"

#define TN_TENSOR_DIMENSIONS 4
#define TN_TENSORS_MOST (1u << 20)

/* How a tensor is divided. */
enum tn_split {
	TN_SPLIT_WHOLE,      /* each rank has all of it */
	TN_SPLIT_EVENLY,     /* each rank has its share */
	TN_SPLIT_KEY_VALUE,  /* by KV heads: no finer than one head */
	TN_SPLIT_FUSED,      /* queries evenly, keys and values by their heads */
	TN_SPLIT_VOCABULARY, /* rows padded to 64, then evenly */
	TN_SPLIT_UNKNOWN,    /* nobody knows: evenly at best, whole at worst */
	TN_SPLIT_ABSENT,     /* not loaded: prediction heads, shared embeddings, caches */
	TN_SPLITS
};

struct tn_tensor {
	char name[192];
	char type[12]; /* safetensors' word: BF16, F8_E4M3, I32 ... */
	int dimensions;
	int64_t shape[TN_TENSOR_DIMENSIONS]; /* further dimensions are multiplied into the last */
	int64_t count;                       /* so many of them, all alike */
};

struct tn_tensor_row {
	int64_t bytes; /* of all of them, as the engine keeps them */
	int64_t rows;  /* of a vocabulary */
	enum tn_split split;
};

enum tn_weights_source {
	TN_WEIGHTS_UNKNOWN,
	TN_WEIGHTS_HEADERS,     /* of all files */
	TN_WEIGHTS_INDEX,       /* the index alone; shapes from the architecture */
	TN_WEIGHTS_TOTAL,       /* the index's total_size alone: how it is divided is not known */
	TN_WEIGHTS_ARCHITECTURE /* config.json alone */
};

struct tn_weights_list {
	struct tn_tensor_row *rows;
	size_t count, capacity;
	enum tn_weights_source source;
	int64_t stored_bytes; /* in the files, or by the index's total_size; TN_NO_FIGURE */
	int files;
	bool no_memory;
	char problem[192]; /* why there is nothing, or what does not agree */
};

/* Looks at the folder's files, then at the index, then at the architecture. TN_FORMAT with words where a header is damaged; a list
 * without a source where nothing tells. Released with tn__weights_free. */
tn_status tn__weights_read(const char *folder, const struct tn_served_model *model, struct tn_weights_list *out);
void tn__weights_free(struct tn_weights_list *list);

/* Bytes on one of so many ranks; *highest where some tensors' division is unknown. */
int64_t tn__weights_of_rank(const struct tn_weights_list *list, const struct tn_served_model *model, int ranks,
                            int64_t *highest);

/* ---- shard.c ---- */

struct tn_tensor_row tn__tensor_row(const struct tn_served_model *model, const struct tn_tensor *tensor);
/* Bits of a number; 0 for a type that is not known. */
int tn__type_bits(const char *type);

/* ---- architecture.c ---- */

typedef void tn__tensor_visit(void *context, const struct tn_tensor *tensor);
/* Calls `visit` for every tensor that a checkpoint of this model has; false where the architecture's tensors are not known, with the reason. */
bool tn__architecture_tensors(const struct tn_served_model *model, tn__tensor_visit *visit, void *context,
                              char reason[192]);

/* ---- headers.c ---- */

/* Adds the tensors of one safetensors file. */
tn_status tn__header_read(const char *path, const struct tn_served_model *model, struct tn_weights_list *list);
void tn__weights_add(struct tn_weights_list *list, const struct tn_served_model *model, const struct tn_tensor *tensor);

#endif
