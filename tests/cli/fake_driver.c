/* SPDX-License-Identifier: Apache-2.0
 *
 * A FAKE of libcuda.so.1 and libnvidia-ml.so.1 (one file for both): one card called "NVIDIA H200" with figures that no
 * real card has, so that what asks the driver can be tested without one. Like a real one it does not work in a process
 * forked from the one that initialized it; else nothing here says how a real driver behaves.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

#define NOT_INITIALIZED 3 /* CUDA_ERROR_NOT_INITIALIZED */

/* The process that initialized it: in those forked from there a real driver does not work (seen on an H200). */
static pid_t owner;

int
cuInit(unsigned flags)
{
	if (owner == 0)
		owner = getpid();
	return owner == getpid() ? 0 : NOT_INITIALIZED;
}
int
cuDeviceGetCount(int *count)
{
	*count = 1;
	return owner == getpid() ? 0 : NOT_INITIALIZED;
}
int
cuDeviceGet(int *device, int index)
{
	*device = index;
	return owner == getpid() ? 0 : NOT_INITIALIZED;
}
int
cuDeviceGetName(char *name, int length, int device)
{
	snprintf(name, (size_t)length, "NVIDIA H200");
	return 0;
}
int
cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = 100000 * MIB;
	return 0;
}
int
cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}
int
cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &cuInit;
	return 0;
}
int
cuDevicePrimaryCtxRelease_v2(int device)
{
	return 0;
}
int
cuCtxSetCurrent(void *context)
{
	return 0;
}
int
cuMemGetInfo_v2(size_t *available, size_t *total)
{
	*available = 99000 * MIB;
	*total = 100000 * MIB;
	return 0;
}

int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
	static const struct {
		int attribute, value;
	} known[] = { { 13, 1980000 }, { 16, 132 }, { 36, 3201000 }, { 37, 6144 },   { 38, 62914560 },
		          { 39, 2048 },    { 75, 9 },   { 76, 0 },       { 97, 232448 }, { 106, 32 } };
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].attribute == attribute) {
			*value = known[i].value;
			return 0;
		}
	}
	return 1;
}

struct process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

int
nvmlInit_v2(void)
{
	return 0;
}
int
nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = 1;
	return 0;
}
int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
	*handle = &cuInit;
	return 0;
}
int
nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	snprintf(version, length, "999.1");
	return 0;
}

/* Two processes: the one that asks, and the one whose pid is in ./holder (if it is there). */
int
nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process *out)
{
	FILE *holder = fopen("holder", "r");
	int pid = 0;
	memset(out, 0, 2 * sizeof(*out));
	out[0] = (struct process){ (unsigned)getpid(), 512 * MIB, 0, 0 };
	*count = 1;
	if (holder != NULL && fscanf(holder, "%d", &pid) == 1)
		out[(*count)++] = (struct process){ (unsigned)pid, 3072 * MIB, 0, 0 };
	if (holder != NULL)
		fclose(holder);
	return 0;
}
