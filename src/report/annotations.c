/* SPDX-License-Identifier: Apache-2.0
 *
 * What a reviewer sees beside the lines of a change: the line to blame for a bad verdict, what grew against a baseline, and findings
 * that have a line. As workflow commands of GitHub, and as GitLab's report of code quality (a subset of Code Climate's format).
 *
 * Both want paths below the root of the repository. That is taken to be the working folder, so `tonnage report` is called there; what
 * lies elsewhere (packages) has no line in the repository.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/secrets.h"
#include "report/json_parts.h"
#include "report/inspection_writers.h"
#include "report/text.h"
#include "verdict/paths.h"

#define MOST_DRIFTS 5

struct annotation {
	enum tn_severity severity;
	const char *id;              /* what it is about, the same from run to run */
	const struct tn_place *at;   /* in the repository; NULL: of no line in it */
	const char *title, *message; /* message: lines */
};

struct writer {
	const struct tn_report *report;
	char *root; /* of the repository */
	void (*write)(struct writer *writer, const struct annotation *annotation);
	FILE *out;
	json_t *array;
};

/* ---- places ---- */

/* The path below the root, or NULL. */
static const char *
below_root(const struct writer *writer, const struct tn_place *at)
{
	size_t length = writer->root != NULL ? strlen(writer->root) : 0;
	if (at == NULL || at->file == NULL || at->line < 1 || length < 2 || !tn__is_users_own(at->file))
		return NULL;
	return strncmp(at->file, writer->root, length) == 0 && at->file[length] == '/' ? at->file + length + 1 : NULL;
}

/* The innermost line of the repository on the way to the out-of-memory. */
static const struct tn_place *
oom_place(const struct writer *writer)
{
	const struct tn_report_oom *oom = &writer->report->oom;
	if (below_root(writer, oom->at) != NULL)
		return oom->at;
	for (size_t i = 0; i < oom->stack.count; i++)
		if (below_root(writer, &oom->stack.items[i]) != NULL)
			return &oom->stack.items[i];
	return NULL;
}

/* The line to blame for the verdict; NULL where none is in the repository. */
static const struct tn_place *
guilty_place(const struct writer *writer)
{
	const struct tn_report *report = writer->report;
	const struct tn_finding *reason = tn__reason_of(report);
	const struct tn_place *places[] = { report->oom.seen ? oom_place(writer) : NULL,
		                                report->verdict == TN_VERDICT_GROWS ? report->growth.at : NULL,
		                                reason != NULL ? reason->at : NULL, report->exception_at };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (below_root(writer, places[i]) != NULL)
			return places[i];
	return NULL;
}

static bool
is_same_line(const struct tn_place *one, const struct tn_place *other)
{
	return one != NULL && other != NULL && one->line == other->line && strcmp(one->file, other->file) == 0;
}

/* ---- what is annotated ---- */

/* The verdict's own lines: the first is the title, the others and the reason are the message. */
static void
add_verdict(struct writer *writer, const struct tn_inspection *inspection, const struct tn_place *at)
{
	const struct tn_finding *reason = tn__reason_of(writer->report);
	char *words = tn__inspection_words(inspection, tn__inspection_head), *message = NULL, *rest = words;
	size_t size = 0;
	FILE *out = open_memstream(&message, &size);
	char *title = words != NULL ? strtok_r(words, "\n", &rest) : NULL;
	if (out == NULL || title == NULL) {
		if (out != NULL)
			fclose(out);
		free(message);
		free(words);
		return;
	}
	for (char *line = strtok_r(NULL, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		fprintf(out, "%s\n", line + strspn(line, " "));
	if (reason != NULL)
		fprintf(out, "Why: %s\n", reason->what);
	if (reason != NULL && reason->advice != NULL)
		fprintf(out, "Next: %s\n", reason->advice);
	fclose(out);
	message[strlen(message) - (size > 0)] = '\0'; /* the last line's end */
	writer->write(writer, &(struct annotation){ TN_SEVERITY_ERROR, tn__verdict_text(writer->report->verdict), at, title,
	                                            message[0] != '\0' ? message : title });
	free(message);
	free(words);
}

/* What else grew since the baseline, line by line. */
static void
add_drifts(struct writer *writer, const struct tn_place *blamed)
{
	const struct tn_report_gate *gate = &writer->report->gate;
	bool over = writer->report->verdict == TN_VERDICT_OVER_BUDGET ||
	            writer->report->verdict == TN_VERDICT_OVER_BASELINE;
	for (size_t i = 0, told = 0; over && i < gate->drift_count && told < MOST_DRIFTS; i++) {
		const struct tn_drift *drift = &gate->drifts[i];
		char title[128], more[32], after[32], before[32], id[64], message[96];
		if (drift->after <= drift->before || below_root(writer, &drift->at) == NULL || is_same_line(blamed, &drift->at))
			continue;
		snprintf(title, sizeof(title), "%s more %s than in the baseline",
		         tn__human_bytes(drift->after - drift->before, more), tn__category_words(drift->category));
		snprintf(message, sizeof(message), "%s, was %s", tn__human_bytes(drift->after, after),
		         tn__human_bytes(drift->before, before));
		snprintf(id, sizeof(id), "grew_%s", tn__category_name(drift->category));
		writer->write(writer, &(struct annotation){ TN_SEVERITY_WARNING, id, &drift->at, title, message });
		told++;
	}
}

/* Findings that have a line; hints do not stand beside code that nobody has asked about. */
static void
add_findings(struct writer *writer, const struct tn_place *blamed)
{
	for (size_t i = 0; i < writer->report->finding_count; i++) {
		const struct tn_finding *finding = &writer->report->findings[i];
		if (finding->severity == TN_SEVERITY_HINT || finding->what == NULL || below_root(writer, finding->at) == NULL ||
		    is_same_line(blamed, finding->at))
			continue;
		writer->write(writer, &(struct annotation){ finding->severity, finding->id, finding->at, finding->what,
		                                            finding->advice != NULL ? finding->advice : finding->what });
	}
}

static void
add_all(struct writer *writer, const struct tn_inspection *inspection)
{
	const struct tn_place *blamed = NULL;
	writer->report = &inspection->report;
	writer->root = getcwd(NULL, 0);
	if (inspection->report.verdict != TN_VERDICT_FITS) {
		blamed = guilty_place(writer);
		add_verdict(writer, inspection, blamed);
		add_drifts(writer, blamed);
	}
	add_findings(writer, blamed);
	free(writer->root);
}

/* ---- GitHub ---- */

/* As the runner's own toolkit does: in properties colons and commas, too. */
static void
put_escaped(FILE *out, const char *text, bool property)
{
	char *masked = tn__mask_known(NULL, text);
	for (const char *at = masked; at != NULL && *at != '\0'; at++) {
		char c = *at;
		if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
			fprintf(out, "%%%02X", (unsigned char)c);
		else
			fputc(c, out);
	}
	free(masked);
}

static void
write_github(struct writer *writer, const struct annotation *annotation)
{
	const char *path = below_root(writer, annotation->at);
	fprintf(writer->out, "::%s ", annotation->severity == TN_SEVERITY_ERROR ? "error" : "warning");
	if (path != NULL) {
		fputs("file=", writer->out);
		put_escaped(writer->out, path, true);
		fprintf(writer->out, ",line=%lld,", (long long)annotation->at->line);
	}
	fputs("title=", writer->out);
	put_escaped(writer->out, annotation->title, true);
	fputs("::", writer->out);
	put_escaped(writer->out, annotation->message, false);
	fputc('\n', writer->out);
}

tn_status
tn__inspection_github(const struct tn_inspection *inspection, FILE *out)
{
	struct writer writer = { .write = write_github, .out = out };
	add_all(&writer, inspection);
	TN_RETURN_IF(fflush(out) != 0 || ferror(out), TN_STATE, "the annotations could not be written");
	return TN_OK;
}

/* ---- GitLab ---- */

/* GitLab shows nothing that has no line. */
static void
write_codequality(struct writer *writer, const struct annotation *annotation)
{
	const char *path = below_root(writer, annotation->at), *function = path != NULL ? annotation->at->function : NULL;
	char *description = NULL, *fingerprint = NULL;
	bool titled = strcmp(annotation->title, annotation->message) == 0;
	if (path == NULL)
		return;
	if (asprintf(&description, "%s%s%s", annotation->title, titled ? "" : "\n", titled ? "" : annotation->message) >=
	        0 &&
	    asprintf(&fingerprint, "tonnage:%s:%s:%s", annotation->id, path, function != NULL ? function : "") >= 0)
		json_array_append_new(writer->array, json_pack("{s:o, s:s, s:o, s:s, s:{s:o, s:{s:I}}}", "description",
		                                               tn__json_text(description), "check_name", annotation->id,
		                                               "fingerprint", tn__json_text(fingerprint), "severity",
		                                               annotation->severity == TN_SEVERITY_ERROR ? "critical" : "minor",
		                                               "location", "path", tn__json_text(path), "lines", "begin",
		                                               (json_int_t)annotation->at->line));
	free(description);
	free(fingerprint);
}

tn_status
tn__inspection_codequality(const struct tn_inspection *inspection, FILE *out)
{
	struct writer writer = { .write = write_codequality, .array = json_array() };
	add_all(&writer, inspection);
	bool written = writer.array != NULL && tn__json_write(writer.array, out, JSON_INDENT(2)) == 0 &&
	               fputc('\n', out) != EOF;
	json_decref(writer.array);
	TN_RETURN_IF(!written || fflush(out) != 0 || ferror(out), TN_STATE, "the annotations could not be written");
	return TN_OK;
}
