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
#include "verdict/holder_words.h"
#include "verdict/judge.h"
#include "verdict/model_fill.h"

#define LEAST ((int64_t)16 << 20)

/* Words are made of: %N the holder's name, %T the earlier trainings, %D the later one. */
static const struct tn_holder_kind kinds[] = {
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

static void
put_word(char letter, const void *context, FILE *out)
{
	const struct tn_training_holder *holder = context;
	if (letter == 'N')
		fputs(holder->name, out);
	else if (letter == 'D')
		fprintf(out, "%lld", (long long)holder->during);
	else if (letter == 'T' && holder->trainings == 1)
		fputs("an earlier training", out);
	else if (letter == 'T')
		fprintf(out, "%lld earlier trainings", (long long)holder->trainings);
}

void
tn__add_training_holder(const struct tn_training_holder *holder, struct tn_report *report)
{
	const struct tn_holder_kind *kind = tn__holder_kind(kinds, sizeof(kinds) / sizeof(kinds[0]), holder->kind);
	if (kind != NULL && holder->name != NULL && holder->trainings >= 1 && holder->bytes >= LEAST)
		tn__holder_tell(kind, holder->bytes, holder->at, put_word, holder, report);
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

void
tn__weigh_trainings(struct tn_report *report)
{
	int64_t lacks = tn__report_short_by(report), sum = 0;
	struct tn_finding *most = NULL;
	if (tn__report_has_finding(
			report,
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
