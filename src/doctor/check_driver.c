/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver: is there a card on the bus, which module drives it, and does NVML answer with the same version.
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/checks.h"

#define PCI "/sys/bus/pci/devices"

/* What the bus says: NVIDIA's display and 3D controllers (class 03), and what drives the first of them. */
struct bus {
	const struct tn_machine *machine;
	int cards;
	char first[32], driven_by[32];
};

static bool
look_at_device(void *context, const char *name)
{
	struct bus *bus = context;
	char vendor[16], class[16], target[256];
	if (!tn__read_line(bus->machine, vendor, sizeof(vendor), PCI "/%s/vendor", name) || strcmp(vendor, "0x10de") != 0 ||
	    !tn__read_line(bus->machine, class, sizeof(class), PCI "/%s/class", name) || strncmp(class, "0x03", 4) != 0)
		return true;
	if (bus->cards++ > 0)
		return true;
	snprintf(bus->first, sizeof(bus->first), "%.31s", name);
	char path[320];
	snprintf(path, sizeof(path), PCI "/%.200s/driver", name);
	char *whole = tn__rooted(bus->machine, path);
	ssize_t length = whole != NULL ? readlink(whole, target, sizeof(target) - 1) : -1;
	if (length > 0) {
		target[length] = '\0';
		snprintf(bus->driven_by, sizeof(bus->driven_by), "%.31s", basename(target));
	}
	free(whole);
	return true;
}

/* The module's version: /sys says it alone, /proc in a line such as "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15". */
static void
read_module(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	char line[256];
	if (tn__read_line(machine, out->driver, sizeof(out->driver), "/sys/module/nvidia/version"))
		return;
	if (!tn__read_line(machine, line, sizeof(line), "/proc/driver/nvidia/version"))
		return;
	char *rest = line;
	for (char *word = strtok_r(line, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
		if (tn__version_number(word) >= 100 * 1000 && strchr(word, '.') != NULL) {
			snprintf(out->driver, sizeof(out->driver), "%.47s", word);
			return;
		}
	}
}

static void
no_card(struct tn_diagnosis *out)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_WARNING, "no_card", -1,
	                                out->container ? "No NVIDIA card is visible in this container"
	                                               : "This machine has no NVIDIA card");
	tn__fact_meaning(out, fact, "CUDA programs do not run here: torch.cuda.is_available() is False.");
	tn__fact_remedy(out, fact,
	                "%sWithout a card, tonnage run --gpu rtx3060 -- python train.py says whether a program fits one.",
	                out->container ? "Start the container with its cards: docker run --gpus all. " : "");
}

/* A card that no module of NVIDIA's drives. */
static void
not_driven(const struct tn_machine *machine, struct tn_diagnosis *out, const struct bus *bus)
{
	struct tn_fact *fact;
	if (strcmp(bus->driven_by, "nouveau") == 0 || tn__exists(machine, "/sys/module/nouveau")) {
		fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "nouveau", -1, "nouveau drives the card at %s",
		                bus->first);
		tn__fact_meaning(out, fact, "nouveau has no CUDA, and NVIDIA's driver does not load beside it.");
		tn__fact_remedy(out, fact,
		                "Install NVIDIA's driver, keep nouveau from loading (\"blacklist nouveau\" in a file of "
		                "/etc/modprobe.d), and restart.");
		return;
	}
	if (strncmp(bus->driven_by, "vfio", 4) == 0) {
		fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "card_given_away", -1,
		                "The card at %s is given to a virtual machine (%s)", bus->first, bus->driven_by);
		tn__fact_meaning(out, fact, "This system cannot use it.");
		tn__fact_remedy(out, fact, "Run the program in that machine, or give the card back to the nvidia driver.");
		return;
	}
	fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "driver_missing", -1,
	                "The card at %s has no driver: the module nvidia is not loaded", bus->first);
	tn__fact_meaning(out, fact,
	                 "No CUDA program finds the card. After a new kernel the module is often not built for it.");
	tn__fact_remedy(out, fact,
	                "sudo modprobe nvidia says why; install the driver, or build it again (dkms autoinstall).");
}

static void
no_library(struct tn_diagnosis *out)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "library_missing", -1,
	                                "libnvidia-ml.so.1, a library of the driver, is not found here");
	tn__fact_meaning(out, fact, "The cards cannot be asked, and libcuda.so.1 is probably missing, too.");
	if (out->container)
		tn__fact_remedy(out, fact,
		                "Start the container with --gpus all, and with utility and compute among "
		                "NVIDIA_DRIVER_CAPABILITIES.");
	else
		tn__fact_remedy(out, fact, "Install the driver's libraries, of the module's version (%s).",
		                out->driver[0] != '\0' ? out->driver : "see /proc/driver/nvidia/version");
}

static void
mismatch(struct tn_diagnosis *out, const char *library)
{
	bool known = library[0] != '\0' && out->driver[0] != '\0';
	struct tn_fact *fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "driver_mismatch", -1,
	                                known ? "The loaded driver module is %s, the driver's libraries are %s"
	                                      : "The driver's module (%s) and its libraries (%s) are of different versions",
	                                known ? out->driver : "version unknown", known ? library : "version unknown");
	tn__fact_meaning(out, fact, "The driver was replaced while it ran. Programs that start now find no card.");
	tn__fact_remedy(out, fact, "Restart the machine (in a container: the container).");
}

/* Not among nvml.h's reasons that have words of their own. */
static void
refused(struct tn_diagnosis *out, int status)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "driver_refused", -1,
	                                "The driver does not start (NVML's error %d%s)", status,
	                                status == TN_NVML_NO_PERMISSION       ? ", no permission"
	                                : status == TN_NVML_DRIVER_NOT_LOADED ? ", driver not loaded"
	                                : status == TN_NVML_LOST              ? ", a card is lost"
	                                                                      : "");
	tn__fact_meaning(out, fact, "No CUDA program can use a card until it does.");
	tn__fact_remedy(out, fact, "sudo dmesg | grep NVRM says why; a restart often helps.");
}

static void
driver_fact(const struct tn_machine *machine, struct tn_diagnosis *out, const char *library)
{
	if (out->driver[0] == '\0')
		snprintf(out->driver, sizeof(out->driver), "%.47s", library);
	int cuda = 0;
	if (tn__nvml_system(machine->nvml, "nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0 && cuda > 0)
		out->driver_cuda = cuda;
	if (out->driver_cuda > 0)
		tn__fact(out, TN_PART_DRIVER, TN_LEVEL_FINE, "driver", -1, "Driver %s, for CUDA up to %d.%d",
		         out->driver[0] != '\0' ? out->driver : "of unknown version", cuda / 1000, cuda % 1000 / 10);
	else
		tn__fact(out, TN_PART_DRIVER, TN_LEVEL_FINE, "driver", -1, "Driver %s",
		         out->driver[0] != '\0' ? out->driver : "of unknown version");
}

static void
ask_library(const struct tn_machine *machine, struct tn_diagnosis *out, const struct bus *bus)
{
	char library[48] = "";
	int status = tn__nvml_start(machine->nvml);
	if (status == TN_NVML_MISMATCH) {
		tn__nvml_system_text(machine->nvml, "nvmlSystemGetNVMLVersion", library, sizeof(library));
		const char *dot = strchr(library, '.'); /* "12.570.86.15": NVML's own number first */
		mismatch(out, dot != NULL ? dot + 1 : library);
		return;
	}
	if (status == TN_NVML_DRIVER_NOT_LOADED && bus->cards == 0 && !out->wsl) {
		no_card(out);
		return;
	}
	if (status != 0) {
		refused(out, status);
		return;
	}
	tn__nvml_system_text(machine->nvml, "nvmlSystemGetDriverVersion", library, sizeof(library));
	if (out->driver[0] != '\0' && library[0] != '\0' && strcmp(out->driver, library) != 0)
		mismatch(out, library);
	else
		driver_fact(machine, out, library);
}

void
tn__check_driver(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	struct bus bus = { .machine = machine };
	tn__each_name(machine, PCI, look_at_device, &bus);
	read_module(machine, out);
	bool loaded = out->driver[0] != '\0' || tn__exists(machine, "/proc/driver/nvidia/version") || out->wsl;
	if (bus.cards > 0 && !loaded && machine->nvml == NULL)
		not_driven(machine, out, &bus);
	else if (bus.cards > 0 && !loaded && strcmp(bus.driven_by, "nvidia") != 0)
		not_driven(machine, out, &bus);
	else if (machine->nvml != NULL)
		ask_library(machine, out, &bus);
	else if (loaded && (bus.cards > 0 || out->driver[0] != '\0'))
		no_library(out);
	else
		no_card(out);
}
