/* SPDX-License-Identifier: Apache-2.0
 *
 * The host: what kind it is, its memory, /dev/shm, and the limits of its control group.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>

#include "base/figure.h"
#include "doctor/checks.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

void
tn__check_host_kind(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	char release[256] = "";
	out->container = tn__exists(machine, "/.dockerenv") || tn__exists(machine, "/run/.containerenv") ||
	                 tn__variable(machine, "KUBERNETES_SERVICE_HOST") != NULL;
	tn__read_line(machine, release, sizeof(release), "/proc/sys/kernel/osrelease");
	out->wsl = strcasestr(release, "microsoft") != NULL;
	if (out->container)
		tn__fact(out, TN_PART_HOST, TN_LEVEL_FINE, "container", -1,
		         "This is a container: what runs outside it is not all visible");
	if (!out->wsl)
		return;
	struct tn_fact *fact;
	if (!tn__exists(machine, "/dev/dxg")) {
		fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "wsl_device", -1, "This is WSL, without /dev/dxg");
		tn__fact_meaning(out, fact, "WSL 1, or Windows' driver without WSL support: the card is not reachable.");
		tn__fact_remedy(out, fact, "In Windows: wsl --set-version NAME 2, wsl --update, and NVIDIA's current driver.");
		return;
	}
	fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_HINT, "wsl", -1, "This is WSL: the driver is that of Windows");
	tn__fact_meaning(
		out, fact,
		"When the card is full, Windows may move its memory to the host instead of failing: programs become "
		"very slow. Windows' own programs hold memory, too, and are not named here.");
	tn__fact_remedy(
		out, fact,
		"Install no Linux driver in WSL. In NVIDIA's control panel, \"CUDA - Sysmem Fallback Policy: Prefer No "
		"Sysmem Fallback\" makes it fail instead; .wslconfig says how much host memory WSL has.");
}

static bool
space_below_root(const struct tn_machine *machine, const char *path, uint64_t *total, uint64_t *available)
{
	struct statvfs about;
	char *whole = tn__rooted(machine, path);
	bool good = whole != NULL && statvfs(whole, &about) == 0;
	free(whole);
	if (!good)
		return false;
	*total = (uint64_t)about.f_blocks * about.f_frsize;
	*available = (uint64_t)about.f_bavail * about.f_frsize;
	return true;
}

static void
check_shared_memory(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	uint64_t total = 0, available = 0;
	char whole[32] = "", left[32] = "";
	bool (*space)(const struct tn_machine *, const char *, uint64_t *,
	              uint64_t *) = machine->space != NULL ? machine->space : space_below_root;
	if (!space(machine, "/dev/shm", &total, &available))
		return;
	tn__human_bytes((int64_t)total, whole);
	tn__human_bytes((int64_t)available, left);
	struct tn_fact *fact;
	if (total > 0 && available < total / 10) {
		fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "shm_full", -1, "/dev/shm is full: %s free of %s", left,
		                whole);
		tn__fact_meaning(out, fact,
		                 "DataLoader workers and NCCL pass data through it; programs end with \"Bus error\".");
		tn__fact_remedy(out, fact,
		                "ls -la /dev/shm shows what is left there; remove what belongs to no running program.");
	} else if (total < GIB) {
		fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "shm_small", -1, "/dev/shm has only %s", whole);
		tn__fact_meaning(out, fact,
		                 "DataLoader workers pass batches through it: \"Bus error ... insufficient shared memory\".");
		tn__fact_remedy(out, fact,
		                out->container ? "Start the container with --shm-size=8g or --ipc=host."
		                               : "sudo mount -o remount,size=8G /dev/shm.");
	} else {
		tn__fact(out, TN_PART_HOST, TN_LEVEL_FINE, "shm", -1, "/dev/shm: %s free of %s", left, whole);
	}
}

static void
check_memory(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	char *text = tn__read_text(machine, "/proc/meminfo"), line[32], whole[32] = "", left[32] = "";
	uint64_t total = 0, available = 0, mode = 0;
	bool known = text != NULL && tn__number(tn__field(text, "MemTotal:"), &total) &&
	             tn__number(tn__field(text, "MemAvailable:"), &available) && total < UINT64_MAX / 1024;
	free(text);
	struct tn_fact *fact;
	if (known) {
		tn__human_bytes((int64_t)(total * 1024), whole);
		tn__human_bytes((int64_t)(available * 1024), left);
		bool low = available * 1024 < GIB;
		fact = tn__fact(out, TN_PART_HOST, low ? TN_LEVEL_WARNING : TN_LEVEL_FINE,
		                low ? "host_memory_low" : "host_memory", -1, "Host memory: %s free of %s", left, whole);
		if (low) {
			tn__fact_meaning(out, fact,
			                 "Loading a model goes through host memory; the kernel ends programs (\"Killed\").");
			tn__fact_remedy(out, fact, "End what holds it: ps aux --sort=-rss | head.");
		}
	}
	if (tn__read_line(machine, line, sizeof(line), "/proc/sys/vm/overcommit_memory") && tn__number(line, &mode) &&
	    mode == 2) {
		fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "overcommit", -1,
		                "The kernel does not overcommit (overcommit_memory is 2)");
		tn__fact_meaning(
			out, fact, "CUDA reserves far more address space than it uses; starting can fail with \"out of memory\".");
		tn__fact_remedy(out, fact, "sudo sysctl vm.overcommit_memory=0.");
	}
}

/* ---- control group ---- */

struct group {
	bool limited, used_known;
	uint64_t limit, used, ended; /* ended: programs that the kernel ended for it */
};

static bool
read_number(const struct tn_machine *machine, const char *folder, const char *name, uint64_t *out)
{
	char line[64];
	return tn__read_line(machine, line, sizeof(line), "%s/%s", folder, name) && tn__number(line, out);
}

/* One level of version 2; "max" is no number. The tightest limit counts. */
static void
read_level(const struct tn_machine *machine, const char *folder, struct group *group)
{
	uint64_t limit = 0, used = 0;
	if (!read_number(machine, folder, "memory.max", &limit) || (group->limited && limit >= group->limit))
		return;
	group->limited = true;
	group->limit = limit;
	group->used_known = read_number(machine, folder, "memory.current", &used);
	group->used = used;
	char *events = tn__read_text(machine, "%s/memory.events", folder);
	uint64_t ended = 0;
	if (events != NULL && tn__number(tn__field(events, "oom_kill"), &ended))
		group->ended = ended;
	free(events);
}

static void
read_version_2(const struct tn_machine *machine, const char *path, struct group *group)
{
	char folder[1200];
	snprintf(folder, sizeof(folder), "/sys/fs/cgroup%.1024s", path);
	for (char *slash = folder + strlen(folder); slash != NULL && slash >= folder + strlen("/sys/fs/cgroup");
	     slash = strrchr(folder, '/')) {
		*slash = '\0';
		if (strlen(folder) < strlen("/sys/fs/cgroup"))
			break;
		read_level(machine, folder, group);
	}
}

static void
read_version_1(const struct tn_machine *machine, struct group *group)
{
	const char *folder = "/sys/fs/cgroup/memory";
	if (!read_number(machine, folder, "memory.limit_in_bytes", &group->limit) || group->limit >= UINT64_C(1) << 60)
		return; /* no limit is a number near 2^63 */
	group->limited = true;
	group->used_known = read_number(machine, folder, "memory.usage_in_bytes", &group->used);
}

static uint64_t
largest_card(const struct tn_diagnosis *out)
{
	uint64_t largest = 0;
	for (size_t i = 0; i < out->card_count; i++)
		if (out->cards[i].total > largest)
			largest = out->cards[i].total;
	return largest;
}

static void
say_group(struct tn_diagnosis *out, const struct group *group)
{
	char limit[32], used[32] = "unknown", card[32];
	struct tn_fact *fact;
	tn__human_bytes((int64_t)group->limit, limit);
	if (group->used_known)
		tn__human_bytes((int64_t)group->used, used);
	if (group->ended > 0) {
		fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "cgroup_killed", -1,
		                "The kernel has ended %llu program%s here at the limit of %s of host memory",
		                (unsigned long long)group->ended, group->ended == 1 ? "" : "s", limit);
		tn__fact_meaning(out, fact, "A program that ends with \"Killed\" ran out of host memory, not of the card's.");
		tn__fact_remedy(out, fact,
		                "Give the container or job more memory (docker run --memory, sbatch --mem), or fewer workers.");
	} else if (group->used_known && group->used > group->limit / 10 * 9) {
		fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "cgroup_near", -1,
		                "%s of the %s of host memory allowed here are used", used, limit);
		tn__fact_meaning(out, fact, "At the limit the kernel ends programs (\"Killed\").");
		tn__fact_remedy(out, fact, "Give the container or job more memory, or end what holds it.");
	} else if (group->limit < largest_card(out)) {
		fact = tn__fact(out, TN_PART_HOST, TN_LEVEL_WARNING, "cgroup_memory", -1,
		                "Host memory is limited to %s here, less than a card has (%s)", limit,
		                tn__human_bytes((int64_t)largest_card(out), card));
		tn__fact_meaning(out, fact,
		                 "A model that fills the card may not pass through host memory when it is loaded or saved.");
		tn__fact_remedy(out, fact, "Give the container or job more memory (docker run --memory, sbatch --mem).");
	} else {
		tn__fact(out, TN_PART_HOST, TN_LEVEL_FINE, "cgroup", -1, "Host memory allowed here: %s, used: %s", limit, used);
	}
}

static void
check_group(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	struct group group = { 0 };
	char *text = tn__read_text(machine, "/proc/self/cgroup");
	const char *path = text != NULL ? tn__field(text, "0::") : NULL;
	if (path != NULL) {
		char own[1100];
		snprintf(own, sizeof(own), "%.*s", (int)strcspn(path, "\n"), path);
		read_version_2(machine, own[0] == '/' ? own : "/", &group);
	}
	free(text);
	if (!group.limited)
		read_version_1(machine, &group);
	if (group.limited)
		say_group(out, &group);
}

void
tn__check_host(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	check_memory(machine, out);
	check_group(machine, out);
	check_shared_memory(machine, out);
}
