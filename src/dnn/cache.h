/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers on disk, one file for each build of cuDNN: the helper adds to it, programs read it when they first ask.
 *
 * A file is a head of 8 bytes and records that are added whole: key, length, check sum, answer. What is behind a
 * damaged record is not read; the helper cuts it off before it adds. Any process may read while another adds.
 */
#ifndef TN_DNN_CACHE_H
#define TN_DNN_CACHE_H

#include <limits.h>

#include "dnn/wire.h"

/* The variable by which a run tells its processes the folder. */
#define TN_DNN_CACHE_VARIABLE "TONNAGE_CUDNN_CACHE"
/* The helper's own: the file of the virtual GPU's driver. */
#define TN_DNN_DRIVER_VARIABLE "TONNAGE_CUDNN_DRIVER"
/* A path of the real library that is asked instead of the one beside PyTorch. */
#define TN_DNN_LIBRARY_VARIABLE "TONNAGE_CUDNN"

/* Where answers of the build of cuDNN at a path stand: by the sizes of its libraries. NULL when there is no such
 * library, or the name is too long. */
const char *tn__dnn_cache_path(const char *folder, const char *library, char out[PATH_MAX]);

struct tn_dnn_record {
	struct tn_dnn_key key;
	const unsigned char *answer;
	uint32_t length;
};

/* Calls `take` for every sound record of a file's bytes; gives the length of what is sound. */
size_t tn__dnn_cache_walk(const unsigned char *bytes, size_t length,
                          void (*take)(void *context, const struct tn_dnn_record *record), void *context);

/* Opens the file for adding; makes it and its folder where they are missing, and cuts off what is damaged. -1 when that
 * cannot be done: answers are then asked for again. */
int tn__dnn_cache_open(const char *path);

/* Adds an answer to an open file (-1: to none). */
void tn__dnn_cache_add(int file, const struct tn_dnn_record *record);

#endif
