/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of --query-gpu and --query-compute-apps: their names and how each is read. What a virtual card does not
 * have leaves a value as it was.
 */
#ifndef TN_SMI_QUERY_FIELDS_H
#define TN_SMI_QUERY_FIELDS_H

#include "smi/nvml_client.h"

/* One value of a card or a process as text. */
struct tn_smi_value {
	char text[TN_SMI_TEXT];
	const char *unit; /* NULL: none */
};

struct tn_smi_field {
	const char *name, *other_name, *argument;
	void (*read)(const struct tn_smi_card *card, const char *argument, struct tn_smi_value *value);
};

/* A field of --query-gpu; NULL for an unknown one. */
const struct tn_smi_field *tn__smi_find_field(const char *name);
const char *tn__smi_unit(const struct tn_smi_field *field);

/* Reads the field called `name`, which must be one of --query-gpu. */
void tn__smi_read(const struct tn_smi_card *card, const char *name, struct tn_smi_value *value);

/* One value of a process; false for an unknown field. */
bool tn__smi_process_value(const struct tn_smi_card *card, const struct tn_smi_process *process, const char *field,
                           struct tn_smi_value *value);

/* The names of all fields, for the help. */
void tn__smi_print_fields(void);

#endif
