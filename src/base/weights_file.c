/* SPDX-License-Identifier: Apache-2.0
 *
 * Where tensors lie in files of weights. Must not know who asks, nor how files are read.
 */
#include "base/weights_file.h"

#include <string.h>

/* ---- safetensors ---- */

struct cursor {
	const char *at, *end;
};

static void
skip_space(struct cursor *text)
{
	while (text->at < text->end && (*text->at == ' ' || *text->at == '\t' || *text->at == '\n' || *text->at == '\r'))
		text->at++;
}

static bool
take(struct cursor *text, char wanted)
{
	skip_space(text);
	if (text->at == text->end || *text->at != wanted)
		return false;
	text->at++;
	return true;
}

/* A string; *begin is what stands between its quotes, as it was written. */
static bool
take_string(struct cursor *text, const char **begin, size_t *length)
{
	if (!take(text, '"'))
		return false;
	*begin = text->at;
	for (; text->at < text->end; text->at++) {
		if (*text->at == '"') {
			*length = (size_t)(text->at++ - *begin);
			return true;
		}
		if (*text->at == '\\' && ++text->at == text->end)
			return false;
	}
	return false;
}

/* A whole number that fits into 63 bits. */
static bool
take_number(struct cursor *text, uint64_t *number)
{
	skip_space(text);
	const char *begin = text->at;
	for (*number = 0; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
		if (*number > (INT64_MAX - 9) / 10)
			return false;
		*number = *number * 10 + (uint64_t)(*text->at - '0');
	}
	return text->at > begin;
}

/* Any value. Brackets are counted, not matched: this is no check of the format. */
static bool
skip_value(struct cursor *text)
{
	size_t depth = 0, length;
	const char *begin;

	do {
		skip_space(text);
		if (text->at == text->end)
			return false;
		if (*text->at == '"') {
			if (!take_string(text, &begin, &length))
				return false;
			continue;
		}
		if ((*text->at == ',' || *text->at == '}' || *text->at == ']') && depth == 0)
			return false;
		if (*text->at == '{' || *text->at == '[')
			depth++;
		else if (*text->at == '}' || *text->at == ']')
			depth--;
		else if (depth == 0) { /* a number or a word */
			while (text->at < text->end && !strchr(",}] \t\r\n", *text->at))
				text->at++;
			return true;
		}
		text->at++;
	} while (depth);
	return true;
}

/* A tensor's object. Without offsets it is none. */
static bool
take_tensor(struct cursor *text, uint64_t *begin, uint64_t *end)
{
	const char *name;
	size_t length;
	bool found = false;

	if (!take(text, '{'))
		return false;
	do {
		if (!take_string(text, &name, &length) || !take(text, ':'))
			return false;
		if (length == 12 && !memcmp(name, "data_offsets", 12)) {
			if (!take(text, '[') || !take_number(text, begin) || !take(text, ',') || !take_number(text, end) ||
			    !take(text, ']') || *begin > *end)
				return false;
			found = true;
		} else if (!skip_value(text)) {
			return false;
		}
	} while (take(text, ','));
	return take(text, '}') && found;
}

bool
tn__safetensors_scan(const char *header, size_t size, uint64_t start, tn__tensor_bytes *each, void *context,
                     uint64_t *end)
{
	struct cursor text = { header, header + size };
	const char *name;
	size_t length;

	*end = start;
	if (start > INT64_MAX / 2 || !take(&text, '{'))
		return false;
	if (take(&text, '}'))
		return true;
	do {
		uint64_t first, last;
		if (!take_string(&text, &name, &length) || !take(&text, ':'))
			return false;
		if (length == 12 && !memcmp(name, "__metadata__", 12)) {
			if (!skip_value(&text))
				return false;
			continue;
		}
		if (!take_tensor(&text, &first, &last) || last > INT64_MAX / 2)
			return false;
		if (start + last > *end)
			*end = start + last;
		if (each)
			each(context, start + first, start + last);
	} while (take(&text, ','));
	return take(&text, '}');
}

/* ---- PyTorch's zip archives ---- */

#define END_BYTES 22u     /* of the record that ends an archive, without its comment */
#define LOCATOR_BYTES 20u /* of what leads to the 64-bit form of it, just before */
#define ENTRY_BYTES 46u   /* of an entry of the central directory, without names */
#define LOCAL_BYTES 30u   /* of the header before an entry's bytes */
#define NONE_32 0xffffffffu
#define LONGEST_NAME 512u

static uint64_t
little(const unsigned char *at, unsigned bytes)
{
	uint64_t value = 0;
	while (bytes-- > 0)
		value = value << 8 | at[bytes];
	return value;
}

struct directory {
	uint64_t at, size, entries;
};

/* torch.save writes no comment: the record is the file's end. */
static bool
find_directory(uint64_t length, tn__read_at *read, void *reader, struct directory *out)
{
	unsigned char end[END_BYTES], locator[LOCATOR_BYTES], wide[56];

	if (length < END_BYTES || !read(reader, length - END_BYTES, end, END_BYTES) || little(end, 4) != 0x06054b50)
		return false;
	*out = (struct directory){ little(end + 16, 4), little(end + 12, 4), little(end + 10, 2) };
	if (length < END_BYTES + LOCATOR_BYTES + sizeof(wide))
		return true;
	if (!read(reader, length - END_BYTES - LOCATOR_BYTES, locator, LOCATOR_BYTES))
		return false;
	if (little(locator, 4) != 0x07064b50)
		return true;
	uint64_t at = little(locator + 8, 8);
	if (at > length - sizeof(wide) || !read(reader, at, wide, sizeof(wide)) || little(wide, 4) != 0x06064b50)
		return false;
	*out = (struct directory){ little(wide + 48, 8), little(wide + 40, 8), little(wide + 32, 8) };
	return true;
}

/* The 64-bit figures of an entry, where its 32-bit ones say that they are elsewhere: in this order, only those. */
static bool
take_wide(const unsigned char *extra, size_t size, bool size_is_wide, bool packed_is_wide, uint64_t *bytes,
          uint64_t *at)
{
	while (size >= 4) {
		size_t length = (size_t)little(extra + 2, 2);
		const unsigned char *value = extra + 4;
		if (length + 4 > size)
			return false;
		if (little(extra, 2) == 1) {
			size_t need = 8u * (size_is_wide + packed_is_wide + (*at == NONE_32));
			if (length < need)
				return false;
			if (size_is_wide) {
				*bytes = little(value, 8);
				value += 8;
			}
			if (packed_is_wide)
				value += 8;
			if (*at == NONE_32)
				*at = little(value, 8);
			return true;
		}
		extra += 4 + length;
		size -= 4 + length;
	}
	return !size_is_wide && *at != NONE_32;
}

/* <archive>/data/<key>: the bytes of a storage. */
static bool
is_storage(const char *name, size_t length)
{
	for (size_t i = 1; i + 6 < length; i++)
		if (!memcmp(name + i, "/data/", 6))
			return memchr(name, '/', i) == NULL;
	return false;
}

bool
tn__torch_zip_scan(uint64_t length, tn__read_at *read, void *reader, tn__tensor_bytes *each, void *context)
{
	struct directory directory;
	unsigned char entry[ENTRY_BYTES], rest[LONGEST_NAME], local[LOCAL_BYTES];

	if (length > INT64_MAX / 2 || !find_directory(length, read, reader, &directory) || directory.at > length ||
	    directory.size > length - directory.at)
		return false;
	uint64_t at = directory.at, stop = directory.at + directory.size;
	for (uint64_t i = 0; i < directory.entries; i++) {
		if (stop - at < ENTRY_BYTES || !read(reader, at, entry, ENTRY_BYTES) || little(entry, 4) != 0x02014b50)
			return false;
		size_t name = (size_t)little(entry + 28, 2), extra = (size_t)little(entry + 30, 2);
		uint64_t whole = ENTRY_BYTES + name + extra + little(entry + 32, 2);
		if (whole > stop - at || name + extra > sizeof(rest) || !read(reader, at + ENTRY_BYTES, rest, name + extra))
			return false;
		uint64_t bytes = little(entry + 24, 4), start = little(entry + 42, 4);
		if (!take_wide(rest + name, extra, bytes == NONE_32, little(entry + 20, 4) == NONE_32, &bytes, &start))
			return false;
		at += whole;
		if (little(entry + 10, 2) != 0 || !is_storage((const char *)rest, name))
			continue; /* compressed, or no tensor's */
		if (start > length - LOCAL_BYTES || !read(reader, start, local, LOCAL_BYTES) || little(local, 4) != 0x04034b50)
			return false;
		start += LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
		if (start > length || bytes > length - start)
			return false;
		if (each)
			each(context, start, start + bytes);
	}
	return true;
}
