/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranks of a log: which failed first, which failed by themselves, which only followed since another one was gone.
 */
#ifndef TN_MESSAGE_RANKS_LOG_H
#define TN_MESSAGE_RANKS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#define TN_RANKS_MAX 16384 /* ranks above are not told apart */
#define TN_RANK_WHAT 64

struct tn_rank_end {
	bool seen;                       /* a line names it */
	uint64_t failed_at, followed_at; /* lines, from 1; 0: it did not */
	char what[TN_RANK_WHAT];         /* of the failure: the exception's name, or the launcher's words */
};

struct tn_ranks_log {
	struct tn_rank_end *ends; /* by rank; TN_RANKS_MAX of them */
	int64_t highest, seen;    /* the highest rank that a line names (-1: none), and how many are named */
	int64_t stated;           /* how many ranks the log says that there are; 0: it does not */
	int64_t root;             /* the rank that torchrun names as the first; -1: none */
	uint64_t root_at, line;
	int part; /* of torchrun's summary: which block is being read */
	int64_t part_rank;
	size_t length;
	char text[2048]; /* the line that is being read; longer ones are cut */
};

/* TN_NO_MEMORY. Released with tn__ranks_log_free. */
tn_status tn__ranks_log_start(struct tn_ranks_log *log);
void tn__ranks_log_free(struct tn_ranks_log *log);

/* Reads on; any bytes, in pieces that may end anywhere. */
void tn__ranks_log_read(struct tn_ranks_log *log, const char *bytes, size_t count);
/* The text is over. */
void tn__ranks_log_end(struct tn_ranks_log *log);

/* The rank that failed first; -1: none did, or fewer than two are named. *by_launcher: torchrun's summary says so; else it is the first in the text. */
int64_t tn__ranks_log_first(const struct tn_ranks_log *log, bool *by_launcher);

#endif
