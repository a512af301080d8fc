/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of the environment that change what a CUDA program sees and does
 * (https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "doctor/checks.h"

/* The card that an entry names: its number, or a beginning of its UUID that is no other card's. -1: none. A MIG instance is taken
 * as its name says. */
static int
card_of(const struct tn_diagnosis *out, const char *entry, size_t length)
{
	int found = -1, matches = 0;
	if (length >= 4 && strncmp(entry, "MIG-", 4) == 0)
		return 0;
	if (length >= 1 && entry[0] >= '0' && entry[0] <= '9') {
		char *end;
		long number = strtol(entry, &end, 10);
		return end == entry + length && number < (long)out->card_count ? (int)number : -1;
	}
	for (size_t i = 0; i < out->card_count && length > 4; i++)
		if (strncasecmp(out->cards[i].uuid, entry, length) == 0) {
			found = (int)i;
			matches++;
		}
	return matches == 1 ? found : -1;
}

static void
none_visible(struct tn_diagnosis *out, const char *value)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_ERROR, "visible_none", -1,
	                                "CUDA_VISIBLE_DEVICES=\"%s\" hides every card", value);
	tn__fact_meaning(out, fact, "torch.cuda.is_available() is False.");
	tn__fact_remedy(out, fact, "unset CUDA_VISIBLE_DEVICES, or set it to a card's number (CUDA_VISIBLE_DEVICES=0).");
}

static void
entry_unknown(struct tn_diagnosis *out, const char *value, const char *entry, size_t length, bool first)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_ERROR, "visible_unknown", -1,
	                                "CUDA_VISIBLE_DEVICES=%s: there is no card \"%.*s\"", value, (int)length, entry);
	tn__fact_meaning(out, fact,
	                 first ? "CUDA reads the list up to there, so that no card is visible."
	                       : "CUDA reads the list up to there: cards after it are not visible.");
	if (out->card_count == 1)
		tn__fact_remedy(out, fact, "The only card here is number 0.");
	else
		tn__fact_remedy(out, fact, "Cards here have the numbers 0 to %zu; nvidia-smi -L lists their UUIDs.",
		                out->card_count - 1);
}

void
tn__check_visible(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	const char *value = tn__variable(machine, "CUDA_VISIBLE_DEVICES");
	if (value == NULL)
		return;
	if (value[strspn(value, " ")] == '\0' || strncmp(value, "-1", 2) == 0 || strcmp(value, "NoDevFiles") == 0) {
		none_visible(out, value);
		return;
	}
	if (out->card_count == 0)
		return; /* what it names cannot be told */
	for (const char *at = value;;) {
		at += strspn(at, " ");
		size_t length = strcspn(at, ","), whole = length;
		while (length > 0 && at[length - 1] == ' ')
			length--;
		if (card_of(out, at, length) < 0) {
			entry_unknown(out, value, at, length, at == value);
			return;
		}
		if (at[whole] == '\0')
			break;
		at += whole + 1;
	}
	tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_FINE, "visible", -1,
	         "CUDA_VISIBLE_DEVICES=%s: programs see these, numbered from 0", value);
}

/* CUDA numbers the fastest card first unless told otherwise, nvidia-smi by bus. */
static void
check_order(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	bool mixed = false;
	for (size_t i = 1; i < out->card_count; i++)
		mixed |= strcmp(out->cards[i].name, out->cards[0].name) != 0;
	if (!mixed || tn__variable(machine, "CUDA_DEVICE_ORDER") != NULL)
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_HINT, "device_order", -1,
	                                "The cards differ, and CUDA_DEVICE_ORDER is not set");
	tn__fact_meaning(out, fact,
	                 "CUDA counts the fastest card first: cuda:0 need not be card 0 of nvidia-smi and of this list.");
	tn__fact_remedy(out, fact, "export CUDA_DEVICE_ORDER=PCI_BUS_ID makes the numbers the same.");
}

static void
check_switch(const struct tn_machine *machine, struct tn_diagnosis *out, const char *name, enum tn_level level,
             const char *id, const char *meaning)
{
	const char *value = tn__variable(machine, name);
	if (value == NULL || value[0] == '\0' || strcmp(value, "0") == 0)
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, level, id, -1, "%s=%s is set", name, value);
	tn__fact_meaning(out, fact, "%s", meaning);
	tn__fact_remedy(out, fact, "unset %s, unless you are looking for an error.", name);
}

void
tn__check_settings(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	check_order(machine, out);
	check_switch(machine, out, "CUDA_LAUNCH_BLOCKING", TN_LEVEL_HINT, "launch_blocking",
	             "The program waits for each kernel: errors are named where they happen, but steps take longer.");
	check_switch(machine, out, "PYTORCH_NO_CUDA_MEMORY_CACHING", TN_LEVEL_WARNING, "no_caching",
	             "Every tensor is a cudaMalloc and a cudaFree of its own: steps take far longer.");
	check_switch(machine, out, "PYTORCH_NO_HIP_MEMORY_CACHING", TN_LEVEL_HINT, "no_caching",
	             "Every tensor is an allocation of its own: steps take far longer.");
}
