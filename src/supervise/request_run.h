/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to a server under `tonnage run --request` (doc/design/0037-requests.md): what is sent, who sends it, and what became of it.
 */
#ifndef TN_SUPERVISE_REQUEST_RUN_H
#define TN_SUPERVISE_REQUEST_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "requests/recorded.h"
#include "supervise/process.h"
#include "tonnage/run.h"

struct tn_folder;

/* ---- request_http.c: one request and its answer ---- */

/* OUT_OF_MEMORY: a hook saw one, and the request was not answered well; it comes from no answer. */
enum tn_answered { TN_ANSWERED, TN_REFUSED, TN_DROPPED, TN_ANSWERED_OUT_OF_MEMORY };

struct tn_answer {
	enum tn_answered how;
	int status;      /* of HTTP; 0: none came */
	char words[160]; /* what else there is to say: "Gradio: event error" */
	char *begin;     /* the first bytes of the body, ended by NUL; owned */
};

/* Sends a request to a port of this machine and reads all of the answer. Blocks. */
void tn__request_send(const struct tn_request *request, int port, bool ipv6, struct tn_answer *out);

/* ---- request_port.c: where processes of the run listen ---- */

struct tn_listening {
	int port;
	bool ipv6; /* only there */
};
/* The listening TCP ports of processes below `tree`, at most `room` of them. */
size_t tn__listening_ports(const struct tn_process_tree *tree, struct tn_listening *out, size_t room);
/* The only port that the kernel did not choose itself; NULL: there is none, or several. What processes of a run agree on among themselves
 * (stores of process groups, queues) mostly listens at ports of its choice. */
const struct tn_listening *tn__listening_alone(const struct tn_listening *ports, size_t count);
/* The port that a request without one goes to, by the command line or since servers use it by default; NULL: it cannot be told. */
const struct tn_listening *tn__listening_choose(const struct tn_listening *ports, size_t count, char *const *arguments);

/* ---- request_sender.c: the process that sends ---- */

enum tn_sent_kind {
	TN_SENT_LISTENS, /* port: the server listens */
	TN_SENT_BEGINS,  /* a request is about to be sent */
	TN_SENT_ENDED,   /* it has ended */
	TN_SENT_ALL      /* nothing more is sent: `settled` says why */
};
struct tn_sent {                       /* through a pipe, whole at once since it is shorter than PIPE_BUF */
	int32_t kind, number, which, port; /* number: from 1; which: of the list */
	int32_t how, status, settled;
	int64_t allocated, peak; /* of PyTorch's allocator: at its end, and in it where that was a new peak; TN_NO_FIGURE */
	char words[160];
};

struct tn_sender_start {
	const struct tn_request_list *list;
	struct tn_process_tree tree;
	char *const *arguments;
	int repeat;    /* rounds; 0: until memory has settled */
	int listening; /* the socket of the hooks */
};

/* Starts the sender; its pid, or -1. *news is the reading end of its pipe. */
pid_t tn__sender_start(const struct tn_sender_start *start, int *news);

/* ---- request_run.c: the requests of a run, as its supervisor sees them ---- */

struct tn_watch;
struct tn_report;
struct tn_requests;

struct tn_request_run {
	struct tn_request_list list;
	int hooks, news; /* sockets; -1: none */
	pid_t sender;
	double listens_since, all_since; /* 0: not yet */
	bool ends, insists;              /* the server was asked to end, politely and less so */
	struct tn_requests *found;
	int64_t *peaks; /* of PyTorch's allocator by round; TN_NO_FIGURE: it was no new one */
	int64_t round_peak;
	size_t peak_count, peak_capacity;
};
/* Reads what is to be sent; NULL in *out where nothing is. TN_INVALID or TN_NOT_FOUND with words for a person. */
tn_status tn__request_run_prepare(const struct tn_run_options *options, struct tn_request_run **out);
/* Makes the socket of the hooks, before the program starts. */
tn_status tn__request_run_listen(struct tn_request_run *requests, const struct tn_folder *folder);
/* Starts the sender, once the program is there. */
void tn__request_run_start(struct tn_request_run *requests, const struct tn_watch *watch,
                           const struct tn_run_options *options);
/* Takes what the sender has told. */
void tn__request_run_read(struct tn_request_run *requests, double now);
/* Ends the server as Ctrl-C at a terminal would, later less politely; true when it has had its time. */
bool tn__request_run_end(struct tn_request_run *requests, const struct tn_process_tree *tree, pid_t program,
                         double now);
/* Hands over what became of the requests. Call before the report is judged. */
void tn__request_run_collect(struct tn_request_run *requests, struct tn_report *report);
void tn__request_run_free(struct tn_request_run *requests);

#endif
