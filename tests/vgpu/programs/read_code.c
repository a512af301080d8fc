/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads fat binaries: `read_code FILE OFFSET BYTES KERNEL...` opens each one that lies in that part of a file, and prints how many
 * there are, how many could be opened, and for each kernel the sizes of its parameters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/code.h"

static void
print_kernel(const struct tn_code *code, const char *kernel)
{
	uint16_t sizes[TN_CODE_PARAMETERS_MAX];
	int count = tn__code_parameters(code, kernel, sizes);
	if (count < 0)
		return;
	printf("%s", kernel);
	for (int i = 0; i < count; i++)
		printf(" %u", sizes[i]);
	printf("\n");
}

int
main(int argc, char **argv)
{
	long offset = atol(argv[2]), bytes = atol(argv[3]), found = 0, opened = 0;
	unsigned char *section = malloc((size_t)bytes);
	FILE *file = fopen(argv[1], "rb");
	if (!section || !file || fseek(file, offset, SEEK_SET) || fread(section, 1, (size_t)bytes, file) != (size_t)bytes)
		return 1;
	for (long at = 0; at + 16 <= bytes; at += 8) { /* the linker aligns them */
		struct tn_code *code;
		if (memcmp(section + at, "\x50\xed\x55\xba\x01\x00\x10\x00", 8) != 0)
			continue;
		found++;
		if (tn__code_open(section + at, (size_t)(bytes - at), &code) != TN_OK)
			continue;
		opened++;
		for (int i = 4; i < argc; i++)
			print_kernel(code, argv[i]);
		tn__code_close(code);
	}
	printf("%ld %ld\n", found, opened);
	return 0;
}
