/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files of weights the run stood in for, and what the program asked of them: from the table that its processes share
 * (src/preload/weights.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/weights.h"
#include "report/printer.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"
#include "verdict/stand_ins.h"

static struct tn__weights_table *
read_table(const struct tn_folder *folder)
{
	char path[PATH_MAX];
	struct tn__weights_table *table = calloc(1, sizeof(*table));
	int file = open(tn__folder_path(folder, "state/weights", path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool whole = table != NULL && file >= 0 && read(file, table, sizeof(*table)) == (ssize_t)sizeof(*table) &&
	             table->magic == TN__WEIGHTS_MAGIC;
	if (file >= 0)
		close(file);
	if (whole)
		return table;
	free(table);
	return NULL;
}

void
tn__stand_ins_collect(const struct tn_folder *folder, struct tn_stand_in_list *list)
{
	char path[PATH_MAX], *line = NULL;
	size_t capacity = 0;
	struct tn__weights_table *table = read_table(folder);
	FILE *names = table != NULL ? fopen(tn__folder_path(folder, "state/weights-names", path), "re") : NULL;
	for (uint64_t i = 0; names != NULL && i < table->count && i < TN__WEIGHTS_FILES; i++) {
		const struct tn__weights_record *record = &table->records[i];
		if (getline(&line, &capacity, names) <= 0)
			break;
		line[strcspn(line, "\n")] = '\0';
		tn__make_plain(line, '?'); /* the program chose it */
		struct tn_stand_in item = { .path = line,
			                        .kind = record->shape != 0 ? TN_STAND_IN_WEIGHTS_NOT_READ : TN_STAND_IN_WEIGHTS,
			                        .count = TN_NO_FIGURE,
			                        .tensors = record->tensors > 0 ? (int64_t)record->tensors : TN_NO_FIGURE,
			                        .bytes = (int64_t)record->absent,
			                        .read_bytes = (int64_t)record->read };
		if (tn__stand_ins_add(list, &item) != TN_OK)
			break;
	}
	free(line);
	if (names != NULL)
		fclose(names);
	free(table);
}

void
tn__stand_ins_findings(const struct tn_watch *watch, struct tn_report *report)
{
	const struct tn_stand_in *most = NULL;
	char room[32];
	for (size_t i = 0; i < report->stand_ins.count; i++)
		if (most == NULL || report->stand_ins.items[i].read_bytes > most->read_bytes)
			most = &report->stand_ins.items[i];
	bool failed = report->exception != NULL || (watch->ending.ended && watch->ending.wait_status != 0);
	bool out = tn__ended_out_of_memory(&watch->ending) || watch->ending.ledger_refused_last;
	if (most == NULL || most->read_bytes <= 0 || !failed || out)
		return;
	bool whole = most->kind == TN_STAND_IN_WEIGHTS_NOT_READ;
	tn__report_add_finding(
		report, TN_FINDING_weights_read, most->read_bytes, NULL,
		whole ? "--weights real, or leave the check out" : "bring the whole file, or leave the check out",
		"the program failed after it read %s of weights as zeros on the CPU, for they were %s: a check of "
		"their values or of the file's hash finds other ones (%s)",
		tn__human_bytes(most->read_bytes, room), whole ? "not to be read" : "not there", most->path);
}
