/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout through the legacy API; recurrent networks carry one of these descriptors, too.
 *
 * Size model (ours, not measured): the states are one generator of 48 bytes (XORWOW, as documented by cuRAND) for
 * each thread that the device can hold at once; the reserve space is one bit an element, the mask.
 */
#include "vgpu/cudnn/api.h"

#include <stdlib.h>

enum { GENERATOR_BYTES = 48 };

struct tn__dnn_dropout {
	float probability;
	void *states;
	unsigned long long seed;
};

int
cudnnCreateDropoutDescriptor(struct tn__dnn_dropout **dropout)
{
	DNN_CREATE(dropout, struct tn__dnn_dropout);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDestroyDropoutDescriptor(struct tn__dnn_dropout *dropout)
{
	free(dropout);
	return DNN_STATUS_SUCCESS;
}

int
cudnnDropoutGetStatesSize(dnn_handle handle, size_t *bytes)
{
	DNN_REQUIRE_POINTER(handle);
	DNN_REQUIRE_POINTER(bytes);
	const struct tn_gpu_figures *gpu = tn__gpu(handle->device);
	DNN_REQUIRE(gpu != NULL, DNN_STATUS_NOT_INITIALIZED, "the handle's device is gone");
	*bytes = (size_t)gpu->sm_count * (size_t)gpu->max_threads_per_sm * GENERATOR_BYTES;
	return DNN_STATUS_SUCCESS;
}

int
cudnnDropoutGetReserveSpaceSize(dnn_tensor x, size_t *bytes)
{
	DNN_REQUIRE_POINTER(x);
	DNN_REQUIRE_POINTER(bytes);
	*bytes = (tn__dnn_elements(x) + 7) / 8;
	return DNN_STATUS_SUCCESS;
}

/* Without states the probability and seed alone are kept, as documented. */
int
cudnnRestoreDropoutDescriptor(struct tn__dnn_dropout *dropout, dnn_handle handle, float probability, void *states,
                              size_t state_bytes, unsigned long long seed)
{
	size_t needed;
	DNN_REQUIRE_POINTER(dropout);
	DNN_REQUIRE(probability >= 0.0f && probability <= 1.0f, DNN_STATUS_BAD_PARAM, "probability %g",
	            (double)probability);
	DNN_FORWARD(cudnnDropoutGetStatesSize(handle, &needed));
	DNN_REQUIRE(states == NULL || state_bytes >= needed, DNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
	            "dropout states of %zu bytes, %zu needed", state_bytes, needed);
	dropout->probability = probability;
	dropout->states = states;
	dropout->seed = seed;
	return DNN_STATUS_SUCCESS;
}

/* Like restoring, and the states are computed on the device. */
int
cudnnSetDropoutDescriptor(struct tn__dnn_dropout *dropout, dnn_handle handle, float probability, void *states,
                          size_t state_bytes, unsigned long long seed)
{
	DNN_FORWARD(cudnnRestoreDropoutDescriptor(dropout, handle, probability, states, state_bytes, seed));
	tn__note_workspace(TN_LIBRARY_CUDNN, states, state_bytes);
	return states == NULL ? DNN_STATUS_SUCCESS : tn__dnn_put_bytes(handle, state_bytes);
}

int
cudnnGetDropoutDescriptor(const struct tn__dnn_dropout *dropout, dnn_handle handle, float *probability, void **states,
                          unsigned long long *seed)
{
	DNN_REQUIRE_POINTER(dropout);
	if (probability != NULL)
		*probability = dropout->probability;
	if (states != NULL)
		*states = dropout->states;
	if (seed != NULL)
		*seed = dropout->seed;
	return DNN_STATUS_SUCCESS;
}

int
cudnnDropoutForward(dnn_handle handle, const struct tn__dnn_dropout *dropout, dnn_tensor x_desc, const void *x,
                    dnn_tensor y_desc, void *y, void *reserve, size_t reserve_bytes)
{
	tn__note_workspace(TN_LIBRARY_CUDNN, reserve, reserve_bytes);
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc) + reserve_bytes);
}

int
cudnnDropoutBackward(dnn_handle handle, const struct tn__dnn_dropout *dropout, dnn_tensor dy_desc, const void *dy,
                     dnn_tensor dx_desc, void *dx, void *reserve, size_t reserve_bytes)
{
	tn__note_workspace(TN_LIBRARY_CUDNN, reserve, reserve_bytes);
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(dy_desc) + tn__dnn_bytes(dx_desc) + reserve_bytes);
}
