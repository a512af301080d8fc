/* SPDX-License-Identifier: Apache-2.0
 *
 * One line at a time. A rank fails by itself when a line of its own ends a traceback with an exception that is not about the
 * others; it follows when its line says that a peer, a connection or a collective is gone. torchrun closes with a summary whose
 * "Root Cause (first observed failure)" goes before the order of lines, since lines of many ranks are not in order of time; unless
 * that rank itself only followed.
 */
#include "message/ranks_log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "message/internal_message.h"

enum { PART_NONE, PART_FAILURES, PART_ROOT };

tn_status
tn__ranks_log_start(struct tn_ranks_log *log)
{
	*log = (struct tn_ranks_log){ .highest = -1, .root = -1, .part_rank = -1 };
	log->ends = calloc(TN_RANKS_MAX, sizeof(*log->ends));
	TN_RETURN_IF(log->ends == NULL, TN_NO_MEMORY, "out of host memory");
	return TN_OK;
}

void
tn__ranks_log_free(struct tn_ranks_log *log)
{
	free(log->ends);
	log->ends = NULL;
}

/* What a rank says when another one is gone: PyTorch's ProcessGroupNCCL, TCPStore and Gloo, NCCL, and the launchers' SIGTERM. */
static bool
says_follow(const char *text)
{
	static const char *const phrases[] = {
		"Watchdog caught collective operation timeout",
		"NCCL communicator was aborted",
		"ncclRemoteError",
		"remote process exited or there was a network error",
		"Connection closed by peer",
		"Connection reset by peer",
		"Connection closed by remote peer",
		"unhandled system error",
		"DistNetworkError",
		"DistStoreError",
		"Broken pipe",
		"Socket Timeout",
		"Signal 15",
		"SIGTERM",
		"Connection refused",
		"failed to recv, got 0 bytes",
		"ConnectionResetError",
		"Some NCCL operations have failed or timed out",
		"terminate called after throwing an instance of 'c10::DistBackendError'",
	};
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (strstr(text, phrases[i]) != NULL)
			return true;
	return false;
}

/* The length of an exception's name at the start of a traceback's last line ("torch.OutOfMemoryError: ..."), or 0. */
static size_t
exception_name(const char *text)
{
	static const char *const ends[] = { "Error", "Exception", "Interrupt", "Exit", "Failure" };
	size_t length = 0;
	while (isalnum((unsigned char)text[length]) || text[length] == '_' || text[length] == '.')
		length++;
	if (length < 4 || length >= TN_RANK_WHAT || !isalpha((unsigned char)text[0]) ||
	    (text[length] != ':' && text[length] != '\0'))
		return 0;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t size = strlen(ends[i]);
		if (length >= size && memcmp(text + length - size, ends[i], size) == 0)
			return length;
	}
	return 0;
}

static struct tn_rank_end *
end_of(struct tn_ranks_log *log, int64_t rank)
{
	if (rank < 0 || rank >= TN_RANKS_MAX)
		return NULL;
	if (rank > log->highest)
		log->highest = rank;
	log->seen += !log->ends[rank].seen;
	log->ends[rank].seen = true;
	return &log->ends[rank];
}

static void
note_failure(struct tn_ranks_log *log, struct tn_rank_end *end, const char *what, size_t length)
{
	if (end->failed_at != 0)
		return;
	end->failed_at = log->line;
	snprintf(end->what, sizeof(end->what), "%.*s", (int)length, what);
}

/* ---- torchrun's summary ---- */

/* The number in "  rank      : 3 (local_rank: 3)"; false for a line of another kind. */
static bool
read_field(const char *text, const char *name, int64_t *out)
{
	size_t length = strlen(name);
	text += strspn(text, " \t");
	if (strncmp(text, name, length) != 0)
		return false;
	text += length + strspn(text + length, " \t");
	if (*text++ != ':')
		return false;
	char *end;
	*out = strtoll(text, &end, 10);
	return end != text;
}

/* True when the line belongs to the summary. */
static bool
read_summary(struct tn_ranks_log *log, const char *text)
{
	int64_t number;
	if (strstr(text, "Root Cause (first observed failure)") != NULL) {
		log->part = PART_ROOT;
		return true;
	}
	if (strncmp(text + strspn(text, " "), "Failures:", 9) == 0) {
		log->part = PART_FAILURES;
		return true;
	}
	if (log->part == PART_NONE)
		return false;
	if (read_field(text, "rank", &number)) {
		log->part_rank = end_of(log, number) != NULL ? number : -1;
		if (log->part == PART_ROOT && log->root < 0) {
			log->root = log->part_rank;
			log->root_at = log->line;
		}
		return true;
	}
	if (log->part_rank >= 0 && read_field(text, "exitcode", &number)) {
		struct tn_rank_end *end = &log->ends[log->part_rank];
		char words[TN_RANK_WHAT];
		snprintf(words, sizeof(words), number < 0 ? "ended by signal %lld" : "exit status %lld",
		         (long long)(number < 0 ? -number : number));
		if (number == -15 && end->failed_at == 0) /* the launcher itself ended it */
			end->followed_at = end->followed_at == 0 ? log->line : end->followed_at;
		else if (end->followed_at == 0)
			note_failure(log, end, words, strlen(words));
		log->part_rank = -1;
		return true;
	}
	return false;
}

/* ---- lines ---- */

/* "world_size=64", "world size: 64", "nranks 64": how many there are. */
static void
read_world(struct tn_ranks_log *log, const char *text)
{
	static const char *const names[] = { "world_size", "world size", "WORLD_SIZE", "nranks", "num_processes" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *at = strstr(text, names[i]);
		if (at == NULL)
			continue;
		at += strlen(names[i]);
		at += strspn(at, " =:'\"");
		long number = strtol(at, NULL, 10);
		if (number > log->stated && number <= TN_RANKS_MAX)
			log->stated = number;
	}
}

/* Takes colours out: ESC [ ... and a letter. */
static void
drop_colours(char *text)
{
	char *to = text;
	for (const char *from = text; *from != '\0'; from++) {
		if (from[0] == '\033' && from[1] == '[') {
			from += 2;
			from += strspn(from, "0123456789;?");
			if (*from == '\0')
				break;
			continue;
		}
		*to++ = *from;
	}
	*to = '\0';
}

static void
read_line(struct tn_ranks_log *log)
{
	log->line++;
	log->text[log->length] = '\0';
	drop_colours(log->text);
	const char *text = log->text;
	size_t length = strlen(text); /* up to a zero in the text */
	if (length == 0 || read_summary(log, text))
		return;
	int64_t rank = tn__line_rank(text, length);
	read_world(log, text);
	struct tn_rank_end *end = rank >= 0 ? end_of(log, rank) : NULL;
	if (end == NULL)
		return;
	const char *content = text + tn__line_content(text, length);
	size_t name = exception_name(content);
	bool memory = strcasestr(content, "out of memory") !=
	              NULL; /* also of NCCL: a cause, whatever the exception's name */
	if (name > 0 && (memory || (!says_follow(content) && end->followed_at == 0)))
		note_failure(log, end, content, name);
	else if (!memory && says_follow(content) && end->followed_at == 0)
		end->followed_at = log->line;
}

void
tn__ranks_log_read(struct tn_ranks_log *log, const char *bytes, size_t count)
{
	while (count > 0) {
		const char *line_end = memchr(bytes, '\n', count);
		size_t piece = line_end != NULL ? (size_t)(line_end - bytes) : count;
		size_t room = sizeof(log->text) - 1 - log->length, kept = piece < room ? piece : room;
		memcpy(log->text + log->length, bytes, kept);
		log->length += kept;
		bytes += piece;
		count -= piece;
		if (line_end == NULL)
			return;
		if (log->length > 0 && log->text[log->length - 1] == '\r')
			log->length--;
		read_line(log);
		log->length = 0;
		bytes++;
		count--;
	}
}

void
tn__ranks_log_end(struct tn_ranks_log *log)
{
	if (log->length > 0)
		read_line(log);
	log->length = 0;
}

int64_t
tn__ranks_log_first(const struct tn_ranks_log *log, bool *by_launcher)
{
	int64_t first = -1, follower = -1;
	if (log->seen < 2)
		return -1;
	for (int64_t rank = 0; rank <= log->highest; rank++) {
		const struct tn_rank_end *end = &log->ends[rank];
		if (end->failed_at != 0 && (first < 0 || end->failed_at < log->ends[first].failed_at))
			first = rank;
		if (end->followed_at != 0 && (follower < 0 || end->followed_at < log->ends[follower].followed_at))
			follower = rank;
	}
	*by_launcher = log->root >= 0 && (log->ends[log->root].failed_at != 0 || first < 0);
	return *by_launcher ? log->root : first >= 0 ? first : follower;
}
