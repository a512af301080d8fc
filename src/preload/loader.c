/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the virtual libraries in the place of the real ones. The dynamic loader reuses a library that is loaded already
 * when another asks for the same SONAME; so, before a program opens a library that needs CUDA, all of ours of that CUDA
 * version are opened, and whoever asks for one by name or by full path gets ours.
 *
 * Nothing is opened in processes that never ask. With TONNAGE_GPU=real nothing is replaced.
 * dlopen searches by its caller's RUNPATH, so that our dlopen must leave by a jump, with the caller's return address.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/write_overlay.h" /* a library that the program has just written lies in the scratch folder */

enum policy { OWN, FALLBACK };

static const struct soname {
	const char *name;
	int major;
	enum policy policy;
} sonames[] = {
#define TN_SONAME(soname, folder, major, version, policy) { soname, major, policy },
#include "vgpu/sonames.def"
#undef TN_SONAME
};

#define SONAMES (sizeof(sonames) / sizeof(*sonames))

typedef void *(*dlopen_function)(const char *, int);

static dlopen_function
next_dlopen(void)
{
	static _Atomic(dlopen_function) next;
	dlopen_function found = next;
	if (!found) {
		found = (dlopen_function)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
		next = found;
	}
	return found;
}

/* The folder of our libraries, or NULL when nothing is to be replaced. */
static const char *
library_folder(void)
{
	const char *gpu = getenv("TONNAGE_GPU");
	return gpu && strcmp(gpu, "real") == 0 ? NULL : getenv("TONNAGE_LIB");
}

static bool
path_of(const struct soname *soname, char *path, size_t size)
{
	const char *folder = library_folder();
	return folder && snprintf(path, size, "%s/vgpu/%s", folder, soname->name) < (int)size;
}

static const char *
base_name(const char *file)
{
	const char *slash = strrchr(file, '/');
	return slash ? slash + 1 : file;
}

/* The row that a file name stands for: the SONAME itself, with more version numbers behind it, or, for the driver and
 * NVML, the development name without any. */
static const struct soname *
find_soname(const char *name)
{
	for (size_t i = 0; i < SONAMES; i++) {
		size_t length = strlen(sonames[i].name);
		if (strncmp(name, sonames[i].name, length) == 0 && (name[length] == '\0' || name[length] == '.'))
			return &sonames[i];
	}
	if (strcmp(name, "libcuda.so") == 0)
		return find_soname("libcuda.so.1");
	if (strcmp(name, "libnvidia-ml.so") == 0)
		return find_soname("libnvidia-ml.so.1");
	return NULL;
}

/* ---- which libraries does a file need? ---- */

struct image {
	const unsigned char *bytes;
	size_t size;
};

static const void *
at(const struct image *image, uint64_t offset, uint64_t size)
{
	return size <= image->size && offset <= image->size - size ? image->bytes + offset : NULL;
}

/* File offset of a virtual address, by the loadable segments; UINT64_MAX when none holds it. */
static uint64_t
offset_of(const struct image *image, const ElfW(Ehdr) * header, uint64_t address)
{
	for (int i = 0; i < header->e_phnum; i++) {
		const ElfW(Phdr) *segment = at(image, header->e_phoff + (uint64_t)i * sizeof(*segment), sizeof(*segment));
		if (segment && segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    address - segment->p_vaddr < segment->p_filesz)
			return segment->p_offset + (address - segment->p_vaddr);
	}
	return UINT64_MAX;
}

static const ElfW(Phdr) * dynamic_segment(const struct image *image, const ElfW(Ehdr) * header)
{
	for (int i = 0; i < header->e_phnum; i++) {
		const ElfW(Phdr) *segment = at(image, header->e_phoff + (uint64_t)i * sizeof(*segment), sizeof(*segment));
		if (segment && segment->p_type == PT_DYNAMIC)
			return segment;
	}
	return NULL;
}

static int
major_of_needed(const struct image *image, uint64_t strings, uint64_t name)
{
	const char *text = at(image, strings + name, 1);
	size_t room = text ? image->size - (size_t)(strings + name) : 0;
	if (!text || !memchr(text, '\0', room))
		return -1;
	const struct soname *soname = find_soname(text);
	return soname && soname->policy == OWN ? soname->major : -1;
}

/* The CUDA major that a file's NEEDED entries ask for: 12, 13, 0 for libraries that are the same in all, -1 for none. */
static int
major_of_image(const struct image *image)
{
	const ElfW(Ehdr) *header = at(image, 0, sizeof(*header));
	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(ElfW(Phdr)))
		return -1;
	const ElfW(Phdr) *dynamic = dynamic_segment(image, header);
	uint64_t strings = UINT64_MAX;
	int major = -1;
	size_t count = dynamic ? dynamic->p_filesz / sizeof(ElfW(Dyn)) : 0;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < count; i++) {
			const ElfW(Dyn) *entry = at(image, dynamic->p_offset + i * sizeof(*entry), sizeof(*entry));
			if (!entry || entry->d_tag == DT_NULL)
				break;
			if (pass == 0 && entry->d_tag == DT_STRTAB)
				strings = offset_of(image, header, entry->d_un.d_ptr);
			if (pass == 1 && entry->d_tag == DT_NEEDED && strings != UINT64_MAX) {
				int needed = major_of_needed(image, strings, entry->d_un.d_val);
				major = needed > major ? needed : major;
			}
		}
	return major;
}

static int
major_of_file(const char *path)
{
	struct stat about;
	int major = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
		void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			major = major_of_image(&(struct image){ .bytes = bytes, .size = (size_t)about.st_size });
			munmap(bytes, (size_t)about.st_size);
		}
	}
	close(fd);
	return major;
}

/* ---- opening ours ---- */

static void
open_own(int major)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < SONAMES; i++)
		if (sonames[i].policy == OWN && (sonames[i].major == 0 || sonames[i].major == major) &&
		    path_of(&sonames[i], path, sizeof(path)))
			next_dlopen()(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Opens all libraries of a major, once. */
static void
provide(int major)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool provided[16];
	if (major < 0 || major >= 16)
		return;
	pthread_mutex_lock(&lock);
	bool first = !provided[major];
	provided[major] = true;
	pthread_mutex_unlock(&lock);
	if (first)
		open_own(major);
}

/* PyTorch opens its NVRTC companion by bare name. Where NVIDIA's package is not installed beside torch, ours stands in,
 * so that the companion loads and says politely that it cannot compile. */
static void
provide_nvrtc(const void *caller)
{
	static const char *const folders[] = { "cu13/lib", "cuda_nvrtc/lib" };
	Dl_info about;
	char path[PATH_MAX];
	if (!dladdr(caller, &about) || !about.dli_fname)
		return;
	int length = (int)(base_name(about.dli_fname) - about.dli_fname);
	for (size_t i = 0; i < SONAMES; i++) {
		bool found = strncmp(sonames[i].name, "libnvrtc.so.", 12) != 0;
		for (size_t k = 0; k < sizeof(folders) / sizeof(*folders) && !found; k++) {
			snprintf(path, sizeof(path), "%.*s../../nvidia/%s/%s", length, about.dli_fname, folders[k],
			         sonames[i].name);
			found = access(path, F_OK) == 0;
		}
		if (!found && path_of(&sonames[i], path, sizeof(path)))
			next_dlopen()(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
}

/* What is to be opened instead of `file`; ours are opened first where they are needed. */
static const char *
prepare(const char *file, const void *caller)
{
	static _Thread_local char replaced[PATH_MAX];
	if (!file || !library_folder())
		return file;
	const char *name = base_name(file);
	const struct soname *soname = find_soname(name);
	if (soname && soname->policy == OWN && path_of(soname, replaced, sizeof(replaced))) {
		if (soname->major)
			provide(soname->major);
		return replaced;
	}
	if (strcmp(name, "libcaffe2_nvrtc.so") == 0)
		provide_nvrtc(caller);
	if (name != file)
		provide(major_of_file(file));
	return file;
}

#if defined(__clang__)
#define TN_LEAVE_BY_JUMP __attribute__((musttail)) return
#define TN_JUMPS
#else
#define TN_LEAVE_BY_JUMP return
#define TN_JUMPS __attribute__((optimize("O2"), noinline))
#endif

__attribute__((visibility("default"))) TN_JUMPS void *
dlopen(const char *file, int mode)
{
	static _Thread_local char buffer[PATH_MAX];
	const char *wanted = prepare(file, __builtin_return_address(0));
	if (wanted)
		wanted = tn__overlay_path_for_reading(wanted, buffer, sizeof(buffer));
	dlopen_function next = next_dlopen();
	TN_LEAVE_BY_JUMP next(wanted, mode);
}
