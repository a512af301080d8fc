/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU code that a program carries: fat binaries, and how the parameters of their kernels lie.
 *
 * The compiler's host code hands a fat binary to __cudaRegisterFatBinary: a container of cubins (ELF files, one for each
 * architecture), compressed by LZ4 up to CUDA 12.6 and by zstd since. A cubin tells the driver about each kernel in a
 * section .nv.info.<kernel>. NVIDIA documents how these are written (nvcc, fatbinary) and shown (cuobjdump --dump-elf), not
 * their layout: it was read off the wheels of torch 2.6.0, 2.11.0 and 2.15.0, and everything is checked, so that a
 * container in another layout is one that says nothing.
 */
#ifndef TN_CODE_CODE_H
#define TN_CODE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tonnage/status.h"

#define TN_CODE_PARAMETERS_MAX 64

struct tn_code;

/* Reads a cubin, or the first one of a fat binary, at `image`, of which at most `room` bytes may be looked at (SIZE_MAX: as
 * many as its header says). Takes as much memory as the cubin has until tn__code_close. TN_FORMAT: anything else. */
tn_status tn__code_open(const void *image, size_t room, struct tn_code **out);
void tn__code_close(struct tn_code *code_or_null);

/* How many bytes each parameter of a kernel (its mangled name) has. Returns how many there are; -1 when the cubin does not
 * say, or has no such kernel. */
int tn__code_parameters(const struct tn_code *code, const char *kernel, uint16_t bytes[TN_CODE_PARAMETERS_MAX]);

/* An architecture that a library has code for. */
struct tn_code_architecture {
	int number;          /* 86 for compute capability 8.6 */
	bool ptx;            /* PTX, which the driver compiles for newer cards; else code of its own */
	uint32_t containers; /* how many of the library's fat binaries have it */
};

/* Lists the architectures of an ELF library's section .nv_fatbin, by number, code before PTX, from the file at `path`: the
 * headers of its entries only, nothing is unpacked. What is made for one chip alone (sm_90a, sm_100a, families) is left out: other
 * cards do not run it. *count is at most `room`, *containers the number of fat binaries. TN_IO: the file cannot be read;
 * TN_FORMAT: it is no such library, or in another layout. Thread-safe. */
tn_status tn__code_architectures(const char *path, struct tn_code_architecture *out, size_t room, size_t *count,
                                 uint32_t *containers);

#endif
