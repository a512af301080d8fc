/* SPDX-License-Identifier: Apache-2.0
 *
 * tn_report_write: reads the input, and the one it is compared with, then writes all that was asked for. Outputs are
 * opened before anything is read, so that a wrong path costs no time.
 */
#include "tonnage/report.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "report/document.h"
#include "report/inspection_writers.h"

struct work {
	const struct tn_report_options *options;
	struct tn_inspection inspection, other;
	struct tn_comparison comparison;
	bool compared;
};

typedef tn_status writer(const struct work *work, FILE *out);

struct tn_report_options
tn_report_defaults(void)
{
	return (struct tn_report_options){ .device = -1, .text = true, .output = stdout };
}

static struct tn_shown_inspection
shown(const struct work *work)
{
	return (struct tn_shown_inspection){ &work->inspection, work->compared ? &work->comparison : NULL,
		                                 work->options->top };
}

static tn_status
write_text(const struct work *work, FILE *out)
{
	const struct tn_shown_inspection what = shown(work);
	return tn__inspection_document.text(&what, tn__style_of(out), out);
}

static tn_status
write_json(const struct work *work, FILE *out)
{
	const struct tn_shown_inspection what = shown(work);
	return tn__inspection_document.json(&what, out);
}

static tn_status
write_html(const struct work *work, FILE *out)
{
	const struct tn_shown_inspection what = shown(work);
	return tn__inspection_document.page(&what, out);
}

static tn_status
write_folded(const struct work *work, FILE *out)
{
	return tn__inspection_folded(&work->inspection, out);
}

static tn_status
write_csv(const struct work *work, FILE *out)
{
	return tn__inspection_csv(&work->inspection, out);
}

static tn_status
write_perfetto(const struct work *work, FILE *out)
{
	return tn__inspection_perfetto(&work->inspection, out);
}

static tn_status
write_markdown(const struct work *work, FILE *out)
{
	return tn__inspection_markdown(&work->inspection, out);
}

static tn_status
write_github(const struct work *work, FILE *out)
{
	return tn__inspection_github(&work->inspection, out);
}

static tn_status
write_codequality(const struct work *work, FILE *out)
{
	return tn__inspection_codequality(&work->inspection, out);
}

enum wanted_input { ANY_INPUT, SNAPSHOT, RUN };

struct output {
	const char *path;
	writer *write;
	enum wanted_input wants;
	const char *option;
};

enum { OUTPUTS = 8 };

static void
list_outputs(const struct tn_report_options *options, struct output out[OUTPUTS])
{
	const struct output outputs[OUTPUTS] = {
		{ options->json_path, write_json, ANY_INPUT, "--json" },
		{ options->html_path, write_html, ANY_INPUT, "--html" },
		{ options->folded_path, write_folded, SNAPSHOT, "--folded" },
		{ options->csv_path, write_csv, SNAPSHOT, "--csv" },
		{ options->perfetto_path, write_perfetto, SNAPSHOT, "--perfetto" },
		{ options->markdown_path, write_markdown, ANY_INPUT, "--markdown" },
		{ options->github_path, write_github, RUN, "--github" },
		{ options->codequality_path, write_codequality, RUN, "--codequality" },
	};
	memcpy(out, outputs, sizeof(outputs));
}

static bool
is_output(const char *path)
{
	return strcmp(path, "-") == 0;
}

/* Nothing is written over an input, and nothing is truncated before all has been read. */
static tn_status
check_output(const struct tn_report_options *options, const struct output *output)
{
	if (output->path == NULL || is_output(output->path))
		return TN_OK;
	TN_RETURN_IF(strcmp(output->path, options->path) == 0 ||
	                 (options->other_path != NULL && strcmp(output->path, options->other_path) == 0),
	             TN_INVALID, "%s %s would write over the input", output->option, output->path);
	FILE *out = fopen(output->path, "ae");
	TN_RETURN_IF(out == NULL, TN_INVALID, "%s cannot be written: %s", output->path, strerror(errno));
	fclose(out);
	return TN_OK;
}

static tn_status
write_one(const struct work *work, const struct output *output)
{
	if (output->path == NULL)
		return TN_OK;
	if (is_output(output->path))
		return output->write(work, work->options->output);
	FILE *out = fopen(output->path, "we");
	TN_RETURN_IF(out == NULL, TN_STATE, "%s cannot be written: %s", output->path, strerror(errno));
	tn_status status = output->write(work, out);
	if (fclose(out) != 0 && status == TN_OK)
		status = tn__fail(TN_STATE, "%s could not be written: %s", output->path, strerror(errno));
	return status;
}

static tn_status
read_inputs(struct work *work)
{
	const struct tn_report_options *options = work->options;
	struct tn_inspection_request wish = { options->path, options->at, options->device, options->redact };
	TN_FORWARD_IF_ERROR(tn__inspection_open(&wish, &work->inspection));
	if (options->other_path == NULL)
		return TN_OK;
	wish.path = options->other_path;
	TN_FORWARD_IF_ERROR(tn__inspection_open(&wish, &work->other));
	TN_FORWARD_IF_ERROR(tn__compare(&work->other, &work->inspection, &work->comparison));
	work->compared = true;
	return TN_OK;
}

static tn_status
work_on(struct work *work)
{
	struct output outputs[OUTPUTS];
	list_outputs(work->options, outputs);
	for (size_t i = 0; i < OUTPUTS; i++)
		TN_FORWARD_IF_ERROR(check_output(work->options, &outputs[i]));
	TN_FORWARD_IF_ERROR(read_inputs(work));
	for (size_t i = 0; i < OUTPUTS; i++) {
		bool snapshot = work->inspection.snapshot != NULL;
		TN_RETURN_IF(outputs[i].path != NULL && outputs[i].wants == SNAPSHOT && !snapshot, TN_INVALID,
		             "%s wants a snapshot: the JSON of a run holds no stacks and no times", outputs[i].option);
		TN_RETURN_IF(outputs[i].path != NULL && outputs[i].wants == RUN && snapshot, TN_INVALID,
		             "%s wants the JSON of a run: a snapshot has no verdict", outputs[i].option);
	}
	for (size_t i = 0; i < OUTPUTS; i++)
		TN_FORWARD_IF_ERROR(write_one(work, &outputs[i]));
	return work->options->text ? write_text(work, work->options->output) : TN_OK;
}

tn_status
tn_report_write(const struct tn_report_options *options)
{
	struct work work = { .options = options };
	tn_status status = work_on(&work);
	tn__comparison_free(&work.comparison);
	tn__inspection_free(&work.inspection);
	tn__inspection_free(&work.other);
	return status;
}
