/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache on disk: see cache.h.
 */
#include "dnn/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "TNDNN\0\0\1"
enum { HEAD_BYTES = 8, MOST_FILE_BYTES = 256 << 20 };

struct row {
	struct tn_dnn_key key;
	uint32_t length, check;
};

static uint32_t
check_of(const unsigned char *answer, uint32_t length)
{
	uint32_t sum = 0x811c9dc5u;
	for (uint32_t i = 0; i < length; i++)
		sum = (sum ^ answer[i]) * 0x01000193u;
	return sum;
}

const char *
tn__dnn_cache_path(const char *folder, const char *library, char out[PATH_MAX])
{
	static const char *const parts[] = { "", "_graph", "_heuristic", "_engines_precompiled",
		                                 "_engines_runtime_compiled" };
	const char *name = strrchr(library, '/'), *suffix = strstr(library, ".so");
	uint64_t sizes = 0xcbf29ce484222325u;
	char path[PATH_MAX];
	struct stat about;
	if (name == NULL || suffix == NULL || suffix < name || stat(library, &about) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (snprintf(path, sizeof(path), "%.*s%s%s", (int)(suffix - library), library, parts[i], suffix) >= PATH_MAX)
			return NULL;
		uint64_t size = stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
		sizes = (sizes ^ size) * 0x100000001b3u;
	}
	return snprintf(out, PATH_MAX, "%s/%016llx.answers", folder, (unsigned long long)sizes) < PATH_MAX ? out : NULL;
}

size_t
tn__dnn_cache_walk(const unsigned char *bytes, size_t length,
                   void (*take)(void *context, const struct tn_dnn_record *record), void *context)
{
	struct tn_dnn_cursor cursor = { .at = bytes, .end = bytes + length };
	const void *head = tn__dnn_take(&cursor, HEAD_BYTES);
	size_t sound = 0;
	if (head == NULL || memcmp(head, HEAD, HEAD_BYTES) != 0)
		return 0;
	for (;;) {
		struct row row;
		sound = (size_t)(cursor.at - bytes);
		const void *here = tn__dnn_take(&cursor, sizeof(row));
		if (here == NULL)
			return sound;
		memcpy(&row, here, sizeof(row));
		const unsigned char *answer = tn__dnn_take(&cursor, row.length);
		if (answer == NULL || check_of(answer, row.length) != row.check)
			return sound;
		const struct tn_dnn_record record = { row.key, answer, row.length };
		if (take != NULL)
			take(context, &record);
	}
}

/* ---- adding ---- */

static void
make_folders(const char *path)
{
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s", path);
	for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(folder, 0755);
		*slash = '/';
	}
}

static bool
mend(int file)
{
	struct stat about;
	if (fstat(file, &about) != 0 || about.st_size > MOST_FILE_BYTES)
		return false;
	size_t size = (size_t)about.st_size, sound = 0;
	if (size > 0) {
		void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
		if (bytes == MAP_FAILED)
			return false;
		sound = tn__dnn_cache_walk(bytes, size, NULL, NULL);
		munmap(bytes, size);
	}
	if (sound < size && ftruncate(file, (off_t)sound) != 0)
		return false;
	return sound > 0 || write(file, HEAD, HEAD_BYTES) == HEAD_BYTES;
}

int
tn__dnn_cache_open(const char *path)
{
	int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, file = open(path, flags, 0644);
	if (file < 0 && errno == ENOENT) {
		make_folders(path);
		file = open(path, flags, 0644);
	}
	if (file < 0)
		return -1;
	bool good = flock(file, LOCK_EX) == 0 && mend(file);
	(void)flock(file, LOCK_UN);
	if (good)
		return file;
	close(file);
	return -1;
}

void
tn__dnn_cache_add(int file, const struct tn_dnn_record *record)
{
	struct row row = { record->key, record->length, check_of(record->answer, record->length) };
	size_t length = sizeof(row) + record->length;
	unsigned char *bytes = file < 0 ? NULL : malloc(length);
	if (bytes == NULL)
		return;
	memcpy(bytes, &row, sizeof(row));
	memcpy(bytes + sizeof(row), record->answer, record->length);
	if (flock(file, LOCK_EX) == 0) { /* not while another cuts */
		(void)!write(file, bytes, length);
		(void)flock(file, LOCK_UN);
	}
	free(bytes);
}
