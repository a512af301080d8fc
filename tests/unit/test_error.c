/* SPDX-License-Identifier: Apache-2.0
 *
 * Status and texts: what fails leaves its words, in its own thread only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/error.h"

static tn_status
needs_even(int number)
{
	TN_RETURN_IF(number % 2, TN_INVALID, "%d is odd", number);
	return TN_OK;
}

static tn_status
forwards(int number)
{
	TN_FORWARD_IF_ERROR(needs_even(number));
	return TN_OK;
}

static void
test_texts(void **state)
{
	assert_int_equal(forwards(2), TN_OK);
	assert_int_equal(forwards(3), TN_INVALID);
	assert_string_equal(tn_error_text(), "3 is odd");
	assert_string_equal(tn_status_text(TN_OUT_OF_DEVICE_MEMORY), "out of device memory");
	assert_string_equal(tn_status_text((tn_status)999), "unknown status");
}

static void *
other_thread(void *text)
{
	*(const char **)text = tn_error_text()[0] ? "inherited" : "own";
	return NULL;
}

static void
test_texts_belong_to_a_thread(void **state)
{
	const char *seen = NULL;
	pthread_t thread;
	assert_int_equal(forwards(5), TN_INVALID);
	pthread_create(&thread, NULL, other_thread, &seen);
	pthread_join(thread, NULL);
	assert_string_equal(seen, "own");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_texts_belong_to_a_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
