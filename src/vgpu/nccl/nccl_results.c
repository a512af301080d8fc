/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "vgpu/nccl/nccl_agree.h"
#include "vgpu/nccl/nccl_gate.h"
#include "vgpu/nccl/nccl_operation.h"
#include "vgpu/nccl/nccl_reduce.h"
#include "vgpu/nccl/nccl_results.h"

bool
tn__nccl_queue(struct nccl_queue *queue, const struct nccl_operation *operation, uint64_t number)
{
	if (!tn__array_room(&queue->items, &queue->capacity, queue->count + 1, sizeof(*queue->items), SIZE_MAX))
		return false;
	queue->items[queue->count++] = (struct nccl_queued){ *operation, number };
	return true;
}

static void
pop(struct nccl_queue *queue)
{
	memmove(&queue->items[0], &queue->items[1], --queue->count * sizeof(queue->items[0]));
}

/* Makes known what a rank gave, as far as its values were: `count` bytes from `offset` of its payload, to an address. */
static void
take_part(const struct nccl_board *board, int from, int to, bool pair, uint16_t place, size_t offset, size_t count,
          uint64_t address)
{
	struct nccl_payload_bytes head;
	unsigned char *bytes = malloc(count + 1);
	bool read = bytes && tn__board_read_runs(board, from, to, pair, place, &head) &&
	            tn__board_read(board, from, to, pair, place, bytes, offset, count);
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
	const struct nccl_ranks *state = comm->state;
	enum nccl_kind kind = operation->kind;
	size_t part = operation->bytes;
	size_t offset = tn__nccl_scatters(kind) ? (size_t)comm->rank * part : 0;
	for (int rank = 0; rank < comm->ranks; rank++) {
		int slot = tn__nccl_slot(comm, tn__nccl_stand_in(comm, rank));
		const struct nccl_record *record = tn__board_record(&state->board, slot, number);
		if (tn__nccl_needs(comm, kind, operation->peer, rank) && record->payload >= NCCL_PARTLY)
			take_part(&state->board, slot, 0, false, record->place, offset, part,
			          (uintptr_t)operation->receive + (tn__nccl_gathers(kind) ? (size_t)rank * part : 0));
	}
}

/* Reads what is reduced, of each rank that is run, one after the other. False: not all of it is known. */
static bool
read_parts(const struct nccl_operation *operation, uint64_t number, unsigned char *parts)
{
	const struct nccl_comm *comm = operation->comm;
	const struct nccl_ranks *state = comm->state;
	size_t part = operation->bytes, offset = tn__nccl_scatters(operation->kind) ? (size_t)comm->rank * part : 0;
	bool known = true;
	for (int slot = 0; slot < comm->run_count && known; slot++) {
		const struct nccl_record *record = tn__board_record(&state->board, slot, number);
		known = record->payload == NCCL_KNOWN &&
		        tn__board_read(&state->board, slot, 0, false, record->place, parts + (size_t)slot * part, offset, part);
	}
	return known;
}

/* Whether the ranks that are run say what the others do: the least and the greatest of all, or what is the same on each. */
static bool
speaks_for_all(const struct nccl_comm *comm, int operator, const unsigned char *parts, size_t part)
{
	bool same = true;
	for (int slot = 1; slot < comm->run_count && same; slot++)
		same = memcmp(parts, parts + (size_t)slot * part, part) == 0;
	return same || comm->run_count == comm->ranks || operator == NCCL_MAX || operator == NCCL_MIN;
}

/* What comes of a reduction that all have posted: known when all that is reduced is. The result is the first of `parts`, which
 * has room for one of each rank that is run, and one more. */
static bool
reduce(const struct nccl_operation *operation, uint64_t number, unsigned char *parts)
{
	const struct nccl_comm *comm = operation->comm;
	enum nccl_type type = (enum nccl_type)operation->type;
	size_t part = operation->bytes, count = part / tn__nccl_type_bytes(type);
	unsigned char *out = parts + (size_t)comm->run_count * part;
	int operator = operation->operator < NCCL_BUILT_IN_OPERATORS ? operation->operator : NCCL_SUM;
	if (!read_parts(operation, number, parts) || !speaks_for_all(comm, operator, parts, part))
		return false;
	memcpy(out, parts + (size_t)tn__nccl_slot(comm, tn__nccl_stand_in(comm, 0)) * part, part);
	for (int rank = 1; rank < comm->ranks; rank++)
		tn__nccl_combine(out, parts + (size_t)tn__nccl_slot(comm, tn__nccl_stand_in(comm, rank)) * part, count, type,
		                 operator);
	if (operator == NCCL_AVERAGE)
		tn__nccl_divide(out, count, type, comm->ranks);
	memcpy(parts, out, part);
	return true;
}

static void
finish_collective(const struct nccl_queued *queued)
{
	const struct nccl_operation *operation = &queued->operation;
	uint64_t address = (uintptr_t)operation->receive;
	if (!tn__pending_take(address, tn__nccl_gate(operation->comm, -1), queued->number))
		return;
	if (operation->like) {
		tn__values_move(address, operation->like, operation->bytes);
		return;
	}
	if (!tn__nccl_reduces(operation->kind)) {
		take_parts(operation, queued->number);
		return;
	}
	unsigned char *out = malloc(((size_t)operation->comm->run_count + 1) * operation->bytes + 1);
	if (out && reduce(operation, queued->number, out))
		tn__values_put(address, out, operation->bytes);
	free(out);
}

/* Whether all that an operation needs is there. */
static bool
is_met(const struct nccl_operation *operation, uint64_t number)
{
	const struct nccl_comm *comm = operation->comm;
	bool met = true;
	for (int rank = 0; rank < comm->ranks && met; rank++)
		met = rank == comm->rank || tn__nccl_is_absent(comm, rank) ||
		      !tn__nccl_needs(comm, operation->kind, operation->peer, rank) ||
		      atomic_load(&tn__nccl_member(comm, rank)->posted) >= number;
	return met;
}

void
tn__nccl_finish_collectives(struct nccl_comm *comm, uint64_t number)
{
	struct nccl_ranks *state = comm->state;
	struct nccl_queue *queue = &state->collectives;
	while (queue->count > 0 && queue->items[0].number <= number &&
	       is_met(&queue->items[0].operation, queue->items[0].number)) {
		finish_collective(&queue->items[0]);
		pop(queue);
	}
	uint64_t taken = queue->count > 0 ? queue->items[0].number - 1 : state->posted;
	atomic_store(&tn__nccl_member(comm, comm->rank)->taken, taken);
}

static void
finish_receive(const struct nccl_queued *queued, const struct nccl_record *record)
{
	const struct nccl_operation *operation = &queued->operation;
	const struct nccl_comm *comm = operation->comm;
	const struct nccl_ranks *state = comm->state;
	uint64_t address = (uintptr_t)operation->receive;
	bool wanted = tn__pending_take(address, tn__nccl_gate(comm, operation->peer), queued->number);
	if (wanted && record->payload >= NCCL_PARTLY)
		take_part(&state->board, tn__nccl_slot(comm, operation->peer), tn__nccl_slot(comm, comm->rank), true,
		          record->place, 0, operation->bytes, address);
}

bool
tn__nccl_finish_receives(struct nccl_comm *comm, int peer, uint64_t number, struct nccl_awaited *bad,
                         struct nccl_record *other)
{
	struct nccl_ranks *state = comm->state;
	struct nccl_queue *queue = &state->receives[peer];
	int from = tn__nccl_slot(comm, peer), to = tn__nccl_slot(comm, comm->rank);
	struct nccl_pair *pair = tn__board_pair(&state->board, from, to);
	bool fits = true;
	while (fits && queue->count > 0 && queue->items[0].number <= number &&
	       atomic_load(&pair->posted) >= queue->items[0].number) {
		const struct nccl_queued *queued = &queue->items[0];
		if (queued->operation.like) { /* from a rank that is not run: as the one before it in this queue */
			uint64_t address = (uintptr_t)queued->operation.receive;
			if (tn__pending_take(address, tn__nccl_gate(comm, peer), queued->number))
				tn__values_move(address, queued->operation.like, queued->operation.bytes);
			pop(queue);
			continue;
		}
		bool read = tn__board_read_send(&state->board, from, to, queued->number, other);
		fits = !read || other->bytes == queued->operation.bytes;
		if (!read)
			other->payload = NCCL_UNKNOWN;
		if (fits) {
			finish_receive(queued, other);
			pop(queue);
			atomic_fetch_add(&pair->taken, 1);
			tn__board_tell(&state->board);
		} else {
			*bad = (struct nccl_awaited){ comm, peer, NCCL_RECEIVE, queued->number, queued->operation.bytes, -1, 0 };
		}
	}
	return fits;
}

void
tn__nccl_take(struct nccl_comm *comm)
{
	struct nccl_ranks *state = comm->state;
	const struct nccl_member *own = tn__nccl_member(comm, comm->rank);
	if (pthread_mutex_trylock(&state->lock) != 0)
		return;
	uint64_t before = atomic_load(&own->taken);
	tn__nccl_finish_collectives(comm, state->posted);
	bool more = atomic_load(&own->taken) != before;
	struct nccl_awaited bad; /* a send of another size stays for the one that waits for it */
	struct nccl_record other;
	for (int peer = 0; peer < comm->ranks; peer++)
		if (state->receives[peer].count > 0)
			(void)tn__nccl_finish_receives(comm, peer, state->received[peer], &bad, &other);
	pthread_mutex_unlock(&state->lock);
	if (more)
		tn__board_tell(&state->board);
}

static int
wait_for_collectives(struct nccl_comm *comm, uint64_t number)
{
	struct nccl_ranks *state = comm->state;
	const struct nccl_member *own = tn__nccl_member(comm, comm->rank);
	uint64_t from = state->waited > number ? number : state->waited;
	if (number > from + NCCL_RING)
		from = number - NCCL_RING;
	int result = NCCL_SUCCESS;
	for (int rank = 0; rank < comm->ranks && result == NCCL_SUCCESS; rank++) {
		uint64_t last = 0; /* the last one that needs this rank */
		for (uint64_t n = number; n > from && last == 0 && rank != comm->rank && !tn__nccl_is_absent(comm, rank); n--) {
			const struct nccl_record *record = &own->ring[(n - 1) % NCCL_RING];
			last = tn__nccl_needs(comm, record->kind, record->root, rank) ? n : 0;
		}
		if (last == 0)
			continue;
		const struct nccl_record *record = &own->ring[(last - 1) % NCCL_RING];
		struct nccl_awaited awaited = { comm, rank, record->kind, last, record->bytes, -1, 0 };
		result = tn__nccl_wait(&awaited, &tn__nccl_member(comm, rank)->posted, last);
	}
	uint64_t broken = atomic_load(&state->board.head->broken);
	if (result == NCCL_SUCCESS && broken && number >= broken)
		result = tn__nccl_wait_at_disagreement(comm);
	pthread_mutex_lock(&state->lock);
	if (result == NCCL_SUCCESS && state->waited < number)
		state->waited = number;
	tn__nccl_finish_collectives(comm, number);
	pthread_mutex_unlock(&state->lock);
	tn__board_tell(&state->board);
	return result;
}

static int
wait_for_receives(struct nccl_comm *comm, int peer, uint64_t number)
{
	struct nccl_ranks *state = comm->state;
	struct nccl_awaited awaited = { comm, peer, NCCL_RECEIVE, number, 0, -1, 0 };
	struct nccl_record other;
	int result = tn__nccl_wait(
		&awaited, &tn__board_pair(&state->board, tn__nccl_slot(comm, peer), tn__nccl_slot(comm, comm->rank))->posted,
		number);
	pthread_mutex_lock(&state->lock);
	bool fits = tn__nccl_finish_receives(comm, peer, number, &awaited, &other);
	pthread_mutex_unlock(&state->lock);
	return fits ? result : tn__nccl_wait_for_ever(&awaited, &other);
}

/* Until the peer has put the receive of a send on a stream. */
static int
wait_for_receiver(struct nccl_comm *comm, int peer, uint64_t number)
{
	const struct nccl_ranks *state = comm->state;
	int from = tn__nccl_slot(comm, comm->rank), to = tn__nccl_slot(comm, peer);
	struct nccl_record record = { 0 };
	(void)tn__board_read_send(&state->board, from, to, number, &record);
	struct nccl_awaited awaited = { comm, peer, NCCL_SEND, number, record.bytes, -1, 0 };
	return tn__nccl_wait(&awaited, &tn__board_pair(&state->board, from, to)->receives, number);
}

int
tn__nccl_wait_for_results(struct nccl_comm *comm, int peer, uint64_t number)
{
	if (peer >= NCCL_SENDS_TO)
		return wait_for_receiver(comm, peer - NCCL_SENDS_TO, number);
	return peer < 0 ? wait_for_collectives(comm, number) : wait_for_receives(comm, peer, number);
}
