/* SPDX-License-Identifier: Apache-2.0
 *
 * Each card: what it is, its modes, its limits. Numbers of modes and reasons are those of nvml.h (nvidia-ml-py: NVML_COMPUTEMODE_,
 * nvmlClocksEventReason, NVML_TEMPERATURE_THRESHOLD_).
 */
#include <stdio.h>
#include <string.h>

#include "base/figure.h"
#include "doctor/checks.h"

enum { MODE_PROHIBITED = 2, MODE_EXCLUSIVE_PROCESS = 3 };
enum { REASON_HW_SLOWDOWN = 0x08, REASON_SW_THERMAL = 0x20, REASON_HW_THERMAL = 0x40, REASON_POWER_BRAKE = 0x80 };
enum { SENSOR_GPU = 0, THRESHOLD_SLOWDOWN = 1 };

struct memory { /* nvmlMemory_t */
	unsigned long long total, free, used;
};
struct memory_v2 { /* nvmlMemory_v2_t: its size and version first, and apart what the driver keeps for itself */
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct pci { /* nvmlPciInfo_t */
	char short_bus[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

/* What an examination of one card hands around. */
struct look {
	const struct tn_nvml *nvml;
	struct tn_diagnosis *out;
	struct tn_doctor_card *card;
	void *device;
};

static bool
ask(const struct look *look, const char *name, unsigned *value)
{
	return tn__nvml_ask(look->nvml, look->device, name, value) == 0;
}

static int
number(const struct look *look)
{
	return (int)look->card->index;
}

static void
read_memory(const struct look *look)
{
	struct tn_doctor_card *card = look->card;
	struct memory_v2 newer = { .version = sizeof(newer) | 2u << 24 };
	struct memory older = { 0 };
	int status = tn__nvml_ask(look->nvml, look->device, "nvmlDeviceGetMemoryInfo_v2", &newer);
	if (status == 0) {
		card->memory_known = true;
		card->total = newer.total;
		card->available = newer.free;
		card->used = newer.used;
		return;
	}
	status = tn__nvml_ask(look->nvml, look->device, "nvmlDeviceGetMemoryInfo", &older);
	card->memory_known = status == 0;
	card->lost |= status == TN_NVML_LOST;
	card->total = older.total;
	card->available = older.free;
	card->used = older.used;
}

static void
read_identity(const struct look *look)
{
	struct tn_doctor_card *card = look->card;
	struct pci pci = { .bus_id = "" };
	int major = 0, minor = 0;
	card->lost |= tn__nvml_ask_text(look->nvml, look->device, "nvmlDeviceGetName", card->name, sizeof(card->name)) ==
	              TN_NVML_LOST;
	tn__nvml_ask_text(look->nvml, look->device, "nvmlDeviceGetUUID", card->uuid, sizeof(card->uuid));
	if (tn__nvml_ask(look->nvml, look->device, "nvmlDeviceGetPciInfo_v3", &pci) == 0)
		snprintf(card->bus, sizeof(card->bus), "%.31s", pci.bus_id);
	if (tn__nvml_ask_two(look->nvml, look->device, "nvmlDeviceGetCudaComputeCapability", &major, &minor) == 0) {
		card->major = major;
		card->minor = minor;
	}
	if (card->name[0] == '\0')
		snprintf(card->name, sizeof(card->name), "a card without a name");
}

static void
say_card(const struct look *look)
{
	const struct tn_doctor_card *card = look->card;
	char total[32], available[32], capability[48] = "";
	if (card->major > 0)
		snprintf(capability, sizeof(capability), ", compute capability %d.%d", card->major, card->minor);
	if (card->memory_known)
		tn__fact(look->out, TN_PART_CARD, TN_LEVEL_FINE, "card", number(look), "%s, %s (%s free)%s", card->name,
		         tn__human_bytes((int64_t)card->total, total), tn__human_bytes((int64_t)card->available, available),
		         capability);
	else
		tn__fact(look->out, TN_PART_CARD, TN_LEVEL_FINE, "card", number(look), "%s%s", card->name, capability);
}

static void
say_lost(struct tn_diagnosis *out, int card)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_CARD, TN_LEVEL_ERROR, "card_lost", card,
	                                "The card does not answer (it has fallen off the bus)");
	tn__fact_meaning(out, fact, "Programs that used it have failed; new ones do not find it, or hang.");
	tn__fact_remedy(out, fact,
	                "Restart the machine. If it happens again, look at power supply, seating and heat of the card.");
}

static void
check_mig(const struct look *look)
{
	unsigned now = 0, later = 0, most = 0, instances = 0;
	if (tn__nvml_ask_two(look->nvml, look->device, "nvmlDeviceGetMigMode", &now, &later) != 0)
		return;
	struct tn_fact *fact;
	if (now != later) {
		fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_WARNING, "mig_pending", number(look),
		                "MIG is %s, and will be %s after a reset of the card", now ? "on" : "off",
		                later ? "on" : "off");
		tn__fact_meaning(look->out, fact, "Until then the card is divided as it was.");
		tn__fact_remedy(look->out, fact, "End what runs on it, then sudo nvidia-smi -i %u --gpu-reset.",
		                look->card->index);
	}
	if (!now)
		return;
	look->card->mig = true;
	ask(look, "nvmlDeviceGetMaxMigDeviceCount", &most);
	for (unsigned i = 0; i < most && i < 64; i++) {
		void *instance = NULL;
		instances += tn__nvml_ask_kind(look->nvml, look->device, "nvmlDeviceGetMigDeviceHandleByIndex", (int)i,
		                               &instance) == 0;
	}
	if (instances == 0) {
		fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_ERROR, "mig_empty", number(look),
		                "MIG is on, without an instance");
		tn__fact_meaning(look->out, fact, "CUDA finds no device on this card.");
		tn__fact_remedy(look->out, fact,
		                "sudo nvidia-smi mig -i %u -cgi PROFILE -C makes one (-lgip lists profiles); "
		                "sudo nvidia-smi -i %u -mig 0 turns MIG off.",
		                look->card->index, look->card->index);
		return;
	}
	fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_HINT, "mig", number(look), "MIG is on, with %u instance%s",
	                instances, instances == 1 ? "" : "s");
	tn__fact_meaning(look->out, fact,
	                 "A program gets one instance and its memory, not the whole card; it cannot use two.");
	tn__fact_remedy(look->out, fact, "Choose one with CUDA_VISIBLE_DEVICES=MIG-... (nvidia-smi -L lists them).");
}

static void
check_persistence(const struct look *look)
{
	unsigned mode = 1;
	if (look->out->wsl || !ask(look, "nvmlDeviceGetPersistenceMode", &mode) || mode != 0)
		return;
	struct tn_fact *fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_HINT, "persistence", number(look),
	                                "Persistence mode is off");
	tn__fact_meaning(look->out, fact,
	                 "When no program uses the card it is shut down: the next one starts seconds later, and settings "
	                 "such as power limits are lost.");
	tn__fact_remedy(look->out, fact,
	                "On a server: sudo systemctl enable --now nvidia-persistenced (or sudo nvidia-smi -pm 1).");
}

static void
check_compute_mode(const struct look *look)
{
	unsigned mode = 0;
	if (!ask(look, "nvmlDeviceGetComputeMode", &mode) || (mode != MODE_PROHIBITED && mode != MODE_EXCLUSIVE_PROCESS))
		return;
	bool none = mode == MODE_PROHIBITED;
	struct tn_fact *fact = tn__fact(look->out, TN_PART_CARD, none ? TN_LEVEL_ERROR : TN_LEVEL_HINT,
	                                none ? "compute_prohibited" : "compute_exclusive", number(look),
	                                "Compute mode is %s", none ? "prohibited" : "exclusive process");
	tn__fact_meaning(look->out, fact,
	                 none ? "No program may use the card: \"all CUDA-capable devices are busy or unavailable\"."
	                      : "One program at a time: a second one finds the card busy.");
	tn__fact_remedy(look->out, fact, "sudo nvidia-smi -i %u -c DEFAULT lets every program use it.", look->card->index);
}

static void
check_power(const struct look *look)
{
	unsigned now = 0, limit = 0, usual = 0;
	bool known = ask(look, "nvmlDeviceGetPowerManagementLimit", &limit) &&
	             ask(look, "nvmlDeviceGetPowerManagementDefaultLimit", &usual) && usual > 0;
	if (known && (uint64_t)limit * 100 < (uint64_t)usual * 98) {
		struct tn_fact *fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_HINT, "power_cap", number(look),
		                                "The power limit is %u W, %u W are usual for this card", limit / 1000,
		                                usual / 1000);
		tn__fact_meaning(look->out, fact, "Under load the clocks are lower, so steps take longer.");
		tn__fact_remedy(look->out, fact, "If nobody wants it so: sudo nvidia-smi -i %u -pl %u.", look->card->index,
		                usual / 1000);
	} else if (known && ask(look, "nvmlDeviceGetPowerUsage", &now)) {
		tn__fact(look->out, TN_PART_CARD, TN_LEVEL_FINE, "power", number(look), "%u W of %u W", now / 1000,
		         limit / 1000);
	}
}

static void
check_heat(const struct look *look)
{
	unsigned celsius = 0, slowdown = 0;
	unsigned long long reasons = 0;
	bool warm = tn__nvml_ask_kind(look->nvml, look->device, "nvmlDeviceGetTemperature", SENSOR_GPU, &celsius) == 0;
	bool limit = tn__nvml_ask_kind(look->nvml, look->device, "nvmlDeviceGetTemperatureThreshold", THRESHOLD_SLOWDOWN,
	                               &slowdown) == 0;
	char at[48] = "";
	if (tn__nvml_ask(look->nvml, look->device, "nvmlDeviceGetCurrentClocksEventReasons", &reasons) != 0)
		tn__nvml_ask(look->nvml, look->device, "nvmlDeviceGetCurrentClocksThrottleReasons", &reasons);
	if (warm && limit)
		snprintf(at, sizeof(at), " at %u of %u degrees", celsius, slowdown);
	else if (warm)
		snprintf(at, sizeof(at), " at %u degrees", celsius);
	if (reasons & (REASON_SW_THERMAL | REASON_HW_THERMAL)) {
		struct tn_fact *fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_WARNING, "thermal", number(look),
		                                "The card slows down because it is hot%s", at);
		tn__fact_meaning(look->out, fact, "Steps take longer, and longer from run to run.");
		tn__fact_remedy(look->out, fact,
		                "Look at fans, dust and the air in the case; a lower power limit (nvidia-smi -pl) helps, too.");
	} else if (reasons & (REASON_HW_SLOWDOWN | REASON_POWER_BRAKE)) {
		struct tn_fact *fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_WARNING, "power_brake", number(look),
		                                "The hardware holds the card's clocks down (power)");
		tn__fact_meaning(look->out, fact, "The supply does not give what the card asks for: steps take far longer.");
		tn__fact_remedy(look->out, fact, "Look at the power supply and at the card's power cables.");
	} else if (warm) {
		tn__fact(look->out, TN_PART_CARD, TN_LEVEL_FINE, "temperature", number(look),
		         limit ? "%u degrees, slows down at %u" : "%u degrees", celsius, slowdown);
	}
}

static void
check_display(const struct look *look)
{
	unsigned active = 0;
	if (!ask(look, "nvmlDeviceGetDisplayActive", &active) || active == 0)
		return;
	struct tn_fact *fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_HINT, "display", number(look),
	                                "A display is drawn by this card");
	tn__fact_meaning(look->out, fact, "The desktop takes some of its memory, more with each window.");
	tn__fact_remedy(look->out, fact,
	                "For the last few hundred MiB: use the processor's graphics for the display, or log out and work "
	                "through ssh.");
}

static void
check_link(const struct look *look)
{
	unsigned now = 0, most = 0;
	if (!ask(look, "nvmlDeviceGetCurrPcieLinkWidth", &now) || !ask(look, "nvmlDeviceGetMaxPcieLinkWidth", &most) ||
	    now == 0 || now * 2 > most)
		return;
	struct tn_fact *fact = tn__fact(look->out, TN_PART_CARD, TN_LEVEL_HINT, "link", number(look),
	                                "The link to the card has %u of %u lanes", now, most);
	tn__fact_meaning(look->out, fact, "Copies to and from the card take longer; the card's own work does not.");
	tn__fact_remedy(look->out, fact, "Look how the card sits in its slot; another slot may be wider.");
}

static void
check_card(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned index)
{
	struct tn_doctor_card *card = &out->cards[out->card_count++];
	struct look look = { machine->nvml, out, card, NULL };
	card->index = index;
	int status = tn__nvml_handle(machine->nvml, index, &look.device);
	if (status == 0) {
		read_identity(&look);
		read_memory(&look);
	}
	if (status != 0 || card->lost) {
		card->lost = true;
		say_lost(out, (int)index);
		return;
	}
	say_card(&look);
	check_mig(&look);
	tn__check_errors(machine, out, index, look.device);
	check_compute_mode(&look);
	check_power(&look);
	check_heat(&look);
	check_persistence(&look);
	check_display(&look);
	check_link(&look);
	tn__check_processes(machine, out, index, look.device);
}

void
tn__check_cards(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	unsigned count = 0;
	if (machine->nvml == NULL || tn__nvml_system(machine->nvml, "nvmlDeviceGetCount_v2", &count) != 0)
		return;
	if (count == 0) {
		struct tn_fact *fact = tn__fact(out, TN_PART_CARD, TN_LEVEL_ERROR, "no_card", -1,
		                                "The driver runs, but shows no card");
		tn__fact_meaning(out, fact, "Without a card no CUDA program runs.");
		tn__fact_remedy(out, fact,
		                out->container
		                    ? "Start the container with its cards: docker run --gpus all."
		                    : "lspci | grep -i nvidia says whether the bus sees one; sudo dmesg | grep NVRM why "
		                      "it is not used.");
	}
	for (unsigned i = 0; i < count && i < TN_DOCTOR_CARDS; i++)
		check_card(machine, out, i);
}
