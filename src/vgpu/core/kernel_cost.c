/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch moves and computes, for estimates of time. Kernels do not run and say nothing of their tensors, but the
 * usual ones of PyTorch are known by name: the number of elements stands in an argument, how many tensors they read and
 * write and of which type stands in the name. Attention follows from its grid. Any other kernel is a guess by its
 * threads, and counted as one.
 *
 * Arguments are read only where the name says what they are. Sources, in PyTorch's aten/src/ATen/native/cuda:
 * CUDALoops.cuh, layer_norm_kernel.cu, SoftMax.cu, PersistentSoftmax.cuh, Dropout.cu, MultiTensorApply.cuh; in
 * transformers/cuda: flash_attn, mem_eff_attention. Called with the core lock held.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/core/state.h"

#define GUESSED_BYTES 16 /* a thread: as for its time on the virtual clock */
#define CHUNK 65536      /* elements of a block of multi_tensor_apply */
#define PARAMS_READ 128  /* bytes: less than the struct has in any version */
#define MOST_HEAD 65536
#define MOST_FORWARD 1024
#define MOST_ELEMENTS (INT64_C(1) << 40) /* more is no number of elements */

enum form {
	FORM_UNREAD,
	FORM_GUESS,
	FORM_COUNT,   /* argument `first` elements */
	FORM_ROWS,    /* argument `first` elements for each block of the grid's x */
	FORM_PRODUCT, /* arguments `first` times `second` elements */
	FORM_CHUNKS,  /* a chunk for each block */
	FORM_ATTENTION,
	FORM_ATTENTION_BACKWARD,
};

/* Parts of names. `operands`: tensors that are read or written; 0: the name says how many. The first that fits counts. */
static const struct rule {
	const char *part;
	unsigned char form, first, second, operands;
} rules[] = {
	{ "29vectorized_elementwise_kernelI", FORM_COUNT, 0, 0, 0 },
	{ "vectorized_templated_elementwise_kernelI", FORM_COUNT, 0, 0, 0 },
	{ "27unrolled_elementwise_kernelI", FORM_COUNT, 0, 0, 0 },
	{ "29elementwise_kernel_with_indexI", FORM_COUNT, 0, 0, 1 },
	{ "18elementwise_kernelI", FORM_COUNT, 0, 0, 0 },
	{ "softmax_warp_forward", FORM_PRODUCT, 2, 4, 2 },
	{ "softmax_warp_backward", FORM_PRODUCT, 3, 5, 3 },
	{ "cunn_SoftMaxForward", FORM_ROWS, 2, 0, 2 },
	{ "cunn_SoftMaxBackward", FORM_ROWS, 3, 0, 3 },
	{ "vectorized_layer_norm_kernel", FORM_ROWS, 0, 0, 2 },
	{ "layer_norm_grad_input_kernel", FORM_ROWS, 6, 0, 3 },
	{ "GammaBetaBackward", FORM_PRODUCT, 0, 1, 2 },
	{ "fused_dropout_kernel", FORM_COUNT, 3, 0, 2 },
	{ "multi_tensor_apply_kernel", FORM_CHUNKS, 0, 0, 0 },
	{ "flash_fwd_", FORM_ATTENTION, 0, 0, 0 },
	{ "flash_bwd_dq_dk_dv", FORM_ATTENTION_BACKWARD, 0, 0, 0 },
	{ "fmha_cutlassF", FORM_ATTENTION, 0, 0, 0 },
	{ "fmha_cutlassB", FORM_ATTENTION_BACKWARD, 0, 0, 0 },
};

/* ---- reading names ---- */

static const char *
behind(const char *text, const char *part)
{
	const char *found = text ? strstr(text, part) : NULL;
	return found ? found + strlen(part) : NULL;
}

static unsigned long
number_behind(const char *text, const char *part)
{
	const char *at = behind(text, part);
	return at && isdigit((unsigned char)*at) ? strtoul(at, NULL, 10) : 0;
}

/* Bytes of an element: of the half types where the name has one, else of the first template argument. */
static unsigned char
width_of(const char *name)
{
	if (strstr(name, "WithCast")) /* between four and two bytes, mostly */
		return 3;
	if (strstr(name, "8BFloat16") || strstr(name, "4Half") || strstr(name, "bfloat16_t") || strstr(name, "6half_t") ||
	    strstr(name, "_f16_") || strstr(name, "_bf16_"))
		return 2;
	if (strstr(name, "FunctorId") || strstr(name, "FunctorIl") || strstr(name, "Idd"))
		return 8;
	return strstr(name, "FunctorIb") || strstr(name, "FunctorIh") ? 1 : 4;
}

/* Tensors that an elementwise kernel reads and writes. */
static unsigned char
operands_of(const char *name)
{
	unsigned long arrays = number_behind(name, "St5arrayIPcLm");
	if (arrays > 0 && arrays < 16)
		return (unsigned char)arrays;
	return strstr(name, "BinaryFunctor") || strstr(name, "CUDAFunctor_") ? 3 : 2;
}

/* Lists of tensors: the fused optimizers write all lists but the gradients, the others write one back. */
static unsigned char
operands_of_lists(const char *name)
{
	unsigned long lists = number_behind(name, "TensorListMetadataILi");
	if (lists == 0)
		lists = number_behind(name, "TensorListScalarListMetadataIfLi");
	if (lists == 0 || lists > 6)
		lists = 2;
	return (unsigned char)(strstr(name, "Fused") ? 2 * lists - 1 : lists + 1);
}

/* Flash: traits<head, queries, keys, ...>, and behind them <dropout, causal, ...>. Memory-efficient: "64x128_rf" is
 * queries x head, at most. */
static void
read_attention(struct tn_kernel *kernel)
{
	const char *name = kernel->name, *flash = behind(name, "Flash_fwd_kernel_traitsILi");
	unsigned long head = 0, rows = 0;
	if (flash) {
		head = strtoul(flash, NULL, 10);
		rows = number_behind(flash, "ELi");
		const char *flags = behind(flash, "EEELb");
		kernel->traffic.causal = flags && number_behind(flags, "ELb") == 1;
	} else {
		const char *aligned = behind(name, "aligned_");
		rows = aligned ? strtoul(aligned, NULL, 10) : 0;
		head = number_behind(aligned, "x");
	}
	kernel->traffic.rows = (uint16_t)(rows > 0 && rows <= 1024 ? rows : 64);
	kernel->traffic.head = (uint16_t)(head > 0 && head <= 256 ? head : 128);
	kernel->traffic.math = strstr(name, "_f32_") ? TN_MATH_FP32 : TN_MATH_HALF;
}

static void
read_name(struct tn_kernel *kernel)
{
	kernel->traffic.form = FORM_GUESS;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (!strstr(kernel->name, rules[i].part))
			continue;
		kernel->traffic.form = rules[i].form;
		kernel->traffic.first = rules[i].first;
		kernel->traffic.second = rules[i].second;
		kernel->traffic.operands = rules[i].operands;
		break;
	}
	kernel->traffic.width = width_of(kernel->name);
	kernel->traffic.math = TN_MATH_FP32;
	if (kernel->traffic.form == FORM_CHUNKS)
		kernel->traffic.operands = operands_of_lists(kernel->name);
	else if (kernel->traffic.operands == 0)
		kernel->traffic.operands = operands_of(kernel->name);
	if (kernel->traffic.form >= FORM_ATTENTION)
		read_attention(kernel);
}

/* ---- launches ---- */

static struct tn_effort
moves(const struct tn_kernel *kernel, double elements)
{
	return (struct tn_effort){ .kind = TN_EFFORT_KERNEL,
		                       .math = (enum tn_math)kernel->traffic.math,
		                       .bytes = elements * kernel->traffic.operands * kernel->traffic.width };
}

static struct tn_effort
guess(const struct tn_launch *launch)
{
	double blocks = (double)launch->grid[0] * launch->grid[1] * launch->grid[2];
	double threads = (double)launch->block[0] * launch->block[1] * launch->block[2];
	return (struct tn_effort){ .kind = TN_EFFORT_GUESSED, .bytes = blocks * threads * GUESSED_BYTES };
}

/* A 32-bit argument, or the low half of a 64-bit one. */
static double
argument(const struct tn_launch *launch, unsigned char number)
{
	int32_t value;
	memcpy(&value, launch->arguments[number], sizeof(value));
	return value > 0 ? value : 0;
}

struct lengths {
	double queries, keys, head;
};

/* Memory-efficient attention takes one struct, in which head, head of values, queries and keys stand side by side as 32-bit
 * numbers behind some pointers; where exactly differs between versions. Its queries must be those of the grid. */
static bool
read_lengths(const struct tn_kernel *kernel, const struct tn_launch *launch, struct lengths *out)
{
	int32_t fields[PARAMS_READ / sizeof(int32_t)];
	size_t count = sizeof(fields) / sizeof(*fields);
	if (!strstr(kernel->name, "fmha_cutlassF") || !launch->arguments[0])
		return false;
	memcpy(fields, launch->arguments[0], sizeof(fields));
	for (size_t i = 0; i + 3 < count; i++) {
		int64_t head = fields[i], values = fields[i + 1], queries = fields[i + 2], keys = fields[i + 3];
		bool plausible = head > 0 && head <= MOST_HEAD && values > 0 && values <= MOST_HEAD && keys > 0 && queries > 0;
		if (!plausible || (queries - 1) / kernel->traffic.rows + 1 != launch->grid[0])
			continue;
		*out = (struct lengths){ (double)queries, (double)keys, (double)(head + values) / 2 };
		return true;
	}
	return false;
}

/* Attention that waits for its backward pass: the last forward comes first. What never gets one, as in evaluation, is
 * pushed out in the end. */
static struct {
	struct tn_effort items[MOST_FORWARD];
	size_t next, count;
} forward;

static void
push_forward(const struct tn_effort *effort)
{
	forward.items[forward.next] = *effort;
	forward.next = (forward.next + 1) % MOST_FORWARD;
	forward.count += forward.count < MOST_FORWARD;
}

static struct tn_effort
pop_forward(void)
{
	if (forward.count == 0)
		return (struct tn_effort){ .kind = TN_EFFORT_KERNEL };
	forward.count--;
	forward.next = (forward.next + MOST_FORWARD - 1) % MOST_FORWARD;
	return forward.items[forward.next];
}

/* Two products forward, five backward. Of flash attention only the grid is known: as many keys as queries. A backward launch
 * is taken for that of the last forward one that had none. */
static struct tn_effort
attend(const struct tn_kernel *kernel, const struct tn_launch *launch)
{
	if (kernel->traffic.form == FORM_ATTENTION_BACKWARD) {
		struct tn_effort effort = pop_forward();
		effort.flops *= 2.5;
		effort.bytes *= 2;
		return effort;
	}
	double heads = (double)launch->grid[1] * launch->grid[2], rows = (double)launch->grid[0] * kernel->traffic.rows;
	struct lengths of = { rows, rows, kernel->traffic.head };
	(void)read_lengths(kernel, launch, &of);
	struct tn_effort effort = { .kind = TN_EFFORT_KERNEL,
		                        .math = (enum tn_math)kernel->traffic.math,
		                        .flops = 4 * heads * of.queries * of.keys * of.head *
		                                 (kernel->traffic.causal ? 0.5 : 1),
		                        .bytes = 2 * heads * (of.queries + of.keys) * of.head * kernel->traffic.width };
	push_forward(&effort);
	return effort;
}

struct tn_effort
tn__kernel_cost_of(struct tn_kernel *kernel, const struct tn_launch *launch)
{
	if (kernel->traffic.form == FORM_UNREAD)
		read_name(kernel);
	enum form form = launch->arguments ? (enum form)kernel->traffic.form : FORM_GUESS;
	double elements = 0;
	switch (form) {
	case FORM_COUNT:
		elements = argument(launch, kernel->traffic.first);
		break;
	case FORM_ROWS:
		elements = argument(launch, kernel->traffic.first) * launch->grid[0];
		break;
	case FORM_PRODUCT:
		elements = argument(launch, kernel->traffic.first) * argument(launch, kernel->traffic.second);
		break;
	case FORM_CHUNKS:
		elements = (double)launch->grid[0] * CHUNK;
		break;
	case FORM_ATTENTION:
	case FORM_ATTENTION_BACKWARD:
		return attend(kernel, launch);
	default:
		return guess(launch);
	}
	return elements > 0 && elements < MOST_ELEMENTS ? moves(kernel, elements) : guess(launch);
}
