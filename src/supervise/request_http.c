/* SPDX-License-Identifier: Apache-2.0
 *
 * One request over HTTP/1.1 and all of its answer, by plain blocking sockets on loopback. Nothing of an answer is kept but its first bytes;
 * all of it is searched for words that tell of CUDA's out-of-memory, whatever the status says.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervise/request_run.h"

#define BUFFER 65536
#define KEPT 65536 /* bytes of a body */
#define OVERLAP 64 /* longer than any of the words that are looked for */
#define LONGEST_HEAD (256 << 10)

static const char *const out_of_memory_words[] = { "CUDA out of memory", "OutOfMemoryError",
	                                               "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED" };

struct exchange {
	int socket;
	char buffer[BUFFER];
	size_t at, end; /* what was received and not read */
	bool over;      /* the other side has closed */
	struct tn_answer *answer;
	size_t kept;
	char tail[OVERLAP + BUFFER + 1]; /* the last bytes of the body and the next ones */
	size_t tail_length;
	bool out_of_memory, event_failed;
};

static int
connect_to(int port, bool ipv6)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
		                        .sin_port = htons((uint16_t)port),
		                        .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
		                        .sin6_port = htons((uint16_t)port),
		                        .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int socket_ = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	const struct sockaddr *address = ipv6 ? (const struct sockaddr *)&six : (const struct sockaddr *)&four;
	if (socket_ < 0)
		return -1;
	if (connect(socket_, address, ipv6 ? sizeof(six) : sizeof(four)) != 0) {
		close(socket_);
		return -1;
	}
	setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return socket_;
}

static bool
send_all(int socket_, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(socket_, bytes, length, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		bytes += sent;
		length -= (size_t)sent;
	}
	return true;
}

static bool
send_request(int socket_, const struct tn_request *request, int port, bool ipv6)
{
	char *head = NULL, address[32];
	bool has_body = request->body_length > 0 || strcmp(request->method, "POST") == 0 ||
	                strcmp(request->method, "PUT") == 0;
	char length[64] = "";
	snprintf(address, sizeof(address), ipv6 ? "[::1]:%d" : "127.0.0.1:%d", port);
	if (has_body)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", request->body_length);
	int size = asprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%sConnection: close\r\n\r\n", request->method,
	                    request->target, request->host != NULL ? request->host : address, request->headers, length);
	if (size < 0)
		return false;
	bool sent = send_all(socket_, head, (size_t)size) && send_all(socket_, request->body, request->body_length);
	free(head);
	return sent;
}

/* ---- reading ---- */

static bool
fill(struct exchange *exchange)
{
	ssize_t got;
	if (exchange->at < exchange->end)
		return true;
	do
		got = recv(exchange->socket, exchange->buffer, sizeof(exchange->buffer), 0);
	while (got < 0 && errno == EINTR);
	exchange->at = 0;
	exchange->end = got > 0 ? (size_t)got : 0;
	exchange->over |= got <= 0;
	return got > 0;
}

/* A line without its end; false where there is none. */
static bool
read_line(struct exchange *exchange, char *line, size_t room)
{
	size_t length = 0;
	while (fill(exchange)) {
		char byte = exchange->buffer[exchange->at++];
		if (byte == '\n') {
			if (length > 0 && line[length - 1] == '\r')
				length--;
			line[length] = '\0';
			return true;
		}
		if (length + 1 < room)
			line[length++] = byte;
	}
	return false;
}

static bool
has(const char *text, size_t length, const char *word)
{
	return memmem(text, length, word, strlen(word)) != NULL;
}

/* A part of the body. */
static void
take(struct exchange *exchange, const char *bytes, size_t length)
{
	struct tn_answer *answer = exchange->answer;
	size_t keep = exchange->kept + length < KEPT ? length : KEPT - exchange->kept;
	memcpy(exchange->tail + exchange->tail_length, bytes, length);
	exchange->tail_length += length;
	for (size_t i = 0; i < sizeof(out_of_memory_words) / sizeof(out_of_memory_words[0]); i++)
		exchange->out_of_memory |= has(exchange->tail, exchange->tail_length, out_of_memory_words[i]);
	exchange->event_failed |= has(exchange->tail, exchange->tail_length, "event: error") ||
	                          has(exchange->tail, exchange->tail_length, "\"success\":false") ||
	                          has(exchange->tail, exchange->tail_length, "\"success\": false");
	if (exchange->tail_length > OVERLAP) {
		memmove(exchange->tail, exchange->tail + exchange->tail_length - OVERLAP, OVERLAP);
		exchange->tail_length = OVERLAP;
	}
	if (answer->begin != NULL)
		memcpy(answer->begin + exchange->kept, bytes, keep);
	exchange->kept += keep;
}

/* So many bytes of the body; false where they do not come. */
static bool
read_bytes(struct exchange *exchange, uint64_t count)
{
	while (count > 0 && fill(exchange)) {
		size_t there = exchange->end - exchange->at;
		if (there > count)
			there = (size_t)count;
		take(exchange, exchange->buffer + exchange->at, there);
		exchange->at += there;
		count -= there;
	}
	return count == 0;
}

static bool
read_chunks(struct exchange *exchange)
{
	char line[256];
	while (read_line(exchange, line, sizeof(line))) {
		uint64_t size = strtoull(line, NULL, 16);
		if (size == 0)
			return true; /* what may follow are trailers */
		if (!read_bytes(exchange, size) || !read_line(exchange, line, sizeof(line)))
			return false;
	}
	return false;
}

/* True when all of the answer came. */
static bool
read_answer(struct exchange *exchange, const struct tn_request *request)
{
	char line[8192];
	bool chunked = false, sized = false;
	uint64_t size = 0;
	size_t head = 0;
	do { /* a 100 goes before the answer itself */
		if (!read_line(exchange, line, sizeof(line)) || sscanf(line, "HTTP/%*d.%*d %d", &exchange->answer->status) != 1)
			return false;
		while (read_line(exchange, line, sizeof(line)) && line[0] != '\0' && (head += strlen(line)) < LONGEST_HEAD) {
			if (strncasecmp(line, "content-length:", 15) == 0) {
				sized = true;
				size = strtoull(line + 15, NULL, 10);
			} else if (strncasecmp(line, "transfer-encoding:", 18) == 0) {
				chunked = strcasestr(line, "chunked") != NULL;
			}
		}
		if (exchange->over || line[0] != '\0')
			return false;
	} while (exchange->answer->status < 200 && exchange->answer->status != 101);
	int status = exchange->answer->status;
	if (strcmp(request->method, "HEAD") == 0 || status == 204 || status == 304 || status == 101)
		return true;
	if (chunked)
		return read_chunks(exchange);
	if (sized)
		return read_bytes(exchange, size);
	(void)read_bytes(exchange, UINT64_MAX);
	return true;
}

/* One that waits for a result by events. */
static bool
is_of_gradio(const struct tn_request *request)
{
	return strstr(request->target, "/queue/data?") != NULL ||
	       (strcmp(request->method, "GET") == 0 && strstr(request->target, "/call/") != NULL);
}

void
tn__request_send(const struct tn_request *request, int port, bool ipv6, struct tn_answer *out)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	*out = (struct tn_answer){ .how = TN_DROPPED, .begin = calloc(1, KEPT + 1) };
	if (exchange == NULL)
		return;
	exchange->answer = out;
	exchange->socket = connect_to(port, ipv6);
	if (exchange->socket < 0) {
		snprintf(out->words, sizeof(out->words), "the connection was not taken: %s", strerror(errno));
		free(exchange);
		return;
	}
	(void)send_request(exchange->socket, request, port, ipv6); /* a server may answer before it has read all */
	bool whole = read_answer(exchange, request);
	bool well = out->status >= 200 && out->status < 400;
	if (exchange->out_of_memory && out->status != request->expected) {
		out->how = TN_REFUSED;
		snprintf(out->words, sizeof(out->words), "it tells of an out-of-memory");
	} else if (!whole) {
		out->how = TN_DROPPED;
	} else if (exchange->event_failed && is_of_gradio(request)) {
		out->how = TN_REFUSED;
		snprintf(out->words, sizeof(out->words), "event error");
	} else {
		out->how = well || (request->expected != 0 && out->status == request->expected) ? TN_ANSWERED : TN_REFUSED;
	}
	close(exchange->socket);
	free(exchange);
}
