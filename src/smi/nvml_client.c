/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/nvml_client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct tn_smi_card tn__smi_cards[TN_SMI_CARDS];
size_t tn__smi_card_count;

static void *library;

int
tn__smi_ask(tn_smi_device device, const char *name, void *structure)
{
	int (*function)(tn_smi_device, void *) = (int (*)(tn_smi_device, void *))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(device, structure) : 3;
}

int
tn__smi_ask_text(tn_smi_device device, const char *name, char text[TN_SMI_TEXT])
{
	int (*function)(tn_smi_device, char *,
	                unsigned) = (int (*)(tn_smi_device, char *, unsigned))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(device, text, TN_SMI_TEXT) : 3;
}

int
tn__smi_ask_kind(tn_smi_device device, const char *name, int kind, unsigned *number)
{
	int (*function)(tn_smi_device, int, unsigned *) = (int (*)(tn_smi_device, int, unsigned *))(uintptr_t)dlsym(library,
	                                                                                                            name);
	return function != NULL ? function(device, kind, number) : 3;
}

int
tn__smi_ask_pair(tn_smi_device device, const char *name, void *first, void *second)
{
	int (*function)(tn_smi_device, void *, void *) = (int (*)(tn_smi_device, void *, void *))(uintptr_t)dlsym(library,
	                                                                                                          name);
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
ask_system_text(const char *name, char text[TN_SMI_TEXT])
{
	int (*function)(char *, unsigned) = (int (*)(char *, unsigned))(uintptr_t)dlsym(library, name);
	return function != NULL ? function(text, TN_SMI_TEXT) : 3;
}

static int
ask_process_name(unsigned pid, char text[TN_SMI_TEXT])
{
	int (*function)(unsigned, char *, unsigned) = (int (*)(unsigned, char *, unsigned))(uintptr_t)dlsym(
		library, "nvmlSystemGetProcessName");
	return function != NULL ? function(pid, text, TN_SMI_TEXT) : 3;
}

static int
ask_handle(unsigned index, tn_smi_device *device)
{
	int (*function)(unsigned, tn_smi_device *) = (int (*)(unsigned, tn_smi_device *))(uintptr_t)dlsym(
		library, "nvmlDeviceGetHandleByIndex_v2");
	return function != NULL ? function(index, device) : 3;
}

static bool
initialise(void)
{
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*function)(void) = library != NULL ? (int (*)(void))(uintptr_t)dlsym(library, "nvmlInit_v2") : NULL;
	return function != NULL && function() == 0;
}

static void
read_memory(struct tn_smi_card *card)
{
	card->memory_known = tn__smi_ask(card->handle, "nvmlDeviceGetMemoryInfo", &card->memory) == 0;
}

bool
tn__smi_open(void)
{
	unsigned count = 0;
	if (!initialise() || ask_system("nvmlDeviceGetCount_v2", &count) != 0)
		return false;
	for (unsigned i = 0; i < count && tn__smi_card_count < TN_SMI_CARDS; i++) {
		struct tn_smi_card *card = &tn__smi_cards[tn__smi_card_count];
		if (ask_handle(i, &card->handle) != 0)
			continue;
		card->index = i;
		read_memory(card);
		tn__smi_card_count++;
	}
	return true;
}

void
tn__smi_refresh(void)
{
	for (size_t i = 0; i < tn__smi_card_count; i++)
		read_memory(&tn__smi_cards[i]);
}

const char *
tn__smi_driver_version(char text[TN_SMI_TEXT])
{
	return ask_system_text("nvmlSystemGetDriverVersion", text) == 0 ? text : "[N/A]";
}

void
tn__smi_cuda_version(char text[TN_SMI_TEXT])
{
	int version = 0;
	strcpy(text, "[N/A]");
	if (ask_system("nvmlSystemGetCudaDriverVersion_v2", &version) == 0)
		snprintf(text, TN_SMI_TEXT, "%d.%d", version / 1000, version % 1000 / 10);
}

size_t
tn__smi_processes(const struct tn_smi_card *card, struct tn_smi_process *out)
{
	unsigned count = TN_SMI_PROCESSES;
	return tn__smi_ask_pair(card->handle, "nvmlDeviceGetComputeRunningProcesses_v3", &count, out) == 0 ? count : 0;
}

const char *
tn__smi_process_name(unsigned pid, char text[TN_SMI_TEXT])
{
	return ask_process_name(pid, text) == 0 ? text : "[Not Found]";
}
