/* SPDX-License-Identifier: Apache-2.0
 *
 * POSIX shared memory and named semaphores: libc opens their files in /dev/shm inside itself, so it is done here, in every mode:
 * before glibc 2.34 the next shm_open is in a library (librt) that may be out of dlsym's sight.
 *
 * A semaphore's file is what libc's is: one sem_t, shared between processes. Opening it twice in a process gives the same
 * address (POSIX), so that the open ones are kept in a table. Lock: `lock` guards the table.
 * Must not know how the overlay works: the files are opened, linked and removed by our own entries.
 */
#include "preload/overlay.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_semaphore {
	dev_t device;
	ino_t inode;
	sem_t *at;
	unsigned users;
} *table;
static size_t table_count;

/* <folder>/<prefix><name> for a name that may begin with slashes and holds no other; false with errno. */
static bool
file_name(const char *prefix, const char *name, char *path)
{
	size_t length;

	while (*name == '/')
		name++;
	length = strlen(name);
	errno = EINVAL;
	if (!length || strchr(name, '/'))
		return false;
	errno = ENAMETOOLONG;
	if (length + strlen(prefix) > NAME_MAX)
		return false;
	stpcpy(stpcpy(stpcpy(path, TN__SHARED "/"), prefix), name);
	return true;
}

TN_ENTRY int
shm_open(const char *name, int flags, mode_t mode)
{
	char path[NAME_MAX + 32];

	return file_name("", name, path) ? open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode) : -1;
}

static int
remove_file(const char *prefix, const char *name)
{
	char path[NAME_MAX + 32];
	int result;

	if (!file_name(prefix, name, path)) {
		if (errno == EINVAL)
			errno = ENOENT;
		return -1;
	}
	result = unlink(path);
	if (result && errno == EPERM)
		errno = EACCES;
	return result;
}

TN_ENTRY int
shm_unlink(const char *name)
{
	return remove_file("", name);
}

/* ---- semaphores ---- */

/* The address of the semaphore in an open file: the one that it has in this process already, or a new one. */
static sem_t *
find_or_map(int fd)
{
	struct open_semaphore *grown;
	struct stat about;
	void *at;

	if (fstat(fd, &about))
		return SEM_FAILED;
	for (size_t i = 0; i < table_count; i++)
		if (table[i].users && table[i].device == about.st_dev && table[i].inode == about.st_ino) {
			table[i].users++;
			return table[i].at;
		}
	if (about.st_size < (off_t)sizeof(sem_t)) {
		errno = EINVAL;
		return SEM_FAILED;
	}
	grown = reallocarray(table, table_count + 1, sizeof(*table));
	if (!grown)
		return SEM_FAILED;
	table = grown;
	at = mmap(NULL, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return SEM_FAILED;
	table[table_count++] = (struct open_semaphore){ about.st_dev, about.st_ino, at, 1 };
	return at;
}

static sem_t *
map_semaphore(int fd)
{
	sem_t *found;
	int error;

	pthread_mutex_lock(&lock);
	found = find_or_map(fd);
	pthread_mutex_unlock(&lock);
	error = errno;
	close(fd);
	errno = error;
	return found;
}

/* A new file under a name of its own, whole, and then linked: nobody sees half of one. -1 with errno. */
static int
make_semaphore(const char *path, mode_t mode, unsigned value)
{
	char temporary[] = TN__SHARED "/sem.XXXXXX";
	sem_t fresh;
	int fd, error, result;

	memset(&fresh, 0, sizeof(fresh));
	if (sem_init(&fresh, 1, value))
		return -1;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -1;
	mode_t mask = umask(0);
	(void)umask(mask);
	result = write(fd, &fresh, sizeof(fresh)) == (ssize_t)sizeof(fresh) && !fchmod(fd, mode & ~mask) &&
	                 !link(temporary, path)
	             ? 0
	             : -1;
	error = errno;
	unlink(temporary);
	if (result)
		close(fd);
	errno = error;
	return result ? -1 : fd;
}

TN_ENTRY sem_t *
sem_open(const char *name, int flags, ...)
{
	char path[NAME_MAX + 32];
	va_list arguments;
	mode_t mode = 0;
	unsigned value = 0;
	int fd = -1;

	if (flags & O_CREAT) {
		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		value = va_arg(arguments, unsigned);
		va_end(arguments);
	}
	if (tn__mode() == TN__OFF)
		return TN_NEXT(sem_open)(name, flags, mode, value);
	if (!file_name("sem.", name, path))
		return SEM_FAILED;
	do {
		if ((flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))
			fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && (flags & O_CREAT) && ((flags & O_EXCL) || errno == ENOENT))
			fd = make_semaphore(path, mode, value);
	} while (fd < 0 && errno == EEXIST && !(flags & O_EXCL));
	return fd < 0 ? SEM_FAILED : map_semaphore(fd);
}

TN_ENTRY int
sem_close(sem_t *semaphore)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < table_count && !found; i++) {
		found = table[i].at == semaphore && table[i].users;
		if (found && --table[i].users == 0) {
			munmap(semaphore, sizeof(*semaphore));
			table[i] = table[--table_count];
		}
	}
	pthread_mutex_unlock(&lock);
	return found ? 0 : TN_NEXT(sem_close)(semaphore);
}

TN_ENTRY int
sem_unlink(const char *name)
{
	return tn__mode() == TN__OFF ? TN_NEXT(sem_unlink)(name) : remove_file("sem.", name);
}
