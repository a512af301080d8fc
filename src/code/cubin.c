/* SPDX-License-Identifier: Apache-2.0
 *
 * A cubin's sections .nv.info.<kernel>: records of four bytes (form, attribute, value or size), some with a payload behind.
 */
#include "code/cubin.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PREFIX ".nv.info."
#define FORM_PAYLOAD 4 /* the value is the size of a payload */
#define PARAMETERS_BYTES 0x19
#define PARAMETER 0x17
#define PARAMETER_SHIFT 18
#define PARAMETER_LONG 0x45 /* where they may be longer than 4 KiB */

struct info {
	const char *kernel;
	const uint8_t *records;
	size_t bytes;
};

struct tn_code {
	uint8_t *bytes;
	size_t size;
	struct info *infos; /* by kernel */
	size_t count;
};

struct parameter {
	uint32_t index;
	uint16_t ordinal, offset;
	uint32_t bytes; /* in a short record in its upper bits */
};

static int
by_kernel(const void *a, const void *b)
{
	return strcmp(((const struct info *)a)->kernel, ((const struct info *)b)->kernel);
}

static bool
lies_within(const struct tn_code *code, uint64_t offset, uint64_t bytes)
{
	return offset <= code->size && bytes <= code->size - offset;
}

static Elf64_Shdr
section_of(const struct tn_code *code, const Elf64_Ehdr *elf, size_t number)
{
	Elf64_Shdr section;
	memcpy(&section, code->bytes + elf->e_shoff + number * sizeof(section), sizeof(section));
	return section;
}

/* The section's name; "" when it does not end within the table of names. */
static const char *
name_of(const struct tn_code *code, const Elf64_Shdr *names, const Elf64_Shdr *section)
{
	if (section->sh_name >= names->sh_size)
		return "";
	const char *name = (const char *)code->bytes + names->sh_offset + section->sh_name;
	return memchr(name, '\0', names->sh_size - section->sh_name) ? name : "";
}

/* Whether it is a header of a cubin whose table of sections ends within `size` bytes. */
static bool
is_cubin(const Elf64_Ehdr *elf, size_t size)
{
	uint64_t table = (uint64_t)elf->e_shnum * sizeof(Elf64_Shdr);
	return memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 && elf->e_ident[EI_CLASS] == ELFCLASS64 &&
	       elf->e_machine == EM_CUDA && elf->e_shentsize == sizeof(Elf64_Shdr) && elf->e_shstrndx < elf->e_shnum &&
	       elf->e_shoff <= size && table <= size - elf->e_shoff;
}

size_t
tn__cubin_size(const void *image, size_t room)
{
	Elf64_Ehdr elf;
	if (room < sizeof(elf))
		return 0;
	memcpy(&elf, image, sizeof(elf));
	if (!is_cubin(&elf, room))
		return 0;
	uint64_t end = elf.e_shoff + (uint64_t)elf.e_shnum * sizeof(Elf64_Shdr);
	for (size_t i = 0; i < elf.e_shnum; i++) {
		Elf64_Shdr section;
		memcpy(&section, (const uint8_t *)image + elf.e_shoff + i * sizeof(section), sizeof(section));
		if (section.sh_type == SHT_NOBITS)
			continue;
		if (section.sh_offset > room || section.sh_size > room - section.sh_offset)
			return 0;
		if (section.sh_offset + section.sh_size > end)
			end = section.sh_offset + section.sh_size;
	}
	return end;
}

static tn_status
find_infos(struct tn_code *code)
{
	Elf64_Ehdr elf;
	TN_RETURN_IF(code->size < sizeof(elf), TN_FORMAT, "a cubin ends within its header");
	memcpy(&elf, code->bytes, sizeof(elf));
	TN_RETURN_IF(!is_cubin(&elf, code->size), TN_FORMAT, "not a cubin");
	Elf64_Shdr names = section_of(code, &elf, elf.e_shstrndx);
	TN_RETURN_IF(!lies_within(code, names.sh_offset, names.sh_size), TN_FORMAT, "a cubin without names of sections");
	code->infos = calloc(elf.e_shnum, sizeof(*code->infos));
	TN_RETURN_IF(!code->infos, TN_NO_MEMORY, "no memory for a cubin's kernels");
	for (size_t i = 0; i < elf.e_shnum; i++) {
		Elf64_Shdr section = section_of(code, &elf, i);
		const char *name = name_of(code, &names, &section);
		if (strncmp(name, PREFIX, strlen(PREFIX)) == 0 && lies_within(code, section.sh_offset, section.sh_size))
			code->infos[code->count++] = (struct info){ name + strlen(PREFIX), code->bytes + section.sh_offset,
				                                        section.sh_size };
	}
	qsort(code->infos, code->count, sizeof(*code->infos), by_kernel);
	return TN_OK;
}

tn_status
tn__cubin_open(uint8_t *bytes, size_t size, struct tn_code **out)
{
	struct tn_code *code = calloc(1, sizeof(*code));
	if (!code) {
		free(bytes);
		return tn__fail(TN_NO_MEMORY, "no memory for a cubin");
	}
	code->bytes = bytes;
	code->size = size;
	tn_status status = find_infos(code);
	if (status == TN_OK)
		*out = code;
	else
		tn__code_close(code);
	return status;
}

void
tn__code_close(struct tn_code *code)
{
	if (!code)
		return;
	free(code->infos);
	free(code->bytes);
	free(code);
}

/* Notes each parameter, as records tell it: out of order. Returns how many did, -1 on a record that is none. */
static int
read_records(const struct info *info, struct parameter *parameters, uint32_t *end)
{
	uint64_t seen = 0;
	for (size_t at = 0; at + 4 <= info->bytes;) {
		uint8_t form = info->records[at], attribute = info->records[at + 1];
		uint16_t value;
		struct parameter parameter;
		memcpy(&value, info->records + at + 2, sizeof(value));
		at += 4;
		if (form != FORM_PAYLOAD) {
			if (attribute == PARAMETERS_BYTES)
				*end = value;
			continue;
		}
		if (value > info->bytes - at)
			return -1;
		if (attribute == PARAMETER || attribute == PARAMETER_LONG) {
			if (value != sizeof(parameter))
				return -1;
			memcpy(&parameter, info->records + at, sizeof(parameter));
			if (parameter.ordinal >= TN_CODE_PARAMETERS_MAX)
				return -1;
			if (attribute == PARAMETER)
				parameter.bytes >>= PARAMETER_SHIFT;
			parameters[parameter.ordinal] = parameter;
			seen |= UINT64_C(1) << parameter.ordinal;
		}
		at += ((size_t)value + 3) & ~(size_t)3;
	}
	/* 1, 3, 7, ...: none is missing. */
	return (seen & (seen + 1)) == 0 ? __builtin_popcountll(seen) : -1;
}

int
tn__code_parameters(const struct tn_code *code, const char *kernel, uint16_t bytes[TN_CODE_PARAMETERS_MAX])
{
	struct parameter parameters[TN_CODE_PARAMETERS_MAX];
	const struct info wanted = { .kernel = kernel };
	const struct info *info = code->count ? bsearch(&wanted, code->infos, code->count, sizeof(wanted), by_kernel)
	                                      : NULL;
	uint32_t end = 0, at = 0;
	int count = info ? read_records(info, parameters, &end) : -1;
	for (int i = 0; i < count; i++) {
		if (parameters[i].offset < at || parameters[i].bytes > UINT16_MAX)
			return -1;
		bytes[i] = (uint16_t)parameters[i].bytes;
		at = parameters[i].offset + parameters[i].bytes;
	}
	return at == end ? count : -1;
}
