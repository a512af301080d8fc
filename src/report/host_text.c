/* SPDX-License-Identifier: Apache-2.0
 *
 * What the run held of the computer's own memory, for a person. Nothing where --host-memory was not given.
 */
#include <stdio.h>
#include <string.h>

#include "report/text.h"
#include "verdict/host_judge.h"

#define INDENT 4
#define LEAST_PINNED (1 << 20) /* bytes that are worth a line */

void
tn__say_over_host(const struct tn_printer *printer, const struct tn_report *report, const char *card)
{
	char peak[32], over[32], limit[32];
	tn__say(printer, TN_TINT_BAD, 0, "Does not fit the computer's memory: %s at once, %s more than %s",
	        tn__human_bytes(report->host.peak, peak), tn__human_bytes(report->host.over, over),
	        tn__human_bytes(report->host.limit, limit));
	if (report->device_peak != TN_NO_FIGURE)
		tn__say(printer, TN_TINT_NONE, 2, "It fits on %s: %s at the peak", card,
		        tn__human_bytes(report->device_peak, peak));
}

/* "8 loader workers 2.40 GiB (0.30 GiB each)" */
static int
add_kind(const struct tn_host *host, enum tn_host_kind kind, const char *one, const char *more, char *out, size_t room)
{
	int64_t count, bytes = tn__host_of_kind(host, kind, &count);
	char all[32], each[32];
	if (count == 0)
		return 0;
	tn__human_bytes(bytes, all);
	tn__human_bytes(bytes / count, each);
	if (count == 1)
		return snprintf(out, room, "%s %s, ", one, all);
	return snprintf(out, room, "%lld %s %s (%s each), ", (long long)count, more, all, each);
}

static void
say_parts(const struct tn_printer *printer, const struct tn_host *host)
{
	const struct tn_host_moment *moment = &host->at_peak;
	char words[512], bytes[32];
	size_t length = 0, room = sizeof(words);
	static const struct {
		enum tn_host_kind kind;
		const char *one, *more;
	} kinds[] = { { TN_HOST_PROGRAM, "the program", "programs" },
		          { TN_HOST_RANK, "the rank", "ranks" },
		          { TN_HOST_WORKER, "a loader worker", "loader workers" },
		          { TN_HOST_OTHER, "another process", "other processes" } };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		length += (size_t)add_kind(host, kinds[i].kind, kinds[i].one, kinds[i].more, words + length, room - length);
	snprintf(words + length, room - length, "/dev/shm and the like %s", tn__human_bytes(moment->shared, bytes));
	tn__say(printer, TN_TINT_NONE, INDENT, "%s", words);
	if (moment->pinned >= LEAST_PINNED)
		tn__say(printer, TN_TINT_NONE, INDENT, "pinned: %s of it, which cannot be swapped out",
		        tn__human_bytes(moment->pinned, bytes));
}

static void
say_loader(const struct tn_printer *printer, const struct tn_report *report, const struct tn_host_loader *loader)
{
	char place[TN_PLACE_TEXT], batch[32], all[32];
	if (loader->workers <= 0 || loader->batch_bytes <= 0)
		return;
	tn__place_words(report, printer->style, loader->at, place);
	tn__say(printer, TN_TINT_NONE, INDENT, "%s: %lld worker%s x %lld batch%s ahead x %s = %s%s%s",
	        place[0] != '\0' ? place : "a data loader", (long long)loader->workers, loader->workers == 1 ? "" : "s",
	        (long long)loader->ahead, loader->ahead == 1 ? "" : "es", tn__human_bytes(loader->batch_bytes, batch),
	        tn__human_bytes(tn__host_ahead_bytes(loader), all), loader->pins ? ", pinned in the program" : "",
	        loader->full ? "" : " (not all of it was ready when it was looked)");
}

void
tn__say_host(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_host *host = &report->host;
	int64_t unfilled = tn__host_unfilled(report);
	char peak[32], limit[32], spare[32];
	if (host->limit == TN_NO_FIGURE || host->peak == TN_NO_FIGURE)
		return;
	fputc('\n', printer->out);
	tn__human_bytes(host->peak, peak);
	tn__human_bytes(host->limit, limit);
	if (host->over > 0)
		tn__say(printer, TN_TINT_NONE, 2, "The computer's memory: %s at once, of %s", peak, limit);
	else
		tn__say(printer, TN_TINT_NONE, 2, "The computer's memory: %s at once, %s to spare of %s", peak,
		        tn__human_bytes(host->limit - host->peak, spare), limit);
	say_parts(printer, host);
	for (size_t i = 0; i < host->loader_count; i++)
		say_loader(printer, report, &host->loaders[i]);
	if (host->over == 0 && host->highest > host->limit)
		tn__say(printer, TN_TINT_NONE, INDENT,
		        "narrowly: were every process at its highest at once, it would be %s, and that decides",
		        tn__human_bytes(host->highest, peak));
	tn__say(
		printer, TN_TINT_NONE, INDENT,
		"not seen: what a real card's driver takes of it in each process, and what workers come to copy over an epoch");
	if (unfilled > 0)
		tn__say(printer, TN_TINT_NONE, INDENT,
		        "left out: %s of initial values or weights (--init real, --weights real)",
		        tn__human_bytes(unfilled, peak));
}
