/* SPDX-License-Identifier: Apache-2.0
 *
 * A request to Gradio has two parts: the first is answered with an event's id, the second with a stream of events until the result is there.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "requests/recorded.h"

char *
tn__request_second(const struct tn_request *request, const char *answer)
{
	int path = (int)strcspn(request->target, "?");
	char *target = NULL;
	bool call = strstr(request->target, "/call/") != NULL;
	bool joins = path >= 11 && strncmp(request->target + path - 11, "/queue/join", 11) == 0;
	if (strcmp(request->method, "POST") != 0 || answer == NULL || (!call && !joins))
		return NULL;
	json_t *said = json_loads(answer, 0, NULL), *asked = json_loadb(request->body, request->body_length, 0, NULL);
	const char *event = tn__json_borrow_text(said, "event_id"), *session = tn__json_borrow_text(asked, "session_hash");
	int length = 0;
	if (event != NULL && call)
		length = asprintf(&target, "%.*s/%s", path, request->target, event);
	else if (event != NULL && session != NULL)
		length = asprintf(&target, "%.*sdata?session_hash=%s", path - 4, request->target, session);
	json_decref(said);
	json_decref(asked);
	return length > 0 ? target : NULL;
}
