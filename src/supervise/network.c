/* SPDX-License-Identifier: Apache-2.0
 *
 * What the network wall held back, for the report: the run's table (src/preload/network.h), and the lines that the guests
 * left (<run>/state/held: kind, name and a detail, with tabs between).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "preload/network.h"
#include "preload/raw.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"

static void
add(struct tn_report *report, const char *kind, const char *name, int64_t count)
{
	struct tn_counted item = { .place = { NULL, TN_NO_FIGURE, NULL, false },
		                       .library = (char *)(uintptr_t)kind,
		                       .name = (char *)(uintptr_t)name,
		                       .count = count,
		                       .bytes = TN_NO_FIGURE };
	for (size_t i = 0; i < report->held_back.count; i++) {
		struct tn_counted *known = &report->held_back.items[i];
		if (strcmp(known->name, name) == 0 && tn__is_held_back(known, kind)) {
			known->count += count;
			return;
		}
	}
	if (count > 0)
		(void)tn__report_add_counted(&report->held_back, &item);
}

static void
take_table(struct tn_network *network, struct tn_report *report)
{
	uint32_t count = network->host_count < TN_NETWORK_HOSTS ? network->host_count : TN_NETWORK_HOSTS;
	for (uint32_t i = 0; i < count; i++) {
		struct tn_network_host *host = &network->hosts[i];
		host->name[TN_NETWORK_NAME - 1] = '\0';
		if (!host->ready)
			continue;
		add(report, "connection", host->name, host->connections);
		add(report, "data", host->name, host->sends);
	}
	add(report, "connection", "further hosts", network->lost);
}

/* The field that ends at the next tab or line end; *at goes behind it. */
static char *
field(char **at)
{
	char *start = *at;
	size_t length = strcspn(start, "\t\n");
	*at = start + length + (start[length] != '\0');
	start[length] = '\0';
	return start;
}

static bool
failed(const struct tn_ending *ending)
{
	return ending->ended && WIFEXITED(ending->wait_status) && WEXITSTATUS(ending->wait_status) != 0;
}

/* A download that the wall refused is asked for by name; anything else was held back for good reason. A request that only read
 * counts as one where the program then failed: it may as well have looked for a newer version of itself. */
static void
take_lines(FILE *in, const struct tn_watch *watch, struct tn_report *report)
{
	char *line = NULL;
	size_t size = 0;
	while (getline(&line, &size, in) > 0) {
		char *at = line, *kind = field(&at), *name = field(&at);
		if (*name == '\0')
			continue;
		bool reading = strcmp(kind, "reading") == 0;
		if (!reading && strcmp(kind, "download") != 0)
			add(report, "call", name, 1);
		else if (report->download_refused == NULL && (!reading || failed(&watch->ending)))
			report->download_refused = strdup(name);
	}
	free(line);
}

void
tn__network_collect(const struct tn_run_options *options, const struct tn_watch *watch, struct tn_report *report)
{
	char path[PATH_MAX];
	const struct tn_folder *folder = watch->folder;
	report->network_allowed = options->allow_network;
	struct tn_network *network = tn__network_open(folder->path, 0);
	report->network_raw_open = !report->network_allowed && (network == NULL || watch->raw_wall != TN__RAW_ASKS);
	if (network != NULL)
		take_table(network, report);
	if (network != NULL && network->left > 0)
		report->connected = true;
	if (network != NULL)
		tn__network_close(network);
	FILE *in = fopen(tn__folder_path(folder, TN_NETWORK_CALLS, path), "re");
	if (in != NULL)
		take_lines(in, watch, report);
	if (in != NULL)
		fclose(in);
	if (report->download_refused != NULL)
		tn__report_add_doubt(
			report, TN_FINDING_download_refused, true,
			"--network allow lets it through (and everything else: values are made up), or have the file "
			"here before the run",
			"a download from %s was refused after kernels had run", report->download_refused);
}
