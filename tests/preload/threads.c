/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests: several threads change and list one folder at the same time.
 */
#include <assert.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 50

static const char *folder;

static void *
work(void *number)
{
	char name[256], other[256];

	for (int i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "%s/%ld-%d", folder, (long)number, i);
		snprintf(other, sizeof(other), "%s/a/%ld-%d", folder, (long)number, i);
		FILE *file = fopen(name, "w");
		assert(file && fputs("x", file) >= 0 && !fclose(file));
		assert(!rename(name, other) && access(name, F_OK) && !access(other, F_OK));
		DIR *dir = opendir(folder);
		assert(dir);
		while (readdir(dir))
			;
		assert(!closedir(dir) && !unlink(other));
	}
	return NULL;
}

int
main(int count, char **arguments)
{
	pthread_t threads[THREADS];

	folder = arguments[count - 1];
	for (long i = 0; i < THREADS; i++)
		assert(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (int i = 0; i < THREADS; i++)
		assert(!pthread_join(threads[i], NULL));
	return 0;
}
