/* SPDX-License-Identifier: Apache-2.0
 *
 * The core as a process has it that belongs to no run.
 */
#ifndef TEST_NO_RUN_H
#define TEST_NO_RUN_H

#include <stdlib.h>

static inline void
leave_run(void)
{
	unsetenv("TONNAGE_RUN");
	unsetenv("TONNAGE_VALUES");
	unsetenv("CUDA_VISIBLE_DEVICES");
}

#endif
