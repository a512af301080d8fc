/* SPDX-License-Identifier: Apache-2.0
 *
 * Packages that do not go together: those that torch's wheel demands in one version (NVIDIA's libraries, triton), those that
 * demand one version of torch (torchvision, torchaudio, vllm ...), and two torches in one folder. Read from METADATA of the
 * .dist-info folders (https://packaging.python.org/en/latest/specifications/core-metadata/).
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "doctor/checks.h"

#define NAME_ROOM 96

struct packages {
	const struct tn_machine *machine;
	struct tn_diagnosis *out;
	int torches;
	char wanted[NAME_ROOM]; /* what is searched for */
	char version[48];       /* its version, when found; "" else */
	char missing[512];      /* libraries that torch demands and that are not installed */
};

#if defined(__x86_64__)
#define THIS_PROCESSOR "x86_64"
#else
#define THIS_PROCESSOR "aarch64"
#endif

/* Names are compared in small letters with "_" for "-" and ".", as the .dist-info folders have them. */
static void
plain_name(char *name)
{
	for (; *name != '\0'; name++)
		*name = *name == '-' || *name == '.' ? '_' : (char)tolower((unsigned char)*name);
}

/* "torch-2.11.0+cu130.dist-info" into name and version. */
static bool
split_folder(const char *folder, char name[NAME_ROOM], char version[48])
{
	const char *end = strstr(folder, ".dist-info"), *dash = strchr(folder, '-');
	if (end == NULL || end[10] != '\0' || dash == NULL || dash > end || dash - folder >= NAME_ROOM)
		return false;
	snprintf(name, NAME_ROOM, "%.*s", (int)(dash - folder), folder);
	snprintf(version, 48, "%.*s", (int)(end - dash - 1), dash + 1);
	plain_name(name);
	return true;
}

static bool
find_version(void *context, const char *folder)
{
	struct packages *packages = context;
	char name[NAME_ROOM], version[48];
	if (!split_folder(folder, name, version) || strcmp(name, packages->wanted) != 0)
		return true;
	snprintf(packages->version, sizeof(packages->version), "%s", version);
	return false;
}

/* The name and the exact version of "nvidia-nccl-cu12 (==2.21.5) ; platform_system == ..." or "torch==2.11.0"; false for a
 * demand of another kind, for one of an extra and for one of another processor. */
static bool
read_demand(const char *line, size_t length, char name[NAME_ROOM], char version[48])
{
	char text[256];
	if (length >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)length, line);
	char *marker = strchr(text, ';');
	if (marker != NULL) {
		bool processor = strstr(marker, "platform_machine") != NULL;
		if (strstr(marker, "extra") != NULL || (processor && strstr(marker, THIS_PROCESSOR) == NULL))
			return false;
		*marker = '\0';
	}
	size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
	const char *equals = strstr(text, "==");
	if (letters == 0 || letters >= NAME_ROOM || equals == NULL ||
	    strspn(text + letters, " (") != (size_t)(equals - text - (ptrdiff_t)letters))
		return false;
	snprintf(name, NAME_ROOM, "%.*s", (int)letters, text);
	const char *number = equals + 2 + strspn(equals + 2, " ");
	snprintf(version, 48, "%.*s", (int)strcspn(number, " ),"), number);
	plain_name(name);
	return version[0] != '\0' && strchr(version, '*') == NULL;
}

/* 2.11.0+cu130 is 2.11.0 where the demand does not say "+". */
static bool
is_version(const char *version, const char *demanded)
{
	size_t length = strchr(demanded, '+') != NULL ? strlen(version) : strcspn(version, "+");
	return strlen(demanded) == length && strncmp(version, demanded, length) == 0;
}

static void
say_mismatch(struct tn_diagnosis *out, const char *package, const char *own, const char *demanded, const char *version,
             const char *there)
{
	struct tn_fact *fact = tn__fact(out, TN_PART_TORCH, TN_LEVEL_WARNING, "package_version", -1,
	                                "%s %s wants %s %s, but %s is installed", package, own, demanded, version, there);
	tn__fact_meaning(out, fact,
	                 "Built against another version: imports fail, symbols are missing, or results are wrong.");
	if (strcmp(package, "torch") == 0)
		tn__fact_remedy(out, fact, "pip install \"%s==%s\".", demanded, version);
	else
		tn__fact_remedy(out, fact, "Install the %s that was made for this torch, or torch %s.", package, version);
}

static bool
version_of(struct packages *packages, const char *name)
{
	snprintf(packages->wanted, sizeof(packages->wanted), "%s", name);
	packages->version[0] = '\0';
	tn__each_name(packages->machine, packages->out->torch.packages, find_version, packages);
	return packages->version[0] != '\0';
}

/* A demand of one package: of torch on any other, of any other on torch. */
static void
check_demand(struct packages *packages, const char *package, const char *own, const char *line, size_t length)
{
	char name[NAME_ROOM], version[48];
	bool of_torch = strcmp(package, "torch") == 0;
	if (!read_demand(line, length, name, version) || (!of_torch && strcmp(name, "torch") != 0))
		return;
	if (!version_of(packages, name)) {
		size_t used = strlen(packages->missing);
		if (of_torch && strncmp(name, "nvidia_", 7) == 0)
			snprintf(packages->missing + used, sizeof(packages->missing) - used, "%s%s", used > 0 ? ", " : "",
			         name + 7);
		return;
	}
	if (is_version(packages->version, version))
		return;
	say_mismatch(packages->out, package, own, name, version, packages->version);
}

/* The header of METADATA ends at the first empty line. */
static void
check_demands(struct packages *packages, const char *folder, const char *package, const char *own)
{
	static const char head[] = "Requires-Dist:";
	char *text = tn__read_text(packages->machine, "%s/%s/METADATA", packages->out->torch.packages, folder);
	for (const char *line = text; line != NULL && *line != '\0' && *line != '\n' && *line != '\r';) {
		size_t length = strcspn(line, "\r\n");
		if (length > sizeof(head) && strncasecmp(line, head, sizeof(head) - 1) == 0) {
			size_t skip = sizeof(head) - 1 + strspn(line + sizeof(head) - 1, " ");
			if (skip < length)
				check_demand(packages, package, own, line + skip, length - skip);
		}
		line += length;
		line += *line == '\r';
		line += *line == '\n';
	}
	free(text);
}

static bool
look_at_folder(void *context, const char *folder)
{
	struct packages *packages = context;
	char name[NAME_ROOM], version[48];
	if (!split_folder(folder, name, version))
		return true;
	packages->torches += strcmp(name, "torch") == 0;
	check_demands(packages, folder, name, version);
	return true;
}

/* A wheel that was installed without what it needs: fine for a virtual card (which brings these libraries), not for a real one. */
static void
say_missing(struct tn_diagnosis *out, const char *missing)
{
	enum tn_level level = out->card_count > 0 ? TN_LEVEL_WARNING : TN_LEVEL_FINE;
	struct tn_fact *fact = tn__fact(out, TN_PART_TORCH, level, "package_missing", -1, "Without NVIDIA's libraries: %s",
	                                missing);
	if (level == TN_LEVEL_FINE)
		return;
	tn__fact_meaning(out, fact,
	                 "import torch ends with \"cannot open shared object file\", unless the system has them.");
	tn__fact_remedy(out, fact, "pip install --force-reinstall \"torch==%s\" (without --no-deps).", out->torch.version);
}

void
tn__check_packages(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	struct packages packages = { .machine = machine, .out = out };
	if (out->torch.packages == NULL)
		return;
	tn__each_name(machine, out->torch.packages, look_at_folder, &packages);
	if (packages.missing[0] != '\0')
		say_missing(out, packages.missing);
	if (packages.torches < 2)
		return;
	struct tn_fact *fact = tn__fact(out, TN_PART_TORCH, TN_LEVEL_WARNING, "torch_twice", -1,
	                                "%s has the records of %d installations of torch", out->torch.packages,
	                                packages.torches);
	tn__fact_meaning(out, fact, "One was installed over the other; files of both may be mixed.");
	tn__fact_remedy(out, fact, "pip uninstall torch until it is gone, then install one.");
}
