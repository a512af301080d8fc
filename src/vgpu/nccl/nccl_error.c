/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL's errors: their texts, and the thread's last one.
 */
#include "vgpu/nccl/nccl_comm.h"

/* The prototypes stand in the library's own header, which is not included. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static _Thread_local const char *last_error = "";

int
tn__nccl_fail(int result, const char *text)
{
	last_error = text;
	return result;
}

TN_EXPORT const char *
ncclGetErrorString(int result)
{
	static const char *const texts[] = {
		"no error",         "unhandled cuda error", "unhandled system error", "internal error",
		"invalid argument", "invalid usage",        "remote process error",   "operation in progress",
	};

	return result >= NCCL_SUCCESS && result <= NCCL_IN_PROGRESS ? texts[result] : "unknown result code";
}

TN_EXPORT const char *
ncclGetLastError(struct nccl_comm *comm)
{
	return last_error;
}

TN_NCCL_PROFILING(ncclGetErrorString)
TN_NCCL_PROFILING(ncclGetLastError)
