/* SPDX-License-Identifier: Apache-2.0
 *
 * What a memory snapshot adds to an out-of-memory error of a text (`tonnage explain --snapshot`). Plain data that borrows from the
 * snapshot: not thread-safe.
 */
#ifndef TN_VERDICT_SNAPSHOT_EVIDENCE_H
#define TN_VERDICT_SNAPSHOT_EVIDENCE_H

#include "analyze/analysis.h"
#include "message/message.h"
#include "tonnage/snapshot.h"

#define TN_EVIDENCE_NO_ERROR UINT64_MAX

enum { TN_EVIDENCE_REQUESTS = 256 }; /* the last ones that failed; a batch finder makes a few dozen */

struct tn_failed_request {
	size_t trace, index;
	uint64_t size, device_free;
	int64_t time_us;
	int device;
};

/* One row of what held the memory; texts belong to the snapshot. */
struct tn_evidence_row {
	const char *category; /* its JSON name; NULL: unknown */
	const char *words;
	uint64_t bytes;
	size_t blocks;
	struct tn_line at;
};

struct tn_evidence {
	const struct tn_snapshot *snapshot;
	struct tn_failed_request requests[TN_EVIDENCE_REQUESTS]; /* oldest first */
	size_t request_count;
	const struct tn_failed_request *request; /* the one looked at; NULL: there is none */
	uint64_t error;                          /* of the text that it belongs to, or TN_EVIDENCE_NO_ERROR */
	enum tn_cause text_cause;                /* of that error */
	int device;
	bool at_request; /* the figures are of the request's moment, else of the end */
	bool categories; /* there are any, `moment` is filled … */
	struct tn_moment moment;
	struct tn_holder *holders; /* … else these */
	size_t holder_count;
	uint64_t reserved, allocated, largest_free;
	struct tn_line at; /* of the request */
	enum tn_cause cause;
	char reason[320];
	char advice[2][320];
	size_t advice_count;
};

/* Takes note of the failed requests of a snapshot, which must outlive it. TN_NO_MEMORY. */
tn_status tn__evidence_new(const struct tn_snapshot *snapshot, struct tn_evidence **evidence);
void tn__evidence_free(struct tn_evidence *evidence); /* NULL is allowed */

/* Shows it an error of the text, the `number`th from 0. The last that is one of the snapshot's failed requests counts. */
void tn__evidence_match(struct tn_evidence *evidence, const struct tn_message *message, uint64_t number);

/* Looks at the moment of that request, or of the snapshot's last one; without any, at its end. To be called once, when
 * the text is over. TN_NO_MEMORY. */
tn_status tn__evidence_weigh(struct tn_evidence *evidence);

/* Of one that was weighed. */
size_t tn__evidence_rows(const struct tn_evidence *evidence);
struct tn_evidence_row tn__evidence_row(const struct tn_evidence *evidence, size_t index);

/* Whether the allocator grew its segments; -1: the snapshot does not say. */
int tn__evidence_expandable(const struct tn_snapshot *snapshot);

/* The name of a file without its folders. */
const char *tn__evidence_last_part(const char *file);

#endif
