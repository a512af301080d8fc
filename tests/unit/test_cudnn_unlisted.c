/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines that a card is named besides (unlisted.h), beside what an H200 was named: bench/results/cudnn_engines.csv has
 * for each convolution of five nets the first plan that PyTorch would take there, and the first without a card.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "vgpu/cudnn/api.h"
#include "vgpu/cudnn/unlisted.h"

enum { TF32_OFF = 0, CALL_NUMBERS = 34 };

static void
take_tensor(const int64_t *numbers, int type, struct tn__dnn_tensor *out)
{
	*out = (struct tn__dnn_tensor){ .type = type, .rank = 4 };
	for (int i = 0; i < 4; i++) {
		out->dims[i] = numbers[i];
		out->strides[i] = numbers[4 + i];
	}
}

/* A call as tests/vgpu/cudnn/oracle.c describes it: direction, type, alignment, TF32; x, w, y; padding, stride, dilation. */
static bool
read_call(const char *text, struct tn__dnn_graph *out, bool *tensor_cores)
{
	int64_t numbers[CALL_NUMBERS];
	int length;
	for (int i = 0; i < CALL_NUMBERS; i++, text += length) {
		long long number;
		if (sscanf(text, "%lld%n", &number, &length) != 1)
			return false;
		numbers[i] = number;
	}
	struct tn__dnn_convolution *convolution = &out->convolution;
	*out = (struct tn__dnn_graph){ .has_convolution = true };
	convolution->direction = (enum tn__dnn_direction)numbers[0];
	convolution->spatial_dims = 2;
	take_tensor(&numbers[4], (int)numbers[1], &convolution->x);
	take_tensor(&numbers[12], (int)numbers[1], &convolution->w);
	take_tensor(&numbers[20], (int)numbers[1], &convolution->y);
	for (int i = 0; i < 2; i++) {
		convolution->padding[i] = numbers[28 + i];
		convolution->stride[i] = numbers[30 + i];
		convolution->dilation[i] = numbers[32 + i];
	}
	*tensor_cores = numbers[1] != DNN_DATA_FLOAT || numbers[3] != TF32_OFF;
	return true;
}

/* Without the rules 214 of the 322 have the engine of the card. What is left came first for reasons that the sizes do not
 * show (FFT, products of some small pictures). Workspaces are the card's, but for the 272 or 400 bytes that some products
 * take. */
static void
test_first_plans_are_those_of_the_card(void **state)
{
	int calls = 0, engines = 0, named_count = 0;
	char line[1024], call[512];
	FILE *file = fopen(TN_ENGINES, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file) != NULL) {
		long long engine, workspace, without, workspace_without;
		struct tn__dnn_graph graph;
		struct tn__dnn_unlisted unlisted;
		bool tensor_cores;
		if (sscanf(line, "%*[^,],%511[^,],%lld,%lld,%lld,%lld", call, &engine, &workspace, &without,
		           &workspace_without) != 5)
			continue; /* a convolution that has no plan */
		assert_true(read_call(call, &graph, &tensor_cores));
		calls++;
		bool named = tn__dnn_unlisted(&graph, true, 90, &unlisted) && unlisted.tensor_cores == tensor_cores;
		engines += (named ? unlisted.engine : without) == engine;
		if (named && unlisted.engine == engine)
			assert_in_range(workspace, unlisted.workspace, unlisted.workspace + 400);
		named_count += named;
	}
	fclose(file);
	assert_int_equal(calls, 322);
	assert_int_equal(engines, 295);
	assert_int_equal(named_count, 91);
}

static void
test_other_graphs_and_cards_have_none(void **state)
{
	struct tn__dnn_graph graph;
	struct tn__dnn_unlisted unlisted;
	bool tensor_cores;
	assert_true(
		read_call("0 0 32 1 8 64 56 56 200704 3136 56 1 256 64 1 1 64 1 1 1 8 256 56 56 802816 3136 56 1 0 0 1 1 1 1",
	              &graph, &tensor_cores));
	assert_true(tn__dnn_unlisted(&graph, true, 90, &unlisted));
	assert_false(tn__dnn_unlisted(&graph, false, 90, &unlisted)); /* with a bias, say */
	assert_false(tn__dnn_unlisted(&graph, true, 80, &unlisted));
	graph.convolution.x.strides[1] = 1; /* channels last */
	assert_false(tn__dnn_unlisted(&graph, true, 90, &unlisted));
	graph.convolution.x.strides[1] = 3136;
	graph.convolution.w.dims[1] = 32; /* two groups */
	assert_false(tn__dnn_unlisted(&graph, true, 90, &unlisted));
	graph.has_convolution = false;
	assert_false(tn__dnn_unlisted(&graph, true, 90, &unlisted));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_plans_are_those_of_the_card),
		cmocka_unit_test(test_other_graphs_and_cards_have_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
