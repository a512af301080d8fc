/* SPDX-License-Identifier: Apache-2.0
 *
 * One line on a terminal while the program runs. It is short, begins at the left edge and is erased at the end. Where
 * the program's words go to a terminal as well, they would be written behind it: there it is only shown while the
 * program imports and builds.
 */
#include "supervise/internal.h"

#include "report/report.h"

#define EVERY_SECONDS 0.5

void
tn__progress_show(struct tn_progress *progress, const struct tn_ledger *ledger, double seconds, bool compiling)
{
	char peak[32];
	uint64_t most = 0;
	if (progress->shared && !compiling && (ledger->launches > 0 || ledger->guest.steps > 0)) {
		tn__progress_erase(progress);
		return;
	}
	if (progress->out == NULL || seconds - progress->last < EVERY_SECONDS)
		return;
	progress->last = seconds;
	for (uint32_t i = 0; i < ledger->device_count && i < TN_MAX_DEVICES; i++)
		if (ledger->devices[i].peak_used_bytes > most)
			most = ledger->devices[i].peak_used_bytes;
	if (most == 0)
		most = ledger->guest.reserved_peak;
	fprintf(progress->out, "\r\033[Ktonnage: step %llu, peak %s, %.0f s%s", (unsigned long long)ledger->guest.steps,
	        tn__human_bytes((int64_t)most, peak), seconds, compiling ? ", compiling (the time limit waits)" : "");
	fflush(progress->out);
	progress->shown = true;
}

void
tn__progress_erase(struct tn_progress *progress)
{
	if (progress->out == NULL || !progress->shown)
		return;
	fputs("\r\033[K", progress->out);
	fflush(progress->out);
	progress->shown = false;
}
