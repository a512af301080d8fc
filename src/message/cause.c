/* SPDX-License-Identifier: Apache-2.0
 *
 * The likely cause, from the numbers alone: the first rule that holds.
 *
 * "Idle" is what the process reserved and does not use, "held" is allocated plus idle. A request counts as the piece
 * that PyTorch's allocator would ask of the driver (2 MiB up to 1 MiB, 20 MiB below 10 MiB). One message cannot show
 * growth, so a leak is never claimed.
 */
#include <stdio.h>
#include <string.h>

#include "message/internal_message.h"

#define MIB (UINT64_C(1) << 20)
#define PIB (UINT64_C(1) << 50)
#define NONE TN_MESSAGE_NONE

const char *
tn__figure_text(enum tn_figure figure)
{
#define TN_FIGURE_NAME(name, text) text,
	static const char *const texts[] = { TN_FIGURE_LIST(TN_FIGURE_NAME) };
#undef TN_FIGURE_NAME
	return texts[figure];
}

const char *
tn__need_text(enum tn_message_need need)
{
#define TN_NEED_NAME(name, text) text,
	static const char *const texts[] = { TN_NEED_LIST(TN_NEED_NAME) };
#undef TN_NEED_NAME
	return texts[need];
}

bool
tn__message_has_need(const struct tn_message *message)
{
	for (size_t i = 0; i < TN_NEED_COUNT; i++)
		if (message->need[i] != NONE)
			return true;
	return false;
}

bool
tn__message_can_run(const struct tn_message *message)
{
	return message->kind == TN_KIND_CUDA || message->kind == TN_KIND_NONE || message->kind == TN_KIND_HOST;
}

const char *
tn__cause_text(enum tn_cause cause)
{
#define TN_CAUSE_NAME(name, text) text,
	static const char *const texts[] = { TN_CAUSE_LIST(TN_CAUSE_NAME) };
#undef TN_CAUSE_NAME
	return texts[cause];
}

const char *
tn__device_kind_text(enum tn_device_kind kind)
{
	static const char *const texts[] = { "none", "cuda", "hip", "mps", "xpu", "host", "other" };
	return texts[kind];
}

const char *
tn__message_size(uint64_t bytes, char buffer[40])
{
	static const struct {
		double factor;
		const char *name;
	} units[] = { { 1073741824.0, "GiB" }, { 1048576.0, "MiB" }, { 1024.0, "KiB" } };
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if ((double)bytes >= units[i].factor) {
			snprintf(buffer, 40, "%.2f %s", (double)bytes / units[i].factor, units[i].name);
			return buffer;
		}
	snprintf(buffer, 40, "%llu bytes", (unsigned long long)bytes);
	return buffer;
}

/* What the rules work on; NONE where it is not known. */
struct sums {
	uint64_t tried, segment, total, free, allocated, idle, held, allowed;
	uint64_t others;  /* listed processes that are not this one; 0 if none is listed */
	uint64_t unknown; /* neither free nor accounted for; 0 if that cannot be said */
};

static uint64_t
segment_of(uint64_t request)
{
	if (request == NONE)
		return NONE;
	if (request <= MIB)
		return 2 * MIB;
	return request < 10 * MIB ? 20 * MIB : request;
}

static uint64_t
idle_of(const struct tn_message *message)
{
	const uint64_t *f = message->figures;
	if (f[TN_FIGURE_RESERVED_UNALLOCATED] != NONE)
		return f[TN_FIGURE_RESERVED_UNALLOCATED];
	if (f[TN_FIGURE_RESERVED] == NONE)
		return NONE;
	if (message->reserved_is_idle)
		return f[TN_FIGURE_RESERVED];
	if (f[TN_FIGURE_ALLOCATED] == NONE)
		return NONE;
	return f[TN_FIGURE_RESERVED] > f[TN_FIGURE_ALLOCATED] ? f[TN_FIGURE_RESERVED] - f[TN_FIGURE_ALLOCATED] : 0;
}

/* Which listed process is this one under its number outside a container: without a "this process" clause, the
 * smallest that holds what PyTorch holds; with nothing known about PyTorch, the largest. The count if there is none.
 */
static size_t
own_process(const struct tn_message *message, const struct sums *sums)
{
	size_t own = message->process_count;
	if (message->figures[TN_FIGURE_THIS_PROCESS] != NONE)
		return own;
	for (size_t i = 0; i < message->process_count; i++) {
		uint64_t bytes = message->processes[i].bytes;
		if (bytes == NONE)
			continue;
		bool first = own == message->process_count;
		if (sums->held == NONE
		        ? first || bytes > message->processes[own].bytes
		        : (double)bytes >= 0.99 * (double)sums->held && (first || bytes < message->processes[own].bytes))
			own = i;
	}
	return own;
}

static void
count_others(const struct tn_message *message, struct sums *sums)
{
	uint64_t own = sums->held, listed = message->figures[TN_FIGURE_THIS_PROCESS];
	size_t own_index = own_process(message, sums);
	for (size_t i = 0; i < message->process_count; i++) {
		uint64_t bytes = message->processes[i].bytes;
		if (i == own_index)
			own = bytes > own || own == NONE ? bytes : own;
		else if (bytes != NONE && bytes < PIB)
			sums->others += bytes;
	}
	if (listed != NONE && (own == NONE || listed > own))
		own = listed;
	if (sums->held == NONE || sums->total == NONE || sums->free == NONE)
		return;
	uint64_t accounted = sums->free + own + sums->others;
	sums->unknown = accounted < sums->total ? sums->total - accounted : 0;
}

static struct sums
add_up(const struct tn_message *message)
{
	const uint64_t *f = message->figures;
	struct sums sums = { .tried = f[TN_FIGURE_TRIED],
		                 .segment = segment_of(f[TN_FIGURE_TRIED]),
		                 .total = f[TN_FIGURE_TOTAL],
		                 .free = f[TN_FIGURE_FREE],
		                 .allocated = f[TN_FIGURE_ALLOCATED],
		                 .idle = idle_of(message),
		                 .held = f[TN_FIGURE_ALLOCATED],
		                 .allowed = f[TN_FIGURE_ALLOWED] };
	if (sums.held != NONE && sums.idle != NONE)
		sums.held += sums.idle;
	/* Without the card's size, what is held and what is free is the least that it can be. */
	if (sums.total == NONE && sums.held != NONE && sums.free != NONE)
		sums.total = sums.held + sums.free;
	count_others(message, &sums);
	return sums;
}

/* ---- the rules for a card ---- */

static double
share(uint64_t part, uint64_t whole)
{
	return whole == NONE || whole == 0 || part == NONE ? 0 : (double)part / (double)whole;
}

static bool
too_big(const struct sums *s, struct tn_message *message)
{
	char a[40], b[40];
	if (message->beyond_any_machine) {
		snprintf(message->reason, sizeof(message->reason), "the request is above 2^60 bytes, which no card has");
		return true;
	}
	if (s->tried == NONE)
		return false;
	if (s->tried >= PIB) {
		snprintf(message->reason, sizeof(message->reason), "asks for %llu bytes, which no machine has",
		         (unsigned long long)s->tried);
		return true;
	}
	if (message->figures[TN_FIGURE_TOTAL] == NONE || s->tried <= s->total)
		return false;
	snprintf(message->reason, sizeof(message->reason), "asks for %s, more than the whole card of %s",
	         tn__message_size(s->tried, a), tn__message_size(s->total, b));
	return true;
}

static bool
at_the_cap(const struct sums *s, struct tn_message *message)
{
	char a[40], b[40], c[40], d[40];
	if (s->allowed == NONE || s->tried == NONE || s->free == NONE || s->free < s->tried)
		return false;
	if (s->held == NONE || s->idle == NONE) { /* the text was cut: the card has room, so only the cap is left */
		snprintf(message->reason, sizeof(message->reason),
		         "%s of the card is free for %s, so only the %s allowed can be the obstacle",
		         tn__message_size(s->free, a), tn__message_size(s->tried, b), tn__message_size(s->allowed, c));
		return true;
	}
	if ((double)(s->held + s->tried) < 0.99 * (double)s->allowed)
		return false;
	snprintf(message->reason, sizeof(message->reason),
	         "%s held plus %s asked reaches the %s allowed, while %s is still free on the card",
	         tn__message_size(s->held, a), tn__message_size(s->tried, b), tn__message_size(s->allowed, c),
	         tn__message_size(s->free, d));
	return true;
}

static bool
contradicts(const struct sums *s, struct tn_message *message)
{
	char a[40], b[40];
	if (s->free == NONE || s->segment == NONE || s->free < s->segment || s->free - s->segment < 256 * MIB)
		return false;
	snprintf(message->reason, sizeof(message->reason),
	         "%s is reported free for a request of %s: the numbers do not explain the failure",
	         tn__message_size(s->free, a), tn__message_size(s->tried, b));
	return true;
}

/* Where more is allocated than the card has, the driver lends the computer's memory (Windows, WSL): what is idle in
 * the cache is not what is missing.
 */
static bool
spilled(const struct sums *s)
{
	return s->allocated != NONE && s->total != NONE && s->allocated > s->total;
}

static bool
fragmented(const struct sums *s, struct tn_message *message)
{
	char a[40], b[40], c[40];
	if (spilled(s) || s->idle == NONE || s->segment == NONE || s->idle < s->segment || share(s->idle, s->total) < 0.05)
		return false;
	int used = snprintf(message->reason, sizeof(message->reason), "%s is reserved but idle, at least the %s asked for",
	                    tn__message_size(s->idle, a), tn__message_size(s->tried, b));
	if (s->free != NONE)
		snprintf(message->reason + used, sizeof(message->reason) - (size_t)used, ", while %s is free outside the cache",
		         tn__message_size(s->free, c));
	return true;
}

/* Whether `bytes` of somebody else are a quarter of the card, and enough. */
static bool
would_do(const struct sums *s, uint64_t bytes)
{
	uint64_t room = bytes + (s->free == NONE ? 0 : s->free);
	return share(bytes, s->total) >= 0.25 && (s->tried == NONE || room >= s->tried);
}

static bool
others_hold_it(const struct sums *s, struct tn_message *message)
{
	char a[40], b[40], c[40], mine[80] = "";
	if (s->held != NONE)
		snprintf(mine, sizeof(mine), "; this process holds %s", tn__message_size(s->held, c));
	if (would_do(s, s->others)) {
		snprintf(message->reason, sizeof(message->reason), "other listed processes hold %s of the %s card%s",
		         tn__message_size(s->others, a), tn__message_size(s->total, b), mine);
		return true;
	}
	if (!would_do(s, s->unknown))
		return false;
	snprintf(message->reason, sizeof(message->reason), "%s of the %s card is neither free nor accounted for%s",
	         tn__message_size(s->unknown, a), tn__message_size(s->total, b), mine);
	return true;
}

static bool
half_the_card(const struct sums *s, struct tn_message *message)
{
	char a[40], b[40], c[40];
	if (share(s->tried, s->total) < 0.5 || message->figures[TN_FIGURE_TOTAL] == NONE)
		return false;
	int used = snprintf(message->reason, sizeof(message->reason), "one request of %s is %.0f%% of the %s card",
	                    tn__message_size(s->tried, a), 100 * share(s->tried, s->total), tn__message_size(s->total, b));
	if (s->free != NONE)
		snprintf(message->reason + used, sizeof(message->reason) - (size_t)used, " and does not fit in the %s free",
		         tn__message_size(s->free, c));
	return true;
}

static bool
holds_half(const struct sums *s, struct tn_message *message)
{
	char a[40], b[40], c[40], d[40], idle[80] = "";
	if (share(s->held, s->total) < 0.5)
		return false;
	if (message->figures[TN_FIGURE_TOTAL] == NONE && s->tried != NONE) {
		snprintf(message->reason, sizeof(message->reason), "%s is already allocated and only %s is left for %s",
		         tn__message_size(s->allocated, a), tn__message_size(s->free, b), tn__message_size(s->tried, c));
		return true;
	}
	if (spilled(s)) {
		snprintf(message->reason, sizeof(message->reason),
		         "live memory of %s already exceeds the %s card: the "
		         "driver lends the computer's memory, as on Windows",
		         tn__message_size(s->allocated, a), tn__message_size(s->total, b));
		return true;
	}
	if (s->idle != NONE)
		snprintf(idle, sizeof(idle), " and %s is idle in the cache", tn__message_size(s->idle, d));
	int used = snprintf(message->reason, sizeof(message->reason), "%s of %s (%.0f%%) is in use by this process",
	                    tn__message_size(s->allocated, a), tn__message_size(s->total, b),
	                    100 * share(s->allocated, s->total));
	if (s->free != NONE)
		used += snprintf(message->reason + used, sizeof(message->reason) - (size_t)used, ", %s is free%s",
		                 tn__message_size(s->free, c), idle);
	if (s->tried != NONE)
		snprintf(message->reason + used, sizeof(message->reason) - (size_t)used, "; %s more does not fit",
		         tn__message_size(s->tried, a));
	return true;
}

static void
unknown_reason(const struct tn_family *family, const struct sums *s, struct tn_message *message)
{
	char a[40], b[40], c[40];
	const char *text = family->reason != NULL ? family->reason : "no sizes are printed";
	if (s->tried != NONE && s->free != NONE)
		snprintf(message->reason, sizeof(message->reason), "only %s is free for %s; who holds the rest is not printed",
		         tn__message_size(s->free, a), tn__message_size(s->tried, b));
	else if (s->tried != NONE && s->allocated != NONE)
		snprintf(message->reason, sizeof(message->reason),
		         "%s more than the %s already taken is refused; no free figure "
		         "is printed",
		         tn__message_size(s->tried, b), tn__message_size(s->allocated, c));
	else if (s->tried != NONE && message->figures[TN_FIGURE_TOTAL] != NONE)
		snprintf(message->reason, sizeof(message->reason), "the text stops before the figures that would tell");
	else if (s->tried != NONE)
		snprintf(message->reason, sizeof(message->reason), "only the size of the failed request is printed");
	else
		snprintf(message->reason, sizeof(message->reason), "%s", text);
}

static void
judge_card(const struct tn_family *family, struct tn_message *message)
{
	static const struct {
		bool (*holds)(const struct sums *sums, struct tn_message *message);
		enum tn_cause cause;
	} rules[] = { { too_big, TN_CAUSE_TOO_BIG },
		          { at_the_cap, TN_CAUSE_FRACTION_LIMIT },
		          { contradicts, TN_CAUSE_UNKNOWN },
		          { fragmented, TN_CAUSE_FRAGMENTATION },
		          { others_hold_it, TN_CAUSE_OTHER_PROCESS },
		          { half_the_card, TN_CAUSE_TOO_BIG },
		          { holds_half, TN_CAUSE_MODEL_OR_BATCH } };
	struct sums sums = add_up(message);
	message->unaccounted = sums.unknown > 0 ? sums.unknown : NONE;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].holds(&sums, message)) {
			message->cause = rules[i].cause;
			return;
		}
	message->cause = TN_CAUSE_UNKNOWN;
	unknown_reason(family, &sums, message);
}

/* ---- the others ---- */

static void
judge_mps(struct tn_message *message)
{
	char a[40], b[40], c[40], d[40];
	const uint64_t *f = message->figures;
	uint64_t pool = f[TN_FIGURE_ALLOCATED], other = f[TN_FIGURE_MPS_OTHER];
	if (pool == NONE || other == NONE) {
		message->cause = TN_CAUSE_UNKNOWN;
		snprintf(message->reason, sizeof(message->reason), "%s",
		         f[TN_FIGURE_TRIED] == NONE ? "no sizes are printed"
		                                    : "the text stops before the figures that would tell");
		return;
	}
	message->cause = other > pool ? TN_CAUSE_LIBRARY_WORKSPACE : TN_CAUSE_MODEL_OR_BATCH;
	int used = other > pool
	               ? snprintf(message->reason, sizeof(message->reason),
	                          "%s sits in allocations outside the tensor pool, more than the %s inside it",
	                          tn__message_size(other, a), tn__message_size(pool, b))
	               : snprintf(message->reason, sizeof(message->reason), "%s of tensors and %s elsewhere are held",
	                          tn__message_size(pool, a), tn__message_size(other, b));
	if (f[TN_FIGURE_ALLOWED] != NONE && f[TN_FIGURE_TRIED] != NONE)
		snprintf(message->reason + used, sizeof(message->reason) - (size_t)used,
		         "; with %s more the %s allowed is passed", tn__message_size(f[TN_FIGURE_TRIED], c),
		         tn__message_size(f[TN_FIGURE_ALLOWED], d));
}

static void
judge_fixed(const struct tn_family *family, enum tn_cause cause, struct tn_message *message)
{
	char size[40];
	message->cause = cause;
	if (message->figures[TN_FIGURE_TRIED] == NONE)
		snprintf(message->reason, sizeof(message->reason), "%s",
		         family->reason != NULL ? family->reason : "no sizes are printed");
	else
		snprintf(message->reason, sizeof(message->reason),
		         cause == TN_CAUSE_LIBRARY_WORKSPACE ? "%s could not be had for %s itself"
		                                             : "%s was asked of %s "
		                                               "and refused",
		         tn__message_size(message->figures[TN_FIGURE_TRIED], size), family->said_by);
}

/* Nothing failed to allocate: the figures are a plan's. Before its start an engine holds nothing, so that what is
 * not free is
 * somebody else's. */
static void
judge_refusal(const struct tn_family *family, struct tn_message *message)
{
	char a[40], b[40];
	const uint64_t *f = message->figures, *need = message->need;
	uint64_t needed = need[TN_NEED_NEEDED_BYTES], total = f[TN_FIGURE_TOTAL], free_bytes = f[TN_FIGURE_FREE];
	message->cause = TN_CAUSE_UNKNOWN;
	if (needed != NONE && total != NONE && free_bytes != NONE && free_bytes < total && needed <= total &&
	    share(total - free_bytes, total) >= 0.25) {
		message->cause = TN_CAUSE_OTHER_PROCESS;
		snprintf(message->reason, sizeof(message->reason), "%s of the %s card is taken before %s has loaded anything",
		         tn__message_size(total - free_bytes, a), tn__message_size(total, b), family->said_by);
	} else if (needed != NONE && need[TN_NEED_BUDGET_BYTES] != NONE) {
		snprintf(message->reason, sizeof(message->reason),
		         "by its own plan %s is needed and %s is there; nothing "
		         "failed to allocate",
		         tn__message_size(needed, a), tn__message_size(need[TN_NEED_BUDGET_BYTES], b));
	} else if (need[TN_NEED_NEEDED_TOKENS] != NONE && need[TN_NEED_BUDGET_TOKENS] != NONE) {
		snprintf(message->reason, sizeof(message->reason),
		         "by its own plan room for %llu tokens is needed and there is room for %llu; nothing failed to "
		         "allocate",
		         (unsigned long long)need[TN_NEED_NEEDED_TOKENS], (unsigned long long)need[TN_NEED_BUDGET_TOKENS]);
	} else {
		snprintf(message->reason, sizeof(message->reason), "%s", family->reason);
	}
}

void
tn__cause_judge(const struct tn_family *family, struct tn_message *message)
{
	message->unaccounted = NONE;
	switch (family->rule) {
	case TN_RULE_CARD:
		judge_card(family, message);
		break;
	case TN_RULE_MPS:
		judge_mps(message);
		break;
	case TN_RULE_MPS_BUFFER:
		judge_fixed(family, TN_CAUSE_TOO_BIG, message);
		break;
	case TN_RULE_LIBRARY:
		judge_fixed(family, TN_CAUSE_LIBRARY_WORKSPACE, message);
		break;
	case TN_RULE_HOST:
		judge_fixed(family, TN_CAUSE_HOST_RAM, message);
		break;
	case TN_RULE_OTHERS:
		judge_fixed(family, TN_CAUSE_OTHER_PROCESS, message);
		break;
	case TN_RULE_REFUSAL:
		judge_refusal(family, message);
		break;
	case TN_RULE_UNKNOWN:
		judge_fixed(family, TN_CAUSE_UNKNOWN, message);
		break;
	}
}
