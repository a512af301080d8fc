/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that grow as items are added.
 */
#ifndef TN_BASE_ARRAY_H
#define TN_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h> /* SIZE_MAX, for arrays without a limit */

/* Makes room for `needed` items of `width` bytes in the array that `array` points to (a `T **`, NULL before the first call),
 * whose present room is `*capacity` items. The room doubles, from 16 items, and never exceeds `most` items. False where more
 * would be needed, or without host memory: the array is then as it was. The caller frees the array. Not locked. */
bool tn__array_room(void *array, size_t *capacity, size_t needed, size_t width, size_t most);

/* The same for one more item behind the `count` that are there, of an array that keeps no capacity: its room follows from `count`.
 * Only for arrays that grow in this way alone. */
bool tn__array_add(void *array, size_t count, size_t width);

#endif
