/* SPDX-License-Identifier: Apache-2.0
 *
 * What every byte was for: the allocator's records that the guests left, joined with the ledger's account. The records
 * come from the program's processes, so nothing in them is trusted: one that cannot be read, or that contradicts the
 * ledger, leaves the report without categories and is said.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/view.h"
#include "base/error.h"
#include "supervise/internal.h"
#include "verdict/model_fill.h"

#define UNTOLD "what the memory was for is unknown"

/* A record that can be read; NULL where there is none. */
struct record {
	struct tn_view *view;
	int device;
};

struct records {
	struct record peak, oom;
};

static struct record
open_record(const struct tn_folder *folder, const struct tn_guest_record *record, struct tn_report *report)
{
	struct record opened = { NULL, record->device };
	if (record->path == NULL || !tn__folder_owns(folder, record->path))
		return opened;
	if (tn__views_open(report->views, record->path, &opened.view) != TN_OK)
		tn__report_add_finding(report, TN_FINDING_record_unreadable, TN_NO_FIGURE, NULL, UNTOLD,
		                       "the record of PyTorch's allocator cannot be read: %s", tn_error_text());
	return opened;
}

static tn_status
moment_of_peak(const struct record *record, uint64_t reserved, struct tn_moment *out)
{
	const struct tn_analysis *analysis;
	TN_FORWARD_IF_ERROR(tn__view_analysis(record->view, record->device, &analysis));
	return tn__moment_of_peak(analysis, reserved, out);
}

static tn_status
moment_of_end(const struct record *record, struct tn_moment *out)
{
	const struct tn_analysis *analysis;
	TN_FORWARD_IF_ERROR(tn__view_analysis(record->view, record->device, &analysis));
	return tn__moment_of_end(analysis, out);
}

static tn_status
growth_of(const struct record *record, struct tn_holding **holdings, size_t *count)
{
	const struct tn_analysis *analysis;
	TN_FORWARD_IF_ERROR(tn__view_analysis(record->view, record->device, &analysis));
	return tn__growth_of(analysis, holdings, count);
}

static void
join(struct tn_report *report, struct tn_report_moment *moment, struct tn_moment *pytorch)
{
	if (tn__report_join(moment, pytorch) != TN_OK)
		tn__report_add_finding(report, TN_FINDING_categories_do_not_add_up, TN_NO_FIGURE, NULL, UNTOLD,
		                       "two records of the same moment contradict each other: %s", tn_error_text());
	tn__moment_free(pytorch);
}

/* On an unlimited card the peak is that of what was allocated: what was reserved there beyond it is cache, which may have grown
 * in any other moment. The ledger's account becomes that of this moment. */
static tn_status
find_allocated_peak(const struct record *record, const struct tn_guest_news *news, struct tn_report *report,
                    struct tn_moment *out)
{
	struct tn_report_split split = report->at_peak.split;
	const struct tn_analysis *analysis;
	if (record->view == NULL || news->sharers != 1 || split.program == TN_NO_FIGURE ||
	    report->gpu.total_bytes < TN_UNLIMITED_CARD || report->allocated_peak == TN_NO_FIGURE ||
	    report->reserved_peak == TN_NO_FIGURE)
		return tn__fail(TN_NOT_FOUND, "the card is not an unlimited one");
	TN_FORWARD_IF_ERROR(tn__view_analysis(record->view, record->device, &analysis));
	TN_FORWARD_IF_ERROR(tn__moment_of_allocated(analysis, (uint64_t)report->allocated_peak, out));
	split.program -= report->reserved_peak - (int64_t)out->reserved;
	tn__report_set_split(&report->at_peak, &split);
	return TN_OK;
}

/* The moment at which PyTorch held exactly what the ledger says its process did, in either record; else the most it held, if
 * that is not more: then the rest was of the program outside PyTorch. What other processes held is the rest, too. */
static tn_status
find_peak(const struct records *records, const struct tn_guest_news *news, const struct tn_report *report,
          struct tn_moment *out, bool *exact)
{
	int64_t program = news->peak_bytes > 0 ? news->peak_bytes : report->at_peak.split.program;
	bool told = !report->real_gpu && (news->sharers == 1 || news->peak_bytes > 0) && program != TN_NO_FIGURE;
	tn_status status = TN_NOT_FOUND;
	*exact = true;
	if (told && records->peak.view != NULL)
		status = moment_of_peak(&records->peak, (uint64_t)program, out);
	if (status != TN_OK && told && records->oom.view != NULL)
		status = moment_of_peak(&records->oom, (uint64_t)program, out);
	if (status == TN_OK)
		return TN_OK;
	*exact = false;
	return moment_of_peak(records->peak.view != NULL ? &records->peak : &records->oom, TN_UNKNOWN, out);
}

static void
detail_of_peak(const struct records *records, const struct tn_guest_news *news, struct tn_report *report)
{
	struct tn_moment moment;
	bool exact;
	if (records->peak.view == NULL && records->oom.view == NULL)
		return;
	if (find_allocated_peak(&records->peak, news, report, &moment) == TN_OK) {
		join(report, &report->at_peak, &moment);
		return;
	}
	if (find_peak(records, news, report, &moment, &exact) != TN_OK) {
		tn__report_add_finding(report, TN_FINDING_peak_not_recorded, TN_NO_FIGURE, NULL, UNTOLD,
		                       "PyTorch's record does not hold the moment of the peak: %s", tn_error_text());
		return;
	}
	join(report, &report->at_peak, &moment);
	if (report->at_peak.detailed && !exact && !report->real_gpu)
		tn__report_add_source(report, "at_peak.by_category",
		                      "the moment at which PyTorch held most in its process; what the device held beyond "
		                      "that is in other");
}

/* A stack alone cannot tell a forward pass of evaluation that builds a graph from one of training. */
static void
take_phase(struct tn_report *report)
{
	const char *told = report->at_oom.phase, *seen = report->oom.phase;
	bool evaluation = told != NULL && strcmp(told, "evaluation") == 0;
	if (told == NULL || (seen != NULL && !(evaluation && strcmp(seen, "forward") == 0)))
		return;
	free(report->oom.phase);
	report->oom.phase = strdup(told);
}

/* Backward works on threads without a Python stack: the guest knows the line that called it, the analysis the line of the
 * forward pass that the work belongs to. */
static void
take_forward_line(const struct tn_moment *moment, struct tn_report *report)
{
	const struct tn_line *line = moment->at_user.file != NULL ? &moment->at_user : &moment->at;
	if (!line->backward || line->file == NULL || (report->oom.at != NULL && !report->oom.at->backward))
		return;
	struct tn_place *place = tn__report_new_place(line->file, line->line, line->function, true);
	if (place != NULL) {
		tn__report_free_place(report->oom.at);
		report->oom.at = place;
	}
}

static void
detail_of_oom(const struct records *records, struct tn_report *report)
{
	struct tn_moment moment;
	if (records->oom.view == NULL)
		return;
	if (moment_of_end(&records->oom, &moment) == TN_OK) {
		take_forward_line(&moment, report);
		join(report, &report->at_oom, &moment);
	} else {
		tn__report_add_finding(report, TN_FINDING_out_of_memory_not_recorded, TN_NO_FIGURE, NULL, UNTOLD,
		                       "PyTorch's record does not contain the out-of-memory: %s", tn_error_text());
	}
	take_phase(report);
}

/* The line that most of the growth comes from; the guest knows only the loop that it goes on in. */
static void
detail_of_growth(const struct records *records, struct tn_report *report)
{
	const struct record *record = records->peak.view != NULL ? &records->peak : &records->oom;
	struct tn_holding *holdings = NULL;
	size_t count = 0;
	if (!report->growth.seen || record->view == NULL || growth_of(record, &holdings, &count) != TN_OK)
		return;
	const struct tn_line *at = NULL;
	for (size_t i = 0; i < count && at == NULL; i++)
		at = holdings[i].user.file != NULL ? &holdings[i].user : holdings[i].at.file != NULL ? &holdings[i].at : NULL;
	struct tn_place *place = at != NULL ? tn__report_new_place(at->file, at->line, at->function, at->backward) : NULL;
	if (place != NULL) {
		tn__report_free_place(report->growth.at);
		report->growth.at = place;
	}
	free(holdings);
}

static struct tn_record
keep(const struct record *opened, const struct tn_guest_record *record)
{
	return (struct tn_record){ opened->view != NULL ? strdup(record->path) : NULL, record->device };
}

void
tn__detail_collect(const struct tn_folder *folder, const struct tn_guest_news *news, struct tn_report *report)
{
	struct records records = { open_record(folder, &news->peak, report), open_record(folder, &news->oom, report) };
	detail_of_peak(&records, news, report);
	detail_of_oom(&records, report);
	detail_of_growth(&records, report);
	report->peak_record = keep(&records.peak, &news->peak);
	report->oom_record = keep(&records.oom, &news->oom);
}
