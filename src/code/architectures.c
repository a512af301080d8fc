/* SPDX-License-Identifier: Apache-2.0
 *
 * Which architectures a library has code for, read piece by piece from its file: it has up to gigabytes, of which the headers
 * are some thousand times 64 bytes.
 *
 * An entry is made for one chip or family when one of the flags below is set; read off torch 2.6.0, 2.11.0 (sm_90a, sm_100a,
 * sm_103a, sm_121a beside sm_90, sm_100, sm_120, which have neither).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "code/code.h"
#include "code/fatbin_layout.h"

#define FLAG_CHIP_ALONE UINT64_C(0x100000)
#define SECTIONS_MAX 4096
#define NAMES_MAX ((uint64_t)1 << 20)
#define ENTRIES_MAX 1000000

struct span {
	uint64_t at, bytes;
};

static bool
read_at(int file, uint64_t at, void *out, size_t bytes)
{
	size_t done = 0;
	while (done < bytes && at + done <= INT64_MAX) {
		ssize_t got = pread(file, (char *)out + done, bytes - done, (off_t)(at + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return done == bytes;
}

static bool
is_library(const Elf64_Ehdr *head)
{
	return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
	       head->e_shentsize == sizeof(Elf64_Shdr) && head->e_shnum > 0 && head->e_shnum < SECTIONS_MAX &&
	       head->e_shstrndx < head->e_shnum;
}

/* Where the section .nv_fatbin lies; false where there is none. */
static bool
find_section(int file, const Elf64_Ehdr *head, const Elf64_Shdr *sections, struct span *out)
{
	const Elf64_Shdr *names = &sections[head->e_shstrndx];
	bool found = false;
	char *text = names->sh_size > 0 && names->sh_size <= NAMES_MAX ? malloc(names->sh_size) : NULL;
	if (text != NULL && read_at(file, names->sh_offset, text, names->sh_size)) {
		text[names->sh_size - 1] = '\0';
		for (unsigned i = 0; i < head->e_shnum && !found; i++) {
			found = sections[i].sh_name < names->sh_size && strcmp(text + sections[i].sh_name, ".nv_fatbin") == 0;
			if (found)
				*out = (struct span){ sections[i].sh_offset, sections[i].sh_size };
		}
	}
	free(text);
	return found;
}

static bool
find_code(int file, struct span *out)
{
	Elf64_Ehdr head;
	struct stat about;
	if (fstat(file, &about) != 0 || !read_at(file, 0, &head, sizeof(head)) || !is_library(&head))
		return false;
	size_t bytes = (size_t)head.e_shnum * sizeof(Elf64_Shdr);
	Elf64_Shdr *sections = malloc(bytes);
	bool found = sections != NULL && read_at(file, head.e_shoff, sections, bytes) &&
	             find_section(file, &head, sections, out);
	free(sections);
	uint64_t size = (uint64_t)about.st_size;
	return found && out->at <= size && out->bytes <= size - out->at;
}

struct list {
	struct tn_code_architecture *rows;
	size_t room, count;
	uint32_t containers, entries;
};

/* Counts an architecture once a container: `containers` already has this one. */
static void
count_entry(struct list *list, const struct fatbin_entry *entry, uint32_t last[])
{
	bool ptx = entry->kind == FATBIN_KIND_PTX;
	size_t i = 0;
	if ((!ptx && entry->kind != FATBIN_KIND_CUBIN) || (entry->flags & FLAG_CHIP_ALONE) || entry->architecture > 999)
		return;
	while (i < list->count && (list->rows[i].number != (int)entry->architecture || list->rows[i].ptx != ptx))
		i++;
	if (i == list->room)
		return;
	if (i == list->count) {
		list->rows[list->count++] = (struct tn_code_architecture){ (int)entry->architecture, ptx, 0 };
		last[i] = 0;
	}
	if (last[i] != list->containers)
		list->rows[i].containers++;
	last[i] = list->containers;
}

/* One container; false where it is longer than its section. */
static bool
read_container(int file, struct span part, const struct fatbin_header *header, struct list *list, uint32_t last[])
{
	uint64_t at = part.at + header->bytes, end = at + header->entries_bytes;
	while (at < end) {
		struct fatbin_entry entry;
		if (end - at < sizeof(entry) || !read_at(file, at, &entry, sizeof(entry)) || entry.bytes < sizeof(entry) ||
		    entry.bytes > end - at || entry.padded > end - at - entry.bytes || ++list->entries > ENTRIES_MAX)
			return false;
		count_entry(list, &entry, last);
		at += entry.bytes + entry.padded;
	}
	return true;
}

/* Containers follow each other at multiples of eight. */
static bool
read_section(int file, struct span section, struct list *list)
{
	uint32_t last[64];
	uint64_t at = 0;
	while (section.bytes - at >= sizeof(struct fatbin_header)) {
		struct fatbin_header header;
		if (!read_at(file, section.at + at, &header, sizeof(header)))
			return false;
		if (header.magic != FATBIN_MAGIC)
			return list->containers > 0;
		if (header.bytes < sizeof(header) || header.bytes > section.bytes - at ||
		    header.entries_bytes > section.bytes - at - header.bytes)
			return false;
		list->containers++;
		if (!read_container(file, (struct span){ section.at + at, section.bytes - at }, &header, list, last))
			return false;
		at += header.bytes + header.entries_bytes;
		uint64_t aligned = (at + 7) & ~UINT64_C(7);
		at = aligned < section.bytes ? aligned : section.bytes;
	}
	return true;
}

static int
by_number(const void *first, const void *second)
{
	const struct tn_code_architecture *a = first, *b = second;
	return a->number != b->number ? (a->number > b->number) - (a->number < b->number) : a->ptx - b->ptx;
}

tn_status
tn__code_architectures(const char *path, struct tn_code_architecture *out, size_t room, size_t *count,
                       uint32_t *containers)
{
	struct list list = { .rows = out, .room = room < 64 ? room : 64 };
	struct span section;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	TN_RETURN_IF(file < 0, TN_IO, "%s cannot be read: %s", path, strerror(errno));
	bool found = find_code(file, &section), good = found && read_section(file, section, &list);
	close(file);
	TN_RETURN_IF(!found, TN_FORMAT, "%s has no section .nv_fatbin", path);
	TN_RETURN_IF(!good, TN_FORMAT, "the fat binaries of %s are in another layout", path);
	qsort(out, list.count, sizeof(*out), by_number);
	*count = list.count;
	*containers = list.containers;
	return TN_OK;
}
