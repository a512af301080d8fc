/* SPDX-License-Identifier: Apache-2.0
 *
 * What a text says of a run beside its errors: batch, length, model and parameters where a command line, a
 * configuration or a
 * log prints them, and tables that were pasted along (nvidia-smi, torch.cuda.memory_summary()).
 *
 * Lines are read one at a time; nothing of them is kept but the figures.
 */
#ifndef TN_MESSAGE_SEEN_H
#define TN_MESSAGE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message/message.h"

#define TN_SEEN_CARDS 16
#define TN_SEEN_PROCESSES 32
#define TN_SEEN_MODEL 128

#define TN_SETTING_LIST(X)                \
	X(MICRO_BATCH, "micro_batch")         \
	X(ACCUMULATION, "accumulation_steps") \
	X(LENGTH, "length")                   \
	X(IMAGE, "image_size")

enum tn_seen_setting {
#define TN_SETTING_ENUM(name, text) TN_SETTING_##name,
	TN_SETTING_LIST(TN_SETTING_ENUM)
#undef TN_SETTING_ENUM
		TN_SETTING_COUNT
};

#define TN_SUMMARY_LIST(X)                               \
	X(ALLOCATED, "allocated_bytes", "Allocated memory")  \
	X(ACTIVE, "active_bytes", "Active memory")           \
	X(REQUESTED, "requested_bytes", "Requested memory")  \
	X(RESERVED, "reserved_bytes", "GPU reserved memory") \
	X(NON_RELEASABLE, "non_releasable_bytes", "Non-releasable memory")

enum tn_seen_summary {
#define TN_SUMMARY_ENUM(name, text, words) TN_SUMMARY_##name,
	TN_SUMMARY_LIST(TN_SUMMARY_ENUM)
#undef TN_SUMMARY_ENUM
		TN_SUMMARY_COUNT
};

struct tn_seen_card {
	int64_t index; /* -1: not printed */
	uint64_t used, total;
};

struct tn_seen_process {
	int64_t card;
	uint64_t pid, bytes;
};

struct tn_seen {
	uint64_t settings[TN_SETTING_COUNT];      /* TN_MESSAGE_NONE: not printed */
	uint8_t name_of[TN_SETTING_COUNT];        /* which name gave it */
	char model[TN_SEEN_MODEL];                /* "": not printed */
	uint64_t parameters, trainable;           /* TN_MESSAGE_NONE: not printed */
	struct tn_seen_card cards[TN_SEEN_CARDS]; /* of nvidia-smi's last table */
	size_t card_count;
	struct tn_seen_process processes[TN_SEEN_PROCESSES];
	size_t process_count;
	int64_t line_card; /* of nvidia-smi: whose figures the next line has */
	bool in_summary;
	int64_t summary_device; /* -1: no summary */
	uint64_t summary[TN_SUMMARY_COUNT], summary_peak[TN_SUMMARY_COUNT];
};

void tn__seen_start(struct tn_seen *seen);

/* Reads a clean line, ended by NUL. */
void tn__seen_read(struct tn_seen *seen, const char *line, size_t length);

/* Whether anything was seen. */
bool tn__seen_any(const struct tn_seen *seen);

const char *tn__setting_text(enum tn_seen_setting setting);
const char *tn__summary_text(enum tn_seen_summary figure);

#endif
