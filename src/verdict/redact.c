/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports that may be shared: of a path the file's name stays, and for its folder a number that is the same throughout
 * one report and tells nothing, since it is drawn with a secret that is thrown away. Files of torch and of the standard
 * library, which everybody has, keep their path below it.
 */
#include "verdict/redact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/secrets.h"
#include "verdict/paths.h"

struct name {
	struct name *next;
	char *shown;
	char file[];
};

enum { BUCKETS = 4096 };

struct tn_redactor {
	uint64_t secret;
	const struct tn_secrets *secrets;
	bool folders; /* are hidden */
	struct name *buckets[BUCKETS];
};

tn_status
tn__redactor_new(const struct tn_secrets *secrets, bool folders, struct tn_redactor **out)
{
	struct tn_redactor *redactor = calloc(1, sizeof(*redactor));
	TN_RETURN_IF(redactor == NULL, TN_NO_MEMORY, "out of host memory");
	if (getrandom(&redactor->secret, sizeof(redactor->secret), 0) != (ssize_t)sizeof(redactor->secret)) {
		free(redactor);
		return tn__fail(TN_IO, "no random number for --redact");
	}
	redactor->secrets = secrets;
	redactor->folders = folders;
	*out = redactor;
	return TN_OK;
}

void
tn__redactor_free(struct tn_redactor *redactor)
{
	if (redactor == NULL)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct name *name = redactor->buckets[i], *next; name != NULL; name = next) {
			next = name->next;
			free(name->shown);
			free(name);
		}
	}
	free(redactor);
}

/* FNV-1a. */
static uint64_t
hash_of(uint64_t start, const char *text, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ start;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

/* The part that everybody has; NULL. */
static const char *
well_known(const char *file)
{
	static const char *const folders[] = { "/site-packages/torch/", "/dist-packages/torch/" };
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *at = strstr(file, folders[i]);
		if (at != NULL)
			return at + 1;
	}
	const char *library = strstr(file, "/lib/python");
	return library != NULL && strstr(library, "-packages/") == NULL ? library + 1 : NULL;
}

static char *
without_folder(const struct tn_redactor *redactor, const char *file)
{
	char *shown = NULL;
	const char *known = well_known(file), *name = tn__file_name(file);
	if (file[0] == '<' || name == file)
		return strdup(file);
	if (known != NULL)
		return strdup(known);
	uint64_t folder = hash_of(redactor->secret, file, (size_t)(name - file));
	return asprintf(&shown, "%08x/%s", (unsigned)(folder & 0xffffffff), name) < 0 ? NULL : shown;
}

static char *
make_shown(const struct tn_redactor *redactor, const char *file)
{
	char *name = redactor->folders ? without_folder(redactor, file) : strdup(file);
	char *shown = name != NULL ? tn__mask_known(redactor->secrets, name) : NULL;
	free(name);
	return shown;
}

const char *
tn__redacted(struct tn_redactor *redactor, const char *file)
{
	if (file == NULL)
		return NULL;
	size_t length = strlen(file);
	struct name **bucket = &redactor->buckets[hash_of(0, file, length) % BUCKETS];
	for (struct name *name = *bucket; name != NULL; name = name->next)
		if (strcmp(name->file, file) == 0)
			return name->shown;
	struct name *fresh = malloc(sizeof(*fresh) + length + 1);
	char *shown = fresh != NULL ? make_shown(redactor, file) : NULL;
	if (shown == NULL) {
		free(fresh);
		return "?";
	}
	memcpy(fresh->file, file, length + 1);
	fresh->shown = shown;
	fresh->next = *bucket;
	*bucket = fresh;
	return shown;
}

/* ---- every path of a report ---- */

typedef void change_path(const void *how, char **path);

static void
change_place(change_path *change, const void *how, struct tn_place *place)
{
	if (place != NULL)
		change(how, &place->file);
}

static void
change_list(change_path *change, const void *how, struct tn_counted_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		change_place(change, how, &list->items[i].place);
}

static void
change_moment(change_path *change, const void *how, struct tn_report_moment *moment)
{
	change_place(change, how, moment->at);
	for (size_t i = 0; i < moment->holder_count; i++)
		change_place(change, how, &moment->holders[i].at);
}

static void
change_cards(change_path *change, const void *how, struct tn_report *report)
{
	for (size_t i = 0; i < report->rank_count; i++)
		change_moment(change, how, &report->ranks[i].at_peak);
	for (size_t i = 0; i < report->card_count; i++)
		change_moment(change, how, &report->cards[i].at_peak);
	for (size_t i = 0; i < report->programs.count; i++) {
		change_moment(change, how, &report->programs.items[i].at_peak);
		change_moment(change, how, &report->programs.items[i].at_oom);
	}
	change_place(change, how, report->hang.who.at);
	for (size_t i = 0; i < report->hang.count; i++)
		change_place(change, how, report->hang.waiting[i].at);
}

static void
change_paths(change_path *change, const void *how, struct tn_report *report)
{
	change_moment(change, how, &report->at_peak);
	change_moment(change, how, &report->at_oom);
	change_place(change, how, report->oom.at);
	for (size_t i = 0; i < report->oom.stack.count; i++)
		change_place(change, how, &report->oom.stack.items[i]);
	change_place(change, how, report->growth.at);
	change_place(change, how, report->exception_at);
	change_place(change, how, report->kept_at);
	change_place(change, how, report->inputs.at);
	for (size_t i = 0; i < report->host.loader_count; i++)
		change_place(change, how, report->host.loaders[i].at);
	for (size_t i = 0; i < report->region_count; i++)
		change_place(change, how, report->regions[i].at);
	for (size_t i = 0; i < report->finding_count; i++)
		change_place(change, how, report->findings[i].at);
	change_list(change, how, &report->handled_ooms);
	change_list(change, how, &report->ended_inside);
	change_list(change, how, &report->computed_reads);
	change_list(change, how, &report->usage);
	for (size_t i = 0; i < report->assumptions.count; i++)
		change_place(change, how, &report->assumptions.items[i].place);
	for (size_t i = 0; i < report->gate.drift_count; i++)
		change_place(change, how, &report->gate.drifts[i].at);
	for (size_t i = 0; i < report->stand_ins.count; i++)
		change(how, &report->stand_ins.items[i].path);
	change_cards(change, how, report);
	change(how, &report->gate.path);
	change(how, &report->gate.written);
	change(how, &report->scratch);
	change(how, &report->snapshot);
}

/* ---- secrets ---- */

static void
mask_path(const void *secrets, char **text)
{
	char *masked = *text != NULL ? tn__mask_known(secrets, *text) : NULL;
	free(*text);
	*text = masked;
}

void
tn__mask_paths(struct tn_report *report)
{
	change_paths(mask_path, report->secrets, report);
	mask_path(report->secrets, &report->working_folder); /* as in the paths below it */
}

static void
mask(const struct tn_secrets *secrets, char **text)
{
	char *masked = *text != NULL ? tn__mask_said(secrets, *text) : NULL;
	free(*text);
	*text = masked;
}

static void
mask_list(const struct tn_secrets *secrets, struct tn_counted_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		mask(secrets, &list->items[i].name);
}

/* Texts that are made of what the program said, or of how it was called. */
void
tn__mask_report(struct tn_report *report)
{
	const struct tn_secrets *secrets = report->secrets;
	mask(secrets, &report->command);
	mask(secrets, &report->exception);
	mask(secrets, &report->oom.message);
	mask(secrets, &report->hook_error);
	mask(secrets, &report->download_refused);
	mask(secrets, &report->kept_in);
	mask_list(secrets, &report->ended_inside);
	mask_list(secrets, &report->held_back);
	mask_list(secrets, &report->usage);
	mask_list(secrets, &report->files.refusals);
	mask_list(secrets, &report->files.unseen);
	for (size_t i = 0; i < report->finding_count; i++) {
		mask(secrets, &report->findings[i].what);
		mask(secrets, &report->findings[i].advice);
	}
	for (size_t i = 0; i < report->doubt_count; i++) {
		mask(secrets, &report->doubts[i].what);
		mask(secrets, &report->doubts[i].advice);
	}
	for (size_t i = 0; i < report->region_count; i++)
		mask(secrets, &report->regions[i].name);
	for (size_t i = 0; i < report->not_seen_count; i++)
		mask(secrets, &report->not_seen[i]);
	for (size_t i = 0; i < report->assumptions.count; i++)
		mask(secrets, &report->assumptions.items[i].value);
	for (size_t i = 0; i < report->sensor_count; i++)
		mask(secrets, &report->sensors[i].error);
}

/* ---- --redact ---- */

static void
redact(const void *redactor, char **file)
{
	char *shown = *file != NULL ? strdup(tn__redacted((struct tn_redactor *)(uintptr_t)redactor, *file)) : NULL;
	free(*file);
	*file = shown;
}

static void
forget(char **text)
{
	free(*text);
	*text = NULL;
}

void
tn__redact_report(struct tn_redactor *redactor, struct tn_report *report)
{
	change_paths(redact, redactor, report);
	forget(&report->options);
	forget(&report->command); /* these hold what the program likes to say */
	forget(&report->exception);
	forget(&report->working_folder);
	forget(&report->oom.message);
	forget(&report->hook_error);
	for (size_t i = 0; i < report->sensor_count; i++)
		forget(&report->sensors[i].error);
}
