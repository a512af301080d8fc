/* SPDX-License-Identifier: Apache-2.0
 *
 * How a fat binary lies: a container's header, then entries, each with a header of its own.
 */
#ifndef TN_CODE_FATBIN_LAYOUT_H
#define TN_CODE_FATBIN_LAYOUT_H

#include <stdint.h>

#define FATBIN_MAGIC UINT32_C(0xba55ed50)
#define FATBIN_KIND_PTX 1
#define FATBIN_KIND_CUBIN 2

struct fatbin_header {
	uint32_t magic;
	uint16_t version, bytes; /* of this header */
	uint64_t entries_bytes;
};

struct fatbin_entry {
	uint16_t kind, unknown;
	uint32_t bytes;  /* of this header; newer ones are longer */
	uint64_t padded; /* payload, and what fills up to the next entry */
	uint32_t packed; /* payload, when it is compressed */
	uint32_t unknown_too;
	uint16_t minor, major;
	uint32_t architecture, name_offset, name_bytes;
	uint64_t flags, zero;
	uint64_t plain; /* payload, unpacked; 0: it is not compressed */
};

#endif
