/* SPDX-License-Identifier: Apache-2.0
 *
 * The computer's memory: nothing known, and sums. Must not know the model (host_reader.c and host_judge.c do).
 */
#include "verdict/host.h"

#include "base/figure.h"

void
tn__host_init(struct tn_host *host)
{
	*host = (struct tn_host){
		.limit = TN_NO_FIGURE, .peak = TN_NO_FIGURE, .highest = TN_NO_FIGURE, .over = TN_NO_FIGURE
	};
}

const char *
tn__host_kind_text(enum tn_host_kind kind)
{
	static const char *const texts[] = { "program", "rank", "loader_worker", "other" };
	return texts[kind];
}

int64_t
tn__host_ahead_bytes(const struct tn_host_loader *loader)
{
	if (loader->workers <= 0 || loader->ahead <= 0 || loader->batch_bytes <= 0)
		return 0;
	return loader->workers * loader->ahead * loader->batch_bytes;
}

int64_t
tn__host_of_kind(const struct tn_host *host, enum tn_host_kind kind, int64_t *count)
{
	int64_t sum = 0;
	*count = 0;
	for (size_t i = 0; i < host->at_peak.process_count; i++)
		if (host->at_peak.processes[i].kind == kind) {
			sum += host->at_peak.processes[i].anonymous;
			++*count;
		}
	return sum;
}
