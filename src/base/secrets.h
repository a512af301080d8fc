/* SPDX-License-Identifier: Apache-2.0
 *
 * Values on a command line, or in the environment, that look like secrets do not belong in a report.
 */
#ifndef TN_BASE_SECRETS_H
#define TN_BASE_SECRETS_H

#include <stddef.h>

/* A copy of `word`, released with free, in which such values are "***": behind a name that says so ("--token=", "API_KEY="), of a
 * known form ("hf_...", "sk-...", "ghp_..."), the password of a URL; in a word of several words each by itself. `before` is
 * the word before it on the command line, or NULL: "--password" makes all of this one a secret. NULL without memory. */
char *tn__mask_secrets(const char *word, const char *before);

/* The values of a command line and of an environment that look like secrets. Immutable once made: any thread may read it. */
struct tn_secrets;

/* Looks through both lists (they end with NULL; NULL is an empty one). Released with tn__secrets_free; NULL without memory. */
struct tn_secrets *tn__secrets_of(char *const *arguments, char *const *environment);
void tn__secrets_free(struct tn_secrets *secrets);
/* A copy of `text`, released with free, in which each of these values, and whatever has the form of a secret, is "***". NULL without
 * memory. `secrets` may be NULL. */
char *tn__mask_known(const struct tn_secrets *secrets, const char *text);
/* The same of what a program said: what a name makes a secret is masked, too ("api_key='...'", "?token=...", "Bearer ..."). */
char *tn__mask_said(const struct tn_secrets *secrets, const char *text);
/* Overwrites these values in a file of another program's format with as many stars, so that it stays readable; values that are plain
 * words are left, since the format may have the same ones. */
void tn__blot_known(const struct tn_secrets *secrets, char *bytes, size_t size);

#endif
