/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/query_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* NVML's nvmlUtilization_t and nvmlPciInfo_t. */
struct nvml_utilization {
	unsigned gpu, memory;
};
struct nvml_pci {
	char bus_id_short[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

static void
take_count(struct tn_smi_value *value, int status, uint64_t number, const char *unit)
{
	if (status != 0)
		return;
	snprintf(value->text, TN_SMI_TEXT, "%" PRIu64, number);
	value->unit = unit;
}

static void
read_text(const struct tn_smi_card *card, const char *function, struct tn_smi_value *value)
{
	char text[TN_SMI_TEXT];
	if (tn__smi_ask_text(card->handle, function, text) == 0)
		snprintf(value->text, TN_SMI_TEXT, "%s", text);
}

static void
read_index(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	take_count(value, 0, card->index, NULL);
}

static void
read_total_count(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	take_count(value, 0, tn__smi_card_count, NULL);
}

static void
read_driver(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	char text[TN_SMI_TEXT];
	snprintf(value->text, TN_SMI_TEXT, "%s", tn__smi_driver_version(text));
}

static void
read_timestamp(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	struct timespec now;
	struct tm local;
	char text[TN_SMI_TEXT];
	clock_gettime(CLOCK_REALTIME, &now);
	if (localtime_r(&now.tv_sec, &local) != NULL && strftime(text, sizeof(text), "%Y/%m/%d %H:%M:%S", &local) > 0)
		snprintf(value->text, TN_SMI_TEXT, "%.32s.%03ld", text, now.tv_nsec / 1000000);
}

static void
read_memory(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	uint64_t bytes = strcmp(argument, "total") == 0  ? card->memory.total
	                 : strcmp(argument, "used") == 0 ? card->memory.used
	                                                 : card->memory.free;
	take_count(value, card->memory_known ? 0 : 3, bytes / TN_SMI_MIB, "MiB");
}

static void
read_utilization(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	struct nvml_utilization rates = { 0, 0 };
	int status = tn__smi_ask(card->handle, "nvmlDeviceGetUtilizationRates", &rates);
	take_count(value, status, strcmp(argument, "gpu") == 0 ? rates.gpu : rates.memory, "%");
}

static void
read_capability(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	int major, minor;
	if (tn__smi_ask_pair(card->handle, "nvmlDeviceGetCudaComputeCapability", &major, &minor) == 0)
		snprintf(value->text, TN_SMI_TEXT, "%d.%d", major, minor);
}

static void
read_bus_id(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	struct nvml_pci pci;
	if (tn__smi_ask(card->handle, "nvmlDeviceGetPciInfo_v3", &pci) == 0)
		snprintf(value->text, TN_SMI_TEXT, "%s", pci.bus_id);
}

static void
read_temperature(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	unsigned celsius = 0;
	int status = tn__smi_ask_kind(card->handle, "nvmlDeviceGetTemperature", 0, &celsius);
	take_count(value, status, celsius, NULL);
}

static void
read_fan(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	unsigned speed = 0;
	int status = tn__smi_ask(card->handle, "nvmlDeviceGetFanSpeed", &speed);
	take_count(value, status, speed, "%");
}

/* `argument` is a function that gives milliwatts. */
static void
read_power(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	unsigned milliwatts = 0;
	if (tn__smi_ask(card->handle, argument, &milliwatts) != 0)
		return;
	snprintf(value->text, TN_SMI_TEXT, "%u.%02u", milliwatts / 1000, milliwatts % 1000 / 10);
	value->unit = "W";
}

static void
read_state(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	unsigned state;
	if (tn__smi_ask(card->handle, "nvmlDeviceGetPerformanceState", &state) == 0)
		snprintf(value->text, TN_SMI_TEXT, "P%u", state);
}

/* `argument` is a function that gives 0 or 1. */
static void
read_switch(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	unsigned on;
	if (tn__smi_ask(card->handle, argument, &on) == 0)
		snprintf(value->text, TN_SMI_TEXT, "%s", on != 0 ? "Enabled" : "Disabled");
}

/* `argument` is the number of a clock: 0 graphics, 1 SM, 2 memory. */
static void
read_clock(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	unsigned mhz = 0;
	int status = tn__smi_ask_kind(card->handle, "nvmlDeviceGetClockInfo", atoi(argument), &mhz);
	take_count(value, status, mhz, "MHz");
}

static void
read_max_clock(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	unsigned mhz = 0;
	int status = tn__smi_ask_kind(card->handle, "nvmlDeviceGetMaxClockInfo", atoi(argument), &mhz);
	take_count(value, status, mhz, "MHz");
}

static void
read_name(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value)
{
	read_text(card, argument, value);
}

static const struct tn_smi_field fields[] = {
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
enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

const char *
tn__smi_unit(const struct tn_smi_field *field)
{
	struct tn_smi_value value = { "", NULL };
	if (tn__smi_card_count > 0)
		field->read(&tn__smi_cards[0], field->argument, &value);
	return value.unit;
}

const struct tn_smi_field *
tn__smi_find_field(const char *name)
{
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (strcmp(fields[i].name, name) == 0 ||
		    (fields[i].other_name != NULL && strcmp(fields[i].other_name, name) == 0))
			return &fields[i];
	return NULL;
}

void
tn__smi_read(const struct tn_smi_card *card, const char *name, struct tn_smi_value *value)
{
	const struct tn_smi_field *field = tn__smi_find_field(name);
	field->read(card, field->argument, value);
}

bool
tn__smi_process_value(const struct tn_smi_card *card, const struct tn_smi_process *process, const char *field,
                      struct tn_smi_value *value)
{
	char text[TN_SMI_TEXT];
	strcpy(value->text, "[N/A]");
	value->unit = NULL;
	if (strcmp(field, "pid") == 0)
		take_count(value, 0, process->pid, NULL);
	else if (strcmp(field, "process_name") == 0 || strcmp(field, "name") == 0)
		snprintf(value->text, TN_SMI_TEXT, "%s", tn__smi_process_name(process->pid, text));
	else if (strcmp(field, "used_memory") == 0 || strcmp(field, "used_gpu_memory") == 0)
		take_count(value, process->used == UINT64_MAX ? 3 : 0, process->used / TN_SMI_MIB, "MiB");
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

void
tn__smi_print_fields(void)
{
	puts("Fields of --query-gpu:");
	for (size_t i = 0; i < FIELD_COUNT; i++)
		printf("    %s%s%s\n", fields[i].name, fields[i].other_name != NULL ? " or " : "",
		       fields[i].other_name != NULL ? fields[i].other_name : "");
	puts("Fields of --query-compute-apps: timestamp, pid, process_name, used_memory, gpu_uuid, gpu_name, gpu_bus_id");
}
