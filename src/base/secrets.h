/* SPDX-License-Identifier: Apache-2.0
 *
 * Values on a command line that look like secrets do not belong in a report.
 */
#ifndef TN_BASE_SECRETS_H
#define TN_BASE_SECRETS_H

/* A copy of `word`, released with free, in which such values are "***": behind a name that says so ("--token=", "API_KEY="), of a
 * known form ("hf_...", "sk-...", "ghp_..."), the password of a URL; in a word of several words each by itself. `before` is
 * the word before it on the command line, or NULL: "--password" makes all of this one a secret. NULL without memory. */
char *tn__mask_secrets(const char *word, const char *before);

#endif
