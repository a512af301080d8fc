/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target of the snapshot reader, compressed input included: any bytes end in a status, within the limits, with the
 * same result from memory as from a source that gives a few bytes at a time.
 *
 * With clang's libFuzzer this is the target; built without it (TN_FUZZ_REPLAY) a program that replays the files named.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tonnage/snapshot.h"

enum { PIECE = 13, MEMORY_BYTES = 64 << 20 };

struct pieces {
	const uint8_t *at;
	size_t left;
};

static tn_status
give_piece(void *context, void *buffer, size_t size, size_t *got)
{
	struct pieces *pieces = context;
	*got = pieces->left < PIECE ? pieces->left : PIECE;
	if (*got > size)
		*got = size;
	if (*got)
		memcpy(buffer, pieces->at, *got);
	pieces->at += *got;
	pieces->left -= *got;
	return TN_OK;
}

/* Touches everything that a snapshot hands out. */
static uint64_t
walk(const struct tn_snapshot *snapshot)
{
	uint64_t sum = 0;
	size_t trace, index;
	struct tn_holder *holders;
	size_t count;
	for (tn_stack stack = 0; stack < tn_snapshot_stacks(snapshot); stack++) {
		const uint32_t *frames;
		size_t depth = tn_snapshot_stack(snapshot, stack, &frames);
		for (size_t at = 0; at < depth; at++)
			sum += strlen(tn_snapshot_frame(snapshot, frames[at]).file);
	}
	for (trace = 0; trace < tn_snapshot_traces(snapshot); trace++) {
		for (index = 0; index < tn_snapshot_events(snapshot, trace); index++)
			sum += tn_snapshot_event(snapshot, trace, index).size;
	}
	const struct tn_annotation *annotations;
	const struct tn_setting *settings;
	for (index = 0; index < tn_snapshot_annotations(snapshot, &annotations); index++)
		sum += strlen(annotations[index].name);
	for (index = 0; index < tn_snapshot_settings(snapshot, &settings); index++)
		sum += strlen(settings[index].name);
	if (tn_snapshot_out_of_memory(snapshot, TN_ALL_DEVICES, &trace, &index))
		sum += tn_snapshot_event(snapshot, trace, index).size;
	if (tn_snapshot_holders(snapshot, TN_ALL_DEVICES, &holders, &count) == TN_OK) {
		sum += count ? holders[0].bytes : 0;
		free(holders);
	}
	return sum + tn_snapshot_sum(snapshot, TN_ALL_DEVICES).reserved;
}

/* Limits of memory are met at other places in pieces; and compressed bytes that are corrupt are met before or after what
 * is wrong in the plain ones. */
static bool
agree(tn_status first, tn_status second, bool plain)
{
	if (first == TN_LIMIT || second == TN_LIMIT)
		return true;
	return plain ? first == second : (first == TN_OK) == (second == TN_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct tn_snapshot_options options = tn_snapshot_defaults();
	struct tn_snapshot *whole = NULL, *piecewise = NULL;
	struct pieces pieces = { bytes, size };
	options.memory_bytes = MEMORY_BYTES;
	tn_status first = tn_snapshot_parse(bytes, size, &options, &whole);
	tn_status second = tn_snapshot_read(give_piece, &pieces, &options, &piecewise);
	if (!agree(first, second, size && bytes[0] == 0x80))
		abort();
	if (first == TN_OK && second == TN_OK && walk(whole) != walk(piecewise))
		abort();
	tn_snapshot_close(whole);
	tn_snapshot_close(piecewise);
	return 0;
}

#ifdef TN_FUZZ_REPLAY
static int
replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return 1;
	uint8_t *bytes = malloc(64 << 20);
	size_t size = bytes ? fread(bytes, 1, 64 << 20, file) : 0;
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, size);
	free(bytes);
	return 0;
}

int
main(int count, char **arguments)
{
	int failed = 0;
	for (int index = 1; index < count; index++)
		failed |= replay(arguments[index]);
	return failed;
}
#endif
