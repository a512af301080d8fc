/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport for several ranks (doc/design/0022-many-cards.md). The n-th collective of a rank belongs to the n-th of all others,
 * the n-th receive from a rank to that one's n-th send. Small payloads whose values are known are moved over the board;
 * what they make is pending until somebody waits for it. Nothing else waits, but a rank that is a whole ring ahead.
 *
 * `lock` of a communicator guards what it has queued; it is not held while a rank waits. One thread at a time puts operations on a
 * communicator (NCCL's own rule); any thread may wait for them. The table of gates has its own lock.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/ledger.h"
#include "vgpu/core/runtime.h"
#include "vgpu/nccl/nccl_board.h"
#include "vgpu/nccl/nccl_memory.h"

#define GATES 1024
#define QUEUED_MAX 64 /* results nobody has asked for, until the oldest is waited for */
#define YIELDS 64
#define TOLD_AFTER_NS UINT64_C(1000000000) /* of waiting */

/* An operation whose result is not there yet. `number` counts from 1. */
struct queued {
	struct nccl_operation operation;
	uint64_t number;
};

struct queue {
	struct queued *items;
	size_t count, capacity;
};

struct state {
	struct nccl_board board;
	pthread_mutex_t lock;
	struct queue collectives, *receives; /* the second by peer */
	uint64_t *received;                  /* by peer: how many receives were put on streams */
	uint64_t posted, waited, splits;     /* collectives; up to which all were waited for */
	uint32_t gate, generation;
	_Atomic bool aborted;
	bool suspended;
	uint64_t ring_memory, *peer_memory; /* addresses; 0: none */
};

static pthread_mutex_t gates_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct nccl_comm *comm;
	uint32_t generation;
	int users;
} gates[GATES];

static uint64_t
now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- waiting ---- */

struct awaited {
	struct nccl_comm *comm;
	int peer, operation; /* operation: enum nccl_kind, or -1 */
	uint64_t number, bytes;
	int other_operation; /* >= 0: the peer did that instead, and nothing can come of waiting */
	uint64_t other_bytes;
};

static bool
has_ended(const struct nccl_member *member)
{
	uint32_t presence = atomic_load(&member->presence);
	return presence == NCCL_GONE || (presence == NCCL_HERE && tn__process_started(member->pid) != member->start_time);
}

static void
tell_wait(const struct awaited *awaited)
{
	const struct state *state = awaited->comm->state;
	const struct nccl_member *peer = &state->board.members[awaited->peer];
	tn__rank_waits(&(struct tn_ledger_wait){
		.why = awaited->other_operation >= 0 ? TN_WAITS_OTHER_OPERATION : has_ended(peer) ? TN_WAITS_ENDED : TN_WAITS,
		.operation = awaited->operation,
		.peer = awaited->peer,
		.peer_pid = peer->pid,
		.peer_operation = awaited->other_operation,
		.number = awaited->number,
		.bytes = awaited->bytes,
		.peer_bytes = awaited->other_bytes,
	});
}

/* Waits until *counter is at least `target`. */
static int
wait_for(const struct awaited *awaited, const _Atomic uint64_t *counter, uint64_t target)
{
	struct state *state = awaited->comm->state;
	uint64_t began = 0, told = 0;
	for (unsigned turn = 0;; turn++) {
		uint32_t news = atomic_load(&state->board.head->news);
		if (atomic_load(counter) >= target)
			break;
		if (atomic_load(&state->aborted) || atomic_load(&state->board.head->aborted)) {
			if (told)
				tn__rank_goes_on();
			return tn__nccl_fail(NCCL_REMOTE_ERROR, "the communicator was aborted");
		}
		if (turn < YIELDS) {
			sched_yield();
			continue;
		}
		tn__board_sleep(&state->board, news);
		uint64_t now = now_ns();
		began = began ? began : now;
		if (now - began >= TOLD_AFTER_NS && now - told >= TOLD_AFTER_NS / 2) {
			tell_wait(awaited);
			told = now;
		}
	}
	if (told)
		tn__rank_goes_on();
	return NCCL_SUCCESS;
}

/* Another rank has put something else in this place: as on cards, nothing comes of it. Ends when the run or the communicator does. */
static int
never(struct awaited *awaited, const struct nccl_record *other)
{
	static const _Atomic uint64_t nothing;
	awaited->other_operation = other->kind;
	awaited->other_bytes = other->bytes;
	tell_wait(awaited);
	return wait_for(awaited, &nothing, 1);
}

/* ---- what operations are made of ---- */

static bool
scatters(enum nccl_kind kind)
{
	return kind == NCCL_REDUCE_SCATTER || kind == NCCL_ALL_TO_ALL || kind == NCCL_SCATTER;
}

static bool
gathers(enum nccl_kind kind)
{
	return kind == NCCL_ALL_GATHER || kind == NCCL_ALL_TO_ALL || kind == NCCL_GATHER;
}

static bool
reduces(enum nccl_kind kind)
{
	return kind == NCCL_ALL_REDUCE || kind == NCCL_REDUCE || kind == NCCL_REDUCE_SCATTER;
}

static size_t
send_bytes(const struct nccl_operation *operation)
{
	return operation->bytes * (scatters(operation->kind) ? (size_t)operation->comm->ranks : 1);
}

static size_t
receive_bytes(const struct nccl_operation *operation)
{
	return operation->bytes * (gathers(operation->kind) ? (size_t)operation->comm->ranks : 1);
}

static bool
from_root(enum nccl_kind kind)
{
	return kind == NCCL_BROADCAST || kind == NCCL_SCATTER;
}

static bool
to_root(enum nccl_kind kind)
{
	return kind == NCCL_REDUCE || kind == NCCL_GATHER;
}

static bool
contributes(const struct nccl_operation *operation)
{
	return !from_root(operation->kind) || operation->peer == operation->comm->rank;
}

static bool
receives(const struct nccl_operation *operation)
{
	return !to_root(operation->kind) || operation->peer == operation->comm->rank;
}

/* Whether a rank's part is needed by this one. */
static bool
needs(const struct nccl_comm *comm, int kind, int root, int from)
{
	if (from_root((enum nccl_kind)kind))
		return from == root;
	return !to_root((enum nccl_kind)kind) || root == comm->rank;
}

static uint64_t
gate_of(const struct nccl_comm *comm, int peer)
{
	const struct state *state = comm->state;
	return (uint64_t)state->generation << 32 | (uint64_t)state->gate << 16 | (uint64_t)(peer + 1);
}

/* ---- results ---- */

static bool
push(struct queue *queue, const struct nccl_operation *operation, uint64_t number)
{
	if (queue->count == queue->capacity) {
		size_t capacity = queue->capacity ? 2 * queue->capacity : 16;
		struct queued *grown = realloc(queue->items, capacity * sizeof(*grown));
		if (!grown)
			return false;
		queue->items = grown;
		queue->capacity = capacity;
	}
	queue->items[queue->count++] = (struct queued){*operation, number};
	return true;
}

static void
pop(struct queue *queue)
{
	memmove(&queue->items[0], &queue->items[1], --queue->count * sizeof(queue->items[0]));
}

static const struct nccl_record *
record_of(const struct state *state, int rank, uint64_t number)
{
	return &state->board.members[rank].ring[(number - 1) % NCCL_RING];
}

/* Makes known what a rank gave, as far as its values were: `count` bytes from `offset` of its payload, to an address. */
static void
take_part(const struct nccl_board *board, int from, int to, bool pair, uint64_t number, size_t offset, size_t count,
          uint64_t address)
{
	struct nccl_payload_bytes head;
	unsigned char *bytes = malloc(count + 1);
	bool read = bytes && tn__board_read_runs(board, from, to, pair, number, &head) &&
	            tn__board_read(board, from, to, pair, number, bytes, offset, count);
	for (uint32_t i = 0; read && i < head.run_count; i++) {
		size_t begin = head.runs[i].from > offset ? head.runs[i].from : offset;
		size_t end = (size_t)head.runs[i].from + head.runs[i].count;
		end = end < offset + count ? end : offset + count;
		if (begin < end)
			tn__values_put(address + (begin - offset), bytes + (begin - offset), end - begin);
	}
	free(bytes);
}

/* What comes of a collective that moves bytes and all have posted. */
static void
take_parts(const struct nccl_operation *operation, uint64_t number)
{
	const struct nccl_comm *comm = operation->comm;
	const struct state *state = comm->state;
	enum nccl_kind kind = operation->kind;
	size_t part = operation->bytes;
	for (int rank = 0; rank < comm->ranks; rank++)
		if (needs(comm, kind, operation->peer, rank) && record_of(state, rank, number)->payload >= NCCL_PARTLY)
			take_part(&state->board, rank, 0, false, number - 1, scatters(kind) ? (size_t)comm->rank * part : 0, part,
			          (uintptr_t)operation->receive + (gathers(kind) ? (size_t)rank * part : 0));
}

/* What comes of a reduction that all have posted: known when all that is reduced is. `out` has room for two parts. */
static bool
reduce(const struct nccl_operation *operation, uint64_t number, unsigned char *out)
{
	const struct nccl_comm *comm = operation->comm;
	const struct state *state = comm->state;
	enum nccl_type type = (enum nccl_type)operation->type;
	size_t part = operation->bytes, count = part / tn__nccl_type_bytes(type);
	size_t offset = scatters(operation->kind) ? (size_t)comm->rank * part : 0;
	int operator = operation->operator < NCCL_BUILT_IN_OPERATORS ? operation->operator : NCCL_SUM;
	for (int rank = 0; rank < comm->ranks; rank++) {
		unsigned char *to = rank == 0 ? out : out + part;
		if (record_of(state, rank, number)->payload != NCCL_KNOWN ||
		    !tn__board_read(&state->board, rank, 0, false, number - 1, to, offset, part))
			return false;
		if (rank > 0)
			tn__nccl_combine(out, to, count, type, operator);
	}
	if (operator == NCCL_AVERAGE)
		tn__nccl_divide(out, count, type, comm->ranks);
	return true;
}

static void
finish_collective(const struct queued *queued)
{
	const struct nccl_operation *operation = &queued->operation;
	uint64_t address = (uintptr_t)operation->receive;
	if (!tn__pending_take(address, gate_of(operation->comm, -1), queued->number))
		return;
	if (!reduces(operation->kind)) {
		take_parts(operation, queued->number);
		return;
	}
	unsigned char *out = malloc(2 * operation->bytes + 1);
	if (out && reduce(operation, queued->number, out))
		tn__values_put(address, out, operation->bytes);
	free(out);
}

/* Whether all that an operation needs is there. */
static bool
is_met(const struct nccl_operation *operation, uint64_t number)
{
	const struct nccl_comm *comm = operation->comm;
	const struct state *state = comm->state;
	bool met = true;
	for (int rank = 0; rank < comm->ranks && met; rank++)
		met = rank == comm->rank || !needs(comm, operation->kind, operation->peer, rank) ||
		      atomic_load(&state->board.members[rank].posted) >= number;
	return met;
}

/* Whether two ranks did the same. */
static bool
same(const struct nccl_record *one, const struct nccl_record *other)
{
	return one->kind == other->kind && one->bytes == other->bytes && one->root == other->root;
}

/* Finishes what has been met, in order, up to a number. `lock` is held. */
static void
finish_collectives(struct nccl_comm *comm, uint64_t number)
{
	struct state *state = comm->state;
	struct queue *queue = &state->collectives;
	while (queue->count > 0 && queue->items[0].number <= number &&
	       is_met(&queue->items[0].operation, queue->items[0].number)) {
		finish_collective(&queue->items[0]);
		pop(queue);
	}
	uint64_t taken = queue->count > 0 ? queue->items[0].number - 1 : state->posted;
	atomic_store(&state->board.members[comm->rank].taken, taken);
}

static void
finish_receive(const struct queued *queued, const struct nccl_record *record)
{
	const struct nccl_operation *operation = &queued->operation;
	const struct nccl_comm *comm = operation->comm;
	const struct state *state = comm->state;
	uint64_t address = (uintptr_t)operation->receive;
	bool wanted = tn__pending_take(address, gate_of(comm, operation->peer), queued->number);
	if (wanted && record->payload >= NCCL_PARTLY)
		take_part(&state->board, operation->peer, comm->rank, true, queued->number - 1, 0, operation->bytes, address);
}

/* Finishes receives from a rank. `lock` is held. False: one met a send of another size, which *bad is. */
static bool
finish_receives(struct nccl_comm *comm, int peer, uint64_t number, struct awaited *bad, struct nccl_record *other)
{
	struct state *state = comm->state;
	struct queue *queue = &state->receives[peer];
	struct nccl_pair *pair = tn__board_pair(&state->board, peer, comm->rank);
	bool fits = true;
	while (fits && queue->count > 0 && queue->items[0].number <= number &&
	       atomic_load(&pair->posted) >= queue->items[0].number) {
		const struct queued *queued = &queue->items[0];
		*other = pair->ring[(queued->number - 1) % NCCL_PAIR_RING];
		fits = other->bytes == queued->operation.bytes;
		if (fits) {
			finish_receive(queued, other);
			pop(queue);
			atomic_fetch_add(&pair->taken, 1);
			tn__board_tell(&state->board);
		} else {
			*bad = (struct awaited){comm, peer, NCCL_RECEIVE, queued->number, queued->operation.bytes, -1, 0};
		}
	}
	return fits;
}

/* ---- gates ---- */

/* Ranks did not agree on a collective: nobody gets past it. */
static int
never_past(struct nccl_comm *comm, uint64_t number)
{
	const struct state *state = comm->state;
	uint64_t broken = atomic_load(&state->board.head->broken);
	int peer = (comm->rank + 1) % comm->ranks;
	struct nccl_record own = *record_of(state, comm->rank, broken), other = own;
	for (int i = 1; i < comm->ranks; i++) { /* one that did something else, if any does */
		int rank = (comm->rank + i) % comm->ranks;
		struct nccl_record its = *record_of(state, rank, broken);
		if (atomic_load(&state->board.members[rank].posted) < broken || same(&own, &its))
			continue;
		other = its;
		peer = rank;
		break;
	}
	struct awaited awaited = {comm, peer, own.kind, broken, own.bytes, -1, 0};
	return never(&awaited, &other);
}

static int
open_collectives(struct nccl_comm *comm, uint64_t number)
{
	struct state *state = comm->state;
	const struct nccl_member *own = &state->board.members[comm->rank];
	uint64_t from = state->waited > number ? number : state->waited;
	if (number > from + NCCL_RING)
		from = number - NCCL_RING;
	int result = NCCL_SUCCESS;
	for (int rank = 0; rank < comm->ranks && result == NCCL_SUCCESS; rank++) {
		uint64_t last = 0; /* the last one that needs this rank */
		for (uint64_t n = number; n > from && last == 0 && rank != comm->rank; n--) {
			const struct nccl_record *record = &own->ring[(n - 1) % NCCL_RING];
			last = needs(comm, record->kind, record->root, rank) ? n : 0;
		}
		if (last == 0)
			continue;
		const struct nccl_record *record = &own->ring[(last - 1) % NCCL_RING];
		struct awaited awaited = {comm, rank, record->kind, last, record->bytes, -1, 0};
		result = wait_for(&awaited, &state->board.members[rank].posted, last);
	}
	uint64_t broken = atomic_load(&state->board.head->broken);
	if (result == NCCL_SUCCESS && broken && number >= broken)
		result = never_past(comm, number);
	pthread_mutex_lock(&state->lock);
	if (result == NCCL_SUCCESS && state->waited < number)
		state->waited = number;
	finish_collectives(comm, number);
	pthread_mutex_unlock(&state->lock);
	tn__board_tell(&state->board);
	return result;
}

static int
open_receives(struct nccl_comm *comm, int peer, uint64_t number)
{
	struct state *state = comm->state;
	struct awaited awaited = {comm, peer, NCCL_RECEIVE, number, 0, -1, 0};
	struct nccl_record other;
	int result = wait_for(&awaited, &tn__board_pair(&state->board, peer, comm->rank)->posted, number);
	pthread_mutex_lock(&state->lock);
	bool fits = finish_receives(comm, peer, number, &awaited, &other);
	pthread_mutex_unlock(&state->lock);
	return fits ? result : never(&awaited, &other);
}

static void
wait_for_gate(uint64_t gate, uint64_t number)
{
	uint32_t generation = (uint32_t)(gate >> 32), row = (uint32_t)(gate >> 16) & 0xffff;
	int peer = (int)(gate & 0xffff) - 1;
	pthread_mutex_lock(&gates_lock);
	struct nccl_comm *comm = row < GATES && gates[row].generation == generation ? gates[row].comm : NULL;
	if (comm)
		gates[row].users++;
	pthread_mutex_unlock(&gates_lock);
	if (!comm)
		return;
	(void)(peer < 0 ? open_collectives(comm, number) : open_receives(comm, peer, number));
	pthread_mutex_lock(&gates_lock);
	gates[row].users--;
	pthread_mutex_unlock(&gates_lock);
}

static bool
add_gate(struct nccl_comm *comm)
{
	static uint32_t generations;
	struct state *state = comm->state;
	uint32_t row = 0;
	pthread_mutex_lock(&gates_lock);
	while (row < GATES && gates[row].comm)
		row++;
	if (row < GATES) {
		gates[row].comm = comm;
		gates[row].generation = state->generation = ++generations;
		state->gate = row;
	}
	pthread_mutex_unlock(&gates_lock);
	tn__set_gatekeeper(wait_for_gate);
	return row < GATES;
}

static void
remove_gate(const struct state *state)
{
	pthread_mutex_lock(&gates_lock);
	gates[state->gate].comm = NULL;
	while (gates[state->gate].users > 0) { /* waiters have seen that it was aborted */
		pthread_mutex_unlock(&gates_lock);
		sched_yield();
		pthread_mutex_lock(&gates_lock);
	}
	gates[state->gate].generation = 0;
	pthread_mutex_unlock(&gates_lock);
}

/* ---- memory ---- */

static int
take_memory(const struct nccl_comm *comm, uint64_t bytes, uint64_t *address)
{
	if (*address || comm->shares)
		return NCCL_SUCCESS;
	if (tn__communication_malloc(comm->device, bytes, address) != TN_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the device has no room for the communicator's buffers");
	return NCCL_SUCCESS;
}

static int
connect_peer(const struct nccl_comm *comm, int peer)
{
	const struct state *state = comm->state;
	return peer == comm->rank ? NCCL_SUCCESS : take_memory(comm, tn__nccl_peer_bytes(comm), &state->peer_memory[peer]);
}

/* NCCL connects as an algorithm is first used. */
static int
connect_memory(const struct nccl_operation *operation)
{
	const struct nccl_comm *comm = operation->comm;
	struct state *state = comm->state;
	enum nccl_kind kind = operation->kind;
	int result = NCCL_SUCCESS;
	if (kind == NCCL_SEND || kind == NCCL_RECEIVE)
		return connect_peer(comm, operation->peer);
	if (kind != NCCL_ALL_TO_ALL && kind != NCCL_GATHER && kind != NCCL_SCATTER)
		return take_memory(comm, tn__nccl_ring_bytes(comm), &state->ring_memory);
	for (int peer = 0; peer < comm->ranks && result == NCCL_SUCCESS; peer++)
		if (kind == NCCL_ALL_TO_ALL || operation->peer == comm->rank || operation->peer == peer)
			result = connect_peer(comm, peer);
	return result;
}

static void
give_memory(const struct nccl_comm *comm)
{
	struct state *state = comm->state;
	if (state->ring_memory)
		(void)tn__library_free(state->ring_memory);
	state->ring_memory = 0;
	for (int peer = 0; peer < comm->ranks; peer++) {
		if (state->peer_memory[peer])
			(void)tn__library_free(state->peer_memory[peer]);
		state->peer_memory[peer] = 0;
	}
}

/* ---- putting operations on streams ---- */

/* The slowest of the others, by what it has posted or taken. */
static uint64_t
slowest(const struct nccl_comm *comm, bool taken, int *rank_of)
{
	const struct state *state = comm->state;
	uint64_t least = UINT64_MAX;
	for (int rank = 0; rank < comm->ranks; rank++) {
		const struct nccl_member *member = &state->board.members[rank];
		uint64_t value = atomic_load(taken ? &member->taken : &member->posted);
		if (rank == comm->rank || atomic_load(&member->presence) == NCCL_GONE || value >= least)
			continue;
		least = value;
		*rank_of = rank;
	}
	return least;
}

/* Waits until a record, or a payload, of this number has room. */
static int
wait_for_room(struct nccl_comm *comm, const struct nccl_operation *operation, uint64_t number, bool payload)
{
	const struct state *state = comm->state;
	uint64_t room = payload ? NCCL_SLOTS : NCCL_RING;
	int rank = 0;
	while (number > room && slowest(comm, payload, &rank) < number - room) {
		struct nccl_member *member = &state->board.members[rank];
		struct awaited awaited = {comm, rank, (int)operation->kind, number, operation->bytes, -1, 0};
		int result = wait_for(&awaited, payload ? &member->taken : &member->posted, number - room);
		if (result != NCCL_SUCCESS)
			return result;
	}
	return NCCL_SUCCESS;
}

/* What is known of the bytes that this rank gives, multiplied by the operator's own scalar; NULL: nothing. A reduction takes
 * all or nothing. The caller frees it. */
static struct nccl_payload_bytes *
payload_of(const struct nccl_operation *operation, size_t bytes)
{
	double scalar = 1;
	uint64_t address = (uintptr_t)operation->send;
	bool reducing = reduces(operation->kind);
	struct nccl_payload_bytes *out = calloc(1, offsetof(struct nccl_payload_bytes, bytes) + bytes + 1);
	tn__pending_settle(address, bytes);
	if (out)
		out->run_count = (uint32_t)tn__values_runs(address, out->bytes, bytes, out->runs, NCCL_RUNS);
	bool all = out && out->run_count == 1 && out->runs[0].count == bytes;
	if (!out || out->run_count == 0 ||
	    (reducing && (!all || !tn__nccl_scalar(operation->comm, operation->operator, &scalar)))) {
		free(out);
		return NULL;
	}
	if (reducing && scalar != 1)
		tn__nccl_scale(out->bytes, bytes / tn__nccl_type_bytes(operation->type), (enum nccl_type)operation->type, scalar);
	return out;
}

static enum nccl_payload
kind_of_payload(const struct nccl_payload_bytes *payload, bool small, size_t bytes)
{
	if (!payload)
		return small ? NCCL_UNKNOWN : NCCL_LARGE;
	return payload->runs[0].count == bytes ? NCCL_KNOWN : NCCL_PARTLY;
}

/* Whether a neighbour that was here already did the same; if not, *bad and *other say what it did. */
static bool
agrees(struct nccl_comm *comm, const struct nccl_record *own, uint64_t number, struct awaited *bad,
       struct nccl_record *other)
{
	const struct state *state = comm->state;
	int neighbours[] = {(comm->rank + 1) % comm->ranks, (comm->rank + comm->ranks - 1) % comm->ranks};
	for (int i = 0; i < 2; i++) {
		uint64_t there = atomic_load(&state->board.members[neighbours[i]].posted);
		if (there < number || there >= number + NCCL_RING)
			continue;
		*other = *record_of(state, neighbours[i], number);
		if (same(own, other))
			continue;
		*bad = (struct awaited){comm, neighbours[i], own->kind, number, own->bytes, -1, 0};
		uint64_t none = 0;
		atomic_compare_exchange_strong(&state->board.head->broken, &none, number);
		return false;
	}
	return true;
}

/* What the receiving buffer holds before the result is there. */
static void
forget_result(const struct nccl_operation *operation)
{
	uint64_t to = (uintptr_t)operation->receive, from = (uintptr_t)operation->send;
	bool root = operation->kind == NCCL_BROADCAST && operation->peer == operation->comm->rank;
	if (!receives(operation) || (root && to == from))
		return;
	if (root)
		tn__values_move(to, from, operation->bytes);
	else
		tn__values_put(to, NULL, receive_bytes(operation));
}

static int
run_collective(const struct nccl_operation *operation)
{
	struct nccl_comm *comm = operation->comm;
	struct state *state = comm->state;
	struct nccl_member *own = &state->board.members[comm->rank];
	uint64_t number = state->posted + 1;
	size_t gives = send_bytes(operation);
	bool captured, small = gives <= NCCL_SMALL, root = operation->peer == comm->rank;
	bool waits = receives(operation) && !(from_root(operation->kind) && root);
	int result = wait_for_room(comm, operation, number, false);
	if (result == NCCL_SUCCESS && atomic_load(&state->board.head->broken))
		result = never_past(comm, number);
	if (result == NCCL_SUCCESS)
		result = connect_memory(operation);
	if (result != NCCL_SUCCESS)
		return result;
	uint64_t duration = tn__time_of_bytes(send_bytes(operation) + receive_bytes(operation));
	if (tn__transfer(operation->stream, duration, waits ? gate_of(comm, -1) : 0, number, &captured) != TN_CUDA_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream was refused");
	struct nccl_payload_bytes *payload = small && contributes(operation) && !captured ? payload_of(operation, gives) : NULL;
	if (payload && (result = wait_for_room(comm, operation, number, true)) != NCCL_SUCCESS) {
		free(payload);
		return result;
	}
	bool known = payload && tn__board_write(&state->board, comm->rank, 0, false, number - 1, payload, gives);
	enum nccl_payload given = kind_of_payload(known ? payload : NULL, small, gives);
	free(payload);
	bool hopeful = small && waits && !captured && (known || !contributes(operation) || !reduces(operation->kind));
	own->ring[(number - 1) % NCCL_RING] =
		(struct nccl_record){.kind = (uint8_t)operation->kind,
	                         .type = (uint8_t)operation->type,
	                         .payload = (uint8_t)given,
	                         .root = operation->peer,
	                         .operator = operation->operator,
	                         .bytes = operation->bytes};
	struct nccl_record record = own->ring[(number - 1) % NCCL_RING], other;
	if (!captured)
		forget_result(operation);
	if (hopeful)
		tn__pending_add((uintptr_t)operation->receive, receive_bytes(operation), gate_of(comm, -1), number, true);
	pthread_mutex_lock(&state->lock);
	state->posted = number;
	struct awaited bad;
	bool agreed = agrees(comm, &record, number, &bad, &other); /* before the others see that it is there, */
	if (hopeful && !push(&state->collectives, operation, number))
		hopeful = false;
	atomic_store(&own->posted, number);
	finish_collectives(comm, number);
	bool full = state->collectives.count >= QUEUED_MAX / 2;
	pthread_mutex_unlock(&state->lock);
	tn__board_tell(&state->board);
	tn__rank_count((int)operation->kind, operation->bytes);
	if (!agreed || !agrees(comm, &record, number, &bad, &other)) /* and after: both may have come at once */
		return never(&bad, &other);
	return full ? open_collectives(comm, number - QUEUED_MAX / 4) : NCCL_SUCCESS;
}

static int
run_send(const struct nccl_operation *operation)
{
	struct nccl_comm *comm = operation->comm;
	struct state *state = comm->state;
	struct nccl_pair *pair = tn__board_pair(&state->board, comm->rank, operation->peer);
	uint64_t number = atomic_load(&pair->posted) + 1;
	bool captured, small = operation->bytes <= NCCL_SMALL;
	int result = connect_memory(operation);
	if (result == NCCL_SUCCESS && number > NCCL_PAIR_RING) {
		struct awaited awaited = {comm, operation->peer, NCCL_SEND, number, operation->bytes, -1, 0};
		result = wait_for(&awaited, &pair->taken, number - NCCL_PAIR_RING);
	}
	if (result != NCCL_SUCCESS)
		return result;
	if (tn__transfer(operation->stream, tn__time_of_bytes(operation->bytes), 0, 0, &captured) != TN_CUDA_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream was refused");
	struct nccl_payload_bytes *payload = small && !captured ? payload_of(operation, operation->bytes) : NULL;
	bool known = payload && tn__board_write(&state->board, comm->rank, operation->peer, true, number - 1, payload, operation->bytes);
	enum nccl_payload given = kind_of_payload(known ? payload : NULL, small, operation->bytes);
	free(payload);
	pair->ring[(number - 1) % NCCL_PAIR_RING] =
		(struct nccl_record){.kind = NCCL_SEND,
	                         .type = (uint8_t)operation->type,
	                         .payload = (uint8_t)given,
	                         .root = operation->peer,
	                         .bytes = operation->bytes};
	atomic_store(&pair->posted, number);
	tn__board_tell(&state->board);
	tn__rank_count(NCCL_SEND, operation->bytes);
	return NCCL_SUCCESS;
}

static int
run_receive(const struct nccl_operation *operation)
{
	struct nccl_comm *comm = operation->comm;
	struct state *state = comm->state;
	uint64_t number = state->received[operation->peer] + 1, gate = gate_of(comm, operation->peer);
	struct awaited bad;
	struct nccl_record other;
	bool captured;
	int result = connect_memory(operation);
	if (result != NCCL_SUCCESS)
		return result;
	if (tn__transfer(operation->stream, tn__time_of_bytes(operation->bytes), gate, number, &captured) != TN_CUDA_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream was refused");
	state->received[operation->peer] = number;
	if (!captured)
		tn__values_put((uintptr_t)operation->receive, NULL, operation->bytes);
	if (!captured && operation->bytes <= NCCL_SMALL && operation->bytes > 0)
		tn__pending_add((uintptr_t)operation->receive, operation->bytes, gate, number, false);
	pthread_mutex_lock(&state->lock);
	bool queued = push(&state->receives[operation->peer], operation, number);
	bool fits = queued && finish_receives(comm, operation->peer, number, &bad, &other);
	bool full = state->receives[operation->peer].count > QUEUED_MAX;
	pthread_mutex_unlock(&state->lock);
	tn__rank_count(NCCL_RECEIVE, operation->bytes);
	if (!queued)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	if (!fits)
		return never(&bad, &other);
	return full ? open_receives(comm, operation->peer, number - QUEUED_MAX / 2) : NCCL_SUCCESS;
}

static int
run_ranks(struct nccl_comm *comm, const struct nccl_operation *operations, size_t count)
{
	const struct state *state = comm->state;
	int result = NCCL_SUCCESS;
	if (atomic_load(&state->aborted) || atomic_load(&state->board.head->aborted))
		return tn__nccl_fail(NCCL_REMOTE_ERROR, "the communicator was aborted");
	for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++)
		result = operations[i].kind == NCCL_SEND      ? run_send(&operations[i])
		         : operations[i].kind == NCCL_RECEIVE ? run_receive(&operations[i])
		                                              : run_collective(&operations[i]);
	return result;
}

/* ---- coming and going ---- */

static void
free_state(struct nccl_comm *comm)
{
	struct state *state = comm->state;
	comm->state = NULL;
	for (int rank = 0; state->receives && rank < comm->ranks; rank++)
		free(state->receives[rank].items);
	free(state->receives);
	free(state->received);
	free(state->peer_memory);
	free(state->collectives.items);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

static int
connect_ranks(struct nccl_comm *comm)
{
	size_t ranks = (size_t)comm->ranks;
	struct state *state = comm->state = calloc(1, sizeof(*state));
	if (!state)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	pthread_mutex_init(&state->lock, NULL);
	state->receives = calloc(ranks, sizeof(*state->receives));
	state->received = calloc(ranks, sizeof(*state->received));
	state->peer_memory = calloc(ranks, sizeof(*state->peer_memory));
	bool memory = state->receives && state->received && state->peer_memory;
	int result = memory ? tn__board_open(&state->board, &comm->id, comm->ranks)
	                    : tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	if (result == NCCL_SUCCESS && !add_gate(comm)) {
		tn__board_close(&state->board);
		result = tn__nccl_fail(NCCL_SYSTEM_ERROR, "more communicators than a process can have");
	}
	if (result != NCCL_SUCCESS) {
		free_state(comm);
		return result;
	}
	struct nccl_member *own = &state->board.members[comm->rank];
	own->pid = (int32_t)getpid();
	own->start_time = tn__process_started(own->pid);
	atomic_store(&own->presence, NCCL_HERE);
	tn__board_tell(&state->board);
	return NCCL_SUCCESS;
}

/* Presence as a counter for wait_for: it is a word of 32 bits. */
static int
wait_until_here(struct nccl_comm *comm, int rank)
{
	struct state *state = comm->state;
	const struct awaited awaited = {comm, rank, -1, 0, 0, -1, 0};
	uint64_t began = now_ns(), told = 0;
	for (;;) {
		uint32_t news = atomic_load(&state->board.head->news);
		if (atomic_load(&state->board.members[rank].presence) != NCCL_ABSENT)
			break;
		if (atomic_load(&state->aborted) || atomic_load(&state->board.head->aborted))
			return tn__nccl_fail(NCCL_REMOTE_ERROR, "the communicator was aborted");
		tn__board_sleep(&state->board, news);
		uint64_t now = now_ns();
		if (now - began >= TOLD_AFTER_NS && now - told >= TOLD_AFTER_NS / 2) {
			tell_wait(&awaited);
			told = now;
		}
	}
	if (told)
		tn__rank_goes_on();
	return NCCL_SUCCESS;
}

static int
meet_ranks(struct nccl_comm *comm)
{
	int result = NCCL_SUCCESS;
	if (!comm->together)
		tn__rank_join(comm->rank, comm->ranks, comm->device);
	for (int rank = 0; rank < comm->ranks && result == NCCL_SUCCESS; rank++)
		result = wait_until_here(comm, rank);
	return result;
}

static void
disconnect_ranks(struct nccl_comm *comm, bool abort)
{
	struct state *state = comm->state;
	atomic_store(&state->aborted, true);
	if (abort)
		atomic_store(&state->board.head->aborted, 1);
	atomic_store(&state->board.members[comm->rank].presence, NCCL_GONE);
	tn__board_tell(&state->board);
	remove_gate(state);
	give_memory(comm);
	tn__board_close(&state->board);
	free_state(comm);
}

static int
say_split(struct nccl_comm *comm, const struct nccl_split *own)
{
	struct state *state = comm->state;
	struct nccl_member *member = &state->board.members[comm->rank];
	member->split[state->splits % 2] = *own;
	atomic_store(&member->splits, ++state->splits);
	tn__board_tell(&state->board);
	return NCCL_SUCCESS;
}

/* Nobody can be two splits ahead: each waits for all. */
static int
hear_splits(struct nccl_comm *comm, struct nccl_split *all)
{
	const struct state *state = comm->state;
	int result = NCCL_SUCCESS;
	for (int rank = 0; rank < comm->ranks && result == NCCL_SUCCESS; rank++) {
		const struct nccl_member *member = &state->board.members[rank];
		const struct awaited awaited = {comm, rank, -1, state->splits, 0, -1, 0};
		result = wait_for(&awaited, &member->splits, state->splits);
		all[rank] = member->split[(state->splits - 1) % 2];
	}
	return result;
}

static int
suspend_ranks(struct nccl_comm *comm, bool back)
{
	struct state *state = comm->state;
	if (!back)
		give_memory(comm);
	state->suspended = !back; /* what is used again connects again */
	return NCCL_SUCCESS;
}

static int
error_ranks(struct nccl_comm *comm)
{
	const struct state *state = comm->state;
	return atomic_load(&state->board.head->aborted) ? NCCL_REMOTE_ERROR : NCCL_SUCCESS;
}

const struct nccl_transport tn__nccl_ranks = {
	connect_ranks, meet_ranks, disconnect_ranks, run_ranks, say_split, hear_splits, suspend_ranks, error_ranks,
};
