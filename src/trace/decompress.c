/* SPDX-License-Identifier: Apache-2.0
 *
 * zlib and libzstd behind one source. Both take what the cursor over the packed bytes has at hand and give what fits
 * the buffer; neither sees the whole of anything.
 */
#include "trace/decompress.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/error.h"

enum {
	GZIP_ONLY = 16 + MAX_WBITS, /* zlib: neither its own format nor raw deflate */
	SMALLEST_WINDOW = 10,       /* of zstd, as a power of two */
	LARGEST_WINDOW = 31,
	GZIP_STATE = 64 << 10, /* more than zlib takes */
	REST_PIECE = 16 << 10,
};

struct tn_unpacker {
	struct tn_cursor *packed;
	struct tn_budget *budget;
	const char *name;
	ZSTD_DCtx *zstd; /* NULL: gzip */
	z_stream gzip;
	uint32_t ratio;
	uint64_t charged; /* to the budget */
	uint64_t given;   /* plain bytes */
	bool between;     /* no frame or member is open */
	char failure[200];
};

/* ---- recognising ---- */

const char *
tn__packed_with(const struct tn_cursor *cursor)
{
	static const struct {
		const char *start, *name;
		size_t length;
	} packings[] = {
		{ "\x1f\x8b", "gzip", 2 },
		{ "\x28\xb5\x2f\xfd", "zstd", 4 },
	};
	for (size_t index = 0; index < sizeof(packings) / sizeof(packings[0]); index++) {
		if (tn__cursor_left(cursor) >= packings[index].length &&
		    memcmp(cursor->at, packings[index].start, packings[index].length) == 0)
			return packings[index].name;
	}
	/* A frame of zstd that is skipped, sixteen kinds: an index may come first. */
	bool skipped = tn__cursor_left(cursor) >= 4 && (cursor->at[0] & 0xf0) == 0x50 &&
	               memcmp(cursor->at + 1, "\x2a\x4d\x18", 3) == 0;
	return skipped ? "zstd" : NULL;
}

/* ---- beginning and ending ---- */

/* The largest window, as a power of two, that the budget allows. */
static int
window_of(const struct tn_budget *budget)
{
	int window = SMALLEST_WINDOW;
	while (window < LARGEST_WINDOW && (uint64_t)2 << window <= budget->limit / TN_UNPACK_WINDOW)
		window++;
	return window;
}

static tn_status
charge(struct tn_unpacker *unpacker, uint64_t bytes)
{
	struct tn_budget *budget = unpacker->budget;
	TN_RETURN_IF(budget->limit - budget->used < bytes, TN_LIMIT, "more than %llu bytes of memory would be needed",
	             (unsigned long long)budget->limit);
	budget->used += bytes;
	unpacker->charged = bytes;
	return TN_OK;
}

static tn_status
begin_zstd(struct tn_unpacker *unpacker)
{
	int window = window_of(unpacker->budget);
	TN_FORWARD_IF_ERROR(charge(unpacker, (uint64_t)1 << window));
	unpacker->zstd = ZSTD_createDCtx();
	TN_RETURN_IF(!unpacker->zstd, TN_NO_MEMORY, "no host memory for decompression");
	ZSTD_DCtx_setParameter(unpacker->zstd, ZSTD_d_windowLogMax, window);
	return TN_OK;
}

static tn_status
begin_gzip(struct tn_unpacker *unpacker)
{
	TN_FORWARD_IF_ERROR(charge(unpacker, GZIP_STATE));
	TN_RETURN_IF(inflateInit2(&unpacker->gzip, GZIP_ONLY) != Z_OK, TN_NO_MEMORY, "no host memory for decompression");
	return TN_OK;
}

tn_status
tn__unpacker_new(struct tn_cursor *packed, struct tn_budget *budget, uint32_t ratio, struct tn_unpacker **unpacker)
{
	struct tn_unpacker *fresh = calloc(1, sizeof(*fresh));
	TN_RETURN_IF(!fresh, TN_NO_MEMORY, "no host memory for decompression");
	fresh->packed = packed;
	fresh->budget = budget;
	fresh->ratio = ratio ? ratio : TN_UNPACK_RATIO;
	fresh->between = true;
	fresh->name = tn__packed_with(packed);
	bool zstd = fresh->name && strcmp(fresh->name, "zstd") == 0;
	tn_status status = zstd ? begin_zstd(fresh) : begin_gzip(fresh);
	if (status == TN_OK)
		*unpacker = fresh;
	else
		tn__unpacker_free(fresh);
	return status;
}

void
tn__unpacker_free(struct tn_unpacker *unpacker)
{
	if (!unpacker)
		return;
	ZSTD_freeDCtx(unpacker->zstd);
	if (unpacker->gzip.state)
		inflateEnd(&unpacker->gzip);
	unpacker->budget->used -= unpacker->charged;
	free(unpacker);
}

/* ---- reading ---- */

static tn_status
corrupt(const struct tn_unpacker *unpacker, const char *why)
{
	return tn__fail(TN_FORMAT, "the %s data is corrupt, at byte %llu of the file: %s", unpacker->name,
	                (unsigned long long)tn__cursor_offset(unpacker->packed), why);
}

static tn_status
zstd_failed(const struct tn_unpacker *unpacker, size_t result)
{
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_memory_allocation:
		return tn__fail(TN_NO_MEMORY, "no host memory for decompression");
	case ZSTD_error_frameParameter_windowTooLarge:
		return tn__fail(TN_LIMIT, "the zstd data wants a window of more than %llu bytes, at byte %llu of the file",
		                (unsigned long long)1 << window_of(unpacker->budget),
		                (unsigned long long)tn__cursor_offset(unpacker->packed));
	default:
		return corrupt(unpacker, ZSTD_getErrorName(result));
	}
}

static tn_status
zstd_step(struct tn_unpacker *unpacker, void *buffer, size_t size, size_t *got)
{
	ZSTD_inBuffer in = { unpacker->packed->at, tn__cursor_left(unpacker->packed), 0 };
	ZSTD_outBuffer out = { buffer, size, 0 };
	size_t result = ZSTD_decompressStream(unpacker->zstd, &out, &in);
	unpacker->packed->at += in.pos;
	if (ZSTD_isError(result))
		return zstd_failed(unpacker, result);
	unpacker->between = result == 0;
	*got = out.pos;
	return TN_OK;
}

static uInt
at_most(size_t size)
{
	return size > INT_MAX ? INT_MAX : (uInt)size;
}

static tn_status
gzip_step(struct tn_unpacker *unpacker, void *buffer, size_t size, size_t *got)
{
	z_stream *gzip = &unpacker->gzip;
	struct tn_cursor *packed = unpacker->packed;
	gzip->next_in = (Bytef *)packed->at; /* zlib only reads it */
	gzip->avail_in = at_most(tn__cursor_left(packed));
	gzip->next_out = buffer;
	gzip->avail_out = at_most(size);
	unpacker->between = false;
	int result = inflate(gzip, Z_NO_FLUSH);
	packed->at = gzip->next_in;
	*got = (size_t)(gzip->next_out - (Bytef *)buffer);
	TN_RETURN_IF(result == Z_MEM_ERROR, TN_NO_MEMORY, "no host memory for decompression");
	if (result == Z_STREAM_END) {
		unpacker->between = true;
		inflateReset(gzip);
	} else if (result != Z_OK && result != Z_BUF_ERROR) {
		return corrupt(unpacker, gzip->msg ? gzip->msg : "no gzip data");
	}
	return TN_OK;
}

/* Whether there is more to read. Files of gzip may be padded by zeros. */
static tn_status
has_more(struct tn_unpacker *unpacker, bool *more)
{
	struct tn_cursor *packed = unpacker->packed;
	do {
		TN_FORWARD_IF_ERROR(tn__cursor_fill(packed, 1));
		while (unpacker->between && !unpacker->zstd && packed->at < packed->end && *packed->at == 0)
			packed->at++;
	} while (packed->at == packed->end && packed->source);
	*more = packed->at < packed->end || !unpacker->between;
	return TN_OK;
}

static tn_status
check_ratio(const struct tn_unpacker *unpacker)
{
	uint64_t taken = tn__cursor_offset(unpacker->packed);
	TN_RETURN_IF(unpacker->given > TN_UNPACK_FREE && unpacker->given / unpacker->ratio > taken, TN_LIMIT,
	             "the first %llu bytes of the file decompress to more than %u times their size",
	             (unsigned long long)taken, unpacker->ratio);
	return TN_OK;
}

static tn_status
unpack(struct tn_unpacker *unpacker, void *buffer, size_t size, size_t *got)
{
	bool more = true;
	*got = 0;
	while (*got == 0 && size != 0) {
		TN_FORWARD_IF_ERROR(has_more(unpacker, &more));
		if (!more)
			return TN_OK;
		bool input = tn__cursor_left(unpacker->packed) != 0;
		TN_FORWARD_IF_ERROR((unpacker->zstd ? zstd_step : gzip_step)(unpacker, buffer, size, got));
		TN_RETURN_IF(!input && *got == 0 && !unpacker->between, TN_FORMAT,
		             "the %s data ends in the middle, at byte %llu of the file", unpacker->name,
		             (unsigned long long)tn__cursor_offset(unpacker->packed));
	}
	unpacker->given += *got;
	return check_ratio(unpacker);
}

tn_status
tn__unpack(void *context, void *buffer, size_t size, size_t *got)
{
	struct tn_unpacker *unpacker = context;
	tn_status status = unpack(unpacker, buffer, size, got);
	if (status != TN_OK)
		snprintf(unpacker->failure, sizeof(unpacker->failure), "%s", tn_error_text());
	return status;
}

const char *
tn__unpack_failure(const struct tn_unpacker *unpacker)
{
	return unpacker->failure[0] ? unpacker->failure : NULL;
}

tn_status
tn__unpack_rest(struct tn_unpacker *unpacker)
{
	char piece[REST_PIECE];
	size_t got = 1;
	for (uint64_t total = 0; got != 0 && total < TN_UNPACK_REST; total += got)
		TN_FORWARD_IF_ERROR(tn__unpack(unpacker, piece, sizeof(piece), &got));
	return TN_OK;
}
