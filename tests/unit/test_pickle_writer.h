/* SPDX-License-Identifier: Apache-2.0
 *
 * A tiny writer of pickles for tests: bytes are appended as they are asked for, with no check.
 */
#ifndef TEST_PICKLE_WRITER_H
#define TEST_PICKLE_WRITER_H

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

struct writer {
	uint8_t bytes[1 << 16];
	size_t size;
};

static inline void
put_bytes(struct writer *writer, const void *bytes, size_t count)
{
	assert(writer->size + count <= sizeof(writer->bytes));
	memcpy(writer->bytes + writer->size, bytes, count);
	writer->size += count;
}

/* Opcodes without arguments, one character each. */
static inline void
put_ops(struct writer *writer, const char *opcodes)
{
	put_bytes(writer, opcodes, strlen(opcodes));
}

static inline void
put_start(struct writer *writer)
{
	writer->size = 0;
	put_bytes(writer, "\x80\x04", 2);
}

static inline void
put_text(struct writer *writer, const char *text)
{
	uint8_t head[2] = { 0x8c, (uint8_t)strlen(text) };
	put_bytes(writer, head, 2);
	put_bytes(writer, text, strlen(text));
}

/* A dict of "segments": an empty list, and "mine": a list that stays open. */
static inline void
put_start_of_list(struct writer *writer)
{
	put_start(writer);
	put_ops(writer, "}(");
	put_text(writer, "segments");
	put_ops(writer, "]");
	put_text(writer, "mine");
	put_ops(writer, "](");
}

static inline void
put_int(struct writer *writer, int64_t number)
{
	put_bytes(writer, "\x8a\x08", 2);
	put_bytes(writer, &number, 8);
}

/* An opcode and an argument of 4 bytes. */
static inline void
put_with(struct writer *writer, char opcode, uint32_t argument)
{
	put_bytes(writer, &opcode, 1);
	put_bytes(writer, &argument, 4);
}

/* A text and an integer, for the inside of a dict. */
static inline void
put_pair(struct writer *writer, const char *key, int64_t number)
{
	put_text(writer, key);
	put_int(writer, number);
}

static inline void
put_text_pair(struct writer *writer, const char *key, const char *text)
{
	put_text(writer, key);
	put_text(writer, text);
}

/* A dict {name, filename, line}, memoised as entry `memo`. */
static inline void
put_frame(struct writer *writer, const char *name, const char *file, int line, uint32_t memo)
{
	put_ops(writer, "}");
	put_with(writer, 'r', memo);
	put_ops(writer, "(");
	put_text_pair(writer, "name", name);
	put_text_pair(writer, "filename", file);
	put_pair(writer, "line", line);
	put_ops(writer, "u");
}

#endif
