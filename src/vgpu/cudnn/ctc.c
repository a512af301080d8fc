/* SPDX-License-Identifier: Apache-2.0
 *
 * Connectionist temporal classification through the legacy API.
 *
 * Workspace model (ours, not measured): the forward and backward tables of the algorithm, fp32, one entry for each
 * time step, sequence and position of the label with blanks between (2 L + 1), and one normalised copy of the
 * probabilities. Without labels in host memory (v8) L is the descriptor's longest label.
 */
#include "vgpu/cudnn/api.h"

#include <stdlib.h>

struct tn__dnn_ctc {
	int type, normalization, gradient, max_label;
};

int
cudnnCreateCTCLossDescriptor(struct tn__dnn_ctc **ctc)
{
	DNN_CREATE(ctc, struct tn__dnn_ctc);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyCTCLossDescriptor(struct tn__dnn_ctc *ctc)
{
	free(ctc);
	return DNN_STATUS_SUCCESS;
}

int
cudnnSetCTCLossDescriptor(struct tn__dnn_ctc *ctc, int type)
{
	return cudnnSetCTCLossDescriptor_v9(ctc, type, 0, 0, 0);
}

int
cudnnSetCTCLossDescriptorEx(struct tn__dnn_ctc *ctc, int type, int normalization, int gradient)
{
	return cudnnSetCTCLossDescriptor_v9(ctc, type, normalization, gradient, 0);
}

int
cudnnSetCTCLossDescriptor_v8(struct tn__dnn_ctc *ctc, int type, int normalization, int gradient, int max_label)
{
	return cudnnSetCTCLossDescriptor_v9(ctc, type, normalization, gradient, max_label);
}

int
cudnnSetCTCLossDescriptor_v9(struct tn__dnn_ctc *ctc, int type, int normalization, int gradient, int max_label)
{
	DNN_REQUIRE_POINTER(ctc);
	DNN_REQUIRE(max_label >= 0, DNN_STATUS_BAD_PARAM, "longest label %d", max_label);
	*ctc = (struct tn__dnn_ctc){ type, normalization, gradient, max_label };
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetCTCLossDescriptor(const struct tn__dnn_ctc *ctc, int *type)
{
	return cudnnGetCTCLossDescriptor_v9(ctc, type, NULL, NULL, NULL);
}

int
cudnnGetCTCLossDescriptorEx(const struct tn__dnn_ctc *ctc, int *type, int *normalization, int *gradient)
{
	return cudnnGetCTCLossDescriptor_v9(ctc, type, normalization, gradient, NULL);
}

int
cudnnGetCTCLossDescriptor_v8(const struct tn__dnn_ctc *ctc, int *type, int *normalization, int *gradient,
                             int *max_label)
{
	return cudnnGetCTCLossDescriptor_v9(ctc, type, normalization, gradient, max_label);
}

int
cudnnGetCTCLossDescriptor_v9(const struct tn__dnn_ctc *ctc, int *type, int *normalization, int *gradient,
                             int *max_label)
{
	DNN_REQUIRE_POINTER(ctc);
	int *const out[4] = { type, normalization, gradient, max_label };
	const int values[4] = { ctc->type, ctc->normalization, ctc->gradient, ctc->max_label };
	for (int i = 0; i < 4; i++) {
		if (out[i] != NULL)
			*out[i] = values[i];
	}
	return DNN_STATUS_SUCCESS;
}

static int
workspace_size(dnn_tensor probabilities, uint64_t label, size_t *bytes)
{
	DNN_REQUIRE_POINTER(bytes);
	DNN_REQUIRE(probabilities != NULL && probabilities->rank == 3, DNN_STATUS_BAD_PARAM,
	            "CTC needs probabilities of three dimensions");
	uint64_t steps = (uint64_t)probabilities->dims[0] * (uint64_t)probabilities->dims[1];
	*bytes = 4 * (steps * 2 * (2 * label + 1) + tn__dnn_elements(probabilities));
	tn__note_wanted(*bytes);
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetCTCLossWorkspaceSize(dnn_handle handle, dnn_tensor probabilities, dnn_tensor gradients, const int *labels,
                             const int *label_lengths, const int *input_lengths, int algorithm,
                             const struct tn__dnn_ctc *ctc, size_t *bytes)
{
	int longest = 0;
	DNN_REQUIRE(probabilities != NULL && probabilities->rank == 3 && label_lengths != NULL, DNN_STATUS_BAD_PARAM,
	            "CTC without probabilities or labels");
	for (int64_t i = 0; i < probabilities->dims[1]; i++)
		longest = label_lengths[i] > longest ? label_lengths[i] : longest;
	return workspace_size(probabilities, (uint64_t)longest, bytes);
}

int
cudnnGetCTCLossWorkspaceSize_v8(dnn_handle handle, int algorithm, const struct tn__dnn_ctc *ctc,
                                dnn_tensor probabilities, dnn_tensor gradients, size_t *bytes)
{
	DNN_REQUIRE_POINTER(ctc);
	return workspace_size(probabilities, (uint64_t)ctc->max_label, bytes);
}

static int
launch(dnn_handle handle, dnn_tensor probabilities, dnn_tensor gradients, const void *workspace, size_t workspace_bytes)
{
	tn__note_workspace(TN_LIBRARY_CUDNN, workspace, workspace_bytes);
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(probabilities) + tn__dnn_bytes(gradients) + workspace_bytes);
}

int
cudnnCTCLoss(dnn_handle handle, dnn_tensor probabilities_desc, const void *probabilities, const int *labels,
             const int *label_lengths, const int *input_lengths, void *costs, dnn_tensor gradients_desc,
             void *gradients, int algorithm, const struct tn__dnn_ctc *ctc, void *workspace, size_t workspace_bytes)
{
	return launch(handle, probabilities_desc, gradients_desc, workspace, workspace_bytes);
}

int
cudnnCTCLoss_v8(dnn_handle handle, int algorithm, const struct tn__dnn_ctc *ctc, dnn_tensor probabilities_desc,
                const void *probabilities, const int *labels, const int *label_lengths, const int *input_lengths,
                void *costs, dnn_tensor gradients_desc, void *gradients, size_t workspace_bytes, void *workspace)
{
	return launch(handle, probabilities_desc, gradients_desc, workspace, workspace_bytes);
}
