/* SPDX-License-Identifier: Apache-2.0
 *
 * The table: one row a family of messages, and where its figures stand. What it is found by stands in anchors.c.
 *
 * Phrases are squeezed (lower case, no blanks). Wordings were taken from error texts in public issue trackers and
 * from the frameworks' documentation; a new family is a row here, its phrases and its anchors, and nothing else.
 */
#include "message/family_names.h"
#include "message/internal_message.h"

#define SIZE(name, before, after) { TN_FIGURE_##name, TN_FORM_SIZE, before, after }
#define BYTES(name, before, after) { TN_FIGURE_##name, TN_FORM_BYTES, before, after }
#define GIB(name, before, after) { TN_FIGURE_##name, TN_FORM_GIB, before, after }
#define NEED_SIZE(name, before, after) { TN_NEED + TN_NEED_##name, TN_FORM_SIZE, before, after }
#define NEED_TOKENS(name, before, after) { TN_NEED + TN_NEED_##name, TN_FORM_BYTES, before, after }
#define INDEX(before, after) { TN_DEVICE_INDEX, TN_FORM_INDEX, before, after }
#define END { 0, TN_FORM_SIZE, NULL, NULL }

/* From 1.0 on: "(GPU 0; A total capacity; B already allocated; ...)" and, from 2.1, whole sentences. */
static const struct tn_phrase torch[] = {
	SIZE(TRIED, "triedtoallocate", ""),
	INDEX("(gpu", ";"),
	INDEX("(npu", ";"),
	INDEX("(xpu", ";"),
	INDEX("", ";totalcapacity"),
	INDEX("gpu", "ha"),
	INDEX("npu", "ha"),
	INDEX("xpu", "ha"),
	INDEX("device", "ha"),
	SIZE(TOTAL, "totalcapacityof", ""),
	SIZE(TOTAL, "totalcapactyof", ""),
	SIZE(TOTAL, ";", "t"), /* also where "total" was cut */
	SIZE(TOTAL, "", "totalcapacity"),
	SIZE(FREE, "ofwhich", ""),
	SIZE(FREE, ";", "free"),
	SIZE(ALLOCATED, "", "alreadyallocated"),
	SIZE(ALLOCATED, ";", "already"),
	SIZE(ALLOCATED, "", "isallocated"),
	SIZE(ALLOCATED, "alreadyallocated", ""),
	SIZE(RESERVED, "", "reservedintotal"),
	SIZE(RESERVED, ";", "res"), /* also typed by hand */
	SIZE(RESERVED, ";", "cached"),
	SIZE(RESERVED_UNALLOCATED, "", "isreserved"),
	SIZE(PRIVATE_POOL, "", "allocatedinprivatepool"),
	SIZE(PRIVATE_POOL, "", "isallocatedinprivatepool"),
	SIZE(ALLOWED, "", "allowed"),
	SIZE(THIS_PROCESS, "thisprocesshas", ""),
	END,
};

/* PyTorch 2.13: a warning of every failed allocation, also of those that a retry gets over. */
static const struct tn_phrase torch_warning[] = {
	INDEX("oomondevice", "while"),
	BYTES(TRIED, "tryingtoallocate", "bytes"),
	BYTES(FREE, "(free:", ""),
	BYTES(TOTAL, "total:", ""),
	END,
};

static const struct tn_phrase malloc_async[] = {
	INDEX("allocationondevice", "would"),
	SIZE(ALLOCATED, "currentlyallocated:", ""),
	SIZE(TRIED, "requested:", ""),
	SIZE(TOTAL, "devicelimit:", ""),
	SIZE(FREE, "free(accordingtocuda):", ""),
	SIZE(ALLOWED, "pytorchlimit(setbyuser-suppliedmemoryfraction):", ""),
	END,
};

static const struct tn_phrase mps[] = {
	SIZE(TRIED, "triedtoallocate", ""),   SIZE(TRIED, "invalidbuffersize:", ""),
	SIZE(ALLOCATED, "mpsallocated:", ""), SIZE(MPS_OTHER, "otherallocations:", ""),
	SIZE(ALLOWED, "maxallowed:", ""),     END,
};

static const struct tn_phrase mlx[] = {
	BYTES(TRIED, "attemptingtoallocate", "bytes"),
	BYTES(TRIED, "unabletoallocate", "bytes"),
	END,
};

static const struct tn_phrase cuda_error[] = {
	INDEX("currentdevice:", ""),
	INDEX("deviceordinal", ""),
	INDEX("gpu=", ""),
	BYTES(TRIED, "requestedmemory:", ""),
	BYTES(TRIED, "requestedamountofgpumemory(", "bytes"),
	BYTES(TRIED, "requestedsizewas", "bytes"),
	BYTES(FREE, "freememory:", ""),
	BYTES(TOTAL, "totalmemoryreported:", ""),
	END,
};

static const struct tn_phrase nccl[] = {
	BYTES(TRIED, "failedtocudacalloc", "bytes"),
	BYTES(TRIED, "failedtocudahostalloc", "bytes"),
	BYTES(TRIED, "failedtocudahostcalloc", "bytes"),
	BYTES(TRIED, "failedtocudamalloc", "bytes"),
	BYTES(TRIED, "failedtohipcalloc", "bytes"),
	BYTES(TRIED, "(size", ""),
	INDEX("[", "]"),
	END,
};

static const struct tn_phrase host[] = {
	BYTES(TRIED, "youtriedtoallocate", "bytes"),
	SIZE(TRIED, "youtriedtoallocate", ""),
	SIZE(TRIED, "unabletoallocate", "foranarray"),
	BYTES(TRIED, "unabletoallocate", "bytes"),
	SIZE(TRIED, "unabletoallocate", ""),
	BYTES(TRIED, "unabletommap", "bytes"),
	BYTES(TRIED, "memoryallocationof", "bytesfailed"),
	BYTES(TRIED, "mallocofsize", "failed"),
	BYTES(TRIED, "reallocofsize", "failed"),
	BYTES(TRIED, "failedtoallocate", "bytes"),
	BYTES(TRIED, "failedtoalloc", "bytes"),
	BYTES(TRIED, "couldnotallocate", "bytes"),
	BYTES(TRIED, "cannotallocate", "bytes"),
	BYTES(TRIED, "memoryofsize:", ""),
	BYTES(TRIED, "memorysegment", ""),
	BYTES(TRIED, "(size", ""),
	BYTES(TRIED, "bufferofsize", ""),
	END,
};

static const struct tn_phrase tensorflow[] = {
	BYTES(TRIED, "(roundedto", ")"),
	BYTES(TRIED, "(", "bytes)"),
	BYTES(TRIED, "failedtoalloc", "bytes"),
	SIZE(TRIED, "tryingtoallocate", ""),
	SIZE(TRIED, "failedtoallocate", ""),
	INDEX("device:gpu:", ""),
	INDEX("allocator(gpu_", "_bfc"),
	INDEX("allocatorgpu_", "_bfc"),
	INDEX("gpu_", "_bfc"),
	INDEX("deviceordinal", ""),
	END,
};

static const struct tn_phrase jax[] = {
	BYTES(TRIED, "(", "b)"),
	BYTES(TRIED, "tryingtoallocate", "bytes"),
	BYTES(TRIED, "outofmemoryallocating", "bytes"),
	BYTES(TRIED, "failedtoallocate", "bytes"),
	SIZE(TRIED, "tryingtoallocate", ""),
	SIZE(TRIED, "attemptingtoallocate", ""),
	SIZE(TRIED, "attemptingtoreserve", ""),
	SIZE(TRIED, "failedtoallocaterequestfor", ""),
	SIZE(TRIED, "outofmemoryallocating", ""),
	SIZE(FREE, "thereare", "free"),
	INDEX("deviceordinal", ""),
	INDEX("device:gpu:", ""),
	INDEX("gpu_", "_bfc"),
	END,
};

static const struct tn_phrase cupy[] = {
	BYTES(TRIED, "outofmemorytoallocate", "bytes"),
	BYTES(TRIED, "outofmemoryallocating", "bytes"),
	BYTES(ALLOCATED, "(total", "bytes"),
	BYTES(ALLOCATED, "allocatedsofar:", "bytes"),
	BYTES(ALLOWED, "limitsetto:", "bytes"),
	END,
};

static const struct tn_phrase paddle[] = {
	INDEX("ongpu", ""),
	SIZE(TRIED, "cannotallocate", ""),
	SIZE(TRIED, "cannotmalloc", ""),
	BYTES(TRIED, "availablefailed,", ">"),
	BYTES(FREE, ">", ""),
	SIZE(FREE, "availablememoryisonly", ""),
	SIZE(FREE, "availableisonly", ""),
	SIZE(ALLOCATED, "", "memoryhasbeenallocated"),
	SIZE(TOTAL, "totalmemoryis", ""),
	END,
};

/* The size in MiB stands first, with the device; the bytes of the line after it are the same request rounded up. */
static const struct tn_phrase llama[] = {
	SIZE(TRIED, "allocating", "ondevice"),
	SIZE(TRIED, "failedtoallocatebuffer,size=", ""),
	SIZE(TRIED, "failedtoallocatebufferofsize", ""),
	BYTES(TRIED, "bufferofsize", ""),
	BYTES(TRIED, "allocationofsize", "failed"),
	INDEX("ondevice", ""),
	INDEX("currentdevice:", ""),
	INDEX("cuda", "bufferofsize"),
	INDEX("rocm", "bufferofsize"),
	INDEX("hip", "bufferofsize"),
	INDEX("vulkan", "bufferofsize"),
	INDEX("sycl", "bufferofsize"),
	INDEX("cuda", "buffer"),
	INDEX("rocm", "buffer"),
	END,
};

static const struct tn_phrase onnx[] = {
	BYTES(TRIED, "requestedbufferofsize", ""),
	BYTES(TRIED, "requestedbytesof", ""),
	BYTES(FREE, "availablememoryof", "issmaller"),
	INDEX("gpu=", ";"),
	END,
};

static const struct tn_phrase theano[] = {
	BYTES(TRIED, "errorallocating", "bytesofdevicememory"),
	BYTES(FREE, "driverreport", "bytesfree"),
	BYTES(TOTAL, "", "bytestotal"),
	END,
};

static const struct tn_phrase triton_server[] = {
	BYTES(TRIED, "withbytesize", ""),
	INDEX("ongpu", ""),
	END,
};

/* vLLM's start-up (vllm/v1/core/kv_cache_utils.py, vllm/v1/worker/utils.py, vllm/worker/worker.py). */
static const struct tn_phrase vllm[] = {
	NEED_SIZE(NEEDED_BYTES, "", "kvcacheisneeded"),
	NEED_SIZE(NEEDED_BYTES, ", ", ")"),
	NEED_SIZE(BUDGET_BYTES, "availablekvcachememory(", ""),
	NEED_TOKENS(NEEDED_TOKENS, "maxseqlen(", ")"),
	NEED_TOKENS(BUDGET_TOKENS, "maximummodellengthis", ""),
	NEED_TOKENS(BUDGET_TOKENS, "storedinkvcache(", ")"),
	SIZE(FREE, "(", "/"),
	SIZE(TOTAL, "/", ")onstartup"),
	INDEX("devicecuda:", "("),
	END,
};

/* SGLang's scheduler (sglang/srt/mem_cache/common.py; "Avaliable" in older releases). */
static const struct tn_phrase sglang[] = {
	NEED_TOKENS(NEEDED_TOKENS, "trytoallocate", "tokens"),
	NEED_TOKENS(BUDGET_TOKENS, "availabletokens:", ""),
	NEED_TOKENS(BUDGET_TOKENS, "avaliabletokens:", ""),
	NEED_TOKENS(BUDGET_TOKENS, "availablefulltokens:", ""),
	END,
};

/* TGI's warm-up (text_generation_server/models/flash_causal_lm.py). */
static const struct tn_phrase tgi[] = {
	NEED_TOKENS(NEEDED_TOKENS, "notenoughmemorytohandle", "prefilltokens"),
	NEED_TOKENS(NEEDED_TOKENS, "notenoughmemorytohandle", "totaltokens"),
	NEED_TOKENS(NEEDED_TOKENS, "notenoughmemorytohandle", "tokens"),
	END,
};

/* tensorrt_llm/_torch/pyexecutor/py_executor_creator.py */
static const struct tn_phrase tensorrt_llm[] = {
	GIB(TOTAL, "totalgpumemory(gib):", ""),
	GIB(FREE, "creationattempt(gib):", ""),
	END,
};

/* The sliced attention of stable-diffusion-webui, ComfyUI and InvokeAI. */
static const struct tn_phrase picture[] = {
	NEED_SIZE(NEEDED_BYTES, "need:", "free"),
	NEED_SIZE(BUDGET_BYTES, "have:", "free"),
	END,
};

/* mlc-llm, cpp/serve/config.cc; what it needs is printed as a sum of two. */
static const struct tn_phrase mlc[] = {
	NEED_SIZE(BUDGET_BYTES, "singlegpumemoryis", ""),
	END,
};

static const struct tn_phrase ollama[] = {
	NEED_SIZE(NEEDED_BYTES, "moresystemmemory(", ")"),
	NEED_SIZE(BUDGET_BYTES, "thanisavailable(", ")"),
	END,
};

#define REFUSAL_REASON \
	"the engine's own plan found too little memory for its cache; nothing failed to allocate, and no sizes are printed"
#define OTHER_HEAPS "javaheap|java.lang|jvm|heapoutofmemory|phpfatal"
#define LIBRARY_REASON "the library could not get its own memory, outside PyTorch's pool; no sizes are printed"

const struct tn_family tn__families[] = {
	[TORCH] = { "torch", "PyTorch", false, TN_KIND_CUDA, TN_RULE_CARD, NULL, torch, NULL, NULL, NULL },
	[TORCH_WARNING] = { "torch_2.13_warning", "PyTorch", true, TN_KIND_CUDA, TN_RULE_CARD, NULL, torch_warning, NULL,
	                    NULL, NULL },
	[TORCH_0X] = { "torch_0x", "PyTorch", false, TN_KIND_CUDA, TN_RULE_UNKNOWN,
	               "no sizes are printed, only error code 2", NULL, "outofmemory|error=2", NULL, NULL },
	[MALLOC_ASYNC] = { "cuda_malloc_async", "PyTorch with cudaMallocAsync", false, TN_KIND_CUDA, TN_RULE_CARD, NULL,
	                   malloc_async, NULL, NULL, NULL },
	[MPS] = { "mps", "PyTorch on MPS", false, TN_KIND_MPS, TN_RULE_MPS, NULL, mps, NULL, NULL, NULL },
	[MPS_BUFFER] = { "mps", "PyTorch on MPS", false, TN_KIND_MPS, TN_RULE_MPS_BUFFER,
	                 "one buffer of this size is refused; nothing else is printed", mps, NULL, NULL, NULL },
	[MPS_COMMAND] = { "mps_command_buffer", "Metal", false, TN_KIND_MPS, TN_RULE_UNKNOWN, NULL, NULL, NULL, NULL,
	                  NULL },
	[MLX] = { "mlx", "MLX", false, TN_KIND_MPS, TN_RULE_MPS_BUFFER, "one buffer of this size is refused", mlx, NULL,
	          NULL, NULL },
	[XPU_RUNTIME] = { "xpu", "the XPU runtime", false, TN_KIND_XPU, TN_RULE_UNKNOWN, NULL, NULL, NULL, NULL, NULL },
	[CUDA_ERROR] = { "cuda_error_oom", "the CUDA runtime", false, TN_KIND_CUDA, TN_RULE_CARD, NULL, cuda_error, NULL,
	                 NULL, NULL },
	[HIP_ERROR] = { "cuda_error_oom", "the HIP runtime", false, TN_KIND_HIP, TN_RULE_CARD, NULL, cuda_error, NULL, NULL,
	                NULL },
	[CUBLAS] = { "cublas", "cuBLAS", false, TN_KIND_CUDA, TN_RULE_LIBRARY,
	             "cuBLAS could not get the memory that it needs for itself; no sizes are printed", NULL, NULL, NULL,
	             NULL },
	[CUDA_LIBRARY] = { "cuda_library", "a CUDA library", false, TN_KIND_CUDA, TN_RULE_LIBRARY, LIBRARY_REASON, NULL,
	                   NULL, NULL, NULL },
	[CUDNN] = { "cudnn", "cuDNN", false, TN_KIND_CUDA, TN_RULE_LIBRARY,
	            "cuDNN reports that its own allocation failed; no sizes are printed", NULL, NULL, NULL, NULL },
	[CUDNN_REFUSED] = { "cudnn", "cuDNN", true, TN_KIND_CUDA, TN_RULE_UNKNOWN,
	                    "cuDNN refuses or fails; nothing in the text says memory", NULL, NULL, NULL, NULL },
	/* A kernel that failed, or a texture that was not bound: neither names memory, though a full card can be behind it. */
	[CUDNN_FAILED] = { "cudnn", "cuDNN", true, TN_KIND_CUDA, TN_RULE_UNKNOWN,
	                   "cuDNN reports that a kernel failed, and the text speaks of memory near it", NULL, NULL, NULL,
	                   "memory|(oom|vram|batchsize|batch_size" },
	[CUDNN_NO_ALGORITHM] = { "cudnn_no_algorithm", "cuDNN", true, TN_KIND_CUDA, TN_RULE_UNKNOWN,
	                         "no algorithm was found, which full memory can cause; the text neither prints sizes nor "
	                         "says memory",
	                         NULL, NULL, NULL, NULL },
	[MIOPEN] = { "miopen", "MIOpen", false, TN_KIND_HIP, TN_RULE_LIBRARY, LIBRARY_REASON, NULL, NULL, NULL, NULL },
	[NVML_ASSERT] = { "nvml_assert", "PyTorch", true, TN_KIND_CUDA, TN_RULE_UNKNOWN,
	                  "an internal check failed while an out-of-memory was being reported, so the sizes were never "
	                  "printed",
	                  NULL, "cachingallocator|nvml_success==", NULL, NULL },
	[NCCL] = { "nccl", "NCCL", false, TN_KIND_CUDA, TN_RULE_LIBRARY,
	           "NCCL could not get a buffer of its own; no sizes are printed", nccl, NULL, NULL, NULL },
	[NCCL_SHM] = { "nccl_shared_memory", "NCCL", false, TN_KIND_HOST, TN_RULE_HOST,
	               "NCCL could not get shared memory of the host", nccl, NULL, NULL, NULL },
	[LOADER] = { "host_dataloader", "PyTorch's DataLoader", false, TN_KIND_HOST, TN_RULE_HOST,
	             "a loader process was ended from outside or lacked shared memory; no sizes are printed", NULL, NULL,
	             NULL, NULL },
	[LOADER_EXIT] = { "host_dataloader", "PyTorch's DataLoader", true, TN_KIND_HOST, TN_RULE_UNKNOWN,
	                  "a loader process ended; the text does not say why", NULL, NULL, "unexpectedlywithexitcode",
	                  NULL }, /* an exception in it */
	[HOST_TORCH] = { "host_allocator", "PyTorch's CPU allocator", false, TN_KIND_HOST, TN_RULE_HOST,
	                 "the CPU allocator was refused", host, NULL, NULL, NULL },
	[HOST] = { "host_allocator", "the host's allocator", false, TN_KIND_HOST, TN_RULE_HOST,
	           "the host has no memory for the request", host, NULL, "mlock", NULL }, /* locked, not allocated */
	[HOST_NUMPY] = { "host_allocator", "NumPy", false, TN_KIND_HOST, TN_RULE_HOST,
	                 "the host has no memory for the array", host, NULL, NULL, NULL },
	[HOST_MEMORY_ERROR] = { "host_allocator", "Python", false, TN_KIND_HOST, TN_RULE_HOST,
	                        "Python could not get memory of the host; no sizes are printed", NULL, NULL, NULL, NULL },
	[HOST_PINNED] = { "tensorflow", "TensorFlow", false, TN_KIND_HOST, TN_RULE_HOST, "pinned host memory was refused",
	                  host, NULL, NULL, NULL },
	[KILLED] = { "host_killed", "the kernel", false, TN_KIND_HOST, TN_RULE_HOST,
	             "the kernel ended a process because the host's memory, or that of its group, was full", NULL, NULL,
	             NULL, NULL },
	[RAY] = { "host_killed", "Ray", false, TN_KIND_HOST, TN_RULE_HOST,
	          "Ray ended a worker because the node's memory was nearly full", NULL, NULL, NULL, NULL },
	[SLURM] = { "host_killed", "the scheduler", false, TN_KIND_HOST, TN_RULE_HOST,
	            "the scheduler reports an out-of-memory kill; no sizes are printed", NULL, NULL, NULL, NULL },
	[KILLED_MAYBE] = { "host_killed", "the system", true, TN_KIND_HOST, TN_RULE_HOST,
	                   "the process was killed from outside, which full host memory usually causes; the text does "
	                   "not say it",
	                   NULL, NULL, NULL, NULL },
	/* What a launcher says of a process that got SIGKILL: it does so itself, too, and so does a scheduler. */
	[KILLED_BY] = { "host_killed", "the system", true, TN_KIND_HOST, TN_RULE_HOST,
	                "the process was killed from outside, and the text speaks of memory near it", NULL, NULL, NULL,
	                "enoughmemory|enoughram|lackofram|outofmemory|oom-kill|oom_kill|oomkill|(oom)|memorylimit|lowonmemory|memorypressure|ofram|"
	                "seemstooom|seemtooom|duetooom|becauseofoom|memoryleak|memoryusage|hostmemory|systemmemory|cpumemory|notenoughmemory|memoryisnotenough|memorynotenough|"
	                "outoframmemory|insufficientmemory|lackofmemory|memory\u4e0d\u591f|\u5185\u5b58" },
	[JAX] = { "jax", "JAX", false, TN_KIND_NONE, TN_RULE_CARD, NULL, jax, "outofmemory|allocat|hbm", NULL, NULL },
	[TENSORFLOW] = { "tensorflow", "TensorFlow", false, TN_KIND_CUDA, TN_RULE_CARD,
	                 "the tensor's shape is printed, but neither its size in bytes nor the card's", tensorflow, NULL,
	                 "thisisnotafailure|callerindicatesthatthisisnot", NULL },
	[TENSORFLOW_HOST] = { "tensorflow", "TensorFlow", false, TN_KIND_HOST, TN_RULE_HOST,
	                      "the host's memory was refused", host, NULL, NULL, NULL },
	[TENSORFLOW_DST] = { "tensorflow", "TensorFlow", true, TN_KIND_CUDA, TN_RULE_UNKNOWN,
	                     "a tensor could not be set up, which full memory can cause; the text does not say memory",
	                     NULL, NULL, NULL, NULL },
	[CUPY] = { "cupy", "CuPy", false, TN_KIND_CUDA, TN_RULE_CARD, NULL, cupy, NULL, NULL, NULL },
	[PADDLE] = { "paddle", "PaddlePaddle", false, TN_KIND_CUDA, TN_RULE_CARD, NULL, paddle, NULL, NULL, NULL },
	[LLAMA] = { "llama.cpp", "llama.cpp", false, TN_KIND_CUDA, TN_RULE_CARD, NULL, llama,
	            "ggml|llama|malloc|failedtoallocate", NULL, NULL },
	[LLAMA_HOST] = { "llama.cpp", "llama.cpp", false, TN_KIND_HOST, TN_RULE_HOST,
	                 "the host has no memory for the buffer", llama, NULL, NULL, NULL },
	[ONNX] = { "onnxruntime", "ONNX Runtime", false, TN_KIND_NONE, TN_RULE_CARD, NULL, onnx, NULL, NULL, NULL },
	[THEANO] = { "theano", "Theano", false, TN_KIND_CUDA, TN_RULE_CARD, NULL, theano, "errorallocating", NULL, NULL },
	[TRITON_SERVER] = { "triton_server", "Triton Inference Server", false, TN_KIND_CUDA, TN_RULE_CARD, NULL,
	                    triton_server, NULL, NULL, NULL },
	[VULKAN] = { "vulkan", "Vulkan", false, TN_KIND_OTHER, TN_RULE_UNKNOWN, NULL, llama, NULL, NULL, NULL },
	[OPENCL] = { "opencl", "OpenCL", false, TN_KIND_OTHER, TN_RULE_UNKNOWN, NULL, NULL, NULL, NULL, NULL },
	[VLLM] = { "engine_refusal", "vLLM", false, TN_KIND_CUDA, TN_RULE_REFUSAL, REFUSAL_REASON, vllm,
	           "kvcacheisneeded|storedinkvcache|cacheblocks|gpumemoryutilization", NULL, NULL },
	[SGLANG] = { "engine_refusal", "SGLang", false, TN_KIND_CUDA, TN_RULE_REFUSAL,
	             "SGLang's cache has too few free tokens; nothing failed to allocate", sglang, NULL, NULL, NULL },
	[SGLANG_START] = { "engine_refusal", "SGLang", false, TN_KIND_CUDA, TN_RULE_REFUSAL, REFUSAL_REASON, sglang, NULL,
	                   NULL, NULL },
	[SGLANG_UNBALANCED] = { "engine_refusal", "SGLang", false, TN_KIND_CUDA, TN_RULE_OTHERS,
	                        "some cards have much less free memory than the others before anything is loaded", NULL,
	                        NULL, NULL, NULL },
	[TGI] = { "engine_refusal", "TGI", false, TN_KIND_CUDA, TN_RULE_REFUSAL, "the trial pass at the start does not fit",
	          tgi, "prefill|tokens", NULL, NULL },
	[TENSORRT_LLM] = { "engine_refusal", "TensorRT-LLM", false, TN_KIND_CUDA, TN_RULE_REFUSAL, REFUSAL_REASON,
	                   tensorrt_llm, NULL, NULL, NULL },
	[PICTURE] = { "engine_refusal", "the attention's own check", false, TN_KIND_CUDA, TN_RULE_REFUSAL,
	              "one slice of the attention is larger than what is free", picture, NULL, NULL, NULL },
	[EXLLAMA] = { "engine_refusal", "ExLlama", false, TN_KIND_CUDA, TN_RULE_REFUSAL,
	              "model and cache together need more than the cards have", NULL, NULL, NULL, NULL },
	[MLC] = { "engine_refusal", "MLC-LLM", false, TN_KIND_CUDA, TN_RULE_REFUSAL,
	          "weights and buffers together need more than the share of the card that it may take", mlc, NULL, NULL,
	          NULL },
	[OLLAMA] = { "host_allocator", "Ollama", false, TN_KIND_HOST, TN_RULE_HOST,
	             "the model needs more of the computer's memory than is free", ollama, NULL, NULL, NULL },
	[ENGINE_CACHE] = { "engine_refusal", "an engine", false, TN_KIND_CUDA, TN_RULE_REFUSAL, REFUSAL_REASON, NULL, NULL,
	                   NULL, NULL },
	[OLLAMA_GUESS] = { "llama.cpp", "Ollama", true, TN_KIND_NONE, TN_RULE_UNKNOWN,
	                   "the runner ended, and Ollama supposes that memory was short", NULL, NULL, NULL, NULL },
	[GENERIC] = { "other", "a library", false, TN_KIND_CUDA, TN_RULE_CARD, NULL, cuda_error, NULL, "thisisnotafailure",
	              NULL },
	[REMARK] = { "remark", "the program", true, TN_KIND_NONE, TN_RULE_UNKNOWN,
	             "a program's own remark about a failure; no sizes are printed", NULL, NULL, NULL, NULL },
	[TENSORRT] = { "tensorrt", "TensorRT's builder", true, TN_KIND_CUDA, TN_RULE_UNKNOWN,
	               "a way of running a layer was left out because its memory was refused; the build may go on", NULL,
	               NULL, NULL, NULL },
	[NOTEBOOK] = { "host_killed", "the notebook's host", false, TN_KIND_HOST, TN_RULE_HOST,
	               "the notebook used all memory of its machine", NULL, NULL, NULL, NULL },
	[SAID] = { "told", "the writer", false, TN_KIND_NONE, TN_RULE_UNKNOWN, "somebody tells of it; no sizes are printed",
	           NULL, NULL, OTHER_HEAPS, NULL },
	[SAID_HOST] = { "told", "the writer", false, TN_KIND_HOST, TN_RULE_HOST,
	                "somebody tells of it; no sizes are printed", NULL, NULL, OTHER_HEAPS, NULL },
	[SAID_KILLED] = { "told", "the writer", false, TN_KIND_HOST, TN_RULE_HOST,
	                  "somebody tells that the process was killed, and of memory; no sizes are printed", NULL, NULL,
	                  OTHER_HEAPS, "memory|oom|ofram|ramof|ramusage|ramlimit|moreram|dmesg|swap" },
	[LACKING] = { "other", "a program", false, TN_KIND_NONE, TN_RULE_CARD, NULL, cuda_error, NULL,
	              OTHER_HEAPS "|illegalmemoryaccess|illegaladdress", NULL },
	[ALLOCATION] = { "host_allocator", "the host's allocator", false, TN_KIND_HOST, TN_RULE_HOST,
	                 "the host has no memory for the request", host, "memory|bytes|buffer|tensor|mib|gib|mb|gb|size",
	                 OTHER_HEAPS "|thisisnotafailure|illegalmemoryaccess|illegaladdress", NULL },
};

const struct tn_engine tn__engines[] = {
	{ VLLM, "vllm", TN_AT_LOAD },
	{ SGLANG, "sglang", TN_AT_GENERATE },
	{ SGLANG_START, "sglang", TN_AT_LOAD },
	{ SGLANG_UNBALANCED, "sglang", TN_AT_LOAD },
	{ TGI, "tgi", TN_AT_LOAD },
	{ TENSORRT_LLM, "tensorrt-llm", TN_AT_LOAD },
	{ PICTURE, "a1111", TN_AT_GENERATE },
	{ EXLLAMA, "exllama", TN_AT_LOAD },
	{ MLC, "mlc-llm", TN_AT_LOAD },
	{ OLLAMA, "ollama", TN_AT_LOAD },
	{ LLAMA, "llama.cpp", TN_AT_LOAD },
	{ JAX, "jax", TN_AT_UNKNOWN },
	{ TENSORFLOW, "tensorflow", TN_AT_UNKNOWN },
};
const struct tn_hint tn__hint_vllm = { "", "vllm", TN_AT_UNKNOWN };

/* Words of logs that tell framework and phase where frames do not. */
const struct tn_hint tn__hints[] = {
	{ "methodwarmupencountered|warmup(generation", "tgi", TN_AT_LOAD },
	{ "methodprefillencountered|methoddecodeencountered|requestfailedduringgeneration", "tgi", TN_AT_GENERATE },
	{ "capturecudagraphfailed", "sglang", TN_AT_LOAD },
	{ "text_generation_launcher|text_generation_router", "tgi", TN_AT_UNKNOWN },
	{ "enginecorefailedtostart|errorinenginecoreinit", "vllm", TN_AT_LOAD },
	{ "asyncllmoutput_handlerfailed|enginecoreencounteredanissue|enginecoreencounteredafatalerror", "vllm",
	  TN_AT_GENERATE },
	{ "errorexecutingload_single_module", "tensorrt-llm", TN_AT_LOAD },
	{ "[trt-llm]|[tensorrt-llm]", "tensorrt-llm", TN_AT_UNKNOWN },
	{ "loaderallocationondevice", "comfyui", TN_AT_LOAD }, /* a node's name before the error */
	{ "ksampler", "comfyui", TN_AT_GENERATE },
	{ "erroroccurredwhenexecuting|exceptionduringprocessing!!!|comfyuierrorreport", "comfyui", TN_AT_GENERATE },
	{ "external/org_tensorflow/", "jax", TN_AT_UNKNOWN }, /* jaxlib brings this part of TensorFlow with it */
	{ "errorcompletingrequest", "a1111", TN_AT_GENERATE },
	{ "jmorganca/ollama|ollama/ollama|ollamarunner|llamarunnerprocess", "ollama", TN_AT_LOAD },
	{ "ggml-cuda|ggml_cuda|llama_new_context|llama_kv_cache|llama_model_load", "llama.cpp", TN_AT_LOAD },
};
const size_t tn__hint_count = sizeof(tn__hints) / sizeof(tn__hints[0]);

const size_t tn__engine_count = sizeof(tn__engines) / sizeof(tn__engines[0]);

const struct tn_family *const tn__family_allocation = &tn__families[ALLOCATION];
const struct tn_family *const tn__family_lacking = &tn__families[LACKING];
const struct tn_family *const tn__family_llama_host = &tn__families[LLAMA_HOST];
const struct tn_family *const tn__family_tensorflow_host = &tn__families[TENSORFLOW_HOST];
const struct tn_family *const tn__family_scheduler = &tn__families[SLURM];
