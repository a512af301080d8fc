/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known or assumed of device memory, as extents in order of their addresses, without overlap. The table; what is put
 * into it and when it goes is the matter of values.c, what a reader gets of it that of values_read.c.
 *
 * They lie in blocks of a few dozen, so that one that comes or goes moves few others: a program that asks for one number after
 * the other (a loop over boxes, say) has tens of thousands. Everything wants tn__values_lock, which is taken inside the core lock
 * or alone.
 */
#ifndef TN_VGPU_EXTENTS_H
#define TN_VGPU_EXTENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/core/likely.h"

#define TN_EXTENTS_MAX 65536

struct tn_extent {
	uint64_t address, size;
	unsigned char *bytes; /* owned; NULL: the pattern, repeated from the extent's start */
	unsigned char pattern[16];
	uint8_t pattern_bytes;
	bool pinned;
	uint64_t era;            /* in which it came: tn__extents_era */
	struct tn_likely likely; /* kind TN_LIKELY_NONE: the bytes are known; else they are assumed */
};

/* A place in the table. It holds until an extent comes or goes elsewhere than by this place. */
struct tn_place {
	size_t block, item;
};

extern pthread_mutex_t tn__values_lock;

/* The first extent that ends above an address, and the one behind a place; NULL: there is none. */
struct tn_extent *tn__extents_first(struct tn_place *place, uint64_t address);
struct tn_extent *tn__extents_next(struct tn_place *place);
/* The extent at a place; NULL: the place is the end. */
struct tn_extent *tn__extents_at(struct tn_place *place);
/* How many there are, and the bytes that they own. */
size_t tn__extents_count(void);
uint64_t tn__extents_stored(void);

/* Puts an extent where nothing lies; takes its bytes over. False without host memory or above TN_EXTENTS_MAX: the bytes are freed. */
bool tn__extents_add(const struct tn_extent *extent);
/* Removes the extent at a place and frees its bytes. The place is then that of the next one, which is returned. */
struct tn_extent *tn__extents_remove(struct tn_place *place);
/* Removes what lies in a range; of an extent that reaches beyond it the rest stays. Without host memory the rest is lost. */
void tn__extents_cut(uint64_t address, uint64_t size);
/* Removes all that are not pinned. */
void tn__extents_clear(void);

/* A copy of what lies of an extent in [from, to); size 0 without host memory. The caller owns its bytes. */
struct tn_extent tn__extent_part(const struct tn_extent *extent, uint64_t from, uint64_t to);
/* Writes what an extent says of [from, to), which lies in it. */
void tn__extent_copy(const struct tn_extent *extent, uint64_t from, uint64_t to, unsigned char *out);
bool tn__extent_is_zeros(const struct tn_extent *extent);

/* A kernel ran that is not known by name: what is there now outlived it. */
void tn__extents_outlive(void);
/* Whether an extent outlived such a kernel. */
bool tn__extent_outlived(const struct tn_extent *extent);
/* The era of an extent that comes now. */
uint64_t tn__extents_era(void);

/* Whether extents cover a range without a gap. */
bool tn__extents_cover(uint64_t address, uint64_t bytes);
/* Whether an extent says something about a range that it overlaps, which is covered or not. One that outlived a kernel may
 * be an earlier owner's, where something of the range is not known. */
bool tn__extent_counts(const struct tn_extent *extent, bool covered);

enum tn_which { TN_KNOWN, TN_KNOWN_NOT_ZEROS, TN_ASSUMED }; /* of the extents */

/* Writes what is known (or assumed) of a range to `host` (may be NULL); returns how many bytes were. */
uint64_t tn__extents_read(uint64_t address, unsigned char *host, uint64_t bytes, enum tn_which which);

#endif
