/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading operation graphs: see graph.h.
 */
#include "vgpu/cudnn/graph.h"

#include <string.h>

enum { MOST_TENSORS = 512 };

struct walk {
	struct tn__dnn_graph *out;
	int64_t seen[MOST_TENSORS]; /* unique ids of tensors already counted */
	int seen_count;
	int matmuls;
	struct tn__dnn_tensor first_left; /* left operand of the first matrix product: for attention, the query */
};

int
tn__dnn_graph_tensor(const struct tn__dnn_descriptor *descriptor, struct tn__dnn_tensor *out)
{
	const struct tn__dnn_attribute *type, *dims, *strides;
	memset(out, 0, sizeof(*out));
	DNN_REQUIRE(descriptor != NULL && descriptor->type == DNN_BACKEND_TENSOR_DESCRIPTOR, DNN_STATUS_BAD_PARAM,
	            "an operation lacks a tensor");
	type = tn__dnn_attribute_find(descriptor, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE);
	dims = tn__dnn_attribute_find(descriptor, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64);
	strides = tn__dnn_attribute_find(descriptor, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64);
	DNN_REQUIRE(type != NULL && type->count == 1 && dims != NULL && dims->count >= 1, DNN_STATUS_BAD_PARAM,
	            "a tensor lacks its type or dimensions");
	DNN_REQUIRE(dims->count <= DNN_DIM_MAX && strides != NULL && strides->count == dims->count, DNN_STATUS_BAD_PARAM,
	            "a tensor has %lld dimensions", (long long)dims->count);
	out->type = *(const int *)type->elements;
	out->rank = (int)dims->count;
	memcpy(out->dims, dims->elements, (size_t)dims->count * sizeof(int64_t));
	memcpy(out->strides, strides->elements, (size_t)dims->count * sizeof(int64_t));
	return DNN_STATUS_SUCCESS;
}

double
tn__dnn_convolution_flops(const struct tn__dnn_convolution *convolution)
{
	double filter = 1; /* (C / groups) * filter positions: all of w but its first dimension */
	for (int i = 1; i < convolution->w.rank; i++)
		filter *= (double)convolution->w.dims[i];
	return 2.0 * (double)tn__dnn_elements(&convolution->y) * filter;
}

/* Spatial attributes of a convolution descriptor, whichever are there. */
static void
read_spatial(const struct tn__dnn_descriptor *descriptor, struct tn__dnn_convolution *out)
{
	static const int names[3] = { DNN_ATTR_CONVOLUTION_PRE_PADDINGS, DNN_ATTR_CONVOLUTION_FILTER_STRIDES,
		                          DNN_ATTR_CONVOLUTION_DILATIONS };
	int64_t *const into[3] = { out->padding, out->stride, out->dilation };
	for (int i = 0; i < 3; i++) {
		const struct tn__dnn_attribute *attribute = tn__dnn_attribute_find(descriptor, names[i], DNN_TYPE_INT64);
		int64_t count = attribute == NULL ? 0 : attribute->count;
		if (count > DNN_DIM_MAX)
			count = DNN_DIM_MAX;
		if (count > 0)
			memcpy(into[i], attribute->elements, (size_t)count * sizeof(int64_t));
	}
	out->spatial_dims = (int)tn__dnn_int64(descriptor, DNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
	const struct tn__dnn_attribute *type = tn__dnn_attribute_find(descriptor, DNN_ATTR_CONVOLUTION_COMP_TYPE,
	                                                              DNN_TYPE_DATA_TYPE);
	out->compute_type = type == NULL || type->count == 0 ? DNN_DATA_FLOAT : *(const int *)type->elements;
}

static int
read_convolution(const struct tn__dnn_descriptor *operation, struct walk *walk)
{
	static const struct {
		int type, direction, descriptor, x, w, y;
	} kinds[] = {
		{ DNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, DNN_FORWARD_PASS,
		  DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
		  DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y },
		{ DNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, DNN_DATA_GRADIENT,
		  DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
		  DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY },
		{ DNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, DNN_FILTER_GRADIENT,
		  DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
		  DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY },
	};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct tn__dnn_convolution convolution = { 0 };
		if (operation->type != kinds[i].type)
			continue;
		const struct tn__dnn_descriptor *descriptor = tn__dnn_child(operation, kinds[i].descriptor);
		DNN_REQUIRE(descriptor != NULL, DNN_STATUS_BAD_PARAM, "an operation lacks its convolution descriptor");
		convolution.direction = (enum tn__dnn_direction)kinds[i].direction;
		DNN_FORWARD(tn__dnn_graph_tensor(tn__dnn_child(operation, kinds[i].x), &convolution.x));
		DNN_FORWARD(tn__dnn_graph_tensor(tn__dnn_child(operation, kinds[i].w), &convolution.w));
		DNN_FORWARD(tn__dnn_graph_tensor(tn__dnn_child(operation, kinds[i].y), &convolution.y));
		read_spatial(descriptor, &convolution);
		walk->out->flops += tn__dnn_convolution_flops(&convolution);
		if (!walk->out->has_convolution) {
			walk->out->flops_type = convolution.x.type;
			walk->out->convolution = convolution;
		}
		walk->out->has_convolution = true;
	}
	return DNN_STATUS_SUCCESS;
}

/* A matrix product C[..., m, n] = A[..., m, k] B[..., k, n]. */
static int
read_matmul(const struct tn__dnn_descriptor *operation, struct walk *walk)
{
	struct tn__dnn_tensor a, c;
	DNN_FORWARD(tn__dnn_graph_tensor(tn__dnn_child(operation, DNN_ATTR_OPERATION_MATMUL_ADESC), &a));
	DNN_FORWARD(tn__dnn_graph_tensor(tn__dnn_child(operation, DNN_ATTR_OPERATION_MATMUL_CDESC), &c));
	walk->out->flops += 2.0 * (double)tn__dnn_elements(&c) * (double)a.dims[a.rank - 1];
	if (walk->matmuls++ == 0) {
		walk->first_left = a;
		if (!walk->out->has_convolution)
			walk->out->flops_type = a.type;
	}
	return DNN_STATUS_SUCCESS;
}

/* Rows of a tensor of four dimensions: all but the last. */
static uint64_t
rows_of(struct tn__dnn_tensor tensor)
{
	tensor.rank--;
	return tn__dnn_elements(&tensor);
}

/* The fused attention operations: query, key and value stand in three attributes of their own. */
static int
read_attention(const struct tn__dnn_descriptor *operation, struct walk *walk)
{
	bool backward = operation->type == DNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR;
	struct tn__dnn_tensor q, k;
	DNN_FORWARD(tn__dnn_graph_tensor(
		tn__dnn_child(operation, backward ? DNN_ATTR_OPERATION_SDPA_BWD_QDESC : DNN_ATTR_OPERATION_SDPA_FWD_QDESC),
		&q));
	DNN_FORWARD(tn__dnn_graph_tensor(
		tn__dnn_child(operation, backward ? DNN_ATTR_OPERATION_SDPA_BWD_KDESC : DNN_ATTR_OPERATION_SDPA_FWD_KDESC),
		&k));
	DNN_REQUIRE(q.rank == 4 && k.rank == 4, DNN_STATUS_NOT_SUPPORTED_SHAPE, "attention of %d dimensions", q.rank);
	struct tn__dnn_graph *out = walk->out;
	out->has_attention = true;
	out->attention.backward = backward;
	out->attention.query_elements = tn__dnn_elements(&q);
	out->attention.query_rows = rows_of(q);
	out->flops += (backward ? 10.0 : 4.0) * (double)tn__dnn_elements(&q) * (double)k.dims[2];
	out->flops_type = q.type;
	return DNN_STATUS_SUCCESS;
}

/* Counts a tensor's bytes once. Virtual tensors stay in registers, by-value ones are scalars of the host. */
static int
count_tensor(const struct tn__dnn_descriptor *descriptor, struct walk *walk)
{
	struct tn__dnn_tensor tensor;
	int64_t id = tn__dnn_int64(descriptor, DNN_ATTR_TENSOR_UNIQUE_ID, -1);
	if (tn__dnn_boolean(descriptor, DNN_ATTR_TENSOR_IS_VIRTUAL, false) ||
	    tn__dnn_boolean(descriptor, DNN_ATTR_TENSOR_IS_BY_VALUE, false))
		return DNN_STATUS_SUCCESS;
	for (int i = 0; i < walk->seen_count; i++) {
		if (walk->seen[i] == id)
			return DNN_STATUS_SUCCESS;
	}
	if (walk->seen_count < MOST_TENSORS)
		walk->seen[walk->seen_count++] = id;
	DNN_FORWARD(tn__dnn_graph_tensor(descriptor, &tensor));
	walk->out->bytes += tn__dnn_bytes(&tensor);
	return DNN_STATUS_SUCCESS;
}

static int
count_tensors(const struct tn__dnn_descriptor *operation, struct walk *walk)
{
	const struct tn__dnn_attribute *attribute = operation->attributes;
	for (; attribute != NULL; attribute = attribute->next) {
		struct tn__dnn_descriptor *const *children = attribute->elements;
		if (attribute->type != DNN_TYPE_BACKEND_DESCRIPTOR)
			continue;
		for (int64_t i = 0; i < attribute->count; i++) {
			if (children[i]->type == DNN_BACKEND_TENSOR_DESCRIPTOR)
				DNN_FORWARD(count_tensor(children[i], walk));
		}
	}
	return DNN_STATUS_SUCCESS;
}

static int
read_operation(const struct tn__dnn_descriptor *operation, struct walk *walk)
{
	switch (operation->type) {
	case DNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
		DNN_FORWARD(read_matmul(operation, walk));
		break;
	case DNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
	case DNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR:
		DNN_FORWARD(read_attention(operation, walk));
		break;
	default:
		DNN_FORWARD(read_convolution(operation, walk));
	}
	return count_tensors(operation, walk);
}

/* Attention may also be built of single operations: two products forward (QK and PV), five backward. */
static void
recognise_attention(const struct walk *walk)
{
	struct tn__dnn_graph *out = walk->out;
	if (out->has_attention || walk->matmuls < 2 || walk->first_left.rank != 4)
		return;
	out->has_attention = true;
	out->attention.backward = walk->matmuls >= 5;
	out->attention.query_elements = tn__dnn_elements(&walk->first_left);
	out->attention.query_rows = rows_of(walk->first_left);
}

int
tn__dnn_graph_read(const struct tn__dnn_descriptor *graph, struct tn__dnn_graph *out)
{
	const struct tn__dnn_attribute *operations = tn__dnn_attribute_find(graph, DNN_ATTR_OPERATIONGRAPH_OPS,
	                                                                    DNN_TYPE_BACKEND_DESCRIPTOR);
	struct walk walk = { .out = out };
	memset(out, 0, sizeof(*out));
	DNN_REQUIRE(operations != NULL && operations->count > 0, DNN_STATUS_BAD_PARAM,
	            "an operation graph has no operations");
	for (int64_t i = 0; i < operations->count; i++)
		DNN_FORWARD(read_operation(((struct tn__dnn_descriptor **)operations->elements)[i], &walk));
	recognise_attention(&walk);
	return DNN_STATUS_SUCCESS;
}

uint64_t
tn__dnn_graph_workspace(const struct tn__dnn_graph *graph, int engine)
{
	if (graph->has_convolution)
		return tn__cudnn_workspace(&graph->convolution, engine);
	return graph->has_attention ? tn__cudnn_attention_workspace(&graph->attention, engine) : 0;
}

uint64_t
tn__dnn_time(double flops, int type, uint64_t bytes, int engine)
{
	static const double slower[DNN_ENGINES] = { 1.0, 1.1, 1.2, 2.0 };
	uint64_t moving = tn__time_of_bytes(bytes);
	uint64_t computing = tn__time_of_flops(flops, tn__dnn_math(type, engine == DNN_ENGINE_TENSOR_CORES));
	return (uint64_t)((double)(moving > computing ? moving : computing) * slower[engine]);
}

struct tn_effort
tn__dnn_effort(double flops, int type, uint64_t bytes, int engine)
{
	return (struct tn_effort){ .kind = TN_EFFORT_KERNEL,
		                       .math = tn__dnn_math(type, engine == DNN_ENGINE_TENSOR_CORES),
		                       .flops = flops,
		                       .bytes = (double)bytes };
}

uint64_t
tn__dnn_graph_time(const struct tn__dnn_graph *graph, int engine)
{
	return tn__dnn_time(graph->flops, graph->flops_type, graph->bytes, engine);
}
