/* SPDX-License-Identifier: Apache-2.0
 *
 * The closing lines: what the program changed, and how much of that is known.
 *
 * Invariant: "nothing real was changed" and "changed no file" are said only where both of the kernel's walls stood; what
 * was refused, what could not be seen and what was missing is named.
 */
#include <stdio.h>
#include <string.h>

#include "report/printer.h"
#include "report/text.h"

#define MOST_NAMES 3

/* "a, b and 2 more" of a list's names, in a buffer. */
static const char *
names_of(const struct tn_counted_list *list, char *buffer, size_t size)
{
	size_t used = 0;
	buffer[0] = '\0';
	for (size_t i = 0; i < list->count && i < MOST_NAMES && used < size; i++)
		used += (size_t)snprintf(buffer + used, size - used, "%s%s", i == 0 ? "" : ", ",
		                         list->items[i].name != NULL ? list->items[i].name : "?");
	if (list->count > MOST_NAMES && used < size)
		snprintf(buffer + used, size - used, " and %zu more", list->count - MOST_NAMES);
	return buffer;
}

static const char *
missing_wall(const struct tn_report_files *files)
{
	if (files->no_landlock && files->no_filter)
		return "this kernel has neither Landlock nor seccomp";
	return files->no_landlock ? "this kernel has no Landlock" : "this kernel has no seccomp";
}

static void
say_scratch(const struct tn_printer *printer, const struct tn_report *report, const char *known)
{
	const struct tn_report_files *files = &report->files;
	char bytes[32], disk[32];
	if (files->bytes <= 0 || files->disk_bytes < 0)
		tn__say(printer, TN_TINT_NONE, 2, "what the program wrote is in %s%s", report->scratch, known);
	else if (files->disk_bytes < files->bytes / 2)
		tn__say(printer, TN_TINT_NONE, 2, "what the program wrote is in %s (%s, %s on the disk)%s", report->scratch,
		        tn__human_bytes(files->bytes, bytes), tn__human_bytes(files->disk_bytes, disk), known);
	else
		tn__say(printer, TN_TINT_NONE, 2, "what the program wrote is in %s (%s)%s", report->scratch,
		        tn__human_bytes(files->bytes, bytes), known);
}

/* Connections are held back, but not those of programs that pass the C library. */
static bool
is_network_open(const struct tn_report *report)
{
	return report->network_raw_open && !report->real_gpu;
}

void
tn__say_changes(const struct tn_printer *printer, const struct tn_report *report)
{
	const struct tn_report_files *files = &report->files;
	bool walls = !files->no_landlock && !files->no_filter;
	char names[256];
	if (report->scratch != NULL)
		say_scratch(printer, report, walls ? "; nothing real was changed" : "");
	else if (walls && files->refused == 0 && files->unseen.count == 0)
		tn__say(printer, TN_TINT_DIM, 2, "the program changed no file");
	else if (walls)
		tn__say(printer, TN_TINT_DIM, 2, "nothing real was changed");
	if (files->refused > 0) {
		const struct tn_counted *first = files->refusals.count > 0 ? &files->refusals.items[0] : NULL;
		tn__say(printer, TN_TINT_NONE, 2, "%lld change%s of real files %s refused%s%s%s%s%s", (long long)files->refused,
		        files->refused == 1 ? "" : "s", files->refused == 1 ? "was" : "were", first != NULL ? " (" : "",
		        first != NULL && first->library != NULL ? first->library : "", first != NULL ? " by " : "",
		        first != NULL && first->name != NULL ? first->name : "", first != NULL ? ")" : "");
	}
	if (files->unseen.count > 0)
		tn__say(printer, TN_TINT_NONE, 2, "%s call%s the kernel without the C library: %s",
		        names_of(&files->unseen, names, sizeof(names)), files->unseen.count == 1 ? "s" : "",
		        walls ? "changes made that way outside the run are refused" : "what was written is not known");
	if (!walls)
		tn__say(printer, TN_TINT_NONE, 2,
		        "only what goes through the C library is known to have changed nothing real%s: %s",
		        is_network_open(report) ? ", and sent nothing" : "", missing_wall(files));
	else if (is_network_open(report))
		tn__say(printer, TN_TINT_NONE, 2, "only what goes through the C library is known to have sent nothing: %s",
		        "this kernel cannot report connections");
}
