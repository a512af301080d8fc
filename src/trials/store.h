/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of results: trials and their results, by a key that only the same trial of the same program has
 * (doc/design/0041-engines.md). It may lie on a file system that other machines write into, too.
 *
 * Invariant: a result is there whole, or not. Not thread-safe.
 */
#ifndef TN_TRIALS_STORE_H
#define TN_TRIALS_STORE_H

#include <limits.h>

#include "base/sha256.h"
#include "trials/trial.h"

struct tn_store {
	char folder[PATH_MAX]; /* "": there is none */
	char fingerprint[TN_SHA256_TEXT];
	int slices; /* that were named so far */
};

/* The folder without a look at it: for a dry run. */
tn_status tn__store_name(const char *folder, char *const *arguments, struct tn_store *out);
/* Opens or makes the folder for a program. TN_INVALID with the line to show where it has results of another program, TN_IO where it
 * cannot be written. */
tn_status tn__store_open(const char *folder, char *const *arguments, struct tn_store *out);
/* The key of a trial. */
void tn__store_key(const struct tn_store *store, const struct tn_trial *trial, char key[TN_SHA256_TEXT]);
/* Fills the result of a trial from one that came to a report; false: there is none. */
bool tn__store_find(const struct tn_store *store, struct tn_trial *trial);
/* The same for any result. */
bool tn__store_take(const struct tn_store *store, const char *key, struct tn_trial *trial);
bool tn__store_has(const struct tn_store *store, const char *key);
void tn__store_forget(const struct tn_store *store, const char *key);
/* Keeps the result of a trial and, where it is not there, the trial. `outcome`: the text that its process left. */
tn_status tn__store_put(const struct tn_store *store, const struct tn_trial *trial, const char *outcome);
/* A name for the next slice; but for the number at its end, all of a command's are the same. */
void tn__store_name_slice(struct tn_store *store, char name[64]);
/* Writes what a worker is to try. */
tn_status tn__store_add_trial(const struct tn_store *store, const char *key, const struct tn_trial *trial,
                              double limit_seconds);
tn_status tn__store_add_slice(const struct tn_store *store, const char *name, const char *const *keys, int count);
/* The text of a file of the folder, with a zero behind; the caller frees. NULL: there is none. */
char *tn__store_read(const struct tn_store *store, const char *part, const char *name);
/* Writes DIR/results.csv from all results that are there. */
tn_status tn__store_tabulate(const struct tn_store *store);

/* ---- fingerprint.c ---- */

/* What a program is, as far as it can be told without running it. */
void tn__fingerprint(char *const *arguments, char fingerprint[TN_SHA256_TEXT]);

#endif
