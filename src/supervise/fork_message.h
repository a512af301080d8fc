/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages to a fork server (doc/design/0010-trials.md): through a socket of records, words that each end with a zero, and
 * descriptors beside them. The server is a Python process with our hook (guest/_tonnage_guest/forks.py); it answers with
 * "ready", or "not" and a reason.
 */
#ifndef TN_SUPERVISE_FORK_MESSAGE_H
#define TN_SUPERVISE_FORK_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TN_FORK_DESCRIPTORS 7 /* at most, beside a message */

struct tn_fork_message {
	char *text;
	size_t size;
	FILE *out;
};

/* A message of this kind; false without memory. */
bool tn__fork_message_open(struct tn_fork_message *message, const char *kind);
void tn__fork_message_add_word(struct tn_fork_message *message, const char *word);
void tn__fork_message_add_number(struct tn_fork_message *message, long long number);
/* Their number, then the words, which end with NULL. */
void tn__fork_message_add_words(struct tn_fork_message *message, char *const *words);
/* Sends and releases the message; false when nobody takes it. */
bool tn__fork_message_send(struct tn_fork_message *message, int channel, const int *descriptors, size_t count);

#endif
