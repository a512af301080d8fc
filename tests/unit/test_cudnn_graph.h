/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs and questions as cuDNN's frontend makes them, for the tests of src/vgpu/cudnn. Include it in one file of a test
 * program only, after cmocka.
 */
#ifndef TN_TEST_CUDNN_GRAPH_H
#define TN_TEST_CUDNN_GRAPH_H

#include <string.h>

#include "test_cudnn_fake.h"
#include "vgpu/cudnn/api.h"

#define OK(call) assert_int_equal((call), DNN_STATUS_SUCCESS)

typedef struct tn__dnn_descriptor *desc;

static struct tn__dnn_handle *
make_handle(void)
{
	struct tn__dnn_handle *handle = NULL;
	memset(&fake, 0, sizeof(fake));
	OK(cudnnCreate(&handle));
	OK(cudnnSetStream(handle, (void *)0x77));
	return handle;
}

/* ---- backend API ---- */

static desc
make(int type)
{
	desc descriptor = NULL;
	OK(cudnnBackendCreateDescriptor(type, &descriptor));
	return descriptor;
}

static void
set(desc descriptor, int name, int type, int64_t count, const void *elements)
{
	OK(cudnnBackendSetAttribute(descriptor, name, type, count, elements));
}

static desc
make_tensor(int64_t id, int type, int rank, const int64_t *dims)
{
	int64_t strides[8], stride = 1, alignment = 16;
	desc tensor = make(DNN_BACKEND_TENSOR_DESCRIPTOR);
	for (int i = rank - 1; i >= 0; i--) {
		strides[i] = stride;
		stride *= dims[i];
	}
	set(tensor, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
	set(tensor, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, rank, dims);
	set(tensor, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, rank, strides);
	set(tensor, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &id);
	set(tensor, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
	OK(cudnnBackendFinalize(tensor));
	return tensor;
}

static desc
make_conv_descriptor(void)
{
	const int64_t ones[2] = { 1, 1 }, dims = 2;
	const int compute = DNN_DATA_FLOAT;
	desc convolution = make(DNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	set(convolution, DNN_ATTR_CONVOLUTION_SPATIAL_DIMS, DNN_TYPE_INT64, 1, &dims);
	set(convolution, DNN_ATTR_CONVOLUTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &compute);
	set(convolution, DNN_ATTR_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, 2, ones);
	set(convolution, DNN_ATTR_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, 2, ones);
	set(convolution, DNN_ATTR_CONVOLUTION_FILTER_STRIDES, DNN_TYPE_INT64, 2, ones);
	set(convolution, DNN_ATTR_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, 2, ones);
	OK(cudnnBackendFinalize(convolution));
	return convolution;
}

/* A graph of one 3x3 convolution, 64 to 64 channels, N 32, 56x56. The program's own parts are destroyed at once. */
static desc
make_conv_graph(struct tn__dnn_handle *handle, int operation_type, int first_attribute)
{
	/* first_attribute: the operation's descriptor attribute; w, x/dx, y/dy follow, in the filter gradient dw, x, dy */
	const int64_t x_dims[4] = { 32, 64, 56, 56 }, w_dims[4] = { 64, 64, 3, 3 };
	desc x = make_tensor('x', DNN_DATA_FLOAT, 4, x_dims), y = make_tensor('y', DNN_DATA_FLOAT, 4, x_dims);
	desc w = make_tensor('w', DNN_DATA_FLOAT, 4, w_dims), convolution = make_conv_descriptor();
	desc operation = make(operation_type), graph = make(DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set(operation, first_attribute, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution);
	set(operation, first_attribute + 1, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
	set(operation, first_attribute + 2, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
	set(operation, first_attribute + 3, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
	OK(cudnnBackendFinalize(operation));
	set(graph, 800, DNN_TYPE_HANDLE, 1, &handle);
	set(graph, DNN_ATTR_OPERATIONGRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation);
	OK(cudnnBackendFinalize(graph));
	desc parts[] = { x, y, w, convolution, operation };
	for (int i = 0; i < 5; i++)
		OK(cudnnBackendDestroyDescriptor(parts[i]));
	return graph;
}

static int
ask_heuristics(desc graph, int mode, desc *out, int room)
{
	int64_t count = -1;
	desc heuristics = make(DNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	set(heuristics, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
	set(heuristics, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1, &mode);
	OK(cudnnBackendFinalize(heuristics));
	OK(cudnnBackendGetAttribute(heuristics, DNN_ATTR_ENGINEHEUR_RESULTS, DNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL));
	assert_in_range(count, 1, room);
	for (int i = 0; i < count; i++)
		out[i] = make(DNN_BACKEND_ENGINECFG_DESCRIPTOR);
	OK(cudnnBackendGetAttribute(heuristics, DNN_ATTR_ENGINEHEUR_RESULTS, DNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
	                            out));
	OK(cudnnBackendDestroyDescriptor(heuristics));
	return (int)count;
}

#endif
