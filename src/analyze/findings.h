/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trace shows that somebody can do something about: one rule a file (find_*.c), what they share
 * (findings.c), one table of them (rules.c).
 *
 * A rule speaks only of what it sees: where the metadata that it needs are missing, it is silent. It must not take what
 * every ordinary training loop does for a mistake.
 */
#ifndef TN_ANALYZE_FINDINGS_H
#define TN_ANALYZE_FINDINGS_H

#include "analyze/finding_ids.h"
#include "analyze/history.h"

struct tn_trace_finding {
	enum tn_finding_id id;
	bool avoidable; /* these bytes need not be there: an out-of-memory that lacked no more comes from them */
	bool grows;     /* it is itself what a leak may be taken for */
	bool weighed; /* verdict has a cause for it, which knows when it is the reason: it goes before fragmentation only */
	bool activations; /* the bytes are of the activations */
	uint64_t bytes;
	uint64_t beside;    /* that another finding tells of the same mistake */
	struct tn_line at;  /* file NULL: no line; its texts belong to the analysis */
	const char *advice; /* literal: what to advise in the place of the table's; "": nothing; NULL: as the table says */
	const char *sure;   /* literal: how sure, where it is inferred; else NULL */
	char what[400];
};

enum { TN_MOST_TRACE_FINDINGS = 16 };

struct tn_trace_findings {
	struct tn_trace_finding items[TN_MOST_TRACE_FINDINGS];
	size_t count;
};

/* What the rules look at. */
struct tn_look_around {
	const struct tn_analysis *analysis;
	const struct tn_part_list *parts;
	uint32_t state;          /* the moment in question */
	uint64_t peak;           /* the most that was reserved */
	struct tn_layout layout; /* of that moment */
	struct tn_site *sites;   /* alive then, largest first */
	size_t site_count;
};

/* Asks all rules. TN_NO_MEMORY. `list` need not be initialised. */
tn_status tn__find_all(const struct tn_analysis *analysis, const struct tn_part_list *parts, uint32_t state,
                       struct tn_trace_findings *list);

/* Adds a finding, whose words are a printf form; NULL when there are too many. */
struct tn_trace_finding *tn__found(struct tn_trace_findings *list, enum tn_finding_id id, uint64_t bytes,
                                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* "3.20 GiB", for `what`. `buffer` of 40 bytes is returned. */
const char *tn__found_size(uint64_t bytes, char buffer[40]);

/* The sites that a rule asks for, together. */
struct tn_site_sum {
	uint64_t bytes;
	const struct tn_site *largest; /* NULL: there are none */
};

typedef bool tn_site_question(const struct tn_analysis *analysis, const struct tn_site *site);
struct tn_site_sum tn__sum_sites(const struct tn_look_around *around, tn_site_question *wanted);

/* True for a notable number of bytes: at least so many, and 1/`part` of what is reserved. */
bool tn__is_worth_saying(const struct tn_look_around *around, uint64_t bytes, uint64_t least, uint64_t part);

/* The line of the program itself, where there is one, else the innermost outside of torch. */
struct tn_line tn__line_of_origin(const struct tn_origin *origin);

/* The line of a call of that name between two times (nanoseconds); file NULL when there was none. */
struct tn_line tn__line_of_call(const struct tn_analysis *analysis, const char *name, int64_t from, int64_t until);

/* The line that a stack of a free or a segment belongs to. */
struct tn_line tn__line_of_stack(const struct tn_analysis *analysis, tn_stack stack);

typedef tn_status tn_rule(const struct tn_look_around *around, struct tn_trace_findings *list);

tn_rule tn__find_caught, tn__find_fragmentation, tn__find_unused_cache, tn__find_churn, tn__find_segment_churn,
	tn__find_pinned, tn__find_evaluation_graph, tn__find_unused_graph, tn__find_foreach, tn__find_resident_data,
	tn__find_gradients_in_forward, tn__find_zeroing, tn__find_workspaces, tn__find_growth, tn__find_copies,
	tn__find_labelled, tn__find_checkpoint, tn__find_buckets, tn__find_gathered_outputs, tn__find_growing_reallocations;

#endif
