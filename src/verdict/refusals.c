/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call that the virtual GPU refuses is to a person: the family, what the program goes without, what to do. The first
 * row that matches counts, so that special rows stand before general ones.
 */
#include <string.h>

#include "verdict/judge.h"
#include "verdict/model_fill.h"

#define ANY ""
#define MAY_BE_MORE "what it needs beyond this is not known"

static const struct tn_refusal families[] = {
	/* questions and measurements: no memory hangs on them */
	{ "nvml", ANY, "a query of the driver's monitor (NVML)", "a figure is missing", NULL, true },
	{ "cupti", ANY, "profiling (CUPTI)", "a profile is missing", NULL, true },
	{ "nvtx", ANY, "an annotation (NVTX)", "an annotation is missing", NULL, true },
	{ "cuda", "cuDeviceGetAttribute", "a query about the card", "a figure is missing", NULL, true },
	{ "cuda", "cuPointerGetAttribute", "a query about an address", "a figure is missing", NULL, true },
	{ "cuda", "cuFuncGetAttribute", "a query about a kernel", "a figure is missing", NULL, true },
	{ "cuda", "cuProfiler", "profiling", "a profile is missing", NULL, true },
	{ "cudart", "cudaDeviceGetAttribute", "a query about the card", "a figure is missing", NULL, true },
	{ "cudart", "cudaMemPoolGetAttribute", "a query about a memory pool", "a figure is missing", NULL, true },
	{ "cudart", "cudaProfiler", "profiling", "a profile is missing", NULL, true },
	{ "cudnn", "plan from JSON", "a convolution plan that was stored", "PyTorch takes another one", NULL, true },
	/* what work depends on */
	{ "nccl", ANY, "an NCCL collective", "its buffers, and what the program does with its result, are missing",
	  "a run of one rank (torchrun --nproc-per-node 1) shows what each rank holds without sharding", false },
	{ "nvshmem", ANY, "communication through NVSHMEM", MAY_BE_MORE, NULL, false },
	{ "cusolver", ANY, "a solver of cuSOLVER (SVD, QR, LU, eigenvalues and the like)",
	  "its workspace and result are missing", "torch.linalg on the CPU, or a run without that call, shows the rest",
	  false },
	{ "cusparse", ANY, "an operation of cuSPARSE", "its workspace and result are missing", NULL, false },
	{ "cusparselt", ANY, "a product with 2:4 sparsity (cuSPARSELt)", "its workspace and result are missing",
	  "a run with dense weights shows the rest", false },
	{ "cufft", ANY, "a transform of cuFFT", "its work area and result are missing", NULL, false },
	{ "curand", ANY, "a generator of cuRAND's host interface", "its numbers are missing", NULL, false },
	{ "cublas", ANY, "an operation of cuBLAS", "its workspace and result are missing", NULL, false },
	{ "cublasLt", ANY, "an operation of cuBLASLt", "its workspace and result are missing", NULL, false },
	{ "cudnn", ANY, "an operation of cuDNN", "its workspace and result are missing",
	  "torch.backends.cudnn.enabled = False shows PyTorch's own kernels instead", false },
	{ "cufile", ANY, "reading files straight to the card (cuFile)", "what was to be read is missing", NULL, false },
	{ "nvrtc", ANY, "compiling at run time (NVRTC)", "the kernel and what it makes are missing", NULL, false },
	{ "cuda", "cuGetExportTable, called by libnvJitLink", "a query of the kernel linker", "it works without", NULL,
	  true },
	{ "cuda", "cuGetExportTable, called by nvidia (libnvJitLink", "a query of the kernel linker", "it works without",
	  NULL, true },
	{ "cuda", "cuGetExportTable", "a library that brings its own CUDA runtime (CuPy, DALI, spconv and the like)",
	  "everything that this library does on the card is missing", "run without that library if the program allows it",
	  false },
	{ "cuda", "cuIpc", "sharing memory between processes (CUDA IPC)", "tensors sent to another process do not arrive",
	  "loader workers and queues that pass CPU tensors work", false },
	{ "cudart", "cudaIpc", "sharing memory between processes (CUDA IPC)",
	  "tensors sent to another process do not arrive", "loader workers and queues that pass CPU tensors work", false },
	{ "cuda", "cuMemCreate on the host", "memory of the host through the card's allocator", MAY_BE_MORE, NULL, false },
	{ "cuda", "cuGL", "sharing memory with graphics", MAY_BE_MORE, NULL, false },
	{ "cuda", "cuGraphics", "sharing memory with graphics", MAY_BE_MORE, NULL, false },
	{ "cuda", "cuImport", "memory of another interface", MAY_BE_MORE, NULL, false },
};

static const struct tn_refusal other = { ANY, ANY, "a CUDA call", MAY_BE_MORE, NULL, false };

static bool
matches(const struct tn_refusal *family, const char *library, const char *name)
{
	return strcmp(family->library, library) == 0 && strncmp(family->prefix, name, strlen(family->prefix)) == 0;
}

const struct tn_refusal *
tn__refusal_of(const char *library, const char *name)
{
	for (size_t i = 0; library != NULL && name != NULL && i < sizeof(families) / sizeof(families[0]); i++)
		if (matches(&families[i], library, name))
			return &families[i];
	return &other;
}

/* The first call of its family in the list. */
static bool
is_first(const struct tn_counted_list *calls, size_t at)
{
	const struct tn_refusal *family = tn__refusal_of(calls->items[at].library, calls->items[at].name);
	for (size_t i = 0; i < at; i++)
		if (tn__refusal_of(calls->items[i].library, calls->items[i].name) == family)
			return false;
	return true;
}

static int64_t
count_of(const struct tn_counted_list *calls, const struct tn_refusal *family)
{
	int64_t sum = 0;
	for (size_t i = 0; i < calls->count; i++)
		if (tn__refusal_of(calls->items[i].library, calls->items[i].name) == family)
			sum += calls->items[i].count;
	return sum;
}

void
tn__report_explain_refusals(struct tn_report *report)
{
	const struct tn_counted_list *calls = &report->refused_calls;
	enum tn_severity severity = report->verdict == TN_VERDICT_FAILED ? TN_SEVERITY_WARNING : TN_SEVERITY_HINT;
	for (size_t i = 0; i < calls->count; i++) {
		const struct tn_refusal *family = tn__refusal_of(calls->items[i].library, calls->items[i].name);
		if (family->asks_only || family == &other || !is_first(calls, i))
			continue;
		long long count = (long long)count_of(calls, family);
		tn__report_add_finding_as(report, TN_FINDING_refused_calls, severity, TN_NO_FIGURE, NULL, family->advice,
		                          "%s was refused (%s, %lld call%s): %s", family->name, calls->items[i].name, count,
		                          count == 1 ? "" : "s", family->means);
	}
}
