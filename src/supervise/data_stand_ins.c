/* SPDX-License-Identifier: Apache-2.0
 *
 * What stood in for data (--data shape) and for weights that could not be downloaded, from the lines that the processes of the run have written (state/data; the guest's data_notes.py).
 * Every process notes a file once, so that one may stand there several times. Images are added up by the tree that they lie in.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/plain.h"
#include "supervise/internal.h"
#include "verdict/stand_ins.h"

/* A file that an image was to come from, or a data set; then what is added up of a folder. */
struct note {
	enum tn_stand_in_kind kind;
	unsigned assumed;
	int64_t bytes, count;
	char *path;
	size_t length; /* of the path: the folder of an image, all of a data set */
};

struct notes {
	struct note *items;
	size_t count;
};

static unsigned
assumed_of(const char *words)
{
	return (strstr(words, "rows") != NULL ? TN_ASSUMED_ROWS : 0u) |
	       (strstr(words, "lengths") != NULL ? TN_ASSUMED_LENGTHS : 0u) |
	       (strstr(words, "sizes") != NULL ? TN_ASSUMED_SIZES : 0u);
}

/* Bytes of the folder that the first `length` bytes of a path lie in; 0: of none that is worth a name. */
static size_t
parent_of(const char *path, size_t length)
{
	while (length > 0 && path[length - 1] != '/')
		length--;
	return length > 0 ? length - 1 : 0;
}

/* "images\t1024\t1\t-\t/data/train/cat/1.jpg". A line that is none is left out: the last one may be cut. False without memory. */
static bool
take_line(char *line, struct notes *notes)
{
	char *words[5], *rest = line;
	for (int i = 0; i < 5; i++)
		if ((words[i] = strsep(&rest, i < 4 ? "\t" : "\n")) == NULL)
			return true;
	bool images = strcmp(words[0], "images") == 0, weights = strcmp(words[0], "weights") == 0;
	if (rest == NULL || (!images && !weights && strcmp(words[0], "data_set") != 0))
		return true;
	tn__make_plain(words[4], '?'); /* the program chose it */
	if (!tn__array_add(&notes->items, notes->count, sizeof(*notes->items)))
		return false;
	struct note *note = &notes->items[notes->count];
	*note = (struct note){ .kind = images    ? TN_STAND_IN_IMAGES
		                           : weights ? TN_STAND_IN_WEIGHTS_NOT_DOWNLOADED
		                                     : TN_STAND_IN_DATA_SET,
		                   .assumed = assumed_of(words[3]),
		                   .bytes = strtoll(words[1], NULL, 10),
		                   .count = strtoll(words[2], NULL, 10),
		                   .path = strdup(words[4]) };
	if (note->path == NULL)
		return false;
	size_t length = strlen(note->path), folder = images ? parent_of(note->path, length) : 0;
	note->length = folder > 0 ? folder : length;
	notes->count++;
	return true;
}

static int
compare_parts(const char *one, size_t length, const char *two, size_t other)
{
	int order = memcmp(one, two, length < other ? length : other);
	return order != 0 ? order : (length > other) - (length < other);
}

/* By folder, then by name: what is of one folder lies together. */
static int
compare(const void *one, const void *two)
{
	const struct note *a = one, *b = two;
	int order = (a->kind > b->kind) - (a->kind < b->kind);
	order = order != 0 ? order : compare_parts(a->path, a->length, b->path, b->length);
	return order != 0 ? order : strcmp(a->path, b->path);
}

/* By the folder that a folder lies in. */
static int
compare_trees(const void *one, const void *two)
{
	const struct note *a = one, *b = two;
	int order = (a->kind > b->kind) - (a->kind < b->kind);
	order = order != 0 ? order
	                   : compare_parts(a->path, parent_of(a->path, a->length), b->path, parent_of(b->path, b->length));
	return order != 0 ? order : compare(one, two);
}

static void
add_up(struct note *to, const struct note *from)
{
	to->bytes += from->bytes;
	to->count += from->count;
	to->assumed |= from->assumed;
}

/* One note for each data set and each folder of images, in `folders`, which borrows the paths. False without memory. */
static bool
add_folders(struct notes *notes, struct notes *folders)
{
	qsort(notes->items, notes->count, sizeof(*notes->items), compare);
	for (size_t i = 0; i < notes->count; i++) {
		const struct note *note = &notes->items[i], *before = i > 0 ? note - 1 : NULL;
		if (before != NULL && before->kind == note->kind && strcmp(before->path, note->path) == 0)
			continue; /* another process noted it, too */
		struct note *last = folders->count > 0 ? &folders->items[folders->count - 1] : NULL;
		if (last != NULL && last->kind == note->kind && note->kind == TN_STAND_IN_IMAGES &&
		    compare_parts(last->path, last->length, note->path, note->length) == 0) {
			add_up(last, note);
			continue;
		}
		if (!tn__array_add(&folders->items, folders->count, sizeof(*folders->items)))
			return false;
		folders->items[folders->count++] = *note;
	}
	return true;
}

/* Folders of images beside each other, as the classes of an ImageFolder, are one tree. */
static void
merge_trees(struct notes *folders)
{
	size_t kept = 0, parent = 0; /* parent: of the folder that was kept last */
	if (folders->count > 0)
		qsort(folders->items, folders->count, sizeof(*folders->items), compare_trees);
	for (size_t i = 0; i < folders->count; i++) {
		const struct note *note = &folders->items[i];
		struct note *last = kept > 0 ? &folders->items[kept - 1] : NULL;
		size_t own = note->kind == TN_STAND_IN_IMAGES ? parent_of(note->path, note->length) : 0;
		if (last != NULL && last->kind == note->kind && own > 0 &&
		    compare_parts(last->path, parent, note->path, own) == 0) {
			last->length = parent;
			add_up(last, note);
			continue;
		}
		parent = own;
		folders->items[kept++] = *note;
	}
	folders->count = kept;
}

void
tn__data_stand_ins_collect(const struct tn_folder *folder, struct tn_stand_in_list *list)
{
	char path[PATH_MAX], *line = NULL;
	size_t capacity = 0;
	struct notes notes = { NULL, 0 }, folders = { NULL, 0 };
	FILE *file = fopen(tn__folder_path(folder, "state/data", path), "re");
	while (file != NULL && getline(&line, &capacity, file) > 0 && take_line(line, &notes))
		;
	free(line);
	if (file != NULL)
		fclose(file);
	if (notes.count > 0 && add_folders(&notes, &folders))
		merge_trees(&folders);
	for (size_t i = 0; i < folders.count; i++) {
		struct note *note = &folders.items[i];
		note->path[note->length] = '\0';
		bool weights = note->kind == TN_STAND_IN_WEIGHTS_NOT_DOWNLOADED;
		struct tn_stand_in item = { .path = note->path,
			                        .kind = note->kind,
			                        .assumed = note->assumed,
			                        .count = weights ? TN_NO_FIGURE : note->count,
			                        .tensors = weights ? note->count : TN_NO_FIGURE,
			                        .bytes = note->bytes };
		if (tn__stand_ins_add(list, &item) != TN_OK)
			break;
	}
	free(folders.items);
	for (size_t i = 0; i < notes.count; i++)
		free(notes.items[i].path);
	free(notes.items);
}
