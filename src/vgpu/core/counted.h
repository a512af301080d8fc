/* SPDX-License-Identifier: Apache-2.0
 *
 * How many elements of a mask were counted. Autograd counts a mask once in the forward pass and once more in the backward
 * pass, and needs the same number, although the mask's bytes may be forgotten in between: a kernel that might have written
 * there has run.
 *
 * A count holds until something is known to write to the mask, or the memory is freed. Guarded by the caller's lock
 * (values.c).
 */
#ifndef TN_VGPU_COUNTED_H
#define TN_VGPU_COUNTED_H

#include <stdbool.h>
#include <stdint.h>

/* Of the mask in [address, address + bytes). The oldest of many is dropped. */
void tn__counted_note(uint64_t address, uint64_t bytes, int32_t count);
bool tn__counted_find(uint64_t address, uint64_t bytes, int32_t *count);
/* Something was written in [address, address + bytes). */
void tn__counted_drop(uint64_t address, uint64_t bytes);

#endif
