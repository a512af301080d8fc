/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rest of the preloaded library may ask of the write overlay.
 */
#ifndef TN_PRELOAD_WRITE_OVERLAY_H
#define TN_PRELOAD_WRITE_OVERLAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Where the bytes of `path` (a file as the program sees it) really lie: `path` itself unless the run replaced or
   created it, * otherwise the name of the run's own copy, written into `buffer`. Returns `path` when the copy's name
   does not fit into * `size` bytes. Thread-safe; allocates nothing. */
const char *tn__overlay_path_for_reading(const char *path, char *buffer, size_t size);

/* True in a Python process until its interpreter is initialised: each call that opens a file then calls tn__python_look,
   which starts the guest hook where PYTHONPATH does not. Any thread. */
extern _Atomic bool tn__python_waits;
void tn__python_look(void);

static inline void
tn__watch_python(void)
{
	if (atomic_load_explicit(&tn__python_waits, memory_order_relaxed))
		tn__python_look();
}

#endif
