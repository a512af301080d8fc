/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests as a browser has recorded them (HAR 1.2): those to one origin, without what only makes up a page. What Gradio's page asks for to
 * hear of a result is left out, since the sender asks for it itself.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/json.h"
#include "requests/recorded.h"

/* Up to the path: scheme, host and port. */
static size_t
origin_length(const char *address)
{
	const char *host = strstr(address, "://");
	return host != NULL ? (size_t)(host + 3 - address) + strcspn(host + 3, "/?#") : 0;
}

static const char *
address_of(const json_t *entry)
{
	return tn__json_borrow_text(json_object_get(entry, "request"), "url");
}

static bool
is_post(const json_t *entry)
{
	const char *method = tn__json_borrow_text(json_object_get(entry, "request"), "method");
	return method != NULL && strcmp(method, "POST") == 0;
}

/* The server that was asked: that of the first POST, else of the first entry. */
static const char *
origin_of(const json_t *entries)
{
	const json_t *entry;
	const char *first = NULL;
	size_t i;
	json_array_foreach(entries, i, entry) {
		const char *address = address_of(entry);
		if (address == NULL || strncasecmp(address, "http", 4) != 0)
			continue;
		if (is_post(entry))
			return address;
		first = first != NULL ? first : address;
	}
	return first;
}

static bool
is_of_a_page(const json_t *entry)
{
	static const char *const kinds[] = { "javascript", "css", "image/", "font", "text/html", "manifest", "wasm" };
	const char *type = tn__json_borrow_text(json_object_get(json_object_get(entry, "response"), "content"), "mimeType");
	const char *address = address_of(entry);
	if (strstr(address, "/queue/data?") != NULL || strstr(address, "favicon") != NULL)
		return true;
	for (size_t i = 0; type != NULL && !is_post(entry) && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strstr(type, kinds[i]) != NULL)
			return true;
	return false;
}

static tn_status
take_entry(const json_t *entry, const char *from, struct tn_request_list *out)
{
	const json_t *recorded = json_object_get(entry, "request"), *post = json_object_get(recorded, "postData"), *header;
	const char *method = tn__json_borrow_text(recorded, "method"), *body = tn__json_borrow_text(post, "text");
	struct tn_request *request;
	size_t i;
	TN_RETURN_IF(method == NULL || strlen(method) > 15, TN_INVALID, "--request: %s: a request without a method", from);
	TN_FORWARD_IF_ERROR(tn__request_add(out, method, address_of(entry), from, true, &request));
	json_array_foreach(json_object_get(recorded, "headers"), i, header) {
		const char *name = tn__json_borrow_text(header, "name"), *value = tn__json_borrow_text(header, "value");
		if (name != NULL && value != NULL)
			TN_FORWARD_IF_ERROR(tn__request_header(request, name, strlen(name), value));
	}
	if (body != NULL) {
		request->body = strdup(body);
		TN_RETURN_IF(request->body == NULL, TN_NO_MEMORY, "out of host memory");
		request->body_length = strlen(body);
	}
	int64_t status = tn__json_read_figure(json_object_get(entry, "response"), "status");
	request->expected = status >= 100 && status < 600 ? (int)status : 0;
	return TN_OK;
}

tn_status
tn__requests_read_har(const char *path, const char *text, size_t length, struct tn_request_list *out)
{
	json_error_t error;
	json_t *document = json_loadb(text, length, 0, &error);
	TN_RETURN_IF(document == NULL, TN_INVALID, "--request: %s is no HAR: line %d: %s", path, error.line, error.text);
	const json_t *entries = json_object_get(json_object_get(document, "log"), "entries"), *entry;
	const char *origin = origin_of(entries), *slash = strrchr(path, '/');
	size_t same = origin != NULL ? origin_length(origin) : 0, before = out->count, i;
	tn_status status = TN_OK;
	json_array_foreach(entries, i, entry) {
		char from[300];
		const char *address = address_of(entry);
		if (status != TN_OK || address == NULL || same == 0 || strncasecmp(address, origin, same) != 0 ||
		    is_of_a_page(entry))
			continue;
		snprintf(from, sizeof(from), "%s:%zu", slash != NULL ? slash + 1 : path, i + 1);
		status = take_entry(entry, from, out);
	}
	json_decref(document);
	TN_RETURN_IF(status == TN_OK && out->count == before, TN_INVALID, "--request: %s has no request to a server", path);
	return status;
}
