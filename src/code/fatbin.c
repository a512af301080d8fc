/* SPDX-License-Identifier: Apache-2.0
 *
 * The container: a header, then entries one after the other, each with a header of its own.
 */
#include "code/code.h"

#include <limits.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "code/cubin.h"
#include "code/fatbin_layout.h"

#define ELF_MAGIC UINT32_C(0x464c457f)
#define FLAG_LZ4 UINT64_C(0x2000)
#define FLAG_ZSTD UINT64_C(0x8000)
#define PLAIN_MAX (UINT64_C(256) << 20) /* the largest cubin of torch 2.15.0 has 22 MiB */

/* Copies a header out of [*at, end) and steps to what follows it. */
static tn_status
read_entry(const uint8_t **at, const uint8_t *end, struct fatbin_entry *out)
{
	size_t left = (size_t)(end - *at);
	TN_RETURN_IF(left < sizeof(*out), TN_FORMAT, "a fat binary ends within an entry");
	memcpy(out, *at, sizeof(*out));
	TN_RETURN_IF(out->bytes < sizeof(*out) || out->bytes > left || out->padded > left - out->bytes ||
	                 out->packed > out->padded,
	             TN_FORMAT, "an entry of a fat binary is longer than its container");
	*at += out->bytes;
	return TN_OK;
}

static tn_status
unpack(const struct fatbin_entry *entry, const uint8_t *payload, uint8_t *plain)
{
	size_t got;
	if (entry->flags & FLAG_ZSTD) {
		got = ZSTD_decompress(plain, entry->plain, payload, entry->packed);
		TN_RETURN_IF(ZSTD_isError(got), TN_FORMAT, "a cubin cannot be unpacked: %s", ZSTD_getErrorName(got));
	} else {
		TN_RETURN_IF(entry->packed > INT_MAX, TN_FORMAT, "a cubin is too large to unpack");
		int bytes = LZ4_decompress_safe((const char *)payload, (char *)plain, (int)entry->packed, (int)entry->plain);
		got = bytes < 0 ? 0 : (size_t)bytes;
	}
	TN_RETURN_IF(got != entry->plain, TN_FORMAT, "a cubin does not unpack to the size that its entry says");
	return TN_OK;
}

static tn_status
open_entry(const struct fatbin_entry *entry, const uint8_t *payload, struct tn_code **out)
{
	bool packed = entry->flags & (FLAG_ZSTD | FLAG_LZ4);
	uint64_t bytes = packed ? entry->plain : entry->padded;
	TN_RETURN_IF(bytes == 0 || bytes > PLAIN_MAX, TN_FORMAT, "a cubin of %llu bytes", (unsigned long long)bytes);
	uint8_t *plain = malloc(bytes);
	TN_RETURN_IF(!plain, TN_NO_MEMORY, "no memory for a cubin of %llu bytes", (unsigned long long)bytes);
	tn_status status = TN_OK;
	if (packed)
		status = unpack(entry, payload, plain);
	else
		memcpy(plain, payload, bytes);
	if (status == TN_OK)
		return tn__cubin_open(plain, bytes, out);
	free(plain);
	return status;
}

static tn_status
open_fatbin(const void *image, size_t room, struct tn_code **out)
{
	struct fatbin_header header;
	TN_RETURN_IF(room < sizeof(header), TN_FORMAT, "a fat binary ends within its header");
	memcpy(&header, image, sizeof(header));
	TN_RETURN_IF(header.bytes < sizeof(header), TN_FORMAT, "a fat binary whose header is too short");
	TN_RETURN_IF(header.bytes > room || header.entries_bytes > room - header.bytes, TN_FORMAT,
	             "a fat binary is shorter than its header says");
	const uint8_t *at = (const uint8_t *)image + header.bytes, *end = at + header.entries_bytes;
	while (at < end) {
		struct fatbin_entry entry;
		TN_FORWARD_IF_ERROR(read_entry(&at, end, &entry));
		if (entry.kind == FATBIN_KIND_CUBIN)
			return open_entry(&entry, at, out);
		at += entry.padded;
	}
	return tn__fail(TN_FORMAT, "a fat binary without a cubin");
}

static tn_status
open_cubin(const void *image, size_t room, struct tn_code **out)
{
	size_t bytes = tn__cubin_size(image, room);
	TN_RETURN_IF(bytes == 0 || bytes > PLAIN_MAX, TN_FORMAT, "a cubin in another layout");
	uint8_t *copy = malloc(bytes);
	TN_RETURN_IF(!copy, TN_NO_MEMORY, "no memory for a cubin of %zu bytes", bytes);
	memcpy(copy, image, bytes);
	return tn__cubin_open(copy, bytes, out);
}

tn_status
tn__code_open(const void *image, size_t room, struct tn_code **out)
{
	uint32_t magic = 0;
	if (room >= sizeof(magic)) /* byte by byte: a text may be shorter */
		for (size_t i = 0; i < sizeof(magic) && (i == 0 || magic); i++)
			magic |= (uint32_t)((const uint8_t *)image)[i] << 8 * i;
	if (magic == FATBIN_MAGIC)
		return open_fatbin(image, room, out);
	if (magic == ELF_MAGIC)
		return open_cubin(image, room, out);
	return tn__fail(TN_FORMAT, "neither a fat binary nor a cubin");
}
