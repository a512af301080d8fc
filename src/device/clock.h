/* SPDX-License-Identifier: Apache-2.0
 *
 * The virtual clock of one device. It advances by what the program calls, never by host time, so that a program that is
 * run twice sees the same order of completions. The model and its constants: doc/design/0003-time.md.
 *
 * `now` is the host's time: each call costs some. Each stream has a tail: the time at which all that was put on it will be
 * done. Work put on a stream starts when the stream is free, not before now. A question ("is this event done?") costs
 * time, too, so that polling ends.
 * Not thread-safe: the owner locks.
 */
#ifndef TN_DEVICE_CLOCK_H
#define TN_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define TN_CLOCK_CALL_NS 1000u   /* any call that touches a device */
#define TN_CLOCK_LAUNCH_NS 4000u /* putting work on a stream */
#define TN_CLOCK_QUERY_NS 2000u  /* asking whether something is done */
#define TN_CLOCK_KERNEL_NS 3000u /* the least that a kernel takes */
#define TN_CLOCK_QUEUE 1024u     /* pieces of work on a stream that have not ended; who puts one more there waits */

struct tn_clock {
	uint64_t now; /* nanoseconds since the device was made */
};

static inline void
tn_clock_advance(struct tn_clock *clock, uint64_t nanoseconds)
{
	clock->now += nanoseconds;
}

/* Puts work of `duration` on a stream whose tail is *tail; the tail moves. */
static inline void
tn_clock_enqueue(const struct tn_clock *clock, uint64_t *tail, uint64_t duration)
{
	uint64_t start = *tail > clock->now ? *tail : clock->now;
	*tail = start + duration;
}

/* Whether what completes at `time` is done; the question itself costs time. */
static inline bool
tn_clock_query(struct tn_clock *clock, uint64_t time)
{
	clock->now += TN_CLOCK_QUERY_NS;
	return time <= clock->now;
}

/* Waits until `time`. */
static inline void
tn_clock_wait(struct tn_clock *clock, uint64_t time)
{
	clock->now += TN_CLOCK_CALL_NS;
	if (clock->now < time)
		clock->now = time;
}

#endif
