/* SPDX-License-Identifier: Apache-2.0
 *
 * The helper's loop: see helper.h. One thread; a question takes milliseconds. A question that cuDNN dies of takes the
 * helper along, and whoever asks sees the connection end.
 */
#include "dnn/helper.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dnn/abi.h"
#include "dnn/cache.h"
#include "dnn/real.h"

enum { MOST_CONNECTIONS = 64 };

struct helper {
	struct tn_dnn_real real;
	char path[PATH_MAX]; /* of the open library; "": none yet */
	bool usable;
	int cache;
	struct pollfd watched[1 + MOST_CONNECTIONS];
	int count;
	unsigned char buffer[TN_DNN_MOST_BYTES];
};

/* The library that a question names. One process has one: questions for another are not answered. */
static bool
open_library(struct helper *helper, const struct tn_dnn_question *question)
{
	const char *folder = getenv(TN_DNN_CACHE_VARIABLE);
	char path[PATH_MAX];
	if (question->head.library == 0 || question->head.library >= sizeof(path))
		return false;
	memcpy(path, question->library, question->head.library);
	path[question->head.library] = '\0';
	if (helper->path[0] != '\0')
		return helper->usable && strcmp(path, helper->path) == 0;
	strcpy(helper->path, path);
	bool whole = tn__dnn_real_prepare(path, getenv(TN_DNN_DRIVER_VARIABLE));
	helper->usable = tn__dnn_real_open(path, &helper->real) == TN_OK;
	if (helper->usable && whole && folder != NULL && tn__dnn_cache_path(folder, helper->path, path) != NULL)
		helper->cache = tn__dnn_cache_open(path);
	return helper->usable;
}

static void
answer(struct helper *helper, int connection, size_t length)
{
	struct tn_dnn_question question;
	struct tn_dnn_bytes out = { .at = NULL };
	if (!tn__dnn_question_read(helper->buffer, length, &question) || !open_library(helper, &question)) {
		tn__dnn_add_u32(&out, 0);
		tn__dnn_add_u32(&out, DNN_STATUS_NOT_INITIALIZED);
		tn__dnn_add_u32(&out, 0);
	} else {
		tn__dnn_answer(&helper->real, &question, &out);
		const struct tn_dnn_record record = { tn__dnn_key_of(&question), out.at, (uint32_t)out.length };
		if (!out.failed)
			tn__dnn_cache_add(helper->cache, &record);
	}
	if (!out.failed)
		(void)send(connection, out.at, out.length, MSG_NOSIGNAL);
	tn__dnn_bytes_free(&out);
}

static void
serve(struct helper *helper, int index)
{
	struct pollfd *watched = &helper->watched[index];
	ssize_t length = recv(watched->fd, helper->buffer, sizeof(helper->buffer), 0);
	if (length > 0) {
		answer(helper, watched->fd, (size_t)length);
	} else if (length == 0 || (errno != EINTR && errno != EAGAIN)) {
		close(watched->fd);
		*watched = helper->watched[--helper->count];
	}
}

static bool
take_connection(struct helper *helper)
{
	int connection = accept4(TN_DNN_HELPER_SOCKET, NULL, NULL, SOCK_CLOEXEC);
	if (connection >= 0)
		helper->watched[helper->count++] = (struct pollfd){ .fd = connection, .events = POLLIN };
	return connection >= 0;
}

int
tn__dnn_helper_main(void)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	if (helper == NULL)
		return 1;
	helper->cache = -1;
	helper->watched[helper->count++] = (struct pollfd){ .fd = TN_DNN_HELPER_SOCKET, .events = POLLIN };
	bool served = false;
	while (!served || helper->count > 1) { /* the last who could ask is gone */
		helper->watched[0].events = helper->count <= MOST_CONNECTIONS ? POLLIN : 0;
		if (poll(helper->watched, (nfds_t)helper->count, -1) < 0 && errno != EINTR)
			break;
		for (int i = helper->count - 1; i > 0; i--)
			if (helper->watched[i].revents != 0)
				serve(helper, i);
		if (helper->watched[0].revents & POLLIN)
			served |= take_connection(helper);
		else if (helper->watched[0].revents != 0)
			break;
	}
	free(helper);
	return 0;
}
