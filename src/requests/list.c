/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests one by one: an address is taken apart, headers that the sender makes itself are left out. Another machine is never asked.
 */
#include "requests/recorded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/error.h"

#define MOST_REQUESTS 4096

void
tn__requests_free(struct tn_request_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct tn_request *item = &list->items[i];
		char *texts[] = { item->method, item->target, item->headers, item->host, item->body, item->name, item->from };
		for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++)
			free(texts[j]);
	}
	free(list->items);
	*list = (struct tn_request_list){ 0 };
}

char *
tn__request_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	*length = 0;
	while (file != NULL && !ferror(file) && tn__array_room(&text, &room, *length + 65536, 1, TN_REQUEST_LARGEST)) {
		size_t got = fread(text + *length, 1, room - *length - 1, file);
		*length += got;
		if (got == 0)
			break;
	}
	bool whole = file != NULL && feof(file) && text != NULL;
	int why = errno;
	if (file != NULL)
		fclose(file);
	if (whole) {
		text[*length] = '\0';
		return text;
	}
	free(text);
	(void)tn__fail(TN_NOT_FOUND, "--request: %s cannot be read: %s", path,
	               file == NULL ? strerror(why) : "it is larger than 256 MiB, or reading failed");
	return NULL;
}

/* ---- addresses ---- */

static bool
is_this_machine(const char *host)
{
	return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0 ||
	       strcmp(host, "0.0.0.0") == 0;
}

/* The part of an address up to '/', '?' or the end: host and port. */
static tn_status
take_host(struct tn_request *request, const char *text, size_t length, const char *from, bool anywhere)
{
	char host[256];
	TN_RETURN_IF(length == 0 || length >= sizeof(host), TN_INVALID, "--request: %s: an address without a host", from);
	memcpy(host, text, length);
	host[length] = '\0';
	char *colon = strrchr(host, ':');
	int port = 80;
	if (colon != NULL && strchr(colon, ']') == NULL) {
		char *end;
		long value = strtol(colon + 1, &end, 10);
		TN_RETURN_IF(*end != '\0' || end == colon + 1 || value < 1 || value > 65535, TN_INVALID,
		             "--request: %s: %s has no port that can be", from, host);
		port = (int)value;
		request->host = strdup(host);
		*colon = '\0';
	} else {
		request->host = strdup(host);
	}
	if (is_this_machine(host)) {
		request->port = port;
		return request->host != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
	}
	TN_RETURN_IF(!anywhere, TN_INVALID,
	             "--request: %s: %s is another machine: requests go to a server of the run, on localhost", from, host);
	free(request->host);
	request->host = NULL;
	return TN_OK;
}

static tn_status
take_address(struct tn_request *request, const char *address, const char *from, bool anywhere)
{
	const char *path = address;
	static const char plain[] = "http://", secure[] = "https://";
	bool is_plain = strncasecmp(address, plain, sizeof(plain) - 1) == 0;
	bool is_secure = strncasecmp(address, secure, sizeof(secure) - 1) == 0;
	TN_RETURN_IF(is_secure && !anywhere, TN_INVALID, "--request: %s: requests are sent by HTTP: write http://", from);
	if (is_plain || is_secure) {
		const char *host = address + (is_plain ? sizeof(plain) : sizeof(secure)) - 1;
		size_t length = strcspn(host, "/?#");
		TN_FORWARD_IF_ERROR(take_host(request, host, length, from, anywhere));
		path = host + length;
	}
	size_t length = strcspn(path, "# \t");
	bool rooted = path[0] == '/';
	TN_RETURN_IF(!rooted && path == address, TN_INVALID,
	             "--request: %s: \"%s\" is neither an address (http://localhost:8000/...) nor a path (/...)", from,
	             address);
	if (asprintf(&request->target, "%s%.*s", rooted ? "" : "/", (int)length, path) < 0)
		return tn__fail(TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

tn_status
tn__request_add(struct tn_request_list *list, const char *method, const char *address, const char *from, bool anywhere,
                struct tn_request **out)
{
	TN_RETURN_IF(list->count >= MOST_REQUESTS, TN_INVALID, "--request: more than %d requests", MOST_REQUESTS);
	TN_RETURN_IF(!tn__array_room(&list->items, &list->capacity, list->count + 1, sizeof(*list->items), MOST_REQUESTS),
	             TN_NO_MEMORY, "out of host memory");
	struct tn_request *request = &list->items[list->count++];
	*request = (struct tn_request){ .method = strdup(method), .headers = strdup(""), .from = strdup(from) };
	TN_FORWARD_IF_ERROR(take_address(request, address, from, anywhere));
	if (request->method == NULL || request->headers == NULL || request->from == NULL ||
	    asprintf(&request->name, "%s %.*s", method, (int)strcspn(request->target, "?"), request->target) < 0)
		return tn__fail(TN_NO_MEMORY, "out of host memory"); /* a query may hold secrets: it is not told */
	*out = request;
	return TN_OK;
}

tn_status
tn__request_header(struct tn_request *request, const char *name, size_t name_length, const char *value)
{
	static const char *const own[] = {
		"host",   "content-length",   "connection", "transfer-encoding", "accept-encoding",
		"expect", "proxy-connection", "upgrade",    "keep-alive"
	};
	char *joined = NULL;
	if (name_length == 0 || name[0] == ':') /* of HTTP/2 */
		return TN_OK;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strlen(own[i]) == name_length && strncasecmp(own[i], name, name_length) == 0)
			return TN_OK;
	if (asprintf(&joined, "%s%.*s: %.*s\r\n", request->headers, (int)name_length, name, (int)strcspn(value, "\r\n"),
	             value) < 0)
		return tn__fail(TN_NO_MEMORY, "out of host memory");
	free(request->headers);
	request->headers = joined;
	return TN_OK;
}
