/* SPDX-License-Identifier: Apache-2.0
 *
 * What the recurrent networks' files share: the two descriptors, and how their weights lie.
 */
#ifndef TN_VGPU_CUDNN_RNN_H
#define TN_VGPU_CUDNN_RNN_H

#include "vgpu/cudnn/dnn.h"

struct tn__dnn_rnn {
	int algorithm, cell, bias, direction, input_mode, type, precision, math;
	int32_t input, hidden, projection, layers; /* layers 0: never set */
	struct tn__dnn_dropout *dropout;           /* the program's, only handed back */
	uint32_t flags;
	int clip_mode, clip_nan;
	double clip_left, clip_right;
};

struct tn__dnn_rnn_data {
	int type, layout, max_length, batch, vector; /* batch 0: never set */
	int *lengths;                                /* batch of them, owned */
};

/* Gates of a cell: LSTM 4, GRU 3, plain 1. */
int tn__dnn_rnn_gates(const struct tn__dnn_rnn *rnn);
/* 1 or 2. */
int tn__dnn_rnn_directions(const struct tn__dnn_rnn *rnn);
/* Width of a step's output in one direction: the projection's, else the hidden state's. */
int64_t tn__dnn_rnn_output(const struct tn__dnn_rnn *rnn);
/* Width of what layer `layer` reads. */
int64_t tn__dnn_rnn_layer_input(const struct tn__dnn_rnn *rnn, int layer);
/* Elements of all weights and biases. */
uint64_t tn__dnn_rnn_weights(const struct tn__dnn_rnn *rnn);

#endif
