/* SPDX-License-Identifier: Apache-2.0
 *
 * The message scanner from inside: pieces of any size, its limits, figures to the byte, whose code a path is, and the
 * order of the rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "message/internal_message.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

struct list {
	struct tn_message items[8];
	size_t count, stop_at;
};

static tn_status
collect(void *context, const struct tn_message *message)
{
	struct list *list = context;
	if (list->count < 8)
		list->items[list->count] = *message;
	list->count++;
	return list->stop_at > 0 && list->count >= list->stop_at ? TN_LIMIT : TN_OK;
}

static tn_status
scan_pieces(const char *text, size_t length, size_t piece, struct list *list)
{
	struct tn_message_scanner *scanner;
	tn_status status = tn__message_scanner_new(collect, list, &scanner);
	assert_int_equal(status, TN_OK);
	for (size_t at = 0; at < length && status == TN_OK; at += piece)
		status = tn__message_scan(scanner, text + at, length - at < piece ? length - at : piece);
	if (status == TN_OK)
		status = tn__message_scan_end(scanner);
	tn__message_scanner_free(scanner);
	return status;
}

static void
scan(const char *text, struct list *list)
{
	memset(list, 0, sizeof(*list));
	assert_int_equal(scan_pieces(text, strlen(text), 4096, list), TN_OK);
}

static const char typical[] =
	"Traceback (most recent call last):\n"
	"  File \"/work/run.py\", line 12, in <module>\n"
	"    y = model(x)\n"
	"  File \"/env/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1511, in _call_impl\n"
	"    return forward_call(*args, **kwargs)\n"
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 3 has a total capacity of 10.00 GiB "
	"of "
	"which 512.00 MiB is free. Process 7 has 1.00 GiB memory in use. Including non-PyTorch memory, this process has "
	"8.50 "
	"GiB memory in use. Of the allocated memory 8.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by "
	"PyTorch "
	"but unallocated.\n";

static void
test_pieces(void **state)
{
	struct list whole, pieces;
	(void)state;
	scan(typical, &whole);
	assert_int_equal(whole.count, 1);
	assert_string_equal(whole.items[0].culprit, "/work/run.py:12");
	assert_int_equal(whole.items[0].device_index, 3);
	assert_int_equal(whole.items[0].line, 6);
	assert_int_equal(whole.items[0].figures[TN_FIGURE_TRIED], 3 * GIB / 2);
	assert_int_equal(whole.items[0].figures[TN_FIGURE_THIS_PROCESS], 17 * GIB / 2);
	for (size_t piece = 1; piece < 64; piece++) {
		memset(&pieces, 0, sizeof(pieces));
		assert_int_equal(scan_pieces(typical, strlen(typical), piece, &pieces), TN_OK);
		assert_int_equal(pieces.count, 1);
		assert_memory_equal(&pieces.items[0], &whole.items[0], sizeof(whole.items[0]));
	}
}

static void
test_stopping(void **state)
{
	struct list list = { .stop_at = 1 };
	char text[2 * sizeof(typical)];
	(void)state;
	snprintf(text, sizeof(text), "%s%s", typical, "ValueError: x\nRuntimeError: CUDA error: out of memory\n");
	assert_int_equal(scan_pieces(text, strlen(text), 100, &list), TN_LIMIT);
	assert_int_equal(list.count, 1);
}

static void
test_many_processes(void **state)
{
	struct list list;
	char *text = malloc(65536);
	size_t used = 0;
	(void)state;
	used += (size_t)sprintf(
		text, "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB of "
			  "which 1.00 GiB is free. ");
	for (int i = 0; i < 300; i++)
		used += (size_t)sprintf(text + used, "Process %d has 10.00 MiB memory in use. ", 1000 + i);
	sprintf(text + used,
	        "Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but "
	        "unallocated.\n");
	scan(text, &list);
	free(text);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].process_count, TN_MESSAGE_PROCESSES);
	assert_int_equal(list.items[0].processes[255].pid, 1255);
	assert_int_equal(list.items[0].figures[TN_FIGURE_ALLOCATED], 70 * GIB);
}

/* Blank lines, lines without an end and endless blanks: the window must slide without losing the message. */
static void
test_window(void **state)
{
	enum { SIZE = 4 * TN_MESSAGE_WINDOW };
	char *text = malloc(SIZE + sizeof(typical) + 1);
	struct list list;
	(void)state;
	for (const char *fill = "x \n"; *fill != '\0'; fill++) {
		memset(text, *fill, SIZE);
		text[SIZE - 1] = '\n';
		strcpy(text + SIZE, typical);
		scan(text, &list);
		assert_int_equal(list.count, 1);
		assert_string_equal(list.items[0].culprit, "/work/run.py:12");
		memcpy(text, typical, sizeof(typical) - 1); /* and before */
		text[SIZE] = '\0';
		scan(text, &list);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.items[0].figures[TN_FIGURE_RESERVED_UNALLOCATED], 100 * MIB);
	}
	free(text);
}

static void
test_figures(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{ "8.13 GiB", 8729521029 },       { "643.57 MiB", 674832056 },
		{ "195.50 KiB", 200192 },         { "0 bytes", 0 },
		{ "7178.44 GiB", 7707791259075 }, { "17179869184.00 GiB", TN_MESSAGE_NONE },
		{ "1,024.00 MiB", GIB },          { "2.00 Gi", TN_MESSAGE_NONE },
		{ "2.", TN_MESSAGE_NONE },        { "13.7x GiB", TN_MESSAGE_NONE },
		{ "3.25 TiB", 13 * GIB * 256 },   { "99999999999999999999999 GiB", TN_MESSAGE_NONE },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128];
		struct list list;
		snprintf(text, sizeof(text), "RuntimeError: CUDA out of memory. Tried to allocate %s", cases[i].text);
		scan(text, &list);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.items[0].figures[TN_FIGURE_TRIED], cases[i].bytes);
	}
}

static void
test_whose_code(void **state)
{
	static const char *const libraries[] = {
		"/env/lib/python3.11/site-packages/torch/nn/a.py",
		"/usr/lib/python3/dist-packages/x.py",
		"/usr/lib/python3.10/threading.py",
		"/usr/lib64/python3.9/runpy.py",
		"C:\\Python38\\lib\\runpy.py",
		"C:\\Users\\a\\AppData\\Local\\Programs\\Python\\Python310\\Lib\\threading.py",
		"D:\\Anaconda3\\envs\\x\\lib\\queue.py",
		"<frozen importlib._bootstrap>",
		"lib/python3.9/site-packages/a.py",
	};
	static const char *const own[] = { "train.py",      "/home/a/lib/net.py", "D:\\work\\lib\\net.py",
		                               "<stdin>",       "<string>",           "/opt/src/quark/torch/observer.py",
		                               "./src/main.py", "/srv/python/app.py" };
	(void)state;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (!tn__frame_is_library(libraries[i], strlen(libraries[i])))
			fail_msg("%s is a library", libraries[i]);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (tn__frame_is_library(own[i], strlen(own[i])))
			fail_msg("%s is no library", own[i]);
}

static void
test_ranks(void **state)
{
	static const struct {
		const char *line;
		int64_t rank;
	} cases[] = { { "[rank3]: x", 3 },
		          { "Rank 12: x", 12 },
		          { "x on rank 7", 7 },
		          { "global_rank=5", 5 },
		          { "local_rank: 2 x", -1 },
		          { "(Worker rank=4 pid=9) x", 4 },
		          { "tp_rank 3", -1 },
		          { "node rank 3", -1 },
		          { "[1,6]<stderr>:x", 6 },
		          { "ranks 3", -1 },
		          { "rank", -1 },
		          { "frank 3", -1 },
		          { "local_rank 1, rank 9", 9 },
		          { "low-rank 64", -1 },
		          { "[default1]:x", -1 } };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t rank = tn__line_rank(cases[i].line, strlen(cases[i].line));
		if (rank != cases[i].rank)
			fail_msg("%s: %lld", cases[i].line, (long long)rank);
	}
}

/* One card of 10 GiB; each row changes what it must for its rule. */
static void
test_rules(void **state)
{
	static const struct {
		const char *text;
		enum tn_cause cause;
	} cases[] = {
		{ "11.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which 9.00 GiB is free. 12.00 GiB allowed; Of the "
		  "allocated "
		  "memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved",
		  TN_CAUSE_TOO_BIG },
		{ "1.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which 5.00 GiB is free. 4.00 GiB allowed; Of the "
		  "allocated "
		  "memory 3.00 GiB is allocated by PyTorch, and 0 bytes is reserved",
		  TN_CAUSE_FRACTION_LIMIT },
		{ "1.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which 1.25 GiB is free. Of the allocated memory 3.00 "
		  "GiB is "
		  "allocated by PyTorch, and 5.00 GiB is reserved",
		  TN_CAUSE_UNKNOWN },
		{ "1.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which 1.24 GiB is free. Of the allocated memory 3.00 "
		  "GiB is "
		  "allocated by PyTorch, and 1.00 GiB is reserved",
		  TN_CAUSE_FRAGMENTATION },
		{ "100.00 MiB. GPU 0 has a total capacity of 10.00 GiB of which 10.00 MiB is free. Of the allocated memory "
		  "9.00 GiB is "
		  "allocated by PyTorch, and 500.00 MiB is reserved",
		  TN_CAUSE_MODEL_OR_BATCH },
		{ "100.00 MiB. GPU 0 has a total capacity of 10.00 GiB of which 10.00 MiB is free. Process 5 has 2.60 GiB "
		  "memory in "
		  "use. Including non-PyTorch memory, this process has 7.30 GiB memory in use. Of the allocated memory 7.00 "
		  "GiB is "
		  "allocated by PyTorch, and 0 bytes is reserved",
		  TN_CAUSE_OTHER_PROCESS },
		{ "6.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which 5.90 GiB is free. Of the allocated memory 3.00 "
		  "GiB is "
		  "allocated by PyTorch, and 0 bytes is reserved",
		  TN_CAUSE_TOO_BIG },
		{ "2.00 MiB. GPU 0 has a total capacity of 10.00 GiB of which 19.00 MiB is free. Of the allocated memory "
		  "9.90 GiB is "
		  "allocated by PyTorch, and 19.00 MiB is reserved",
		  TN_CAUSE_MODEL_OR_BATCH },
		{ "1.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which 900.00 MiB is free. Of the allocated memory "
		  "4.90 GiB is "
		  "allocated by PyTorch, and 0 bytes is reserved",
		  TN_CAUSE_OTHER_PROCESS },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		struct list list;
		snprintf(text, sizeof(text), "CUDA out of memory. Tried to allocate %s by PyTorch but unallocated.",
		         cases[i].text);
		scan(text, &list);
		assert_int_equal(list.count, 1);
		if (list.items[0].cause != cases[i].cause)
			fail_msg("case %zu: %s (%s)", i, tn__cause_text(list.items[0].cause), list.items[0].reason);
		assert_in_range(list.items[0].advice_count, 1, 3);
	}
}

/* A text that is cut, bytes with decimals, the device that TensorFlow names first, and what MemoryError quotes. */
static void
test_cut_and_mixed(void **state)
{
	struct list list;
	(void)state;
	scan("RuntimeError: CUDA out of memory. Tried to allocate 7.00 GiB (GPU 0; 8.00 GiB tot", &list);
	assert_int_equal(list.items[0].figures[TN_FIGURE_TOTAL], 8 * GIB);
	assert_int_equal(list.items[0].cause, TN_CAUSE_TOO_BIG);

	scan(
		"Out of memory error on GPU 1. Cannot allocate 64.000000MB memory on GPU 1, 8.000000GB memory has been allocated "
		"and available memory is only 0.000000B.\n",
		&list);
	assert_int_equal(list.items[0].figures[TN_FIGURE_FREE], 0);
	assert_int_equal(list.items[0].cause, TN_CAUSE_MODEL_OR_BATCH);

	scan(
		"RuntimeError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 10.00 GiB total capacity; 4.00 GiB already "
		"allocated; 0.50 GiB free; 9.00 GiB resrved in total)\n",
		&list);
	assert_int_equal(list.items[0].figures[TN_FIGURE_RESERVED], 9 * GIB);
	assert_int_equal(list.items[0].cause, TN_CAUSE_FRAGMENTATION);

	scan("ResourceExhaustedError: OOM when allocating tensor with shape[8,64] and type float on "
	     "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"
	     "\t [[Node: net/block_1/Relu = Relu[T=DT_FLOAT, _device=\"/device:GPU:0\"](net/x)]]\n"
	     "\t [[Node: net/out/_7 = _Recv[recv_device=\"/device:CPU:0\"]()]]\n"
	     "ResourceExhaustedError: OOM when allocating tensor with shape[8,64] and type float\n",
	     &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].kind, TN_KIND_CUDA);
	assert_int_equal(list.items[0].phase, TN_AT_FORWARD);
	assert_string_equal(list.items[0].framework, "tensorflow");

	scan("Traceback (most recent call last):\n"
	     "  File \"fit.py\", line 3, in <module>\n"
	     "    near = torch.from_numpy(points).cuda()\n"
	     "MemoryError: bad allocation: cudaErrorMemoryAllocation: out of memory\n",
	     &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].kind, TN_KIND_CUDA);
	assert_int_equal(list.items[0].cause, TN_CAUSE_UNKNOWN);
	assert_string_equal(list.items[0].framework, "pytorch");
}

/* What only a folder, a file's name, a node's name or the code of a frame tells. */
static void
test_places(void **state)
{
	static const char end[] = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
	static const struct {
		const char *frames;
		enum tn_at phase;
		const char *framework;
	} texts[] = {
		{ "Traceback (most recent call last):\n  File \"run.py\", line 3, in main\n    score = evaluate(net, held_out)\n",
		  TN_AT_EVALUATION, "pytorch" },
		{ "Traceback (most recent call last):\n  File \"ops/chunked_cross_entropy.py\", line 3, in forward\n    a = b * c\n",
		  TN_AT_LOSS, "pytorch" },
		{ "OutOfMemoryError                          Traceback (most recent call last)\n"
		  "[/content/tool-main/tool/misc.py](https://localhost:8080/#) in load_frames(path, size)\n"
		  "     12     many = read(path)\n---> 13     many = many / 255\n\n",
		  TN_AT_DATA, "pytorch" },
	};
	struct list list;
	char text[2048];
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", texts[i].frames, end);
		scan(text, &list);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.items[0].phase, texts[i].phase);
		assert_string_equal(list.items[0].framework, texts[i].framework);
	}
	scan("SomeLoader\nAllocation on device\n\ntorch.OutOfMemoryError: Allocation on device\n", &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].phase, TN_AT_LOAD);
	assert_string_equal(list.items[0].framework, "comfyui");

	scan(
		"W external/org_tensorflow/tensorflow/core/common_runtime/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of "
		"memory trying to allocate 1.00GiB (rounded to 1073741824)requested by op\n",
		&list);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.items[0].framework, "jax");
}

/* A title, the thread's words, and then the same error whole: one error, with its figures. */
static void
test_title(void **state)
{
	char text[4096] = "RuntimeError: CUDA out of memory\n";
	struct list list;
	(void)state;
	for (int i = 0; i < 30; i++)
		strcat(text, "I tried this and that.\n");
	strcat(text, typical);
	scan(text, &list);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].figures[TN_FIGURE_TOTAL], 10 * GIB);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces), cmocka_unit_test(test_stopping), cmocka_unit_test(test_many_processes),
		cmocka_unit_test(test_window), cmocka_unit_test(test_figures),  cmocka_unit_test(test_whose_code),
		cmocka_unit_test(test_ranks),  cmocka_unit_test(test_rules),    cmocka_unit_test(test_cut_and_mixed),
		cmocka_unit_test(test_title),  cmocka_unit_test(test_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
