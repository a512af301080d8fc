/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of <run>/state/index, the file that all processes of a run map shared: the supervisor makes it, the write overlay
 * uses it (overlay_state.c), the supervisor reads its counts at the end.
 *
 * Invariant: every byte of the file has its block on the disk before anybody maps it, so that a full disk is an error of the
 * maker and never a signal in the program.
 */
#ifndef TN_PRELOAD_INDEX_H
#define TN_PRELOAD_INDEX_H

#include <stdatomic.h>
#include <stdint.h>

#define TN__INDEX_MAGIC 0x3278646e49544eull /* "NTIndx2" */
#define TN__INDEX_SLOTS (1u << 20)

struct tn__index_head { /* a new file is all zeros, and valid */
	_Atomic uint64_t magic;
	_Atomic uint64_t generation;  /* changes of the table */
	uint64_t pass;                /* pass word of the raw call filter (raw.h); 0: there is no filter */
	_Atomic uint64_t refused;     /* changes by way of libc that the kernel's sandbox refused */
	_Atomic uint64_t full;        /* changes that failed because the disk, or the limit, was full */
	uint64_t limit;               /* bytes that the scratch folder may take; 0: no limit */
	_Atomic uint64_t spent;       /* bytes on the disk, at most, as far as they were counted */
	_Atomic uint64_t raw_refused; /* raw calls that the reaper refused, or was told of and Landlock refused */
	_Atomic uint64_t holes;       /* files of the run may have holes where the program wrote zeros; 0: none has */
};

#define TN__INDEX_BYTES (sizeof(struct tn__index_head) + TN__INDEX_SLOTS * sizeof(uint64_t))

#endif
