/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of whole numbers as a person writes them: "0,1,7-9".
 */
#ifndef TN_BASE_RANGES_H
#define TN_BASE_RANGES_H

#include <stddef.h>

/* Reads a list in rising order into `out`, which has room for `room` numbers. The count; -1: no such list, or a longer one. */
int tn__ranges_read(const char *text, int *out, size_t room);

#endif
