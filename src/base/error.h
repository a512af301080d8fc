/* SPDX-License-Identifier: Apache-2.0
 *
 * How code inside the project fails: set the thread's text, return the status. No hidden locks, no output.
 */
#ifndef TN_BASE_ERROR_H
#define TN_BASE_ERROR_H

#include "tonnage/status.h" /* tn_status */

/* Records the text (printf form) for tn_error_text() and returns `status`. Thread-safe. */
tn_status tn__fail(tn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns from the calling function, whose result must be tn_status and which must hold no lock. */
#define TN_RETURN_IF(condition, status, ...)        \
	do {                                            \
		if (condition)                              \
			return tn__fail((status), __VA_ARGS__); \
	} while (0)

#define TN_FORWARD_IF_ERROR(call)        \
	do {                                 \
		tn_status tn_forwarded = (call); \
		if (tn_forwarded != TN_OK)       \
			return tn_forwarded;         \
	} while (0)

#endif
