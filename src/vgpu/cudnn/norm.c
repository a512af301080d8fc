/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation through the legacy API.
 *
 * Size model (ours, not measured): the reference asks for workspace and reserve space only where the fused
 * channels-last path (mode SPATIAL_PERSISTENT) or an activation is used. Workspace: four fp32 partial sums a channel,
 * for one persistent block a multiprocessor. Reserve: for an activation, one bit an element, the sign that backward
 * needs.
 */
#include "vgpu/cudnn/api.h"

int
cudnnDeriveBNTensorDescriptor(struct tn__dnn_tensor *derived, dnn_tensor x, int mode)
{
	int dims[DNN_DIM_MAX];
	DNN_REQUIRE(derived != NULL && x != NULL && x->rank >= 2, DNN_STATUS_BAD_PARAM, "no tensor to derive from");
	for (int i = 0; i < x->rank; i++)
		dims[i] = i == 1 || (i > 1 && mode == DNN_BATCHNORM_PER_ACTIVATION) ? (int)x->dims[i] : 1;
	int type = x->type == DNN_DATA_DOUBLE ? DNN_DATA_DOUBLE : DNN_DATA_FLOAT;
	return tn__dnn_set_packed(derived, DNN_TENSOR_NCHW, type, x->rank, dims);
}

static int
workspace_size(int mode, int operations, dnn_tensor x, size_t *bytes)
{
	DNN_REQUIRE_POINTER(bytes);
	DNN_REQUIRE(x != NULL && x->rank >= 2, DNN_STATUS_BAD_PARAM, "batch normalisation without input");
	const struct tn_gpu_figures *gpu = tn__gpu(tn__current_device());
	bool fused = mode == DNN_BATCHNORM_SPATIAL_PERSISTENT || operations != DNN_BATCHNORM_OPS_BN;
	uint64_t blocks = gpu == NULL ? 1 : (uint64_t)gpu->sm_count;
	*bytes = fused ? 4 * sizeof(float) * (uint64_t)x->dims[1] * blocks : 0;
	tn__note_wanted(*bytes);
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(dnn_handle handle, int mode, int operations, dnn_tensor x,
                                                         dnn_tensor z, dnn_tensor y, dnn_tensor scale,
                                                         const struct tn__dnn_activation *activation, size_t *bytes)
{
	return workspace_size(mode, operations, x, bytes);
}

int
cudnnGetBatchNormalizationBackwardExWorkspaceSize(dnn_handle handle, int mode, int operations, dnn_tensor x,
                                                  dnn_tensor y, dnn_tensor dy, dnn_tensor dz, dnn_tensor dx,
                                                  dnn_tensor dscale, const struct tn__dnn_activation *activation,
                                                  size_t *bytes)
{
	return workspace_size(mode, operations, x, bytes);
}

int
cudnnGetBatchNormalizationTrainingExReserveSpaceSize(dnn_handle handle, int mode, int operations,
                                                     const struct tn__dnn_activation *activation, dnn_tensor x,
                                                     size_t *bytes)
{
	DNN_REQUIRE_POINTER(bytes);
	DNN_REQUIRE_POINTER(x);
	*bytes = operations == DNN_BATCHNORM_OPS_BN ? 0 : (tn__dnn_elements(x) + 7) / 8;
	return DNN_STATUS_SUCCESS;
}

int
cudnnBatchNormalizationForwardInference(dnn_handle handle, int mode, const void *alpha, const void *beta,
                                        dnn_tensor x_desc, const void *x, dnn_tensor y_desc, void *y,
                                        dnn_tensor scale_desc, const void *scale, const void *bias, const void *mean,
                                        const void *variance, double epsilon)
{
	return tn__dnn_put_bytes(handle, tn__dnn_bytes(x_desc) + tn__dnn_bytes(y_desc));
}

/* Training reads the input twice: once for the statistics, once to normalise. */
static int
put_training(dnn_handle handle, dnn_tensor x, dnn_tensor y)
{
	return tn__dnn_put_bytes(handle, 2 * tn__dnn_bytes(x) + tn__dnn_bytes(y));
}

int
cudnnBatchNormalizationForwardTraining(dnn_handle handle, int mode, const void *alpha, const void *beta,
                                       dnn_tensor x_desc, const void *x, dnn_tensor y_desc, void *y,
                                       dnn_tensor scale_desc, const void *scale, const void *bias, double factor,
                                       void *running_mean, void *running_variance, double epsilon, void *saved_mean,
                                       void *saved_inverse)
{
	return put_training(handle, x_desc, y_desc);
}

static void
note_spaces(const void *workspace, size_t workspace_bytes, const void *reserve, size_t reserve_bytes)
{
	tn__note_workspace(TN_LIBRARY_CUDNN, workspace, workspace_bytes);
	tn__note_workspace(TN_LIBRARY_CUDNN, reserve, reserve_bytes);
}

int
cudnnBatchNormalizationForwardTrainingEx(dnn_handle handle, int mode, int operations, const void *alpha,
                                         const void *beta, dnn_tensor x_desc, const void *x, dnn_tensor z_desc,
                                         const void *z, dnn_tensor y_desc, void *y, dnn_tensor scale_desc,
                                         const void *scale, const void *bias, double factor, void *running_mean,
                                         void *running_variance, double epsilon, void *saved_mean, void *saved_inverse,
                                         const struct tn__dnn_activation *activation, void *workspace,
                                         size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
	note_spaces(workspace, workspace_bytes, reserve, reserve_bytes);
	return put_training(handle, x_desc, y_desc);
}

/* Backward reads input and output gradient twice each and writes the input's gradient. */
static int
put_backward(dnn_handle handle, dnn_tensor x, dnn_tensor dy, dnn_tensor dx)
{
	return tn__dnn_put_bytes(handle, 2 * tn__dnn_bytes(x) + 2 * tn__dnn_bytes(dy) + tn__dnn_bytes(dx));
}

int
cudnnBatchNormalizationBackward(dnn_handle handle, int mode, const void *alpha_data, const void *beta_data,
                                const void *alpha_parameter, const void *beta_parameter, dnn_tensor x_desc,
                                const void *x, dnn_tensor dy_desc, const void *dy, dnn_tensor dx_desc, void *dx,
                                dnn_tensor dscale_desc, const void *scale, void *dscale, void *dbias, double epsilon,
                                const void *saved_mean, const void *saved_inverse)
{
	return put_backward(handle, x_desc, dy_desc, dx_desc);
}

int
cudnnBatchNormalizationBackwardEx(dnn_handle handle, int mode, int operations, const void *alpha_data,
                                  const void *beta_data, const void *alpha_parameter, const void *beta_parameter,
                                  dnn_tensor x_desc, const void *x, dnn_tensor y_desc, const void *y,
                                  dnn_tensor dy_desc, const void *dy, dnn_tensor dz_desc, void *dz, dnn_tensor dx_desc,
                                  void *dx, dnn_tensor dscale_desc, const void *scale, const void *bias, void *dscale,
                                  void *dbias, double epsilon, const void *saved_mean, const void *saved_inverse,
                                  const struct tn__dnn_activation *activation, void *workspace, size_t workspace_bytes,
                                  void *reserve, size_t reserve_bytes)
{
	note_spaces(workspace, workspace_bytes, reserve, reserve_bytes);
	return put_backward(handle, x_desc, dy_desc, dx_desc);
}
