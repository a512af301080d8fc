/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of cuDNN 9's documented ABI that Tonnage uses, as facts: status codes, data types, descriptor types,
 * attribute names. Written down here so that nothing of NVIDIA's is needed to build; tests/unit/test_cudnn_abi.c
 * compares every one with the real header where that is installed.
 * Each list is X(name, number) with the name as cuDNN has it, less its prefix; DNN_<name> is our constant.
 * Must not know: what any of these mean to the virtual GPU.
 */
#ifndef TN_DNN_ABI_H
#define TN_DNN_ABI_H

#define DNN_STATUS_LIST(X)                                     \
	X(STATUS_SUCCESS, 0)                                       \
	X(STATUS_NOT_INITIALIZED, 1001)                            \
	X(STATUS_SUBLIBRARY_VERSION_MISMATCH, 1002)                \
	X(STATUS_SERIALIZATION_VERSION_MISMATCH, 1003)             \
	X(STATUS_DEPRECATED, 1004)                                 \
	X(STATUS_LICENSE_ERROR, 1005)                              \
	X(STATUS_RUNTIME_IN_PROGRESS, 1006)                        \
	X(STATUS_RUNTIME_FP_OVERFLOW, 1007)                        \
	X(STATUS_BAD_PARAM, 2000)                                  \
	X(STATUS_INVALID_VALUE, 2001)                              \
	X(STATUS_BAD_PARAM_NULL_POINTER, 2002)                     \
	X(STATUS_BAD_PARAM_MISALIGNED_POINTER, 2003)               \
	X(STATUS_BAD_PARAM_NOT_FINALIZED, 2004)                    \
	X(STATUS_BAD_PARAM_OUT_OF_BOUND, 2005)                     \
	X(STATUS_BAD_PARAM_SIZE_INSUFFICIENT, 2006)                \
	X(STATUS_BAD_PARAM_STREAM_MISMATCH, 2007)                  \
	X(STATUS_BAD_PARAM_SHAPE_MISMATCH, 2008)                   \
	X(STATUS_BAD_PARAM_DUPLICATED_ENTRIES, 2009)               \
	X(STATUS_BAD_PARAM_ATTRIBUTE_TYPE, 2010)                   \
	X(STATUS_NOT_SUPPORTED, 3000)                              \
	X(STATUS_NOT_SUPPORTED_GRAPH_PATTERN, 3001)                \
	X(STATUS_NOT_SUPPORTED_SHAPE, 3002)                        \
	X(STATUS_NOT_SUPPORTED_DATA_TYPE, 3003)                    \
	X(STATUS_NOT_SUPPORTED_LAYOUT, 3004)                       \
	X(STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, 3005)     \
	X(STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART, 3006)          \
	X(STATUS_NOT_SUPPORTED_ARCH_MISMATCH, 3007)                \
	X(STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, 3008) \
	X(STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE, 3009)       \
	X(STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT, 3010)   \
	X(STATUS_NOT_SUPPORTED_PADDING, 3011)                      \
	X(STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM, 3012)             \
	X(STATUS_INTERNAL_ERROR, 4000)                             \
	X(STATUS_INTERNAL_ERROR_COMPILATION_FAILED, 4001)          \
	X(STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE, 4002)            \
	X(STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)      \
	X(STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004)    \
	X(STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM, 4005)            \
	X(STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED, 4006)     \
	X(STATUS_EXECUTION_FAILED, 5000)                           \
	X(STATUS_EXECUTION_FAILED_CUDA_DRIVER, 5001)               \
	X(STATUS_EXECUTION_FAILED_CUBLAS, 5002)                    \
	X(STATUS_EXECUTION_FAILED_CUDART, 5003)                    \
	X(STATUS_EXECUTION_FAILED_CURAND, 5004)

/* Statuses younger than 9.1. */
#define DNN_LATER_STATUS_LIST(X)                        \
	X(STATUS_SUBLIBRARY_LOADING_FAILED, 1008)           \
	X(STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH, 2011)       \
	X(STATUS_BAD_PARAM_DESCRIPTOR_TYPE, 2012)           \
	X(STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API, 3013) \
	X(STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE, 3014)

#define DNN_DATA_LIST(X) \
	X(DATA_FLOAT, 0)     \
	X(DATA_DOUBLE, 1)    \
	X(DATA_HALF, 2)      \
	X(DATA_INT8, 3)      \
	X(DATA_INT32, 4)     \
	X(DATA_INT8x4, 5)    \
	X(DATA_UINT8, 6)     \
	X(DATA_UINT8x4, 7)   \
	X(DATA_INT8x32, 8)   \
	X(DATA_BFLOAT16, 9)  \
	X(DATA_INT64, 10)    \
	X(DATA_BOOLEAN, 11)  \
	X(DATA_FP8_E4M3, 12) \
	X(DATA_FP8_E5M2, 13) \
	X(DATA_FAST_FLOAT_FOR_FP8, 14)

#define DNN_LATER_DATA_LIST(X) \
	X(DATA_FP8_E8M0, 15)       \
	X(DATA_FP4_E2M1, 16)       \
	X(DATA_INT4, 17)           \
	X(DATA_UINT4, 18)          \
	X(DATA_UINT32, 19)         \
	X(DATA_COMPLEX_FP32, 20)   \
	X(DATA_COMPLEX_FP64, 21)   \
	X(DATA_BYTE_BOOLEAN, 22)   \
	X(DATA_FP8_E5M3, 23)

#define DNN_ENUM_LIST(X)                             \
	X(TENSOR_NCHW, 0)                                \
	X(TENSOR_NHWC, 1)                                \
	X(TENSOR_NCHW_VECT_C, 2)                         \
	X(DEFAULT_MATH, 0)                               \
	X(TENSOR_OP_MATH, 1)                             \
	X(TENSOR_OP_MATH_ALLOW_CONVERSION, 2)            \
	X(FMA_MATH, 3)                                   \
	X(NON_DETERMINISTIC, 0)                          \
	X(DETERMINISTIC, 1)                              \
	X(HEUR_MODE_INSTANT, 0)                          \
	X(HEUR_MODE_B, 1)                                \
	X(HEUR_MODE_FALLBACK, 2)                         \
	X(HEUR_MODE_A, 3)                                \
	X(NUMERICAL_NOTE_TENSOR_CORE, 0)                 \
	X(NUMERICAL_NOTE_NONDETERMINISTIC, 4)            \
	X(CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 0)         \
	X(CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1) \
	X(CONVOLUTION_FWD_ALGO_COUNT, 8)                 \
	X(CONVOLUTION_BWD_FILTER_ALGO_0, 0)              \
	X(CONVOLUTION_BWD_FILTER_ALGO_1, 1)              \
	X(CONVOLUTION_BWD_FILTER_ALGO_3, 3)              \
	X(CONVOLUTION_BWD_FILTER_ALGO_COUNT, 7)          \
	X(CONVOLUTION_BWD_DATA_ALGO_0, 0)                \
	X(CONVOLUTION_BWD_DATA_ALGO_1, 1)                \
	X(CONVOLUTION_BWD_DATA_ALGO_COUNT, 6)            \
	X(BATCHNORM_PER_ACTIVATION, 0)                   \
	X(BATCHNORM_SPATIAL, 1)                          \
	X(BATCHNORM_SPATIAL_PERSISTENT, 2)               \
	X(BATCHNORM_OPS_BN, 0)                           \
	X(BATCHNORM_OPS_BN_ACTIVATION, 1)                \
	X(BATCHNORM_OPS_BN_ADD_ACTIVATION, 2)            \
	X(RNN_RELU, 0)                                   \
	X(RNN_TANH, 1)                                   \
	X(LSTM, 2)                                       \
	X(GRU, 3)                                        \
	X(RNN_NO_BIAS, 0)                                \
	X(RNN_SINGLE_INP_BIAS, 1)                        \
	X(RNN_DOUBLE_BIAS, 2)                            \
	X(RNN_SINGLE_REC_BIAS, 3)                        \
	X(UNIDIRECTIONAL, 0)                             \
	X(BIDIRECTIONAL, 1)                              \
	X(LINEAR_INPUT, 0)                               \
	X(SKIP_INPUT, 1)                                 \
	X(RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 0)         \
	X(RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, 1)           \
	X(RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, 2)       \
	X(FWD_MODE_INFERENCE, 0)                         \
	X(FWD_MODE_TRAINING, 1)                          \
	X(DIM_MAX, 8)

/* How a backend attribute's elements are typed: X(name, number, bytes of one element). */
#define DNN_TYPE_LIST(X)                   \
	X(TYPE_HANDLE, 0, 8)                   \
	X(TYPE_DATA_TYPE, 1, 4)                \
	X(TYPE_BOOLEAN, 2, 1)                  \
	X(TYPE_INT64, 3, 8)                    \
	X(TYPE_FLOAT, 4, 4)                    \
	X(TYPE_DOUBLE, 5, 8)                   \
	X(TYPE_VOID_PTR, 6, 8)                 \
	X(TYPE_CONVOLUTION_MODE, 7, 4)         \
	X(TYPE_HEUR_MODE, 8, 4)                \
	X(TYPE_KNOB_TYPE, 9, 4)                \
	X(TYPE_NAN_PROPOGATION, 10, 4)         \
	X(TYPE_NUMERICAL_NOTE, 11, 4)          \
	X(TYPE_LAYOUT_TYPE, 12, 4)             \
	X(TYPE_ATTRIB_NAME, 13, 4)             \
	X(TYPE_POINTWISE_MODE, 14, 4)          \
	X(TYPE_BACKEND_DESCRIPTOR, 15, 8)      \
	X(TYPE_GENSTATS_MODE, 16, 4)           \
	X(TYPE_BN_FINALIZE_STATS_MODE, 17, 4)  \
	X(TYPE_REDUCTION_OPERATOR_TYPE, 18, 4) \
	X(TYPE_BEHAVIOR_NOTE, 19, 4)           \
	X(TYPE_TENSOR_REORDERING_MODE, 20, 4)  \
	X(TYPE_RESAMPLE_MODE, 21, 4)           \
	X(TYPE_PADDING_MODE, 22, 4)            \
	X(TYPE_INT32, 23, 4)                   \
	X(TYPE_CHAR, 24, 1)                    \
	X(TYPE_SIGNAL_MODE, 25, 4)             \
	X(TYPE_FRACTION, 26, 16)               \
	X(TYPE_NORM_MODE, 27, 4)               \
	X(TYPE_NORM_FWD_PHASE, 28, 4)          \
	X(TYPE_RNG_DISTRIBUTION, 29, 4)

#define DNN_LATER_TYPE_LIST(X)             \
	X(TYPE_MOE_GROUPED_MATMUL_MODE, 30, 4) \
	X(TYPE_RESHAPE_MODE, 31, 4)            \
	X(TYPE_OPERATIONGRAPH_MODE, 32, 4)

/* Descriptor types and the attribute numbers that belong to each: X(name, number, first attribute, last attribute).
 * Ranges are those that the numbering leaves to a descriptor; which numbers in it are in use differs by version. */
#define DNN_BACKEND_LIST(X)                                                   \
	X(BACKEND_POINTWISE_DESCRIPTOR, 0, 0, 99)                                 \
	X(BACKEND_CONVOLUTION_DESCRIPTOR, 1, 100, 199)                            \
	X(BACKEND_ENGINE_DESCRIPTOR, 2, 1300, 1399)                               \
	X(BACKEND_ENGINECFG_DESCRIPTOR, 3, 300, 399)                              \
	X(BACKEND_ENGINEHEUR_DESCRIPTOR, 4, 200, 299)                             \
	X(BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5, 400, 499)                         \
	X(BACKEND_INTERMEDIATE_INFO_DESCRIPTOR, 6, 500, 599)                      \
	X(BACKEND_KNOB_CHOICE_DESCRIPTOR, 7, 600, 699)                            \
	X(BACKEND_KNOB_INFO_DESCRIPTOR, 8, 1200, 1299)                            \
	X(BACKEND_LAYOUT_INFO_DESCRIPTOR, 9, 1100, 1199)                          \
	X(BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10, 700, 705)         \
	X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11, 712, 717) \
	X(BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12, 706, 711)   \
	X(BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13, 750, 769)                   \
	X(BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, 14, 770, 779)                   \
	X(BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15, 800, 899)                        \
	X(BACKEND_VARIANT_PACK_DESCRIPTOR, 16, 1000, 1099)                        \
	X(BACKEND_TENSOR_DESCRIPTOR, 17, 900, 999)                                \
	X(BACKEND_MATMUL_DESCRIPTOR, 18, 1500, 1519)                              \
	X(BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19, 1520, 1599)                    \
	X(BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR, 20, 780, 799)      \
	X(BACKEND_REDUCTION_DESCRIPTOR, 21, 1600, 1609)                           \
	X(BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22, 1610, 1619)                 \
	X(BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, 23, 1620, 1699)            \
	X(BACKEND_RESAMPLE_DESCRIPTOR, 24, 1700, 1709)                            \
	X(BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, 25, 1710, 1719)              \
	X(BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, 26, 1720, 1729)              \
	X(BACKEND_OPERATION_CONCAT_DESCRIPTOR, 27, 1800, 1899)                    \
	X(BACKEND_OPERATION_SIGNAL_DESCRIPTOR, 28, 1900, 1949)                    \
	X(BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, 29, 2000, 2099)              \
	X(BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, 30, 2100, 2199)             \
	X(BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31, 2200, 2249)                   \
	X(BACKEND_RNG_DESCRIPTOR, 32, 2300, 2309)                                 \
	X(BACKEND_OPERATION_RNG_DESCRIPTOR, 33, 2310, 2399)

#define DNN_LATER_BACKEND_LIST(X)                                          \
	X(BACKEND_KERNEL_CACHE_DESCRIPTOR, 34, 2400, 2499)                     \
	X(BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR, 35, 1950, 1999)       \
	X(BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR, 36, 2500, 2599)   \
	X(BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR, 37, 2600, 2699) \
	X(BACKEND_DEVICEPROP_DESCRIPTOR, 38, 2700, 2799)                       \
	X(BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR, 39, 2250, 2269)     \
	X(BACKEND_OPERATION_CONTRACT_BAND_MATRIX_DESCRIPTOR, 40, 2270, 2289)   \
	X(BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, 41, 2800, 2850)               \
	X(BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR, 42, 2900, 2950)     \
	X(BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, 43, 2851, 2899)               \
	X(BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR, 44, 3000, 3099)     \
	X(BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, 45, 3100, 3199)                \
	X(BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR, 46, 3200, 3299)              \
	X(BACKEND_OPERATION_SLICE_DESCRIPTOR, 47, 3300, 3399)                  \
	X(BACKEND_OPERATION_MOE_GROUPED_MATMUL_BWD_DESCRIPTOR, 48, 2951, 2999) \
	X(BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, 49, 3400, 3409)               \
	X(BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, 50, 3410, 3419)

/* The attributes that we read or write ourselves; all others are only kept. */
#define DNN_ATTR_LIST(X)                                    \
	X(ATTR_CONVOLUTION_COMP_TYPE, 100)                      \
	X(ATTR_CONVOLUTION_DILATIONS, 102)                      \
	X(ATTR_CONVOLUTION_FILTER_STRIDES, 103)                 \
	X(ATTR_CONVOLUTION_POST_PADDINGS, 104)                  \
	X(ATTR_CONVOLUTION_PRE_PADDINGS, 105)                   \
	X(ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                   \
	X(ATTR_ENGINEHEUR_MODE, 200)                            \
	X(ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                 \
	X(ATTR_ENGINEHEUR_RESULTS, 202)                         \
	X(ATTR_ENGINECFG_ENGINE, 300)                           \
	X(ATTR_ENGINECFG_INTERMEDIATE_INFO, 301)                \
	X(ATTR_ENGINECFG_KNOB_CHOICES, 302)                     \
	X(ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)               \
	X(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)              \
	X(ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS, 403)  \
	X(ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS, 404)  \
	X(ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, 405)         \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)    \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)            \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)            \
	X(ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)            \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)   \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709)           \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)          \
	X(ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)          \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)        \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)         \
	X(ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)        \
	X(ATTR_KNOB_CHOICE_KNOB_TYPE, 600)                      \
	X(ATTR_KNOB_CHOICE_KNOB_VALUE, 601)                     \
	X(ATTR_OPERATIONGRAPH_HANDLE, 800)                      \
	X(ATTR_OPERATIONGRAPH_OPS, 801)                         \
	X(ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 802)         \
	X(ATTR_TENSOR_BYTE_ALIGNMENT, 900)                      \
	X(ATTR_TENSOR_DATA_TYPE, 901)                           \
	X(ATTR_TENSOR_DIMENSIONS, 902)                          \
	X(ATTR_TENSOR_STRIDES, 903)                             \
	X(ATTR_TENSOR_UNIQUE_ID, 906)                           \
	X(ATTR_TENSOR_IS_VIRTUAL, 907)                          \
	X(ATTR_TENSOR_IS_BY_VALUE, 908)                         \
	X(ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                   \
	X(ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                \
	X(ATTR_VARIANT_PACK_WORKSPACE, 1003)                    \
	X(ATTR_ENGINE_OPERATION_GRAPH, 1300)                    \
	X(ATTR_ENGINE_GLOBAL_INDEX, 1301)                       \
	X(ATTR_ENGINE_KNOB_INFO, 1302)                          \
	X(ATTR_ENGINE_NUMERICAL_NOTE, 1303)                     \
	X(ATTR_ENGINE_LAYOUT_INFO, 1304)                        \
	X(ATTR_ENGINE_BEHAVIOR_NOTE, 1305)                      \
	X(ATTR_OPERATION_MATMUL_ADESC, 1520)                    \
	X(ATTR_OPERATION_MATMUL_BDESC, 1521)                    \
	X(ATTR_OPERATION_MATMUL_CDESC, 1522)

#define DNN_LATER_ATTR_LIST(X)                   \
	X(ATTR_ENGINEHEUR_DEVICEPROP, 204)           \
	X(ATTR_ENGINECFG_WORKSPACE_SIZE, 303)        \
	X(ATTR_ENGINECFG_SHARED_MEMORY_USED, 304)    \
	X(ATTR_EXECUTION_PLAN_DEVICEPROP, 407)       \
	X(ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702) \
	X(ATTR_OPERATION_SDPA_FWD_QDESC, 2800)       \
	X(ATTR_OPERATION_SDPA_FWD_KDESC, 2801)       \
	X(ATTR_OPERATION_SDPA_FWD_VDESC, 2802)       \
	X(ATTR_OPERATION_SDPA_BWD_QDESC, 2851)       \
	X(ATTR_OPERATION_SDPA_BWD_KDESC, 2852)       \
	X(ATTR_OPERATION_SDPA_BWD_VDESC, 2853)

enum {
#define DNN_NUMBER(name, number, ...) DNN_##name = number,
	DNN_STATUS_LIST(DNN_NUMBER) DNN_LATER_STATUS_LIST(DNN_NUMBER) DNN_DATA_LIST(DNN_NUMBER)
		DNN_LATER_DATA_LIST(DNN_NUMBER) DNN_ENUM_LIST(DNN_NUMBER) DNN_TYPE_LIST(DNN_NUMBER)
			DNN_LATER_TYPE_LIST(DNN_NUMBER) DNN_BACKEND_LIST(DNN_NUMBER) DNN_LATER_BACKEND_LIST(DNN_NUMBER)
				DNN_ATTR_LIST(DNN_NUMBER) DNN_LATER_ATTR_LIST(DNN_NUMBER)
#undef DNN_NUMBER
};

#endif
