/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor on a made machine: nothing is found on a healthy one, and each fault that is put in is found, it alone. The screens of
 * some stand in tests/golden/doctor (TN_GOLDEN_WRITE=1 writes them anew). All names and figures are made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/diagnosis.h"
#include "test_doctor_machine.h"

/* ---- faults ---- */

static struct tn_machine machine;

static void
nothing(void)
{
}
static void
old_driver(void)
{
	put("/sys/module/nvidia/version", "470.82.01\n");
	fake.driver = "470.82.01";
	fake.driver_cuda = 11040;
	drop("/usr/local/cuda");
}
static void
older_minor_driver(void)
{
	put("/sys/module/nvidia/version", "535.183.01\n");
	fake.driver = "535.183.01";
	fake.driver_cuda = 12020;
	drop("/usr/local/cuda");
}
static void
card_too_new(void)
{
	fake.major = 12;
	fake.minor = 0;
}
static void
card_too_old(void)
{
	fake.major = 6;
	fake.minor = 1;
}
static void
card_of_an_earlier_minor(void)
{
	static const int later[] = { 75, 86 };
	put_kernels(later, 2, FATBIN_KIND_CUBIN);
	fake.minor = 0;
}
static void
only_ptx(void)
{
	static const int one[] = { 80 };
	put_kernels(one, 1, FATBIN_KIND_PTX);
}
static void
mismatched_libraries(void)
{
	fake.init = 18;
	fake.library = "12.580.65.06";
}
static void
mismatched_answer(void)
{
	fake.driver = "580.65.06";
}
static void
driver_refuses(void)
{
	fake.init = 999;
}
static void
nouveau(void)
{
	drop("/sys/module/nvidia");
	drop("/proc/driver");
	put("/sys/module/nouveau/refcnt", "1\n");
	machine.nvml = NULL;
}
static void
not_loaded(void)
{
	drop("/sys/module/nvidia");
	drop("/proc/driver");
	fake.init = 9;
}
static void
no_library(void)
{
	machine.nvml = NULL;
}
static void
no_card(void)
{
	nouveau();
	drop("/sys/module/nouveau");
	drop("/sys/bus");
}
static void
lost_card(void)
{
	fake.handle = 15;
}
static void
forbidden(void)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/dev/nvidia0", fake_root);
	chmod(path, 0);
	put("/proc/self/status", "Uid:\t4242\t4242\nGid:\t4242\t4242\nGroups:\t4242\n");
}
static void
no_uvm(void)
{
	drop("/dev/nvidia-uvm");
}
static void
mig(void)
{
	fake.mig = fake.mig_later = 1;
	fake.instances = 2;
}
static void
mig_empty(void)
{
	fake.mig = fake.mig_later = 1;
}
static void
mig_pending(void)
{
	fake.mig_later = 1;
}
static void
ecc_uncorrected(void)
{
	fake.uncorrected = 2;
}
static void
ecc_corrected(void)
{
	fake.corrected = 5;
}
static void
ecc_pending(void)
{
	fake.ecc_later = 0;
}
static void
row_pending(void)
{
	fake.rows[2] = 1;
}
static void
row_failed(void)
{
	fake.rows[3] = 1;
}
static void
prohibited(void)
{
	fake.compute_mode = 2;
}
static void
persistence_off(void)
{
	fake.persistence = 0;
}
static void
power_cap(void)
{
	fake.power_limit = 200000;
}
static void
hot(void)
{
	fake.reasons = 0x40;
}
static void
power_brake(void)
{
	fake.reasons = 0x80;
}
static void
display(void)
{
	fake.display = 1;
}
static void
few_lanes(void)
{
	fake.lanes = 4;
}
static void
xid(void)
{
	put("/dev/kmsg",
	    "3,9,3600000000,-;NVRM: Xid (PCI:0000:01:00): 79, pid=4, name=python, GPU has fallen off the bus.\n");
}
static void
xid_unknown(void)
{
	put("/dev/kmsg", "3,9,36,-;NVRM: Xid (PCI:0000:01:00): 555, pid=4\n");
}
static void
orphan(void)
{
	put_process(4242, 1000, "python train.py", 1, 4200, 4100);
	hold(4242, 20 * GIB);
}
static void
foreign(void)
{
	put_process(4242, 1001, "python train.py --api-key=sk-abcdefghijklmnopqrstuvwxyz012345", 900, 4242, 900);
	hold(4242, 20 * GIB);
}
static void
own(void)
{
	put_process(4242, 1000, "python train.py", 1, 4242, 4242);
	hold(4242, 20 * GIB);
}
static void
unseen(void)
{
	hold(4242, 20 * GIB);
}
static void
unnamed(void)
{
	fake.used = 30 * GIB;
}
static void
toolkit_newer(void)
{
	put("/usr/local/cuda/version.json", "{\"cuda\": {\"version\": \"12.9.0\"}}");
}
static void
toolkit_major(void)
{
	put("/usr/local/cuda/version.json", "{\"cuda\": {\"version\": \"11.8.0\"}}");
}
static void
stub(void)
{
	put("/usr/local/cuda/lib64/stubs/libcuda.so.1", "%s", "");
	set_variable("LD_LIBRARY_PATH=/a:/usr/local/cuda/lib64/stubs");
}
static void
cpu_torch(void)
{
	put(PACKAGES "/torch/version.py", "__version__ = '2.6.0+cpu'\ncuda: Optional[str] = None\n");
}
static void
rocm_torch(void)
{
	put(PACKAGES "/torch/version.py",
	    "__version__ = '2.6.0+rocm6.2'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.2'\n");
}
static void
no_torch(void)
{
	drop(PACKAGES "/torch");
}
static void
other_nccl(void)
{
	drop(PACKAGES "/nvidia_nccl_cu12-2.21.5.dist-info");
	put(PACKAGES "/nvidia_nccl_cu12-2.26.2.dist-info/METADATA", "\n");
}
static void
no_nccl(void)
{
	drop(PACKAGES "/nvidia_nccl_cu12-2.21.5.dist-info");
}
static void
other_vision(void)
{
	put(PACKAGES "/torchvision-0.21.0.dist-info/METADATA", "Requires-Dist: torch (==2.5.1)\n");
}
static void
two_torches(void)
{
	put(PACKAGES "/torch-2.6.0.dist-info/METADATA", "\n");
}
static void
hidden(void)
{
	set_variable("CUDA_VISIBLE_DEVICES=");
}
static void
hidden_by_number(void)
{
	set_variable("CUDA_VISIBLE_DEVICES=0,3");
}
static void
hidden_by_name(void)
{
	set_variable("CUDA_VISIBLE_DEVICES=GPU-99999999");
}
static void
mixed_cards(void)
{
	fake.count = 2;
}
static void
blocking(void)
{
	set_variable("CUDA_LAUNCH_BLOCKING=1");
}
static void
uncached(void)
{
	set_variable("PYTORCH_NO_CUDA_MEMORY_CACHING=1");
}
static void
unknown_setting(void)
{
	set_variable("PYTORCH_CUDA_ALLOC_CONF=backend:native,expandeable_segments:True");
}
static void
later_setting(void)
{
	set_variable("PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.5");
}
static void
wrong_value(void)
{
	set_variable("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true");
}
static void
later_name(void)
{
	set_variable("PYTORCH_ALLOC_CONF=expandable_segments:True");
}
static void
shm_full(void)
{
	fake_shm_free = GIB;
}
static void
shm_small(void)
{
	fake_shm_total = fake_shm_free = 64 * MIB;
	put("/.dockerenv", "%s", "");
}
static void
few_files(void)
{
	put("/proc/self/limits", "Max open files            1024                 4096                 files\n");
}
static void
memlock(void)
{
	put("/sys/class/infiniband/mlx5_0/x", "%s", "");
}
static void
address_space(void)
{
	put("/proc/self/limits", "Max address space         17179869184          17179869184          bytes\n");
}
static void
few_processes(void)
{
	put("/proc/self/limits", "Max processes             512                  512                  processes\n");
}
static void
small_group(void)
{
	put("/sys/fs/cgroup/user.slice/memory.max", "%llu\n", 8ull << 30);
	put("/sys/fs/cgroup/user.slice/memory.current", "%llu\n", 1ull << 30);
}
static void
full_group(void)
{
	put("/sys/fs/cgroup/user.slice/memory.max", "%llu\n", 64ull << 30);
	put("/sys/fs/cgroup/user.slice/memory.current", "%llu\n", 63ull << 30);
}
static void
killed_group(void)
{
	full_group();
	put("/sys/fs/cgroup/user.slice/memory.events", "low 0\noom 3\noom_kill 2\n");
}
static void
older_group(void)
{
	put("/proc/self/cgroup", "3:memory:/x\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "%llu\n", 8ull << 30);
}
static void
no_host_memory(void)
{
	put("/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 100000 kB\n");
}
static void
no_overcommit(void)
{
	put("/proc/sys/vm/overcommit_memory", "2\n");
}
static void
wsl(void)
{
	put("/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n");
	put("/dev/dxg", "%s", "");
	drop("/sys/bus");
	drop("/sys/module");
	drop("/proc/driver");
}
static void
wsl_1(void)
{
	wsl();
	drop("/dev/dxg");
}

static const struct {
	const char *name;
	void (*put_in)(void);
	const char *found; /* ids, most serious first */
} faults[] = {
	{ "healthy", nothing, "" },
	{ "old driver", old_driver, "driver_old" },
	{ "driver of an older minor number", older_minor_driver, "" },
	{ "no kernels for a newer card", card_too_new, "kernels_missing" },
	{ "no kernels for an older card", card_too_old, "kernels_missing" },
	{ "kernels of a later minor number", card_of_an_earlier_minor, "kernels_missing" },
	{ "only PTX", only_ptx, "kernels_ptx" },
	{ "driver and libraries differ", mismatched_libraries, "driver_mismatch" },
	{ "libraries answer another version", mismatched_answer, "driver_mismatch" },
	{ "driver does not start", driver_refuses, "driver_refused" },
	{ "nouveau", nouveau, "nouveau" },
	{ "module not loaded", not_loaded, "driver_missing" },
	{ "libraries missing", no_library, "library_missing" },
	{ "no card", no_card, "no_card" },
	{ "card lost", lost_card, "card_lost" },
	{ "device file closed", forbidden, "device_permission" },
	{ "nvidia-uvm missing", no_uvm, "device_missing" },
	{ "MIG", mig, "mig" },
	{ "MIG without instances", mig_empty, "mig_empty" },
	{ "MIG pending", mig_pending, "mig_pending" },
	{ "ECC errors", ecc_uncorrected, "ecc_uncorrected" },
	{ "corrected ECC errors", ecc_corrected, "ecc_corrected" },
	{ "ECC pending", ecc_pending, "ecc_pending" },
	{ "row pending", row_pending, "memory_pending" },
	{ "row failed", row_failed, "memory_failed" },
	{ "compute mode", prohibited, "compute_prohibited" },
	{ "persistence off", persistence_off, "persistence" },
	{ "power cap", power_cap, "power_cap" },
	{ "hot", hot, "thermal" },
	{ "power brake", power_brake, "power_brake" },
	{ "display", display, "display" },
	{ "few lanes", few_lanes, "link" },
	{ "Xid", xid, "xid" },
	{ "unknown Xid", xid_unknown, "xid" },
	{ "orphan", orphan, "orphan" },
	{ "foreign process", foreign, "foreign_process" },
	{ "own process", own, "own_process" },
	{ "process that is not visible", unseen, "unseen_process" },
	{ "memory of nobody", unnamed, "memory_unnamed" },
	{ "toolkit newer than the driver", toolkit_newer, "toolkit_new" },
	{ "toolkit of another major number than torch", toolkit_major, "toolkit_torch" },
	{ "stub library", stub, "stubs" },
	{ "torch without CUDA", cpu_torch, "torch_cpu" },
	{ "torch for ROCm", rocm_torch, "torch_rocm" },
	{ "no torch", no_torch, "torch_missing" },
	{ "another NCCL", other_nccl, "package_version" },
	{ "no NCCL", no_nccl, "package_missing" },
	{ "another torchvision", other_vision, "package_version" },
	{ "two torches", two_torches, "torch_twice" },
	{ "CUDA_VISIBLE_DEVICES empty", hidden, "visible_none" },
	{ "CUDA_VISIBLE_DEVICES with no such number", hidden_by_number, "visible_unknown" },
	{ "CUDA_VISIBLE_DEVICES with no such name", hidden_by_name, "visible_unknown" },
	{ "cards that differ", mixed_cards, "device_order" },
	{ "launches that wait", blocking, "launch_blocking" },
	{ "no caching", uncached, "no_caching" },
	{ "unknown allocator setting", unknown_setting, "allocator_unknown" },
	{ "allocator setting of a later release", later_setting, "allocator_unknown" },
	{ "wrong value of an allocator setting", wrong_value, "allocator_value" },
	{ "the variable of a later release", later_name, "allocator_variable" },
	{ "/dev/shm full", shm_full, "shm_full" },
	{ "/dev/shm small", shm_small, "shm_small" },
	{ "few files", few_files, "few_files" },
	{ "locked memory", memlock, "memlock" },
	{ "address space", address_space, "address_space" },
	{ "few processes", few_processes, "few_processes" },
	{ "control group smaller than the card", small_group, "cgroup_memory" },
	{ "control group full", full_group, "cgroup_near" },
	{ "programs ended in the control group", killed_group, "cgroup_killed" },
	{ "control group of version 1", older_group, "cgroup_memory" },
	{ "host memory low", no_host_memory, "host_memory_low" },
	{ "no overcommit", no_overcommit, "overcommit" },
	{ "WSL", wsl, "wsl" },
	{ "WSL 1", wsl_1, "wsl_device" },
};

/* The ids of what was found, most serious first, apart by blanks. */
static void
list_found(const struct tn_diagnosis *diagnosis, char *text, size_t capacity)
{
	size_t length = 0;
	text[0] = '\0';
	for (int level = TN_LEVEL_ERROR; level >= TN_LEVEL_HINT; level--)
		for (size_t i = 0; i < diagnosis->count; i++)
			if ((int)diagnosis->facts[i].level == level)
				length += (size_t)snprintf(text + length, capacity - length, "%s%s", length > 0 ? " " : "",
				                           diagnosis->facts[i].id);
}

static void
examine(struct tn_diagnosis *diagnosis)
{
	assert_int_equal(tn__doctor_examine(&machine, diagnosis), TN_OK);
	drop("");
}

static void
start(void)
{
	make_healthy();
	machine = fake_machine();
}

static void
test_each_fault_is_named_alone(void **state)
{
	static struct tn_diagnosis diagnosis;
	char found[512];
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		start();
		faults[i].put_in();
		examine(&diagnosis);
		list_found(&diagnosis, found, sizeof(found));
		if (strcmp(found, faults[i].found) != 0)
			fail_msg("%s: found \"%s\", not \"%s\"", faults[i].name, found, faults[i].found);
		for (size_t j = 0; j < diagnosis.count; j++) /* nothing is named without what follows and what to do */
			if (diagnosis.facts[j].level != TN_LEVEL_FINE &&
			    (!diagnosis.facts[j].meaning || !diagnosis.facts[j].remedy))
				fail_msg("%s: no meaning or remedy", diagnosis.facts[j].id);
		tn__diagnosis_free(&diagnosis);
	}
}

static const struct tn_fact *
fact_of(const struct tn_diagnosis *diagnosis, const char *id)
{
	for (size_t i = 0; i < diagnosis->count; i++)
		if (strcmp(diagnosis->facts[i].id, id) == 0)
			return &diagnosis->facts[i];
	fail_msg("no fact %s", id);
	return NULL;
}

/* Whose it is, since when, and in which container; and no secret of its command line. */
static void
test_process_is_told_whole(void **state)
{
	static struct tn_diagnosis diagnosis;
	start();
	foreign();
	put("/proc/4242/cgroup", "0::/system.slice/docker-0123456789abcdef0123456789abcdef.scope\n");
	setenv("TZ", "UTC", 1);
	examine(&diagnosis);
	const struct tn_fact *fact = fact_of(&diagnosis, "foreign_process");
	assert_non_null(strstr(
		fact->what, "20.00 GiB: process 4242 of anna in container 0123456789ab, since 2023-11-14 23:13: python"));
	assert_null(strstr(fact->what, "sk-abcdef"));
	assert_int_equal(diagnosis.processes[0].since, STARTED + 3600);
	tn__diagnosis_free(&diagnosis);
}

/* The second card is named by a beginning of its UUID; one that both have names none. */
static void
test_uuids(void **state)
{
	static struct tn_diagnosis diagnosis;
	static const struct {
		const char *pair, *found;
	} cases[] = { { "CUDA_VISIBLE_DEVICES=GPU-11115", "" },
		          { "CUDA_VISIBLE_DEVICES=1, 0", "" },
		          { "CUDA_VISIBLE_DEVICES=GPU-1111", "visible_unknown" },
		          { "CUDA_VISIBLE_DEVICES=0x1", "visible_unknown" },
		          { "CUDA_VISIBLE_DEVICES=0,", "visible_unknown" },
		          { "CUDA_VISIBLE_DEVICES=-1", "visible_none" } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char found[128];
		start();
		fake.count = 2;
		fake.names[1] = fake.names[0] + 0;
		set_variable(cases[i].pair);
		examine(&diagnosis);
		list_found(&diagnosis, found, sizeof(found));
		assert_string_equal(found, cases[i].found);
		tn__diagnosis_free(&diagnosis);
	}
}

/* Settings that this torch knows, in every form that it takes, are no finding. */
static void
test_known_settings(void **state)
{
	static struct tn_diagnosis diagnosis;
	char found[128];
	start();
	set_variable("PYTORCH_CUDA_ALLOC_CONF= max_split_size_mb : 128, roundup_power2_divisions:[256:1,512:2,>:8], "
	             "garbage_collection_threshold:0.8,backend:cudaMallocAsync,");
	examine(&diagnosis);
	list_found(&diagnosis, found, sizeof(found));
	assert_string_equal(found, "");
	tn__diagnosis_free(&diagnosis);
}

static void
test_python_that_is_not_there(void **state)
{
	static struct tn_diagnosis diagnosis;
	start();
	machine.python = "/nowhere/python";
	assert_int_equal(tn__doctor_examine(&machine, &diagnosis), TN_NOT_FOUND);
	drop("");
}

/* ---- damaged files ---- */

static void
overwrite(const char *path, unsigned seed)
{
	char whole[256];
	snprintf(whole, sizeof(whole), "%s%s", fake_root, path);
	FILE *file = fopen(whole, "rb");
	static char bytes[1 << 16];
	size_t size = file != NULL ? fread(bytes, 1, sizeof(bytes), file) : 0;
	if (file != NULL)
		fclose(file);
	for (unsigned i = 0; i < 1 + seed % 7 && size > 0; i++) {
		seed = seed * 1103515245u + 12345u;
		bytes[(seed >> 8) % size] = (char)(seed >> 20);
	}
	size = seed % 3 == 0 ? (seed >> 4) % (size + 1) : size;
	file = fopen(whole, "wb");
	if (file == NULL)
		abort();
	fwrite(bytes, 1, size, file);
	fclose(file);
}

/* Bytes changed and files cut, again and again: an answer each time, and no fault (the sanitizers look on). */
static void
test_damaged_files(void **state)
{
	static struct tn_diagnosis diagnosis;
	static const char *const paths[] = {
		"/sys/module/nvidia/version",
		"/proc/driver/nvidia/version",
		"/proc/sys/kernel/osrelease",
		"/proc/stat",
		"/proc/meminfo",
		"/proc/self/status",
		"/proc/self/cgroup",
		"/proc/self/limits",
		"/sys/fs/cgroup/user.slice/memory.max",
		"/dev/kmsg",
		"/etc/passwd",
		"/usr/local/cuda/version.json",
		"/proc/4242/stat",
		"/proc/4242/status",
		"/proc/4242/cmdline",
		PACKAGES "/torch/version.py",
		PACKAGES "/torch/lib/libtorch_cuda.so",
		PACKAGES "/torch/lib/libc10_cuda.so",
		PACKAGES "/torch-2.6.0+cu124.dist-info/METADATA",
		"/sys/bus/pci/devices/0000:01:00.0/vendor",
	};
	start();
	orphan();
	xid();
	set_variable("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:[,::]],garbage_collection_threshold:nan");
	for (unsigned round = 0; round < 60; round++)
		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
			overwrite(paths[i], round * 31 + (unsigned)i);
			if (i % 5 == 0 && tn__doctor_examine(&machine, &diagnosis) == TN_OK)
				tn__diagnosis_free(&diagnosis);
		}
	drop("");
}

/* ---- screens ---- */

static void
check_screen(const char *name, int columns)
{
	static struct tn_diagnosis diagnosis;
	char path[512], *text = NULL;
	size_t size = 0;
	setenv("TZ", "UTC", 1);
	examine(&diagnosis);
	FILE *out = open_memstream(&text, &size);
	assert_int_equal(tn__diagnosis_text(&(struct tn_shown_diagnosis){ .diagnosis = &diagnosis },
	                                    (struct tn_style){ .columns = columns }, out),
	                 TN_OK);
	fclose(out);
	tn__diagnosis_free(&diagnosis);
	snprintf(path, sizeof(path), TN_GOLDEN "/%s.txt", name);
	if (getenv("TN_GOLDEN_WRITE") != NULL) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(text, file);
		fclose(file);
	}
	FILE *file = fopen(path, "r");
	static char expected[16384];
	assert_non_null(file);
	expected[fread(expected, 1, sizeof(expected) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(text, expected);
	free(text);
}

static void
test_screens(void **state)
{
	start();
	check_screen("healthy-80", 80);
	start();
	no_card();
	machine.python = NULL;
	drop("/usr/local/cuda");
	check_screen("no-card-80", 80);
	start();
	fake.count = 2;
	fake.driver_cuda = 12020;
	orphan();
	xid();
	unknown_setting();
	persistence_off();
	shm_small();
	hidden_by_number();
	check_screen("many-80", 80);
	start();
	wsl();
	unnamed();
	check_screen("wsl-100", 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_fault_is_named_alone),
		cmocka_unit_test(test_process_is_told_whole),
		cmocka_unit_test(test_uuids),
		cmocka_unit_test(test_known_settings),
		cmocka_unit_test(test_python_that_is_not_there),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_screens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
