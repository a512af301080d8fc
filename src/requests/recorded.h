/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that are sent to the server of a run, read from addresses, files and recordings (doc/design/0037-requests.md).
 */
#ifndef TN_REQUESTS_RECORDED_H
#define TN_REQUESTS_RECORDED_H

#include <stdbool.h>
#include <stddef.h>

#include "tonnage/run.h"

/* One recorded request. Texts are owned; the target begins with '/'. */
struct tn_request {
	char *method, *target;
	char *headers; /* lines that end with CRLF; neither Host, Content-Length nor Connection */
	char *host;    /* for the header Host; NULL: the address */
	int port;      /* 0: wherever the server listens */
	char *body;
	size_t body_length;
	int expected; /* status that a recording has; 0: none */
	char *name;   /* for a person: "POST /generate" */
	char *from;   /* "chat.http:3"; NULL: it was an address */
};

#define TN_REQUEST_LARGEST ((size_t)256 << 20) /* bytes of a file, and of a body */

struct tn_request_list {
	struct tn_request *items;
	size_t count, capacity;
};

/* Reads all --request of the options. TN_INVALID or TN_NOT_FOUND with words for a person; the list is then empty. */
tn_status tn__requests_read(const struct tn_run_options *options, struct tn_request_list *out);
void tn__requests_free(struct tn_request_list *list);
/* Adds one, whose texts are copied. `address` is absolute ("http://localhost:8000/x") or a path; `from` is told with errors. `anywhere`: an
 * address of another machine stands for the path alone. */
tn_status tn__request_add(struct tn_request_list *list, const char *method, const char *address, const char *from,
                          bool anywhere, struct tn_request **out);
/* Appends a header, unless it is one that the sender makes itself. */
tn_status tn__request_header(struct tn_request *request, const char *name, size_t name_length, const char *value);
/* Adds the requests of a recording. */
tn_status tn__requests_read_har(const char *path, const char *text, size_t length, struct tn_request_list *out);
/* A whole file, ended by NUL; NULL with words. The caller frees. */
char *tn__request_file(const char *path, size_t *length);
/* The target that waits for the result of a request to Gradio, by what its first part was answered; NULL: it was another kind of request. The
 * caller frees. */
char *tn__request_second(const struct tn_request *request, const char *answer);

#endif
