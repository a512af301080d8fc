/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes as people type them.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "tonnage/run.h"

#define LARGEST (UINT64_C(1) << 56) /* 64 PiB: more than any card, and far from overflow */

static tn_status
unit_of(const char *text, const char *unit, int *shift)
{
	static const struct {
		const char *name;
		int shift;
	} units[] = { { "", 0 },     { "B", 0 },  { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 },
		          { "TiB", 40 }, { "K", 10 }, { "M", 20 },   { "G", 30 },   { "T", 40 } };
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(unit, units[i].name) == 0) {
			*shift = units[i].shift;
			return TN_OK;
		}
	}
	return tn__fail(TN_INVALID, "\"%s\" is not a size: write it as 12GiB, 500MiB or plain bytes", text);
}

tn_status
tn_parse_size(const char *text, uint64_t *bytes)
{
	const char *at = text;
	uint64_t whole = 0, fraction = 0, scale = 1;
	int shift = 0;
	bool digits = false;
	for (; isdigit((unsigned char)*at); at++, digits = true) {
		whole = whole * 10 + (uint64_t)(*at - '0');
		TN_RETURN_IF(whole > LARGEST, TN_INVALID, "\"%s\" is too large a size", text);
	}
	if (*at == '.') {
		for (at++; isdigit((unsigned char)*at); at++, digits = true) {
			if (scale < 1000000) {
				fraction = fraction * 10 + (uint64_t)(*at - '0');
				scale *= 10;
			}
		}
	}
	TN_FORWARD_IF_ERROR(unit_of(text, digits ? at : text, &shift));
	TN_RETURN_IF(!digits, TN_INVALID, "\"%s\" is not a size: write it as 12GiB, 500MiB or plain bytes", text);
	TN_RETURN_IF(whole > LARGEST >> shift, TN_INVALID, "\"%s\" is too large a size", text);
	*bytes = (whole << shift) + (fraction << shift) / scale;
	return TN_OK;
}
