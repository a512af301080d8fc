/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue of GPUs, as data.
 */
#ifndef TONNAGE_CARD_H
#define TONNAGE_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A figure of 0 is unknown. */
struct tn_card {
	const char *name;  /* as cudaGetDeviceProperties reports it */
	const char *alias; /* what a person types */
	int compute_major, compute_minor;
	int sm_count;
	uint64_t total_bytes;   /* as cudaMemGetInfo reports it */
	uint64_t context_bytes; /* taken before the first tensor */
	const char *evidence;   /* where the figures come from */
};

/* How many cards the catalogue has. Thread-safe, as everything here; texts live as long as the program. */
size_t tn_card_count(void);

/* The card at an index below tn_card_count. TN_NOT_FOUND beyond it. */
tn_status tn_card_at(size_t index, struct tn_card *card);

/* The card of a name or alias; case, "NVIDIA" and "GeForce" do not matter. TN_NOT_FOUND, with the nearest alias in
 * tn_error_text(). */
tn_status tn_card_find(const char *name, struct tn_card *card);

/* The smallest card with room for so many bytes besides its own context. TN_NOT_FOUND when there is none. */
tn_status tn_card_smallest(uint64_t bytes, struct tn_card *card);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
