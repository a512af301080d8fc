/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks through the legacy API (v8 calls): descriptors, temporary space, launches.
 *
 * Temporary space. cuDNN tells it with a handle only, so it cannot be asked without a card. This was fitted to three
 * trainings with cuDNN 9.19 on an H200 (bench/results/validate.json): a two-layer LSTM and a two-layer GRU, to the byte, and a
 * bidirectional LSTM with dropout, whose reserve space is right and whose workspace is 5 % too small. Other numbers of layers,
 * projections, plain networks, packed sequences and inference are extrapolated. In elements of the network's type for
 * each step and sequence:
 *   reserve    what backward needs of each layer and direction: the gates after activation and the cell state (LSTM), or
 *              the gates twice (GRU); what each layer hands to the next; two bits an element of that for the mask of dropout
 *   workspace  in training the input, and of each layer and direction the gates and the output; with dropout what each
 *              layer hands to the next, twice; for a GRU, once, the recurrent weights and a state of each layer and direction.
 *              In inference what the input products of one layer give
 * and a few bytes, 512 and 256, that all three had.
 */
#include "vgpu/cudnn/rnn.h"
#include "vgpu/cudnn/api.h"
#include "vgpu/cudnn/graph.h"

#include <stdlib.h>
#include <string.h>

int
cudnnCreateRNNDescriptor(struct tn__dnn_rnn **rnn)
{
	DNN_CREATE(rnn, struct tn__dnn_rnn);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyRNNDescriptor(struct tn__dnn_rnn *rnn)
{
	free(rnn);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetRNNDescriptor_v8(struct tn__dnn_rnn *rnn, int algorithm, int cell, int bias, int direction, int input_mode,
                         int type, int precision, int math, int32_t input, int32_t hidden, int32_t projection,
                         int32_t layers, struct tn__dnn_dropout *dropout, uint32_t flags)
{
	DNN_REQUIRE_POINTER(rnn);
	DNN_REQUIRE(cell >= DNN_RNN_RELU && cell <= DNN_GRU, DNN_STATUS_BAD_PARAM, "cell %d", cell);
	DNN_REQUIRE(bias >= DNN_RNN_NO_BIAS && bias <= DNN_RNN_SINGLE_REC_BIAS, DNN_STATUS_BAD_PARAM, "bias mode %d", bias);
	DNN_REQUIRE(tn__dnn_type_bits(type) >= 8, DNN_STATUS_BAD_PARAM, "data type %d", type);
	DNN_REQUIRE(input > 0 && hidden > 0 && layers > 0 && projection >= 0 && projection <= hidden, DNN_STATUS_BAD_PARAM,
	            "input %d, hidden %d, projection %d, layers %d", input, hidden, projection, layers);
	DNN_REQUIRE(projection == 0 || projection == hidden || cell == DNN_LSTM, DNN_STATUS_NOT_SUPPORTED,
	            "a projection without LSTM");
	*rnn = (struct tn__dnn_rnn){ .algorithm = algorithm,
		                         .cell = cell,
		                         .bias = bias,
		                         .direction = direction,
		                         .input_mode = input_mode,
		                         .type = type,
		                         .precision = precision,
		                         .math = math,
		                         .input = input,
		                         .hidden = hidden,
		                         .projection = projection == hidden ? 0
		                                                            : projection, /* documented: then there is none */
		                         .layers = layers,
		                         .dropout = dropout,
		                         .flags = flags };
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetRNNDescriptor_v8(const struct tn__dnn_rnn *rnn, int *algorithm, int *cell, int *bias, int *direction,
                         int *input_mode, int *type, int *precision, int *math, int32_t *input, int32_t *hidden,
                         int32_t *projection, int32_t *layers, struct tn__dnn_dropout **dropout, uint32_t *flags)
{
	DNN_REQUIRE_POINTER(rnn);
	int32_t *const out[] = { algorithm, cell, bias,  direction, input_mode, type,
		                     precision, math, input, hidden,    projection, layers };
	const int32_t values[] = { rnn->algorithm,
		                       rnn->cell,
		                       rnn->bias,
		                       rnn->direction,
		                       rnn->input_mode,
		                       rnn->type,
		                       rnn->precision,
		                       rnn->math,
		                       rnn->input,
		                       rnn->hidden,
		                       rnn->projection > 0 ? rnn->projection : rnn->hidden,
		                       rnn->layers };
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		if (out[i] != NULL)
			*out[i] = values[i];
	}
	if (dropout != NULL)
		*dropout = rnn->dropout;
	if (flags != NULL)
		*flags = rnn->flags;
	return DNN_STATUS_SUCCESS;
}

int
cudnnRNNSetClip_v8(struct tn__dnn_rnn *rnn, int mode, int nan, double left, double right)
{
	DNN_REQUIRE_POINTER(rnn);
	rnn->clip_mode = mode;
	rnn->clip_nan = nan;
	rnn->clip_left = left;
	rnn->clip_right = right;
	return DNN_STATUS_SUCCESS;
}

int
cudnnRNNSetClip_v9(struct tn__dnn_rnn *rnn, int mode, double left, double right)
{
	return cudnnRNNSetClip_v8(rnn, mode, 0, left, right);
}

int
cudnnRNNGetClip_v8(const struct tn__dnn_rnn *rnn, int *mode, int *nan, double *left, double *right)
{
	DNN_REQUIRE_POINTER(rnn);
	if (mode != NULL)
		*mode = rnn->clip_mode;
	if (nan != NULL)
		*nan = rnn->clip_nan;
	if (left != NULL)
		*left = rnn->clip_left;
	if (right != NULL)
		*right = rnn->clip_right;
	return DNN_STATUS_SUCCESS;
}

int
cudnnRNNGetClip_v9(const struct tn__dnn_rnn *rnn, int *mode, double *left, double *right)
{
	return cudnnRNNGetClip_v8(rnn, mode, NULL, left, right);
}

/* ---- data ---- */

int
cudnnCreateRNNDataDescriptor(struct tn__dnn_rnn_data **data)
{
	DNN_CREATE(data, struct tn__dnn_rnn_data);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyRNNDataDescriptor(struct tn__dnn_rnn_data *data)
{
	if (data != NULL)
		free(data->lengths);
	free(data);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetRNNDataDescriptor(struct tn__dnn_rnn_data *data, int type, int layout, int max_length, int batch, int vector,
                          const int *lengths, void *padding)
{
	DNN_REQUIRE(data != NULL && lengths != NULL, DNN_STATUS_BAD_PARAM, "a pointer is null");
	DNN_REQUIRE(max_length > 0 && batch > 0 && vector > 0 && tn__dnn_type_bits(type) >= 8, DNN_STATUS_BAD_PARAM,
	            "length %d, batch %d, vector %d, type %d", max_length, batch, vector, type);
	for (int i = 0; i < batch; i++)
		DNN_REQUIRE(lengths[i] >= 0 && lengths[i] <= max_length, DNN_STATUS_BAD_PARAM, "length %d of %d", lengths[i],
		            max_length);
	int *copy = malloc((size_t)batch * sizeof(int));
	DNN_REQUIRE(copy != NULL, DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of memory");
	memcpy(copy, lengths, (size_t)batch * sizeof(int));
	free(data->lengths);
	*data = (struct tn__dnn_rnn_data){ type, layout, max_length, batch, vector, copy };
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetRNNDataDescriptor(const struct tn__dnn_rnn_data *data, int *type, int *layout, int *max_length, int *batch,
                          int *vector, int requested, int *lengths, void *padding)
{
	DNN_REQUIRE(data != NULL && data->batch > 0, DNN_STATUS_BAD_PARAM, "no data");
	int *const out[5] = { type, layout, max_length, batch, vector };
	const int values[5] = { data->type, data->layout, data->max_length, data->batch, data->vector };
	for (int i = 0; i < 5; i++) {
		if (out[i] != NULL)
			*out[i] = values[i];
	}
	for (int i = 0; lengths != NULL && i < requested && i < data->batch; i++)
		lengths[i] = data->lengths[i];
	return DNN_STATUS_SUCCESS;
}

/* Steps over all sequences: padding counts unless the layout is packed. */
static uint64_t
steps_of(const struct tn__dnn_rnn_data *data)
{
	uint64_t sum = 0;
	if (data->layout != DNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED)
		return (uint64_t)data->max_length * (uint64_t)data->batch;
	for (int i = 0; i < data->batch; i++)
		sum += (uint64_t)data->lengths[i];
	return sum;
}

/* ---- temporary space and launches ---- */

/* In lines of 512 bytes. */
static size_t
in_lines(uint64_t bytes)
{
	return (size_t)((bytes + 511) / 512 * 512);
}

static bool
has_dropout(const struct tn__dnn_rnn *rnn)
{
	float probability = 0;
	if (rnn->layers < 2 || rnn->dropout == NULL)
		return false;
	return cudnnGetDropoutDescriptor(rnn->dropout, NULL, &probability, NULL, NULL) == DNN_STATUS_SUCCESS &&
	       probability > 0;
}

struct spaces {
	size_t workspace, reserve;
};

static struct spaces
spaces_of(const struct tn__dnn_rnn *rnn, int mode, uint64_t steps, uint64_t batch)
{
	uint64_t bits = (uint64_t)tn__dnn_type_bits(rnn->type), directions = (uint64_t)tn__dnn_rnn_directions(rnn);
	uint64_t layers = (uint64_t)rnn->layers, hidden = (uint64_t)rnn->hidden;
	uint64_t gates = (uint64_t)tn__dnn_rnn_gates(rnn) * hidden, output = (uint64_t)tn__dnn_rnn_output(rnn);
	uint64_t kept = rnn->cell == DNN_GRU ? 2 * gates : rnn->cell == DNN_LSTM ? gates + hidden : gates;
	uint64_t handed = (layers - 1) * directions * output;
	uint64_t once = rnn->cell == DNN_GRU ? layers * directions * hidden * (hidden + batch) : 0;
	bool dropout = has_dropout(rnn);
	if (mode != DNN_FWD_MODE_TRAINING)
		return (struct spaces){ .workspace = in_lines(directions * steps * gates * bits / 8) };
	uint64_t reserve = steps * (layers * directions * kept + handed) * bits / 8 + (dropout ? steps * handed / 4 : 0);
	uint64_t elements = steps *
	                    ((uint64_t)rnn->input + layers * directions * (gates + output) + (dropout ? 2 * handed : 0));
	return (struct spaces){ .workspace = in_lines((elements + once) * bits / 8) + 512,
		                    .reserve = in_lines(reserve) + 256 };
}

int
cudnnGetRNNTempSpaceSizes(dnn_handle handle, const struct tn__dnn_rnn *rnn, int mode, const struct tn__dnn_rnn_data *x,
                          size_t *workspace_bytes, size_t *reserve_bytes)
{
	DNN_REQUIRE(rnn != NULL && rnn->layers > 0 && x != NULL && x->batch > 0, DNN_STATUS_BAD_PARAM,
	            "no network or no data");
	const struct spaces spaces = spaces_of(rnn, mode, steps_of(x), (uint64_t)x->batch);
	if (workspace_bytes != NULL) {
		*workspace_bytes = spaces.workspace;
		tn__note_wanted(*workspace_bytes);
	}
	if (reserve_bytes != NULL)
		*reserve_bytes = spaces.reserve;
	return DNN_STATUS_SUCCESS;
}

struct space {
	const void *address;
	uint64_t bytes;
};

/* Every weight is used once for each step and sequence: 2 operations. */
static int
launch(dnn_handle handle, const struct tn__dnn_rnn *rnn, const struct tn__dnn_rnn_data *x, size_t space_bytes,
       struct space workspace_given, struct space reserve_given, int mode)
{
	size_t weights, workspace, reserve;
	DNN_FORWARD(cudnnGetRNNWeightSpaceSize(handle, rnn, &weights));
	DNN_FORWARD(cudnnGetRNNTempSpaceSizes(handle, rnn, mode, x, &workspace, &reserve));
	DNN_REQUIRE(space_bytes >= weights && workspace_given.bytes >= workspace && reserve_given.bytes >= reserve,
	            DNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weights, workspace or reserve space is too small");
	tn__note_workspace(TN_LIBRARY_CUDNN, workspace_given.address, workspace_given.bytes);
	tn__note_workspace(TN_LIBRARY_CUDNN, reserve_given.address, reserve_given.bytes);
	double flops = 2.0 * (double)tn__dnn_rnn_weights(rnn) * (double)steps_of(x);
	uint64_t bytes = weights + workspace + reserve;
	const struct tn_effort effort = tn__dnn_effort(flops, rnn->type, bytes, DNN_ENGINE_PLAIN);
	return tn__dnn_put(handle, tn__dnn_time(flops, rnn->type, bytes, DNN_ENGINE_PLAIN), &effort);
}

int
cudnnRNNForward(dnn_handle handle, const struct tn__dnn_rnn *rnn, int mode, const int32_t *lengths,
                const struct tn__dnn_rnn_data *x_desc, const void *x, const struct tn__dnn_rnn_data *y_desc, void *y,
                dnn_tensor h_desc, const void *hx, void *hy, dnn_tensor c_desc, const void *cx, void *cy,
                size_t space_bytes, const void *space, size_t workspace_bytes, void *workspace, size_t reserve_bytes,
                void *reserve)
{
	return launch(handle, rnn, x_desc, space_bytes, (struct space){ workspace, workspace_bytes },
	              (struct space){ reserve, reserve_bytes }, mode);
}

int
cudnnRNNBackwardData_v8(dnn_handle handle, const struct tn__dnn_rnn *rnn, const int32_t *lengths,
                        const struct tn__dnn_rnn_data *y_desc, const void *y, const void *dy,
                        const struct tn__dnn_rnn_data *x_desc, void *dx, dnn_tensor h_desc, const void *hx,
                        const void *dhy, void *dhx, dnn_tensor c_desc, const void *cx, const void *dcy, void *dcx,
                        size_t space_bytes, const void *space, size_t workspace_bytes, void *workspace,
                        size_t reserve_bytes, void *reserve)
{
	return launch(handle, rnn, x_desc, space_bytes, (struct space){ workspace, workspace_bytes },
	              (struct space){ reserve, reserve_bytes }, DNN_FWD_MODE_TRAINING);
}

int
cudnnRNNBackwardWeights_v8(dnn_handle handle, const struct tn__dnn_rnn *rnn, int add, const int32_t *lengths,
                           const struct tn__dnn_rnn_data *x_desc, const void *x, dnn_tensor h_desc, const void *hx,
                           const struct tn__dnn_rnn_data *y_desc, const void *y, size_t space_bytes, void *dspace,
                           size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)
{
	return launch(handle, rnn, x_desc, space_bytes, (struct space){ workspace, workspace_bytes },
	              (struct space){ reserve, reserve_bytes }, DNN_FWD_MODE_TRAINING);
}
