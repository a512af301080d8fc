/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes cubins as small as they can be, for tests of what reads them: kernels with the sizes of their parameters.
 */
#ifndef TEST_CODE_WRITER_H
#define TEST_CODE_WRITER_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CUBIN_ROOM 8192

struct cubin {
	unsigned char bytes[CUBIN_ROOM];
	size_t size;
	Elf64_Shdr sections[8];
	unsigned count;
	char names[2048];
	size_t names_size;
};

static inline void
cubin_begin(struct cubin *cubin)
{
	memset(cubin, 0, sizeof(*cubin));
	cubin->size = sizeof(Elf64_Ehdr);
	cubin->count = 1;
	cubin->names_size = 1;
}

static inline void
cubin_section(struct cubin *cubin, const char *name, const void *bytes, size_t size)
{
	Elf64_Shdr *section = &cubin->sections[cubin->count++];
	section->sh_name = (Elf64_Word)cubin->names_size;
	section->sh_type = SHT_PROGBITS;
	section->sh_offset = cubin->size;
	section->sh_size = size;
	memcpy(cubin->bytes + cubin->size, bytes, size);
	cubin->size += (size + 7) & ~(size_t)7;
	strcpy(cubin->names + cubin->names_size, name);
	cubin->names_size += strlen(name) + 1;
}

/* One record of a parameter, as ptxas writes it: the last one first. Returns its bytes. */
static inline size_t
parameter_record(unsigned char *at, unsigned ordinal, unsigned offset, unsigned bytes)
{
	const uint16_t value = 12, places[2] = { (uint16_t)ordinal, (uint16_t)offset };
	const uint32_t index = 0, about = bytes << 18 | 0x1f000;
	at[0] = 4;
	at[1] = 0x17;
	memcpy(at + 2, &value, 2);
	memcpy(at + 4, &index, 4);
	memcpy(at + 8, places, 4);
	memcpy(at + 12, &about, 4);
	return 16;
}

/* A kernel whose parameters lie one after the other without a gap. */
static inline void
cubin_kernel(struct cubin *cubin, const char *kernel, const uint16_t *sizes, unsigned count)
{
	unsigned char records[1024];
	char name[512] = ".nv.info.";
	uint16_t end = 0;
	for (unsigned i = 0; i < count; i++)
		end = (uint16_t)(end + sizes[i]);
	records[0] = 3;
	records[1] = 0x19;
	memcpy(records + 2, &end, 2);
	size_t at = 4;
	for (unsigned i = count; i-- > 0;) {
		end = (uint16_t)(end - sizes[i]);
		at += parameter_record(records + at, i, end, sizes[i]);
	}
	cubin_section(cubin, strcat(name, kernel), records, at);
}

static inline void
cubin_end(struct cubin *cubin)
{
	Elf64_Ehdr elf = { .e_ident = ELFMAG, .e_machine = EM_CUDA, .e_shentsize = sizeof(Elf64_Shdr) };
	elf.e_ident[EI_CLASS] = ELFCLASS64;
	elf.e_shstrndx = (Elf64_Half)cubin->count;
	char names[2048];
	size_t size = cubin->names_size + sizeof(".shstrtab");
	memcpy(names, cubin->names, sizeof(names));
	strcpy(names + cubin->names_size, ".shstrtab");
	cubin_section(cubin, ".shstrtab", names, size);
	elf.e_shnum = (Elf64_Half)cubin->count;
	elf.e_shoff = cubin->size;
	memcpy(cubin->bytes, &elf, sizeof(elf));
	memcpy(cubin->bytes + cubin->size, cubin->sections, cubin->count * sizeof(*cubin->sections));
	cubin->size += cubin->count * sizeof(*cubin->sections);
}

#endif
