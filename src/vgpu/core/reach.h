/* SPDX-License-Identifier: Apache-2.0
 *
 * Which memory a launch can write to, by what its arguments point at.
 */
#ifndef TN_VGPU_REACH_H
#define TN_VGPU_REACH_H

#include "vgpu/core/state.h"

#define TN_REACH_MAX 1024

struct tn_reach {
	size_t count;
	uint64_t addresses[TN_REACH_MAX];
};

/* The addresses of the device among a launch's arguments; false: not all of them can be seen. Wants the core lock. */
bool tn__reach_of(struct tn_kernel *kernel, const struct tn_launch *launch, struct tn_reach *out);

#endif
