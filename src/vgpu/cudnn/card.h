/* SPDX-License-Identifier: Apache-2.0
 *
 * A card's properties as cuDNN's device property descriptor takes them.
 */
#ifndef TN_VGPU_CUDNN_CARD_H
#define TN_VGPU_CUDNN_CARD_H

#include <stddef.h>

/* Writes the JSON of a virtual device, ended by a zero; its length, or 0 when `size` is too small. */
size_t tn__dnn_card_json(int device, char *out, size_t size);

#endif
