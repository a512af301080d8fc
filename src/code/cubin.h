/* SPDX-License-Identifier: Apache-2.0
 *
 * One cubin in memory, unpacked.
 */
#ifndef TN_CODE_CUBIN_H
#define TN_CODE_CUBIN_H

#include "code/code.h"

/* Takes `bytes`, which it frees, also when it fails. */
tn_status tn__cubin_open(uint8_t *bytes, size_t size, struct tn_code **out);

/* From the start of a cubin to the end of its sections; 0: it is none, or longer than `room`. */
size_t tn__cubin_size(const void *image, size_t room);

#endif
