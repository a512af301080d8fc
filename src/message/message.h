/* SPDX-License-Identifier: Apache-2.0
 *
 * Out-of-memory errors found in a text of any length: what was printed, what it means, what to do.
 *
 * The scanner reads the text once, in pieces of any size, and hands over each error as soon as it is complete. It
 * keeps a window of TN_MESSAGE_WINDOW bytes and nothing else, so memory does not grow with the text. It must not know
 * where the text comes from or how errors are shown. A scanner serves one thread.
 */
#ifndef TN_MESSAGE_MESSAGE_H
#define TN_MESSAGE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#define TN_MESSAGE_WINDOW 65536    /* bytes of text kept, cleaned */
#define TN_MESSAGE_LINE 8192       /* a longer line is read in pieces of this size */
#define TN_MESSAGE_REGION 16384    /* a message ends after so many characters that are not blank ... */
#define TN_MESSAGE_TAIL_LINES 40   /* ... or so many lines after its last known phrase */
#define TN_MESSAGE_PROCESSES 256   /* listed processes kept for one error */
#define TN_MESSAGE_CULPRIT 1024    /* bytes of "file:line" */
#define TN_MESSAGE_NONE UINT64_MAX /* a figure that was not printed, or not whole */

/* The figures, by their names in the JSON. */
#define TN_FIGURE_LIST(X)                                 \
	X(TRIED, "tried_bytes")                               \
	X(TOTAL, "total_bytes")                               \
	X(FREE, "free_bytes")                                 \
	X(ALLOCATED, "allocated_bytes")                       \
	X(RESERVED, "reserved_bytes")                         \
	X(RESERVED_UNALLOCATED, "reserved_unallocated_bytes") \
	X(PRIVATE_POOL, "private_pool_bytes")                 \
	X(ALLOWED, "allowed_bytes")                           \
	X(THIS_PROCESS, "this_process_bytes")                 \
	X(MPS_OTHER, "mps_other_bytes")

enum tn_figure {
#define TN_FIGURE_ENUM(name, text) TN_FIGURE_##name,
	TN_FIGURE_LIST(TN_FIGURE_ENUM)
#undef TN_FIGURE_ENUM
		TN_FIGURE_COUNT
};

#define TN_CAUSE_LIST(X)                        \
	X(UNKNOWN, "unknown")                       \
	X(TOO_BIG, "too_big_single_request")        \
	X(MODEL_OR_BATCH, "model_or_batch_too_big") \
	X(FRAGMENTATION, "fragmentation")           \
	X(OTHER_PROCESS, "other_process")           \
	X(FRACTION_LIMIT, "memory_fraction_limit")  \
	X(HOST_RAM, "host_ram")                     \
	X(LIBRARY_WORKSPACE, "library_workspace")

enum tn_cause {
#define TN_CAUSE_ENUM(name, text) TN_CAUSE_##name,
	TN_CAUSE_LIST(TN_CAUSE_ENUM)
#undef TN_CAUSE_ENUM
};

/* What the program was doing: its name in the JSON, words for people, and the one before a framework's name. What an
 * engine does before it serves (weights, a pass to try, the cache) has words of its own: tn__at_words.
 */
#define TN_AT_LIST(X)                                                      \
	X(UNKNOWN, "", "", "")                                                 \
	X(BUILD, "build", "while building the model", "with")                  \
	X(LOAD, "load", "while loading weights", "with")                       \
	X(FORWARD, "forward", "in the forward pass", "of")                     \
	X(LOSS, "loss", "while computing the loss", "in")                      \
	X(BACKWARD, "backward", "in the backward pass", "of")                  \
	X(UPDATE, "optimizer", "in the optimizer's update", "of")              \
	X(EVALUATION, "evaluation", "in the evaluation", "of")                 \
	X(GATHER, "gather", "while gathering from the ranks or steps", "with") \
	X(SAVE, "save", "while saving", "with")                                \
	X(RESUME, "resume", "while resuming from a checkpoint", "with")        \
	X(GENERATE, "generate", "while generating", "with")                    \
	X(DATA, "data", "while loading data", "with")

enum tn_at {
#define TN_AT_ENUM(name, text, words, link) TN_AT_##name,
	TN_AT_LIST(TN_AT_ENUM)
#undef TN_AT_ENUM
		TN_AT_COUNT
};

enum tn_device_kind { TN_KIND_NONE, TN_KIND_CUDA, TN_KIND_HIP, TN_KIND_MPS, TN_KIND_XPU, TN_KIND_HOST, TN_KIND_OTHER };

/* What an engine needs and what it has, by its own words, in bytes and in tokens of its cache. */
#define TN_NEED_LIST(X)               \
	X(BUDGET_BYTES, "budget_bytes")   \
	X(NEEDED_BYTES, "needed_bytes")   \
	X(BUDGET_TOKENS, "budget_tokens") \
	X(NEEDED_TOKENS, "needed_tokens")

enum tn_message_need {
#define TN_NEED_ENUM(name, text) TN_NEED_##name,
	TN_NEED_LIST(TN_NEED_ENUM)
#undef TN_NEED_ENUM
		TN_NEED_COUNT
};

struct tn_message_process {
	uint64_t pid, bytes; /* bytes may be TN_MESSAGE_NONE */
};

struct tn_message {
	const char *family;      /* literal */
	const char *said_by;     /* literal: who reports it, for people */
	bool unclear;            /* may be an out-of-memory, or one that the program got over */
	bool reserved_is_idle;   /* PyTorch 1.0 to 1.3: "cached" lies on top of what is allocated */
	bool beyond_any_machine; /* the request is above 2^60 bytes, printed without its size */
	bool old_settings;       /* the text itself names the older variable PYTORCH_CUDA_ALLOC_CONF, or is older */
	enum tn_device_kind kind;
	int64_t device_index, rank; /* -1: not printed */
	uint64_t figures[TN_FIGURE_COUNT];
	uint64_t need[TN_NEED_COUNT];
	uint64_t unaccounted; /* neither free nor held by a known process, or TN_MESSAGE_NONE */
	struct tn_message_process processes[TN_MESSAGE_PROCESSES];
	size_t process_count;
	char culprit[TN_MESSAGE_CULPRIT]; /* "file:line" of the user's own code, "" if none is shown */
	enum tn_at phase;                 /* what the frames show that the program was doing */
	const char *framework;            /* trainer, engine or library that the frames show, or NULL */
	const char *framework_words;      /* the same for people, "" where its name tells nothing new */
	char package[32];                 /* holds the name of a framework that no row names; "" for none */
	uint64_t shown;                   /* what the text shows of advice.def, a bit each */
	uint64_t line;                    /* of the text, from 1 */
	enum tn_cause cause;
	char reason[256];
	char advice[3][400];
	size_t advice_count;
};

const char *tn__figure_text(enum tn_figure figure);
const char *tn__need_text(enum tn_message_need need);

/* Whether the text says what an engine needs, or has. */
bool tn__message_has_need(const struct tn_message *message);

/* Whether it happened on a card that `tonnage run` can play: an NVIDIA one, or one that the text does not name. */
bool tn__message_can_run(const struct tn_message *message);

const char *tn__cause_text(enum tn_cause cause);
const char *tn__device_kind_text(enum tn_device_kind kind);
const char *tn__at_text(enum tn_at at); /* "" for TN_AT_UNKNOWN */

/* "in the backward pass of transformers' Trainer", as far as the frames tell; "" for nothing. Returns `buffer`. */
const char *tn__at_words(const struct tn_message *message, char buffer[128]);

/* "2.00 GiB" or "512 bytes" with two decimals, as the messages print them. `buffer` of 40 bytes is returned. */
const char *tn__message_size(uint64_t bytes, char buffer[40]);

struct tn_message_scanner;

/* Called for every error, in the order of the text. The message is only valid during the call. A status other than
 * TN_OK stops the scan and is handed on. */
typedef tn_status tn_message_found(void *context, const struct tn_message *message);

/* TN_NO_MEMORY is the only failure. Release with tn__message_scanner_free (NULL is allowed). */
tn_status tn__message_scanner_new(tn_message_found *found, void *context, struct tn_message_scanner **out);
void tn__message_scanner_free(struct tn_message_scanner *scanner);

/* Reads on; any bytes are allowed, pieces may end anywhere. Fails only as `found` does. */
tn_status tn__message_scan(struct tn_message_scanner *scanner, const char *bytes, size_t count);

/* What the text says beside its errors, as far as it was read; valid as long as the scanner. */
struct tn_seen;
const struct tn_seen *tn__message_seen(const struct tn_message_scanner *scanner);

/* The text is over: hands out what is still open. */
tn_status tn__message_scan_end(struct tn_message_scanner *scanner);

#endif
