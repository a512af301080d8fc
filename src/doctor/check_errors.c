/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of a card's memory (ECC), and Xid errors in the kernel's log.
 *
 * What an Xid means and what to do about it follows NVIDIA's Xid catalog
 * (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html: description, and resolution as immediate action).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"

enum { CORRECTED = 0, UNCORRECTED = 1, SINCE_START = 0 }; /* nvmlMemoryErrorType_t, nvmlEccCounterType_t (volatile) */

static void
check_counts(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, void *device)
{
	unsigned long long bad = 0, mended = 0;
	struct tn_fact *fact;
	const char *name = "nvmlDeviceGetTotalEccErrors";
	if (tn__nvml_ask_kinds(machine->nvml, device, name, UNCORRECTED, SINCE_START, &bad) == 0 && bad > 0) {
		fact = tn__fact(out, TN_PART_CARD, TN_LEVEL_ERROR, "ecc_uncorrected", (int)card,
		                "%llu memory error%s that ECC could not correct, since the driver started", bad,
		                bad == 1 ? "" : "s");
		tn__fact_meaning(out, fact, "Programs end with \"uncorrectable ECC error encountered\".");
		tn__fact_remedy(
			out, fact,
			"End what runs on it, then sudo nvidia-smi -i %u --gpu-reset. If they come again, have the card "
			"replaced.",
			card);
	}
	if (tn__nvml_ask_kinds(machine->nvml, device, name, CORRECTED, SINCE_START, &mended) == 0 && mended > 0) {
		fact = tn__fact(out, TN_PART_CARD, TN_LEVEL_HINT, "ecc_corrected", (int)card,
		                "%llu memory error%s that ECC corrected, since the driver started", mended,
		                mended == 1 ? "" : "s");
		tn__fact_meaning(out, fact, "No result was wrong.");
		tn__fact_remedy(out, fact, "Nothing now; look again whether the number grows.");
	}
}

static void
check_mode(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, void *device)
{
	unsigned now = 0, later = 0;
	if (tn__nvml_ask_two(machine->nvml, device, "nvmlDeviceGetEccMode", &now, &later) != 0)
		return;
	if (now == later) {
		tn__fact(out, TN_PART_CARD, TN_LEVEL_FINE, "ecc", (int)card, "ECC is %s", now ? "on" : "off");
		return;
	}
	struct tn_fact *fact = tn__fact(out, TN_PART_CARD, TN_LEVEL_WARNING, "ecc_pending", (int)card,
	                                "ECC is %s, and will be %s after a restart", now ? "on" : "off",
	                                later ? "on" : "off");
	tn__fact_meaning(out, fact, "The memory that a program can have may change with it.");
	tn__fact_remedy(out, fact, "Restart, or sudo nvidia-smi -i %u --gpu-reset when nothing runs on the card.", card);
}

/* Rows (Ampere and newer) and pages (older cards) that are taken out of use. */
static void
check_rows(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, void *device)
{
	unsigned rows[4] = { 0 }, pages = 0; /* correctable, uncorrectable, pending, failure */
	struct tn_fact *fact;
	bool known = tn__nvml_ask_four(machine->nvml, device, "nvmlDeviceGetRemappedRows", rows) == 0;
	bool older = tn__nvml_ask(machine->nvml, device, "nvmlDeviceGetRetiredPagesPendingStatus", &pages) == 0;
	if (known && rows[3]) {
		fact = tn__fact(out, TN_PART_CARD, TN_LEVEL_ERROR, "memory_failed", (int)card,
		                "A faulty row of memory could not be replaced");
		tn__fact_meaning(out, fact, "The spare rows are used up: programs will meet the fault again.");
		tn__fact_remedy(out, fact, "Have the card replaced.");
	} else if ((known && rows[2]) || (older && pages)) {
		fact = tn__fact(out, TN_PART_CARD, TN_LEVEL_WARNING, "memory_pending", (int)card,
		                "A faulty part of the memory waits to be taken out of use");
		tn__fact_meaning(out, fact, "Until the card is reset, programs may fail at it.");
		tn__fact_remedy(out, fact, "End what runs on it, then sudo nvidia-smi -i %u --gpu-reset, or restart.", card);
	}
}

void
tn__check_errors(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, void *device)
{
	check_mode(machine, out, card, device);
	check_counts(machine, out, card, device);
	check_rows(machine, out, card, device);
}

/* ---- the kernel's log ---- */

enum action { RESTART_PROGRAM, RESET_CARD, RESTART_MACHINE, WAIT, ASK };

static const struct xid {
	unsigned code;
	const char *words;
	enum action action;
} xids[] = {
	{ 13, "an error in a kernel, often an index out of range", RESTART_PROGRAM },
	{ 31, "a kernel used an address that is not its own", RESTART_PROGRAM },
	{ 43, "the card stopped a program's work", RESTART_PROGRAM },
	{ 45, "a program ended, and its work on the card was cleared", RESTART_PROGRAM },
	{ 48, "a memory error that ECC could not correct", RESET_CARD },
	{ 62, "the card's own controller halted", RESET_CARD },
	{ 63, "a faulty part of the memory is taken out of use", WAIT },
	{ 64, "a faulty part of the memory could not be taken out of use", RESET_CARD },
	{ 74, "an error of an NVLink", RESET_CARD },
	{ 79, "the card has fallen off the bus", RESTART_MACHINE },
	{ 92, "many memory errors that ECC corrected", WAIT },
	{ 94, "a memory error in one program", RESTART_PROGRAM },
	{ 95, "a memory error in several programs", RESET_CARD },
	{ 119, "the card's system processor (GSP) did not answer in time", RESET_CARD },
	{ 120, "an error of the card's system processor (GSP)", RESET_CARD },
	{ 140, "memory errors that could not be corrected", RESET_CARD },
};

static const char *
remedy_of(enum action action)
{
	static const char *const words[] = {
		"Start the program again. If it comes again with other programs, too, suspect the card.",
		"Reset the card (sudo nvidia-smi --gpu-reset) or restart the machine.",
		"Restart the machine; look at power supply, seating and heat of the card.",
		"Nothing now; look again whether it comes again.",
		"Look it up: https://docs.nvidia.com/deploy/xid-errors",
	};
	return words[action];
}

#define SEEN_MAX 32

struct seen {
	unsigned code, count;
	char bus[24];
	int64_t last; /* seconds since 1970; 0: unknown */
};

/* "NVRM: Xid (PCI:0000:01:00): 79, pid=..." with the record's head "6,1234,5678901,-;" before it, whose third number is
 * microseconds since the start. */
static bool
read_record(const char *line, size_t length, struct seen *out, uint64_t *microseconds)
{
	static const char mark[] = "NVRM: Xid (";
	const char *at = memmem(line, length, mark, sizeof(mark) - 1);
	const char *end = line + length;
	if (at == NULL)
		return false;
	at += sizeof(mark) - 1;
	const char *close = memchr(at, ')', (size_t)(end - at));
	uint64_t code;
	if (close == NULL || end - close < 3 || close[1] != ':' || !tn__number(close + 2, &code) || code == 0 || code > 999)
		return false;
	size_t skip = strncmp(at, "PCI:", 4) == 0 ? 4 : 0;
	snprintf(out->bus, sizeof(out->bus), "%.*s",
	         (int)(close - at - (ptrdiff_t)skip > 20 ? 20 : close - at - (ptrdiff_t)skip), at + skip);
	out->code = (unsigned)code;
	unsigned long long stamp = 0;
	if (sscanf(line, "%*u,%*u,%llu,", &stamp) == 1)
		*microseconds = stamp;
	return true;
}

static size_t
collect(const char *text, int64_t started, struct seen seen[SEEN_MAX])
{
	size_t count = 0;
	for (const char *line = text; *line != '\0';) {
		size_t length = strcspn(line, "\n"), i = 0;
		struct seen record = { 0 };
		uint64_t microseconds = 0;
		if (read_record(line, length, &record, &microseconds)) {
			while (i < count && (seen[i].code != record.code || strcmp(seen[i].bus, record.bus) != 0))
				i++;
			if (i == count && count < SEEN_MAX)
				seen[count++] = record;
			if (i < count) {
				seen[i].count++;
				seen[i].last = started > 0 && microseconds > 0 ? started + (int64_t)(microseconds / 1000000) : 0;
			}
		}
		line += length + (line[length] == '\n');
	}
	return count;
}

/* NVML's bus id has more digits in front: "00000000:01:00.0" for "0000:01:00". */
static int
card_at(const struct tn_diagnosis *out, const char *bus)
{
	for (size_t i = 0; i < out->card_count; i++)
		if (bus[0] != '\0' && strcasestr(out->cards[i].bus, bus) != NULL)
			return (int)out->cards[i].index;
	return -1;
}

static void
say_xid(struct tn_diagnosis *out, const struct seen *seen)
{
	const struct xid *known = NULL;
	char when[32];
	for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++)
		if (xids[i].code == seen->code)
			known = &xids[i];
	enum action action = known != NULL ? known->action : ASK;
	enum tn_level level = action == RESET_CARD || action == RESTART_MACHINE ? TN_LEVEL_ERROR : TN_LEVEL_WARNING;
	struct tn_fact *fact = tn__fact(out, TN_PART_CARD, level, "xid", card_at(out, seen->bus),
	                                "Xid %u in the kernel's log (%s), %u time%s, last: %s", seen->code, seen->bus,
	                                seen->count, seen->count == 1 ? "" : "s", tn__doctor_time(seen->last, when));
	tn__fact_meaning(out, fact, "The driver reports: %s.",
	                 known != NULL ? known->words : "an error that this table does not have");
	tn__fact_remedy(out, fact, "%s", remedy_of(action));
}

void
tn__check_kernel_log(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	struct seen seen[SEEN_MAX];
	uint64_t started = 0;
	if (out->card_count == 0 && out->driver[0] == '\0')
		return;
	char *text = tn__read_text(machine, "/dev/kmsg");
	if (text == NULL) {
		tn__fact(out, TN_PART_CARD, TN_LEVEL_FINE, "kernel_log_closed", -1,
		         "The kernel's log is not open to you; Xid errors: sudo dmesg | grep Xid");
		return;
	}
	char *statistics = tn__read_text(machine, "/proc/stat");
	tn__number(statistics != NULL ? tn__field(statistics, "btime") : NULL, &started);
	size_t count = collect(text, (int64_t)started, seen);
	for (size_t i = 0; i < count; i++)
		say_xid(out, &seen[i]);
	if (count == 0)
		tn__fact(out, TN_PART_CARD, TN_LEVEL_FINE, "kernel_log", -1, "No Xid error in the kernel's log");
	free(statistics);
	free(text);
}
