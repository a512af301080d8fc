/* SPDX-License-Identifier: Apache-2.0
 *
 * The overlay's start in a process that it was preloaded into. Not part of the overlay itself, which the reaper uses, too.
 */
#include "preload/network_state.h"
#include "preload/overlay.h"

__attribute__((constructor)) static void
start(void)
{
	(void)tn__mode();
}

TN_ENTRY int
tn_preload_renew(void)
{
	tn__network_renew();
	return tn__overlay_renew();
}
