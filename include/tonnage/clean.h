/* SPDX-License-Identifier: Apache-2.0
 *
 * Removing what runs have left on the disk.
 */
#ifndef TONNAGE_CLEAN_H
#define TONNAGE_CLEAN_H

#include <stdbool.h>
#include <stdio.h>

#include "tonnage/status.h"

struct tn_clean_options {
	bool dry_run; /* list only */
	bool caches;  /* remove Tonnage's own caches, too */
	bool json;    /* doc/format/clean.schema.json */
	FILE *output;
};

/* Lists and removes this user's left run folders in $TMPDIR (or /tmp): those of killed runs, and the kept scratch folders.
 * Runs that are still going on are not touched. TN_IO with words when the folder cannot be read, or something could not be removed. */
tn_status tn_clean(const struct tn_clean_options *options);

#endif
