/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers in src/dnn/abi.h against NVIDIA's header, where that is installed; skipped loudly where it is not.
 * Compile with -I<folder of cudnn.h> and CUDA's headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dnn/abi.h"

#if __has_include(<cudnn.h>) && __has_include(<cuda_runtime_api.h>)
#include <cudnn.h>

#define SAME(name, number, ...) assert_int_equal((int)CUDNN_##name, (number));

static void
test_numbers(void **state)
{
	DNN_STATUS_LIST(SAME)
	DNN_DATA_LIST(SAME)
	DNN_ENUM_LIST(SAME)
	DNN_TYPE_LIST(SAME)
	DNN_BACKEND_LIST(SAME)
	DNN_ATTR_LIST(SAME)
#if CUDNN_VERSION >= 92600
	DNN_LATER_STATUS_LIST(SAME)
	DNN_LATER_DATA_LIST(SAME)
	DNN_LATER_TYPE_LIST(SAME)
	DNN_LATER_BACKEND_LIST(SAME)
	DNN_LATER_ATTR_LIST(SAME)
#endif
}

static void
test_sizes(void **state)
{
	assert_int_equal(sizeof(cudnnConvolutionFwdAlgoPerf_t), 48);
	assert_int_equal(sizeof(cudnnConvolutionBwdDataAlgoPerf_t), 48);
	assert_int_equal(sizeof(cudnnConvolutionBwdFilterAlgoPerf_t), 48);
	assert_int_equal(offsetof(cudnnConvolutionFwdAlgoPerf_t, memory), 16);
	assert_int_equal(sizeof(cudnnFraction_t), 16);
	assert_int_equal(sizeof(cudnnDataType_t), 4);
	printf("compared with cuDNN %d\n", (int)CUDNN_VERSION);
}
#else
static void
test_numbers(void **state)
{
	printf("SKIPPED: no cudnn.h on the include path\n");
	skip();
}

static void
test_sizes(void **state)
{
	skip();
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
