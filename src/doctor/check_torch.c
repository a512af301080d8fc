/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Python's torch can do on the cards of this machine.
 *
 * Minimum drivers: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html (table 1). Which code runs
 * on which card: CUDA C++ Programming Guide, "Compute Capability" (code of a major number runs on cards of the same and an equal
 * or higher minor number; PTX is compiled for any later card).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/checks.h"

int
tn__oldest_driver(int cuda_major)
{
	return cuda_major == 11 ? 450 : cuda_major == 12 ? 525 : cuda_major == 13 ? 580 : 0;
}

enum tn_kernels
tn__kernels_for(const struct tn_doctor_torch *torch, int major, int minor)
{
	enum tn_kernels best = TN_KERNELS_NONE;
	for (size_t i = 0; i < torch->architecture_count; i++) {
		const struct tn_doctor_architecture *row = &torch->architectures[i];
		if (!row->whole)
			continue;
		if (!row->ptx && row->number / 10 == major && row->number % 10 <= minor)
			return TN_KERNELS_OWN;
		if (row->ptx && row->number <= major * 10 + minor)
			best = TN_KERNELS_PTX;
	}
	return best;
}

/* "sm_75 sm_80 sm_86", with "PTX 9.0" for PTX. */
static void
list_architectures(const struct tn_doctor_torch *torch, char *text, size_t capacity)
{
	size_t length = 0;
	text[0] = '\0';
	for (size_t i = 0; i < torch->architecture_count && length + 16 < capacity; i++) {
		const struct tn_doctor_architecture *row = &torch->architectures[i];
		if (row->whole)
			length += (size_t)snprintf(text + length, capacity - length, "%s%s%d.%d", length > 0 ? ", " : "",
			                           row->ptx ? "PTX for " : "", row->number / 10, row->number % 10);
	}
}

static void
no_torch(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	if (out->torch.script) {
		tn__fact(out, TN_PART_TORCH, TN_LEVEL_FINE, "python_script", -1,
		         "%s is a script that starts some Python: --python PATH names the Python itself", machine->python);
		return;
	}
	if (!machine->python_named) {
		tn__fact(out, TN_PART_TORCH, TN_LEVEL_FINE, "torch_missing", -1,
		         "%s has no torch (--python PATH looks at another Python)", machine->python);
		return;
	}
	struct tn_fact *fact = tn__fact(out, TN_PART_TORCH, TN_LEVEL_WARNING, "torch_missing", -1, "%s has no torch",
	                                machine->python);
	tn__fact_meaning(out, fact, "A program that this Python runs cannot import it.");
	tn__fact_remedy(out, fact, "Name the Python of the environment that has it, or install torch there.");
}

static void
no_cuda(struct tn_diagnosis *out)
{
	const struct tn_doctor_torch *torch = &out->torch;
	struct tn_fact *fact = tn__fact(out, TN_PART_TORCH, TN_LEVEL_ERROR, torch->rocm ? "torch_rocm" : "torch_cpu", -1,
	                                "torch %s is built %s", torch->version,
	                                torch->rocm ? "for AMD cards (ROCm)" : "without CUDA");
	tn__fact_meaning(out, fact, "It does not use an NVIDIA card, whatever the driver.");
	tn__fact_remedy(out, fact, "Install the build for CUDA: https://pytorch.org/get-started/locally has the command.");
}

/* The driver against the wheel's CUDA. */
static void
check_driver(struct tn_diagnosis *out)
{
	const struct tn_doctor_torch *torch = &out->torch;
	int wanted = tn__version_number(torch->cuda),
		driver = out->driver_cuda / 1000 * 1000 + out->driver_cuda % 1000 / 10;
	int oldest = tn__oldest_driver(wanted / 1000), branch = tn__version_number(out->driver) / 1000;
	bool old = branch > 0 && oldest > 0 ? branch < oldest : driver > 0 && driver / 1000 < wanted / 1000;
	if (old && !out->wsl) {
		struct tn_fact *fact = tn__fact(out, TN_PART_TORCH, TN_LEVEL_ERROR, "driver_old", -1,
		                                "The driver (%s) is too old for this torch's CUDA %s", out->driver,
		                                torch->cuda);
		tn__fact_meaning(out, fact,
		                 "torch.cuda.is_available() is False: \"The NVIDIA driver on your system is too old\".");
		if (oldest > 0)
			tn__fact_remedy(out, fact, "Install driver %d or newer, or a torch built for an older CUDA.", oldest);
		else
			tn__fact_remedy(out, fact, "Install a newer driver, or a torch built for an older CUDA.");
	} else if (driver > 0 && driver < wanted) {
		tn__fact(out, TN_PART_TORCH, TN_LEVEL_FINE, "driver_minor", -1,
		         "The driver is for CUDA %d.%d, torch for %s: that works within one major number, but not with PTX",
		         driver / 1000, driver % 1000, torch->cuda);
	}
}

static void
check_kernels(struct tn_diagnosis *out, const struct tn_doctor_card *card)
{
	char list[256];
	enum tn_kernels kernels = tn__kernels_for(&out->torch, card->major, card->minor);
	int wanted = tn__version_number(out->torch.cuda),
		driver = out->driver_cuda / 1000 * 1000 + out->driver_cuda % 1000 / 10;
	list_architectures(&out->torch, list, sizeof(list));
	struct tn_fact *fact;
	if (kernels == TN_KERNELS_OWN) {
		tn__fact(out, TN_PART_TORCH, TN_LEVEL_FINE, "kernels", (int)card->index,
		         "torch has kernels for this card (%d.%d)", card->major, card->minor);
	} else if (kernels == TN_KERNELS_PTX && (driver == 0 || driver >= wanted)) {
		fact = tn__fact(out, TN_PART_TORCH, TN_LEVEL_HINT, "kernels_ptx", (int)card->index,
		                "torch has PTX, but no code for this card (%d.%d)", card->major, card->minor);
		tn__fact_meaning(out, fact,
		                 "The driver compiles each kernel when it is first used: the first start takes minutes.");
		tn__fact_remedy(
			out, fact,
			"A torch whose list has %d.%d starts at once; CUDA_CACHE_MAXSIZE=4294967296 keeps what was compiled.",
			card->major, card->minor);
	} else {
		fact = tn__fact(out, TN_PART_TORCH, TN_LEVEL_ERROR, "kernels_missing", (int)card->index,
		                "torch %s has no kernels for this card (%d.%d)", out->torch.version, card->major, card->minor);
		tn__fact_meaning(out, fact, "\"no kernel image is available for execution on the device\". It has: %s.", list);
		tn__fact_remedy(out, fact,
		                card->major * 10 + card->minor < out->torch.architectures[0].number
		                    ? "Install a torch built for an older CUDA, which still has this card."
		                    : "Install a newer torch, or one built for a newer CUDA.");
	}
}

static void
check_python_wish(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	const struct tn_doctor_torch *torch = &out->torch;
	char list[256];
	list_architectures(torch, list, sizeof(list));
	tn__fact(out, TN_PART_TORCH, TN_LEVEL_FINE, "torch", -1, "torch %s%s%s%s%s, in %s", torch->version,
	         torch->cuda[0] != '\0' ? " for CUDA " : "", torch->cuda, torch->python[0] != '\0' ? ", Python " : "",
	         torch->python, machine->python);
	if (list[0] != '\0')
		tn__fact(out, TN_PART_TORCH, TN_LEVEL_FINE, "architectures", -1, "Its kernels are for compute capability %s",
		         list);
}

void
tn__check_torch(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	if (machine->python == NULL)
		return;
	if (out->torch.packages == NULL) {
		no_torch(machine, out);
		return;
	}
	check_python_wish(machine, out);
	if (out->torch.cuda[0] == '\0') {
		no_cuda(out);
		return;
	}
	check_driver(out);
	for (size_t i = 0; i < out->card_count && out->torch.architecture_count > 0; i++)
		if (out->cards[i].major > 0)
			check_kernels(out, &out->cards[i]);
}
