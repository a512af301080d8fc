/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program is: this Tonnage, the files that its command line names, the Python files beside its script, and the packages of
 * its Python by name and version. Names of folders are no part of it, so that a copy is the same program.
 */
#include <dirent.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"
#include "supervise/internal.h"
#include "trials/store.h"

#define MOST_FILES 2000
#define MOST_DEPTH 6
#define LARGEST_FILE (16 << 20) /* of larger ones, which are data, the size counts */

struct walk {
	struct tn_sha256 *sha;
	int files;
};

static void
add_file(struct tn_sha256 *sha, const char *name, const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0 || !S_ISREG(about.st_mode))
		return;
	tn__sha256_add_text(sha, name);
	tn__sha256_add(sha, &about.st_size, sizeof(about.st_size));
	if (about.st_size <= LARGEST_FILE)
		(void)tn__sha256_add_file(sha, path);
}

/* ---- files below a folder ---- */

static bool
is_environment(const char *path)
{
	char file[PATH_MAX];
	return snprintf(file, sizeof(file), "%s/pyvenv.cfg", path) < PATH_MAX && access(file, F_OK) == 0;
}

/* Sources; configurations where they are usually kept, so that what a program writes below is none. */
static bool
is_source(const char *folder, const char *name, int depth)
{
	static const char *const configurations[] = { ".yaml", ".yml", ".toml", ".cfg", ".ini" };
	const char *slash = strrchr(folder, '/'), *last = slash != NULL ? slash + 1 : folder;
	if (tn__ends_with(name, ".py"))
		return true;
	for (size_t i = 0; i < sizeof(configurations) / sizeof(configurations[0]); i++)
		if (tn__ends_with(name, configurations[i]))
			return depth == 0 || strncmp(last, "conf", 4) == 0;
	return false;
}

static void
add_folder(struct walk *walk, const char *path, int depth)
{
	static const char *const others[] = { "__pycache__", "site-packages", "node_modules" };
	struct dirent **items;
	int count = depth <= MOST_DEPTH ? scandir(path, &items, NULL, alphasort) : -1;
	for (int i = 0; i < count; i++) {
		const char *name = items[i]->d_name;
		char inside[PATH_MAX];
		struct stat about;
		bool left = name[0] == '.' || walk->files >= MOST_FILES;
		for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++)
			left |= strcmp(name, others[j]) == 0;
		if (!left && snprintf(inside, sizeof(inside), "%s/%s", path, name) < PATH_MAX && lstat(inside, &about) == 0) {
			if (S_ISDIR(about.st_mode) && !is_environment(inside))
				add_folder(walk, inside, depth + 1);
			else if (!S_ISDIR(about.st_mode) && is_source(path, name, depth))
				walk->files++, add_file(walk->sha, name, inside);
		}
		free(items[i]);
	}
	if (count >= 0)
		free(items);
}

/* Beside the script; a module (-m) and a notebook begin with the folder that the command stands in. */
static void
add_sources(struct tn_sha256 *sha, char *const *arguments)
{
	struct walk walk = { .sha = sha };
	char folder[PATH_MAX] = ".";
	for (int i = 0; arguments[i] != NULL; i++)
		if (tn__ends_with(arguments[i], ".py") && access(arguments[i], R_OK) == 0 && strlen(arguments[i]) < PATH_MAX) {
			char copy[PATH_MAX];
			strcpy(copy, arguments[i]);
			snprintf(folder, sizeof(folder), "%s", dirname(copy));
			break;
		}
	add_folder(&walk, folder, 0);
}

/* ---- the Python ---- */

/* Names such as "torch-2.11.0.dist-info" beside the program, which is a Python or a command that was installed with one. */
static void
add_packages(struct tn_sha256 *sha, const char *program)
{
	char path[PATH_MAX], pattern[PATH_MAX];
	int ignored;
	glob_t found;
	if (tn__program_find(program, path, &ignored) != TN_OK ||
	    snprintf(pattern, sizeof(pattern), "%s/../lib/python3*/*-packages/*.*-info", dirname(path)) >= PATH_MAX)
		return;
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		tn__sha256_add_text(sha, strrchr(found.gl_pathv[i], '/'));
	globfree(&found);
}

/* ---- Tonnage ---- */

static void
add_ourselves(struct tn_sha256 *sha)
{
	static const char *const parts[] = { "libtonnage-preload.so", "libtonnage-vgpu.so" };
	struct tn_install install;
	char path[PATH_MAX];
	tn__sha256_add_text(sha, TONNAGE_VERSION);
	(void)tn__sha256_add_file(sha, "/proc/self/exe");
	if (tn__install_find(&install) != TN_OK)
		return;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (snprintf(path, sizeof(path), "%s/%s", install.libraries, parts[i]) < PATH_MAX)
			(void)tn__sha256_add_file(sha, path);
	struct walk walk = { .sha = sha };
	add_folder(&walk, install.guest, 0);
}

void
tn__fingerprint(char *const *arguments, char fingerprint[TN_SHA256_TEXT])
{
	struct tn_sha256 sha;
	tn__sha256_begin(&sha);
	add_ourselves(&sha);
	for (int i = 1; arguments[0] != NULL && arguments[i] != NULL; i++) {
		const char *value = strchr(arguments[i], '='); /* --config=FILE */
		add_file(&sha, arguments[i], arguments[i]);
		if (value != NULL && value[1] != '\0')
			add_file(&sha, value + 1, value + 1);
	}
	add_sources(&sha, arguments);
	add_packages(&sha, arguments[0]);
	tn__sha256_end(&sha, fingerprint);
}
