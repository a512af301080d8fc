/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/ledger.h"
#include "vgpu/nccl/nccl_board.h"

#define NAMED_BYTES 32 /* of an id that are in the file's name */
#define SLOT_BYTES (NCCL_SMALL + 4096)
#define SLEEP_NS 100000000

static bool
path_of(char *out, size_t room, const struct nccl_id *id)
{
	const char *run = tn__run_folder();
	int length = run ? snprintf(out, room, "%s/nccl", run) : 0;
	if (length <= 0 || (size_t)length + 2 + 2 * NAMED_BYTES > room)
		return false;
	if (mkdir(out, 0700) != 0 && errno != EEXIST)
		return false;
	out[length++] = '/';
	for (size_t i = 0; i < NAMED_BYTES; i++)
		length += sprintf(out + length, "%02x", (unsigned char)id->bytes[i]);
	return true;
}

static void *
map(int descriptor, size_t bytes)
{
	/* Reserved now: a full disk must show here, not as SIGBUS at a store. */
	if (posix_fallocate(descriptor, 0, (off_t)bytes) != 0)
		return NULL;
	void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	return mapping == MAP_FAILED ? NULL : mapping;
}

int
tn__board_open(struct nccl_board *board, const struct nccl_id *id, int ranks)
{
	uint32_t none = 0;
	size_t count = (size_t)ranks, bytes = sizeof(struct nccl_head) + count * sizeof(struct nccl_member) +
	                                      count * count * sizeof(struct nccl_pair);
	*board = (struct nccl_board){ .ranks = ranks, .descriptor = -1, .head_bytes = (bytes + 4095) & ~(size_t)4095 };
	if (ranks > NCCL_MOST_RANKS)
		return tn__nccl_fail(NCCL_INVALID_USAGE, "more ranks than a virtual node can hold");
	if (!path_of(board->path, sizeof(board->path), id))
		return tn__nccl_fail(NCCL_INVALID_USAGE, "several ranks can only meet in a run of tonnage");
	board->descriptor = open(board->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	board->head = board->descriptor >= 0 ? map(board->descriptor, board->head_bytes) : NULL;
	if (!board->head) {
		if (board->descriptor >= 0)
			close(board->descriptor);
		return tn__nccl_fail(NCCL_SYSTEM_ERROR, "the board of the communicator cannot be made in the run's folder");
	}
	board->members = (struct nccl_member *)(board->head + 1);
	board->pairs = (struct nccl_pair *)(board->members + count);
	if (!atomic_compare_exchange_strong(&board->head->ranks, &none, (uint32_t)ranks) && none != (uint32_t)ranks) {
		munmap(board->head, board->head_bytes);
		close(board->descriptor);
		return tn__nccl_fail(NCCL_INVALID_ARGUMENT, "ranks of one communicator name different numbers of ranks");
	}
	return NCCL_SUCCESS;
}

void
tn__board_close(struct nccl_board *board)
{
	if (atomic_fetch_add(&board->head->left, 1) + 1 == (uint32_t)board->ranks)
		unlink(board->path);
	munmap(board->head, board->head_bytes);
	close(board->descriptor);
	*board = (struct nccl_board){ .descriptor = -1 };
}

const struct nccl_record *
tn__board_record(const struct nccl_board *board, int rank, uint64_t number)
{
	return &board->members[rank].ring[(number - 1) % NCCL_RING];
}

struct nccl_pair *
tn__board_pair(const struct nccl_board *board, int from, int to)
{
	return &board->pairs[from * board->ranks + to];
}

static off_t
send_at(const struct nccl_board *board, int from, int to, uint64_t number)
{
	uint64_t pair = (uint64_t)from * (uint64_t)board->ranks + (uint64_t)to;
	return (off_t)(board->head_bytes + (pair * NCCL_RING + number % NCCL_RING) * sizeof(struct nccl_record));
}

bool
tn__board_write_send(const struct nccl_board *board, int from, int to, uint64_t number,
                     const struct nccl_record *record)
{
	return pwrite(board->descriptor, record, sizeof(*record), send_at(board, from, to, number)) == sizeof(*record);
}

bool
tn__board_read_send(const struct nccl_board *board, int from, int to, uint64_t number, struct nccl_record *out)
{
	return pread(board->descriptor, out, sizeof(*out), send_at(board, from, to, number)) == sizeof(*out);
}

uint16_t
tn__board_place(uint64_t number, uint64_t taken)
{
	bool soon = number <= taken || number - taken <= NCCL_NEAR;
	return (uint16_t)(soon ? number % NCCL_NEAR : NCCL_NEAR + number % NCCL_RING);
}

static off_t
payload_at(const struct nccl_board *board, int from, int to, bool pair, uint16_t place)
{
	uint64_t ranks = (uint64_t)board->ranks;
	uint64_t row = pair ? ranks + (uint64_t)from * ranks + (uint64_t)to : (uint64_t)from;
	return send_at(board, board->ranks, 0, 0) + (off_t)((row * (NCCL_NEAR + NCCL_RING) + place) * SLOT_BYTES);
}

bool
tn__board_write(const struct nccl_board *board, int from, int to, bool pair, uint16_t place,
                const struct nccl_payload_bytes *payload, size_t count)
{
	size_t all = offsetof(struct nccl_payload_bytes, bytes) + count;
	return pwrite(board->descriptor, payload, all, payload_at(board, from, to, pair, place)) == (ssize_t)all;
}

bool
tn__board_read_runs(const struct nccl_board *board, int from, int to, bool pair, uint16_t place,
                    struct nccl_payload_bytes *out)
{
	size_t head = offsetof(struct nccl_payload_bytes, bytes);
	return pread(board->descriptor, out, head, payload_at(board, from, to, pair, place)) == (ssize_t)head &&
	       out->run_count <= NCCL_RUNS;
}

bool
tn__board_read(const struct nccl_board *board, int from, int to, bool pair, uint16_t place, void *bytes, size_t offset,
               size_t count)
{
	off_t at = payload_at(board, from, to, pair, place) + (off_t)(offsetof(struct nccl_payload_bytes, bytes) + offset);
	return pread(board->descriptor, bytes, count, at) == (ssize_t)count;
}

void
tn__board_tell(const struct nccl_board *board)
{
	atomic_fetch_add(&board->head->news, 1);
	if (atomic_load(&board->head->waiters) > 0)
		syscall(SYS_futex, &board->head->news, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void
tn__board_sleep(const struct nccl_board *board, uint32_t news)
{
	const struct timespec longest = { .tv_nsec = SLEEP_NS };
	atomic_fetch_add(&board->head->waiters, 1);
	syscall(SYS_futex, &board->head->news, FUTEX_WAIT, news, &longest, NULL, 0);
	atomic_fetch_sub(&board->head->waiters, 1);
}
