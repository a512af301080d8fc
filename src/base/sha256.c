/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256, as FIPS 180-4 has it.
 */
#include "base/sha256.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t
turned(uint32_t word, int bits)
{
	return word >> bits | word << (32 - bits);
}

static void
take_block(struct tn_sha256 *sha)
{
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)sha->block[4 * i] << 24 | (uint32_t)sha->block[4 * i + 1] << 16 |
		       (uint32_t)sha->block[4 * i + 2] << 8 | sha->block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
	memcpy(s, sha->state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t e = turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25);
		uint32_t one = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
		uint32_t a = turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22);
		uint32_t two = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		sha->state[i] += s[i];
}

void
tn__sha256_begin(struct tn_sha256 *sha)
{
	*sha = (struct tn_sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
		                                  0x1f83d9ab, 0x5be0cd19 } };
}

void
tn__sha256_add(struct tn_sha256 *sha, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	while (size > 0) {
		size_t used = sha->length % 64, part = 64 - used < size ? 64 - used : size;
		memcpy(sha->block + used, from, part);
		from += part;
		size -= part;
		sha->length += part;
		if (used + part == 64)
			take_block(sha);
	}
}

void
tn__sha256_add_text(struct tn_sha256 *sha, const char *text)
{
	tn__sha256_add(sha, text != NULL ? "=" : "-", 1);
	if (text != NULL)
		tn__sha256_add(sha, text, strlen(text) + 1);
}

bool
tn__sha256_add_file(struct tn_sha256 *sha, const char *path)
{
	char buffer[1 << 14];
	ssize_t length;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return false;
	while ((length = read(file, buffer, sizeof(buffer))) > 0)
		tn__sha256_add(sha, buffer, (size_t)length);
	close(file);
	return length == 0;
}

void
tn__sha256_end(struct tn_sha256 *sha, char text[TN_SHA256_TEXT])
{
	uint64_t bits = sha->length * 8;
	unsigned char length[8];
	tn__sha256_add(sha, "\x80", 1);
	while (sha->length % 64 != 56)
		tn__sha256_add(sha, "", 1);
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	tn__sha256_add(sha, length, sizeof(length));
	for (int i = 0; i < 8; i++)
		snprintf(text + 8 * (size_t)i, 9, "%08x", sha->state[i]);
}
