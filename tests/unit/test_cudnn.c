/* SPDX-License-Identifier: Apache-2.0
 *
 * The virtual cuDNN (src/vgpu/cudnn) with a fake core, driven the way that cuDNN's frontend and PyTorch drive the
 * real one.
 * Build: this file with every C file of src/vgpu/cudnn and the rooms base and dnn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_cudnn_graph.h"
#include "vgpu/cudnn/workspace.h"

/* The numerical notes of a configuration, as a bit set, read like PyTorch's filter reads them. */
static unsigned
notes_of(desc configuration)
{
	int notes[16];
	int64_t count = -1;
	unsigned set_of_notes = 0;
	desc engine = make(DNN_BACKEND_ENGINE_DESCRIPTOR);
	OK(cudnnBackendGetAttribute(configuration, DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
	                            &engine));
	assert_int_equal(count, 1);
	OK(cudnnBackendGetAttribute(engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, 10, &count, NULL));
	OK(cudnnBackendGetAttribute(engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, 10, &count, notes));
	for (int64_t i = 0; i < count; i++)
		set_of_notes |= 1u << notes[i];
	OK(cudnnBackendGetAttribute(engine, DNN_ATTR_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE, 5, &count, notes));
	assert_int_equal(count, 0);
	OK(cudnnBackendGetAttribute(configuration, DNN_ATTR_ENGINECFG_KNOB_CHOICES, DNN_TYPE_BACKEND_DESCRIPTOR, 46, &count,
	                            &engine));
	assert_int_equal(count, 0);
	OK(cudnnBackendDestroyDescriptor(engine));
	return set_of_notes;
}

static desc
make_plan(desc configuration)
{
	desc plan = make(DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	set(plan, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &configuration);
	OK(cudnnBackendFinalize(plan));
	return plan;
}

static int64_t
workspace_of(desc plan)
{
	int64_t bytes = -1;
	OK(cudnnBackendGetAttribute(plan, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, NULL, &bytes));
	return bytes;
}

static int
execute(struct tn__dnn_handle *handle, desc plan, void *workspace)
{
	void *pointers[3] = { (void *)0x1000, (void *)0x2000, (void *)0x3000 };
	const int64_t ids[3] = { 'x', 'y', 'w' };
	desc pack = make(DNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	set(pack, DNN_ATTR_VARIANT_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &workspace);
	set(pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR, 3, pointers);
	set(pack, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS, DNN_TYPE_INT64, 3, ids);
	OK(cudnnBackendFinalize(pack));
	int status = cudnnBackendExecute(handle, plan, pack);
	OK(cudnnBackendDestroyDescriptor(pack));
	return status;
}

static const struct {
	int operation, descriptor_attribute;
} directions[3] = {
	{ DNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC },
	{ DNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC },
	{ DNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
	  DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC },
};

static void
test_convolution_graphs(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	for (int direction = 0; direction < 3; direction++) {
		desc configurations[8];
		desc graph = make_conv_graph(handle, directions[direction].operation,
		                             directions[direction].descriptor_attribute);
		int count = ask_heuristics(graph, DNN_HEUR_MODE_INSTANT, configurations, 4);
		count += ask_heuristics(graph, DNN_HEUR_MODE_FALLBACK, configurations + count, 4);
		OK(cudnnBackendDestroyDescriptor(graph)); /* before its plans, as the frontend does */
		uint64_t fastest = 0;
		for (int i = 0; i < count; i++) {
			desc plan = make_plan(configurations[i]);
			int64_t workspace = workspace_of(plan), configured = -1;
			assert_int_equal(fake.wanted, workspace);
			assert_int_equal(workspace, i < 2 ? 8 << 20 : i == count - 1 ? 0 : 1 << 20);
			OK(cudnnBackendGetAttribute(configurations[i], DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, NULL,
			                            &configured));
			assert_int_equal(configured, workspace);
			OK(cudnnBackendDestroyDescriptor(configurations[i]));
			uint64_t launches = fake.launches, noted = fake.note_bytes;
			if (workspace > 0)
				assert_int_equal(execute(handle, plan, NULL), DNN_STATUS_BAD_PARAM_NULL_POINTER);
			assert_int_equal(fake.launches, launches);
			OK(execute(handle, plan, workspace > 0 ? (void *)0x100000 : NULL));
			assert_int_equal(fake.launches, launches + 1);
			assert_int_equal(fake.note_bytes - noted, workspace);
			assert_int_equal(fake.last_stream, 0x77);
			assert_true(i == 0 || fake.nanoseconds > fastest);
			fastest = i == 0 ? fake.nanoseconds : fastest;
			OK(cudnnBackendDestroyDescriptor(plan));
		}
		/* 2 * 32 * 64 * 64 * 56 * 56 * 9 operations at the fake's TF32 rate */
		assert_int_equal(fastest, 1000 + (uint64_t)(2.0 * 32 * 64 * 64 * 56 * 56 * 9 / 25000));
	}
	OK(cudnnDestroy(handle));
}

static void
test_filters_keep_something(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	desc configurations[8];
	int deterministic = 0, without_tensor_cores = 0, both = 0;
	desc graph = make_conv_graph(handle, directions[0].operation, directions[0].descriptor_attribute);
	int count = ask_heuristics(graph, DNN_HEUR_MODE_A, configurations, 4);
	for (int i = 0; i < count; i++) {
		unsigned notes = notes_of(configurations[i]);
		bool is_deterministic = !(notes & 1u << DNN_NUMERICAL_NOTE_NONDETERMINISTIC);
		bool is_plain = !(notes & 1u << DNN_NUMERICAL_NOTE_TENSOR_CORE);
		deterministic += is_deterministic;
		without_tensor_cores += is_plain;
		both += is_deterministic && is_plain;
		OK(cudnnBackendDestroyDescriptor(configurations[i]));
	}
	assert_true(deterministic > 0 && without_tensor_cores > 0 && both > 0 && both < count);
	OK(cudnnBackendDestroyDescriptor(graph));
	OK(cudnnDestroy(handle));
}

static void
test_engines_by_number(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	int64_t count = -1, index;
	desc graph = make_conv_graph(handle, directions[0].operation, directions[0].descriptor_attribute);
	OK(cudnnBackendGetAttribute(graph, DNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, DNN_TYPE_INT64, 1, NULL, &count));
	assert_int_equal(count, DNN_ENGINES);
	for (index = 0; index <= count; index++) {
		desc engine = make(DNN_BACKEND_ENGINE_DESCRIPTOR), configuration = make(DNN_BACKEND_ENGINECFG_DESCRIPTOR);
		set(engine, DNN_ATTR_ENGINE_OPERATION_GRAPH, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
		set(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &index);
		assert_int_equal(cudnnBackendFinalize(engine), index < count ? DNN_STATUS_SUCCESS : DNN_STATUS_NOT_SUPPORTED);
		int status = cudnnBackendSetAttribute(configuration, DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_BACKEND_DESCRIPTOR, 1,
		                                      &engine);
		assert_int_equal(status, index < count ? DNN_STATUS_SUCCESS : DNN_STATUS_BAD_PARAM_NOT_FINALIZED);
		if (index < count)
			OK(cudnnBackendFinalize(configuration));
		else
			assert_int_equal(cudnnBackendFinalize(configuration), DNN_STATUS_BAD_PARAM);
		OK(cudnnBackendDestroyDescriptor(engine));
		OK(cudnnBackendDestroyDescriptor(configuration));
	}
	OK(cudnnBackendDestroyDescriptor(graph));
	OK(cudnnDestroy(handle));
}

/* Attention of single operations: what matters here is its products and what the workspace model makes of them. */
static desc
make_attention_graph(int products)
{
	const int64_t q_dims[4] = { 2, 8, 128, 64 }, scores_dims[4] = { 2, 8, 128, 128 };
	desc operations[5], graph = make(DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	for (int i = 0; i < products; i++) {
		desc a = make_tensor(1, DNN_DATA_HALF, 4, q_dims), b = make_tensor(2, DNN_DATA_HALF, 4, q_dims);
		desc c = make_tensor(3, DNN_DATA_FLOAT, 4, scores_dims);
		operations[i] = make(DNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
		set(operations[i], DNN_ATTR_OPERATION_MATMUL_ADESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &a);
		set(operations[i], DNN_ATTR_OPERATION_MATMUL_BDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
		set(operations[i], DNN_ATTR_OPERATION_MATMUL_CDESC, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &c);
		OK(cudnnBackendFinalize(operations[i]));
		OK(cudnnBackendDestroyDescriptor(a));
		OK(cudnnBackendDestroyDescriptor(b));
		OK(cudnnBackendDestroyDescriptor(c));
	}
	set(graph, DNN_ATTR_OPERATIONGRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR, products, operations);
	OK(cudnnBackendFinalize(graph));
	for (int i = 0; i < products; i++)
		OK(cudnnBackendDestroyDescriptor(operations[i]));
	return graph;
}

static void
test_attention_workspace(void **state)
{
	const int products[2] = { 2, 5 };
	const int64_t expected[2] = { 0, 4 * (2 * 8 * 128 * 64 + 2 * 8 * 128) };
	for (int i = 0; i < 2; i++) {
		desc configurations[4], graph = make_attention_graph(products[i]);
		int count = ask_heuristics(graph, DNN_HEUR_MODE_A, configurations, 4);
		desc plan = make_plan(configurations[0]);
		assert_int_equal(workspace_of(plan), expected[i]);
		OK(cudnnBackendDestroyDescriptor(plan));
		for (int j = 0; j < count; j++)
			OK(cudnnBackendDestroyDescriptor(configurations[j]));
		OK(cudnnBackendDestroyDescriptor(graph));
	}
}

static void
test_attribute_bounds(void **state)
{
	struct {
		int64_t inside[2], beyond;
	} out = { { -1, -1 }, -1 };
	const int64_t dims[4] = { 1, 2, 3, 4 };
	int64_t count = -1;
	desc tensor = make_tensor(7, DNN_DATA_HALF, 4, dims), other = make(DNN_BACKEND_TENSOR_DESCRIPTOR);
	OK(cudnnBackendGetAttribute(tensor, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 0, &count, NULL));
	assert_int_equal(count, 4);
	OK(cudnnBackendGetAttribute(tensor, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 2, &count, out.inside));
	assert_int_equal(count, 2);
	assert_int_equal(out.inside[1], 2);
	assert_int_equal(out.beyond, -1);
	/* finalized: cannot be changed; unfinalized: cannot be read or contained */
	assert_int_equal(cudnnBackendSetAttribute(tensor, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, dims),
	                 DNN_STATUS_NOT_INITIALIZED);
	assert_int_equal(cudnnBackendGetAttribute(other, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 0, &count, NULL),
	                 DNN_STATUS_NOT_INITIALIZED);
	/* of another descriptor, of another type, negative, without data, not set */
	assert_int_equal(cudnnBackendSetAttribute(other, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, dims),
	                 DNN_STATUS_BAD_PARAM);
	assert_int_equal(cudnnBackendSetAttribute(other, DNN_ATTR_TENSOR_DIMENSIONS, 99, 1, dims),
	                 DNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
	assert_int_equal(cudnnBackendSetAttribute(other, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, -1, dims),
	                 DNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
	assert_int_equal(cudnnBackendSetAttribute(other, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, INT64_MAX, dims),
	                 DNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
	assert_int_equal(cudnnBackendSetAttribute(other, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 1, NULL),
	                 DNN_STATUS_BAD_PARAM_NULL_POINTER);
	assert_int_equal(
		cudnnBackendGetAttribute(tensor, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT32, 4, &count, out.inside),
		DNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
	assert_int_equal(
		cudnnBackendGetAttribute(tensor, DNN_ATTR_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &count, out.inside),
		DNN_STATUS_NOT_SUPPORTED);
	assert_int_equal(cudnnBackendFinalize(other), DNN_STATUS_BAD_PARAM);
	/* set twice: the later one counts */
	for (int i = 0; i < 2; i++)
		set(other, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &dims[i]);
	OK(cudnnBackendDestroyDescriptor(tensor));
	OK(cudnnBackendDestroyDescriptor(other));
	OK(cudnnBackendDestroyDescriptor(NULL));
	assert_int_equal(cudnnBackendCreateDescriptor(-1, &other), DNN_STATUS_NOT_SUPPORTED);
	assert_int_equal(cudnnBackendCreateDescriptor(10000, &other), DNN_STATUS_NOT_SUPPORTED);
}

static void
test_bad_tensors(void **state)
{
	const int64_t zero[2] = { 4, 0 }, many[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	const int type = DNN_DATA_FLOAT;
	desc tensor = make(DNN_BACKEND_TENSOR_DESCRIPTOR);
	set(tensor, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
	set(tensor, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 2, zero);
	set(tensor, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, 2, zero);
	assert_int_equal(cudnnBackendFinalize(tensor), DNN_STATUS_BAD_PARAM);
	set(tensor, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 9, many);
	set(tensor, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, 9, many);
	assert_int_equal(cudnnBackendFinalize(tensor), DNN_STATUS_BAD_PARAM);
	OK(cudnnBackendDestroyDescriptor(tensor));
}

/* ---- handle, versions, texts ---- */

static void
test_handle(void **state)
{
	struct tn__dnn_handle *handle = make_handle();
	void *stream = NULL;
	int value = -1;
	char text[64] = "";
	OK(cudnnGetStream(handle, &stream));
	assert_ptr_equal(stream, (void *)0x77);
	assert_true(cudnnGetVersion() >= 90100);
	OK(cudnnGetProperty(0, &value));
	assert_int_equal(value, 9);
	assert_int_equal(cudnnGetProperty(9, &value), DNN_STATUS_INVALID_VALUE);
	assert_string_equal(cudnnGetErrorString(DNN_STATUS_NOT_SUPPORTED), "CUDNN_STATUS_NOT_SUPPORTED");
	assert_string_equal(cudnnGetErrorString(DNN_STATUS_SUCCESS), "CUDNN_STATUS_SUCCESS");
	assert_non_null(cudnnGetErrorString(123456));
	cudnnGetLastErrorString(text, sizeof(text));
	assert_string_equal(text, "cudnnGetProperty: no property 9");
	cudnnGetLastErrorString(text, sizeof(text));
	assert_string_equal(text, "");
	OK(cudnnDestroy(handle));
	fake.out_of_memory = true;
	handle = NULL;
	assert_int_equal(cudnnCreate(&handle), DNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
	assert_null(handle);
	fake.out_of_memory = false;
	assert_int_equal(cudnnCreate(NULL), DNN_STATUS_BAD_PARAM_NULL_POINTER);
}

/* ---- recurrent networks ---- */

struct network {
	int cell, bias, direction, input_mode, input, hidden, projection, layers, type;
};

static struct tn__dnn_rnn *
make_network(const struct network *network, struct tn__dnn_dropout *dropout)
{
	struct tn__dnn_rnn *rnn = NULL;
	OK(cudnnCreateRNNDescriptor(&rnn));
	OK(cudnnSetRNNDescriptor_v8(rnn, 0, network->cell, network->bias, network->direction, network->input_mode,
	                            network->type, DNN_DATA_FLOAT, 0, network->input, network->hidden, network->projection,
	                            network->layers, dropout, 1));
	return rnn;
}

/* Metadata one part in the map of the weight space; it must be inside and free. */
static void
mark(uint8_t *map, size_t elements, const char *space, const void *part, const struct tn__dnn_tensor *descriptor,
     int bytes)
{
	size_t offset = (size_t)((const char *)part - space) / (size_t)bytes;
	uint64_t count = tn__dnn_elements(descriptor);
	assert_true(part != NULL ? count > 0 : count == 0);
	if (part == NULL)
		return;
	assert_int_equal(descriptor->rank, 3);
	assert_int_equal(descriptor->dims[0], 1);
	assert_true(offset + count <= elements);
	for (uint64_t i = 0; i < count; i++)
		assert_int_equal(map[offset + i]++, 0);
}

static void
check_cover(const struct network *network)
{
	struct tn__dnn_handle *handle = make_handle();
	struct tn__dnn_rnn *rnn = make_network(network, NULL);
	struct tn__dnn_tensor *matrix = NULL, *bias = NULL;
	int bytes = tn__dnn_type_bits(network->type) / 8;
	int gates = network->cell == DNN_LSTM ? 4 : network->cell == DNN_GRU ? 3 : 1;
	int pseudo_layers = network->layers * (network->direction == DNN_BIDIRECTIONAL ? 2 : 1);
	size_t size = 0;
	OK(cudnnGetRNNWeightSpaceSize(handle, rnn, &size));
	assert_int_equal(size % (size_t)bytes, 0);
	size_t elements = size / (size_t)bytes;
	uint8_t *map = calloc(elements, 1);
	const char *space = (const char *)0x700000000000; /* a device address: never read */
	OK(cudnnCreateTensorDescriptor(&matrix));
	OK(cudnnCreateTensorDescriptor(&bias));
	for (int layer = 0; layer < pseudo_layers; layer++) {
		for (int linear = 0; linear < 2 * gates + (network->projection > 0); linear++) {
			void *matrix_at = map, *bias_at = map;
			OK(cudnnGetRNNWeightParams(handle, rnn, layer, size, space, linear, matrix, &matrix_at, bias, &bias_at));
			mark(map, elements, space, matrix_at, matrix, bytes);
			mark(map, elements, space, bias_at, bias, bytes);
			OK(cudnnGetRNNWeightParams(handle, rnn, layer, size, space, linear, matrix, &matrix_at, NULL, NULL));
		}
		assert_int_equal(cudnnGetRNNWeightParams(handle, rnn, layer, size, space, 9, NULL, NULL, NULL, NULL),
		                 DNN_STATUS_BAD_PARAM);
	}
	for (size_t i = 0; i < elements; i++)
		assert_int_equal(map[i], 1);
	assert_int_equal(cudnnGetRNNWeightParams(handle, rnn, pseudo_layers, size, space, 0, NULL, NULL, NULL, NULL),
	                 DNN_STATUS_BAD_PARAM);
	assert_int_equal(cudnnGetRNNWeightParams(handle, rnn, 0, size - 1, space, 0, NULL, NULL, NULL, NULL),
	                 DNN_STATUS_BAD_PARAM);
	free(map);
	OK(cudnnDestroyTensorDescriptor(matrix));
	OK(cudnnDestroyTensorDescriptor(bias));
	OK(cudnnDestroyRNNDescriptor(rnn));
	OK(cudnnDestroy(handle));
}

static void
test_weight_space_is_covered(void **state)
{
	for (int cell = DNN_RNN_RELU; cell <= DNN_GRU; cell++) {
		for (int bias = DNN_RNN_NO_BIAS; bias <= DNN_RNN_SINGLE_REC_BIAS; bias++) {
			for (int variant = 0; variant < 8; variant++) {
				const struct network network = { .cell = cell,
					                             .bias = bias,
					                             .direction = variant & 1 ? DNN_BIDIRECTIONAL : DNN_UNIDIRECTIONAL,
					                             .input_mode = variant & 2 ? DNN_SKIP_INPUT : DNN_LINEAR_INPUT,
					                             .input = variant & 2 ? 6 : 5,
					                             .hidden = 6,
					                             .projection = variant & 4 && cell == DNN_LSTM ? 4 : 0,
					                             .layers = 3,
					                             .type = variant & 1 ? DNN_DATA_HALF : DNN_DATA_FLOAT };
				check_cover(&network);
			}
		}
	}
}

/* Sizes as PyTorch's own parameters count them: w_ih, w_hh, b_ih, b_hh for each layer and direction. */
static void
test_weight_sizes(void **state)
{
	static const struct {
		struct network network;
		size_t elements;
	} cases[] = {
		{ { DNN_LSTM, DNN_RNN_DOUBLE_BIAS, DNN_UNIDIRECTIONAL, 0, 10, 20, 0, 1, DNN_DATA_FLOAT },
		  4 * 20 * (10 + 20 + 2) },
		{ { DNN_GRU, DNN_RNN_DOUBLE_BIAS, DNN_BIDIRECTIONAL, 0, 10, 20, 0, 2, DNN_DATA_FLOAT },
		  2 * 3 * 20 * (10 + 20 + 2) + 2 * 3 * 20 * (40 + 20 + 2) },
		{ { DNN_LSTM, DNN_RNN_DOUBLE_BIAS, DNN_UNIDIRECTIONAL, 0, 10, 20, 5, 1, DNN_DATA_FLOAT },
		  4 * 20 * (10 + 5 + 2) + 5 * 20 },
	};
	struct tn__dnn_handle *handle = make_handle();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tn__dnn_rnn *rnn = make_network(&cases[i].network, NULL);
		size_t size = 0;
		OK(cudnnGetRNNWeightSpaceSize(handle, rnn, &size));
		assert_int_equal(size, cases[i].elements * 4);
		OK(cudnnDestroyRNNDescriptor(rnn));
	}
	OK(cudnnDestroy(handle));
}

/* What a training of 32 sequences of 100 steps, 256 wide, asked for on an H200 (bench/results/validate.json, "LSTM" and
 * "GRU": the requests of three steps, and the peak, which holds one of each). */
static void
test_rnn_spaces_are_as_measured(void **state)
{
	static const struct {
		struct network network;
		size_t workspace, reserve;
	} cases[] = {
		{ { DNN_LSTM, DNN_RNN_DOUBLE_BIAS, DNN_UNIDIRECTIONAL, 0, 256, 512, 0, 2, DNN_DATA_FLOAT },
		  68813312,
		  72089856 },
		{ { DNN_GRU, DNN_RNN_DOUBLE_BIAS, DNN_UNIDIRECTIONAL, 0, 256, 512, 0, 2, DNN_DATA_FLOAT }, 57934336, 85197056 },
	};
	struct tn__dnn_handle *handle = NULL;
	int32_t lengths[32];
	OK(cudnnCreate(&handle));
	for (int i = 0; i < 32; i++)
		lengths[i] = 100;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tn__dnn_rnn *rnn = make_network(&cases[i].network, NULL);
		struct tn__dnn_rnn_data *x = NULL;
		size_t workspace = 0, reserve = 0;
		OK(cudnnCreateRNNDataDescriptor(&x));
		OK(cudnnSetRNNDataDescriptor(x, DNN_DATA_FLOAT, DNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, 100, 32, 256, lengths,
		                             NULL));
		OK(cudnnGetRNNTempSpaceSizes(handle, rnn, DNN_FWD_MODE_TRAINING, x, &workspace, &reserve));
		assert_int_equal(workspace, cases[i].workspace);
		assert_int_equal(reserve, cases[i].reserve);
		OK(cudnnDestroyRNNDataDescriptor(x));
		OK(cudnnDestroyRNNDescriptor(rnn));
	}
	OK(cudnnDestroy(handle));
}

static void
test_rnn_runs(void **state)
{
	const struct network network = {
		DNN_LSTM, DNN_RNN_DOUBLE_BIAS, DNN_BIDIRECTIONAL, 0, 10, 20, 0, 2, DNN_DATA_FLOAT
	};
	const int lengths[3] = { 4, 2, 1 };
	struct tn__dnn_handle *handle = make_handle();
	struct tn__dnn_dropout *dropout = NULL;
	struct tn__dnn_rnn_data *x = NULL;
	size_t states = 0, weights, workspace, reserve, packed, none = 1;
	OK(cudnnCreateDropoutDescriptor(&dropout));
	OK(cudnnDropoutGetStatesSize(handle, &states));
	assert_int_equal(states, 28 * 1536 * 48);
	assert_int_equal(cudnnSetDropoutDescriptor(dropout, handle, 0.5f, (void *)0x1000, states - 1, 1),
	                 DNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
	OK(cudnnSetDropoutDescriptor(dropout, handle, 0.0f, NULL, 0, 0)); /* PyTorch's "no dropout" */
	struct tn__dnn_rnn *rnn = make_network(&network, dropout);
	OK(cudnnCreateRNNDataDescriptor(&x));
	OK(cudnnSetRNNDataDescriptor(x, DNN_DATA_FLOAT, DNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 4, 3, 10, lengths, NULL));
	OK(cudnnGetRNNWeightSpaceSize(handle, rnn, &weights));
	OK(cudnnGetRNNTempSpaceSizes(handle, rnn, DNN_FWD_MODE_INFERENCE, x, &workspace, &none));
	assert_int_equal(fake.wanted, workspace);
	assert_int_equal(none, 0);
	OK(cudnnGetRNNTempSpaceSizes(handle, rnn, DNN_FWD_MODE_TRAINING, x, &workspace, &reserve));
	assert_int_equal(workspace, (12 * (10 + 2 * 2 * (80 + 20)) * 4 + 511) / 512 * 512 + 512);
	assert_int_equal(reserve, (12 * (2 * 2 * (80 + 20) + 2 * 20) * 4 + 511) / 512 * 512 + 256);
	OK(cudnnSetRNNDataDescriptor(x, DNN_DATA_FLOAT, DNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, 4, 3, 10, lengths, NULL));
	OK(cudnnGetRNNTempSpaceSizes(handle, rnn, DNN_FWD_MODE_TRAINING, x, &workspace, &packed));
	assert_true(packed < reserve);
	uint64_t launches = fake.launches;
	OK(cudnnRNNForward(handle, rnn, DNN_FWD_MODE_TRAINING, NULL, x, NULL, x, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
	                   weights, NULL, workspace, (void *)0x1000, packed, (void *)0x2000));
	assert_int_equal(fake.note_bytes, workspace + packed); /* not the weights, which are parameters */
	OK(cudnnRNNBackwardData_v8(handle, rnn, NULL, x, NULL, NULL, x, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
	                           NULL, weights, NULL, workspace, NULL, packed, NULL));
	OK(cudnnRNNBackwardWeights_v8(handle, rnn, 0, NULL, x, NULL, NULL, NULL, x, NULL, weights, NULL, workspace, NULL,
	                              packed, NULL));
	assert_int_equal(fake.launches, launches + 3);
	assert_int_equal(cudnnRNNForward(handle, rnn, DNN_FWD_MODE_TRAINING, NULL, x, NULL, x, NULL, NULL, NULL, NULL, NULL,
	                                 NULL, NULL, weights, NULL, workspace - 1, NULL, packed, NULL),
	                 DNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
	OK(cudnnDestroyRNNDataDescriptor(x));
	OK(cudnnDestroyRNNDescriptor(rnn));
	OK(cudnnDestroyDropoutDescriptor(dropout));
	OK(cudnnDestroy(handle));
}

/* ---- legacy convolution, normalisation, CTC ---- */

struct legacy {
	struct tn__dnn_handle *handle;
	struct tn__dnn_tensor *x, *y, *w;
	struct tn__dnn_conv_descriptor *convolution;
};

static struct legacy
make_legacy(void)
{
	struct legacy legacy = { .handle = make_handle() };
	OK(cudnnCreateTensorDescriptor(&legacy.x));
	OK(cudnnCreateTensorDescriptor(&legacy.y));
	OK(cudnnCreateFilterDescriptor(&legacy.w));
	OK(cudnnCreateConvolutionDescriptor(&legacy.convolution));
	OK(cudnnSetTensor4dDescriptor(legacy.x, DNN_TENSOR_NCHW, DNN_DATA_HALF, 8, 16, 20, 20));
	OK(cudnnSetFilterNdDescriptor(legacy.w, DNN_DATA_HALF, DNN_TENSOR_NCHW, 4, (const int[]){ 32, 16, 3, 3 }));
	OK(cudnnSetConvolution2dDescriptor(legacy.convolution, 1, 1, 2, 2, 1, 1, 1, DNN_DATA_FLOAT));
	OK(cudnnSetConvolutionMathType(legacy.convolution, DNN_TENSOR_OP_MATH));
	int n, c, h, w;
	OK(cudnnGetConvolution2dForwardOutputDim(legacy.convolution, legacy.x, legacy.w, &n, &c, &h, &w));
	assert_true(n == 8 && c == 32 && h == 10 && w == 10);
	OK(cudnnSetTensor4dDescriptor(legacy.y, DNN_TENSOR_NHWC, DNN_DATA_HALF, n, c, h, w));
	return legacy;
}

static void
destroy_legacy(struct legacy *legacy)
{
	OK(cudnnDestroyTensorDescriptor(legacy->x));
	OK(cudnnDestroyTensorDescriptor(legacy->y));
	OK(cudnnDestroyFilterDescriptor(legacy->w));
	OK(cudnnDestroyConvolutionDescriptor(legacy->convolution));
	OK(cudnnDestroy(legacy->handle));
}

static void
test_legacy_convolution(void **state)
{
	struct legacy l = make_legacy();
	struct tn__dnn_algorithm results[8];
	int found = -1, most = -1;
	size_t bytes = 1;
	OK(cudnnGetConvolutionForwardAlgorithmMaxCount(l.handle, &most));
	assert_in_range(most, 1, 8);
	OK(cudnnGetConvolutionForwardAlgorithm_v7(l.handle, l.x, l.w, l.convolution, l.y, 8, &found, results));
	assert_in_range(found, 2, most);
	assert_int_equal(results[0].workspace, 8 << 20);
	assert_int_equal(results[0].math, DNN_TENSOR_OP_MATH);
	assert_int_equal(results[found - 1].workspace, 0);
	for (int i = 0; i < DNN_CONVOLUTION_FWD_ALGO_COUNT; i++) {
		bytes = SIZE_MAX;
		int status = cudnnGetConvolutionForwardWorkspaceSize(l.handle, l.x, l.w, l.convolution, l.y, i, &bytes);
		assert_true(status == DNN_STATUS_SUCCESS ? bytes <= 8 << 20 : status == DNN_STATUS_NOT_SUPPORTED);
	}
	for (int i = 0; i < found; i++) {
		OK(cudnnGetConvolutionForwardWorkspaceSize(l.handle, l.x, l.w, l.convolution, l.y, results[i].algorithm,
		                                           &bytes));
		assert_int_equal(bytes, results[i].workspace);
		assert_int_equal(fake.wanted, bytes);
		uint64_t noted = fake.note_bytes;
		OK(cudnnConvolutionForward(l.handle, NULL, l.x, NULL, l.w, NULL, l.convolution, results[i].algorithm,
		                           (void *)0x1000, bytes, NULL, l.y, NULL));
		assert_int_equal(fake.note_bytes - noted, bytes);
	}
	/* with less workspace a search names only what fits */
	OK(cudnnFindConvolutionForwardAlgorithmEx(l.handle, l.x, NULL, l.w, NULL, l.convolution, l.y, NULL, 8, &found,
	                                          results, NULL, 1000));
	assert_int_equal(found, 1);
	OK(cudnnGetConvolutionBackwardDataAlgorithm_v7(l.handle, l.w, l.y, l.convolution, l.x, 1, &found, results));
	assert_true(found == 1 && results[0].determinism == DNN_DETERMINISTIC);
	OK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(l.handle, l.x, l.y, l.convolution, l.w, 8, &found, results));
	assert_true(found == 3 && results[0].determinism == DNN_DETERMINISTIC);
	assert_int_equal(
		cudnnConvolutionForward(l.handle, NULL, l.x, NULL, l.w, NULL, l.convolution, 4, NULL, 0, NULL, l.y, NULL),
		DNN_STATUS_NOT_SUPPORTED);
	destroy_legacy(&l);
}

static void
test_tensors(void **state)
{
	struct tn__dnn_tensor *tensor = NULL;
	int type, rank, dims[3] = { -1, -1, -1 }, strides[3] = { -1, -1, -1 }, n, c, h, w, stride_c;
	size_t bytes = 0;
	OK(cudnnCreateTensorDescriptor(&tensor));
	OK(cudnnSetTensor4dDescriptor(tensor, DNN_TENSOR_NHWC, DNN_DATA_FLOAT, 2, 3, 4, 5));
	OK(cudnnGetTensor4dDescriptor(tensor, &type, &n, &c, &h, &w, NULL, &stride_c, NULL, NULL));
	assert_true(n == 2 && c == 3 && h == 4 && w == 5 && stride_c == 1);
	OK(cudnnGetTensorNdDescriptor(tensor, 2, &type, &rank, dims, strides));
	assert_true(rank == 4 && dims[1] == 3 && dims[2] == -1 && strides[0] == 60);
	OK(cudnnGetTensorSizeInBytes(tensor, &bytes));
	assert_int_equal(bytes, 480);
	OK(cudnnSetTensor4dDescriptorEx(tensor, DNN_DATA_FLOAT, 2, 3, 4, 5, 1000, 100, 10, 1));
	OK(cudnnGetTensorSizeInBytes(tensor, &bytes));
	assert_int_equal(bytes, 4 * (1000 + 200 + 30 + 4 + 1));
	assert_int_equal(cudnnSetTensor4dDescriptor(tensor, DNN_TENSOR_NCHW, DNN_DATA_FLOAT, 2, 0, 4, 5),
	                 DNN_STATUS_BAD_PARAM);
	assert_int_equal(cudnnSetTensor4dDescriptor(tensor, DNN_TENSOR_NCHW, 77, 2, 1, 4, 5), DNN_STATUS_BAD_PARAM);
	const int huge[4] = { INT32_MAX, INT32_MAX, INT32_MAX, 2 };
	assert_int_equal(cudnnSetTensorNdDescriptor(tensor, DNN_DATA_FLOAT, 4, huge, huge), DNN_STATUS_NOT_SUPPORTED);
	OK(cudnnDestroyTensorDescriptor(tensor));
}

static void
test_batch_norm_and_ctc(void **state)
{
	struct legacy l = make_legacy();
	struct tn__dnn_ctc *ctc = NULL;
	size_t bytes = SIZE_MAX;
	const int labels[2] = { 3, 5 };
	OK(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(l.handle, DNN_BATCHNORM_SPATIAL, 0, l.x, NULL, l.x,
	                                                            NULL, NULL, &bytes));
	assert_int_equal(bytes, 0);
	bytes = SIZE_MAX;
	OK(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(l.handle, DNN_BATCHNORM_SPATIAL_PERSISTENT,
	                                                        DNN_BATCHNORM_OPS_BN_ACTIVATION, NULL, l.x, &bytes));
	assert_int_equal(bytes, 8 * 16 * 20 * 20 / 8);
	OK(cudnnDeriveBNTensorDescriptor(l.y, l.x, DNN_BATCHNORM_SPATIAL));
	assert_int_equal(tn__dnn_elements(l.y), 16);
	OK(cudnnCreateCTCLossDescriptor(&ctc));
	OK(cudnnSetCTCLossDescriptor_v9(ctc, DNN_DATA_FLOAT, 1, 0, 5));
	OK(cudnnSetTensorNdDescriptorEx(l.x, DNN_TENSOR_NCHW, DNN_DATA_FLOAT, 3, (const int[]){ 50, 2, 20 }));
	OK(cudnnGetCTCLossWorkspaceSize(l.handle, l.x, l.x, labels, labels, labels, 0, ctc, &bytes));
	assert_int_equal(bytes, 4 * (50 * 2 * 2 * 11 + 50 * 2 * 20));
	OK(cudnnGetCTCLossWorkspaceSize_v8(l.handle, 0, ctc, l.x, l.x, &bytes));
	assert_int_equal(bytes, 4 * (50 * 2 * 2 * 11 + 50 * 2 * 20));
	fake.note_bytes = 0;
	OK(cudnnCTCLoss(l.handle, l.x, NULL, labels, labels, labels, NULL, l.x, NULL, 0, ctc, (void *)0x1000, bytes));
	assert_int_equal(fake.note_bytes, bytes);
	OK(cudnnDestroyCTCLossDescriptor(ctc));
	destroy_legacy(&l);
}

/* ---- the table ---- */

/* Refused size queries must refuse: a stub that succeeded would leave the size unwritten. */
int cudnnGetReductionWorkspaceSize(void);
int cudnnGetNormalizationForwardTrainingWorkspaceSize(void);
int cudnnLongFFTCausalConv1dGetBufferSizes(void);
int cudnnGetMultiHeadAttnBuffers(void);
int cudnnMakeFusedOpsPlan(void);
int cudnnOpsVersionCheck(void);

static void
test_refusals(void **state)
{
	int (*const refused[])(void) = { cudnnGetReductionWorkspaceSize, cudnnGetNormalizationForwardTrainingWorkspaceSize,
		                             cudnnLongFFTCausalConv1dGetBufferSizes, cudnnGetMultiHeadAttnBuffers,
		                             cudnnMakeFusedOpsPlan };
	memset(&fake, 0, sizeof(fake));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(refused[i](), DNN_STATUS_NOT_SUPPORTED);
	assert_int_equal(fake.refusals, 5);
	OK(cudnnOpsVersionCheck());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_convolution_graphs),
		cmocka_unit_test(test_filters_keep_something),
		cmocka_unit_test(test_engines_by_number),
		cmocka_unit_test(test_attention_workspace),
		cmocka_unit_test(test_attribute_bounds),
		cmocka_unit_test(test_bad_tensors),
		cmocka_unit_test(test_handle),
		cmocka_unit_test(test_weight_space_is_covered),
		cmocka_unit_test(test_weight_sizes),
		cmocka_unit_test(test_rnn_spaces_are_as_measured),
		cmocka_unit_test(test_rnn_runs),
		cmocka_unit_test(test_legacy_convolution),
		cmocka_unit_test(test_tensors),
		cmocka_unit_test(test_batch_norm_and_ctc),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
