/* SPDX-License-Identifier: Apache-2.0
 *
 * The words for what earlier trainings left, one row a kind of holder.
 */
#include "verdict/trainings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "verdict/finding_rows.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"

#define LEAST ((int64_t)16 << 20)

/* Words are made of: %N the holder's name, %B the bytes, %T the earlier trainings, %D the later one. */
static const struct kind {
	const char *name;
	enum tn_finding_id id;
	const char *what, *advice;
} kinds[] = {
	{ "variable", TN_FINDING_earlier_training_bound, "%N still held %B of %T while training %D was set up or went on",
	  "set %N to None before the next training begins" },
	{ "container", TN_FINDING_earlier_training, "%N keeps %B of %T while training %D goes on",
	  "keep only what is needed of each training, or keep it on the CPU (.cpu())" },
	{ "exception", TN_FINDING_earlier_training,
	  "an exception that %N keeps holds %B of %T: its traceback has the variables of the functions it went through",
	  "traceback.clear_frames(error.__traceback__) in the except block, or keep str(error) only" },
	{ "handled", TN_FINDING_earlier_training,
	  "the exception that is being handled holds %B of %T while training %D goes on inside of the except block",
	  "try again behind the except block, or clear the traceback's frames first (traceback.clear_frames)" },
	{ "study", TN_FINDING_earlier_training, "the study %N keeps %B of %T in its trials while training %D goes on",
	  "save what is needed of a trial to a file, and keep its name in the trial, or keep it on the CPU (.cpu())" },
	{ "cache", TN_FINDING_earlier_training,
	  "the cache of %N (functools.lru_cache) keeps %B of %T while training %D goes on",
	  "%N.cache_clear() before the next training begins" },
	{ "garbage", TN_FINDING_earlier_training,
	  "%B of %T is garbage that Python has not collected: it refers to itself in a circle",
	  "gc.collect() before the next training begins (Optuna: gc_after_trial=True)" },
};

static const struct kind *
kind_of(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static char *
words_of(const char *pattern, const struct tn_training_holder *holder)
{
	char *text = NULL, bytes[32];
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	for (const char *at = pattern; *at != '\0'; at++) {
		if (*at != '%')
			fputc(*at, out);
		else if (*++at == 'N')
			fputs(holder->name, out);
		else if (*at == 'B')
			fputs(tn__human_bytes(holder->bytes, bytes), out);
		else if (*at == 'D')
			fprintf(out, "%lld", (long long)holder->during);
		else if (*at == 'T' && holder->trainings == 1)
			fputs("an earlier training", out);
		else if (*at == 'T')
			fprintf(out, "%lld earlier trainings", (long long)holder->trainings);
	}
	fclose(out);
	return text;
}

void
tn__add_training_holder(const struct tn_training_holder *holder, struct tn_report *report)
{
	const struct kind *kind = kind_of(holder->kind);
	if (kind == NULL || holder->name == NULL || holder->trainings < 1 || holder->bytes < LEAST)
		return;
	char *what = words_of(kind->what, holder), *advice = words_of(kind->advice, holder);
	if (what != NULL && advice != NULL)
		tn__report_add_finding(report, kind->id, holder->bytes, holder->at, advice, "%s", what);
	free(what);
	free(advice);
}

/* What a record shows of the same bytes, without knowing that they are of an earlier training. */
static void
drop_what_is_the_same(struct tn_report *report, int64_t bytes)
{
	static const enum tn_finding_id same[] = { TN_FINDING_gradients_live_through_forward, TN_FINDING_model_copy };
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		for (size_t j = 0; j < report->finding_count; j++)
			if (tn__finding_is(&report->findings[j], same[i]) && report->findings[j].bytes <= bytes) {
				tn__report_drop_findings(report, same[i]);
				break;
			}
}

static bool
is_of_trainings(const struct tn_finding *finding)
{
	return tn__finding_is(finding, TN_FINDING_earlier_training) ||
	       tn__finding_is(finding, TN_FINDING_earlier_training_bound);
}

static bool
has(const struct tn_report *report, enum tn_finding_id id)
{
	for (size_t i = 0; i < report->finding_count; i++)
		if (tn__finding_is(&report->findings[i], id))
			return true;
	return false;
}

void
tn__weigh_trainings(struct tn_report *report)
{
	int64_t lacks = tn__report_short_by(report), sum = 0;
	struct tn_finding *most = NULL;
	if (has(report,
	        TN_FINDING_deleted_but_held)) /* the program has said that it is over, and the record knows the line */
		tn__report_drop_findings(report, TN_FINDING_earlier_training_bound);
	for (size_t i = 0; i < report->finding_count; i++)
		if (is_of_trainings(&report->findings[i]))
			sum += report->findings[i].bytes;
	drop_what_is_the_same(report, sum);
	for (size_t i = 0; i < report->finding_count; i++) {
		struct tn_finding *finding = &report->findings[i];
		if (is_of_trainings(finding) && (most == NULL || finding->bytes > most->bytes))
			most = finding;
	}
	if (report->oom.seen && lacks > 0 && most != NULL && sum >= lacks)
		tn__report_lead_with(report, most);
}
