/* SPDX-License-Identifier: Apache-2.0
 *
 * A run against the computer's memory that --host-memory gives it (doc/design/0036-hosts.md).
 */
#include "verdict/host_judge.h"

#include <stdio.h>
#include <string.h>

#include "verdict/model_fill.h"
#include "verdict/stand_ins.h"

/* Of the parts of a program that memory is known for, the loader that holds most. NULL: none holds any. */
static const struct tn_host_loader *
largest_loader(const struct tn_host *host)
{
	const struct tn_host_loader *most = NULL;
	for (size_t i = 0; i < host->loader_count; i++)
		if (host->loaders[i].workers > 0 &&
		    (most == NULL || tn__host_ahead_bytes(&host->loaders[i]) > tn__host_ahead_bytes(most)))
			most = &host->loaders[i];
	return most;
}

int64_t
tn__host_unfilled(const struct tn_report *report)
{
	int64_t bytes = report->init_skipped_bytes > 0 ? report->init_skipped_bytes : 0;
	for (size_t i = 0; i < report->stand_ins.count; i++)
		if (report->stand_ins.items[i].bytes > 0 && !tn__stand_in_is_data(&report->stand_ins.items[i]))
			bytes += report->stand_ins.items[i].bytes;
	return bytes;
}

void
tn__report_doubt_host(struct tn_report *report)
{
	const struct tn_host *host = &report->host;
	int64_t unfilled = tn__host_unfilled(report);
	char least[32], most[32], limit[32];
	if (host->limit == TN_NO_FIGURE)
		return;
	if (host->peak == TN_NO_FIGURE)
		tn__report_add_doubt(report, TN_FINDING_host_unknown, false, NULL,
		                     "the computer's memory could not be looked at (/proc/PID/smaps_rollup)");
	else if (host->peak <= host->limit && host->peak + unfilled > host->limit)
		tn__report_add_doubt(report, TN_FINDING_host_unknown, false,
		                     "--init real and --weights real fill them, where this computer has the memory",
		                     "the program holds %s to %s of the computer's memory, and %s is given: initial values or "
		                     "weights were left out",
		                     tn__human_bytes(host->peak, least), tn__human_bytes(host->peak + unfilled, most),
		                     tn__human_bytes(host->limit, limit));
}

/* "num_workers=4 instead of 8 saves about 1.10 GiB, prefetch_factor=1 instead of 2 0.80 GiB" */
static void
advise_loader(const struct tn_host *host, const struct tn_host_loader *loader, char *out, size_t room)
{
	int64_t count, own = tn__host_of_kind(host, TN_HOST_WORKER, &count);
	int64_t ahead = tn__host_ahead_bytes(loader), fewer = loader->workers / 2, kept = loader->workers - fewer;
	int64_t each = count > 0 ? own / count + ahead / loader->workers : 0;
	char one[32], two[32];
	int length = 0;
	if (each > 0)
		length = snprintf(out, room, "num_workers=%lld instead of %lld saves about %s", (long long)fewer,
		                  (long long)loader->workers, tn__human_bytes(each * kept, one));
	if (loader->ahead > 1 && ahead > 0 && (size_t)length < room)
		snprintf(out + length, room - (size_t)length, "%sprefetch_factor=1 instead of %lld %sabout %s",
		         length > 0 ? ", " : "", (long long)loader->ahead, length > 0 ? "" : "saves ",
		         tn__human_bytes(ahead - ahead / loader->ahead, two));
}

static void
add_finding(struct tn_report *report)
{
	const struct tn_host *host = &report->host;
	const struct tn_host_loader *loader = largest_loader(host);
	int64_t workers, held = tn__host_of_kind(host, TN_HOST_WORKER, &workers);
	char peak[32], over[32], limit[32], by[160] = "", advice[256] = "", part[32];
	/* A loader that could free a trifle of what lacks is not what is wrong. */
	if (loader != NULL && held + tn__host_ahead_bytes(loader) < host->over / 2)
		loader = NULL;
	if (loader != NULL)
		advise_loader(host, loader, advice, sizeof(advice));
	if (workers > 0)
		snprintf(by, sizeof(by), "; %lld loader worker%s and what they have ready hold %s of it", (long long)workers,
		         workers == 1 ? "" : "s", tn__human_bytes(held + host->at_peak.shared, part));
	else if (host->at_peak.pinned > host->peak / 4)
		snprintf(by, sizeof(by), "; %s of it is pinned", tn__human_bytes(host->at_peak.pinned, part));
	struct tn_finding *finding = tn__report_add_finding(
		report, TN_FINDING_host_ram, host->over, loader != NULL ? loader->at : NULL,
		advice[0] != '\0' ? advice : "data that is read in pieces, and fewer copies of it on the CPU",
		"the program's processes hold %s of the computer's memory at once, %s more than the %s that are given%s",
		tn__human_bytes(host->peak, peak), tn__human_bytes(host->over, over), tn__human_bytes(host->limit, limit), by);
	if (finding != NULL && report->verdict == TN_VERDICT_OVER_HOST_MEMORY)
		tn__report_lead_with(report, finding);
}

void
tn__report_judge_host(struct tn_report *report)
{
	struct tn_host *host = &report->host;
	if (host->limit == TN_NO_FIGURE || host->peak == TN_NO_FIGURE)
		return;
	host->over = host->peak > host->limit ? host->peak - host->limit : 0;
	if (host->over == 0)
		return;
	/* What was seen of a program that failed, or whose card tells nothing, is above the limit all the same. */
	if (report->verdict == TN_VERDICT_FITS || report->verdict == TN_VERDICT_OVER_BUDGET ||
	    report->verdict == TN_VERDICT_OVER_BASELINE) {
		report->verdict = TN_VERDICT_OVER_HOST_MEMORY;
		report->exit_status = 11;
	}
	add_finding(report);
}
