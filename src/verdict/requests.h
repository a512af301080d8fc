/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of the requests of a run with --request (doc/design/0037-requests.md). Data only.
 */
#ifndef TN_VERDICT_REQUESTS_H
#define TN_VERDICT_REQUESTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* One of the requests that were given, over all rounds. */
struct tn_request_row {
	char *name; /* "POST /generate" */
	char *from; /* "chat.http:3"; an address as it was given */
	int64_t sent, answered;
	int64_t failed;     /* number of the first that was not answered well; 0: none */
	int64_t status;     /* of HTTP: of that one, else of the last; 0: no answer came */
	char *words;        /* what else there is to say of it; NULL */
	int64_t peak;       /* of the card while one of them was answered and took memory; TN_NO_FIGURE: none did */
	bool out_of_memory; /* the last ran out of memory */
};

struct tn_requests {
	bool known;            /* requests were to be sent */
	int64_t port;          /* 0: the server never listened there */
	char *others;          /* ports that processes of the run listen at; NULL: none, or the server's alone */
	int64_t sent, started; /* ended, and begun */
	int64_t rounds;        /* that are whole */
	int64_t wanted;        /* rounds of --repeat; 0: as many as it takes */
	bool all;              /* nothing was left to be sent */
	int64_t
		rises; /* bytes by which the peak usually rises from round to round; 0: it does not with each, to the last */
	int64_t rising_rounds;
	int64_t highest; /* peak of PyTorch's allocator in the last of these */
	int64_t full_at; /* round; TN_NO_FIGURE: too far away */
	struct tn_request_row *rows;
	size_t count;
};

void tn__requests_model_free(struct tn_requests *requests);
/* False without memory. */
bool tn__requests_model_copy(const struct tn_requests *from, struct tn_requests *to);
/* The object `requests` of `run --json`; what is malformed is left out. */
void tn__requests_model_read(const json_t *object, struct tn_requests *requests);

#endif
