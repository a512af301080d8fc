/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that call the kernel themselves: what they try is not seen by the overlay, which the report has to say.
 */
#include "preload/overlay.h"

#include <elf.h>
#include <string.h>

#define HEAD 4096 /* a program's headers and its first notes lie there */

/* Go programs carry a note of Go's, with libc and without. */
static bool
has_go_note(const char *head, size_t size, const Elf64_Phdr *segment)
{
	const Elf64_Nhdr *note = (const void *)(head + segment->p_offset);

	return segment->p_type == PT_NOTE && segment->p_offset + sizeof(*note) + 4 <= size && note->n_namesz == 4 &&
	       !memcmp(note + 1, "Go", 3);
}

/* Is it a program without the dynamic loader (so that nothing is preloaded), or one of Go? */
static bool
calls_kernel(const char *head, size_t size)
{
	const Elf64_Ehdr *header = (const void *)head;
	bool loader = false, go = false;

	if (size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG))
		return false;
	if (header->e_ident[EI_CLASS] != ELFCLASS64)
		return true; /* of 32 bits: our library cannot be preloaded */
	if (header->e_phentsize != sizeof(Elf64_Phdr) ||
	    header->e_phoff + (size_t)header->e_phnum * sizeof(Elf64_Phdr) > size)
		return false;
	for (int i = 0; i < header->e_phnum; i++) {
		const Elf64_Phdr *segment = (const void *)(head + header->e_phoff + (size_t)i * sizeof(*segment));
		loader |= segment->p_type == PT_INTERP;
		go |= has_go_note(head, size, segment);
	}
	return !loader || go;
}

void
tn__note_program(const char *run, const char *path)
{
	_Alignas(Elf64_Ehdr) char head[HEAD];
	char name[PATH_MAX];
	size_t length = strlen(run), size;
	const char *base = strrchr(path, '/');
	long got, fd = TN_CALL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0L);

	if (fd < 0)
		return;
	got = TN_CALL(SYS_read, fd, head, sizeof(head));
	(void)TN_CALL(SYS_close, fd);
	if (got <= 0 || !calls_kernel(head, (size_t)got) || length + sizeof("/state/unseen") > sizeof(name))
		return;
	memcpy(name, run, length);
	memcpy(name + length, "/state/unseen", sizeof("/state/unseen"));
	fd = TN_PASS_CALL(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600, 0L);
	if (fd < 0)
		return;
	base = base ? base + 1 : path;
	size = strlen(base) < sizeof(name) - 1 ? strlen(base) : sizeof(name) - 1;
	memcpy(name, base, size);
	name[size] = '\n';
	(void)TN_CALL(SYS_write, fd, name, size + 1);
	(void)TN_CALL(SYS_close, fd);
}
