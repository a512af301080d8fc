/* SPDX-License-Identifier: Apache-2.0
 *
 * PyTorch's allocator settings in the environment: does this release know each of them, and is its value one that it takes.
 *
 * Whether a release knows a setting is read from the release itself: its name stands whole, ended by a zero, in libc10_cuda.so or
 * libc10.so (seen in 2.6.0 and 2.11.0, where each name of c10/core/AllocatorConfig.h and c10/cuda/CUDAAllocatorConfig.h does).
 * Without a torch, the names below are those of these two releases together. Which values are taken was measured with both on the
 * virtual card, and stands in c10/core/AllocatorConfig.cpp (PyTorch, commit 065861fba759); 20 MB is too little for 2.6.0 only.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/checks.h"

#define LIBRARY_MAX ((off_t)64 << 20) /* libc10.so has 1.5 MiB */

enum kind { MEGABYTES, SHARE, SWITCH, BACKEND, ANYTHING };

static const struct setting {
	const char *name;
	enum kind kind;
} settings[] = {
	{ "backend", BACKEND },
	{ "expandable_segments", SWITCH },
	{ "garbage_collection_threshold", SHARE },
	{ "graph_capture_record_stream_reuse", SWITCH },
	{ "large_segment_size_mb", ANYTHING },
	{ "max_non_split_rounding_mb", MEGABYTES },
	{ "max_split_size_mb", MEGABYTES },
	{ "per_process_memory_fraction", ANYTHING },
	{ "pinned_num_register_threads", ANYTHING },
	{ "pinned_reserve_segment_size_mb", ANYTHING },
	{ "pinned_use_background_threads", SWITCH },
	{ "pinned_use_cuda_host_register", SWITCH },
	{ "release_lock_on_cudamalloc", SWITCH },
	{ "roundup_power2_divisions", ANYTHING },
};

static const struct setting *
find_setting(const char *name)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	return NULL;
}

/* Whether a file has the text with a zero behind and none of a name's letters before it. */
static bool
file_has(const char *path, const char *text)
{
	struct stat about;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool found = false;
	if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
	    about.st_size <= LIBRARY_MAX) {
		size_t size = (size_t)about.st_size, length = strlen(text) + 1;
		char *bytes = malloc(size);
		ssize_t got = bytes != NULL ? read(file, bytes, size) : -1;
		for (size_t at = 0; got > 0 && !found && at + length <= (size_t)got;) {
			char *match = memmem(bytes + at, (size_t)got - at, text, length);
			if (match == NULL)
				break;
			found = match == bytes || match[-1] == '\0' || strchr("abcdefghijklmnopqrstuvwxyz_", match[-1]) == NULL;
			at = (size_t)(match - bytes) + 1;
		}
		free(bytes);
	}
	if (file >= 0)
		close(file);
	return found;
}

/* 1: this torch has the text; 0: it has not; -1: there is none to look into. */
static int
torch_has(const struct tn_machine *machine, const struct tn_diagnosis *out, const char *text)
{
	static const char *const names[] = { "libc10_cuda.so", "libc10.so" };
	int answer = -1;
	for (size_t i = 0; i < 2 && out->torch.packages != NULL && answer != 1; i++) {
		char path[PATH_MAX];
		if (snprintf(path, sizeof(path), "%s%s/torch/lib/%s", machine->root, out->torch.packages, names[i]) >=
		        (int)sizeof(path) ||
		    access(path, R_OK) != 0)
			continue;
		answer = file_has(path, text);
	}
	return answer;
}

static void
say_unknown(struct tn_diagnosis *out, const char *variable, const char *name, bool asked)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_ERROR, "allocator_unknown", -1, "%s: %s%s%s \"%s\"",
	                                variable, asked ? "torch " : "no torch that is known here",
	                                asked ? out->torch.version : "", asked ? " does not know" : " knows", name);
	tn__fact_meaning(out, fact, "The program ends when it first uses the card: \"Unrecognized ... %s\".", name);
	const char *near = NULL;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (strncasecmp(settings[i].name, name, 6) == 0)
			near = settings[i].name;
	if (near != NULL && strcmp(near, name) != 0)
		tn__fact_remedy(out, fact, "Do you mean %s? Else take it out of %s.", near, variable);
	else
		tn__fact_remedy(out, fact, "Take it out of %s, or use a torch that knows it.", variable);
}

/* What is wrong with a value, or NULL. */
static const char *
wrong_value(enum kind kind, const char *value, bool more_than_20)
{
	char *end;
	double number = strtod(value, &end);
	bool is_number = end != value && *end == '\0';
	if (kind == SWITCH && strcmp(value, "True") != 0 && strcmp(value, "False") != 0)
		return "it is True or False, with a capital";
	if (kind == SHARE && (!is_number || number <= 0 || number >= 1))
		return "it is a share above 0 and below 1, such as 0.8";
	if (kind == MEGABYTES && (!is_number || number < 20 || (number <= 20 && more_than_20)))
		return "it is a number of megabytes above 20";
	if (kind == BACKEND && strcmp(value, "native") != 0 && strcmp(value, "cudaMallocAsync") != 0)
		return "it is native or cudaMallocAsync";
	return NULL;
}

static void
say_value(struct tn_diagnosis *out, const char *variable, const char *name, const char *value, const char *wrong)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_ERROR, "allocator_value", -1,
	                                "%s: %s:%s is not taken", variable, name, value);
	tn__fact_meaning(out, fact, "The program ends when it first uses the card; %s.", wrong);
	tn__fact_remedy(out, fact, "Set it so, or take it out.");
}

static void
check_pair(const struct tn_machine *machine, struct tn_diagnosis *out, const char *variable, char *pair)
{
	char *colon = strchr(pair, ':');
	char *value = colon != NULL ? colon + 1 : pair + strlen(pair);
	if (colon != NULL)
		*colon = '\0';
	const struct setting *setting = find_setting(pair);
	int known = torch_has(machine, out, pair);
	if (known == 0 || (known < 0 && setting == NULL)) {
		say_unknown(out, variable, pair, known == 0);
		return;
	}
	bool more_than_20 = torch_has(machine, out, "CachingAllocator option max_split_size_mb too small, must be > ") == 1;
	const char *wrong = value[0] == '\0'  ? "it has no value"
	                    : setting != NULL ? wrong_value(setting->kind, value, more_than_20)
	                                      : NULL;
	if (wrong != NULL)
		say_value(out, variable, pair, value, wrong);
}

/* Pairs are apart by commas that stand in no brackets; blanks do not count. */
static void
check_pairs(const struct tn_machine *machine, struct tn_diagnosis *out, const char *variable, const char *text)
{
	char pair[512];
	size_t length = 0;
	int depth = 0;
	for (;; text++) {
		bool end = *text == '\0' || (*text == ',' && depth == 0);
		depth += (*text == '[') - (*text == ']');
		if (!end && *text != ' ' && length + 1 < sizeof(pair))
			pair[length++] = *text;
		if (!end)
			continue;
		pair[length] = '\0';
		if (length > 0)
			check_pair(machine, out, variable, pair);
		length = 0;
		if (*text == '\0')
			return;
	}
}

/* PYTORCH_ALLOC_CONF came after 2.6; in 2.9.1 its expandable_segments does nothing on CUDA
 * (https://github.com/pytorch/pytorch/issues/183387: there, and that 2.11.0 is well, was measured). */
static void
check_new_name(const struct tn_machine *machine, struct tn_diagnosis *out, const char *value)
{
	bool absent = torch_has(machine, out, "PYTORCH_ALLOC_CONF") == 0;
	bool ignored = strncmp(out->torch.version, "2.9.", 4) == 0 && strstr(value, "expandable_segments") != NULL;
	if (!absent && !ignored)
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_WARNING, "allocator_variable", -1,
	                                absent ? "torch %s does not read PYTORCH_ALLOC_CONF"
	                                       : "torch %s ignores expandable_segments in PYTORCH_ALLOC_CONF",
	                                out->torch.version);
	tn__fact_meaning(out, fact, "The settings in it have no effect, and nothing says so.");
	tn__fact_remedy(out, fact, "export PYTORCH_CUDA_ALLOC_CONF=%s", value);
}

void
tn__check_allocator(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	const char *newer = tn__variable(machine, "PYTORCH_ALLOC_CONF"),
			   *older = tn__variable(machine, "PYTORCH_CUDA_ALLOC_CONF");
	size_t before = out->count;
	if (newer != NULL && newer[0] != '\0') {
		check_new_name(machine, out, newer);
		check_pairs(machine, out, "PYTORCH_ALLOC_CONF", newer);
	}
	if (older != NULL && older[0] != '\0')
		check_pairs(machine, out, "PYTORCH_CUDA_ALLOC_CONF", older);
	if (newer != NULL && older != NULL && strcmp(newer, older) != 0) {
		struct tn_fact *fact = tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_WARNING, "allocator_twice", -1,
		                                "PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF are both set, and differ");
		tn__fact_meaning(out, fact, "torch reads one of them.");
		tn__fact_remedy(out, fact, "Keep one.");
	}
	if (out->count == before && (newer != NULL || older != NULL))
		tn__fact(out, TN_PART_SETTINGS, TN_LEVEL_FINE, "allocator", -1, "Allocator settings: %s",
		         newer != NULL ? newer : older);
}
