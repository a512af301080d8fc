/* SPDX-License-Identifier: Apache-2.0
 *
 * nvidia-smi of a virtual run: many programs call it to list cards or to read how much memory is free.
 *
 * A client of NVML's documented API like any other (NVIDIA NVML API Reference): it opens libnvidia-ml.so.1, which in a run is
 * the virtual one, so that its figures are those of the run's ledger. Field names, formats and exit statuses are those of
 * NVIDIA's nvidia-smi documentation. What a virtual card does not have reads "[N/A]", as on a card without a sensor.
 * Knows nothing of the run itself.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Exit statuses of the documentation. */
enum { OK = 0, BAD_ARGUMENT = 2, NOT_AVAILABLE = 3, NO_DRIVER = 9 };

enum { MOST_CARDS = 64, MOST_PROCESSES = 256, MOST_FIELDS = 64, TEXT = 128 };
#define MIB ((uint64_t)1 << 20)

/* ---- NVML ---- */

typedef void *nvml_device;
struct nvml_memory {
	uint64_t total, free, used;
};
struct nvml_utilization {
	unsigned gpu, memory;
};
struct nvml_pci {
	char bus_id_short[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};
struct nvml_process {
	unsigned pid;
	uint64_t used;
	unsigned gpu_instance, compute_instance;
};

static void *library;

/* The functions of NVML by their shapes. Each returns NVML's status; 3 (not supported) where the library has no
 * function of that name. */

static int
ask(nvml_device device, const char *name, void *structure)
{
	int (*function)(nvml_device, void *) = (int (*)(nvml_device, void *))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(device, structure) : 3;
}

static int
ask_text(nvml_device device, const char *name, char text[TEXT])
{
	int (*function)(nvml_device, char *, unsigned) =
		(int (*)(nvml_device, char *, unsigned))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(device, text, TEXT) : 3;
}

static int
ask_kind(nvml_device device, const char *name, int kind, unsigned *number)
{
	int (*function)(nvml_device, int, unsigned *) =
		(int (*)(nvml_device, int, unsigned *))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(device, kind, number) : 3;
}

static int
ask_pair(nvml_device device, const char *name, void *first, void *second)
{
	int (*function)(nvml_device, void *, void *) = (int (*)(nvml_device, void *, void *))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(device, first, second) : 3;
}

/* Of the system: a number, or a text about a number. */
static int
ask_system(const char *name, void *number)
{
	int (*function)(void *) = (int (*)(void *))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(number) : 3;
}

static int
ask_system_text(const char *name, char text[TEXT])
{
	int (*function)(char *, unsigned) = (int (*)(char *, unsigned))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(text, TEXT) : 3;
}

static int
ask_process_name(unsigned pid, char text[TEXT])
{
	int (*function)(unsigned, char *, unsigned) =
		(int (*)(unsigned, char *, unsigned))(uintptr_t)dlsym(library, "nvmlSystemGetProcessName");
	return function != NULL ? function(pid, text, TEXT) : 3;
}

static int
ask_handle(unsigned index, nvml_device *device)
{
	int (*function)(unsigned, nvml_device *) =
		(int (*)(unsigned, nvml_device *))(uintptr_t)dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	return function != NULL ? function(index, device) : 3;
}

static bool
initialise(void)
{
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*function)(void) = library != NULL ? (int (*)(void))(uintptr_t)dlsym(library, "nvmlInit_v2") : NULL;
	return function != NULL && function() == 0;
}

struct card {
	nvml_device handle;
	unsigned index;
	struct nvml_memory memory;
	bool memory_known;
};

static struct card cards[MOST_CARDS];
static size_t card_count;

static bool
open_cards(void)
{
	unsigned count = 0;
	if (!initialise() || ask_system("nvmlDeviceGetCount_v2", &count) != 0)
		return false;
	for (unsigned i = 0; i < count && card_count < MOST_CARDS; i++) {
		struct card *card = &cards[card_count];
		if (ask_handle(i, &card->handle) != 0)
			continue;
		card->index = i;
		card->memory_known = ask(card->handle, "nvmlDeviceGetMemoryInfo", &card->memory) == 0;
		card_count++;
	}
	return true;
}

static const char *
driver_version(char text[TEXT])
{
	return ask_system_text("nvmlSystemGetDriverVersion", text) == 0 ? text : "[N/A]";
}

static void
cuda_version(char text[TEXT])
{
	int version = 0;
	strcpy(text, "[N/A]");
	if (ask_system("nvmlSystemGetCudaDriverVersion_v2", &version) == 0)
		snprintf(text, TEXT, "%d.%d", version / 1000, version % 1000 / 10);
}

/* ---- fields of --query-gpu ---- */

/* One value of a card as text, with its unit where it has one and `units` is set. */
struct value {
	char text[TEXT];
	const char *unit; /* NULL: none */
};

typedef void reader(const struct card *card, const char *argument, struct value *value);

static void
take_count(struct value *value, int status, uint64_t number, const char *unit)
{
	if (status != 0)
		return;
	snprintf(value->text, TEXT, "%" PRIu64, number);
	value->unit = unit;
}

static void
read_text(const struct card *card, const char *function, struct value *value)
{
	char text[TEXT];
	if (ask_text(card->handle, function, text) == 0)
		snprintf(value->text, TEXT, "%s", text);
}

static void
read_index(const struct card *card, const char *argument, struct value *value)
{
	take_count(value, 0, card->index, NULL);
}

static void
read_total_count(const struct card *card, const char *argument, struct value *value)
{
	take_count(value, 0, card_count, NULL);
}

static void
read_driver(const struct card *card, const char *argument, struct value *value)
{
	char text[TEXT];
	snprintf(value->text, TEXT, "%s", driver_version(text));
}

static void
read_timestamp(const struct card *card, const char *argument, struct value *value)
{
	struct timespec now;
	struct tm local;
	char text[TEXT];
	clock_gettime(CLOCK_REALTIME, &now);
	if (localtime_r(&now.tv_sec, &local) != NULL && strftime(text, sizeof(text), "%Y/%m/%d %H:%M:%S", &local) > 0)
		snprintf(value->text, TEXT, "%.32s.%03ld", text, now.tv_nsec / 1000000);
}

static void
read_memory(const struct card *card, const char *argument, struct value *value)
{
	uint64_t bytes = strcmp(argument, "total") == 0  ? card->memory.total
	                 : strcmp(argument, "used") == 0 ? card->memory.used
	                                                 : card->memory.free;
	take_count(value, card->memory_known ? 0 : 3, bytes / MIB, "MiB");
}

static void
read_utilization(const struct card *card, const char *argument, struct value *value)
{
	struct nvml_utilization rates = {0, 0};
	int status = ask(card->handle, "nvmlDeviceGetUtilizationRates", &rates);
	take_count(value, status, strcmp(argument, "gpu") == 0 ? rates.gpu : rates.memory, "%");
}

static void
read_capability(const struct card *card, const char *argument, struct value *value)
{
	int major, minor;
	if (ask_pair(card->handle, "nvmlDeviceGetCudaComputeCapability", &major, &minor) == 0)
		snprintf(value->text, TEXT, "%d.%d", major, minor);
}

static void
read_bus_id(const struct card *card, const char *argument, struct value *value)
{
	struct nvml_pci pci;
	if (ask(card->handle, "nvmlDeviceGetPciInfo_v3", &pci) == 0)
		snprintf(value->text, TEXT, "%s", pci.bus_id);
}

static void
read_temperature(const struct card *card, const char *argument, struct value *value)
{
	unsigned celsius = 0;
	take_count(value, ask_kind(card->handle, "nvmlDeviceGetTemperature", 0, &celsius), celsius, NULL);
}

static void
read_fan(const struct card *card, const char *argument, struct value *value)
{
	unsigned speed = 0;
	take_count(value, ask(card->handle, "nvmlDeviceGetFanSpeed", &speed), speed, "%");
}

/* `argument` is a function that gives milliwatts. */
static void
read_power(const struct card *card, const char *argument, struct value *value)
{
	unsigned milliwatts = 0;
	if (ask(card->handle, argument, &milliwatts) != 0)
		return;
	snprintf(value->text, TEXT, "%u.%02u", milliwatts / 1000, milliwatts % 1000 / 10);
	value->unit = "W";
}

static void
read_state(const struct card *card, const char *argument, struct value *value)
{
	unsigned state;
	if (ask(card->handle, "nvmlDeviceGetPerformanceState", &state) == 0)
		snprintf(value->text, TEXT, "P%u", state);
}

/* `argument` is a function that gives 0 or 1. */
static void
read_switch(const struct card *card, const char *argument, struct value *value)
{
	unsigned on;
	if (ask(card->handle, argument, &on) == 0)
		snprintf(value->text, TEXT, "%s", on != 0 ? "Enabled" : "Disabled");
}

/* `argument` is the number of a clock: 0 graphics, 1 SM, 2 memory. */
static void
read_clock(const struct card *card, const char *argument, struct value *value)
{
	unsigned mhz = 0;
	take_count(value, ask_kind(card->handle, "nvmlDeviceGetClockInfo", atoi(argument), &mhz), mhz, "MHz");
}

static void
read_max_clock(const struct card *card, const char *argument, struct value *value)
{
	unsigned mhz = 0;
	take_count(value, ask_kind(card->handle, "nvmlDeviceGetMaxClockInfo", atoi(argument), &mhz), mhz, "MHz");
}

static void
read_name(const struct card *card, const char *argument, struct value *value)
{
	read_text(card, argument, value);
}

static const struct field {
	const char *name, *other_name, *argument;
	reader *read;
} fields[] = {
	{ "timestamp", NULL, NULL, read_timestamp },
	{ "driver_version", NULL, NULL, read_driver },
	{ "count", NULL, NULL, read_total_count },
	{ "name", "gpu_name", "nvmlDeviceGetName", read_name },
	{ "serial", "gpu_serial", "nvmlDeviceGetSerial", read_name },
	{ "uuid", "gpu_uuid", "nvmlDeviceGetUUID", read_name },
	{ "index", NULL, NULL, read_index },
	{ "pci.bus_id", "gpu_bus_id", NULL, read_bus_id },
	{ "compute_cap", NULL, NULL, read_capability },
	{ "display_mode", NULL, "nvmlDeviceGetDisplayMode", read_switch },
	{ "display_active", NULL, "nvmlDeviceGetDisplayActive", read_switch },
	{ "persistence_mode", NULL, "nvmlDeviceGetPersistenceMode", read_switch },
	{ "fan.speed", NULL, NULL, read_fan },
	{ "pstate", NULL, NULL, read_state },
	{ "memory.total", NULL, "total", read_memory },
	{ "memory.used", NULL, "used", read_memory },
	{ "memory.free", NULL, "free", read_memory },
	{ "utilization.gpu", NULL, "gpu", read_utilization },
	{ "utilization.memory", NULL, "memory", read_utilization },
	{ "temperature.gpu", NULL, NULL, read_temperature },
	{ "power.draw", NULL, "nvmlDeviceGetPowerUsage", read_power },
	{ "power.limit", NULL, "nvmlDeviceGetPowerManagementLimit", read_power },
	{ "enforced.power.limit", NULL, "nvmlDeviceGetEnforcedPowerLimit", read_power },
	{ "clocks.gr", "clocks.current.graphics", "0", read_clock },
	{ "clocks.sm", "clocks.current.sm", "1", read_clock },
	{ "clocks.mem", "clocks.current.memory", "2", read_clock },
	{ "clocks.max.gr", "clocks.max.graphics", "0", read_max_clock },
	{ "clocks.max.sm", NULL, "1", read_max_clock },
	{ "clocks.max.mem", "clocks.max.memory", "2", read_max_clock },
};

static const char *
unit_of(const struct field *field)
{
	struct value value = { "", NULL };
	if (card_count > 0)
		field->read(&cards[0], field->argument, &value);
	return value.unit;
}

static const struct field *
find_field(const char *name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(fields[i].name, name) == 0 || (fields[i].other_name != NULL && strcmp(fields[i].other_name, name) == 0))
			return &fields[i];
	return NULL;
}

/* ---- options ---- */

struct options {
	bool list, gpu, processes;
	char *names[MOST_FIELDS]; /* of the fields */
	size_t name_count;
	bool csv, header, units;
	const char *ids; /* NULL: all cards */
	unsigned loop_ms;
};

static int
complain(int status, const char *format, const char *word)
{
	printf(format, word);
	putchar('\n');
	return status;
}

static void
split(char *words, char **out, size_t *count)
{
	char *rest = NULL;
	for (char *word = strtok_r(words, ",", &rest); word != NULL && *count < MOST_FIELDS;
	     word = strtok_r(NULL, ",", &rest))
		out[(*count)++] = word + strspn(word, " ");
}

/* "csv,noheader,nounits" */
static void
read_format(struct options *options, char *words)
{
	char *parts[MOST_FIELDS];
	size_t count = 0;
	split(words, parts, &count);
	for (size_t i = 0; i < count; i++) {
		options->csv = options->csv || strcmp(parts[i], "csv") == 0;
		options->header = options->header && strcmp(parts[i], "noheader") != 0;
		options->units = options->units && strcmp(parts[i], "nounits") != 0;
	}
}

/* The value of an option: behind its "=", or the next word. NULL when there is none. */
static char *
value_of(int *at, int count, char **words)
{
	char *equals = words[*at][1] == '-' ? strchr(words[*at], '=') : NULL;
	if (equals != NULL)
		return equals + 1;
	return *at + 1 < count ? words[++*at] : NULL;
}

static bool
is(const char *word, const char *name, const char *letter)
{
	size_t length = strlen(name);
	return (letter != NULL && strcmp(word, letter) == 0) ||
	       (strncmp(word, name, length) == 0 && (word[length] == '\0' || word[length] == '='));
}

/* Takes one option; false when it is none that is served. */
static bool
read_option(struct options *options, int *at, int count, char **words)
{
	const char *word = words[*at];
	if (is(word, "--list-gpus", "-L"))
		return options->list = true;
	bool gpu = is(word, "--query-gpu", NULL);
	if (!gpu && !is(word, "--query-compute-apps", NULL) && !is(word, "--format", NULL) && !is(word, "--id", "-i") &&
	    !is(word, "--loop", "-l") && !is(word, "--loop-ms", "-lms"))
		return false;
	char *value = value_of(at, count, words);
	if (value == NULL)
		return false;
	if (is(word, "--format", NULL)) {
		read_format(options, value);
	} else if (is(word, "--id", "-i")) {
		options->ids = value;
	} else if (is(word, "--loop", "-l")) {
		options->loop_ms = (unsigned)atoi(value) * 1000;
	} else if (is(word, "--loop-ms", "-lms")) {
		options->loop_ms = (unsigned)atoi(value);
	} else {
		options->gpu = gpu;
		options->processes = !gpu;
		split(value, options->names, &options->name_count);
	}
	return true;
}

/* ---- output ---- */

static bool
is_chosen(const struct options *options, const struct card *card)
{
	char uuid[TEXT] = "", bus[TEXT] = "", index[16];
	struct value value = { "", NULL };
	if (options->ids == NULL)
		return true;
	ask_text(card->handle, "nvmlDeviceGetUUID", uuid);
	read_bus_id(card, NULL, &value);
	snprintf(bus, sizeof(bus), "%s", value.text);
	snprintf(index, sizeof(index), "%u", card->index);
	char *copy = strdup(options->ids), *words[MOST_FIELDS];
	size_t count = 0;
	bool chosen = false;
	if (copy != NULL)
		split(copy, words, &count);
	for (size_t i = 0; i < count; i++)
		chosen = chosen || strcmp(words[i], index) == 0 || strcmp(words[i], uuid) == 0 || strcmp(words[i], bus) == 0;
	free(copy);
	return chosen;
}

static void
list_cards(const struct options *options)
{
	for (size_t i = 0; i < card_count; i++) {
		char name[TEXT] = "[N/A]", uuid[TEXT] = "[N/A]";
		if (!is_chosen(options, &cards[i]))
			continue;
		ask_text(cards[i].handle, "nvmlDeviceGetName", name);
		ask_text(cards[i].handle, "nvmlDeviceGetUUID", uuid);
		printf("GPU %u: %s (UUID: %s)\n", cards[i].index, name, uuid);
	}
}

static void
print_value(const struct options *options, const struct value *value, bool last)
{
	bool unit = value->unit != NULL && options->units;
	printf("%s%s%s%s", value->text, unit ? " " : "", unit ? value->unit : "", last ? "\n" : ", ");
}

static int
query_cards(const struct options *options)
{
	const struct field *wanted[MOST_FIELDS];
	for (size_t i = 0; i < options->name_count; i++)
		if ((wanted[i] = find_field(options->names[i])) == NULL)
			return complain(BAD_ARGUMENT, "Field \"%s\" is not a valid field to query.", options->names[i]);
	for (size_t i = 0; i < options->name_count && options->header; i++) {
		const char *unit = options->units ? unit_of(wanted[i]) : NULL;
		printf("%s%s%s%s%s", options->names[i], unit != NULL ? " [" : "", unit != NULL ? unit : "", unit != NULL ? "]" : "",
		       i + 1 < options->name_count ? ", " : "\n");
	}
	for (size_t i = 0; i < card_count; i++) {
		if (!is_chosen(options, &cards[i]))
			continue;
		for (size_t j = 0; j < options->name_count; j++) {
			struct value value = { "[N/A]", NULL };
			wanted[j]->read(&cards[i], wanted[j]->argument, &value);
			print_value(options, &value, j + 1 == options->name_count);
		}
	}
	return OK;
}

static size_t
processes_of(const struct card *card, struct nvml_process *out)
{
	unsigned count = MOST_PROCESSES;
	return ask_pair(card->handle, "nvmlDeviceGetComputeRunningProcesses_v3", &count, out) == 0 ? count : 0;
}

static const char *
process_name(unsigned pid, char text[TEXT])
{
	return ask_process_name(pid, text) == 0 ? text : "[Not Found]";
}

/* One value of a process; false for an unknown field. */
static bool
process_value(const struct card *card, const struct nvml_process *process, const char *field, struct value *value)
{
	char text[TEXT];
	strcpy(value->text, "[N/A]");
	value->unit = NULL;
	if (strcmp(field, "pid") == 0)
		take_count(value, 0, process->pid, NULL);
	else if (strcmp(field, "process_name") == 0 || strcmp(field, "name") == 0)
		snprintf(value->text, TEXT, "%s", process_name(process->pid, text));
	else if (strcmp(field, "used_memory") == 0 || strcmp(field, "used_gpu_memory") == 0)
		take_count(value, process->used == UINT64_MAX ? 3 : 0, process->used / MIB, "MiB");
	else if (strcmp(field, "gpu_uuid") == 0)
		read_text(card, "nvmlDeviceGetUUID", value);
	else if (strcmp(field, "gpu_name") == 0)
		read_text(card, "nvmlDeviceGetName", value);
	else if (strcmp(field, "gpu_bus_id") == 0)
		read_bus_id(card, NULL, value);
	else if (strcmp(field, "timestamp") == 0)
		read_timestamp(card, NULL, value);
	else
		return false;
	return true;
}

static int
query_processes(const struct options *options)
{
	struct nvml_process processes[MOST_PROCESSES], none = {0, 0, 0, 0};
	struct card nothing = {0};
	struct value value;
	for (size_t i = 0; i < options->name_count; i++)
		if (!process_value(card_count > 0 ? &cards[0] : &nothing, &none, options->names[i], &value))
			return complain(BAD_ARGUMENT, "Field \"%s\" is not a valid field to query.", options->names[i]);
	for (size_t i = 0; i < options->name_count && options->header; i++) {
		bool memory = strncmp(options->names[i], "used_", 5) == 0 && options->units;
		printf("%s%s%s", options->names[i], memory ? " [MiB]" : "", i + 1 < options->name_count ? ", " : "\n");
	}
	for (size_t i = 0; i < card_count; i++) {
		size_t count = is_chosen(options, &cards[i]) ? processes_of(&cards[i], processes) : 0;
		for (size_t p = 0; p < count; p++)
			for (size_t j = 0; j < options->name_count; j++) {
				process_value(&cards[i], &processes[p], options->names[j], &value);
				print_value(options, &value, j + 1 == options->name_count);
			}
	}
	return OK;
}

#define RULE "+-----------------------------------------------------------------------------------------+\n"
#define THICK "+=========================================+========================+======================+\n"
#define THIN "+-----------------------------------------+------------------------+----------------------+\n"

static void
print_card(const struct card *card)
{
	char name[TEXT] = "[N/A]", memory[2 * TEXT];
	struct value bus = { "[N/A]", NULL }, used = { "N/A", NULL }, rate = { "N/A", NULL }, heat = { "N/A", NULL };
	struct value state = { "N/A", NULL };
	ask_text(card->handle, "nvmlDeviceGetName", name);
	read_bus_id(card, NULL, &bus);
	read_utilization(card, "gpu", &rate);
	read_temperature(card, NULL, &heat);
	read_state(card, NULL, &state);
	read_memory(card, "used", &used);
	snprintf(memory, sizeof(memory), "%sMiB / %" PRIu64 "MiB", used.text, card->memory.total / MIB);
	printf("| %3u  %-34.34s | %22.22s | %20s |\n", card->index, name, bus.text, "");
	printf("| N/A  %3.3s%c  %4.4s %23s | %22.22s | %6.6s%%%13s |\n", heat.text, heat.text[0] == 'N' ? ' ' : 'C',
	       state.text, "", memory, rate.text, "Default");
	fputs(THIN, stdout);
}

static void
print_table(void)
{
	struct nvml_process processes[MOST_PROCESSES];
	char driver[TEXT], cuda[TEXT], name[TEXT];
	cuda_version(cuda);
	fputs(RULE, stdout);
	printf("| NVIDIA-SMI of Tonnage (virtual)   Driver Version: %-16s CUDA Version: %-6s |\n", driver_version(driver), cuda);
	fputs(THIN, stdout);
	printf("| GPU  Name                               | Bus-Id                 | Volatile Uncorr. ECC |\n");
	printf("| Fan  Temp   Perf                        |           Memory-Usage | GPU-Util  Compute M. |\n");
	fputs(THICK, stdout);
	for (size_t i = 0; i < card_count; i++)
		print_card(&cards[i]);
	printf("\n" RULE "| Processes:                                                                              |\n");
	printf("| %4s %10s   Type   %-46s  %12s   |\n" RULE, "GPU", "PID", "Process name", "GPU Memory");
	size_t shown = 0;
	for (size_t i = 0; i < card_count; i++) {
		size_t count = processes_of(&cards[i], processes);
		for (size_t p = 0; p < count; p++, shown++)
			printf("| %4u %10u      C   %-46.46s  %9" PRIu64 "MiB   |\n", cards[i].index, processes[p].pid,
			       process_name(processes[p].pid, name), processes[p].used / MIB);
	}
	if (shown == 0)
		printf("|  No running processes found                                                             |\n");
	fputs(RULE, stdout);
}

static int
run_once(const struct options *options)
{
	if (options->list) {
		list_cards(options);
		return OK;
	}
	if (options->gpu || options->processes) {
		if (!options->csv)
			return complain(BAD_ARGUMENT, "%s", "\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.");
		return options->gpu ? query_cards(options) : query_processes(options);
	}
	print_table();
	return OK;
}

static void
print_help(void)
{
	puts("nvidia-smi of a Tonnage run: the virtual GPUs and how much of their memory is used.\n\n"
	     "    nvidia-smi [-i ID,...] [-l SECONDS | -lms MILLISECONDS]\n"
	     "    nvidia-smi -L\n"
	     "    nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits]\n"
	     "    nvidia-smi --query-compute-apps=FIELD,... --format=csv[,noheader][,nounits]\n\n"
	     "Fields of --query-gpu:");
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		printf("    %s%s%s\n", fields[i].name, fields[i].other_name != NULL ? " or " : "",
		       fields[i].other_name != NULL ? fields[i].other_name : "");
	puts("Fields of --query-compute-apps: timestamp, pid, process_name, used_memory, gpu_uuid, gpu_name, gpu_bus_id");
}

int
main(int count, char **words)
{
	struct options options = { .header = true, .units = true };
	for (int i = 1; i < count; i++) {
		if (is(words[i], "--help", "-h")) {
			print_help();
			return OK;
		}
		if (is(words[i], "--version", NULL)) {
			printf("NVIDIA-SMI of Tonnage %s\n", TONNAGE_VERSION);
			return OK;
		}
		if (!read_option(&options, &i, count, words))
			return complain(NOT_AVAILABLE, "nvidia-smi of a Tonnage run does not have the option %s; -h lists what it has.",
			                words[i]);
	}
	if (!open_cards())
		return complain(NO_DRIVER, "%s", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.");
	int status = run_once(&options);
	while (status == OK && options.loop_ms > 0) {
		fflush(stdout);
		usleep(options.loop_ms * 1000);
		for (size_t i = 0; i < card_count; i++)
			cards[i].memory_known = ask(cards[i].handle, "nvmlDeviceGetMemoryInfo", &cards[i].memory) == 0;
		status = run_once(&options);
	}
	return status;
}
