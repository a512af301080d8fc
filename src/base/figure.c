/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes and numbers as people read them.
 */
#include "base/figure.h"

#include <inttypes.h>
#include <stdio.h>

const char *
tn__human_bytes(int64_t bytes, char buffer[32])
{
	if (bytes == TN_NO_FIGURE)
		return "unknown";
	if (bytes >= INT64_C(1) << 30)
		snprintf(buffer, 32, "%.2f GiB", (double)bytes / (double)(INT64_C(1) << 30));
	else if (bytes >= INT64_C(1) << 20)
		snprintf(buffer, 32, "%.1f MiB", (double)bytes / (double)(INT64_C(1) << 20));
	else if (bytes >= 1024)
		snprintf(buffer, 32, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(buffer, 32, "%lld B", (long long)bytes);
	return buffer;
}

const char *
tn__typed_bytes(uint64_t bytes, char buffer[32])
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;
	for (; bytes > 0 && bytes % 1024 == 0 && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
		bytes /= 1024;
	snprintf(buffer, 32, "%" PRIu64 "%s", bytes, units[unit]);
	return buffer;
}

const char *
tn__grouped(int64_t number, char buffer[32])
{
	char digits[32];
	int length = snprintf(digits, sizeof(digits), "%" PRId64, number), at = 0;
	for (int i = 0; i < length; i++) {
		if (i > (number < 0) && (length - i) % 3 == 0)
			buffer[at++] = ',';
		buffer[at++] = digits[i];
	}
	buffer[at] = '\0';
	return buffer;
}
