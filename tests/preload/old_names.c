/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: names that only programs built long ago call, and calls that do their work inside libc.
 */
#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int files_seen;

static int
visit(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)path, (void)st, (void)where;
	files_seen += kind == FTW_F;
	return 0;
}

static int
no_dots(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void
check_old_stat(const char *path, off_t size)
{
	int (*old_stat)(int, const char *, struct stat *);
	struct stat st;

	old_stat = (__typeof__(old_stat))dlsym(RTLD_DEFAULT, "__xstat");
	assert(old_stat && !old_stat(1, path, &st) && st.st_size == size);
}

static void
check_listings(void)
{
	struct dirent **names;
	glob_t found;
	DIR *dir;
	long place;

	assert(scandir("tree", &names, no_dots, alphasort) == 3);
	assert(!strcmp(names[0]->d_name, "a") && !strcmp(names[2]->d_name, "fresh"));
	assert(!glob("tree/*", 0, NULL, &found) && found.gl_pathc == 3 && !strcmp(found.gl_pathv[2], "tree/fresh"));
	assert(!nftw("tree", visit, 8, FTW_PHYS) && files_seen == 3);
	assert((dir = opendir("tree")) && readdir(dir));
	place = telldir(dir);
	struct dirent *entry = readdir(dir);
	char kept[256];
	strcpy(kept, entry->d_name);
	seekdir(dir, place);
	assert(!strcmp(readdir(dir)->d_name, kept));
	rewinddir(dir);
	for (files_seen = 0; readdir(dir); files_seen++)
		;
	assert(files_seen == 5 && !closedir(dir));
}

int
main(void)
{
	char name[] = "tree/XXXXXX", folder[] = "tree/XXXXXX";
	FILE *file;
	int fd;

	assert((file = fopen("old", "w")) && fputs("12345", file) >= 0 && !fclose(file));
	check_old_stat("old", 5);
	assert((fd = mkstemp(name)) >= 0 && !close(fd) && !access(name, F_OK) && !unlink(name));
	assert(mkdtemp(folder) && !rmdir(folder));
	assert((file = tmpfile()) && fputs("x", file) >= 0 && !fclose(file));
	assert((fd = creat("tree/fresh", 0600)) >= 0 && !close(fd) && !remove("tree/one") && !remove("tree/a/two"));
	check_listings();
	return 0;
}
