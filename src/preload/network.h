/* SPDX-License-Identifier: Apache-2.0
 *
 * The network wall of a virtual run (doc/design/0020-network.md): what all processes of a run know of it together, in one
 * mapped file, <run>/state/network. The supervisor makes the file; without it there is no wall.
 *
 * Invariant: rows are only ever added, each claimed by one atomic operation and readable once `ready` is set; so there is
 * no lock and a killed process leaves nothing torn. A full table refuses hosts that it has no row for.
 */
#ifndef TN_PRELOAD_NETWORK_H
#define TN_PRELOAD_NETWORK_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tonnage/status.h"

#define TN_NETWORK_FILE "state/network" /* in the run folder */
#define TN_NETWORK_CALLS "state/held"   /* what the guests held back: lines "kind<tab>name<tab>detail" */
#define TN_NETWORK_MAGIC 0x32776e4e4f54ull
#define TN_NETWORK_HOSTS 256
#define TN_NETWORK_ADDRESSES 2048
#define TN_NETWORK_NAME 104
#define TN_NETWORK_INHERITED 8
/* What may be sent on a connection beyond what was received on it since the first kernel: the handshake of TLS and the
 * headers of a request fit in (RFC 8446; servers commonly refuse headers above 8 KiB, some above 16 KiB). */
#define TN_NETWORK_ALLOWANCE (32 << 10)

struct tn_network_host {
	_Atomic uint32_t ready;
	_Atomic uint32_t read;        /* was connected to before the first kernel */
	_Atomic uint32_t connections; /* that were refused */
	_Atomic uint32_t sends;       /* that were refused, on connections that stood and by datagram */
	char name[TN_NETWORK_NAME];   /* as it was looked up; "10.0.0.7", "127.0.0.1:8000" or a path where it was not */
};

struct tn_network_address {
	_Atomic uint32_t ready;
	uint32_t host;
	uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t port;     /* 0: any. An address of this machine has a row for each port */
};

struct tn_network {
	uint64_t magic;
	_Atomic uint32_t kernels; /* not 0: a kernel was launched, what comes from now on may be made up */
	_Atomic uint32_t host_count, address_count;
	_Atomic uint32_t lost;                    /* refusals that found no row */
	_Atomic uint32_t left;                    /* connections that lead out of the run and were allowed */
	uint64_t pass;                            /* the filter's pass word (raw.h), as in the index */
	uint64_t inherited[TN_NETWORK_INHERITED]; /* inodes of sockets that the program was started with: its terminal */
	_Atomic uint64_t tcp[1024], udp[1024];    /* a bit for each port that a process of the run listens at */
	struct tn_network_host hosts[TN_NETWORK_HOSTS];
	struct tn_network_address addresses[TN_NETWORK_ADDRESSES];
};

enum tn_network_answer {
	TN_NETWORK_FREE,    /* inside the run, or the wall is open */
	TN_NETWORK_BOUNDED, /* was read from before: may be read from again, what is sent is counted */
	TN_NETWORK_REFUSED
};

/* Makes the file of a run; sockets among the descriptors 0 to 2 stay the program's. `pass` is the run's pass word. */
tn_status tn__network_create(const char *run_folder, uint64_t pass);
/* The wall of a run that begins with what another one left: hosts that were read from there are known, and it is closed if that
 * one's was. Where it cannot be taken over, it begins closed to all. */
void tn__network_go_on(const char *run_folder, const char *before);
/* Maps it; NULL when there is none. Outside the run, `pass` is 0. */
struct tn_network *tn__network_open(const char *run_folder, uint64_t pass);
void tn__network_close(struct tn_network *network);

/* True once what is sent may be made up. */
static inline bool
tn_network_is_closed(const struct tn_network *network)
{
	return atomic_load_explicit(&network->kernels, memory_order_relaxed) != 0;
}

/* May a process of the run connect a stream socket to this address (connect(2), TCP Fast Open)? Before the first kernel
 * always, and the host is noted as one that is read from. A refusal is counted. The one question for every wall: the
 * preloaded library asks it, and so may whoever sees system calls. Thread-safe, keeps errno, allocates nothing. */
enum tn_network_answer tn__network_connect(struct tn_network *network, const struct sockaddr *address,
                                           socklen_t length);
/* May it send a datagram there? `server`: the socket was bound to a port by name. */
enum tn_network_answer tn__network_datagram(struct tn_network *network, const struct sockaddr *address,
                                            socklen_t length, bool server);
/* May it connect, or send, to a socket of this path in the file system? `own`: the path lies in the run. An abstract name is
 * handed over with an @ in the place of its first byte. */
enum tn_network_answer tn__network_path(struct tn_network *network, const char *path, bool own);
/* A process of the run made a socket of this name (absolute, without links; or abstract). */
void tn__network_binds(struct tn_network *network, const char *path);
/* The name of a file without links, as the kernel has it (PATH_MAX bytes); the path itself where nothing is. */
void tn__network_real_path(const char *path, char *out);
/* The name in an address of the file system's kind, as tn__network_path wants it, but a path may be relative; false: there is
 * none in it. `out` has TN_NETWORK_PATH bytes. */
#define TN_NETWORK_PATH 112
bool tn__network_path_of(const struct sockaddr *address, socklen_t length, char *out);
/* A process of the run listens at the port of this address. */
void tn__network_listens(struct tn_network *network, const struct sockaddr *address, socklen_t length, bool udp);
/* A name was looked up and has this address. */
void tn__network_named(struct tn_network *network, const char *name, const struct sockaddr *address, socklen_t length);
/* Counts a refused send to where the socket leads. */
void tn__network_refused_send(struct tn_network *network, const struct sockaddr *address, socklen_t length);

/* An option of a socket that is a whole number (SOL_SOCKET), or -1. */
int tn__network_option(int fd, int option);
/* What went over a TCP connection so far, as the kernel counts: `sent` with what still waits to be. False: it is none. */
struct tn_network_count {
	uint64_t sent, received;
};
bool tn__network_count(int fd, struct tn_network_count *out);
/* Was more sent since `first` than reading needs, or would it be with `more` bytes? */
bool tn__network_is_too_much(const struct tn_network_count *first, const struct tn_network_count *now, uint64_t more);
/* Calls `visit` for every socket among the descriptors of all processes that may be looked at, until it says true. */
void tn__network_each_socket(bool (*visit)(pid_t process, int fd, unsigned long long inode, void *context),
                             void *context);

/* Is the port of this local address one that the run listens at? Asks /proc where the table does not know. */
bool tn__network_is_own(struct tn_network *network, const struct sockaddr *address, socklen_t length, bool udp);
/* Is it an address of this machine? */
bool tn__network_is_local(const struct sockaddr *address, socklen_t length);

/* Does a name server answer there? */
bool tn__network_is_dns(const struct sockaddr *address, socklen_t length);

#endif
