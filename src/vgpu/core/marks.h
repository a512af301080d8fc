/* SPDX-License-Identifier: Apache-2.0
 *
 * What this process did so far as one number, by which ranks are compared (doc/design/0031-absent-ranks.md): its operations with other
 * ranks with their bytes, and the sizes of what it took from its devices, each in their order.
 */
#ifndef TN_VGPU_MARKS_H
#define TN_VGPU_MARKS_H

#include <stdint.h>

void tn__mark_operation(int operation, uint64_t bytes); /* enum tn_collective */
void tn__mark_size(uint64_t bytes);
uint64_t tn__marks(void);

#endif
