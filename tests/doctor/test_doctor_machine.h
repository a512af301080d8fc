/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine for tests: a folder with the files of a healthy one, and a FAKE of NVML that answers from a struct. Nothing here says
 * how a real card or driver behaves beyond the answers that are written down.
 */
#ifndef TN_TEST_DOCTOR_MACHINE_H
#define TN_TEST_DOCTOR_MACHINE_H

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/fatbin_layout.h"
#include "doctor/doctor.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)
#define PACKAGES "/env/lib/python3.11/site-packages"
#define STARTED 1700000000 /* when the machine did */

struct fake_process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

struct fake_nvml {
	int init, handle, driver_cuda;
	unsigned count;
	const char *driver, *library, *names[2];
	int major, minor;
	uint64_t total, used;
	struct fake_process processes[4];
	unsigned process_count;
	unsigned mig, mig_later, instances, persistence, compute_mode, ecc, ecc_later, rows[4], display, lanes;
	unsigned long long corrected, uncorrected, reasons;
	unsigned power_limit, power_default;
	bool without_ecc;
};

static struct fake_nvml fake;

static int
fake_init(void)
{
	return fake.init;
}
static int
fake_count(unsigned *out)
{
	*out = fake.count;
	return 0;
}
static int
fake_cuda(int *out)
{
	*out = fake.driver_cuda;
	return 0;
}
static int
fake_text(char *out, unsigned room, const char *text)
{
	snprintf(out, room, "%s", text);
	return 0;
}
static int
fake_driver(char *out, unsigned room)
{
	return fake_text(out, room, fake.driver);
}
static int
fake_library(char *out, unsigned room)
{
	return fake_text(out, room, fake.library);
}
static int
fake_handle(unsigned index, void **out)
{
	*out = &fake.names[index];
	return fake.handle;
}
static int
fake_name(void *device, char *out, unsigned room)
{
	return fake_text(out, room, *(const char **)device);
}
static int
fake_value(unsigned *out, unsigned value)
{
	*out = value;
	return 0;
}
static int
fake_persistence(void *device, unsigned *out)
{
	return fake_value(out, fake.persistence);
}
static int
fake_mode(void *device, unsigned *out)
{
	return fake_value(out, fake.compute_mode);
}
static int
fake_display(void *device, unsigned *out)
{
	return fake_value(out, fake.display);
}
static int
fake_power(void *device, unsigned *out)
{
	return fake_value(out, 31000);
}
static int
fake_limit(void *device, unsigned *out)
{
	return fake_value(out, fake.power_limit);
}
static int
fake_default(void *device, unsigned *out)
{
	return fake_value(out, fake.power_default);
}
static int
fake_lanes(void *device, unsigned *out)
{
	return fake_value(out, fake.lanes);
}
static int
fake_most_lanes(void *device, unsigned *out)
{
	return fake_value(out, 16);
}
static int
fake_most(void *device, unsigned *out)
{
	return fake_value(out, 7);
}
static int
fake_temperature(void *device, int sensor, unsigned *out)
{
	return fake_value(out, 42);
}
static int
fake_slowdown(void *device, int kind, unsigned *out)
{
	return fake_value(out, 93);
}
static int
fake_instance(void *device, int index, void **out)
{
	*out = device;
	return (unsigned)index < fake.instances ? 0 : 6;
}
static int
fake_reasons(void *device, unsigned long long *out)
{
	*out = fake.reasons;
	return 0;
}

static int
fake_uuid(void *device, char *out, unsigned room)
{
	return fake_text(out, room, device == &fake.names[0] ? "GPU-11111111-2222" : "GPU-11115555-6666");
}

static int
fake_pci(void *device, void *out)
{
	snprintf((char *)out + 36, 32, "00000000:%02X:00.0", device == &fake.names[0] ? 1 : 2);
	return 0;
}

static int
fake_capability(void *device, int *major, int *minor)
{
	*major = fake.major;
	*minor = fake.minor;
	return 0;
}

static int
fake_memory(void *device, unsigned long long *out)
{
	out[0] = fake.total;
	out[1] = fake.total - fake.used;
	out[2] = fake.used;
	return 0;
}

static int
fake_two(unsigned *first, unsigned one, unsigned *second, unsigned two)
{
	*first = one;
	*second = two;
	return 0;
}

static int
fake_mig(void *device, unsigned *now, unsigned *later)
{
	return fake_two(now, fake.mig, later, fake.mig_later);
}
static int
fake_ecc(void *device, unsigned *now, unsigned *later)
{
	return fake.without_ecc ? 3 : fake_two(now, fake.ecc, later, fake.ecc_later);
}

static int
fake_counts(void *device, int kind, int counter, unsigned long long *out)
{
	*out = kind == 0 ? fake.corrected : fake.uncorrected;
	return fake.without_ecc ? 3 : 0;
}

static int
fake_rows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
	*corrected = fake.rows[0];
	*uncorrected = fake.rows[1];
	*pending = fake.rows[2];
	*failed = fake.rows[3];
	return 0;
}

static int
fake_processes(void *device, unsigned *count, struct fake_process *out)
{
	*count = device == &fake.names[0] ? fake.process_count : 0;
	memcpy(out, fake.processes, *count * sizeof(*out));
	return 0;
}

#define FAKE(name, function) { name, (void *)(uintptr_t)(function) }

static void *
fake_find(void *library, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		FAKE("nvmlInit_v2", fake_init),
		FAKE("nvmlDeviceGetCount_v2", fake_count),
		FAKE("nvmlSystemGetCudaDriverVersion_v2", fake_cuda),
		FAKE("nvmlSystemGetDriverVersion", fake_driver),
		FAKE("nvmlSystemGetNVMLVersion", fake_library),
		FAKE("nvmlDeviceGetHandleByIndex_v2", fake_handle),
		FAKE("nvmlDeviceGetName", fake_name),
		FAKE("nvmlDeviceGetUUID", fake_uuid),
		FAKE("nvmlDeviceGetPciInfo_v3", fake_pci),
		FAKE("nvmlDeviceGetCudaComputeCapability", fake_capability),
		FAKE("nvmlDeviceGetMemoryInfo", fake_memory),
		FAKE("nvmlDeviceGetPersistenceMode", fake_persistence),
		FAKE("nvmlDeviceGetComputeMode", fake_mode),
		FAKE("nvmlDeviceGetDisplayActive", fake_display),
		FAKE("nvmlDeviceGetPowerUsage", fake_power),
		FAKE("nvmlDeviceGetPowerManagementLimit", fake_limit),
		FAKE("nvmlDeviceGetPowerManagementDefaultLimit", fake_default),
		FAKE("nvmlDeviceGetCurrPcieLinkWidth", fake_lanes),
		FAKE("nvmlDeviceGetMaxPcieLinkWidth", fake_most_lanes),
		FAKE("nvmlDeviceGetMaxMigDeviceCount", fake_most),
		FAKE("nvmlDeviceGetMigDeviceHandleByIndex", fake_instance),
		FAKE("nvmlDeviceGetTemperature", fake_temperature),
		FAKE("nvmlDeviceGetTemperatureThreshold", fake_slowdown),
		FAKE("nvmlDeviceGetCurrentClocksThrottleReasons", fake_reasons),
		FAKE("nvmlDeviceGetMigMode", fake_mig),
		FAKE("nvmlDeviceGetEccMode", fake_ecc),
		FAKE("nvmlDeviceGetTotalEccErrors", fake_counts),
		FAKE("nvmlDeviceGetRemappedRows", fake_rows),
		FAKE("nvmlDeviceGetComputeRunningProcesses_v3", fake_processes),
	};
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].function;
	return NULL;
}

/* ---- files ---- */

static char fake_root[64];
static uint64_t fake_shm_total, fake_shm_free;
static const char *fake_environment[16];

static void
put(const char *path, const char *format, ...)
{
	char whole[512];
	va_list arguments;
	snprintf(whole, sizeof(whole), "%s%s", fake_root, path);
	for (char *slash = whole + strlen(fake_root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
	FILE *file = fopen(whole, "w");
	if (file == NULL)
		abort();
	va_start(arguments, format);
	vfprintf(file, format, arguments);
	va_end(arguments);
	fclose(file);
	chmod(whole, 0666);
}

static void
drop(const char *path)
{
	char command[512];
	snprintf(command, sizeof(command), "rm -rf '%s%s'", fake_root, path);
	if (system(command) != 0)
		abort();
}

static void
set_variable(const char *pair)
{
	size_t i = 0;
	while (fake_environment[i] != NULL)
		i++;
	fake_environment[i] = pair;
}

/* libtorch_cuda.so: an ELF head, a section .nv_fatbin of two containers with code for these architectures, and names. */
static void
put_kernels(const int *architectures, size_t count, uint16_t kind)
{
	static const char names[] = "\0.nv_fatbin\0.shstrtab";
	size_t part = sizeof(struct fatbin_header) + count * (sizeof(struct fatbin_entry) + 8), code = 2 * part;
	Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
		                .e_shoff = sizeof(head),
		                .e_shentsize = sizeof(Elf64_Shdr),
		                .e_shnum = 3,
		                .e_shstrndx = 2 };
	size_t at = sizeof(head) + 3 * sizeof(Elf64_Shdr);
	Elf64_Shdr sections[3] = { { 0 },
		                       { .sh_name = 1, .sh_offset = at, .sh_size = code },
		                       { .sh_name = 12, .sh_offset = at + code, .sh_size = sizeof(names) } };
	char path[256];
	put(PACKAGES "/torch/lib/libtorch_cuda.so", "%s", "");
	snprintf(path, sizeof(path), "%s" PACKAGES "/torch/lib/libtorch_cuda.so", fake_root);
	FILE *file = fopen(path, "wb");
	fwrite(&head, sizeof(head), 1, file);
	fwrite(sections, sizeof(sections), 1, file);
	for (int copy = 0; copy < 2; copy++) {
		struct fatbin_header container = { FATBIN_MAGIC, 1, sizeof(container), part - sizeof(container) };
		fwrite(&container, sizeof(container), 1, file);
		for (size_t i = 0; i < count; i++) {
			struct fatbin_entry entry = {
				.kind = kind, .bytes = sizeof(entry), .padded = 8, .architecture = (uint32_t)architectures[i]
			};
			fwrite(&entry, sizeof(entry), 1, file);
			fwrite("payload", 8, 1, file);
		}
	}
	fwrite(names, sizeof(names), 1, file);
	fclose(file);
}

/* libc10_cuda.so as far as it is looked at: names that end with a zero. */
static void
put_names(void)
{
	char path[256];
	put(PACKAGES "/torch/lib/libc10_cuda.so", "%s", "");
	snprintf(path, sizeof(path), "%s" PACKAGES "/torch/lib/libc10_cuda.so", fake_root);
	FILE *file = fopen(path, "wb");
	static const char names[] = "PYTORCH_CUDA_ALLOC_CONF\0backend\0expandable_segments\0max_split_size_mb\0"
								"garbage_collection_threshold\0roundup_power2_divisions";
	fwrite(names, sizeof(names), 1, file);
	fclose(file);
}

static void
put_torch(void)
{
	static const int architectures[] = { 75, 80, 86, 90 };
	put("/env/bin/python", "%s", "");
	put(PACKAGES "/torch/version.py",
	    "__version__ = '2.6.0+cu124'\ndebug = False\ncuda: Optional[str] = '12.4'\nhip: Optional[str] = None\n");
	put(PACKAGES "/torch-2.6.0+cu124.dist-info/METADATA",
	    "Name: torch\nRequires-Dist: filelock\nRequires-Dist: nvidia-nccl-cu12 (==2.21.5) ; platform_system == \"Linux\"\n"
	    "Requires-Dist: triton==3.2.0\nRequires-Dist: optree>=0.13.0; extra == \"optree\"\n\nRequires-Dist: nothing==1\n");
	put(PACKAGES "/nvidia_nccl_cu12-2.21.5.dist-info/METADATA", "Name: nvidia-nccl-cu12\n");
	put(PACKAGES "/triton-3.2.0.dist-info/METADATA", "Name: triton\n");
	put(PACKAGES "/torchvision-0.21.0.dist-info/METADATA", "Name: torchvision\nRequires-Dist: torch (==2.6.0)\n");
	put_kernels(architectures, 4, FATBIN_KIND_CUBIN);
	put_names();
}

static void
put_process(unsigned pid, unsigned user, const char *command, int parent, int group, int session)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	put(path, "%u (py (x) thon) S %d %d %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 360000 0 0 0\n", pid, parent, group,
	    session);
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	put(path, "Name:\tpython\nUid:\t%u\t%u\t%u\t%u\n", user, user, user, user);
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	put(path, "%s", command);
}

static void
hold(unsigned pid, uint64_t bytes)
{
	fake.processes[fake.process_count++] = (struct fake_process){ pid, bytes, ~0u, ~0u };
	fake.used += bytes;
}

/* A server with one card, well in all. */
static void
make_healthy(void)
{
	fake = (struct fake_nvml){ .driver_cuda = 12080,
		                       .count = 1,
		                       .driver = "570.86.15",
		                       .library = "12.570.86.15",
		                       .names = { "NVIDIA RTX A6000", "NVIDIA GeForce RTX 3090" },
		                       .major = 8,
		                       .minor = 6,
		                       .total = 48 * GIB,
		                       .used = 400 * MIB,
		                       .persistence = 1,
		                       .ecc = 1,
		                       .ecc_later = 1,
		                       .lanes = 16,
		                       .power_limit = 300000,
		                       .power_default = 300000 };
	fake_shm_total = 64 * GIB;
	fake_shm_free = 63 * GIB;
	memset(fake_environment, 0, sizeof(fake_environment));
	snprintf(fake_root, sizeof(fake_root), "/tmp/test_doctor_XXXXXX");
	if (mkdtemp(fake_root) == NULL)
		abort();
	put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
	put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
	put("/sys/module/nvidia/version", "570.86.15\n");
	put("/proc/driver/nvidia/version",
	    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 24 00:00:00 UTC 2026\n");
	put("/proc/sys/kernel/osrelease", "6.8.0-50-generic\n");
	put("/proc/sys/vm/overcommit_memory", "0\n");
	put("/proc/stat", "cpu 1 2 3\nbtime %d\n", STARTED);
	put("/proc/meminfo", "MemTotal: %llu kB\nMemFree: 1 kB\nMemAvailable: %llu kB\n", 128ull << 20, 100ull << 20);
	put("/proc/self/status",
	    "Name:\ttonnage\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t4 27 1000\n");
	put("/proc/self/cgroup", "0::/user.slice\n");
	put("/proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\n"
	                         "Max processes             256000               256000               processes\n"
	                         "Max open files            65536                1048576              files\n"
	                         "Max locked memory         8388608              8388608              bytes\n"
	                         "Max address space         unlimited            unlimited            bytes\n");
	put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
	put("/dev/nvidia0", "%s", "");
	put("/dev/nvidiactl", "%s", "");
	put("/dev/nvidia-uvm", "%s", "");
	put("/dev/kmsg", "6,1,1000000,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15\n");
	put("/etc/passwd",
	    "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nanna:x:1001:1001::/home/anna:/bin/sh\n");
	put("/usr/local/cuda/version.json",
	    "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"12.4.1\"}, \"cuda_nvcc\": {\"version\": \"99.1\"}}\n");
	put("/proc/1/stat", "1 (init) S 0 1 1 0\n");
	put_torch();
}

static bool
fake_space(const struct tn_machine *machine, const char *path, uint64_t *total, uint64_t *available)
{
	*total = fake_shm_total;
	*available = fake_shm_free;
	return true;
}

static const struct tn_nvml fake_table = { fake_find, NULL };

static struct tn_machine
fake_machine(void)
{
	return (struct tn_machine){ .root = fake_root,
		                        .environment = (char *const *)(uintptr_t)fake_environment,
		                        .nvml = &fake_table,
		                        .python = "/env/bin/python",
		                        .python_named = true,
		                        .now = STARTED + 7200,
		                        .own_pid = 77,
		                        .space = fake_space };
}

#endif
