/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4), for names of what has the same content. Not thread-safe for one state.
 */
#ifndef TN_BASE_SHA256_H
#define TN_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_SHA256_TEXT 65 /* bytes of a digest in hexadecimal digits, the zero included */

struct tn_sha256 {
	uint32_t state[8];
	uint64_t length; /* bytes taken */
	unsigned char block[64];
};

void tn__sha256_begin(struct tn_sha256 *sha);
void tn__sha256_add(struct tn_sha256 *sha, const void *bytes, size_t size);
/* A text with the zero behind it, so that "ab", "c" is not "a", "bc". NULL is a text of its own. */
void tn__sha256_add_text(struct tn_sha256 *sha, const char *text);
/* Adds what is in a file; false where it cannot be read. */
bool tn__sha256_add_file(struct tn_sha256 *sha, const char *path);
/* Ends it. */
void tn__sha256_end(struct tn_sha256 *sha, char text[TN_SHA256_TEXT]);

#endif
