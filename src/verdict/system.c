/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows and WSL: the desktop on the same card, a driver that goes on in the computer's memory, and less memory that can be pinned.
 * Where each figure comes from stands in doc/design/0040-windows.md.
 */
#include "verdict/system.h"

#include <string.h>

#include "base/figure.h"
#include "base/json.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"

#define MIB (INT64_C(1) << 20)
#define DISPLAY_LOWEST (384 * MIB)
#define DISPLAY_USUAL (800 * MIB)
#define DISPLAY_HIGHEST (2048 * MIB)
#define WSL_PINNED (1024 * MIB) /* the least that was refused in reports, but for containers */

static const char *const names[] = {
	[TN_SYSTEM_LINUX] = "linux", [TN_SYSTEM_WINDOWS] = "windows", [TN_SYSTEM_WSL] = "wsl"
};

struct tn_host_system
tn__system_of(enum tn_system kind, bool forbidden, uint64_t memory, bool told)
{
	struct tn_host_system system = { .kind = kind,
		                             .forbidden = forbidden,
		                             .limit = TN_NO_FIGURE,
		                             .spilled = TN_NO_FIGURE,
		                             .pinned = TN_NO_FIGURE,
		                             .pinned_limit = TN_NO_FIGURE };
	if (kind == TN_SYSTEM_LINUX)
		return system;
	if (!told) {
		system.display = DISPLAY_USUAL;
		system.display_lowest = DISPLAY_LOWEST;
		system.display_highest = DISPLAY_HIGHEST;
	}
	if (memory > 0)
		system.limit = system.pinned_limit = (int64_t)(memory / 2);
	if (kind == TN_SYSTEM_WSL)
		system.pinned_limit = WSL_PINNED;
	if (forbidden)
		system.limit = 0;
	return system;
}

const char *
tn__system_text(enum tn_system kind)
{
	return names[kind];
}

const char *
tn__system_name(enum tn_system kind)
{
	return kind == TN_SYSTEM_WSL ? "WSL" : kind == TN_SYSTEM_WINDOWS ? "Windows" : "Linux";
}

/* ---- judging ---- */

static void
judge_spill(struct tn_report *report)
{
	struct tn_host_system *system = &report->system;
	char bytes[32];
	int64_t total = (int64_t)report->gpu.total_bytes;
	if (report->device_peak == TN_NO_FIGURE)
		return;
	system->spilled = report->device_peak > total ? report->device_peak - total : 0;
	if (system->spilled == 0)
		return;
	bool seen = report->verdict == TN_VERDICT_FITS;
	if (seen) {
		report->verdict = TN_VERDICT_SPILLS;
		report->exit_status = TN_EXIT_OUT_OF_MEMORY;
	}
	tn__report_add_finding_as(
		report, TN_FINDING_spills, seen ? TN_SEVERITY_ERROR : TN_SEVERITY_WARNING, system->spilled, NULL,
		"a smaller batch with gradient accumulation, 16 bits or a smaller model; so that nobody takes "
		"it for a slow program: \"CUDA - Sysmem Fallback Policy\" set to \"Prefer No Sysmem "
		"Fallback\" makes it an error (--sysmem-fallback forbid)",
		"the driver of %s gives %s of the computer's memory where the card is full, and each use of "
		"it goes through the PCI Express bus",
		tn__system_name(system->kind), tn__human_bytes(system->spilled, bytes));
}

static void
judge_pinned(struct tn_report *report)
{
	const struct tn_host_system *system = &report->system;
	char bytes[32], limit[32];
	if (system->pinned == TN_NO_FIGURE || system->pinned_limit == TN_NO_FIGURE ||
	    system->pinned <= system->pinned_limit)
		return;
	tn__human_bytes(system->pinned, bytes);
	tn__human_bytes(system->pinned_limit, limit);
	if (system->kind == TN_SYSTEM_WSL)
		tn__report_add_finding(
			report, TN_FINDING_pinned_limit, system->pinned - system->pinned_limit, NULL, NULL,
			"%s of the computer's memory are pinned at once: under WSL that fails with \"CUDA error: out of "
			"memory\" from about %s on, in reports from 0.5 GiB to 4 GiB",
			bytes, limit);
	else
		tn__report_add_finding(
			report, TN_FINDING_pinned_limit, system->pinned - system->pinned_limit, NULL, NULL,
			"%s of the computer's memory are pinned at once: Windows gives half of it to devices, %s", bytes, limit);
}

void
tn__system_judge(struct tn_report *report)
{
	const struct tn_host_system *system = &report->system;
	if (system->kind == TN_SYSTEM_LINUX)
		return;
	judge_spill(report);
	judge_pinned(report);
	if (system->kind == TN_SYSTEM_WSL && system->forbidden)
		tn__report_add_finding(report, TN_FINDING_fallback_in_wsl, TN_NO_FIGURE, NULL, NULL,
		                       "WSL was seen to use the computer's memory whatever the driver's policy says "
		                       "(microsoft/WSL#11050, driver 546.33): try it there with one large tensor");
}

/* ---- from JSON ---- */

void
tn__system_read(const json_t *object, struct tn_host_system *out)
{
	const json_t *display = json_object_get(object, "display_bytes"),
				 *range = json_object_get(object, "display_range_bytes");
	const char *name = tn__json_borrow_text(object, "name"),
			   *fallback = tn__json_borrow_text(object, "sysmem_fallback");
	*out = tn__system_of(TN_SYSTEM_LINUX, false, 0, true);
	if (name == NULL)
		return;
	out->kind = strcmp(name, names[TN_SYSTEM_WSL]) == 0 ? TN_SYSTEM_WSL : TN_SYSTEM_WINDOWS;
	out->forbidden = fallback != NULL && strcmp(fallback, "forbid") == 0;
	out->display = json_integer_value(display);
	out->display_lowest = json_integer_value(json_array_get(range, 0));
	out->display_highest = json_integer_value(json_array_get(range, 1));
	out->limit = tn__json_read_figure(object, "fallback_limit_bytes");
	out->spilled = tn__json_read_figure(object, "spilled_bytes");
	out->pinned = tn__json_read_figure(object, "pinned_bytes");
	out->pinned_limit = tn__json_read_figure(object, "pinned_limit_bytes");
}
