/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/fork_message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

bool
tn__fork_message_open(struct tn_fork_message *message, const char *kind)
{
	*message = (struct tn_fork_message){ .text = NULL };
	message->out = open_memstream(&message->text, &message->size);
	if (message->out == NULL)
		return false;
	fwrite(kind, 1, strlen(kind) + 1, message->out);
	return true;
}

void
tn__fork_message_add_word(struct tn_fork_message *message, const char *word)
{
	fwrite(word, 1, strlen(word) + 1, message->out);
}

void
tn__fork_message_add_number(struct tn_fork_message *message, long long number)
{
	fprintf(message->out, "%lld%c", number, '\0');
}

void
tn__fork_message_add_words(struct tn_fork_message *message, char *const *words)
{
	long long count = 0;
	while (words[count] != NULL)
		count++;
	tn__fork_message_add_number(message, count);
	for (long long i = 0; i < count; i++)
		tn__fork_message_add_word(message, words[i]);
}

bool
tn__fork_message_send(struct tn_fork_message *message, int channel, const int *descriptors, size_t count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(TN_FORK_DESCRIPTORS * sizeof(int))];
	} control = { 0 };
	bool whole = fclose(message->out) == 0 && message->text != NULL;
	struct iovec part = { message->text, message->size };
	struct msghdr parcel = { .msg_iov = &part, .msg_iovlen = 1 };
	if (count > 0) {
		parcel.msg_control = control.room;
		parcel.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)),
			                               .cmsg_level = SOL_SOCKET,
			                               .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&parcel)), descriptors, count * sizeof(int));
	}
	bool sent = whole && sendmsg(channel, &parcel, MSG_NOSIGNAL) == (ssize_t)message->size;
	free(message->text);
	return sent;
}
