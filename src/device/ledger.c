/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger of a run: layout and rules in ledger.h. This file knows pids and sums; it knows no address and no stream.
 */
#include "device/ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* Processes */

uint64_t
tn__process_start_time(pid_t pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	/* The name in field 2 may hold spaces and parentheses: count from the last one. A zombie ("Z") holds nothing. */
	char *cursor = strrchr(text, ')');
	if (!cursor || cursor[1] != ' ' || cursor[2] == 'Z' || cursor[2] == 'X')
		return 0;
	cursor += 2;
	for (int field = 3; field < 22 && cursor; field++) {
		cursor = strchr(cursor, ' ');
		if (cursor)
			cursor++;
	}
	return cursor ? strtoull(cursor, NULL, 10) : 0;
}

static bool
is_alive(const struct tn_ledger_process *process)
{
	return process->state == TN_PROCESS_ALIVE && tn__process_start_time(process->pid) == process->start_time;
}

/* The row of a process among the ranks; NULL: it has none. */
static struct tn_ledger_rank *
find_rank(struct tn_ledger *ledger, const struct tn_ledger_process *process)
{
	for (uint32_t i = 0; i < ledger->rank_count; i++)
		if (ledger->ranks[i].pid == process->pid && ledger->ranks[i].start_time == process->start_time)
			return &ledger->ranks[i];
	return NULL;
}

static void
keep_peaks(struct tn_ledger *ledger, const struct tn_ledger_process *process)
{
	struct tn_ledger_rank *row = find_rank(ledger, process);
	if (row) {
		memcpy(row->peak_bytes, process->peak_bytes, sizeof(row->peak_bytes));
		memcpy(row->at_peak, process->at_peak, sizeof(row->at_peak));
	}
}

static void
clear_slot(struct tn_ledger *ledger, int slot)
{
	tn__shares_leave(ledger, slot);
	keep_peaks(ledger, &ledger->processes[slot]);
	memset(&ledger->processes[slot], 0, sizeof(ledger->processes[slot]));
}

static int
sweep_locked(struct tn_ledger *ledger)
{
	int freed = 0;
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++) {
		if (ledger->processes[slot].state == TN_PROCESS_FREE || is_alive(&ledger->processes[slot]))
			continue;
		clear_slot(ledger, slot);
		freed++;
	}
	if (freed)
		tn__ledger_recompute(ledger);
	return freed;
}

int
tn__ledger_sweep(struct tn_ledger *ledger)
{
	tn__ledger_lock(ledger);
	int freed = sweep_locked(ledger);
	tn__ledger_unlock(ledger);
	return freed;
}

static int
find_slot(const struct tn_ledger *ledger, int32_t pid, uint64_t start_time)
{
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++) {
		const struct tn_ledger_process *process = &ledger->processes[slot];
		bool found = pid == 0 ? process->state == TN_PROCESS_FREE
		                      : process->state == TN_PROCESS_ALIVE && process->pid == pid &&
		                            process->start_time == start_time;
		if (found)
			return slot;
	}
	return -1;
}

tn_status
tn__ledger_enter(struct tn_ledger *ledger, pid_t pid, int *slot)
{
	uint64_t start_time = tn__process_start_time(pid);
	tn__ledger_lock(ledger);
	int found = find_slot(ledger, pid, start_time);
	if (found < 0) {
		found = find_slot(ledger, 0, 0);
		if (found < 0 && sweep_locked(ledger) > 0)
			found = find_slot(ledger, 0, 0);
		if (found >= 0) {
			struct tn_ledger_process *process = &ledger->processes[found];
			process->pid = pid;
			process->start_time = start_time;
			process->state = TN_PROCESS_ALIVE;
		}
	}
	tn__ledger_unlock(ledger);
	TN_RETURN_IF(found < 0, TN_LIMIT, "more than %d processes use the devices of this run", TN_LEDGER_PROCESSES);
	*slot = found;
	return TN_OK;
}

void
tn__ledger_leave(struct tn_ledger *ledger, int slot)
{
	tn__ledger_lock(ledger);
	clear_slot(ledger, slot);
	tn__ledger_recompute(ledger);
	tn__ledger_unlock(ledger);
}

/* Regions */

static void
note_region(struct tn_ledger_region *region, const struct tn_ledger_device *of, size_t device)
{
	if (of->used_bytes > region->peak_used_bytes[device])
		region->peak_used_bytes[device] = of->used_bytes;
	if (of->program_bytes > region->peak_program_bytes[device])
		region->peak_program_bytes[device] = of->program_bytes;
}

/* A device holds more: so does every region that a process is in. */
static void
note_regions(struct tn_ledger *ledger, size_t device)
{
	uint64_t used = ledger->devices[device].used_bytes;
	for (uint64_t left = ledger->regions_occupied; left; left &= left - 1) {
		struct tn_ledger_region *region = &ledger->regions[__builtin_ctzll(left)];
		note_region(region, &ledger->devices[device], device);
		if (used > region->peak_taken_bytes[device])
			region->peak_taken_bytes[device] = used;
	}
}

static void
leave_region(struct tn_ledger *ledger, struct tn_ledger_process *process)
{
	if (process->region == 0)
		return;
	uint32_t row = process->region - 1;
	process->region = 0;
	if (--ledger->regions[row].processes == 0)
		ledger->regions_occupied &= ~(UINT64_C(1) << row);
}

/* `name` as it fits a row: a character that would be cut in two goes whole. */
static void
cut_name(const char *name, char out[TN_LEDGER_REGION_NAME])
{
	size_t length = strnlen(name, TN_LEDGER_REGION_NAME);
	if (length == TN_LEDGER_REGION_NAME) {
		length--;
		while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
			length--;
	}
	memset(out, 0, TN_LEDGER_REGION_NAME);
	memcpy(out, name, length);
}

static struct tn_ledger_region *
find_region(struct tn_ledger *ledger, const char name[TN_LEDGER_REGION_NAME])
{
	for (uint32_t i = 0; i < ledger->region_count; i++)
		if (memcmp(ledger->regions[i].name, name, TN_LEDGER_REGION_NAME) == 0)
			return &ledger->regions[i];
	if (ledger->region_count == TN_LEDGER_REGIONS)
		return NULL;
	struct tn_ledger_region *region = &ledger->regions[ledger->region_count];
	memcpy(region->name, name, TN_LEDGER_REGION_NAME);
	ledger->region_count++;
	return region;
}

static void
join_region(struct tn_ledger *ledger, struct tn_ledger_process *process, struct tn_ledger_region *region)
{
	uint32_t row = (uint32_t)(region - ledger->regions);
	process->region = row + 1;
	region->processes++;
	region->entered++;
	ledger->regions_occupied |= UINT64_C(1) << row;
	for (size_t device = 0; device < ledger->device_count; device++)
		note_region(region, &ledger->devices[device], device);
}

tn_status
tn__ledger_enter_region(struct tn_ledger *ledger, int slot, const char *name)
{
	char cut[TN_LEDGER_REGION_NAME];
	bool any = name && name[0];
	TN_RETURN_IF(slot < 0 || slot >= TN_LEDGER_PROCESSES, TN_INVALID, "no process slot %d", slot);
	cut_name(any ? name : "", cut);
	struct tn_ledger_process *process = &ledger->processes[slot];
	tn__ledger_lock(ledger);
	bool alive = process->state == TN_PROCESS_ALIVE;
	struct tn_ledger_region *region = alive && any ? find_region(ledger, cut) : NULL;
	if (alive)
		leave_region(ledger, process);
	if (region)
		join_region(ledger, process, region);
	else if (alive && any)
		ledger->regions_lost++;
	tn__ledger_unlock(ledger);
	TN_RETURN_IF(!alive, TN_INVALID, "process slot %d is free", slot);
	TN_RETURN_IF(any && !region, TN_LIMIT, "more than %d regions", TN_LEDGER_REGIONS);
	return TN_OK;
}

/* Bytes */

static struct tn_ledger_split
split_of(const struct tn_ledger *ledger, const struct tn_ledger_device *device)
{
	struct tn_ledger_split split = { .other_bytes = device->other_bytes };
	size_t index = (size_t)(device - ledger->devices);
	for (int slot = 0; slot < TN_LEDGER_PROCESSES; slot++) {
		const struct tn_ledger_process *process = &ledger->processes[slot];
		if (process->state == TN_PROCESS_FREE)
			continue;
		for (int class = 0; class < TN_BYTES_CLASSES; class++)
			split.bytes[class] += process->bytes[index][class];
		for (int class = 0; process->program > 0 && class < TN_BYTES_CLASSES; class++)
			split.programs[process->program - 1][class] += process->bytes[index][class];
		if (process->bytes[index][TN_BYTES_PROGRAM] > split.largest_program) {
			split.largest_program = process->bytes[index][TN_BYTES_PROGRAM];
			split.largest_pid = process->pid;
		}
	}
	return split;
}

static void
note_peak(struct tn_ledger *ledger, struct tn_ledger_device *device, uint64_t sequence)
{
	device->at_peak = split_of(ledger, device);
	device->peak_used_bytes = device->used_bytes;
	device->peak_sequence = sequence;
}

/* Of a device that holds `used` bytes: where all processes together hold no more than this one once did, its own bytes are not
 * added up. */
static void
note_process_peak(struct tn_ledger_process *process, int device, uint64_t used)
{
	uint64_t held = 0;
	if (used <= process->peak_bytes[device])
		return;
	for (int class = 0; class < TN_BYTES_CLASSES; class++)
		held += process->bytes[device][class];
	if (held <= process->peak_bytes[device])
		return;
	process->peak_bytes[device] = held;
	memcpy(process->at_peak[device], process->bytes[device], sizeof(process->at_peak[device]));
}

static void
note_program_peak(struct tn_ledger *ledger, const struct tn_ledger_process *process, int device, uint64_t bytes)
{
	if (process->program == 0)
		return;
	struct tn_ledger_program *program = &ledger->programs[process->program - 1];
	program->bytes[device] += bytes;
	if (program->bytes[device] > program->peak_bytes[device])
		program->peak_bytes[device] = program->bytes[device];
}

static bool
must_fail(struct tn_ledger_device *device)
{
	return device->fail_countdown > 0 && --device->fail_countdown == 0;
}

static bool
fits(const struct tn_ledger_device *device, uint64_t bytes)
{
	uint64_t room = device->gpu.total_bytes + device->spill_bytes;
	return bytes <= room && device->used_bytes <= room - bytes;
}

/* Of the card itself. */
static uint64_t
free_of(const struct tn_ledger_device *device)
{
	return device->used_bytes < device->gpu.total_bytes ? device->gpu.total_bytes - device->used_bytes : 0;
}

static void
note_refusal(const struct tn_ledger *ledger, struct tn_ledger_device *device, uint64_t bytes, uint64_t sequence,
             int32_t pid, enum tn_bytes_class class)
{
	device->refusal.count++;
	device->refusal.requested_bytes = bytes;
	device->refusal.free_bytes = free_of(device);
	device->refusal.sequence = sequence;
	device->refusal.taken = 0;
	device->refusal.pid = pid;
	device->refusal.class = class;
	device->refusal.held = split_of(ledger, device);
}

tn_status
tn__ledger_take(struct tn_ledger *ledger, int device, int slot, enum tn_bytes_class class, uint64_t bytes,
                uint64_t *sequence)
{
	TN_RETURN_IF(device < 0 || (uint32_t)device >= ledger->device_count, TN_INVALID, "no device %d", device);
	struct tn_ledger_device *of = &ledger->devices[device];
	tn__ledger_lock(ledger);
	uint64_t number = atomic_fetch_add_explicit(&ledger->sequence, 1, memory_order_relaxed) + 1;
	bool granted = !must_fail(of) && (fits(of, bytes) || (sweep_locked(ledger) > 0 && fits(of, bytes)));
	if (granted) {
		ledger->processes[slot].bytes[device][class] += bytes;
		of->used_bytes += bytes;
		note_process_peak(&ledger->processes[slot], device, of->used_bytes);
		note_program_peak(ledger, &ledger->processes[slot], device, bytes);
		if (class == TN_BYTES_PROGRAM)
			of->program_bytes += bytes;
		note_regions(ledger, (size_t)device);
		if (of->refusal.count > 0 && of->refusal.pid == ledger->processes[slot].pid)
			of->refusal.taken += bytes;
		if (of->used_bytes > of->peak_used_bytes)
			note_peak(ledger, of, number);
	} else {
		note_refusal(ledger, of, bytes, number, ledger->processes[slot].pid, class);
	}
	tn__ledger_unlock(ledger);
	if (!granted)
		return TN_OUT_OF_DEVICE_MEMORY; /* an everyday answer: no text is formatted for it */
	if (sequence)
		*sequence = number;
	return TN_OK;
}

void
tn__ledger_give(struct tn_ledger *ledger, int device, int slot, enum tn_bytes_class class, uint64_t bytes)
{
	tn__ledger_lock(ledger);
	atomic_fetch_add_explicit(&ledger->sequence, 1, memory_order_relaxed);
	uint64_t *held = &ledger->processes[slot].bytes[device][class];
	uint64_t back = bytes < *held ? bytes : *held;
	*held -= back;
	ledger->devices[device].used_bytes -= back;
	if (class == TN_BYTES_PROGRAM)
		ledger->devices[device].program_bytes -= back;
	if (ledger->processes[slot].program > 0)
		ledger->programs[ledger->processes[slot].program - 1].bytes[device] -= back;
	tn__ledger_unlock(ledger);
}

uint64_t
tn__ledger_free_bytes(struct tn_ledger *ledger, int device)
{
	tn__ledger_lock(ledger);
	uint64_t free_bytes = free_of(&ledger->devices[device]);
	tn__ledger_unlock(ledger);
	return free_bytes;
}

/* Ranks */

struct tn_ledger_rank *
tn__ledger_join_rank(struct tn_ledger *ledger, int slot, int rank, int ranks, int device)
{
	if (slot < 0 || slot >= TN_LEDGER_PROCESSES)
		return NULL;
	const struct tn_ledger_process *process = &ledger->processes[slot];
	tn__ledger_lock(ledger);
	struct tn_ledger_rank *row = find_rank(ledger, process);
	if (!row && ledger->rank_count < TN_LEDGER_RANKS) {
		row = &ledger->ranks[ledger->rank_count++];
		row->pid = process->pid;
		row->start_time = process->start_time;
	} else if (!row) {
		ledger->ranks_lost++;
	}
	if (row && ranks > row->ranks) {
		row->rank = rank;
		row->ranks = ranks;
		row->device = device;
	}
	tn__ledger_unlock(ledger);
	return row;
}

static struct tn_ledger_member *
find_member(struct tn_ledger *ledger, pid_t pid, uint64_t start_time)
{
	for (uint32_t i = 0; i < ledger->member_count; i++)
		if (ledger->members[i].pid == pid && ledger->members[i].start_time == start_time)
			return &ledger->members[i];
	return NULL;
}

void
tn__ledger_join_job(struct tn_ledger *ledger, pid_t pid, int wanted)
{
	uint64_t start_time = tn__process_start_time(pid);
	tn__ledger_lock(ledger);
	if (!find_member(ledger, pid, start_time) && ledger->member_count < TN_LEDGER_RANKS)
		ledger->members[ledger->member_count++] = (struct tn_ledger_member){ .pid = (int32_t)pid,
			                                                                 .start_time = start_time };
	if (ledger->ranks_run > 0 && wanted > (int)ledger->ranks_run)
		wanted = (int)ledger->ranks_run;
	if (wanted > (int)ledger->members_wanted)
		ledger->members_wanted = (uint32_t)wanted;
	tn__ledger_unlock(ledger);
}

bool
tn__ledger_settle_member(struct tn_ledger *ledger, pid_t pid)
{
	uint64_t start_time = tn__process_start_time(pid);
	tn__ledger_lock(ledger);
	struct tn_ledger_member *own = find_member(ledger, pid, start_time);
	bool all = !own || ledger->member_count >= ledger->members_wanted || ledger->member_count == TN_LEDGER_RANKS;
	if (own)
		own->settled = 1;
	for (uint32_t i = 0; own && i < ledger->member_count && all; i++)
		all = ledger->members[i].settled ||
		      tn__process_start_time(ledger->members[i].pid) != ledger->members[i].start_time;
	tn__ledger_unlock(ledger);
	return all;
}

/* Several commands */

void
tn__ledger_set_program(struct tn_ledger *ledger, int slot, int program)
{
	if (slot < 0 || slot >= TN_LEDGER_PROCESSES || program < 1 || (uint32_t)program > ledger->program_count)
		return;
	tn__ledger_lock(ledger);
	ledger->processes[slot].program = (uint32_t)program;
	tn__ledger_recompute(ledger);
	tn__ledger_unlock(ledger);
}

bool
tn__ledger_settle_program(struct tn_ledger *ledger, int program)
{
	bool all = true;
	if (program < 1 || (uint32_t)program > ledger->program_count)
		return true;
	ledger->programs[program - 1].settled = 1;
	for (uint32_t i = 0; i < ledger->program_count && all; i++)
		all = ledger->programs[i].settled || ledger->programs[i].ended;
	return all;
}

/* Refused calls */

void
tn__ledger_count_call(struct tn_ledger *ledger, const char *library, const char *name)
{
	tn__ledger_lock(ledger);
	uint32_t i = 0;
	while (i < ledger->call_count &&
	       (strcmp(ledger->calls[i].name, name) != 0 || strcmp(ledger->calls[i].library, library) != 0))
		i++;
	if (i < TN_LEDGER_CALLS) {
		struct tn_ledger_call *row = &ledger->calls[i];
		if (i == ledger->call_count) {
			snprintf(row->library, sizeof(row->library), "%s", library);
			snprintf(row->name, sizeof(row->name), "%s", name);
			ledger->call_count++;
		}
		row->count++;
		row->passes = ledger->guest.passes;
	} else {
		ledger->calls_lost++;
	}
	tn__ledger_unlock(ledger);
}

void
tn__ledger_count_answer(struct tn_ledger *ledger, bool real, const char *words)
{
	struct tn_ledger_answers *answers = &ledger->answers;
	tn__ledger_lock(ledger);
	if (real) {
		answers->real++;
		snprintf(answers->by, sizeof(answers->by), "%s", words);
	} else {
		answers->modelled++;
		snprintf(answers->why, sizeof(answers->why), "%s", words);
	}
	tn__ledger_unlock(ledger);
}
