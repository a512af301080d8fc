/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run needs of a model on a hub, without its weights.
 */
#ifndef TONNAGE_FETCH_H
#define TONNAGE_FETCH_H

#include <stdbool.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tn_fetch_options {
	const char *model;    /* as from_pretrained takes it */
	const char *revision; /* NULL: main */
	const char *into;     /* a new or empty folder; NULL: Tonnage's own, where runs look */
	const char *python;   /* that has huggingface_hub; NULL: python3 or python on the PATH */
	bool json;            /* doc/format/fetch.schema.json */
};

/* Becomes the Python program that fetches (python/tonnage/kit/fetch_model.py), which writes to stdout and ends with 0 or 1. Returns
 * only where that cannot be started: TN_NOT_FOUND, TN_INVALID (no such Python), TN_STATE, TN_IO. */
tn_status tn_fetch(const struct tn_fetch_options *options);

#ifdef __cplusplus
}
#endif
#endif
