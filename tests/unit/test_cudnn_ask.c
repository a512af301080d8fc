/* SPDX-License-Identifier: Apache-2.0
 *
 * The virtual cuDNN asking: with a FAKE helper (a thread of this test) in place of the process that has the real library.
 * What it answers reaches the program; where it has no answer the model speaks, and is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test_cudnn_graph.h"

#include "dnn/cache.h"
#include "vgpu/cudnn/workspace.h"

enum { ENGINE = 55, WORKSPACE = 25837584, REFUSED_ENGINE = 9, SAYING_ENGINE = 60, SAID = 4096, ROWS = 3 };

static struct {
	int listening, questions;
	bool dies; /* closes instead of answering */
	struct tn_dnn_head last;
} helper;

static void
answer(const struct tn_dnn_question *question, struct tn_dnn_bytes *out)
{
	const int32_t note = DNN_NUMERICAL_NOTE_TENSOR_CORE;
	tn__dnn_add_u32(out, 92600);
	if (question->head.kind == TN_DNN_PLAN) {
		bool refused = question->head.rank == 1;
		tn__dnn_add_u32(out, refused ? DNN_STATUS_NOT_SUPPORTED_SHAPE : DNN_STATUS_SUCCESS);
		tn__dnn_add_u32(out, refused ? 0 : 1);
		tn__dnn_add_i64(out, WORKSPACE);
		return;
	}
	tn__dnn_add_u32(out, question->head.mode == DNN_HEUR_MODE_B ? DNN_STATUS_BAD_PARAM : DNN_STATUS_SUCCESS);
	tn__dnn_add_u32(out, ROWS);
	for (int row = 0; row < ROWS; row++) {
		static const int64_t engines[ROWS] = { ENGINE, REFUSED_ENGINE, SAYING_ENGINE };
		tn__dnn_add_i64(out, engines[row]);
		tn__dnn_add_i64(out, row == 2 ? SAID : -1);
		tn__dnn_add_i64(out, -1);
		tn__dnn_add_u32(out, 1); /* a knob */
		tn__dnn_add_i64(out, 2);
		tn__dnn_add_i64(out, 77);
		tn__dnn_add_u32(out, 1); /* a note */
		tn__dnn_add(out, &note, sizeof(note));
		tn__dnn_add_u32(out, 0);
	}
}

static void *
serve(void *unused)
{
	static unsigned char buffer[TN_DNN_MOST_BYTES];
	for (int connection; (connection = accept(helper.listening, NULL, NULL)) >= 0; close(connection)) {
		ssize_t length;
		while ((length = recv(connection, buffer, sizeof(buffer), 0)) > 0) {
			struct tn_dnn_question question;
			struct tn_dnn_bytes out = { .at = NULL };
			helper.questions++;
			if (helper.dies || !tn__dnn_question_read(buffer, (size_t)length, &question))
				break;
			helper.last = question.head;
			answer(&question, &out);
			send(connection, out.at, out.length, MSG_NOSIGNAL);
			tn__dnn_bytes_free(&out);
		}
	}
	return NULL;
}

static desc
plan_of(desc configuration, int expected)
{
	desc plan = make(DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	set(plan, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &configuration);
	assert_int_equal(cudnnBackendFinalize(plan), expected);
	return plan;
}

static int64_t
workspace_of(desc plan)
{
	int64_t bytes = -1, count;
	OK(cudnnBackendGetAttribute(plan, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, &count, &bytes));
	return bytes;
}

static int64_t
engine_of(desc configuration)
{
	int64_t index = -1, count;
	desc engine = make(DNN_BACKEND_ENGINE_DESCRIPTOR);
	OK(cudnnBackendGetAttribute(configuration, DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
	                            &engine));
	OK(cudnnBackendGetAttribute(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &count, &index));
	OK(cudnnBackendDestroyDescriptor(engine));
	return index;
}

static desc
forward_graph(struct tn__dnn_handle *handle)
{
	return make_conv_graph(handle, DNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	                       DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
}

static void
drop(desc *descriptors, int count)
{
	for (int i = 0; i < count; i++)
		OK(cudnnBackendDestroyDescriptor(descriptors[i]));
}

/* How many configurations the heuristics of a mode name, and the workspace of the first one's plan. */
static int
first_workspace(desc graph, int mode, int64_t *workspace)
{
	desc results[8];
	int count = ask_heuristics(graph, mode, results, 8);
	desc plan = plan_of(results[0], DNN_STATUS_SUCCESS);
	*workspace = workspace_of(plan);
	drop(&plan, 1);
	drop(results, count);
	return count;
}

static void
test_the_answers_reach_the_program(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	desc graph = forward_graph(handle), results[8];
	assert_int_equal(ask_heuristics(graph, DNN_HEUR_MODE_INSTANT, results, 8), ROWS);
	assert_int_equal(helper.last.mode, DNN_HEUR_MODE_INSTANT);
	assert_int_equal(engine_of(results[0]), ENGINE);
	desc plans[ROWS] = { plan_of(results[0], DNN_STATUS_SUCCESS) };
	assert_int_equal(workspace_of(plans[0]), WORKSPACE);
	assert_int_equal(helper.last.kind, TN_DNN_PLAN);
	assert_int_equal(helper.last.rank, 0);
	plans[1] = plan_of(results[1], DNN_STATUS_NOT_SUPPORTED_SHAPE); /* PyTorch goes on with the next */
	assert_int_equal(helper.last.rank, 1);
	int before = helper.questions;
	plans[2] = plan_of(results[2], DNN_STATUS_SUCCESS); /* its configuration has said it */
	assert_int_equal(workspace_of(plans[2]), SAID);
	assert_int_equal(helper.questions, before);
	assert_int_equal(fake.answered, 3);
	assert_string_equal(fake.answered_by, "cuDNN 9.26.0"); /* the one that was asked, not the one that we say we are */
	assert_int_equal(fake.modelled, 0);
	drop(plans, ROWS);
	drop(results, ROWS);
	drop(&graph, 1);
	OK(cudnnDestroy(handle));
}

static void
test_nothing_is_asked_twice(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	desc graph = forward_graph(handle);
	int before = helper.questions;
	int64_t workspace;
	assert_int_equal(first_workspace(graph, DNN_HEUR_MODE_INSTANT, &workspace), ROWS);
	assert_int_equal(workspace, WORKSPACE);
	assert_int_equal(helper.questions, before);
	assert_int_equal(fake.answered, 2);
	drop(&graph, 1);
	OK(cudnnDestroy(handle));
}

/* A status that says the question was wrong is no answer to the program, which asked a right one. */
static void
test_what_cudnn_does_not_take_is_modelled(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	desc graph = forward_graph(handle);
	int64_t workspace;
	assert_int_equal(first_workspace(graph, DNN_HEUR_MODE_B, &workspace), DNN_ENGINES - 1);
	assert_int_equal(workspace, 8 << 20);
	assert_int_equal(fake.modelled, 1);
	drop(&graph, 1);
	OK(cudnnDestroy(handle));
}

/* One question may cost a helper; after three nobody is asked any more, and what was answered stays. */
static void
test_a_helper_that_dies(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	desc graph = make_conv_graph(handle, DNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
	                             DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
	int64_t workspace;
	helper.dies = true;
	assert_int_equal(first_workspace(graph, DNN_HEUR_MODE_INSTANT, &workspace), DNN_ENGINES - 1);
	helper.dies = false;
	assert_int_equal(first_workspace(graph, DNN_HEUR_MODE_INSTANT, &workspace), ROWS);
	helper.dies = true;
	for (int mode = DNN_HEUR_MODE_FALLBACK; mode <= DNN_HEUR_MODE_A; mode++)
		(void)first_workspace(graph, mode, &workspace);
	int before = helper.questions;
	helper.dies = false;
	(void)first_workspace(graph, DNN_HEUR_MODE_A, &workspace);
	assert_int_equal(helper.questions, before);
	assert_int_equal(first_workspace(graph, DNN_HEUR_MODE_INSTANT, &workspace), ROWS);
	assert_int_equal(workspace, WORKSPACE);
	assert_int_equal(fake.answered, 4);
	assert_int_equal(fake.modelled, 4);
	drop(&graph, 1);
	OK(cudnnDestroy(handle));
}

static int
start_helper(void **state)
{
	static char folder[] = "/tmp/tonnage-ask-XXXXXX";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	pthread_t thread;
	assert_non_null(mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/cudnn", folder);
	helper.listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(helper.listening, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(helper.listening, 8), 0);
	setenv("TONNAGE_RUN", folder, 1);
	setenv(TN_DNN_LIBRARY_VARIABLE, "/proc/self/exe", 1); /* any file that can be read: the helper is a fake */
	unsetenv(TN_DNN_CACHE_VARIABLE);
	*state = folder;
	return pthread_create(&thread, NULL, serve, NULL);
}

static int
remove_helper(void **state)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/cudnn", (const char *)*state);
	unlink(path);
	return rmdir(*state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_answers_reach_the_program),
		cmocka_unit_test(test_nothing_is_asked_twice),
		cmocka_unit_test(test_what_cudnn_does_not_take_is_modelled),
		cmocka_unit_test(test_a_helper_that_dies),
	};
	return cmocka_run_group_tests(tests, start_helper, remove_helper);
}
