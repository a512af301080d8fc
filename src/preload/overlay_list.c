/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in a folder of the merged tree.
 *
 * Invariant: a merged name is listed once, from the lower folder (its inode number is the one that stat gives); a
 * hidden lower name is not listed; what is only in the upper is listed from there.
 */
#include "preload/overlay.h"

#include <stdlib.h>
#include <string.h>

static int
grow(void **bytes, size_t *size, size_t wanted)
{
	size_t grown = *size ? *size : 4096;
	void *moved;

	while (grown < wanted)
		grown *= 2;
	if (grown == *size)
		return 0;
	moved = realloc(*bytes, grown);
	if (!moved)
		return -ENOMEM;
	*bytes = moved;
	*size = grown;
	return 0;
}

static int
append(struct tn__listing *listing, const struct dirent64 *entry)
{
	struct dirent64 *copy;

	if (grow((void **)&listing->bytes, &listing->size, listing->used + entry->d_reclen) ||
	    grow((void **)&listing->at, &listing->at_size, (listing->count + 1) * sizeof(size_t)))
		return -ENOMEM;
	copy = (void *)(listing->bytes + listing->used);
	memcpy(copy, entry, entry->d_reclen);
	listing->at[listing->count++] = listing->used;
	copy->d_off = (off64_t)listing->count;
	listing->used += entry->d_reclen;
	return 0;
}

/* Is a name of the lower (or of the upper) folder to be listed? */
static bool
is_listed(struct tn__place *folder, const char *name, bool from_upper)
{
	size_t length = folder->length;
	struct tn__place *child = folder;
	bool listed;

	if (!tn__is_merged(folder))
		return true;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return !from_upper;
	if (!tn__place_enter(child, name, strlen(name)))
		return !from_upper;
	listed = from_upper ? !child->lower : child->lower;
	tn__leave(folder, length);
	return listed;
}

static int
list_one(struct tn__place *folder, const char *name, bool from_upper, struct tn__listing *listing)
{
	_Alignas(struct dirent64) char records[8192];
	long got, result = 0;
	long fd = TN_CALL(SYS_openat, AT_FDCWD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd < 0)
		return (int)fd;
	while (result == 0 && (got = TN_CALL(SYS_getdents64, fd, records, sizeof(records))) != 0) {
		if (got < 0) {
			result = got;
			break;
		}
		for (long at = 0; at < got && result == 0;) {
			const struct dirent64 *entry = (const void *)(records + at);
			if (is_listed(folder, entry->d_name, from_upper))
				result = append(listing, entry);
			at += entry->d_reclen;
		}
	}
	(void)TN_CALL(SYS_close, fd);
	return (int)result;
}

int
tn__list(const struct tn__place *place, struct tn__listing *listing)
{
	struct tn__place folder = *place;
	char name[TN__NAME];
	int result;

	memset(listing, 0, sizeof(*listing));
	tn__real_name(place, name);
	result = list_one(&folder, name, !place->lower, listing);
	if (result == 0 && tn__is_merged(place)) {
		tn__upper_name(place, name);
		result = list_one(&folder, name, true, listing);
	}
	if (result)
		tn__listing_free(listing);
	return result;
}

void
tn__listing_free(struct tn__listing *listing)
{
	free(listing->bytes);
	free(listing->at);
	memset(listing, 0, sizeof(*listing));
}

int
tn__check_empty(const struct tn__place *place)
{
	struct tn__listing listing;
	int result = tn__list(place, &listing);

	if (result)
		return result;
	result = listing.count > 2 ? -ENOTEMPTY : 0;
	tn__listing_free(&listing);
	return result;
}
