/* SPDX-License-Identifier: Apache-2.0
 *
 * The cards as NVML describes them (NVIDIA NVML API Reference). libnvidia-ml.so.1 is opened by its name, which in a
 * run is the virtual one. Knows nothing of options, fields or output.
 */
#ifndef TN_SMI_NVML_CLIENT_H
#define TN_SMI_NVML_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_SMI_TEXT = 128, TN_SMI_CARDS = 64, TN_SMI_PROCESSES = 256 };
#define TN_SMI_MIB ((uint64_t)1 << 20)

typedef void *tn_smi_device;

/* NVML's nvmlMemory_t and nvmlProcessInfo_t. */
struct tn_smi_memory {
	uint64_t total, free, used;
};
struct tn_smi_process {
	unsigned pid;
	uint64_t used;
	unsigned gpu_instance, compute_instance;
};

struct tn_smi_card {
	tn_smi_device handle;
	unsigned index;
	struct tn_smi_memory memory;
	bool memory_known;
};

extern struct tn_smi_card tn__smi_cards[TN_SMI_CARDS];
extern size_t tn__smi_card_count;

/* Opens NVML and fills the cards; false where there is no driver. */
bool tn__smi_open(void);

/* Reads the memory of each card again. */
void tn__smi_refresh(void);

/* The functions of NVML by their shapes. Each returns NVML's status; 3 (not supported) where the library has no
 * function of that name. */
int tn__smi_ask(tn_smi_device device, const char *name, void *structure);
int tn__smi_ask_text(tn_smi_device device, const char *name, char text[TN_SMI_TEXT]);
int tn__smi_ask_kind(tn_smi_device device, const char *name, int kind, unsigned *number);
int tn__smi_ask_pair(tn_smi_device device, const char *name, void *first, void *second);

const char *tn__smi_driver_version(char text[TN_SMI_TEXT]);
void tn__smi_cuda_version(char text[TN_SMI_TEXT]);

/* The processes that have memory on a card: at most TN_SMI_PROCESSES. */
size_t tn__smi_processes(const struct tn_smi_card *card, struct tn_smi_process *out);
const char *tn__smi_process_name(unsigned pid, char text[TN_SMI_TEXT]);

#endif
