/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors that are reported, and what only speaks of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "message/message.h"

struct found {
	size_t count;
	const char *family;
};

static tn_status
collect(void *context, const struct tn_message *message)
{
	struct found *found = context;
	found->count++;
	found->family = message->family;
	return TN_OK;
}

static void
expect(const char *text, size_t count)
{
	struct tn_message_scanner *scanner;
	struct found found = { 0, "nothing" };
	assert_int_equal(tn__message_scanner_new(collect, &found, &scanner), TN_OK);
	assert_int_equal(tn__message_scan(scanner, text, strlen(text)), TN_OK);
	assert_int_equal(tn__message_scan_end(scanner), TN_OK);
	tn__message_scanner_free(scanner);
	if (found.count != count)
		fail_msg("%zu errors (%s) in %s", found.count, found.family, text);
}

#define COUNT(texts) (sizeof(texts) / sizeof((texts)[0]))

static void
expect_each(const char *const *texts, size_t count, size_t errors)
{
	for (size_t i = 0; i < count; i++)
		expect(texts[i], errors);
}

/* Texts that only speak of such errors, and what a launcher says of a process that it may have ended itself. */
static void
test_spoken_of(void **state)
{
	static const char *const nothing[] = {
		"The RuntimeError: CUDA out of memory occurs when a batch does not fit.\n",
		"A dreaded \"CUDA out of memory\" error has cost us a weekend. Here is what helped.\n",
		"Training stops with \"CUDA out of memory.\" the run before it went well\n",
		"CUDA Out of Memory\n- use smaller batches\n- free what is not needed\n",
		"GPU errors: catch `torch.cuda.OutOfMemoryError`, its name is \"OutOfMemoryError\" in newer releases\n",
		"-    text = \"Not enough memory. Please try to increase --mem-fraction-static.\"\n",
		"FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory\n",
		"java.lang.OutOfMemoryError: Java heap space\n\tat com.acme.Sort.run(Sort.java:12)\n",
		"failed (exitcode: -9) local_rank: 2 (pid: 77) of binary: /usr/bin/python3\nTraceback (most recent call last):\n",
		"  exitcode  : -9 (pid: 77)\n  traceback : Signal 9 (SIGKILL) received by PID 77\n",
		"RuntimeError: DataLoader worker (pid 5) exited unexpectedly with exit code 1. Details are lost.\n",
		"CUDA out of memory - how to train on a small card\n",
		"    \"CUDA out of memory.\",  # what PyTorch says\n",
		"A minute later you see the words every beginner knows: CUDA out of memory.\n",
		"GPU: use the OutOfMemoryError API, a class that cannot fail to exist\n",
		"cupy.cuda.memory.OutOfMemoryError: out of memory to allocate XXXX bytes (total YYYY bytes)\n",
		"warning: failed to mlock 4096-byte buffer (after previously locking 0 bytes): Cannot allocate memory\n",
	};
	static const char *const errors[] = {
		"RuntimeError: CUDA out of memory occurred when warming up sampler with 16 dummy requests.\n",
		"time=10:00 level=ERROR msg=\"CUDA error: out of memory\" device=0\n",
		"{\"error\": \"CUDA out of memory. Tried to allocate 2.00 GiB\", \"code\": 500}\n",
		"MyWrapper: CUDA Out of Memory\n",
		"CUDA out of memory error in step 12\n",
		"The node's host memory was full.\nfailed (exitcode: -9) local_rank: 2 (pid: 77) of binary: python3\n",
		"RuntimeError: DataLoader worker (pid(s) 5) exited unexpectedly\n",
	};
	(void)state;
	expect_each(nothing, COUNT(nothing), 0);
	expect_each(errors, COUNT(errors), 1);
}

/* The form of a line tells what somebody wrote about errors: strings of programs, templates, changes, search hits, rows
 * of tables, announced examples. Figures prove more, but not in what raises or looks for an error. */
static void
test_written_about(void **state)
{
	static const char *const nothing[] = {
		"KNOWN = [\n    \"DefaultCPUAllocator: cannot get memory\",  # the host\n    \"CUDA error: out of memory\",\n]\n",
		"    fail_if(code == 2, \"CUDA error: out of memory\");\n",
		"  std::cerr << \"RESOURCE_EXHAUSTED: the arena is full\" << std::endl;\n",
		"        raise RuntimeError(\"CUDA out of memory. Tried to allocate 3.00 GiB\")\n",
		"    if \"DefaultCPUAllocator: cannot get memory\" in str(error):\n",
		"with pytest.raises(RuntimeError, match=\"CUDA out of memory. Tried to allocate 3.00 GiB\"):\n",
		"NCCL WARN Cuda failure 'out of memory' %s:%d\n",
		"error text: CUDA error: out of memory on {device}\n",
		"@@ -3,2 +3,2 @@ run\n-GPU error: CUDA error: out of memory\n+GPU error: RESOURCE_EXHAUSTED: no memory\n",
		"src/guard.py:41:    fatal: CUDA error: out of memory\n",
		"doc/help.md:7:- GPU error: CUDA error: out of memory\n",
		"| CUDA error: out of memory | take a smaller batch | often |\n",
		"Where the card is small you may see:\n\n```\nloading\nRuntimeError: CUDA error: out of memory\n```\n",
		"The text of the error is now shorter, instead of:\n\n    RuntimeError: CUDA error: out of memory\n",
		"GPU errors: **CUDA out of memory**: take a smaller batch\n",
		"- CUDA out of memory -> take a smaller batch\n",
		"model.to(device);  // CUDA out of memory\n",
		"GPU code that fails over may name torch.OutOfMemoryError from now on.\n",
		"Sooner or later you stare at it: CUDA out of memory.\n",
		"import torch\ndef run(x):\n    pool.add(x)\n\nERRORS = (\n    RuntimeError(\"CUDA out of memory\"),\n)\n",
		"int take(int n) {\n  use(n);\n  return poolMemoryError;\n}\n",
		"### CUDA out of memory\n\nTake a smaller batch.\n",
		"Troubleshooting\n\nRuntimeError: CUDA error: out of memory\n",
		"RuntimeError: CUDA error: out of memory\n\n**Solution**: take a smaller batch.\n",
		"Exit code 137: what it means and how to fix it\n\n  Reason: OOMKilled\n",
		"    \"OOMKilled\": false,\n",
		"CL_OUT_OF_RESOURCES = -5\n",
		"MemoryError\n, says the page, is one of them.\n",
	};
	static const char *const errors[] = {
		"I get CUDA out of memory. Tried to allocate 2.00 GiB on every card that I own.\n",
		"When it starts, you can see it fail with \"CUDA out of memory. Tried to allocate 2.00 GiB\" at once.\n",
		"ray.exceptions.RayTaskError(OutOfMemoryError): failed: RuntimeError('CUDA error: out of memory')\n",
		"called `Result::unwrap()` on an `Err` value: Cuda(\"CUDA error: out of memory\")\n",
		"/src/ggml-cuda.cu:99: CUDA error: out of memory\n",
		"Caught torch.OutOfMemoryError in replica 1 on device 1, exception ends the run.\n",
		"    \"RuntimeError: CUDA error: out of memory\\n\",\n",
		"You may see:\n\nnothing at all\n\nRuntimeError: CUDA error: out of memory\n",
		"@@ -3,2 +3,2 @@\n-a\n+b\nThat is my change. Then:\nRuntimeError: CUDA error: out of memory\n",
		"can you help me with this: RuntimeError: CUDA error: out of memory\n",
		"x = model(batch)\nprint(x)\nloss.backward()\nRuntimeError: CUDA error: out of memory\n",
		"# KSampler Allocation on device\n\nHow can I get rid of this?\n",
		"I just get `hipErrorOutOfMemory` since the update\n",
		"AssertionError: Not enough memory for KV cache, try fewer pages\n",
		"# raise ValueError(\"No available memory for the cache blocks. \" ValueError: No available memory for the cache blocks.\n",
		"Out of Memory: No room to allocate 4096000 B DRAM buffer across 8 banks, not enough\n",
	};
	(void)state;
	expect_each(nothing, COUNT(nothing), 0);
	expect_each(errors, COUNT(errors), 1);
}

/* Sentences that teach, names of classes and constants, and a text that speaks of such errors again and again. */
static void
test_taught(void **state)
{
	static const char *const nothing[] = {
		"The RuntimeError: CUDA out of memory (short OOM) is the first that most users meet on the way to a bigger model.\n",
		"On long films this will give rise to `RuntimeError: CUDA out of memory.` when the results are kept.\n",
		"A \xe2\x80\x9c"
		"CUDA out of memory\xe2\x80\x9d error is what users often see on small cards.\n",
		"GPU errors: we should tell why the cards are running out of memory\n",
		"Case 4: NPU Out of Memory Occurred During Training\n",
		"1e5a2b0 Update std::bad_alloc to rmm::bad_alloc everywhere.\n",
		"  if (code == cudaErrorMemoryAllocation) {\n",
		"1\nCUDA_ERROR_INVALID_VALUE\n2\nCUDA_ERROR_OUT_OF_MEMORY\nout of memory\n",
		"HEAD:src/a.hpp:7: * rmm::out_of_memory is thrown\nHEAD:src/b.cu:9:Fatal error: CUDA error: out of memory\n",
		"OOMKilled (exit code 137) means that a container met its memory limit.\n",
		"cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 3\n",
		"cudaErrorMemoryAllocation The call failed to get memory.\n",
		"This patch may be able to mitigate 'CUDA Out of memory error' in case of runs of t2t kind.\n",
		"MemoryAllocation: out of device memory, in bytes of device memory\n",
		"    if is_cuda_out_of_memory(error) and can_fail:\n",
		"bad_alloc::bad_alloc(const char *text) : text{std::bad_alloc::what()} {}\n",
		"Exit code 137 indicates that the host's memory, in its limits, was full: out of memory.\n",
		"If you got this error from a script:\n```\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
		"GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.\n```\n",
		"# Fixing OOMKilled pods\nA pod that is marked as OOMKilled is gone.\nCause of an OOMKilled event: limits.\n"
		"- Pod status: OOMKilled\n",
	};
	static const char *const errors[] = {
		"Training ends after the first epoch, it says RuntimeError: CUDA error: out of memory\n",
		"ERROR:root:CUDA error: out of memory CUDA kernel errors might be reported at some other API call, so the "
		"stacktrace below might be incorrect.\n",
		"Hello, when we run the demo on the server it throws RuntimeError: CUDA error: out of memory. Can you help?\n",
		"Every run ends the same way on the second card, RuntimeError: CUDA error: out of memory.\n",
		"At the end of it the error should be this: RuntimeError: CUDA error: out of memory.\n",
		"| ERROR | CUDA error: out of memory | worker 3 |\n",
		"# `srun: error: node4: task 0: Out Of Memory`\n",
		"`    3 CUDA Error: out of memory`\n",
		"pod-1    0/1      OOMKilled    0           3m12s\n",
		"# Fixing OOM\nA pod marked as OOMKilled, an OOMKilled pod, how to avoid OOMKilled\nmore on OOMKilled?\n"
		"RuntimeError: CUDA error: out of memory\n",
		"terminate called after throwing an instance of 'thrust::system::system_error'\n  what():  parallel_for failed: "
		"out of memory\n",
		"EnforceNotMet: enforce allocating <= available failed, 10513462 > 1369702\n",
		"MemoryError: std::bad_alloc: CUDA error at: include/rmm/cuda.hpp:68: cudaErrorMemoryAllocation out of memory\n",
		"ggml_vulkan: Device memory allocation of size 1610612 failed.\nggml_vulkan: vk::Device::allocateMemory: "
		"ErrorOutOfDeviceMemory\n",
	};
	(void)state;
	expect_each(nothing, COUNT(nothing), 0);
	expect_each(errors, COUNT(errors), 1);
}

/* A person who has the error quotes it, or says that it came, and is believed; who fears, avoids or mends it has none. A
 * phrase that prose uses, too, else counts only where a program puts an error. */
static void
test_told(void **state)
{
	static const char *const nothing[] = {
		"If you get CUDA out of memory, lower the batch size.\n",
		"I fixed CUDA out of memory by lowering the batch size\n",
		"We avoid CUDA out of memory by checkpointing\n",
		"Users get CUDA out of memory\n",
		"How do I prevent CUDA out of memory?\n",
		"I never get CUDA out of memory\n",
		"fix: CUDA out of memory in the evaluation loop\n",
		"- retry on CUDA out of memory in the loop (#12)\n",
		"The kernel ends it, recorded as Reason: OOMKilled.\n",
		"Kubernetes tells this as OOMKilled.\n",
		"Adding a type `rmm::out_of_memory` exception for GPU errors, when we are certain we are running out of memory\n",
		"CUDA out of memory plagues many\n",
		"RuntimeError: DataLoader worker (pid 5) exited unexpectedly with exit code 1.\n",
	};
	static const char *const errors[] = {
		"I get `CUDA out of memory. Tried to allocate 2.00 GiB`\n",
		"When I train my model I get `RuntimeError: CUDA out of memory`\n",
		"I keep getting CUDA out of memory when I train with batch size 8. What can I do?\n",
		"While running the code, I encountered a CUDA out of memory error.\n",
		"I'm running into CUDA out of memory on a 24 GB card\n",
		"After the upgrade I met the CUDA out of memory error, cannot say why.\n",
		"Training crashes with \"CUDA out of memory\" after the third epoch\n",
		"I'm getting std::bad_alloc when I load the data set\n",
		"My pod was OOMKilled\n",
		"Failed to create the linear weights: CUDA out of memory.\n",
		"Check failed: error == cudaSuccess (2 vs. 0)  out of memory\n",
		"Cuda Error in allocate: 2 (out of memory)\n",
		"pod-1    0/1      OOMKilled    0           3m12s\n",
		"RuntimeError: DataLoader worker (pid(s) 5) exited unexpectedly\n",
	};
	(void)state;
	expect_each(nothing, COUNT(nothing), 0);
	expect_each(errors, COUNT(errors), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_spoken_of), cmocka_unit_test(test_written_about),
		                                cmocka_unit_test(test_taught), cmocka_unit_test(test_told) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
