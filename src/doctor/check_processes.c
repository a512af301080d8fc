/* SPDX-License-Identifier: Apache-2.0
 *
 * Who holds memory on a card: NVML names the processes, /proc says whose they are, since when, in which container, and whether
 * what started them is gone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/figure.h"
#include "base/plain.h"
#include "base/secrets.h"
#include "doctor/checks.h"

#define MIB (UINT64_C(1) << 20)
#define UNACCOUNTED (UINT64_C(1) << 30) /* less is the driver's own, the desktop's */

struct nvml_process { /* nvmlProcessInfo_t of the functions that end with _v2 and _v3 */
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

/* Fields of /proc/PID/stat: the command's name in parentheses may hold anything, so the rest is read behind the last one. */
static bool
read_stat(const struct tn_machine *machine, unsigned pid, long long field[20])
{
	char *text = tn__read_text(machine, "/proc/%u/stat", pid);
	const char *at = text != NULL ? strrchr(text, ')') : NULL;
	int count = 0;
	if (at != NULL && at[1] == ' ' && at[2] != '\0')
		for (at += 3; count < 20 && *at == ' '; count++) { /* field 0 is the parent's pid */
			char *end;
			field[count] = strtoll(at, &end, 10);
			if (end == at)
				break;
			at = end;
		}
	free(text);
	return count == 20;
}

/* When it started: ticks of 10 ms since the machine did (proc_pid_stat(5); USER_HZ is 100 on all that Linux runs CUDA on). */
static int64_t
since(const struct tn_machine *machine, long long ticks)
{
	uint64_t started = 0;
	char *text = tn__read_text(machine, "/proc/stat");
	bool known = text != NULL && tn__number(tn__field(text, "btime"), &started);
	free(text);
	return known && ticks >= 0 ? (int64_t)started + ticks / 100 : 0;
}

/* Its starter is gone: the parent is the machine's first process now, and so is the shell or launcher whose session or group
 * it was in. A service, or what nohup or setsid started, leads a session or group of its own. */
static bool
is_orphan(const struct tn_machine *machine, unsigned pid, const long long field[20])
{
	long long parent = field[0], group = field[1], session = field[2];
	bool group_gone = group > 0 && group != pid && !tn__exists(machine, "/proc/%lld", group);
	bool session_gone = session > 0 && session != pid && group != pid && !tn__exists(machine, "/proc/%lld", session);
	return parent == 1 && (group_gone || session_gone);
}

/* The user's name in /etc/passwd, or the number. */
static void
name_user(const struct tn_machine *machine, uint64_t id, char *name, size_t capacity)
{
	char *text = tn__read_text(machine, "/etc/passwd");
	snprintf(name, capacity, "user %llu", (unsigned long long)id);
	char *rest = text;
	for (char *line = text != NULL ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *colon = strchr(line, ':');
		char *second = colon != NULL ? strchr(colon + 1, ':') : NULL;
		uint64_t number;
		if (second != NULL && tn__number(second + 1, &number) && number == id) {
			snprintf(name, capacity, "%.*s", (int)(colon - line), line);
			break;
		}
	}
	free(text);
	tn__make_plain(name, '?');
}

static bool
user_of(const struct tn_machine *machine, const char *process, uint64_t *id)
{
	char *text = tn__read_text(machine, "/proc/%s/status", process);
	bool known = text != NULL && tn__number(tn__field(text, "Uid:"), id);
	free(text);
	return known;
}

/* The command line, its words apart by blanks, without what looks like a secret. */
static void
read_command(const struct tn_machine *machine, unsigned pid, char *command, size_t capacity)
{
	char *text = tn__read_text(machine, "/proc/%u/cmdline", pid);
	char *masked = text != NULL && text[0] != '\0' ? tn__mask_known(NULL, text) : NULL;
	if (masked != NULL)
		snprintf(command, capacity, "%s", masked);
	else if (!tn__read_line(machine, command, capacity, "/proc/%u/comm", pid))
		command[0] = '\0';
	free(masked);
	free(text);
	size_t length = strlen(command);
	while (length > 0 && command[length - 1] == ' ')
		command[--length] = '\0';
	tn__make_plain(command, '?');
}

/* The container's number in the path of its control group, as Docker, containerd, Podman and Kubernetes name them. */
static void
read_container(const struct tn_machine *machine, unsigned pid, char *name, size_t capacity)
{
	static const char *const marks[] = { "docker-", "/docker/", "cri-containerd-", "crio-",
		                                 "libpod-", "/lxc/",    "/kubepods" };
	char *text = tn__read_text(machine, "/proc/%u/cgroup", pid);
	name[0] = '\0';
	for (size_t i = 0; text != NULL && name[0] == '\0' && i < sizeof(marks) / sizeof(marks[0]); i++) {
		const char *at = strstr(text, marks[i]);
		if (at == NULL)
			continue;
		at += strlen(marks[i]);
		size_t length = strspn(at, "0123456789abcdef");
		snprintf(name, capacity, "%.*s", length >= 12 ? 12 : (int)strcspn(at, "/\n"), at);
	}
	free(text);
	tn__make_plain(name, '?');
}

static void
read_process(const struct tn_machine *machine, struct tn_doctor_process *process)
{
	char number[16];
	long long field[20];
	uint64_t id = 0, own = 0;
	snprintf(number, sizeof(number), "%u", process->pid);
	process->visible = tn__exists(machine, "/proc/%u", process->pid);
	if (!process->visible)
		return;
	if (user_of(machine, number, &id)) {
		name_user(machine, id, process->user, sizeof(process->user));
		process->own = user_of(machine, "self", &own) && own == id;
	}
	read_command(machine, process->pid, process->command, sizeof(process->command));
	read_container(machine, process->pid, process->container, sizeof(process->container));
	if (read_stat(machine, process->pid, field)) {
		process->since = since(machine, field[18]);
		process->orphan = is_orphan(machine, process->pid, field);
	}
}

/* ---- words ---- */

static void
say_process(struct tn_diagnosis *out, const struct tn_doctor_process *process)
{
	char bytes[32] = "an unknown amount", when[32], place[100] = "";
	if (process->bytes_known)
		tn__human_bytes((int64_t)process->bytes, bytes);
	if (process->container[0] != '\0')
		snprintf(place, sizeof(place), " in container %s", process->container);
	struct tn_fact *fact;
	if (!process->visible) {
		fact = tn__fact(out, TN_PART_MEMORY, TN_LEVEL_WARNING, "unseen_process", process->card,
		                "Process %u holds %s; it is not visible from here", process->pid, bytes);
		tn__fact_meaning(out, fact, "It runs outside this container, in another one, or is hidden from you.");
		tn__fact_remedy(out, fact, "Ask on the host: ps -o user,lstart,cmd -p %u.", process->pid);
		return;
	}
	const char *id = process->orphan ? "orphan" : process->own ? "own_process" : "foreign_process";
	fact = tn__fact(out, TN_PART_MEMORY, TN_LEVEL_WARNING, id, process->card, "%s: process %u of %s%s, since %s%s%s",
	                bytes, process->pid, process->user[0] != '\0' ? process->user : "an unknown user", place,
	                tn__doctor_time(process->since, when), process->command[0] != '\0' ? ": " : "", process->command);
	if (process->orphan) {
		tn__fact_meaning(out, fact,
		                 "It was left behind: what started it has ended. Its memory stays taken until it ends.");
		tn__fact_remedy(out, fact,
		                process->own ? "If nobody needs it: kill %u (then kill -9 %u)."
		                             : "Ask its user to end it: kill %u (then kill -9 %u).",
		                process->pid, process->pid);
	} else if (process->own) {
		tn__fact_meaning(out, fact, "Another program of yours has this memory; a new one finds that much less.");
		tn__fact_remedy(out, fact, "Wait for it, end it (kill %u), or use another card.", process->pid);
	} else {
		tn__fact_meaning(out, fact, "Another user's program has this memory; yours finds that much less.");
		tn__fact_remedy(out, fact, "Agree with that user, or use another card.");
	}
}

static void
add(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, const struct nvml_process *from)
{
	if (out->process_count == TN_DOCTOR_PROCESSES || (long)from->pid == machine->own_pid || from->pid == 0)
		return;
	for (size_t i = 0; i < out->process_count; i++)
		if (out->processes[i].card == (int)card && out->processes[i].pid == from->pid)
			return;
	struct tn_doctor_process *process = &out->processes[out->process_count++];
	*process = (struct tn_doctor_process){ .card = (int)card, .pid = from->pid, .bytes_known = from->used != ~0ull };
	process->bytes = process->bytes_known ? from->used : 0;
	read_process(machine, process);
	say_process(out, process);
}

/* Memory that is taken although no process is named: of another container, or left by one that is not quite gone. True where
 * there is some. */
static bool
check_rest(struct tn_diagnosis *out, const struct tn_doctor_card *card)
{
	uint64_t named = 0;
	bool all_known = true;
	char bytes[32];
	for (size_t i = 0; i < out->process_count; i++)
		if (out->processes[i].card == (int)card->index) {
			named += out->processes[i].bytes;
			all_known &= out->processes[i].bytes_known;
		}
	if (!card->memory_known || !all_known || card->mig || card->used < named + UNACCOUNTED)
		return false;
	struct tn_fact *fact = tn__fact(out, TN_PART_MEMORY, TN_LEVEL_WARNING, "memory_unnamed", (int)card->index,
	                                "%s of the card are taken by no process that is named here",
	                                tn__human_bytes((int64_t)(card->used - named), bytes));
	tn__fact_meaning(out, fact, "%s",
	                 out->wsl ? "Under WSL the processes of Windows are not named."
	                          : "Programs of other containers are not always named; a killed one may linger.");
	tn__fact_remedy(out, fact, "%s",
	                out->wsl ? "Look at the Task Manager of Windows (GPU memory)."
	                         : "Ask on the host: sudo fuser -v /dev/nvidia* lists who has the card open.");
	return true;
}

void
tn__check_processes(const struct tn_machine *machine, struct tn_diagnosis *out, unsigned card, void *device)
{
	static const char *const lists[] = { "nvmlDeviceGetComputeRunningProcesses_v3",
		                                 "nvmlDeviceGetGraphicsRunningProcesses_v3" };
	static const char *const older[] = { "nvmlDeviceGetComputeRunningProcesses_v2",
		                                 "nvmlDeviceGetGraphicsRunningProcesses_v2" };
	size_t before = out->process_count;
	bool listed = false;
	for (size_t i = 0; i < 2; i++) {
		struct nvml_process processes[TN_DOCTOR_PROCESSES];
		unsigned count = TN_DOCTOR_PROCESSES;
		int status = tn__nvml_ask_two(machine->nvml, device, lists[i], &count, processes);
		if (status == TN_NVML_ABSENT) /* older drivers */
			status = tn__nvml_ask_two(machine->nvml, device, older[i], &count, processes);
		if (status != 0)
			continue;
		listed = true;
		for (unsigned j = 0; j < count && j < TN_DOCTOR_PROCESSES; j++)
			if (i == 0 || processes[j].used == ~0ull ||
			    processes[j].used >= 512 * MIB) /* a desktop's own windows are no news */
				add(machine, out, card, &processes[j]);
	}
	if (listed && !check_rest(out, &out->cards[out->card_count - 1]) && out->process_count == before)
		tn__fact(out, TN_PART_MEMORY, TN_LEVEL_FINE, "memory_free", (int)card, "no other program computes on it");
}
