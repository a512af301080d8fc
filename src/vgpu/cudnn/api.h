/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry points of cuDNN that are answered: prototypes that agree with cuDNN 9's at the ABI (enums are int, opaque
 * handles are pointers to our own structures, CUDA's stream is a pointer). What each does stands in NVIDIA's API
 * reference. A row of cudnn.def says TN_ANSWER for each of them.
 */
#ifndef TN_VGPU_CUDNN_API_H
#define TN_VGPU_CUDNN_API_H

#include "vgpu/cudnn/dnn.h"

struct tn__dnn_descriptor;
struct tn__dnn_conv_descriptor;
struct tn__dnn_op_descriptor;
struct tn__dnn_activation;
struct tn__dnn_pooling;
struct tn__dnn_lrn;
struct tn__dnn_dropout;
struct tn__dnn_transformer;
struct tn__dnn_rnn;
struct tn__dnn_rnn_data;
struct tn__dnn_ctc;

typedef const struct tn__dnn_handle *dnn_handle;
typedef const struct tn__dnn_tensor *dnn_tensor; /* also filters */

/* What a search for a convolution algorithm answers: the same layout for the three directions. */
struct tn__dnn_algorithm {
	int algorithm, status;
	float milliseconds;
	size_t workspace;
	int determinism, math;
	int reserved[3];
};
_Static_assert(sizeof(struct tn__dnn_algorithm) == 48, "cudnnConvolution*AlgoPerf_t");

#pragma GCC visibility push(default) /* as TN_EXPORT, for all of them */

/* base.c, version.c */
int cudnnCreate(struct tn__dnn_handle **handle);
int cudnnDestroy(struct tn__dnn_handle *handle);
int cudnnSetStream(struct tn__dnn_handle *handle, void *stream);
int cudnnGetStream(dnn_handle handle, void **stream);
const char *cudnnGetErrorString(int status);
void cudnnGetLastErrorString(char *message, size_t max_size);
int cudnnQueryRuntimeError(dnn_handle handle, int *status, int mode, void *tag);
int cudnnSetCallback(unsigned mask, void *data, void (*function)(void));
int cudnnGetCallback(unsigned *mask, void **data, void (**function)(void));
size_t cudnnGetVersion(void);
size_t cudnnGetMaxDeviceVersion(void);
size_t cudnnGetCudartVersion(void);
int cudnnGetProperty(int type, int *value);

/* backend.c */
int cudnnBackendCreateDescriptor(int type, struct tn__dnn_descriptor **descriptor);
int cudnnBackendDestroyDescriptor(struct tn__dnn_descriptor *descriptor);
int cudnnBackendInitialize(struct tn__dnn_descriptor *descriptor);
int cudnnBackendFinalize(struct tn__dnn_descriptor *descriptor);
int cudnnBackendSetAttribute(struct tn__dnn_descriptor *descriptor, int name, int type, int64_t count,
                             const void *elements);
int cudnnBackendGetAttribute(const struct tn__dnn_descriptor *descriptor, int name, int type, int64_t requested,
                             int64_t *count, void *elements);
int cudnnGetExecutionPlanWorkspaceSize(dnn_handle handle, const struct tn__dnn_descriptor *plan,
                                       const struct tn__dnn_descriptor *variant_pack, size_t *bytes);
int cudnnBackendExecute(dnn_handle handle, const struct tn__dnn_descriptor *descriptor,
                        const struct tn__dnn_descriptor *variant_pack);

/* tensor.c */
int cudnnCreateTensorDescriptor(struct tn__dnn_tensor **tensor);
int cudnnDestroyTensorDescriptor(struct tn__dnn_tensor *tensor);
int cudnnSetTensor4dDescriptor(struct tn__dnn_tensor *tensor, int format, int type, int n, int c, int h, int w);
int cudnnSetTensor4dDescriptorEx(struct tn__dnn_tensor *tensor, int type, int n, int c, int h, int w, int n_stride,
                                 int c_stride, int h_stride, int w_stride);
int cudnnGetTensor4dDescriptor(dnn_tensor tensor, int *type, int *n, int *c, int *h, int *w, int *n_stride,
                               int *c_stride, int *h_stride, int *w_stride);
int cudnnSetTensorNdDescriptor(struct tn__dnn_tensor *tensor, int type, int rank, const int *dims, const int *strides);
int cudnnSetTensorNdDescriptorEx(struct tn__dnn_tensor *tensor, int format, int type, int rank, const int *dims);
int cudnnGetTensorNdDescriptor(dnn_tensor tensor, int requested, int *type, int *rank, int *dims, int *strides);
int cudnnGetTensorSizeInBytes(dnn_tensor tensor, size_t *bytes);
int cudnnCreateFilterDescriptor(struct tn__dnn_tensor **filter);
int cudnnDestroyFilterDescriptor(struct tn__dnn_tensor *filter);
int cudnnSetFilter4dDescriptor(struct tn__dnn_tensor *filter, int type, int format, int k, int c, int h, int w);
int cudnnGetFilter4dDescriptor(dnn_tensor filter, int *type, int *format, int *k, int *c, int *h, int *w);
int cudnnSetFilterNdDescriptor(struct tn__dnn_tensor *filter, int type, int format, int rank, const int *dims);
int cudnnGetFilterNdDescriptor(dnn_tensor filter, int requested, int *type, int *format, int *rank, int *dims);
int cudnnGetFilterSizeInBytes(dnn_tensor filter, size_t *bytes);
int cudnnTransformTensor(dnn_handle handle, const void *alpha, dnn_tensor x_desc, const void *x, const void *beta,
                         dnn_tensor y_desc, void *y);
int cudnnAddTensor(dnn_handle handle, const void *alpha, dnn_tensor a_desc, const void *a, const void *beta,
                   dnn_tensor c_desc, void *c);
int cudnnSetTensor(dnn_handle handle, dnn_tensor y_desc, void *y, const void *value);
int cudnnScaleTensor(dnn_handle handle, dnn_tensor y_desc, void *y, const void *alpha);

/* convolution.c */
int cudnnCreateConvolutionDescriptor(struct tn__dnn_conv_descriptor **descriptor);
int cudnnDestroyConvolutionDescriptor(struct tn__dnn_conv_descriptor *descriptor);
int cudnnSetConvolutionMathType(struct tn__dnn_conv_descriptor *descriptor, int math);
int cudnnGetConvolutionMathType(const struct tn__dnn_conv_descriptor *descriptor, int *math);
int cudnnSetConvolutionGroupCount(struct tn__dnn_conv_descriptor *descriptor, int groups);
int cudnnGetConvolutionGroupCount(const struct tn__dnn_conv_descriptor *descriptor, int *groups);
int cudnnSetConvolutionReorderType(struct tn__dnn_conv_descriptor *descriptor, int reorder);
int cudnnGetConvolutionReorderType(const struct tn__dnn_conv_descriptor *descriptor, int *reorder);
int cudnnSetConvolution2dDescriptor(struct tn__dnn_conv_descriptor *descriptor, int pad_h, int pad_w, int stride_h,
                                    int stride_w, int dilation_h, int dilation_w, int mode, int compute_type);
int cudnnGetConvolution2dDescriptor(const struct tn__dnn_conv_descriptor *descriptor, int *pad_h, int *pad_w,
                                    int *stride_h, int *stride_w, int *dilation_h, int *dilation_w, int *mode,
                                    int *compute_type);
int cudnnSetConvolutionNdDescriptor(struct tn__dnn_conv_descriptor *descriptor, int rank, const int *padding,
                                    const int *stride, const int *dilation, int mode, int compute_type);
int cudnnGetConvolutionNdDescriptor(const struct tn__dnn_conv_descriptor *descriptor, int requested, int *rank,
                                    int *padding, int *stride, int *dilation, int *mode, int *compute_type);
int cudnnGetConvolution2dForwardOutputDim(const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor x, dnn_tensor w,
                                          int *n, int *c, int *height, int *width);
int cudnnGetConvolutionNdForwardOutputDim(const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor x, dnn_tensor w,
                                          int rank, int *dims);
int cudnnGetConvolutionForwardAlgorithmMaxCount(dnn_handle handle, int *count);
int cudnnGetConvolutionBackwardDataAlgorithmMaxCount(dnn_handle handle, int *count);
int cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(dnn_handle handle, int *count);
int cudnnGetConvolutionForwardAlgorithm_v7(dnn_handle handle, dnn_tensor x, dnn_tensor w,
                                           const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor y,
                                           int requested, int *returned, struct tn__dnn_algorithm *results);
int cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn_handle handle, dnn_tensor w, dnn_tensor dy,
                                                const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dx,
                                                int requested, int *returned, struct tn__dnn_algorithm *results);
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn_handle handle, dnn_tensor x, dnn_tensor dy,
                                                  const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dw,
                                                  int requested, int *returned, struct tn__dnn_algorithm *results);
int cudnnFindConvolutionForwardAlgorithm(dnn_handle handle, dnn_tensor x, dnn_tensor w,
                                         const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor y, int requested,
                                         int *returned, struct tn__dnn_algorithm *results);
int cudnnFindConvolutionBackwardDataAlgorithm(dnn_handle handle, dnn_tensor w, dnn_tensor dy,
                                              const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dx,
                                              int requested, int *returned, struct tn__dnn_algorithm *results);
int cudnnFindConvolutionBackwardFilterAlgorithm(dnn_handle handle, dnn_tensor x, dnn_tensor dy,
                                                const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dw,
                                                int requested, int *returned, struct tn__dnn_algorithm *results);
int cudnnFindConvolutionForwardAlgorithmEx(dnn_handle handle, dnn_tensor x_desc, const void *x, dnn_tensor w_desc,
                                           const void *w, const struct tn__dnn_conv_descriptor *descriptor,
                                           dnn_tensor y_desc, void *y, int requested, int *returned,
                                           struct tn__dnn_algorithm *results, void *workspace, size_t workspace_bytes);
int cudnnFindConvolutionBackwardDataAlgorithmEx(dnn_handle handle, dnn_tensor w_desc, const void *w, dnn_tensor dy_desc,
                                                const void *dy, const struct tn__dnn_conv_descriptor *descriptor,
                                                dnn_tensor dx_desc, void *dx, int requested, int *returned,
                                                struct tn__dnn_algorithm *results, void *workspace,
                                                size_t workspace_bytes);
int cudnnFindConvolutionBackwardFilterAlgorithmEx(dnn_handle handle, dnn_tensor x_desc, const void *x,
                                                  dnn_tensor dy_desc, const void *dy,
                                                  const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dw_desc,
                                                  void *dw, int requested, int *returned,
                                                  struct tn__dnn_algorithm *results, void *workspace,
                                                  size_t workspace_bytes);
int cudnnGetConvolutionForwardWorkspaceSize(dnn_handle handle, dnn_tensor x, dnn_tensor w,
                                            const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor y,
                                            int algorithm, size_t *bytes);
int cudnnGetConvolutionBackwardDataWorkspaceSize(dnn_handle handle, dnn_tensor w, dnn_tensor dy,
                                                 const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dx,
                                                 int algorithm, size_t *bytes);
int cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn_handle handle, dnn_tensor x, dnn_tensor dy,
                                                   const struct tn__dnn_conv_descriptor *descriptor, dnn_tensor dw,
                                                   int algorithm, size_t *bytes);
int cudnnConvolutionForward(dnn_handle handle, const void *alpha, dnn_tensor x_desc, const void *x, dnn_tensor w_desc,
                            const void *w, const struct tn__dnn_conv_descriptor *descriptor, int algorithm,
                            void *workspace, size_t workspace_bytes, const void *beta, dnn_tensor y_desc, void *y);
int cudnnConvolutionBiasActivationForward(dnn_handle handle, const void *alpha1, dnn_tensor x_desc, const void *x,
                                          dnn_tensor w_desc, const void *w,
                                          const struct tn__dnn_conv_descriptor *descriptor, int algorithm,
                                          void *workspace, size_t workspace_bytes, const void *alpha2,
                                          dnn_tensor z_desc, const void *z, dnn_tensor bias_desc, const void *bias,
                                          const struct tn__dnn_activation *activation, dnn_tensor y_desc, void *y);
int cudnnConvolutionBackwardData(dnn_handle handle, const void *alpha, dnn_tensor w_desc, const void *w,
                                 dnn_tensor dy_desc, const void *dy, const struct tn__dnn_conv_descriptor *descriptor,
                                 int algorithm, void *workspace, size_t workspace_bytes, const void *beta,
                                 dnn_tensor dx_desc, void *dx);
int cudnnConvolutionBackwardFilter(dnn_handle handle, const void *alpha, dnn_tensor x_desc, const void *x,
                                   dnn_tensor dy_desc, const void *dy, const struct tn__dnn_conv_descriptor *descriptor,
                                   int algorithm, void *workspace, size_t workspace_bytes, const void *beta,
                                   dnn_tensor dw_desc, void *dw);
int cudnnConvolutionBackwardBias(dnn_handle handle, const void *alpha, dnn_tensor dy_desc, const void *dy,
                                 const void *beta, dnn_tensor db_desc, void *db);

/* norm.c */
int cudnnDeriveBNTensorDescriptor(struct tn__dnn_tensor *derived, dnn_tensor x, int mode);
int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(dnn_handle handle, int mode, int operations, dnn_tensor x,
                                                             dnn_tensor z, dnn_tensor y, dnn_tensor scale,
                                                             const struct tn__dnn_activation *activation,
                                                             size_t *bytes);
int cudnnGetBatchNormalizationBackwardExWorkspaceSize(dnn_handle handle, int mode, int operations, dnn_tensor x,
                                                      dnn_tensor y, dnn_tensor dy, dnn_tensor dz, dnn_tensor dx,
                                                      dnn_tensor dscale, const struct tn__dnn_activation *activation,
                                                      size_t *bytes);
int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(dnn_handle handle, int mode, int operations,
                                                         const struct tn__dnn_activation *activation, dnn_tensor x,
                                                         size_t *bytes);
int cudnnBatchNormalizationForwardInference(dnn_handle handle, int mode, const void *alpha, const void *beta,
                                            dnn_tensor x_desc, const void *x, dnn_tensor y_desc, void *y,
                                            dnn_tensor scale_desc, const void *scale, const void *bias,
                                            const void *mean, const void *variance, double epsilon);
int cudnnBatchNormalizationForwardTraining(dnn_handle handle, int mode, const void *alpha, const void *beta,
                                           dnn_tensor x_desc, const void *x, dnn_tensor y_desc, void *y,
                                           dnn_tensor scale_desc, const void *scale, const void *bias, double factor,
                                           void *running_mean, void *running_variance, double epsilon, void *saved_mean,
                                           void *saved_inverse);
int cudnnBatchNormalizationForwardTrainingEx(dnn_handle handle, int mode, int operations, const void *alpha,
                                             const void *beta, dnn_tensor x_desc, const void *x, dnn_tensor z_desc,
                                             const void *z, dnn_tensor y_desc, void *y, dnn_tensor scale_desc,
                                             const void *scale, const void *bias, double factor, void *running_mean,
                                             void *running_variance, double epsilon, void *saved_mean,
                                             void *saved_inverse, const struct tn__dnn_activation *activation,
                                             void *workspace, size_t workspace_bytes, void *reserve,
                                             size_t reserve_bytes);
int cudnnBatchNormalizationBackward(dnn_handle handle, int mode, const void *alpha_data, const void *beta_data,
                                    const void *alpha_parameter, const void *beta_parameter, dnn_tensor x_desc,
                                    const void *x, dnn_tensor dy_desc, const void *dy, dnn_tensor dx_desc, void *dx,
                                    dnn_tensor dscale_desc, const void *scale, void *dscale, void *dbias,
                                    double epsilon, const void *saved_mean, const void *saved_inverse);
int cudnnBatchNormalizationBackwardEx(dnn_handle handle, int mode, int operations, const void *alpha_data,
                                      const void *beta_data, const void *alpha_parameter, const void *beta_parameter,
                                      dnn_tensor x_desc, const void *x, dnn_tensor y_desc, const void *y,
                                      dnn_tensor dy_desc, const void *dy, dnn_tensor dz_desc, void *dz,
                                      dnn_tensor dx_desc, void *dx, dnn_tensor dscale_desc, const void *scale,
                                      const void *bias, void *dscale, void *dbias, double epsilon,
                                      const void *saved_mean, const void *saved_inverse,
                                      const struct tn__dnn_activation *activation, void *workspace,
                                      size_t workspace_bytes, void *reserve, size_t reserve_bytes);

/* layers.c */
int cudnnSoftmaxForward(dnn_handle handle, int algorithm, int mode, const void *alpha, dnn_tensor x_desc, const void *x,
                        const void *beta, dnn_tensor y_desc, void *y);
int cudnnSoftmaxBackward(dnn_handle handle, int algorithm, int mode, const void *alpha, dnn_tensor y_desc,
                         const void *y, dnn_tensor dy_desc, const void *dy, const void *beta, dnn_tensor dx_desc,
                         void *dx);
int cudnnCreateActivationDescriptor(struct tn__dnn_activation **activation);
int cudnnDestroyActivationDescriptor(struct tn__dnn_activation *activation);
int cudnnSetActivationDescriptor(struct tn__dnn_activation *activation, int mode, int nan, double coefficient);
int cudnnGetActivationDescriptor(const struct tn__dnn_activation *activation, int *mode, int *nan, double *coefficient);
int cudnnSetActivationDescriptorSwishBeta(struct tn__dnn_activation *activation, double beta);
int cudnnGetActivationDescriptorSwishBeta(const struct tn__dnn_activation *activation, double *beta);
int cudnnActivationForward(dnn_handle handle, const struct tn__dnn_activation *activation, const void *alpha,
                           dnn_tensor x_desc, const void *x, const void *beta, dnn_tensor y_desc, void *y);
int cudnnActivationBackward(dnn_handle handle, const struct tn__dnn_activation *activation, const void *alpha,
                            dnn_tensor y_desc, const void *y, dnn_tensor dy_desc, const void *dy, dnn_tensor x_desc,
                            const void *x, const void *beta, dnn_tensor dx_desc, void *dx);
int cudnnCreatePoolingDescriptor(struct tn__dnn_pooling **pooling);
int cudnnDestroyPoolingDescriptor(struct tn__dnn_pooling *pooling);
int cudnnSetPooling2dDescriptor(struct tn__dnn_pooling *pooling, int mode, int nan, int window_h, int window_w,
                                int pad_h, int pad_w, int stride_h, int stride_w);
int cudnnGetPooling2dDescriptor(const struct tn__dnn_pooling *pooling, int *mode, int *nan, int *window_h,
                                int *window_w, int *pad_h, int *pad_w, int *stride_h, int *stride_w);
int cudnnSetPoolingNdDescriptor(struct tn__dnn_pooling *pooling, int mode, int nan, int rank, const int *window,
                                const int *padding, const int *stride);
int cudnnGetPoolingNdDescriptor(const struct tn__dnn_pooling *pooling, int requested, int *mode, int *nan, int *rank,
                                int *window, int *padding, int *stride);
int cudnnGetPooling2dForwardOutputDim(const struct tn__dnn_pooling *pooling, dnn_tensor x, int *n, int *c, int *height,
                                      int *width);
int cudnnGetPoolingNdForwardOutputDim(const struct tn__dnn_pooling *pooling, dnn_tensor x, int rank, int *dims);
int cudnnPoolingForward(dnn_handle handle, const struct tn__dnn_pooling *pooling, const void *alpha, dnn_tensor x_desc,
                        const void *x, const void *beta, dnn_tensor y_desc, void *y);
int cudnnPoolingBackward(dnn_handle handle, const struct tn__dnn_pooling *pooling, const void *alpha, dnn_tensor y_desc,
                         const void *y, dnn_tensor dy_desc, const void *dy, dnn_tensor x_desc, const void *x,
                         const void *beta, dnn_tensor dx_desc, void *dx);
int cudnnCreateLRNDescriptor(struct tn__dnn_lrn **lrn);
int cudnnDestroyLRNDescriptor(struct tn__dnn_lrn *lrn);
int cudnnSetLRNDescriptor(struct tn__dnn_lrn *lrn, unsigned n, double alpha, double beta, double k);
int cudnnGetLRNDescriptor(const struct tn__dnn_lrn *lrn, unsigned *n, double *alpha, double *beta, double *k);
int cudnnLRNCrossChannelForward(dnn_handle handle, const struct tn__dnn_lrn *lrn, int mode, const void *alpha,
                                dnn_tensor x_desc, const void *x, const void *beta, dnn_tensor y_desc, void *y);
int cudnnLRNCrossChannelBackward(dnn_handle handle, const struct tn__dnn_lrn *lrn, int mode, const void *alpha,
                                 dnn_tensor y_desc, const void *y, dnn_tensor dy_desc, const void *dy,
                                 dnn_tensor x_desc, const void *x, const void *beta, dnn_tensor dx_desc, void *dx);
int cudnnCreateSpatialTransformerDescriptor(struct tn__dnn_transformer **transformer);
int cudnnDestroySpatialTransformerDescriptor(struct tn__dnn_transformer *transformer);
int cudnnSetSpatialTransformerNdDescriptor(struct tn__dnn_transformer *transformer, int sampler, int type, int rank,
                                           const int *dims);
int cudnnSpatialTfGridGeneratorForward(dnn_handle handle, const struct tn__dnn_transformer *transformer,
                                       const void *theta, void *grid);
int cudnnSpatialTfGridGeneratorBackward(dnn_handle handle, const struct tn__dnn_transformer *transformer,
                                        const void *dgrid, void *dtheta);
int cudnnSpatialTfSamplerForward(dnn_handle handle, const struct tn__dnn_transformer *transformer, const void *alpha,
                                 dnn_tensor x_desc, const void *x, const void *grid, const void *beta,
                                 dnn_tensor y_desc, void *y);
int cudnnSpatialTfSamplerBackward(dnn_handle handle, const struct tn__dnn_transformer *transformer, const void *alpha,
                                  dnn_tensor x_desc, const void *x, const void *beta, dnn_tensor dx_desc, void *dx,
                                  const void *alpha_grid, dnn_tensor dy_desc, const void *dy, const void *grid,
                                  const void *beta_grid, void *dgrid);

/* dropout.c */
int cudnnCreateDropoutDescriptor(struct tn__dnn_dropout **dropout);
int cudnnDestroyDropoutDescriptor(struct tn__dnn_dropout *dropout);
int cudnnDropoutGetStatesSize(dnn_handle handle, size_t *bytes);
int cudnnDropoutGetReserveSpaceSize(dnn_tensor x, size_t *bytes);
int cudnnSetDropoutDescriptor(struct tn__dnn_dropout *dropout, dnn_handle handle, float probability, void *states,
                              size_t state_bytes, unsigned long long seed);
int cudnnRestoreDropoutDescriptor(struct tn__dnn_dropout *dropout, dnn_handle handle, float probability, void *states,
                                  size_t state_bytes, unsigned long long seed);
int cudnnGetDropoutDescriptor(const struct tn__dnn_dropout *dropout, dnn_handle handle, float *probability,
                              void **states, unsigned long long *seed);
int cudnnDropoutForward(dnn_handle handle, const struct tn__dnn_dropout *dropout, dnn_tensor x_desc, const void *x,
                        dnn_tensor y_desc, void *y, void *reserve, size_t reserve_bytes);
int cudnnDropoutBackward(dnn_handle handle, const struct tn__dnn_dropout *dropout, dnn_tensor dy_desc, const void *dy,
                         dnn_tensor dx_desc, void *dx, void *reserve, size_t reserve_bytes);

/* rnn.c, rnn_weights.c */
int cudnnCreateRNNDescriptor(struct tn__dnn_rnn **rnn);
int cudnnDestroyRNNDescriptor(struct tn__dnn_rnn *rnn);
int cudnnSetRNNDescriptor_v8(struct tn__dnn_rnn *rnn, int algorithm, int cell, int bias, int direction, int input_mode,
                             int type, int precision, int math, int32_t input, int32_t hidden, int32_t projection,
                             int32_t layers, struct tn__dnn_dropout *dropout, uint32_t flags);
int cudnnGetRNNDescriptor_v8(const struct tn__dnn_rnn *rnn, int *algorithm, int *cell, int *bias, int *direction,
                             int *input_mode, int *type, int *precision, int *math, int32_t *input, int32_t *hidden,
                             int32_t *projection, int32_t *layers, struct tn__dnn_dropout **dropout, uint32_t *flags);
int cudnnRNNSetClip_v8(struct tn__dnn_rnn *rnn, int mode, int nan, double left, double right);
int cudnnRNNSetClip_v9(struct tn__dnn_rnn *rnn, int mode, double left, double right);
int cudnnRNNGetClip_v8(const struct tn__dnn_rnn *rnn, int *mode, int *nan, double *left, double *right);
int cudnnRNNGetClip_v9(const struct tn__dnn_rnn *rnn, int *mode, double *left, double *right);
int cudnnGetRNNWeightSpaceSize(dnn_handle handle, const struct tn__dnn_rnn *rnn, size_t *bytes);
int cudnnGetRNNWeightParams(dnn_handle handle, const struct tn__dnn_rnn *rnn, int32_t pseudo_layer, size_t space_bytes,
                            const void *space, int32_t linear, struct tn__dnn_tensor *matrix_desc, void **matrix,
                            struct tn__dnn_tensor *bias_desc, void **bias);
int cudnnCreateRNNDataDescriptor(struct tn__dnn_rnn_data **data);
int cudnnDestroyRNNDataDescriptor(struct tn__dnn_rnn_data *data);
int cudnnSetRNNDataDescriptor(struct tn__dnn_rnn_data *data, int type, int layout, int max_length, int batch,
                              int vector, const int *lengths, void *padding);
int cudnnGetRNNDataDescriptor(const struct tn__dnn_rnn_data *data, int *type, int *layout, int *max_length, int *batch,
                              int *vector, int requested, int *lengths, void *padding);
int cudnnGetRNNTempSpaceSizes(dnn_handle handle, const struct tn__dnn_rnn *rnn, int mode,
                              const struct tn__dnn_rnn_data *x, size_t *workspace_bytes, size_t *reserve_bytes);
int cudnnRNNForward(dnn_handle handle, const struct tn__dnn_rnn *rnn, int mode, const int32_t *lengths,
                    const struct tn__dnn_rnn_data *x_desc, const void *x, const struct tn__dnn_rnn_data *y_desc,
                    void *y, dnn_tensor h_desc, const void *hx, void *hy, dnn_tensor c_desc, const void *cx, void *cy,
                    size_t space_bytes, const void *space, size_t workspace_bytes, void *workspace,
                    size_t reserve_bytes, void *reserve);
int cudnnRNNBackwardData_v8(dnn_handle handle, const struct tn__dnn_rnn *rnn, const int32_t *lengths,
                            const struct tn__dnn_rnn_data *y_desc, const void *y, const void *dy,
                            const struct tn__dnn_rnn_data *x_desc, void *dx, dnn_tensor h_desc, const void *hx,
                            const void *dhy, void *dhx, dnn_tensor c_desc, const void *cx, const void *dcy, void *dcx,
                            size_t space_bytes, const void *space, size_t workspace_bytes, void *workspace,
                            size_t reserve_bytes, void *reserve);
int cudnnRNNBackwardWeights_v8(dnn_handle handle, const struct tn__dnn_rnn *rnn, int add, const int32_t *lengths,
                               const struct tn__dnn_rnn_data *x_desc, const void *x, dnn_tensor h_desc, const void *hx,
                               const struct tn__dnn_rnn_data *y_desc, const void *y, size_t space_bytes, void *dspace,
                               size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve);

/* ctc.c */
int cudnnCreateCTCLossDescriptor(struct tn__dnn_ctc **ctc);
int cudnnDestroyCTCLossDescriptor(struct tn__dnn_ctc *ctc);
int cudnnSetCTCLossDescriptor(struct tn__dnn_ctc *ctc, int type);
int cudnnSetCTCLossDescriptorEx(struct tn__dnn_ctc *ctc, int type, int normalization, int gradient);
int cudnnSetCTCLossDescriptor_v8(struct tn__dnn_ctc *ctc, int type, int normalization, int gradient, int max_label);
int cudnnSetCTCLossDescriptor_v9(struct tn__dnn_ctc *ctc, int type, int normalization, int gradient, int max_label);
int cudnnGetCTCLossDescriptor(const struct tn__dnn_ctc *ctc, int *type);
int cudnnGetCTCLossDescriptorEx(const struct tn__dnn_ctc *ctc, int *type, int *normalization, int *gradient);
int cudnnGetCTCLossDescriptor_v8(const struct tn__dnn_ctc *ctc, int *type, int *normalization, int *gradient,
                                 int *max_label);
int cudnnGetCTCLossDescriptor_v9(const struct tn__dnn_ctc *ctc, int *type, int *normalization, int *gradient,
                                 int *max_label);
int cudnnGetCTCLossWorkspaceSize(dnn_handle handle, dnn_tensor probabilities, dnn_tensor gradients, const int *labels,
                                 const int *label_lengths, const int *input_lengths, int algorithm,
                                 const struct tn__dnn_ctc *ctc, size_t *bytes);
int cudnnGetCTCLossWorkspaceSize_v8(dnn_handle handle, int algorithm, const struct tn__dnn_ctc *ctc,
                                    dnn_tensor probabilities, dnn_tensor gradients, size_t *bytes);
int cudnnCTCLoss(dnn_handle handle, dnn_tensor probabilities_desc, const void *probabilities, const int *labels,
                 const int *label_lengths, const int *input_lengths, void *costs, dnn_tensor gradients_desc,
                 void *gradients, int algorithm, const struct tn__dnn_ctc *ctc, void *workspace,
                 size_t workspace_bytes);
int cudnnCTCLoss_v8(dnn_handle handle, int algorithm, const struct tn__dnn_ctc *ctc, dnn_tensor probabilities_desc,
                    const void *probabilities, const int *labels, const int *label_lengths, const int *input_lengths,
                    void *costs, dnn_tensor gradients_desc, void *gradients, size_t workspace_bytes, void *workspace);

#pragma GCC visibility pop

#endif
