/* SPDX-License-Identifier: Apache-2.0
 *
 * What streams and values wait for of other ranks (doc/design/0022-many-cards.md): gates, and pending bytes.
 *
 * A gate is something that other ranks open step by step; the library that makes it says how to wait for it. Streams and
 * events carry the gates that their work depends on, as far as nobody has waited for them; waiting for a stream waits for
 * these. Queries do not look at gates: what they answer must not hang on how fast other processes are.
 *
 * A range of device memory is pending while the operation that fills it has not been met by the other ranks. Reading it
 * waits for its gate; writing it makes the operation's result unwanted.
 * `pending_lock` guards the table; no lock is held while a gate is waited for.
 */
#include <string.h>

#include "vgpu/core/state.h"

#define PENDING_MAX 4096 /* a rank runs at most NCCL_RING operations ahead on each of its communicators */

struct pending {
	uint64_t address, bytes, gate, number;
	bool collective; /* all ranks are on their way to it, so that a kernel may wait for it */
};

static _Atomic(tn_gate_wait) wait_for_gate;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending pendings[PENDING_MAX];
static _Atomic uint32_t pending_count;

/* ---- gates ---- */

void
tn__set_gatekeeper(tn_gate_wait wait)
{
	atomic_store(&wait_for_gate, wait);
}

void
tn__gates_add(struct tn_gates *gates, uint64_t gate, uint64_t number)
{
	for (uint32_t i = 0; i < gates->count; i++) {
		if (gates->items[i].gate == gate) {
			if (gates->items[i].number < number)
				gates->items[i].number = number;
			return;
		}
	}
	if (gates->count == TN_GATES) /* the oldest is not waited for: too little waiting is no false hang */
		memmove(&gates->items[0], &gates->items[1], --gates->count * sizeof(gates->items[0]));
	gates->items[gates->count++] = (struct tn_gate){ gate, number };
}

void
tn__gates_merge(struct tn_gates *into, const struct tn_gates *from)
{
	for (uint32_t i = 0; i < from->count; i++)
		tn__gates_add(into, from->items[i].gate, from->items[i].number);
}

void
tn__gates_wait(const struct tn_gates *gates)
{
	tn_gate_wait wait = gates->count ? atomic_load(&wait_for_gate) : NULL;
	for (uint32_t i = 0; wait && i < gates->count; i++)
		wait(gates->items[i].gate, gates->items[i].number);
}

/* ---- pending bytes ---- */

static bool
overlaps(const struct pending *pending, uint64_t address, uint64_t bytes)
{
	return pending->address < address + bytes && address < pending->address + pending->bytes;
}

static void
remove_at(uint32_t index)
{
	memmove(&pendings[index], &pendings[index + 1], (pending_count - index - 1) * sizeof(pendings[0]));
	pending_count--;
}

void
tn__pending_add(uint64_t address, uint64_t bytes, uint64_t gate, uint64_t number, bool collective)
{
	pthread_mutex_lock(&pending_lock);
	if (pending_count == PENDING_MAX)
		remove_at(0); /* stays unknown */
	pendings[pending_count++] = (struct pending){ address, bytes, gate, number, collective };
	pthread_mutex_unlock(&pending_lock);
}

bool
tn__pending_take(uint64_t address, uint64_t gate, uint64_t number)
{
	bool found = false;
	pthread_mutex_lock(&pending_lock);
	for (uint32_t i = 0; i < pending_count && !found; i++) {
		found = pendings[i].address == address && pendings[i].gate == gate && pendings[i].number == number;
		if (found)
			remove_at(i);
	}
	pthread_mutex_unlock(&pending_lock);
	return found;
}

void
tn__pending_drop(uint64_t address, uint64_t bytes)
{
	if (__builtin_expect(atomic_load_explicit(&pending_count, memory_order_relaxed) == 0, 1))
		return;
	pthread_mutex_lock(&pending_lock);
	for (uint32_t i = pending_count; i-- > 0;)
		if (overlaps(&pendings[i], address, bytes))
			remove_at(i);
	pthread_mutex_unlock(&pending_lock);
}

/* The first pending range that overlaps, or, with no bytes, that a kernel may wait for. */
static bool
find_pending(uint64_t address, uint64_t bytes, struct pending *out)
{
	bool found = false;
	pthread_mutex_lock(&pending_lock);
	for (uint32_t i = 0; i < pending_count && !found; i++) {
		found = bytes ? overlaps(&pendings[i], address, bytes) : pendings[i].collective;
		*out = pendings[i];
	}
	pthread_mutex_unlock(&pending_lock);
	return found;
}

static void
settle(uint64_t address, uint64_t bytes)
{
	struct pending pending;
	tn_gate_wait wait = atomic_load(&wait_for_gate);
	while (find_pending(address, bytes, &pending)) {
		if (wait)
			wait(pending.gate, pending.number);
		/* Still there when its communicator has gone, or the wait was given up. */
		tn__pending_take(pending.address, pending.gate, pending.number);
	}
}

void
tn__pending_settle(uint64_t address, uint64_t bytes)
{
	if (__builtin_expect(atomic_load_explicit(&pending_count, memory_order_relaxed) != 0, 0) && bytes)
		settle(address, bytes);
}

bool
tn__pending_any(void)
{
	return atomic_load_explicit(&pending_count, memory_order_relaxed) != 0;
}

void
tn__pending_settle_collectives(void)
{
	settle(0, 0);
}

/* In the child of a fork. */
static void
forget(void)
{
	pthread_mutex_init(&pending_lock, NULL);
	pending_count = 0;
}

__attribute__((constructor)) static void
start(void)
{
	pthread_atfork(NULL, NULL, forget);
}
