/* SPDX-License-Identifier: Apache-2.0
 *
 * The device files: are they there, and may this user open them. Who the user is stands in /proc/self/status.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor/checks.h"

#define GROUPS_MAX 256

struct user {
	bool known;
	uint64_t id, groups[GROUPS_MAX];
	size_t group_count;
};

/* The second number of "Uid:" is the one that counts when files are opened; "Groups:" are the further ones. */
static void
read_user(const struct tn_machine *machine, struct user *user)
{
	char *text = tn__read_text(machine, "/proc/self/status");
	if (text == NULL)
		return;
	const char *id = tn__field(text, "Uid:");
	const char *group = tn__field(text, "Gid:");
	id = id != NULL ? strpbrk(id, "\t ") : NULL;
	group = group != NULL ? strpbrk(group, "\t ") : NULL;
	user->known = tn__number(id, &user->id);
	if (tn__number(group, &user->groups[0]))
		user->group_count = 1;
	for (const char *at = tn__field(text, "Groups:"); at != NULL && user->group_count < GROUPS_MAX;) {
		if (!tn__number(at, &user->groups[user->group_count]))
			break;
		user->group_count++;
		at += strspn(at, " \t");
		at += strspn(at, "0123456789");
	}
	free(text);
}

static bool
may_open(const struct user *user, const struct stat *about)
{
	if (!user->known || user->id == 0)
		return true;
	if (about->st_uid == user->id)
		return (about->st_mode & 0600) == 0600;
	for (size_t i = 0; i < user->group_count; i++)
		if (about->st_gid == user->groups[i])
			return (about->st_mode & 0060) == 0060;
	return (about->st_mode & 0006) == 0006;
}

/* 0: may be opened; 1: not there; 2: not for this user. */
static int
state_of(const struct tn_machine *machine, const struct user *user, const char *path, struct stat *about)
{
	char *whole = tn__rooted(machine, path);
	int state = whole == NULL ? 0 : stat(whole, about) != 0 ? 1 : may_open(user, about) ? 0 : 2;
	free(whole);
	return state;
}

static void
look_at(const struct tn_machine *machine, struct tn_diagnosis *out, const struct user *user, const char *path,
        bool needed)
{
	struct stat about = { 0 };
	struct tn_fact *fact;
	int state = state_of(machine, user, path, &about);
	if (state == 2) {
		fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "device_permission", -1, "You may not open %s (mode %04o)",
		                path, about.st_mode & 07777);
		tn__fact_meaning(out, fact, "CUDA finds no card, or fails with \"unknown error\".");
		tn__fact_remedy(out, fact,
		                "Have the administrator add you to the file's group (usually video or render), or set the mode "
		                "back to 0666 (NVreg_DeviceFileMode of the nvidia module).");
	} else if (state == 1 && needed) {
		fact = tn__fact(out, TN_PART_DRIVER, TN_LEVEL_ERROR, "device_missing", -1, "%s is missing", path);
		tn__fact_meaning(out, fact, "CUDA reaches the cards through it.");
		tn__fact_remedy(out, fact,
		                out->container ? "Start the container with --gpus all (or --device %s)."
		                               : "sudo nvidia-modprobe -u -c=0 makes it; after that %s is there.",
		                path);
	}
}

struct walk {
	const struct tn_machine *machine;
	struct tn_diagnosis *out;
	const struct user *user;
	int cards;
};

/* nvidia0, nvidia1 and so on: those that are there must be open to the user; a container may have been given only some. */
static bool
look_at_name(void *context, const char *name)
{
	struct walk *walk = context;
	char path[64];
	if (strncmp(name, "nvidia", 6) != 0 || !isdigit((unsigned char)name[6]) || strlen(name) > 12)
		return true;
	walk->cards++;
	snprintf(path, sizeof(path), "/dev/%.12s", name);
	look_at(walk->machine, walk->out, walk->user, path, true);
	return true;
}

void
tn__check_devices(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	struct user user = { 0 };
	struct walk walk = { machine, out, &user, 0 };
	if (out->wsl || !tn__exists(machine, "/proc/driver/nvidia/version"))
		return; /* no driver: there is nothing to open. WSL has /dev/dxg, which is looked at with WSL */
	read_user(machine, &user);
	tn__each_name(machine, "/dev", look_at_name, &walk);
	look_at(machine, out, &user, "/dev/nvidiactl", true);
	look_at(machine, out, &user, "/dev/nvidia-uvm", walk.cards > 0);
	if (walk.cards == 0)
		look_at(machine, out, &user, "/dev/nvidia0", true);
}
