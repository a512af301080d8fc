/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights without weights (doc/design/0023-weights.md): files of weights whose tensors are not there, or are not to be read.
 *
 * A *stand-in* is a file in <run>/state/stand-ins with the length that the whole file has: what is there is copied, the
 * tensors that are not are holes. A program that opens such a file for reading gets a descriptor of its stand-in, so that
 * lengths and offsets are the kernel's own answers to every call; mappings and large reads of its holes become private
 * zero memory here, since the kernel would fill the page cache with zeros. A call that is not replaced sees the same
 * bytes and costs file pages.
 *
 * <run>/state/weights, one table that all processes of the run map shared, has a record of each stand-in. Records are only
 * ever added, under the file's lock; a record counts once its number is below `count`. <run>/state/weights-names has the
 * names, a line each.
 */
#ifndef TN_PRELOAD_WEIGHTS_H
#define TN_PRELOAD_WEIGHTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define TN_ENTRY_WEIGHTS __attribute__((visibility("default")))
#define TN__WEIGHTS_FILES 1024u /* stand-ins of a run; further files are read as they are */
#define TN__WEIGHTS_MAGIC 0x31736874676957ull

struct tn__weights_record {
	uint64_t device, inode; /* of the stand-in */
	int64_t length;
	struct stat real;         /* of the file that it stands for, with the whole length */
	int64_t real_length;      /* what that file has */
	uint64_t tensors, absent; /* how many have bytes that are not there, and how many bytes they have */
	uint64_t shape;           /* 1: the file is whole, and --weights shape says not to read it */
	_Atomic uint64_t read;    /* bytes that were not there, handed out by calls that read */
	_Atomic uint64_t reread;  /* calls that did so */
};

struct tn__weights_table {
	uint64_t magic;
	_Atomic uint64_t count;
	struct tn__weights_record records[TN__WEIGHTS_FILES];
};

enum tn__weights_mode { TN__WEIGHTS_UNKNOWN, TN__WEIGHTS_REAL, TN__WEIGHTS_AUTO, TN__WEIGHTS_SHAPE };
extern _Atomic int tn__weights_mode;
/* The table; NULL while this process has met no stand-in. */
extern struct tn__weights_table *_Atomic tn__weights_table;

/* May a file by this name hold weights? Cheap: it is asked at each open and stat. */
bool tn__weights_named(const char *path);

/* A descriptor that was just opened for reading, by a name that tn__weights_named: where the file is to be stood in for,
 * the descriptor leads to the stand-in from now on. Never fails: else it is left as it is. */
void tn__weights_open(int fd);
/* What stat said of such a name: the length becomes the whole file's. */
void tn__weights_stat(int dirfd, const char *path, struct stat *st);
/* What fstat said of a descriptor: of a stand-in it becomes what it says of the file. True: it was one. */
bool tn__weights_fstat(struct stat *st);

/* The stand-in behind a descriptor, or NULL. Only while there is a table. */
struct tn__weights_record *tn__weights_of(int fd);

/* For the guest: 0, or that the memory lies in one mapping of a stand-in, 1 where nobody can have written to it, 2 where the
 * program may have. */
TN_ENTRY_WEIGHTS int tn_weights_absent(const void *address, size_t size);

static inline bool
tn__weights_may_be(const char *path)
{
	return atomic_load_explicit(&tn__weights_mode, memory_order_relaxed) != TN__WEIGHTS_REAL && path &&
	       tn__weights_named(path);
}

static inline bool
tn__weights_met(void)
{
	return atomic_load_explicit(&tn__weights_table, memory_order_acquire) != NULL;
}

#endif
