/* SPDX-License-Identifier: Apache-2.0
 *
 * The one error type of the project.
 *
 * A function that can fail returns tn_status and leaves its out-pointers untouched on failure. What went wrong, in words
 * for a person, stands in tn_error_text() of the same thread. Library code never prints, exits or aborts.
 */
#ifndef TONNAGE_STATUS_H
#define TONNAGE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Numbers are frozen: they may be added to, never changed. */
#define TN_STATUS_LIST(X)                              \
	X(OK, 0, "ok")                                     \
	X(NO_MEMORY, 1, "out of host memory")              \
	X(OUT_OF_DEVICE_MEMORY, 2, "out of device memory") \
	X(INVALID, 3, "invalid argument")                  \
	X(NOT_FOUND, 4, "not found")                       \
	X(IO, 5, "input or output failed")                 \
	X(FORMAT, 6, "malformed input")                    \
	X(LIMIT, 7, "a limit was reached")                 \
	X(UNSUPPORTED, 8, "not supported")                 \
	X(NOT_READY, 9, "not ready")                       \
	X(STATE, 10, "not allowed in this state")

typedef enum tn_status {
#define TN_STATUS_ENUM(name, number, text) TN_##name = number,
	TN_STATUS_LIST(TN_STATUS_ENUM)
#undef TN_STATUS_ENUM
} tn_status;

/* The fixed words of a status; never NULL. Thread-safe. */
const char *tn_status_text(tn_status status);

/* What the last failing call of this thread had to say; "" when nothing failed yet. Valid until the next failing call of
 * the same thread. */
const char *tn_error_text(void);

/* Makes a text fit for a terminal, in place: control characters of any kind, marks of direction and what is no UTF-8 become
 * blanks. Returns it. */
char *tn_plain_text(char *text);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
