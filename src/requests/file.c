/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests as people keep them: an address, or a file of requests as editors send them (.http, .rest). A line of a body that is `< NAME` is
 * that file, in multipart bodies, too.
 */
#include "requests/recorded.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/error.h"

#define MOST_VARIABLES 64
#define LONGEST_VARIABLE 1024

/* ---- .http ---- */

struct variable {
	char *name, *value;
};

struct reader {
	const char *path;
	struct tn_request_list *list;
	struct variable variables[MOST_VARIABLES];
	size_t variable_count;
	int line;
	/* the request that is being read */
	struct tn_request *request;
	bool in_body, multipart;
	size_t room;
};

/* A line with {{names}} replaced; the caller frees. */
static char *
expanded(const struct reader *reader, const char *line)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	for (const char *at = line; *at != '\0';) {
		const char *end = strncmp(at, "{{", 2) == 0 ? strstr(at, "}}") : NULL;
		const struct variable *found = NULL;
		for (size_t i = 0; end != NULL && i < reader->variable_count; i++) {
			size_t length = strlen(reader->variables[i].name);
			const char *name = at + 2 + strspn(at + 2, " ");
			if (strncmp(name, reader->variables[i].name, length) == 0 &&
			    name + length + strspn(name + length, " ") == end)
				found = &reader->variables[i];
		}
		if (found != NULL) {
			fputs(found->value, out);
			at = end + 2;
		} else {
			fputc(*at++, out);
		}
	}
	fclose(out);
	return text;
}

static tn_status
add_bytes(struct reader *reader, const char *bytes, size_t length)
{
	struct tn_request *request = reader->request;
	TN_RETURN_IF(
		!tn__array_room(&request->body, &reader->room, request->body_length + length + 1, 1, TN_REQUEST_LARGEST),
		TN_NO_MEMORY, "--request: %s:%d: the body is too large", reader->path, reader->line);
	memcpy(request->body + request->body_length, bytes, length);
	request->body_length += length;
	return TN_OK;
}

/* `< ./file`, relative to the file of requests; `<@ file` has variables replaced elsewhere and is read as it is here. */
static tn_status
add_file(struct reader *reader, const char *name)
{
	char path[PATH_MAX];
	size_t length;
	const char *slash = strrchr(reader->path, '/');
	int folder = slash != NULL && name[0] != '/' ? (int)(slash - reader->path) + 1 : 0;
	TN_RETURN_IF(snprintf(path, sizeof(path), "%.*s%s", folder, reader->path, name) >= PATH_MAX, TN_INVALID,
	             "--request: %s:%d: the path is too long", reader->path, reader->line);
	char *text = tn__request_file(path, &length);
	if (text == NULL)
		return TN_NOT_FOUND;
	tn_status status = add_bytes(reader, text, length);
	free(text);
	return status;
}

static tn_status
take_body_line(struct reader *reader, const char *line)
{
	const char *end = reader->multipart ? "\r\n" : "\n";
	const char *name = line[0] == '<' && (line[1] == ' ' || line[1] == '@') ? line + 2 + strspn(line + 2, " \t") : NULL;
	if (name != NULL && name[0] != '\0' && strchr(name, '>') == NULL)
		TN_FORWARD_IF_ERROR(add_file(reader, name));
	else
		TN_FORWARD_IF_ERROR(add_bytes(reader, line, strlen(line)));
	return add_bytes(reader, end, strlen(end));
}

/* True for a body that ends with these bytes. */
static bool
body_ends_with(const struct tn_request *request, const char *end)
{
	size_t length = strlen(end);
	return request->body_length >= length && memcmp(request->body + request->body_length - length, end, length) == 0;
}

/* The empty lines behind a body are no part of it; a multipart body keeps the end of its last line. */
static void
end_request(struct reader *reader)
{
	struct tn_request *request = reader->request;
	if (request != NULL && reader->multipart)
		while (body_ends_with(request, "\r\n\r\n"))
			request->body_length -= 2;
	else if (request != NULL)
		while (body_ends_with(request, "\n"))
			request->body_length--;
	reader->request = NULL;
	reader->in_body = reader->multipart = false;
	reader->room = 0;
}

static tn_status
take_variable(struct reader *reader, const char *line)
{
	const char *equals = strchr(line, '=');
	size_t length = strcspn(line + 1, " =");
	TN_RETURN_IF(equals == NULL || reader->variable_count == MOST_VARIABLES, TN_INVALID,
	             "--request: %s:%d: a variable is written `@name = value`, at most %d of them", reader->path,
	             reader->line, MOST_VARIABLES);
	struct variable *variable = &reader->variables[reader->variable_count];
	variable->name = strndup(line + 1, length);
	variable->value = expanded(reader, equals + 1 + strspn(equals + 1, " \t"));
	reader->variable_count++;
	return variable->name != NULL && variable->value != NULL ? TN_OK : tn__fail(TN_NO_MEMORY, "out of host memory");
}

/* "POST http://localhost:8000/x HTTP/1.1", or an address alone. */
static tn_status
take_request_line(struct reader *reader, const char *line)
{
	char method[16] = "GET", from[PATH_MAX + 16];
	const char *name = strrchr(reader->path, '/');
	size_t word = strcspn(line, " \t"), capital = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	const char *address = line;
	if (word == capital && word > 0 && word < sizeof(method)) {
		memcpy(method, line, word);
		method[word] = '\0';
		address = line + word + strspn(line + word, " \t");
	}
	snprintf(from, sizeof(from), "%s:%d", name != NULL ? name + 1 : reader->path, reader->line);
	TN_RETURN_IF(strstr(address, "{{") != NULL, TN_INVALID,
	             "--request: %s: nothing says what %s is (a line `@name = value`)", from, strstr(address, "{{"));
	char *alone = strndup(address, strcspn(address, " \t"));
	TN_RETURN_IF(alone == NULL, TN_NO_MEMORY, "out of host memory");
	tn_status status = tn__request_add(reader->list, method, alone, from, false, &reader->request);
	free(alone);
	return status;
}

static tn_status
take_header_line(struct reader *reader, const char *line)
{
	size_t name = strcspn(line, ":");
	TN_RETURN_IF(line[name] != ':', TN_INVALID, "--request: %s:%d: a header is written `Name: value`", reader->path,
	             reader->line);
	const char *value = line + name + 1 + strspn(line + name + 1, " \t");
	if (name == 12 && strncasecmp(line, "content-type", name) == 0)
		reader->multipart = strncasecmp(value, "multipart/", 10) == 0;
	return tn__request_header(reader->request, line, name, value);
}

static tn_status
take_line(struct reader *reader, const char *line)
{
	bool empty = line[strspn(line, " \t")] == '\0';
	if (strncmp(line, "###", 3) == 0) {
		end_request(reader);
		return TN_OK;
	}
	if (reader->in_body)
		return take_body_line(reader, line);
	if (reader->request == NULL) {
		if (empty || line[0] == '#' || strncmp(line, "//", 2) == 0)
			return TN_OK;
		return line[0] == '@' ? take_variable(reader, line) : take_request_line(reader, line);
	}
	if (empty) {
		reader->in_body = true;
		return TN_OK;
	}
	if (line[0] == '#' || strncmp(line, "//", 2) == 0)
		return TN_OK;
	return take_header_line(reader, line);
}

static tn_status
read_http(const char *path, char *text, struct tn_request_list *out)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	size_t before = out->count;
	tn_status status = TN_OK;
	TN_RETURN_IF(reader == NULL, TN_NO_MEMORY, "out of host memory");
	reader->path = path;
	reader->list = out;
	for (char *at = text, *next; at != NULL && status == TN_OK; at = next) {
		next = strchr(at, '\n');
		if (next != NULL)
			*next++ = '\0';
		at[strcspn(at, "\r")] = '\0';
		reader->line++;
		char *line = expanded(reader, at);
		status = line != NULL ? take_line(reader, line) : tn__fail(TN_NO_MEMORY, "out of host memory");
		free(line);
	}
	end_request(reader);
	for (size_t i = 0; i < reader->variable_count; i++) {
		free(reader->variables[i].name);
		free(reader->variables[i].value);
	}
	free(reader);
	TN_RETURN_IF(status == TN_OK && out->count == before, TN_INVALID, "--request: %s has no request", path);
	return status;
}

/* ---- all ---- */

static bool
ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);
	return length > tail && strcasecmp(text + length - tail, end) == 0;
}

static tn_status
read_one(const char *what, struct tn_request_list *out)
{
	struct tn_request *request;
	size_t length;
	if (strncasecmp(what, "http://", 7) == 0 || strncasecmp(what, "https://", 8) == 0)
		return tn__request_add(out, "GET", what, what, false, &request);
	char *text = tn__request_file(what, &length);
	if (text == NULL)
		return TN_NOT_FOUND;
	tn_status status = ends_with(what, ".har") ? tn__requests_read_har(what, text, length, out)
	                                           : read_http(what, text, out);
	free(text);
	return status;
}

tn_status
tn__requests_read(const struct tn_run_options *options, struct tn_request_list *out)
{
	*out = (struct tn_request_list){ 0 };
	for (int i = 0; i < options->request_count; i++) {
		tn_status status = read_one(options->requests[i], out);
		if (status != TN_OK) {
			tn__requests_free(out);
			return status;
		}
	}
	return TN_OK;
}
