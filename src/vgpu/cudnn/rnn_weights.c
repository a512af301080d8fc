/* SPDX-License-Identifier: Apache-2.0
 *
 * How a recurrent network's weights lie in the one buffer that cuDNN wants them in.
 *
 * Order: for each pseudo-layer (layer, then direction) the input matrices of all gates, the recurrent matrices of all
 * gates, and the projection's; after all matrices, for each pseudo-layer the biases in the same order. No gaps.
 * PyTorch relies on the gates of one kind lying side by side.
 * Linear layers are numbered 0..g-1 for the input side, g..2g-1 for the recurrent side, 2g for the projection, with g
 * gates; biases exist for the side or sides that the bias mode names (NVIDIA's API reference).
 * Invariant: matrices and biases do not overlap and cover the weight space exactly.
 */
#include "vgpu/cudnn/api.h"
#include "vgpu/cudnn/rnn.h"

int
tn__dnn_rnn_gates(const struct tn__dnn_rnn *rnn)
{
	return rnn->cell == DNN_LSTM ? 4 : rnn->cell == DNN_GRU ? 3 : 1;
}

int
tn__dnn_rnn_directions(const struct tn__dnn_rnn *rnn)
{
	return rnn->direction == DNN_BIDIRECTIONAL ? 2 : 1;
}

int64_t
tn__dnn_rnn_output(const struct tn__dnn_rnn *rnn)
{
	return rnn->projection > 0 ? rnn->projection : rnn->hidden;
}

int64_t
tn__dnn_rnn_layer_input(const struct tn__dnn_rnn *rnn, int layer)
{
	return layer == 0 ? rnn->input : tn__dnn_rnn_output(rnn) * tn__dnn_rnn_directions(rnn);
}

/* Rows and columns of one matrix; 0 by 0 when the network has none there. */
static void
matrix_shape(const struct tn__dnn_rnn *rnn, int layer, int linear, int64_t *rows, int64_t *columns)
{
	int gates = tn__dnn_rnn_gates(rnn);
	*rows = rnn->hidden;
	*columns = linear < gates ? tn__dnn_rnn_layer_input(rnn, layer) : tn__dnn_rnn_output(rnn);
	if (linear == 2 * gates) {
		*rows = rnn->projection;
		*columns = rnn->hidden;
	}
	bool skipped = layer == 0 && linear < gates && rnn->input_mode == DNN_SKIP_INPUT;
	if (skipped || *rows == 0)
		*rows = *columns = 0;
}

static uint64_t
layer_matrices(const struct tn__dnn_rnn *rnn, int layer, int linears)
{
	uint64_t elements = 0;
	for (int linear = 0; linear < linears; linear++) {
		int64_t rows, columns;
		matrix_shape(rnn, layer, linear, &rows, &columns);
		elements += (uint64_t)rows * (uint64_t)columns;
	}
	return elements;
}

/* Elements of the matrices of the first `pseudo_layers` pseudo-layers. */
static uint64_t
matrices_before(const struct tn__dnn_rnn *rnn, int pseudo_layers)
{
	uint64_t elements = 0;
	for (int pseudo = 0; pseudo < pseudo_layers; pseudo++)
		elements += layer_matrices(rnn, pseudo / tn__dnn_rnn_directions(rnn), 2 * tn__dnn_rnn_gates(rnn) + 1);
	return elements;
}

static bool
has_bias(const struct tn__dnn_rnn *rnn, int linear)
{
	int gates = tn__dnn_rnn_gates(rnn);
	if (linear >= 2 * gates)
		return false;
	bool input_side = linear < gates;
	return rnn->bias == DNN_RNN_DOUBLE_BIAS || (rnn->bias == DNN_RNN_SINGLE_INP_BIAS && input_side) ||
	       (rnn->bias == DNN_RNN_SINGLE_REC_BIAS && !input_side);
}

/* Number of biases among the first `linears` linear layers of a pseudo-layer. */
static uint64_t
biases_before(const struct tn__dnn_rnn *rnn, int linears)
{
	uint64_t count = 0;
	for (int linear = 0; linear < linears; linear++)
		count += has_bias(rnn, linear);
	return count;
}

static int
pseudo_layers(const struct tn__dnn_rnn *rnn)
{
	return rnn->layers * tn__dnn_rnn_directions(rnn);
}

uint64_t
tn__dnn_rnn_weights(const struct tn__dnn_rnn *rnn)
{
	uint64_t biases = (uint64_t)pseudo_layers(rnn) * biases_before(rnn, 2 * tn__dnn_rnn_gates(rnn));
	return matrices_before(rnn, pseudo_layers(rnn)) + biases * (uint64_t)rnn->hidden;
}

int
cudnnGetRNNWeightSpaceSize(dnn_handle handle, const struct tn__dnn_rnn *rnn, size_t *bytes)
{
	DNN_REQUIRE_POINTER(bytes);
	DNN_REQUIRE(rnn != NULL && rnn->layers > 0, DNN_STATUS_BAD_PARAM, "no recurrent network");
	*bytes = tn__dnn_rnn_weights(rnn) * (size_t)tn__dnn_type_bits(rnn->type) / 8;
	return DNN_STATUS_SUCCESS;
}

/* Answers one part: a descriptor [1, rows, columns] and an address, or nothing and null. Either may not be wanted. */
static int
answer(const struct tn__dnn_rnn *rnn, const void *space, uint64_t offset, int64_t rows, int64_t columns,
       struct tn__dnn_tensor *descriptor, void **address)
{
	bool exists = rows > 0 && columns > 0;
	if (address != NULL)
		*address = exists ? (char *)space + offset * (uint64_t)tn__dnn_type_bits(rnn->type) / 8 : NULL;
	if (descriptor == NULL)
		return DNN_STATUS_SUCCESS;
	if (!exists) {
		*descriptor = (struct tn__dnn_tensor){ 0 };
		return DNN_STATUS_SUCCESS;
	}
	return tn__dnn_set_packed(descriptor, DNN_TENSOR_NCHW, rnn->type, 3, (const int[]){ 1, (int)rows, (int)columns });
}

int
cudnnGetRNNWeightParams(dnn_handle handle, const struct tn__dnn_rnn *rnn, int32_t pseudo_layer, size_t space_bytes,
                        const void *space, int32_t linear, struct tn__dnn_tensor *matrix_desc, void **matrix,
                        struct tn__dnn_tensor *bias_desc, void **bias)
{
	size_t needed;
	int64_t rows, columns;
	DNN_FORWARD(cudnnGetRNNWeightSpaceSize(handle, rnn, &needed));
	int linears = 2 * tn__dnn_rnn_gates(rnn) + (rnn->projection > 0);
	DNN_REQUIRE(space_bytes >= needed, DNN_STATUS_BAD_PARAM, "a weight space of %zu bytes, %zu needed", space_bytes,
	            needed);
	DNN_REQUIRE(pseudo_layer >= 0 && pseudo_layer < pseudo_layers(rnn), DNN_STATUS_BAD_PARAM, "pseudo-layer %d",
	            pseudo_layer);
	DNN_REQUIRE(linear >= 0 && linear < linears, DNN_STATUS_BAD_PARAM, "linear layer %d", linear);
	int layer = pseudo_layer / tn__dnn_rnn_directions(rnn);
	matrix_shape(rnn, layer, linear, &rows, &columns);
	uint64_t offset = matrices_before(rnn, pseudo_layer) + layer_matrices(rnn, layer, linear);
	DNN_FORWARD(answer(rnn, space, offset, rows, columns, matrix_desc, matrix));
	uint64_t before = (uint64_t)pseudo_layer * biases_before(rnn, 2 * tn__dnn_rnn_gates(rnn)) +
	                  biases_before(rnn, linear);
	offset = matrices_before(rnn, pseudo_layers(rnn)) + before * (uint64_t)rnn->hidden;
	return answer(rnn, space, offset, has_bias(rnn, linear) ? rnn->hidden : 0, 1, bias_desc, bias);
}
