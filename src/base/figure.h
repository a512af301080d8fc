/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures that may be unknown, and bytes as people read them.
 */
#ifndef TN_BASE_FIGURE_H
#define TN_BASE_FIGURE_H

#include <stdint.h>

/* The value of a figure that nobody knows; figures that are known are never negative. */
#define TN_NO_FIGURE INT64_C(-1)

/* "3.20 GiB", "96.0 MiB", "512 B": for people. `buffer` of 32 bytes is returned. TN_NO_FIGURE reads "unknown". */
const char *tn__human_bytes(int64_t bytes, char buffer[32]);

/* "6GiB", "1280MiB", "5242881": exact, as an option takes it, in the largest unit that divides it. `buffer` of 32 bytes is returned. */
const char *tn__typed_bytes(uint64_t bytes, char buffer[32]);

/* 9731 as "9,731". `buffer` of 32 bytes is returned. */
const char *tn__grouped(int64_t number, char buffer[32]);

#endif
