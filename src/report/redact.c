/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports that may be shared: of a path the file's name stays, and for its folder a number that is the same throughout
 * one report and tells nothing, since it is drawn with a secret that is thrown away. Files of torch and of the standard
 * library, which everybody has, keep their path below it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/secrets.h"
#include "report/study.h"
#include "report/text.h"

struct name {
	struct name *next;
	char *shown;
	char file[];
};

enum { BUCKETS = 4096 };

struct tn_redactor {
	uint64_t secret;
	struct name *buckets[BUCKETS];
};

tn_status
tn__redactor_new(struct tn_redactor **out)
{
	struct tn_redactor *redactor = calloc(1, sizeof(*redactor));
	TN_RETURN_IF(redactor == NULL, TN_NO_MEMORY, "out of host memory");
	if (getrandom(&redactor->secret, sizeof(redactor->secret), 0) != (ssize_t)sizeof(redactor->secret)) {
		free(redactor);
		return tn__fail(TN_IO, "no random number for --redact");
	}
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
make_shown(const struct tn_redactor *redactor, const char *file)
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

static void
redact(struct tn_redactor *redactor, char **file)
{
	char *shown = *file != NULL ? strdup(tn__redacted(redactor, *file)) : NULL;
	free(*file);
	*file = shown;
}

static void
redact_place(struct tn_redactor *redactor, struct tn_place *place)
{
	if (place != NULL)
		redact(redactor, &place->file);
}

static void
redact_list(struct tn_redactor *redactor, struct tn_counted_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		redact_place(redactor, &list->items[i].place);
}

static void
redact_moment(struct tn_redactor *redactor, struct tn_report_moment *moment)
{
	redact_place(redactor, moment->at);
	for (size_t i = 0; i < moment->holder_count; i++)
		redact_place(redactor, &moment->holders[i].at);
}

static void
forget(char **text)
{
	free(*text);
	*text = NULL;
}

static void
mask(const struct tn_secrets *secrets, char **text)
{
	char *masked = *text != NULL ? tn__mask_known(secrets, *text) : NULL;
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
tn__mask_report(const struct tn_secrets *secrets, struct tn_report *report)
{
	mask(secrets, &report->command);
	mask(secrets, &report->exception);
	mask(secrets, &report->oom.message);
	mask(secrets, &report->hook_error);
	mask(secrets, &report->download_refused);
	mask(secrets, &report->kept_in);
	mask_list(secrets, &report->ended_inside);
	mask_list(secrets, &report->held_back);
	mask_list(secrets, &report->habits);
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

void
tn__redact_report(struct tn_redactor *redactor, struct tn_report *report)
{
	redact_moment(redactor, &report->at_peak);
	redact_moment(redactor, &report->at_oom);
	redact_place(redactor, report->oom.at);
	for (size_t i = 0; i < report->oom.stack.count; i++)
		redact_place(redactor, &report->oom.stack.items[i]);
	redact_place(redactor, report->growth.at);
	redact_place(redactor, report->exception_at);
	for (size_t i = 0; i < report->region_count; i++)
		redact_place(redactor, report->regions[i].at);
	for (size_t i = 0; i < report->finding_count; i++)
		redact_place(redactor, report->findings[i].at);
	redact_list(redactor, &report->handled_ooms);
	redact_list(redactor, &report->computed_reads);
	for (size_t i = 0; i < report->assumptions.count; i++)
		redact_place(redactor, &report->assumptions.items[i].place);
	for (size_t i = 0; i < report->gate.drift_count; i++)
		redact_place(redactor, &report->gate.drifts[i].at);
	redact(redactor, &report->gate.path);
	redact(redactor, &report->gate.written);
	redact(redactor, &report->scratch);
	redact(redactor, &report->snapshot);
	forget(&report->command); /* these hold what the program likes to say */
	forget(&report->exception);
	forget(&report->working_folder);
	forget(&report->oom.message);
	forget(&report->hook_error);
	for (size_t i = 0; i < report->sensor_count; i++)
		forget(&report->sensors[i].error);
}
