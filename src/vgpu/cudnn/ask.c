/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking the real cuDNN: see ask.h.
 */
#include "vgpu/cudnn/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dnn/cache.h"
#include "vgpu/cudnn/api.h"
#include "vgpu/cudnn/card.h"

enum { ANSWER_MILLISECONDS = 60000, MOST_ATTRIBUTES = 64, CARD_BYTES = 2048, MOST_FAILURES = 3 };

/* What was answered so far, by key: open addressing, never more than half full. Answers are never released. */
struct table {
	struct tn_dnn_record *rows;
	size_t count, room; /* room: a power of two */
};

static struct {
	pthread_mutex_t lock;
	bool opened;         /* the cache was read, and `library` looked for */
	const char *missing; /* why there is no answer any more; NULL: there may be */
	char library[PATH_MAX];
	struct table table;
	int connection; /* -1: none */
	pid_t owner;    /* of the connection: a forked child makes its own */
	int failures;   /* questions that the helper died of, or took too long for */
} asking = { .lock = PTHREAD_MUTEX_INITIALIZER, .connection = -1 };

/* ---- the table ---- */

static struct tn_dnn_record *
place_of(const struct table *table, struct tn_dnn_key key)
{
	size_t at = key.one & (table->room - 1);
	while (table->rows[at].answer != NULL &&
	       (table->rows[at].key.one != key.one || table->rows[at].key.other != key.other))
		at = (at + 1) & (table->room - 1);
	return &table->rows[at];
}

static bool
grow(struct table *table)
{
	struct table grown = { .room = table->room == 0 ? 256 : 2 * table->room, .count = table->count };
	grown.rows = calloc(grown.room, sizeof(*grown.rows));
	if (grown.rows == NULL)
		return false;
	for (size_t i = 0; i < table->room; i++)
		if (table->rows[i].answer != NULL)
			*place_of(&grown, table->rows[i].key) = table->rows[i];
	free(table->rows);
	*table = grown;
	return true;
}

/* The first answer to a question stays. */
static void
keep(void *context, const struct tn_dnn_record *record)
{
	struct table *table = context;
	if (2 * (table->count + 1) > table->room && !grow(table))
		return;
	struct tn_dnn_record *place = place_of(table, record->key);
	if (place->answer == NULL) {
		*place = *record;
		table->count++;
	}
}

static const struct tn_dnn_record *
find(const struct table *table, struct tn_dnn_key key)
{
	const struct tn_dnn_record *place = table->room == 0 ? NULL : place_of(table, key);
	return place != NULL && place->answer != NULL ? place : NULL;
}

static void
read_cache(struct table *table)
{
	const char *folder = getenv(TN_DNN_CACHE_VARIABLE);
	char path[PATH_MAX];
	struct stat about;
	if (folder == NULL || tn__dnn_cache_path(folder, asking.library, path) == NULL)
		return;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	unsigned char *bytes = NULL; /* kept: the table points into it */
	if (fstat(file, &about) == 0 && about.st_size > 0 && (bytes = malloc((size_t)about.st_size)) != NULL) {
		ssize_t length = read(file, bytes, (size_t)about.st_size);
		if (length > 0)
			(void)tn__dnn_cache_walk(bytes, (size_t)length, keep, table);
	}
	close(file);
}

/* ---- the helper ---- */

/* Through the folder's descriptor: its name may be longer than an address of a socket. */
static int
connect_helper(void)
{
	const char *run = getenv("TONNAGE_RUN");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int folder = run == NULL ? -1 : open(run, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/cudnn", folder);
	int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connection >= 0 && connect(connection, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		close(connection);
		connection = -1;
	}
	close(folder);
	return connection;
}

static ssize_t
converse(const struct tn_dnn_bytes *question, unsigned char *answer, size_t room)
{
	struct pollfd watched = { .fd = asking.connection, .events = POLLIN };
	if (send(asking.connection, question->at, question->length, MSG_NOSIGNAL) != (ssize_t)question->length)
		return -1;
	int ready;
	while ((ready = poll(&watched, 1, ANSWER_MILLISECONDS)) < 0 && errno == EINTR)
		;
	return ready > 0 ? recv(asking.connection, answer, room, 0) : -1;
}

/* The helper's answer, kept; NULL, and nobody is asked again, when it has none. */
static const struct tn_dnn_record *
ask_helper(const struct tn_dnn_bytes *question, struct tn_dnn_key key)
{
	static unsigned char buffer[TN_DNN_MOST_BYTES]; /* under the lock */
	if (asking.connection < 0 || asking.owner != getpid()) {
		asking.connection = connect_helper();
		asking.owner = getpid();
	}
	if (asking.connection < 0) {
		asking.missing = "the helper that asks it cannot be reached";
		return NULL;
	}
	ssize_t length = converse(question, buffer, sizeof(buffer));
	unsigned char *answer = length > 0 ? malloc((size_t)length) : NULL;
	if (answer == NULL) {
		close(asking.connection); /* another helper takes the next one */
		asking.connection = -1;
		if (++asking.failures == MOST_FAILURES)
			asking.missing = "the helper that asks it ended three times";
		return NULL;
	}
	memcpy(answer, buffer, (size_t)length);
	const struct tn_dnn_record record = { key, answer, (uint32_t)length };
	keep(&asking.table, &record);
	return find(&asking.table, key);
}

/* ---- the question ---- */

static int
by_name(const void *left, const void *right)
{
	const struct tn__dnn_attribute *const *one = left, *const *other = right;
	return ((*one)->name > (*other)->name) - ((*one)->name < (*other)->name);
}

/* Handles mean nothing elsewhere, and the count of engines was written by us. */
static bool
is_sent(const struct tn__dnn_attribute *attribute)
{
	return attribute->type != DNN_TYPE_HANDLE && attribute->type != DNN_TYPE_VOID_PTR &&
	       attribute->name != DNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT;
}

static void
add_node(struct tn_dnn_bytes *out, const struct tn__dnn_descriptor *node, int depth)
{
	const struct tn__dnn_attribute *sent[MOST_ATTRIBUTES];
	uint32_t count = 0;
	for (const struct tn__dnn_attribute *each = node->attributes; each != NULL; each = each->next) {
		if (count == MOST_ATTRIBUTES || depth > TN_DNN_MOST_DEPTH)
			out->failed = true;
		else if (is_sent(each))
			sent[count++] = each;
	}
	if (out->failed)
		return;
	qsort(sent, count, sizeof(sent[0]), by_name);
	tn__dnn_add_u32(out, (uint32_t)node->type);
	tn__dnn_add_u32(out, count);
	for (uint32_t i = 0; i < count; i++) {
		tn__dnn_add_u32(out, (uint32_t)sent[i]->name);
		tn__dnn_add_u32(out, (uint32_t)sent[i]->type);
		tn__dnn_add_u32(out, (uint32_t)sent[i]->count);
		if (sent[i]->type != DNN_TYPE_BACKEND_DESCRIPTOR)
			tn__dnn_add(out, sent[i]->elements, (size_t)sent[i]->count * tn__dnn_element_bytes(sent[i]->type));
		for (int64_t k = 0; sent[i]->type == DNN_TYPE_BACKEND_DESCRIPTOR && k < sent[i]->count; k++)
			add_node(out, ((struct tn__dnn_descriptor **)sent[i]->elements)[k], depth + 1);
	}
}

static bool
write_question(const struct tn__dnn_wish *wish, struct tn_dnn_bytes *out)
{
	char card[CARD_BYTES];
	struct tn_dnn_bytes graph = { .at = NULL };
	add_node(&graph, wish->graph, 0);
	const struct tn_dnn_head head = { .version = TN_DNN_WIRE_VERSION,
		                              .kind = wish->kind,
		                              .mode = wish->mode,
		                              .rank = (uint32_t)wish->rank,
		                              .library = (uint32_t)strlen(asking.library),
		                              .card = (uint32_t)tn__dnn_card_json(wish->device, card, sizeof(card)),
		                              .graph = (uint32_t)graph.length };
	tn__dnn_add(out, &head, sizeof(head));
	tn__dnn_add(out, asking.library, head.library);
	tn__dnn_add(out, card, head.card);
	tn__dnn_add(out, graph.at, graph.length);
	bool whole = !graph.failed && !out->failed && head.card != 0;
	tn__dnn_bytes_free(&graph);
	return whole;
}

static void
open_asking(void)
{
	asking.opened = true;
	asking.missing = tn__dnn_real_library(asking.library, sizeof(asking.library));
	if (asking.missing == NULL)
		read_cache(&asking.table);
}

static const struct tn_dnn_record *
look_up(const struct tn__dnn_wish *wish)
{
	struct tn_dnn_bytes bytes = { .at = NULL };
	struct tn_dnn_question question;
	const struct tn_dnn_record *record = NULL;
	if (write_question(wish, &bytes) && tn__dnn_question_read(bytes.at, bytes.length, &question)) {
		struct tn_dnn_key key = tn__dnn_key_of(&question);
		record = find(&asking.table, key);
		if (record == NULL && asking.missing == NULL)
			record = ask_helper(&bytes, key);
	}
	tn__dnn_bytes_free(&bytes);
	return record;
}

/* What the real library would not have answered to a program: the question was ours. */
static bool
is_an_answer(int status)
{
	return status == DNN_STATUS_SUCCESS || (status >= DNN_STATUS_NOT_SUPPORTED && status < DNN_STATUS_INTERNAL_ERROR);
}

/* For the report: who has answered, or why nobody could. */
static void
count_answer(bool answered, uint32_t version, const char *missing)
{
	char name[32];
	snprintf(name, sizeof(name), "cuDNN %u.%u.%u", version / 10000, version / 100 % 100, version % 100);
	tn__count_answer(answered, answered ? name : missing != NULL ? missing : "cuDNN did not take the question");
}

bool
tn__dnn_ask(const struct tn__dnn_wish *wish, int *status, struct tn_dnn_cursor *rows, uint32_t *count)
{
	uint32_t version = 0;
	pthread_mutex_lock(&asking.lock);
	if (!asking.opened)
		open_asking();
	const struct tn_dnn_record *record = asking.library[0] != '\0' ? look_up(wish) : NULL;
	bool answered = record != NULL;
	if (answered) {
		*rows = (struct tn_dnn_cursor){ .at = record->answer, .end = record->answer + record->length };
		version = tn__dnn_take_u32(rows);
		*status = (int)tn__dnn_take_u32(rows);
		*count = tn__dnn_take_u32(rows);
		if (*status == DNN_STATUS_NOT_INITIALIZED)
			asking.missing = "that library is no cuDNN from 9.8 on that can be loaded";
		answered = !rows->failed && is_an_answer(*status);
	}
	const char *missing = asking.missing;
	pthread_mutex_unlock(&asking.lock);
	count_answer(answered, version, missing);
	return answered;
}
