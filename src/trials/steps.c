/* SPDX-License-Identifier: Apache-2.0
 *
 * What each step of a trial did, as the virtual GPU has written it (doc/design/0012-step-time.md). The files come from the
 * program's processes: a line that is none is passed over.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trials/trial.h"

#define LARGEST_FILE (4 << 20)
#define MOST_STEPS 256

/* ---- files ---- */

static char *
read_text(const char *path, off_t size)
{
	FILE *file = fopen(path, "re");
	char *text = file != NULL ? malloc((size_t)size + 1) : NULL;
	if (text != NULL)
		text[fread(text, 1, (size_t)size, file)] = '\0';
	if (file != NULL)
		fclose(file);
	return text;
}

char *
tn__work_read(const struct tn_folder *folder)
{
	char path[PATH_MAX], file[PATH_MAX], largest[PATH_MAX];
	const struct dirent *item;
	struct stat about;
	off_t size = 0;
	DIR *listing = opendir(tn__folder_path(folder, "work", path));
	while (listing != NULL && (item = readdir(listing)) != NULL) {
		if (snprintf(file, sizeof(file), "%s/%s", path, item->d_name) >= PATH_MAX || stat(file, &about) != 0 ||
		    !S_ISREG(about.st_mode) || about.st_size > LARGEST_FILE || about.st_size <= size)
			continue;
		size = about.st_size;
		strcpy(largest, file);
	}
	if (listing != NULL)
		closedir(listing);
	return size > 0 ? read_text(largest, size) : NULL;
}

/* Where a line's figures go; NULL when it names nothing. */
static struct tn_work_sum *
sum_named(struct tn_work *work, const char *what, int bin)
{
	static const char *const units[TN_MATHS] = { "fp64", "fp32", "tf32", "half" };
	for (int math = 0; math < TN_MATHS; math++)
		if (strcmp(what, units[math]) == 0)
			return bin >= 0 && bin < TN_WORK_BINS ? &work->kernels[math][bin] : NULL;
	return strcmp(what, "guessed") == 0     ? &work->guessed
	       : strcmp(what, "to_device") == 0 ? &work->to_device
	       : strcmp(what, "to_host") == 0   ? &work->to_host
	                                        : NULL;
}

static void
take_line(const char *line, struct tn_steps *steps)
{
	struct tn_work_sum read = { 0 };
	char what[16];
	size_t step;
	int bin;
	if (sscanf(line, "%zu\t%15[a-z0-9_]\t%d\t%lf\t%lf\t%lf", &step, what, &bin, &read.count, &read.flops,
	           &read.bytes) != 6 ||
	    step < 1 || step > MOST_STEPS || !(read.count >= 0 && read.flops >= 0 && read.bytes >= 0))
		return;
	struct tn_work *work = &steps->items[step - 1];
	struct tn_work_sum *sum = sum_named(work, what, bin);
	if (step > steps->count)
		steps->count = step;
	if (sum != NULL)
		*sum = read;
	else if (strcmp(what, "host") == 0)
		work->host_bytes = read.bytes;
	else if (strcmp(what, "launches") == 0)
		work->launches = read.count;
}

void
tn__steps_parse(const char *text, struct tn_steps *out)
{
	*out = (struct tn_steps){ .items = text != NULL ? calloc(MOST_STEPS, sizeof(*out->items)) : NULL };
	while (out->items != NULL && *text != '\0') {
		take_line(text, out);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

void
tn__steps_free(struct tn_steps *steps)
{
	free(steps->items);
	*steps = (struct tn_steps){ 0 };
}
