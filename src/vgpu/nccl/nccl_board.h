/* SPDX-License-Identifier: Apache-2.0
 *
 * A board: the file of the run's folder where the ranks of one communicator meet (doc/design/0022-many-cards.md). A head that all map
 * shared, and behind it what is written and read as a file's, so that a full disk is an error and no signal: records of sends, and
 * places for small payloads. Most of it is never written, and takes no disk.
 *
 * Invariants: all is zero at first. A member's ring, and the records of a pair's sends, hold the last NCCL_RING: record n at n modulo
 * that, there as soon as `posted` is n or more. Only the member writes its part; only the sender a pair's `posted` and records, only the
 * receiver its `taken` and `receives`. A place is written again only when its last payload has been taken.
 */
#ifndef TN_NCCL_BOARD_H
#define TN_NCCL_BOARD_H

#include "vgpu/nccl/nccl_comm.h"

#define NCCL_RING 1024   /* how far a rank may run ahead of another one, by collectives, sends or receives */
#define NCCL_NEAR 64     /* places of payloads that are used over and over while they are taken soon */
#define NCCL_SMALL 65536 /* bytes of a payload that is moved: TN_NCCL_SMALL of the design note */
#define NCCL_MOST_RANKS 256

#define NCCL_RUNS 16 /* of known bytes in a payload of which not all are */
enum nccl_payload { NCCL_LARGE, NCCL_UNKNOWN, NCCL_PARTLY, NCCL_KNOWN };
enum nccl_presence { NCCL_ABSENT, NCCL_HERE, NCCL_GONE };

struct nccl_record {
	uint8_t kind, type, payload; /* enums nccl_kind, nccl_type, nccl_payload */
	uint16_t place;              /* of the payload */
	int32_t root, operator;
	uint64_t bytes;
};

struct nccl_member {
	_Atomic uint64_t presence; /* enum nccl_presence; only grows */
	int32_t pid;
	uint64_t start_time;
	_Atomic uint64_t posted, taken; /* collectives; those whose payloads of others it needs no more */
	_Atomic uint64_t splits;
	struct nccl_split split[2]; /* of the last two */
	struct nccl_record ring[NCCL_RING];
};

struct nccl_pair {                            /* from one rank to another */
	_Atomic uint64_t posted, taken, receives; /* sends; those that were received; receives that are on streams */
};

struct nccl_head {
	_Atomic uint32_t ranks, left, aborted;
	_Atomic uint32_t news, waiters; /* news is a futex */
	_Atomic uint64_t
		broken; /* the first collective that ranks did not agree on; 0: none. Nothing comes of it, or after it */
};

struct nccl_board {
	struct nccl_head *head;
	struct nccl_member *members;
	struct nccl_pair *pairs;
	size_t head_bytes;
	int ranks, descriptor;
	char path[512];
};

/* Opens or makes the board that an id names. An nccl_result. */
int tn__board_open(struct nccl_board *board, const struct nccl_id *id, int ranks);
/* Leaves it; the last of `ranks` removes the file. */
void tn__board_close(struct nccl_board *board);

/* Of a rank's collective; there once its `posted` is at least `number`, which counts from 1. */
const struct nccl_record *tn__board_record(const struct nccl_board *board, int rank, uint64_t number);
struct nccl_pair *tn__board_pair(const struct nccl_board *board, int from, int to);

/* The record of a send, which counts from 1 and is among the last NCCL_RING. False: the file cannot be written or read. */
bool tn__board_write_send(const struct nccl_board *board, int from, int to, uint64_t number,
                          const struct nccl_record *record);
bool tn__board_read_send(const struct nccl_board *board, int from, int to, uint64_t number, struct nccl_record *out);

/* Where the payload of an operation may lie when those up to `taken` have been taken, fewer than NCCL_RING behind it. */
uint16_t tn__board_place(uint64_t number, uint64_t taken);

/* Payloads. `pair`: of the sends from `from` to `to`, else of `from`'s collectives. False: the file cannot be written or
 * read. */
struct nccl_payload_bytes {
	struct tn_run runs[NCCL_RUNS];
	uint32_t run_count;
	unsigned char bytes[NCCL_SMALL];
};
bool tn__board_write(const struct nccl_board *board, int from, int to, bool pair, uint16_t place,
                     const struct nccl_payload_bytes *payload, size_t count);
bool tn__board_read(const struct nccl_board *board, int from, int to, bool pair, uint16_t place, void *bytes,
                    size_t offset, size_t count);
bool tn__board_read_runs(const struct nccl_board *board, int from, int to, bool pair, uint16_t place,
                         struct nccl_payload_bytes *out);

/* Something has changed. */
void tn__board_tell(const struct nccl_board *board);
/* Sleeps until something has changed since `news` was read, or a tenth of a second is over. */
void tn__board_sleep(const struct nccl_board *board, uint32_t news);

#endif
