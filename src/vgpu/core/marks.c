/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "vgpu/core/marks.h"

static _Atomic uint64_t operations = 1, sizes = 1;

static void
mark(_Atomic uint64_t *hash, uint64_t kind, uint64_t bytes)
{
	uint64_t mixed = (atomic_load_explicit(hash, memory_order_relaxed) ^ kind) * UINT64_C(0x100000001b3);
	mixed = (mixed ^ bytes) * UINT64_C(0x9e3779b97f4a7c15);
	atomic_store_explicit(hash, mixed ^ (mixed >> 32), memory_order_relaxed);
}

void
tn__mark_operation(int operation, uint64_t bytes)
{
	mark(&operations, (uint64_t)operation, bytes);
}

void
tn__mark_size(uint64_t bytes)
{
	mark(&sizes, 0, bytes);
}

uint64_t
tn__marks(void)
{
	return operations ^ (sizes * 31);
}
