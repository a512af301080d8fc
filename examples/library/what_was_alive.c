/* SPDX-License-Identifier: Apache-2.0
 *
 * What held the memory at the peak of a PyTorch memory snapshot, and the smallest GPU that it would fit.
 *
 *     cc what_was_alive.c $(pkg-config --cflags --libs tonnage) -o what_was_alive
 *     ./what_was_alive snapshot.pickle
 */
#include <stdio.h>

#include <tonnage/tonnage.h>

#define MIB (1024.0 * 1024.0)

static void
print_moment(const struct tn_memory_moment *moment)
{
	printf("peak: %.1f MiB reserved, %.1f MiB allocated\n", (double)moment->reserved / MIB,
	       (double)moment->allocated / MIB);
	for (size_t i = 0; i < moment->category_count; i++)
		printf("  %-16s %10.1f MiB\n", moment->categories[i].category, (double)moment->categories[i].bytes / MIB);
	for (size_t i = 0; i < moment->use_count && i < 5; i++) {
		const struct tn_use *use = &moment->uses[i];
		printf("  %s:%lld %s, %zu blocks, %.1f MiB\n", use->file != NULL ? use->file : "unknown", (long long)use->line,
		       use->category, use->blocks, (double)use->bytes / MIB);
	}
}

int
main(int argc, char **argv)
{
	struct tn_snapshot *snapshot = NULL;
	struct tn_memory *memory = NULL;
	const struct tn_memory_moment *peak = NULL;
	struct tn_card card;
	if (argc != 2) {
		fprintf(stderr, "usage: %s SNAPSHOT\n", argv[0]);
		return 2;
	}
	tn_status status = tn_snapshot_open(argv[1], NULL, &snapshot);
	if (status == TN_OK)
		status = tn_memory_open(snapshot, 0, &memory);
	if (status == TN_OK)
		status = tn_memory_at(memory, TN_AT_PEAK, 0, &peak);
	if (status == TN_OK) {
		print_moment(peak);
		if (tn_card_smallest(peak->reserved, &card) == TN_OK)
			printf("fits %s (%.1f GiB)\n", card.name, (double)card.total_bytes / MIB / 1024);
	} else {
		fprintf(stderr, "%s: %s\n", argv[1], tn_error_text());
	}
	tn_memory_moment_free(peak);
	tn_memory_close(memory);
	tn_snapshot_close(snapshot);
	return status == TN_OK ? 0 : 1;
}
