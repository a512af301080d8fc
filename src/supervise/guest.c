/* SPDX-License-Identifier: Apache-2.0
 *
 * What the guest hooks wrote: which process stands for the run, and what all of them say together. guest_file.h reads the files.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "supervise/guest_file.h"

struct guests {
	struct tn_guest_file items[TN_LEDGER_PROCESSES];
	size_t count;
};

/* A process that started after another one's out-of-memory and used the GPU without one. Where the run failed it has to be
 * the same program again, or to have completed a step: what a script starts next does not make good what failed. */
static bool
went_on_after(const struct tn_guest_file *later, const struct tn_guest_file *ended, bool well)
{
	bool same = later->program != NULL && ended->program != NULL && strcmp(later->program, ended->program) == 0;
	return ended->written > 0 && later->number == ended->number && later->started >= ended->written &&
	       later->reserved_peak > 0 && !later->oom_ended && (well || same || later->steps > 0);
}

static void
find_followed(struct guests *guests, bool well)
{
	for (size_t i = 0; i < guests->count; i++) {
		struct tn_guest_file *item = &guests->items[i];
		for (size_t j = 0; j < guests->count && (item->oom_ended || item->oom_open); j++)
			item->followed |= went_on_after(&guests->items[j], item, well);
	}
}

static void
read_guests(const struct tn_folder *folder, struct guests *out)
{
	char path[PATH_MAX], file[PATH_MAX];
	const struct dirent *item;
	DIR *listing = opendir(tn__folder_path(folder, "guest", path));
	out->count = 0;
	if (listing == NULL)
		return;
	while ((item = readdir(listing)) != NULL && out->count < TN_LEDGER_PROCESSES) {
		if (!tn__ends_with(item->d_name, ".json") ||
		    snprintf(file, sizeof(file), "%s/%s", path, item->d_name) >= PATH_MAX)
			continue;
		out->count += tn__guest_file_read(file, &out->items[out->count]);
	}
	closedir(listing);
}

static void
free_guests(struct guests *guests)
{
	for (size_t i = 0; i < guests->count; i++)
		tn__guest_file_free(&guests->items[i]);
}

/* ---- PyTorch that is missing, or cannot see a GPU ---- */

static enum tn_misuse
misuse_of(const struct guests *guests)
{
	enum tn_misuse found = TN_MISUSE_NONE;
	for (size_t i = 0; i < guests->count; i++) {
		const struct tn_guest_file *item = &guests->items[i];
		if (item->torch && item->cuda)
			return TN_MISUSE_NONE;
		if (item->torch)
			found = TN_MISUSE_CPU_TORCH;
		else if (found == TN_MISUSE_NONE && item->lacks_torch)
			found = TN_MISUSE_NO_TORCH;
	}
	return found;
}

enum tn_misuse
tn__guest_misuse(const struct tn_folder *folder, bool *settled)
{
	struct guests *guests = calloc(1, sizeof(*guests));
	if (guests == NULL)
		return TN_MISUSE_NONE;
	read_guests(folder, guests);
	enum tn_misuse found = misuse_of(guests);
	for (size_t i = 0; i < guests->count; i++)
		if (guests->items[i].torch && guests->items[i].cuda)
			*settled = true;
	free_guests(guests);
	free(guests);
	return found;
}

/* ---- which process stands for the run ---- */

/* What a run's ending is about. */
enum about { ABOUT_MEMORY, ABOUT_A_FAILURE, ABOUT_NOTHING };

/* How well a process stands for the run: one that an out-of-memory ended says why a run does not fit, best one that
 * nothing followed, but nothing about one that fits; one with an exception says why it failed. */
static int
rank_of(const struct tn_guest_file *guest, enum about about)
{
	if (about == ABOUT_MEMORY)
		return (guest->oom_ended ? 2 : guest->oom_open ? 1 : 0) * 2 - guest->followed;
	if (about == ABOUT_A_FAILURE && guest->failed)
		return 2;
	return guest->oom_ended ? 0 : 1;
}

static bool
row_is(const struct tn_ledger *ledger, int64_t pid)
{
	bool found = false;
	for (uint32_t i = 0; i < ledger->rank_count && i < TN_LEDGER_RANKS; i++)
		found |= ledger->ranks[i].pid == pid;
	return found;
}

/* Of two processes that stand for the run equally well. Of ranks that failed the later one failed of the earlier, as their launcher did. */
static bool
is_worse(const struct tn_guest_file *item, const struct tn_guest_file *than, enum about about)
{
	bool both_tell = item->failed_ns != TN_NO_FIGURE && than->failed_ns != TN_NO_FIGURE;
	if (about == ABOUT_A_FAILURE && both_tell && (item->ranked || than->ranked))
		return item->failed_ns < than->failed_ns;
	if (item->reserved_peak != than->reserved_peak)
		return item->reserved_peak > than->reserved_peak;
	if (item->allocated_peak != than->allocated_peak)
		return item->allocated_peak > than->allocated_peak;
	return item->started < than->started; /* the files come in any order */
}

/* The process that the report is about; of equals the one with the largest peak. */
static const struct tn_guest_file *
worst_of(const struct guests *guests, enum about about)
{
	const struct tn_guest_file *worst = NULL;
	for (size_t i = 0; i < guests->count; i++) {
		const struct tn_guest_file *item = &guests->items[i];
		int better = worst != NULL ? rank_of(item, about) - rank_of(worst, about) : 1;
		if (better > 0 || (better == 0 && is_worse(item, worst, about)))
			worst = item;
	}
	return worst;
}

static int64_t
steps_of(const struct tn_guest_file *guest)
{
	return guest->steps > 0 ? guest->steps : 0;
}

/* The process whose steps count: the one that the report is about, or, where that made none and did not end by running
 * out of memory (a loader's worker that holds more than the trainer), the one that made most. */
static const struct tn_guest_file *
stepper_of(const struct guests *guests, const struct tn_guest_file *worst)
{
	const struct tn_guest_file *most = worst;
	if (worst == NULL || worst->oom_ended || steps_of(worst) > 0)
		return worst;
	for (size_t i = 0; i < guests->count; i++)
		if (steps_of(&guests->items[i]) > steps_of(most))
			most = &guests->items[i];
	return most;
}

/* The record of the process that held most of the peak's device at its peak: of several ranks another one may have held more
 * later, when some had ended. Where that one left no record, of the one that ever held most. */
static void
take_records(const struct guests *guests, const struct tn_guest_file *worst, const struct tn_ledger *ledger,
             int peak_device, struct tn_guest_news *news)
{
	const struct tn_ledger_split *at_peak = &ledger->devices[peak_device].at_peak;
	const struct tn_guest_file *most = NULL;
	int64_t largest = 0;
	for (size_t i = 0; i < guests->count; i++) {
		int64_t reserved = tn__guest_reserved_on(&guests->items[i], tn__guest_index_of(&guests->items[i], peak_device));
		news->sharers += reserved > 0;
		bool held_most = reserved > 0 && guests->items[i].pid == at_peak->largest_pid;
		if (held_most)
			news->peak_bytes = (int64_t)at_peak->largest_program;
		if (held_most || (reserved > largest && news->peak_bytes == 0)) {
			largest = reserved;
			most = &guests->items[i];
		}
	}
	if (most != NULL)
		tn__guest_take_peak_record(most, tn__guest_index_of(most, peak_device), &news->peak);
	if (worst != NULL)
		tn__guest_take_oom_record(worst, &news->oom);
}

/* ---- collecting ---- */

void
tn__guest_news_free(struct tn_guest_news *news)
{
	free(news->peak.path);
	free(news->oom.path);
}

void
tn__guest_collect(const struct tn_folder *folder, const struct tn_ledger *ledger, pid_t refused_pid, int peak_device,
                  struct tn_report *report, struct tn_ending *ending, struct tn_guest_news *news)
{
	struct guests *guests = calloc(1, sizeof(*guests));
	*news = (struct tn_guest_news){ 0 };
	if (guests == NULL)
		return;
	read_guests(folder, guests);
	if (report->misuse == TN_MISUSE_NONE)
		report->misuse = misuse_of(guests);
	bool ended_well = ending->stop_reason != 0 || (ending->ended && ending->wait_status == 0);
	find_followed(guests, ended_well);
	for (size_t i = 0; i < guests->count; i++) {
		guests->items[i].ranked |= row_is(ledger, guests->items[i].pid);
		ending->guest_oom_last |= guests->items[i].oom_ended && !guests->items[i].followed;
		ending->guest_oom_open |= guests->items[i].oom_open && !guests->items[i].followed;
	}
	bool out = tn__ended_out_of_memory(ending);
	const struct tn_guest_file *worst = worst_of(guests, out          ? ABOUT_MEMORY
	                                                     : ended_well ? ABOUT_NOTHING
	                                                                  : ABOUT_A_FAILURE);
	if (worst != NULL) {
		tn__guest_take_worst(worst, report);
		news->out_pid = out ? worst->pid : 0;
		if (out && worst->number < (int64_t)report->programs.count)
			report->programs.failing = worst->number;
		const struct tn_guest_file *stepper = stepper_of(guests, worst);
		ending->guest_stop = tn__guest_take_steps(stepper, report);
		for (size_t i = 0; i < guests->count && ending->guest_stop == 0; i++)
			if (tn__guest_take_rest(&guests->items[i], report))
				break;
	}
	take_records(guests, worst, ledger, peak_device, news);
	for (size_t i = 0; i < guests->count; i++) {
		const struct tn_guest_file *item = &guests->items[i];
		news->refused_guest |= item->pid == refused_pid && item->recorded;
		tn__guest_take_region_places(item, report);
		tn__guest_take_cells(item, report);
		tn__guest_take_trainings(item, report);
		tn__guest_take_loaders(item, report);
		if (item == worst || worst == NULL)
			tn__guest_take_exception(item, report);
		if (ended_well || item->followed)
			tn__guest_take_outlived(item, report);
		tn__guest_take_sums(item, report);
		tn__guest_take_rank(item, report);
		tn__guest_take_program(item, report);
	}
	news->count = (int)guests->count;
	free_guests(guests);
	free(guests);
}
