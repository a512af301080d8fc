/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue of cards, for people and for programs.
 */
#ifndef TONNAGE_GPU_H
#define TONNAGE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the catalogue, or one card when `name` (a name or alias, case ignored) is not NULL: as a table, or as the
 * JSON object of doc/format/gpus.schema.json. TN_NOT_FOUND for an unknown name, with the nearest alias in
 * tn_error_text(); TN_IO when writing fails. Thread-safe. */
tn_status tn_gpus_write(FILE *out, const char *name, bool json);

/* What a person types for the card at an index; NULL behind the last. Thread-safe. */
const char *tn_gpus_alias_at(size_t index);

/* Measures the GPU of this machine and writes a row of the catalogue's form. TN_NOT_FOUND without a GPU. */
tn_status tn_gpus_probe(FILE *out);

#ifdef __cplusplus
}
#endif
#endif
