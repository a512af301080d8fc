/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target of the metadata: any text beside a small snapshot ends in a status, or in moments whose parts add up.
 *
 * With clang's libFuzzer this is the target; built without it (TN_FUZZ_REPLAY) a program that replays the files named.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/unit/test_analyze_at.h"
#include "../tests/unit/test_analyze_writer.h"
#include "analyze/moment.h"

enum { LONGEST = 32 << 10, BASE = 1 << 20 };

/* Three blocks of a forward, one freed again, and two of a backward that has no stacks; the first event is at 1000 us. */
static void
make_snapshot(const uint8_t *metadata, size_t length)
{
	open_snapshot();
	open_trace();
	event("segment_alloc", BASE, 2 * MIB, "");
	alloc(BASE, 512, "TmCCt");
	alloc(BASE + 512, 1024, "TnCCt");
	alloc(BASE + 2048, 1024, "Ot");
	release(BASE + 512, 1024, "TnCCt");
	alloc(BASE + 512, 512, "");
	alloc(BASE + 1024, 512, "");
	event("oom", 5, 4 * MIB, "");
	close_trace();
	open_segments();
	open_segment(BASE, 2 * MIB, false);
	live(BASE, 512, 512, "TmCCt");
	live(BASE + 512, 512, 512, "");
	live(BASE + 1024, 512, 512, "");
	live(BASE + 2048, 1024, 1024, "Ot");
	close_segment();
	close_segments();
	put_metadata((const char *)metadata, length);
	close_snapshot();
}

/* The parts of a moment, and of its holders, are what the allocator holds. */
static void
check(const struct tn_moment *moment)
{
	uint64_t parts = 0, held = 0;
	for (int category = 0; category < TN_CATEGORIES; category++)
		parts += moment->by_category[category];
	for (size_t index = 0; index < moment->holder_count; index++) {
		held += moment->holders[index].bytes;
		if (moment->holders[index].label && strlen(moment->holders[index].label) > LONGEST)
			abort();
	}
	if (parts != moment->reserved || held != moment->requested || moment->named_bytes > moment->requested)
		abort();
}

static void
analyse(const struct tn_snapshot *snapshot)
{
	struct tn_moment peak, end;
	struct tn_holding *holdings;
	size_t count;
	tn_status status = peak_of_snapshot(snapshot, 0, TN_UNKNOWN, &peak);
	if (status == TN_OK) {
		check(&peak);
		tn__moment_free(&peak);
	}
	if (end_of_snapshot(snapshot, 0, &end) != status)
		abort();
	if (status == TN_OK) {
		check(&end);
		tn__moment_free(&end);
	}
	if (growth_of_snapshot(snapshot, 0, &holdings, &count) != status)
		abort();
	if (status == TN_OK)
		free(holdings);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct tn_snapshot *snapshot;
	make_snapshot(bytes, size < LONGEST ? size : LONGEST);
	if (tn_snapshot_parse(writer.bytes, writer.size, NULL, &snapshot) != TN_OK)
		abort();
	analyse(snapshot);
	tn_snapshot_close(snapshot);
	return 0;
}

#ifdef TN_FUZZ_REPLAY
static int
replay(const char *path)
{
	static uint8_t bytes[LONGEST];
	FILE *file = fopen(path, "rb");
	if (!file)
		return 1;
	size_t size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, size);
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
