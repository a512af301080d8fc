/* SPDX-License-Identifier: Apache-2.0
 *
 * One clock for what is timed within a process.
 */
#ifndef TN_BASE_SECONDS_H
#define TN_BASE_SECONDS_H

#include <time.h>

/* Seconds of the monotonic clock. Any thread may ask. */
static inline double
tn__now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
