/* SPDX-License-Identifier: Apache-2.0
 *
 * What every shell shares: the macros that turn a library's table into exported stubs.
 *
 * <library>.names has the name of every function that the library's headers declare, its versions export or programs
 * import, and <library>.def one row for each of them that is more than refused. The build makes table.def of the two
 * (cmake/shell_table.cmake), with one row for every name:
 *   TN_ANSWER(name)      written in this folder's C files
 *   TN_REFUSE(name)      returns the library's NOT_SUPPORTED status, counted
 *   TN_REFUSE_NULL(name) returns a null pointer, counted (functions that return a pointer or a size)
 *   TN_ANSWER_12(name)   answered in the library of CUDA 12, refused in CUDA 13's; TN_ANSWER_13 the other way round
 *   TN_COMPUTE(name)     work on the stream of the handle that is its first argument; results lie on the device
 *   TN_REDUCE(name)      the same, but its result may be wanted on the host: then refused
 *   TN_QUIET(name)       does nothing and succeeds: the function has no result but its status, and no effect on memory
 * TN_REFUSE and TN_REFUSE_NULL stand in table.def only; `null` behind a name in <library>.names chooses the second.
 *
 * One C file of the folder makes the stubs:
 *   #define TN_SHELL_LIBRARY "cufft"
 *   #define TN_SHELL_TABLE "vgpu/cufft/table.def"
 *   #define TN_SHELL_REFUSAL 16   // CUFFT_NOT_SUPPORTED
 *   #include "vgpu/core/stubs.h"
 * A stub takes no parameters: in the calling conventions we support (System V x86-64, AAPCS64) the caller cleans up, so
 * ignoring arguments is well defined at the ABI.
 */
#ifndef TN_VGPU_SHELL_H
#define TN_VGPU_SHELL_H

#include "vgpu/core/core.h"

#endif
