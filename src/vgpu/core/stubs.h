/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the stubs of one table: see vgpu/core/shell.h. No include guard: a folder with two tables includes it twice.
 */
#include "vgpu/core/shell.h"

/* Stubs have no prototype but their own: the program calls them through the library's real headers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wmissing-declarations"

#define TN_ANSWER(name)
#define TN_REFUSE(name)                                               \
	TN_EXPORT int name(void);                                         \
	int name(void)                                                    \
	{                                                                 \
		return tn__refuse(TN_SHELL_LIBRARY, #name, TN_SHELL_REFUSAL); \
	}
#define TN_REFUSE_NULL(name)                          \
	TN_EXPORT void *name(void);                       \
	void *name(void)                                  \
	{                                                 \
		(void)tn__refuse(TN_SHELL_LIBRARY, #name, 0); \
		return 0;                                     \
	}
#define TN_QUIET(name)        \
	TN_EXPORT int name(void); \
	int name(void)            \
	{                         \
		return 0;             \
	}
#if defined(TN_CUDA_MAJOR) && TN_CUDA_MAJOR == 12
#define TN_ANSWER_12(name) TN_ANSWER(name)
#define TN_ANSWER_13(name) TN_REFUSE(name)
#else
#define TN_ANSWER_12(name) TN_REFUSE(name)
#define TN_ANSWER_13(name) TN_ANSWER(name)
#endif
#define TN_COMPUTE(name)                        \
	TN_EXPORT int name(void *handle);           \
	int name(void *handle)                      \
	{                                           \
		return TN_SHELL_COMPUTE(handle, #name); \
	}
#define TN_REDUCE(name)                        \
	TN_EXPORT int name(void *handle);          \
	int name(void *handle)                     \
	{                                          \
		return TN_SHELL_REDUCE(handle, #name); \
	}

#include TN_SHELL_TABLE

#undef TN_ANSWER
#undef TN_ANSWER_12
#undef TN_ANSWER_13
#undef TN_REFUSE
#undef TN_REFUSE_NULL
#undef TN_QUIET
#undef TN_COMPUTE
#undef TN_REDUCE
#undef TN_SHELL_COMPUTE
#undef TN_SHELL_REDUCE
#undef TN_SHELL_LIBRARY
#undef TN_SHELL_TABLE
#undef TN_SHELL_REFUSAL

#pragma GCC diagnostic pop
