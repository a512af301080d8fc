/* SPDX-License-Identifier: Apache-2.0
 *
 * Large host allocations where the kernel refuses overcommit (vm.overcommit_memory=2).
 *
 * A model that is built on the host and moved to the device touches none of its pages under Tonnage (initialisation is
 * skipped, copies move nothing), but the kernel would still count every byte of private writable memory against its limit.
 * Pages of a shared mapping of a file are not counted. So this library, preloaded only on such machines, serves requests
 * of 64 MiB and more with a mapping of a sparse, nameless file in the run's folder.
 *
 * What differs: such memory is shared with processes that are forked later, instead of copied on write.
 * Lock: `lock` guards the table. The bounds are read without it: a pointer outside them is never ours.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE ((size_t)64 << 20)
#define BLOCKS 16384
#define EXPORT __attribute__((visibility("default")))

struct block {
	void *address;
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[BLOCKS];
static size_t block_count;
static _Atomic uintptr_t lowest = UINTPTR_MAX, highest;

/* glibc's own names of what is replaced here: no lookup, so that the first call may come at any time. */
extern void __libc_free(void *pointer);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);

static int
nameless_file(void)
{
	const char *run = getenv("TONNAGE_RUN");
	return run ? open(run, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
}

static void
widen(uintptr_t from, uintptr_t to)
{
	if (from < lowest)
		lowest = from;
	if (to > highest)
		highest = to;
}

static bool
remember(void *address, size_t size)
{
	pthread_mutex_lock(&lock);
	bool room = block_count < BLOCKS;
	if (room) {
		blocks[block_count++] = (struct block){ .address = address, .size = size };
		widen((uintptr_t)address, (uintptr_t)address + size);
	}
	pthread_mutex_unlock(&lock);
	return room;
}

/* The size of a block of ours that starts at `pointer`, 0 when there is none; `forget` takes it out of the table. */
static size_t
size_of(const void *pointer, bool forget)
{
	uintptr_t address = (uintptr_t)pointer;
	size_t size = 0;
	if (address < lowest || address >= highest || (address & 4095) != 0)
		return 0;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < block_count && size == 0; i++) {
		if (blocks[i].address != pointer)
			continue;
		size = blocks[i].size;
		if (forget)
			blocks[i] = blocks[--block_count];
	}
	pthread_mutex_unlock(&lock);
	return size;
}

/* NULL where the folder's file system cannot hold nameless files, or all rows are taken: the caller asks libc. */
static void *
map_large(size_t size)
{
	size_t whole = (size + 4095) & ~(size_t)4095;
	int saved = errno, fd = nameless_file();
	void *address = MAP_FAILED;
	if (fd >= 0 && whole >= size && ftruncate(fd, (off_t)whole) == 0)
		address = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	errno = saved;
	if (address == MAP_FAILED)
		return NULL;
	if (remember(address, whole))
		return address;
	munmap(address, whole);
	return NULL;
}

EXPORT void *
malloc(size_t size)
{
	void *address = size >= LARGE ? map_large(size) : NULL;
	return address ? address : __libc_malloc(size);
}

EXPORT void *
calloc(size_t count, size_t size)
{
	size_t bytes;
	void *address = NULL;
	if (!__builtin_mul_overflow(count, size, &bytes) && bytes >= LARGE)
		address = map_large(bytes);
	return address ? address : __libc_calloc(count, size);
}

EXPORT void *
memalign(size_t alignment, size_t size)
{
	void *address = size >= LARGE && alignment <= 4096 ? map_large(size) : NULL;
	return address ? address : __libc_memalign(alignment, size);
}

EXPORT void *
aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

EXPORT int
posix_memalign(void **out, size_t alignment, size_t size)
{
	if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
		return EINVAL;
	int saved = errno;
	void *address = memalign(alignment, size);
	errno = saved;
	if (!address)
		return ENOMEM;
	*out = address;
	return 0;
}

EXPORT void
free(void *pointer)
{
	size_t size = size_of(pointer, true);
	if (size == 0) {
		__libc_free(pointer);
		return;
	}
	int saved = errno;
	munmap(pointer, size);
	errno = saved;
}

EXPORT void *
realloc(void *pointer, size_t size)
{
	size_t old = pointer ? size_of(pointer, false) : 0;
	if (old == 0)
		return __libc_realloc(pointer, size);
	void *address = malloc(size);
	if (!address)
		return NULL;
	memcpy(address, pointer, old < size ? old : size);
	free(pointer);
	return address;
}

EXPORT size_t
malloc_usable_size(void *pointer)
{
	static _Atomic(size_t (*)(void *)) next;
	size_t size = pointer ? size_of(pointer, false) : 0;
	if (size)
		return size;
	if (!next)
		next = (size_t (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "malloc_usable_size");
	return next ? next(pointer) : 0;
}
