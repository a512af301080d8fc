/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags of architectures.def: what of a layer differs from Llama's.
 */
#ifndef TN_SERVE_ARCHITECTURE_H
#define TN_SERVE_ARCHITECTURE_H

#define TN_ARCH_QKV_BIAS 0x1u     /* query, key and value have biases */
#define TN_ARCH_QK_NORM 0x2u      /* norms of one head's size on queries and keys */
#define TN_ARCH_WIDE_QK_NORM 0x4u /* norms of all heads' size */
#define TN_ARCH_FOUR_NORMS 0x8u   /* before and after both parts */
#define TN_ARCH_SHARED_GATE 0x10u /* a gate on the shared expert */
#define TN_ARCH_GATED_QUERY 0x20u /* the query's projection holds a gate, too */
#define TN_ARCH_MIXTRAL 0x40u     /* experts without a size of their own */
#define TN_ARCH_GPT_OSS 0x80u     /* sinks, biases everywhere, experts in one tensor */
#define TN_ARCH_DEEPSEEK 0x100u   /* latent attention */
#define TN_ARCH_SCORE_BIAS 0x200u /* the router has a bias for each expert */
#define TN_ARCH_JAMBA 0x400u
#define TN_ARCH_NEMOTRON 0x800u /* one part a layer, feed-forward without a gate */
#define TN_ARCH_PURE_STATE 0x1000u
#define TN_ARCH_FALCON 0x2000u
#define TN_ARCH_GPT 0x4000u /* layer norms with biases, learned positions, one query-key-value projection */
#define TN_ARCH_GRANITE_HYBRID 0x8000u
#define TN_ARCH_SPLIT_DELTA 0x10000u  /* the gated delta net's projections are four */
#define TN_ARCH_VISION 0x20000u       /* a tower for pictures, whose tensors only headers tell */
#define TN_ARCH_CACHE_ONLY 0x40000u   /* tensors only from headers */
#define TN_ARCH_WINDOW_POOL 0x100000u /* SGLang 0.5.23 has a pool for its windows: configs/model_config.py */
#define TN_ARCH_LMDEPLOY 0x80000u     /* LMDeploy 0.18.0 serves it: pytorch/models/module_map.py */

#endif
