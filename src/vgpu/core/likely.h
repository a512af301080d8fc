/* SPDX-License-Identifier: Apache-2.0
 *
 * What a computed value is taken to be when the program reads it: an assumption, not a value (doc/design/0006-values.md).
 */
#ifndef TN_VGPU_LIKELY_H
#define TN_VGPU_LIKELY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/core/dtype.h"

enum tn_likely_kind { /* the guest knows these numbers: reads.py */
	                  TN_LIKELY_NONE,
	                  TN_LIKELY_TRUTH, /* of a comparison, of all or any */
	                  TN_LIKELY_REAL,
	                  TN_LIKELY_WHOLE,
	                  TN_LIKELY_INDEX,    /* of something that is there */
	                  TN_LIKELY_COUNT,    /* of what is selected among `bound` */
	                  TN_LIKELY_SELECTED, /* each element says whether it is selected, as a number: its sum is a count */
};

struct tn_likely {
	unsigned char kind;  /* enum tn_likely_kind */
	unsigned char dtype; /* enum tn_dtype; TN_DTYPE_NONE: a whole number as wide as the reader wants */
	bool truth;          /* of TN_LIKELY_TRUTH */
	bool mixed;          /* a mask of two tensors: programs assert that all hold, and stop when any does */
	bool each;           /* the elements differ, and stand where this is kept */
	uint64_t bound;      /* of TN_LIKELY_COUNT: how many there are at most; of a mask: how many hold at most, 0: all */
};

/* One read, as the observer sees it. The observer may set `choice`: the value becomes offered[choice]. */
#define TN_OFFERED 3
struct tn_value_read {
	uint64_t bytes;             /* of the copy */
	uint64_t bound;             /* of a count; else 0 */
	double offered[TN_OFFERED]; /* the likely value first */
	int32_t kind;               /* TN_LIKELY_NONE: zeros, nothing is known of it */
	int32_t choice;
};

/* The value that stands for an assumption; `choice` 0 is the likely one. */
double tn__likely_value(const struct tn_likely *likely, int choice);
/* Writes it as one element; returns its bytes, at most 16: 0 when the element is not one that holds numbers. */
size_t tn__likely_pattern(const struct tn_likely *likely, double value, unsigned char pattern[16]);

#endif
