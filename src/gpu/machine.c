/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the driver's libraries (libcuda, NVML), opened by name. Attribute numbers and structure layouts are those
 * of the public headers cuda.h and nvml.h.
 *
 * libcuda is asked in a process of its own: once it was initialized in a process, it answers CUDA_ERROR_NOT_INITIALIZED
 * in all that are forked from there (CUDA C++ Programming Guide, "Initialization"; seen on an H200), and trials are.
 */
#include "gpu/machine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "gpu/catalogue.h"

/* ---- libcuda ---- */

enum { /* CUdevice_attribute */
	   ATTRIBUTE_CLOCK_KHZ = 13,
	   ATTRIBUTE_SM_COUNT = 16,
	   ATTRIBUTE_MEMORY_CLOCK_KHZ = 36,
	   ATTRIBUTE_BUS_BITS = 37,
	   ATTRIBUTE_L2_BYTES = 38,
	   ATTRIBUTE_THREADS_PER_SM = 39,
	   ATTRIBUTE_MAJOR = 75,
	   ATTRIBUTE_MINOR = 76,
	   ATTRIBUTE_SHARED_OPTIN = 97,
	   ATTRIBUTE_BLOCKS_PER_SM = 106,
};

struct driver {
	int (*init)(unsigned);
	int (*count)(int *);
	int (*device)(int *, int);
	int (*name)(char *, int, int);
	int (*attribute)(int *, int, int);
	int (*total)(size_t *, int);
	int (*version)(int *);
	int (*retain)(void **, int);
	int (*release)(int);
	int (*set_current)(void *);
	int (*memory)(size_t *, size_t *);
};

static bool
open_driver(struct driver *out)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return false;
	const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{ "cuInit", &out->init },
		{ "cuDeviceGetCount", &out->count },
		{ "cuDeviceGet", &out->device },
		{ "cuDeviceGetName", &out->name },
		{ "cuDeviceGetAttribute", &out->attribute },
		{ "cuDeviceTotalMem_v2", &out->total },
		{ "cuDriverGetVersion", &out->version },
		{ "cuDevicePrimaryCtxRetain", &out->retain },
		{ "cuDevicePrimaryCtxRelease_v2", &out->release },
		{ "cuCtxSetCurrent", &out->set_current },
		{ "cuMemGetInfo_v2", &out->memory },
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *symbol = dlsym(library, wanted[i].name);
		if (symbol == NULL)
			return false;
		memcpy(wanted[i].slot, &symbol, sizeof(symbol));
	}
	return true;
}

static tn_status
first_device(struct driver *driver, int *device, int *count)
{
	TN_RETURN_IF(!open_driver(driver), TN_NOT_FOUND, "no NVIDIA driver on this machine (libcuda.so.1 was not found)");
	TN_RETURN_IF(driver->init(0) != 0 || driver->count(count) != 0 || *count < 1 || driver->device(device, 0) != 0,
	             TN_NOT_FOUND, "no NVIDIA GPU on this machine (the driver answers with none)");
	return TN_OK;
}

static int32_t
attribute(const struct driver *driver, int device, int number)
{
	int value = 0;
	return driver->attribute(&value, number, device) == 0 ? value : 0;
}

/* What the driver itself says. */
static void
read_device(const struct driver *driver, int device, struct tn_gpu_figures *out)
{
	size_t total = 0;
	if (driver->name(out->name, sizeof(out->name), device) != 0)
		snprintf(out->name, sizeof(out->name), "unknown GPU");
	if (driver->total(&total, device) == 0)
		out->total_bytes = total;
	out->compute_major = attribute(driver, device, ATTRIBUTE_MAJOR);
	out->compute_minor = attribute(driver, device, ATTRIBUTE_MINOR);
	out->sm_count = attribute(driver, device, ATTRIBUTE_SM_COUNT);
	out->shared_memory_optin_bytes = attribute(driver, device, ATTRIBUTE_SHARED_OPTIN);
	out->max_threads_per_sm = attribute(driver, device, ATTRIBUTE_THREADS_PER_SM);
	out->max_blocks_per_sm = attribute(driver, device, ATTRIBUTE_BLOCKS_PER_SM);
	out->sm_clock_khz = attribute(driver, device, ATTRIBUTE_CLOCK_KHZ);
	out->memory_clock_khz = attribute(driver, device, ATTRIBUTE_MEMORY_CLOCK_KHZ);
	out->l2_bytes = (uint64_t)attribute(driver, device, ATTRIBUTE_L2_BYTES);
	/* two transfers a clock, bus width in bits: kHz * 2 * bits / 8 bytes in 10^9 */
	out->memory_gbps = out->memory_clock_khz * 2.0 * attribute(driver, device, ATTRIBUTE_BUS_BITS) / 8 / 1e6;
}

/* FP32 lanes of an SM, from the compute capability. */
static int
lanes(const struct tn_gpu_figures *card)
{
	int capability = card->compute_major * 10 + card->compute_minor;
	return card->compute_major == 7 || capability == 60 || capability == 80 ? 64 : 128;
}

/* What the driver does not say: from the catalogue's row of that name, else from the nearest row by SM count. */
static void
complete(struct tn_gpu_figures *out)
{
	const struct tn_gpu_row *row = tn__gpu_find(out->name);
	out->fp32_tflops = out->sm_count * (double)lanes(out) * 2 * out->sm_clock_khz / 1e9;
	if (row == NULL) {
		for (int i = 0; i < tn__gpu_count(); i++) {
			const struct tn_gpu_row *other = tn__gpu_row(i);
			int distance = abs(other->figures.sm_count - out->sm_count);
			if (row == NULL || distance < abs(row->figures.sm_count - out->sm_count))
				row = other;
		}
		out->context_bytes = row != NULL ? row->figures.context_bytes : 0;
		return;
	}
	memcpy(out->alias, row->figures.alias, sizeof(out->alias));
	out->context_bytes = row->figures.context_bytes;
	out->bf16_tflops = row->figures.bf16_tflops;
	out->tf32_tflops = row->figures.tf32_tflops;
	out->fp32_tflops = row->figures.fp32_tflops;
}

/* ---- a process of its own ---- */

struct answer {
	tn_status status;
	char why[256]; /* when status is not TN_OK */
	struct tn_gpu_figures figures;
	int count; /* GPUs on this machine */
	char evidence[256];
};

/* Waits for the child's answer. A driver that takes the process down with it gives none. */
static tn_status
receive(int end, pid_t pid, struct answer *out)
{
	size_t have = 0;
	ssize_t length;
	while (have < sizeof(*out) &&
	       ((length = read(end, (char *)out + have, sizeof(*out) - have)) > 0 || (length < 0 && errno == EINTR)))
		have += length > 0 ? (size_t)length : 0;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	TN_RETURN_IF(have < sizeof(*out), TN_STATE, "the NVIDIA driver ended the process that asked it for its GPUs");
	return out->status == TN_OK ? TN_OK : tn__fail(out->status, "%s", out->why);
}

static tn_status
ask_in_child(tn_status (*ask)(struct answer *), struct answer *out)
{
	int ends[2];
	TN_RETURN_IF(pipe2(ends, O_CLOEXEC) != 0, TN_IO, "no pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		struct answer answer = { .count = 0 };
		answer.status = ask(&answer);
		if (answer.status != TN_OK)
			snprintf(answer.why, sizeof(answer.why), "%s", tn_error_text());
		/* at most PIPE_BUF bytes are written at once or not at all */
		_Static_assert(sizeof(answer) <= 4096, "an answer is written in one piece");
		_exit(write(ends[1], &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
	}
	close(ends[1]);
	tn_status status = pid < 0 ? tn__fail(TN_IO, "no process to ask the driver in: %s", strerror(errno))
	                           : receive(ends[0], pid, out);
	close(ends[0]);
	return status;
}

static tn_status
ask_figures(struct answer *out)
{
	struct driver driver;
	int device = 0;
	TN_FORWARD_IF_ERROR(first_device(&driver, &device, &out->count));
	read_device(&driver, device, &out->figures);
	return TN_OK;
}

tn_status
tn__machine_gpu(struct tn_gpu_figures *out, int *count)
{
	struct answer answer;
	TN_FORWARD_IF_ERROR(ask_in_child(ask_figures, &answer));
	complete(&answer.figures);
	*out = answer.figures;
	*count = answer.count;
	return TN_OK;
}

/* ---- NVML ---- */

struct nvml_process { /* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3 */
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

struct nvml {
	bool tried, works;
	int (*init)(void);
	int (*count)(unsigned *);
	int (*handle)(unsigned, void **);
	int (*processes)(void *, unsigned *, struct nvml_process *);
	int (*driver_version)(char *, unsigned);
};

static struct nvml nvml;

static bool
open_nvml(void)
{
	if (nvml.tried)
		return nvml.works;
	nvml.tried = true;
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return false;
	const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{ "nvmlInit_v2", &nvml.init },
		{ "nvmlDeviceGetCount_v2", &nvml.count },
		{ "nvmlDeviceGetHandleByIndex_v2", &nvml.handle },
		{ "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes },
		{ "nvmlSystemGetDriverVersion", &nvml.driver_version },
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *symbol = dlsym(library, wanted[i].name);
		if (symbol == NULL)
			return false;
		memcpy(wanted[i].slot, &symbol, sizeof(symbol));
	}
	nvml.works = nvml.init() == 0;
	return nvml.works;
}

static bool
contains(const pid_t *pids, size_t count, unsigned pid)
{
	for (size_t i = 0; i < count; i++)
		if ((unsigned)pids[i] == pid)
			return true;
	return false;
}

tn_status
tn__machine_process_bytes(const pid_t *pids, size_t count, uint64_t *bytes)
{
	unsigned devices = 0;
	uint64_t sum = 0;
	bool found = false;
	TN_RETURN_IF(!open_nvml() || nvml.count(&devices) != 0, TN_NOT_FOUND, "no NVML on this machine");
	for (unsigned i = 0; i < devices; i++) {
		struct nvml_process running[128];
		unsigned length = sizeof(running) / sizeof(running[0]);
		void *handle;
		if (nvml.handle(i, &handle) != 0 || nvml.processes(handle, &length, running) != 0)
			continue;
		for (unsigned j = 0; j < length; j++) {
			if (!contains(pids, count, running[j].pid) || running[j].used_bytes == ~0ull)
				continue;
			sum += running[j].used_bytes;
			found = true;
		}
	}
	TN_RETURN_IF(!found, TN_NOT_FOUND, "NVML knows none of the processes");
	*bytes = sum;
	return TN_OK;
}

/* ---- measuring a context ---- */

static tn_status
ask_context(struct answer *out)
{
	struct driver driver;
	int device = 0, version = 0;
	char kernel_driver[96] = "unknown";
	void *context = NULL;
	size_t free_bytes = 0, total_bytes = 0;
	uint64_t own = 0;
	pid_t self = getpid();
	TN_FORWARD_IF_ERROR(first_device(&driver, &device, &out->count));
	read_device(&driver, device, &out->figures);
	TN_RETURN_IF(driver.retain(&context, device) != 0 || driver.set_current(context) != 0, TN_STATE,
	             "the GPU is there, but no context could be made on it");
	TN_RETURN_IF(driver.memory(&free_bytes, &total_bytes) != 0, TN_STATE,
	             "the GPU does not say how much memory it has");
	const char *how = "by NVML for the probing process";
	if (tn__machine_process_bytes(&self, 1, &own) != TN_OK) {
		own = total_bytes - free_bytes;
		how = "as total minus free, other processes included";
	}
	(void)driver.version(&version);
	if (open_nvml())
		(void)nvml.driver_version(kernel_driver, sizeof(kernel_driver));
	(void)driver.release(device);
	out->figures.total_bytes = total_bytes;
	out->figures.context_bytes = own;
	snprintf(out->evidence, sizeof(out->evidence),
	         "tonnage gpus --probe (driver %s; CUDA %d.%d; empty context measured %s; TFLOPS not measured)",
	         kernel_driver, version / 1000, version % 1000 / 10, how);
	return TN_OK;
}

tn_status
tn__machine_probe(struct tn_gpu_figures *out, char *evidence, size_t capacity)
{
	struct answer answer;
	TN_FORWARD_IF_ERROR(ask_in_child(ask_context, &answer));
	uint64_t context = answer.figures.context_bytes;
	complete(&answer.figures);
	answer.figures.context_bytes = context;
	*out = answer.figures;
	snprintf(evidence, capacity, "%s", answer.evidence);
	return TN_OK;
}
