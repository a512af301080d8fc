/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "vgpu/core/runtime.h"
#include "vgpu/nccl/nccl_agree.h"
#include "vgpu/nccl/nccl_gate.h"
#include "vgpu/nccl/nccl_memory.h"
#include "vgpu/nccl/nccl_operation.h"
#include "vgpu/nccl/nccl_post.h"
#include "vgpu/nccl/nccl_reduce.h"
#include "vgpu/nccl/nccl_results.h"

#define HANDSHAKE \
	128 /* bytes: a receive of sizes or flags, which a kernel sums before the host reads it (PyTorch's recv_object_list).
                       * For larger ones no kernel waits: they may be waited for by what this rank sends next */

/* The slowest of the others, by what it has posted or taken. UINT64_MAX: there are none. */
static uint64_t
slowest(const struct nccl_comm *comm, bool taken, int *rank_of)
{
	uint64_t least = UINT64_MAX;
	for (int rank = 0; rank < comm->ranks; rank++) {
		if (tn__nccl_is_absent(comm, rank))
			continue;
		const struct nccl_member *member = tn__nccl_member(comm, rank);
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
	int rank = 0;
	while (number > NCCL_RING && slowest(comm, payload, &rank) < number - NCCL_RING) {
		struct nccl_member *member = tn__nccl_member(comm, rank);
		struct nccl_awaited awaited = { comm, rank, (int)operation->kind, number, operation->bytes, -1, 0 };
		int result = tn__nccl_wait(&awaited, payload ? &member->taken : &member->posted, number - NCCL_RING);
		if (result != NCCL_SUCCESS)
			return result;
	}
	return NCCL_SUCCESS;
}

/* Where the payload of a collective may lie, for which there is room. This rank, too, reads what it gave. */
static uint16_t
place_of(struct nccl_comm *comm, uint64_t number)
{
	struct nccl_ranks *state = comm->state;
	int ignored;
	pthread_mutex_lock(&state->lock);
	tn__nccl_finish_collectives(comm, state->posted);
	pthread_mutex_unlock(&state->lock);
	uint64_t own = atomic_load(&tn__nccl_member(comm, comm->rank)->taken), others = slowest(comm, true, &ignored);
	return tn__board_place(number, own < others ? own : others);
}

/* What is known of the bytes that this rank gives, multiplied by the operator's own scalar; NULL: nothing. A reduction takes
 * all or nothing. The caller frees it. */
static struct nccl_payload_bytes *
payload_of(const struct nccl_operation *operation, size_t bytes)
{
	double scalar = 1;
	uint64_t address = (uintptr_t)operation->send;
	bool reducing = tn__nccl_reduces(operation->kind);
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
		tn__nccl_scale(out->bytes, bytes / tn__nccl_type_bytes(operation->type), (enum nccl_type)operation->type,
		               scalar);
	return out;
}

/* Puts a payload (NULL: none is known) in a place on the board, frees it, and says what is there. */
static enum nccl_payload
put_payload(const struct nccl_operation *operation, uint16_t place, struct nccl_payload_bytes *payload, size_t bytes)
{
	const struct nccl_comm *comm = operation->comm;
	const struct nccl_ranks *state = comm->state;
	bool pair = operation->kind == NCCL_SEND;
	bool written = payload &&
	               tn__board_write(&state->board, tn__nccl_slot(comm, comm->rank),
	                               pair ? tn__nccl_slot(comm, operation->peer) : 0, pair, place, payload, bytes);
	bool whole = written && payload->runs[0].count == bytes;
	free(payload);
	if (bytes > NCCL_SMALL)
		return NCCL_LARGE;
	return whole ? NCCL_KNOWN : written ? NCCL_PARTLY : NCCL_UNKNOWN;
}

static struct nccl_record
record_of(const struct nccl_operation *operation, enum nccl_payload payload, uint16_t place)
{
	return (struct nccl_record){ .kind = (uint8_t)operation->kind,
		                         .type = (uint8_t)operation->type,
		                         .payload = (uint8_t)payload,
		                         .place = place,
		                         .root = operation->peer,
		                         .operator = operation->operator,
		                         .bytes = operation->bytes };
}

/* One number, in place, of which the ranks have the greatest or least: it is taken to be what this rank's is taken to be, since
 * all do the same (whether any rank found that something is wrong). */
static bool
is_flag_of_all(const struct nccl_operation *operation)
{
	bool one = operation->bytes == tn__nccl_type_bytes((enum nccl_type)operation->type);
	return operation->kind == NCCL_ALL_REDUCE && operation->send == operation->receive && one &&
	       (operation->operator == NCCL_MAX || operation->operator == NCCL_MIN) &&
	       !tn__values_known((uintptr_t)operation->receive, NULL, operation->bytes);
}

/* What the receiving buffer holds before the result is there. */
static void
forget_result(const struct nccl_operation *operation)
{
	uint64_t to = (uintptr_t)operation->receive, from = (uintptr_t)operation->send;
	bool root = operation->kind == NCCL_BROADCAST && operation->peer == operation->comm->rank;
	if (!tn__nccl_receives(operation) || (root && to == from) || is_flag_of_all(operation))
		return;
	if (root)
		tn__values_move(to, from, operation->bytes);
	else
		tn__values_put(to, NULL, tn__nccl_receive_bytes(operation));
}

static int
post_collective(const struct nccl_operation *operation)
{
	struct nccl_comm *comm = operation->comm;
	struct nccl_ranks *state = comm->state;
	struct nccl_member *own = tn__nccl_member(comm, comm->rank);
	uint64_t number = state->posted + 1;
	size_t gives = tn__nccl_send_bytes(operation);
	bool captured, small = gives <= NCCL_SMALL, root = operation->peer == comm->rank;
	bool contributes = tn__nccl_contributes(operation);
	bool waits = tn__nccl_receives(operation) && !(tn__nccl_from_root(operation->kind) && root);
	int result = wait_for_room(comm, operation, number, false);
	uint64_t broken = atomic_load(&state->board.head->broken);
	if (result == NCCL_SUCCESS && broken && number > broken) /* until then its own record has to be there */
		result = tn__nccl_wait_at_disagreement(comm);
	if (result == NCCL_SUCCESS)
		result = tn__nccl_take_memory(operation);
	if (result != NCCL_SUCCESS)
		return result;
	uint64_t gate = tn__nccl_gate(comm, -1), duration = tn__time_of_bytes(gives + tn__nccl_receive_bytes(operation));
	if (tn__transfer(operation->stream, duration, waits ? gate : 0, number, &captured) != TN_CUDA_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream was refused");
	struct nccl_payload_bytes *payload = small && contributes && !captured ? payload_of(operation, gives) : NULL;
	if (payload && (result = wait_for_room(comm, operation, number, true)) != NCCL_SUCCESS) {
		free(payload);
		return result;
	}
	uint16_t place = payload ? place_of(comm, number) : 0;
	enum nccl_payload given = put_payload(operation, place, payload, gives);
	bool pending = small && waits && !captured &&
	               (given >= NCCL_PARTLY || !contributes || !tn__nccl_reduces(operation->kind));
	struct nccl_record record = record_of(operation, given, place), other;
	own->ring[(number - 1) % NCCL_RING] = record;
	if (!captured)
		forget_result(operation);
	if (pending)
		tn__pending_add((uintptr_t)operation->receive, tn__nccl_receive_bytes(operation), gate, number, true);
	pthread_mutex_lock(&state->lock);
	state->posted = number;
	struct nccl_awaited bad;
	bool agreed = tn__nccl_agrees(comm, &record, number, &bad, &other); /* before the others see that it is there, */
	if (pending)
		(void)tn__nccl_queue(&state->collectives, operation, number); /* without memory the values stay unknown */
	atomic_store(&own->posted, number);
	tn__nccl_finish_collectives(comm, number);
	pthread_mutex_unlock(&state->lock);
	tn__board_tell(&state->board);
	tn__rank_count((int)operation->kind, operation->bytes);
	if (!agreed || !tn__nccl_agrees(comm, &record, number, &bad, &other)) /* and after: both may have come at once */
		return tn__nccl_wait_for_ever(&bad, &other);
	return NCCL_SUCCESS;
}

/* Waits for a receive from a rank that is run, posted before, whose values are taken for those of one that is not. */
static void
follow(const struct nccl_operation *operation, int peer)
{
	struct nccl_comm *comm = operation->comm;
	struct nccl_ranks *state = comm->state;
	struct nccl_awaited bad;
	struct nccl_record other;
	uint64_t number = state->received[peer];
	tn__pending_add((uintptr_t)operation->receive, operation->bytes, tn__nccl_gate(comm, peer), number,
	                operation->bytes <= HANDSHAKE);
	pthread_mutex_lock(&state->lock);
	bool queued = tn__nccl_queue(&state->receives[peer], operation, number);
	if (queued)
		(void)tn__nccl_finish_receives(comm, peer, number, &bad, &other);
	pthread_mutex_unlock(&state->lock);
}

/* With a rank that is not run: what is sent to it nobody looks at, what it would send is what `peer` (-1: nobody) has sent in the same
 * group, to where operation->like says. */
static int
post_alone(const struct nccl_operation *operation, int peer)
{
	bool captured;
	int result = tn__nccl_take_memory(operation);
	if (result != NCCL_SUCCESS)
		return result;
	if (tn__transfer(operation->stream, tn__time_of_bytes(operation->bytes), 0, 0, &captured) != TN_CUDA_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream was refused");
	if (operation->kind == NCCL_RECEIVE && !captured)
		tn__values_put((uintptr_t)operation->receive, NULL, operation->bytes);
	if (peer >= 0 && !captured && operation->bytes > 0 && operation->bytes <= NCCL_SMALL)
		follow(operation, peer);
	tn__rank_count((int)operation->kind, operation->bytes);
	return NCCL_SUCCESS;
}

/* Whether a send cannot end before its receive has begun: the first one connects the two ranks, which both have to do, and the bytes of
 * a large one have no room but where they are received. */
static bool
must_be_met(const struct nccl_operation *operation, uint64_t number)
{
	return number == 1 || operation->bytes > tn__nccl_peer_buffers(operation->comm);
}

static int
post_send(const struct nccl_operation *operation)
{
	struct nccl_comm *comm = operation->comm;
	struct nccl_ranks *state = comm->state;
	int from = tn__nccl_slot(comm, comm->rank), to = tn__nccl_slot(comm, operation->peer);
	struct nccl_pair *pair = tn__board_pair(&state->board, from, to);
	uint64_t number = atomic_load(&pair->posted) + 1;
	bool captured, small = operation->bytes <= NCCL_SMALL;
	uint64_t gate = must_be_met(operation, number) ? tn__nccl_gate(comm, NCCL_SENDS_TO + operation->peer) : 0;
	int result = tn__nccl_take_memory(operation);
	if (result == NCCL_SUCCESS && number > NCCL_RING) {
		struct nccl_awaited awaited = { comm, operation->peer, NCCL_SEND, number, operation->bytes, -1, 0 };
		result = tn__nccl_wait(&awaited, &pair->taken, number - NCCL_RING);
	}
	if (result != NCCL_SUCCESS)
		return result;
	if (tn__transfer(operation->stream, tn__time_of_bytes(operation->bytes), gate, number, &captured) != TN_CUDA_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream was refused");
	struct nccl_payload_bytes *payload = small && !captured ? payload_of(operation, operation->bytes) : NULL;
	uint16_t place = tn__board_place(number, atomic_load(&pair->taken));
	struct nccl_record record = record_of(operation, put_payload(operation, place, payload, operation->bytes), place);
	if (!tn__board_write_send(&state->board, from, to, number, &record))
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "the run's folder cannot be written");
	atomic_store(&pair->posted, number);
	tn__board_tell(&state->board);
	tn__rank_count(NCCL_SEND, operation->bytes);
	return NCCL_SUCCESS;
}

static int
post_receive(const struct nccl_operation *operation)
{
	struct nccl_comm *comm = operation->comm;
	struct nccl_ranks *state = comm->state;
	uint64_t number = state->received[operation->peer] + 1, gate = tn__nccl_gate(comm, operation->peer);
	struct nccl_awaited bad;
	struct nccl_record other;
	bool captured;
	int result = tn__nccl_take_memory(operation);
	if (result != NCCL_SUCCESS)
		return result;
	if (tn__transfer(operation->stream, tn__time_of_bytes(operation->bytes), gate, number, &captured) != TN_CUDA_OK)
		return tn__nccl_fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream was refused");
	state->received[operation->peer] = number;
	atomic_store(
		&tn__board_pair(&state->board, tn__nccl_slot(comm, operation->peer), tn__nccl_slot(comm, comm->rank))->receives,
		number);
	tn__board_tell(&state->board);
	if (!captured)
		tn__values_put((uintptr_t)operation->receive, NULL, operation->bytes);
	if (!captured && operation->bytes <= NCCL_SMALL && operation->bytes > 0)
		tn__pending_add((uintptr_t)operation->receive, operation->bytes, gate, number, operation->bytes <= HANDSHAKE);
	pthread_mutex_lock(&state->lock);
	bool queued = tn__nccl_queue(&state->receives[operation->peer], operation, number);
	bool fits = queued && tn__nccl_finish_receives(comm, operation->peer, number, &bad, &other);
	bool full = state->receives[operation->peer].count > NCCL_RING;
	pthread_mutex_unlock(&state->lock);
	tn__rank_count(NCCL_RECEIVE, operation->bytes);
	if (!queued)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	if (!fits)
		return tn__nccl_wait_for_ever(&bad, &other);
	return full ? tn__nccl_wait_for_results(comm, operation->peer, number - NCCL_RING) : NCCL_SUCCESS;
}

static bool
is_alone(const struct nccl_operation *operation)
{
	bool pair = operation->kind == NCCL_SEND || operation->kind == NCCL_RECEIVE;
	return pair && tn__nccl_is_absent(operation->comm, operation->peer);
}

/* PyTorch gathers tensors by a group of broadcasts, one from each rank. For a rank that is not run, the address that receives from the
 * rank that stands for it; 0: none. */
static uint64_t
like(const struct nccl_operation *operations, size_t place)
{
	const struct nccl_operation *own = &operations[place];
	if (own->kind != NCCL_BROADCAST || !tn__nccl_is_absent(own->comm, own->peer))
		return 0;
	int root = tn__nccl_stand_in(own->comm, own->peer);
	for (size_t i = 0; i < place; i++)
		if (operations[i].kind == NCCL_BROADCAST && operations[i].peer == root && operations[i].bytes == own->bytes)
			return (uintptr_t)operations[i].receive;
	return 0;
}

/* The receive of a group that a receive from a rank that is not run is like (PyTorch gathers to one rank by such a group): from the
 * one that stands for it, else from another. */
static const struct nccl_operation *
like_receive(const struct nccl_operation *operations, size_t count, const struct nccl_operation *own)
{
	const struct nccl_operation *found = NULL;
	int stand_in = tn__nccl_stand_in(own->comm, own->peer);
	for (size_t i = 0; i < count; i++) {
		const struct nccl_operation *other = &operations[i];
		bool fits = other->kind == NCCL_RECEIVE && other->bytes == own->bytes &&
		            !tn__nccl_is_absent(own->comm, other->peer);
		if (fits && (!found || other->peer == stand_in))
			found = other;
	}
	return found;
}

static int
post(const struct nccl_operation *operation)
{
	return operation->kind == NCCL_SEND      ? post_send(operation)
	       : operation->kind == NCCL_RECEIVE ? post_receive(operation)
	                                         : post_collective(operation);
}

/* Where not all ranks are run: those of a group with ranks that are come first. */
static int
post_some(const struct nccl_operation *operations, size_t count)
{
	int result = NCCL_SUCCESS;
	for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++) {
		struct nccl_operation operation = operations[i];
		operation.like = like(operations, i);
		if (!is_alone(&operation))
			result = post(&operation);
	}
	for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++) {
		struct nccl_operation operation = operations[i];
		if (!is_alone(&operation))
			continue;
		const struct nccl_operation *other = operation.kind == NCCL_RECEIVE
		                                         ? like_receive(operations, count, &operation)
		                                         : NULL;
		operation.like = other ? (uintptr_t)other->receive : 0;
		result = post_alone(&operation, other ? other->peer : -1);
	}
	return result;
}

static int
post_all(struct nccl_comm *comm, const struct nccl_operation *operations, size_t count)
{
	int result = NCCL_SUCCESS;
	if (comm->slots)
		return post_some(operations, count);
	for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++)
		result = post(&operations[i]);
	return result;
}

/* Sends and receives by turns, each kind in its order: all of a group begin at once, and a rank that puts its sends first would wait
 * for room that another one's receives make, which come after its own sends. */
static void
mix(struct nccl_operation *mixed, const struct nccl_operation *operations, size_t count)
{
	size_t next[2] = { 0, 0 }; /* the first one that is no receive, the first receive */
	for (size_t i = 0, turn = 0; i < count; turn++) {
		bool receive = turn % 2;
		size_t *at = &next[receive];
		while (*at < count && (operations[*at].kind == NCCL_RECEIVE) != receive)
			(*at)++;
		if (*at < count)
			mixed[i++] = operations[(*at)++];
	}
}

int
tn__nccl_post(struct nccl_comm *comm, const struct nccl_operation *operations, size_t count)
{
	int result = tn__nccl_check_abort(comm);
	if (result != NCCL_SUCCESS || count <= NCCL_RING)
		return result != NCCL_SUCCESS ? result : post_all(comm, operations, count);
	struct nccl_operation *mixed = malloc(count * sizeof(*mixed));
	if (!mixed)
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "out of host memory");
	mix(mixed, operations, count);
	result = post_all(comm, mixed, count);
	free(mixed);
	return result;
}
