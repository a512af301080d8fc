/* SPDX-License-Identifier: Apache-2.0
 *
 * One report from all sources: the card, the ledger, the guests, the watch. Runs after the last process has ended,
 * so that nothing changes any more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secrets.h"
#include "supervise/internal.h"
#include "verdict/cell_holders.h"
#include "verdict/trace_findings.h"
#include "verdict/model_fill.h"
#include "verdict/redact.h"
#include "verdict/trainings.h"

#define OLDEST_MINOR 6 /* PyTorch 2.x that is tested */
#define NEWEST_MINOR 15

/* What the ledger cannot count: kernels that the driver loads as they are first launched, and what cublasCreate and
 * cudnnCreate hold by themselves. Reports of such bytes go from some MiB to some tens (inferred; no document gives a
 * figure), and the driver counts in units of 2 MiB. Chosen before it was compared with measured runs. */
#define UNSEEN_BELOW (4 << 20)
#define UNSEEN_ABOVE (64 << 20)

#define GONE_ON (2 << 20) /* bytes after a refusal, by which a program has gone on */

static int
worst_device(const struct tn_ledger *ledger)
{
	uint32_t worst = 0;
	for (uint32_t i = 1; i < ledger->device_count && i < TN_MAX_DEVICES; i++)
		if (ledger->devices[i].peak_used_bytes > ledger->devices[worst].peak_used_bytes)
			worst = i;
	return (int)worst;
}

/* The device whose refusal was the last one; NULL when none refused. */
static const struct tn_ledger_device *
refusing_device(const struct tn_ledger *ledger)
{
	const struct tn_ledger_device *last = NULL;
	for (uint32_t i = 0; i < ledger->device_count && i < TN_MAX_DEVICES; i++) {
		const struct tn_ledger_device *device = &ledger->devices[i];
		if (device->refusal.count > 0 && (last == NULL || device->refusal.sequence > last->refusal.sequence))
			last = device;
	}
	return last;
}

/* The device that refused the process of the report's out-of-memory last; of several ranks another may have been refused later. */
static const struct tn_ledger_device *
device_that_refused(const struct tn_ledger *ledger, int64_t pid, const struct tn_ledger_device *otherwise)
{
	for (uint32_t i = 0; i < ledger->device_count && i < TN_MAX_DEVICES; i++)
		if (ledger->devices[i].refusal.count > 0 && pid != 0 && ledger->devices[i].refusal.pid == pid)
			return &ledger->devices[i];
	return otherwise;
}

static struct tn_report_split
split_of(const struct tn_ledger_split *split)
{
	return (struct tn_report_split){ .context = (int64_t)split->bytes[TN_BYTES_CONTEXT],
		                             .program = (int64_t)split->bytes[TN_BYTES_PROGRAM],
		                             .libraries = (int64_t)split->bytes[TN_BYTES_LIBRARY],
		                             .other_processes = (int64_t)split->other_bytes,
		                             .communication = (int64_t)split->bytes[TN_BYTES_COMMUNICATION] };
}

/* What the card held when this much of it was free. The ledger knows it of the last refusal. Of an earlier one it follows from the
 * peak: contexts and libraries are never given back in between, so the rest is the program's. Left unknown where that cannot be. */
static void
split_at_oom(const struct tn_ledger_device *device, int64_t free_bytes, struct tn_report *report)
{
	const struct tn_ledger_refusal *refusal = &device->refusal;
	bool last = refusal->count > 0 && (int64_t)refusal->free_bytes == free_bytes;
	struct tn_report_split split = split_of(last ? &refusal->held : &device->at_peak);
	if (free_bytes == TN_NO_FIGURE)
		return;
	if (last) {
		tn__report_set_split(&report->at_oom, &split);
		return;
	}
	split.other_processes = (int64_t)device->other_bytes;
	split.program = (int64_t)device->gpu.total_bytes - free_bytes - split.context - split.libraries -
	                split.communication - split.other_processes;
	if (split.program >= 0)
		tn__report_set_split(&report->at_oom, &split);
}

static void
take_regions(const struct tn_ledger *ledger, int device, struct tn_report *report)
{
	for (uint32_t i = 0; i < ledger->region_count && i < TN_LEDGER_REGIONS; i++)
		tn__report_add_region(report, ledger->regions[i].name, (int64_t)ledger->regions[i].peak_used_bytes[device],
		                      (int64_t)ledger->regions[i].peak_program_bytes[device],
		                      (int64_t)ledger->regions[i].peak_taken_bytes[device]);
	if (ledger->regions_lost > 0)
		tn__report_add_finding(report, TN_FINDING_regions_lost, TN_NO_FIGURE, NULL, NULL,
		                       "more than %d regions: the peaks of later ones were not kept", TN_LEDGER_REGIONS);
}

static void
take_ledger(const struct tn_card *card, const struct tn_ledger *ledger, const struct tn_watch *watch,
            struct tn_report *report)
{
	report->launches = (int64_t)ledger->launches;
	report->computed_read_count = (int64_t)ledger->computed_reads;
	report->passed = ledger->guest.passes > 0;
	report->compiling = watch->compiling;
	report->compiled_seconds = watch->compiled_seconds;
	report->limit_seconds = watch->limit_seconds;
	report->compile_limit_seconds = watch->compile_limit_seconds;
	for (uint32_t i = 0; i < ledger->call_count && i < TN_LEDGER_CALLS; i++) {
		const struct tn_ledger_call *call = &ledger->calls[i];
		struct tn_counted item = { .place = { NULL, TN_NO_FIGURE, NULL, false },
			                       .library = (char *)(uintptr_t)call->library,
			                       .name = (char *)(uintptr_t)call->name,
			                       .count = (int64_t)call->count,
			                       .bytes = TN_NO_FIGURE,
			                       .unfollowed = call->passes >= ledger->guest.passes };
		(void)tn__report_add_counted(&report->refused_calls, &item);
	}
	if (card->real) {
		report->device_peak = watch->real_device_peak > 0 ? (int64_t)watch->real_device_peak : TN_NO_FIGURE;
		tn__report_set_split(&report->at_peak, &(struct tn_report_split){ TN_NO_FIGURE, report->device_peak,
		                                                                  TN_NO_FIGURE, TN_NO_FIGURE, 0 });
		return;
	}
	const struct tn_ledger_device *worst = &ledger->devices[worst_device(ledger)];
	struct tn_report_split split = split_of(&worst->at_peak);
	int64_t context = (int64_t)card->figures.context_bytes;
	int64_t slack = (int64_t)((double)context * card->context_share);
	report->device_peak = (int64_t)worst->peak_used_bytes;
	tn__report_set_split(&report->at_peak, &split);
	report->context_lowest = context - slack;
	report->context_highest = context + slack;
	report->unseen_below = UNSEEN_BELOW;
	report->unseen_above = UNSEEN_ABOVE;
}

/* What PyTorch saw, or else the card's own refusal: a limit that the program has set itself is none of the card's. */
static void
take_refusal(const struct tn_card *card, const struct tn_ledger_device *refusing, const struct tn_ledger_device *worst,
             struct tn_report *report)
{
	struct tn_report_oom *oom = &report->oom;
	bool told = oom->requested_bytes != TN_NO_FIGURE;
	if (refusing != NULL && !told)
		oom->requested_bytes = (int64_t)refusing->refusal.requested_bytes;
	if (refusing != NULL && oom->free_bytes == TN_NO_FIGURE)
		oom->free_bytes = (int64_t)refusing->refusal.free_bytes;
	if ((refusing != NULL || told) && !card->real)
		split_at_oom(refusing != NULL ? refusing : worst, oom->free_bytes, report);
}

static void
add_sources(const struct tn_run_options *options, const struct tn_card *card, const struct tn_ledger *ledger,
            struct tn_report *report)
{
	tn__report_add_source(report, "gpu.total_bytes", "%s", card->total_source);
	tn__report_add_source(report, "gpu.context_bytes", "%s", card->context_source);
	if (card->real) {
		tn__report_add_source(report, "peak.device_bytes", "NVML, sampled four times a second");
		return;
	}
	tn__report_add_source(report, "at_peak.by_category.context", "%s", card->context_source);
	tn__report_add_source(report, "uncertainty_bytes",
	                      "context: within %.0f %%, %s; kernels as they are first loaded and what libraries hold by "
	                      "themselves: up to %d MiB for each process",
	                      100 * card->context_share, card->context_source, UNSEEN_ABOVE >> 20);
	if (report->system.kind != TN_SYSTEM_LINUX && ledger->pinned_peak > 0)
		report->system.pinned = (int64_t)ledger->pinned_peak;
	if (report->system.display > 0)
		tn__report_add_source(report, "at_peak.by_category.other_processes", "%s%s's desktop (guess)",
		                      options->other_bytes > 0 ? "--other, and " : "", tn__system_name(report->system.kind));
	else if (options->other_bytes > 0)
		tn__report_add_source(report, "at_peak.by_category.other_processes", "--other");
	tn__report_add_source(report, "peak.device_bytes",
	                      "the virtual GPU: kernels do not run, what libraries take for themselves is a model");
}

/* Who said how large the workspaces of convolutions are. */
static void
add_answers(const struct tn_ledger_answers *answers, struct tn_report *report)
{
	static const char field[] = "at_peak.by_category.workspaces";
	if (answers->real > 0 && answers->modelled > 0)
		tn__report_add_source(report, field, "%s heuristics; %llu of %llu answers by the model: %s", answers->by,
		                      (unsigned long long)answers->modelled,
		                      (unsigned long long)(answers->real + answers->modelled), answers->why);
	else if (answers->real > 0)
		tn__report_add_source(report, field, "%s heuristics", answers->by);
	else if (answers->modelled > 0)
		tn__report_add_source(report, field, "model: %s", answers->why);
}

static void
check_torch_version(struct tn_report *report)
{
	int major, minor;
	if (report->torch == NULL || sscanf(report->torch, "%d.%d", &major, &minor) != 2)
		return;
	if (major > 2 || (major == 2 && minor > NEWEST_MINOR))
		tn__report_add_finding(report, TN_FINDING_untested_torch, TN_NO_FIGURE, NULL, NULL,
		                       "PyTorch %s is newer than what Tonnage was tested with (2.%d to 2.%d)", report->torch,
		                       OLDEST_MINOR, NEWEST_MINOR);
	else if (major < 2 || minor < OLDEST_MINOR)
		tn__report_add_finding(report, TN_FINDING_untested_torch, TN_NO_FIGURE, NULL, NULL,
		                       "PyTorch %s is older than what Tonnage was tested with (2.%d to 2.%d)", report->torch,
		                       OLDEST_MINOR, NEWEST_MINOR);
}

/* A program that failed for want of the computer's memory says nothing about the card, but it is about memory. */
static void
check_host_memory(struct tn_report *report)
{
	static const char *const words[] = { "MemoryError", "DefaultCPUAllocator", "Cannot allocate memory",
		                                 "insufficient shared memory", "is killed by signal: Killed" };
	for (size_t i = 0; report->exception != NULL && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strstr(report->exception, words[i]) == NULL)
			continue;
		tn__report_add_finding(report, TN_FINDING_host_ram, TN_NO_FIGURE, report->exception_at,
		                       "fewer data loader workers, or data that is read in pieces",
		                       "the computer's own memory was full, not the card's");
		return;
	}
}

/* A program that asked for a card beyond those that it has. Libraries with a CUDA runtime of their own say the same when they
 * find no card at all. */
static bool
lacks_a_card(const struct tn_report *report)
{
	for (size_t i = 0; i < report->refused_calls.count; i++)
		if (strncmp(report->refused_calls.items[i].name, "cuGetExportTable", 16) == 0)
			return false;
	return !report->real_gpu && report->exception != NULL &&
	       strstr(report->exception, "invalid device ordinal") != NULL;
}

/* Managed memory is on no card's account (vgpu/core/memory.c): its size is told, and what it means. */
static void
tell_managed(const struct tn_ledger *ledger, struct tn_report *report)
{
	uint64_t peak = ledger->managed_peak;
	if (peak == 0)
		return;
	tn__report_add_finding(
		report, TN_FINDING_managed_memory, (int64_t)peak, NULL,
		"when the card has room for all of it beside the peak, steps do not wait for pages",
		"managed memory (cudaMallocManaged, paged optimizers): %.1f MiB at most, counted as 0 on the card, since "
		"the driver moves its pages to the host where the card is full",
		(double)peak / 1048576);
}

static void
add_findings(const struct tn_watch *watch, int guests, struct tn_report *report)
{
	check_torch_version(report);
	check_host_memory(report);
	tn__add_usage_warnings(report);
	if (report->hook_error != NULL)
		tn__report_add_finding(report, TN_FINDING_hook_disarmed, TN_NO_FIGURE, NULL,
		                       "steps and source lines after that moment are missing",
		                       "the Python hook stopped recording: %s", report->hook_error);
	for (size_t i = 0; i < report->sensor_count; i++) {
		const struct tn_sensor *sensor = &report->sensors[i];
		if (strcmp(sensor->state, "lost") == 0)
			tn__report_add_finding(report, TN_FINDING_sensor_lost, TN_NO_FIGURE, NULL, sensor->costs,
			                       "a part of the recording was lost (%s): %s", sensor->name,
			                       sensor->error != NULL ? sensor->error : "unknown error");
	}
	if (guests == 0 && report->device_peak > 0)
		tn__report_add_finding(
			report, TN_FINDING_no_hook, TN_NO_FIGURE, NULL, NULL,
			"steps and source lines are unknown: no Python of the run imported PyTorch under Tonnage's hook "
			"(a program without PyTorch, or a Python that is linked statically)");
	if (report->fast_forward_failed != NULL)
		tn__report_add_finding(
			report, TN_FINDING_fast_forward_failed, TN_NO_FIGURE, NULL,
			"--steps all lets the program take its own time",
			"the end of the program was not seen, because the program failed when its loops were shortened: %s",
			report->fast_forward_failed);
	if (lacks_a_card(report))
		tn__report_add_finding(report, TN_FINDING_more_gpus, TN_NO_FIGURE, report->exception_at,
		                       "tonnage run --gpus N gives it N of them",
		                       "the program asked for a GPU that does not exist: it sees %d", report->gpus);
	tell_managed(watch->ledger, report);
	if (watch->ledger->calls_lost > 0)
		tn__report_add_finding(report, TN_FINDING_refused_calls_lost, TN_NO_FIGURE, NULL, NULL,
		                       "%u more refused calls were not listed", watch->ledger->calls_lost);
	tn__files_findings(watch, report);
}

void
tn__collect(const struct tn_run_options *options, const struct tn_card *card, struct tn_watch *watch,
            struct tn_report *report)
{
	const struct tn_ledger_device *refusing = refusing_device(watch->ledger);
	int worst = worst_device(watch->ledger);
	struct tn_guest_news news;
	char path[PATH_MAX];
	report->misuse = watch->misuse;
	report->real_gpu = card->real;
	report->gpus = options->gpus;
	report->gpu = card->figures;
	report->seconds = watch->seconds;
	report->peak_rss_bytes = watch->peak_rss_bytes > 0 ? (int64_t)watch->peak_rss_bytes : TN_NO_FIGURE;
	report->writes_allowed = options->allow_writes;
	report->working_folder = getcwd(NULL, 0);
	report->command = tn__program_quote(options->arguments);
	report->options = tn__program_options(options);
	report->secrets = tn__secrets_of(options->arguments, environ);
	if (!options->allow_writes && tn__folder_has_files(watch->folder))
		report->scratch = strdup(tn__folder_path(watch->folder, "scratch/files", path));
	if (!options->allow_writes)
		tn__files_collect(options, watch, &report->files);
	take_ledger(card, watch->ledger, watch, report);
	take_regions(watch->ledger, worst, report);
	tn__commands_begin(options, watch, report);
	tn__guest_collect(watch->folder, watch->ledger, refusing != NULL ? refusing->refusal.pid : 0, worst, report,
	                  &watch->ending, &news);
	tn__notebook_collect(watch->folder, report);
	tn__host_collect(watch, report);
	tn__stand_ins_collect(watch->folder, &report->stand_ins);
	tn__data_stand_ins_collect(watch->folder, &report->stand_ins);
	/* PyTorch's own allocator takes 2 MiB at least when it goes on. */
	watch->ending.ledger_refused_last = refusing != NULL && !news.refused_guest && refusing->refusal.taken < GONE_ON;
	tn__stand_ins_findings(watch, report);
	tn__network_collect(options, watch, report);
	take_refusal(card, device_that_refused(watch->ledger, news.out_pid, refusing), &watch->ledger->devices[worst],
	             report);
	add_sources(options, card, watch->ledger, report);
	add_answers(&watch->ledger->answers, report);
	if (report->at_peak.split.communication > 0)
		tn__report_add_source(report, "at_peak.by_category.communication",
		                      "model: NCCL's default buffers by channel and connection; half to twice as much");
	if (watch->requests != NULL)
		tn__request_run_collect(watch->requests, report);
	tn__detail_collect(watch->folder, &news, report);
	tn__commands_collect(watch, worst, refusing, report);
	if (!card->real)
		tn__ranks_collect(watch, &news, report);
	if (watch->ending.hung)
		tn__ranks_collect_hang(watch->ledger, &watch->endings, report);
	add_findings(watch, news.count, report);
	tn__guest_news_free(&news);
	report->assumptions.share = options->assume;
	tn__report_set_bound(report);
	struct tn_need need = report->need; /* what the caller has found, of a run that is judged for the second time */
	report->need = (struct tn_need){ 0 };
	tn__report_take_need(report, &need);
	tn__report_judge(report, &watch->ending);
	tn__report_add_trace_findings_of_run(report);
	if (!card->real)
		tn__ranks_find_strangers(watch->ledger, news.out_pid, report);
	tn__ranks_find_same_card(news.out_pid, report);
	tn__find_uneven_cards(report);
	tn__report_name_retainer(report);
	tn__weigh_cell_holders(report);
	tn__weigh_trainings(report);
	tn__mask_report(report);
}
