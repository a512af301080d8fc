/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands between CUDA programs and the cards of this machine.
 */
#ifndef TONNAGE_DOCTOR_H
#define TONNAGE_DOCTOR_H

#include <stdbool.h>
#include <stdio.h>

#include "tonnage/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tn_doctor_options {
	const char *
		python; /* path or name of a Python whose torch is looked at; NULL: python3 or python on the PATH, if there is one */
	bool json; /* doc/format/doctor.schema.json */
	FILE *output;
};

/* Looks at the driver, the cards, who holds their memory, the environment, the host's limits and the Python's torch, and writes
 * what it found. Nothing is started, and nothing on the machine changes. *found says whether there was an error or a warning (a
 * hint alone is none). TN_NOT_FOUND: no such Python; TN_IO: writing failed. Not thread-safe. */
tn_status tn_doctor(const struct tn_doctor_options *options, bool *found);

#ifdef __cplusplus
}
#endif
#endif
