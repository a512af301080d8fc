/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a Python's packages lie, and what its torch says of itself, from files alone: the Python is not started.
 */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "code/code.h"
#include "doctor/checks.h"

struct places {
	const struct tn_machine *machine;
	char found[PATH_MAX]; /* the folder that has torch/version.py; "": none so far */
	char python[16];      /* "3.11", of the folder that was looked at last */
	const char *library;  /* the folder that the names are in */
	const char *packages; /* "site-packages" or "dist-packages" */
};

static bool
take(struct places *places, const char *folder)
{
	if (places->found[0] == '\0' && tn__exists(places->machine, "%s/torch/version.py", folder))
		snprintf(places->found, sizeof(places->found), "%s", folder);
	return places->found[0] == '\0';
}

/* lib/python3.11/site-packages */
static bool
look_at_name(void *context, const char *name)
{
	struct places *places = context;
	char folder[PATH_MAX];
	if (strncmp(name, "python", 6) != 0 ||
	    snprintf(folder, sizeof(folder), "%s/%s/%s", places->library, name, places->packages) >= (int)sizeof(folder))
		return true;
	if (name[6] >= '2' && name[6] <= '9' && strlen(name) < 12 && name[7] == '.')
		snprintf(places->python, sizeof(places->python), "%.10s", name + 6);
	return take(places, folder);
}

static void
look_below(struct places *places, const char *prefix)
{
	static const char *const libraries[] = { "lib", "lib64", "local/lib" };
	static const char *const packages[] = { "site-packages", "dist-packages" };
	for (size_t i = 0; i < 6 && places->found[0] == '\0'; i++) {
		char library[PATH_MAX];
		if (snprintf(library, sizeof(library), "%s/%s", prefix, libraries[i / 2]) >= (int)sizeof(library))
			continue;
		places->library = library;
		places->packages = packages[i % 2];
		tn__each_name(places->machine, library, look_at_name, places);
	}
}

/* "bin/python" of a prefix; the prefix of what a link points to comes after that of the link itself (virtual environments are
 * links, and so are the names of a system's Python). */
static void
look_at_python(struct places *places, const char *python)
{
	char folder[PATH_MAX], target[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s", python);
	dirname(folder);
	snprintf(target, sizeof(target), "%s", dirname(folder));
	look_below(places, target);
	if (places->found[0] != '\0')
		return;
	char *configuration = tn__read_text(places->machine, "%s/pyvenv.cfg", target);
	bool system = configuration == NULL || strstr(configuration, "include-system-site-packages = true") != NULL;
	free(configuration);
	char *whole = tn__rooted(places->machine, python);
	char *real = whole != NULL && system && places->machine->root[0] == '\0' ? realpath(whole, NULL) : NULL;
	if (real != NULL) {
		look_below(places, dirname(dirname(real)));
	}
	free(real);
	free(whole);
}

/* PYTHONPATH comes first, a user's own packages (~/.local) last. */
static void
look_everywhere(struct places *places)
{
	const char *path = tn__variable(places->machine, "PYTHONPATH"), *home = tn__variable(places->machine, "HOME");
	char folder[PATH_MAX];
	for (size_t length; path != NULL && *path != '\0'; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (length > 0 && length < sizeof(folder)) {
			snprintf(folder, sizeof(folder), "%.*s", (int)length, path);
			take(places, folder);
		}
	}
	look_at_python(places, places->machine->python);
	if (places->found[0] == '\0' && home != NULL &&
	    snprintf(folder, sizeof(folder), "%s/.local", home) < (int)sizeof(folder))
		look_below(places, folder);
}

/* The text between quotes behind "name...=" in version.py; "" for None. */
static void
read_string(const char *text, const char *name, char *out, size_t capacity)
{
	const char *at = tn__field(text, name);
	size_t length = at != NULL ? strcspn(at, "\n") : 0;
	const char *equals = length > 0 ? memchr(at, '=', length) : NULL;
	out[0] = '\0';
	if (equals == NULL)
		return;
	const char *open = equals + 1 + strspn(equals + 1, " ");
	if (*open == '\'' || *open == '"')
		snprintf(out, capacity, "%.*s", (int)strcspn(open + 1, "'\"\n"), open + 1);
}

static void
read_torch(const struct tn_machine *machine, const char *packages, struct tn_doctor_torch *torch)
{
	char hip[32] = "";
	char *text = tn__read_text(machine, "%s/torch/version.py", packages);
	if (text != NULL) {
		read_string(text, "__version__", torch->version, sizeof(torch->version));
		read_string(text, "cuda", torch->cuda, sizeof(torch->cuda));
		read_string(text, "hip", hip, sizeof(hip));
		torch->rocm = hip[0] != '\0';
	}
	free(text);
}

/* Architectures of libtorch_cuda.so, or of the parts that it had up to torch 1.13. */
static void
read_architectures(const struct tn_machine *machine, const char *packages, struct tn_doctor_torch *torch)
{
	static const char *const names[] = { "libtorch_cuda.so", "libtorch_cuda_cu.so" };
	struct tn_code_architecture rows[TN_DOCTOR_ARCHITECTURES];
	for (size_t i = 0; i < 2 && torch->architecture_count == 0; i++) {
		char path[PATH_MAX];
		size_t count = 0;
		uint32_t containers = 0;
		if (snprintf(path, sizeof(path), "%s%s/torch/lib/%s", machine->root, packages, names[i]) >= (int)sizeof(path) ||
		    tn__code_architectures(path, rows, TN_DOCTOR_ARCHITECTURES, &count, &containers) != TN_OK)
			continue;
		for (size_t j = 0; j < count; j++)
			torch->architectures[j] = (struct tn_doctor_architecture){ rows[j].number, rows[j].ptx,
				                                                       rows[j].containers == containers };
		torch->architecture_count = count;
	}
}

/* A wrapper such as pyenv's shims: which Python it starts is not known. */
static bool
is_script(const struct tn_machine *machine, const char *python)
{
	char start[3] = "";
	char *whole = tn__rooted(machine, python);
	FILE *file = whole != NULL ? fopen(whole, "re") : NULL;
	bool script = file != NULL && fread(start, 1, 2, file) == 2 && memcmp(start, "#!", 2) == 0;
	if (file != NULL)
		fclose(file);
	free(whole);
	return script;
}

tn_status
tn__find_torch(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	struct places places = { .machine = machine };
	if (machine->python == NULL)
		return TN_OK;
	char *whole = tn__rooted(machine, machine->python);
	struct stat about;
	bool there = whole != NULL && lstat(whole, &about) == 0 && !S_ISDIR(about.st_mode);
	free(whole);
	TN_RETURN_IF(!there, TN_NOT_FOUND, "no Python at %s", machine->python);
	out->torch.script = is_script(machine, machine->python);
	look_everywhere(&places);
	snprintf(out->torch.python, sizeof(out->torch.python), "%s", places.python);
	if (places.found[0] == '\0')
		return TN_OK;
	out->torch.packages = strdup(places.found);
	TN_RETURN_IF(out->torch.packages == NULL, TN_NO_MEMORY, "out of host memory");
	read_torch(machine, places.found, &out->torch);
	read_architectures(machine, places.found, &out->torch);
	return TN_OK;
}
