/* SPDX-License-Identifier: Apache-2.0
 *
 * nvidia-smi of a virtual run: many programs call it to list cards or to read how much memory is free.
 *
 * A client of NVML's documented API like any other, so that its figures are those of the run's ledger. Field names,
 * formats and exit statuses are those of NVIDIA's nvidia-smi documentation. What a virtual card does not have reads
 * "[N/A]", as on a card without a sensor. Knows nothing of the run itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "smi/query_fields.h"

/* Exit statuses of the documentation. */
enum { OK = 0, BAD_ARGUMENT = 2, NOT_AVAILABLE = 3, NO_DRIVER = 9 };

enum { MOST_FIELDS = 64 };

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
is_chosen(const struct options *options, const struct tn_smi_card *card)
{
	char uuid[TN_SMI_TEXT] = "", bus[TN_SMI_TEXT] = "", index[16];
	struct tn_smi_value value = { "", NULL };
	if (options->ids == NULL)
		return true;
	tn__smi_ask_text(card->handle, "nvmlDeviceGetUUID", uuid);
	tn__smi_read(card, "pci.bus_id", &value);
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
	for (size_t i = 0; i < tn__smi_card_count; i++) {
		char name[TN_SMI_TEXT] = "[N/A]", uuid[TN_SMI_TEXT] = "[N/A]";
		if (!is_chosen(options, &tn__smi_cards[i]))
			continue;
		tn__smi_ask_text(tn__smi_cards[i].handle, "nvmlDeviceGetName", name);
		tn__smi_ask_text(tn__smi_cards[i].handle, "nvmlDeviceGetUUID", uuid);
		printf("GPU %u: %s (UUID: %s)\n", tn__smi_cards[i].index, name, uuid);
	}
}

static void
print_value(const struct options *options, const struct tn_smi_value *value, bool last)
{
	bool unit = value->unit != NULL && options->units;
	printf("%s%s%s%s", value->text, unit ? " " : "", unit ? value->unit : "", last ? "\n" : ", ");
}

static int
query_cards(const struct options *options)
{
	const struct tn_smi_field *wanted[MOST_FIELDS];
	for (size_t i = 0; i < options->name_count; i++)
		if ((wanted[i] = tn__smi_find_field(options->names[i])) == NULL)
			return complain(BAD_ARGUMENT, "Field \"%s\" is not a valid field to query.", options->names[i]);
	for (size_t i = 0; i < options->name_count && options->header; i++) {
		const char *unit = options->units ? tn__smi_unit(wanted[i]) : NULL;
		printf("%s%s%s%s%s", options->names[i], unit != NULL ? " [" : "", unit != NULL ? unit : "",
		       unit != NULL ? "]" : "", i + 1 < options->name_count ? ", " : "\n");
	}
	for (size_t i = 0; i < tn__smi_card_count; i++) {
		if (!is_chosen(options, &tn__smi_cards[i]))
			continue;
		for (size_t j = 0; j < options->name_count; j++) {
			struct tn_smi_value value = { "[N/A]", NULL };
			wanted[j]->read(&tn__smi_cards[i], wanted[j]->argument, &value);
			print_value(options, &value, j + 1 == options->name_count);
		}
	}
	return OK;
}

static int
query_processes(const struct options *options)
{
	struct tn_smi_process processes[TN_SMI_PROCESSES], none = { 0, 0, 0, 0 };
	struct tn_smi_card nothing = { 0 };
	struct tn_smi_value value;
	for (size_t i = 0; i < options->name_count; i++)
		if (!tn__smi_process_value(tn__smi_card_count > 0 ? &tn__smi_cards[0] : &nothing, &none, options->names[i],
		                           &value))
			return complain(BAD_ARGUMENT, "Field \"%s\" is not a valid field to query.", options->names[i]);
	for (size_t i = 0; i < options->name_count && options->header; i++) {
		bool memory = strncmp(options->names[i], "used_", 5) == 0 && options->units;
		printf("%s%s%s", options->names[i], memory ? " [MiB]" : "", i + 1 < options->name_count ? ", " : "\n");
	}
	for (size_t i = 0; i < tn__smi_card_count; i++) {
		size_t count = is_chosen(options, &tn__smi_cards[i]) ? tn__smi_processes(&tn__smi_cards[i], processes) : 0;
		for (size_t p = 0; p < count; p++)
			for (size_t j = 0; j < options->name_count; j++) {
				tn__smi_process_value(&tn__smi_cards[i], &processes[p], options->names[j], &value);
				print_value(options, &value, j + 1 == options->name_count);
			}
	}
	return OK;
}

#define RULE "+-----------------------------------------------------------------------------------------+\n"
#define THICK "+=========================================+========================+======================+\n"
#define THIN "+-----------------------------------------+------------------------+----------------------+\n"

static void
print_card(const struct tn_smi_card *card)
{
	char name[TN_SMI_TEXT] = "[N/A]", memory[2 * TN_SMI_TEXT];
	struct tn_smi_value bus = { "[N/A]", NULL }, used = { "N/A", NULL }, rate = { "N/A", NULL }, heat = { "N/A", NULL };
	struct tn_smi_value state = { "N/A", NULL };
	tn__smi_ask_text(card->handle, "nvmlDeviceGetName", name);
	tn__smi_read(card, "pci.bus_id", &bus);
	tn__smi_read(card, "utilization.gpu", &rate);
	tn__smi_read(card, "temperature.gpu", &heat);
	tn__smi_read(card, "pstate", &state);
	tn__smi_read(card, "memory.used", &used);
	snprintf(memory, sizeof(memory), "%sMiB / %" PRIu64 "MiB", used.text, card->memory.total / TN_SMI_MIB);
	printf("| %3u  %-34.34s | %22.22s | %20s |\n", card->index, name, bus.text, "");
	printf("| N/A  %3.3s%c  %4.4s %23s | %22.22s | %6.6s%%%13s |\n", heat.text, heat.text[0] == 'N' ? ' ' : 'C',
	       state.text, "", memory, rate.text, "Default");
	fputs(THIN, stdout);
}

static void
print_table(void)
{
	struct tn_smi_process processes[TN_SMI_PROCESSES];
	char driver[TN_SMI_TEXT], cuda[TN_SMI_TEXT], name[TN_SMI_TEXT];
	tn__smi_cuda_version(cuda);
	fputs(RULE, stdout);
	printf("| NVIDIA-SMI of Tonnage (virtual)   Driver Version: %-16s CUDA Version: %-6s |\n",
	       tn__smi_driver_version(driver), cuda);
	fputs(THIN, stdout);
	printf("| GPU  Name                               | Bus-Id                 | Volatile Uncorr. ECC |\n");
	printf("| Fan  Temp   Perf                        |           Memory-Usage | GPU-Util  Compute M. |\n");
	fputs(THICK, stdout);
	for (size_t i = 0; i < tn__smi_card_count; i++)
		print_card(&tn__smi_cards[i]);
	printf("\n" RULE "| Processes:                                                                              |\n");
	printf("| %4s %10s   Type   %-46s  %12s   |\n" RULE, "GPU", "PID", "Process name", "GPU Memory");
	size_t shown = 0;
	for (size_t i = 0; i < tn__smi_card_count; i++) {
		size_t count = tn__smi_processes(&tn__smi_cards[i], processes);
		for (size_t p = 0; p < count; p++, shown++)
			printf("| %4u %10u      C   %-46.46s  %9" PRIu64 "MiB   |\n", tn__smi_cards[i].index, processes[p].pid,
			       tn__smi_process_name(processes[p].pid, name), processes[p].used / TN_SMI_MIB);
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
			return complain(BAD_ARGUMENT, "%s",
			                "\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.");
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
	     "    nvidia-smi --query-compute-apps=FIELD,... --format=csv[,noheader][,nounits]\n");
	tn__smi_print_fields();
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
			return complain(NOT_AVAILABLE,
			                "nvidia-smi of a Tonnage run does not have the option %s; -h lists what it has.", words[i]);
	}
	if (!tn__smi_open())
		return complain(NO_DRIVER, "%s",
		                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.");
	int status = run_once(&options);
	while (status == OK && options.loop_ms > 0) {
		fflush(stdout);
		usleep(options.loop_ms * 1000);
		tn__smi_refresh();
		status = run_once(&options);
	}
	return status;
}
