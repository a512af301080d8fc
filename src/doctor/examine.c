/* SPDX-License-Identifier: Apache-2.0
 *
 * The examination: one part after the other, since later ones use what earlier ones found.
 */
#include "base/error.h"
#include "doctor/checks.h"

static void
look_at_machine(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	tn__check_host_kind(machine, out);
	tn__check_driver(machine, out);
	tn__check_cards(machine, out);
	tn__check_devices(machine, out);
	tn__check_kernel_log(machine, out);
	tn__check_toolkit(machine, out);
	tn__check_torch(machine, out);
	tn__check_packages(machine, out);
	tn__check_visible(machine, out);
	tn__check_allocator(machine, out);
	tn__check_settings(machine, out);
	tn__check_host(machine, out);
	tn__check_limits(machine, out);
}

tn_status
tn__doctor_examine(const struct tn_machine *machine, struct tn_diagnosis *out)
{
	struct tn_diagnosis found = { 0 };
	tn_status status = tn__find_torch(machine, &found);
	if (status == TN_OK)
		look_at_machine(machine, &found);
	if (status == TN_OK && found.no_memory)
		status = tn__fail(TN_NO_MEMORY, "out of host memory");
	if (status != TN_OK) {
		tn__diagnosis_free(&found);
		return status;
	}
	*out = found;
	return TN_OK;
}
