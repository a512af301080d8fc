/* SPDX-License-Identifier: Apache-2.0
 *
 * What the real cuDNN says of convolutions, asked without Tonnage: this program shares no source with it.
 *
 *     oracle LIBCUDNN CARD.json|device [all|engines] <CALLS
 *
 * "device" asks with a handle on this machine's card instead, as a program that runs on it does.
 *
 * Each line of CALLS is one call as PyTorch makes it: direction (0 forward, 1 data, 2 filter gradient), data type
 * (cudnnDataType_t), alignment, TF32 allowed (0, 1), then sizes and strides of x, w and y (four each), padding, stride,
 * dilation (two each). Answers with a line each: the workspace of the plan that PyTorch takes without benchmark mode,
 * which is the first of the instant heuristics, else of the fallback list, that passes its filter and can be finalised
 * (aten/src/ATen/native/cudnn/Conv_v8.cpp); "none" where there is none. With "all", those of all plans of both lists,
 * each of which benchmark mode tries. With "engines", a line for each configuration that the heuristics list, instead:
 * mode, engine, its knobs, notes and behaviour notes by number, whether PyTorch leaves it out, and the workspace of its
 * plan, or the status of the refusal; and an empty line after each call.
 */
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __typeof__(cudnnBackendCreateDescriptor) *create;
static __typeof__(cudnnBackendDestroyDescriptor) *destroy;
static __typeof__(cudnnBackendFinalize) *finalize;
static __typeof__(cudnnBackendSetAttribute) *set_attribute;
static __typeof__(cudnnBackendGetAttribute) *get_attribute;

static char card[8192];
static cudnnHandle_t handle;                /* asked with when there is a card */
static cudnnBackendDescriptor_t properties; /* else */

struct call {
	int direction, type, alignment, tf32;
	int64_t sizes[3][4], strides[3][4], padding[2], stride[2], dilation[2];
};

static void
must(cudnnStatus_t status, const char *what)
{
	if (status == CUDNN_STATUS_SUCCESS)
		return;
	fprintf(stderr, "oracle: %s: status %d\n", what, (int)status);
	exit(1);
}

static cudnnBackendDescriptor_t
make(cudnnBackendDescriptorType_t type)
{
	cudnnBackendDescriptor_t made;
	must(create(type, &made), "create");
	return made;
}

static void
set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
    int64_t count, const void *values)
{
	must(set_attribute(descriptor, name, type, count, values), "set");
}

static void
set_one(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t child)
{
	set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &child);
}

static cudnnBackendDescriptor_t
make_tensor(const struct call *call, int which)
{
	cudnnBackendDescriptor_t tensor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	cudnnDataType_t type = (cudnnDataType_t)call->type;
	int64_t id = "xwy"[which], alignment = call->alignment;
	set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, call->sizes[which]);
	set(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, call->strides[which]);
	set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
	set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	must(finalize(tensor), "tensor");
	return tensor;
}

static cudnnBackendDescriptor_t
make_graph(const struct call *call)
{
	static const struct {
		cudnnBackendDescriptorType_t type;
		cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
	} kinds[3] = {
		{ CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y },
		{ CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY },
		{ CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
		  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY },
	};
	const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const int64_t dimensions = 2;
	const float alpha = 1, beta = 0;
	cudnnBackendDescriptor_t convolution = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	set(convolution, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
	set(convolution, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	set(convolution, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
	set(convolution, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, call->padding);
	set(convolution, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, call->padding);
	set(convolution, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, call->stride);
	set(convolution, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, call->dilation);
	must(finalize(convolution), "convolution");
	cudnnBackendDescriptor_t operation = make(kinds[call->direction].type);
	set(operation, kinds[call->direction].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
	set(operation, kinds[call->direction].beta, CUDNN_TYPE_FLOAT, 1, &beta);
	set_one(operation, kinds[call->direction].convolution, convolution);
	set_one(operation, kinds[call->direction].x, make_tensor(call, 0));
	set_one(operation, kinds[call->direction].w, make_tensor(call, 1));
	set_one(operation, kinds[call->direction].y, make_tensor(call, 2));
	must(finalize(operation), "operation");
	cudnnBackendDescriptor_t graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set_one(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
	if (handle != NULL)
		set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	must(finalize(graph), "graph");
	return graph;
}

/* PyTorch leaves out engines that round inputs of fp32, and tensor cores where TF32 is not allowed. */
static int
is_filtered(const struct call *call, cudnnBackendDescriptor_t configuration)
{
	cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	cudnnBackendNumericalNote_t notes[16];
	int64_t count = 0, found;
	int down = 0, tensor_cores = 0;
	must(get_attribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &engine),
	     "engine");
	must(get_attribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 16, &count, notes),
	     "notes");
	for (int64_t i = 0; i < count; i++) {
		down |= notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
		tensor_cores |= notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
	}
	destroy(engine);
	if (call->type != CUDNN_DATA_FLOAT && call->tf32)
		return 0;
	return down || (!call->tf32 && tensor_cores);
}

/* What a configuration has a list of numbers for: engine's notes, or knobs. */
static void
print_numbers(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type)
{
	int numbers[64] = { 0 };
	int64_t count = 0;
	if (get_attribute(of, name, type, 64, &count, numbers) != CUDNN_STATUS_SUCCESS)
		count = 0;
	putchar(' ');
	for (int64_t i = 0; i < count; i++)
		printf("%s%d", i > 0 ? "," : "", numbers[i]);
	if (count == 0)
		putchar('-');
}

static void
print_knobs(cudnnBackendDescriptor_t configuration)
{
	cudnnBackendDescriptor_t knobs[64];
	int64_t count = 0;
	for (int i = 0; i < 64; i++)
		knobs[i] = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
	if (get_attribute(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, 64, &count,
	                  knobs) != CUDNN_STATUS_SUCCESS)
		count = 0;
	putchar(' ');
	for (int64_t i = 0; i < count; i++) {
		cudnnBackendKnobType_t type = 0;
		int64_t value = 0, found;
		(void)get_attribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &found, &type);
		(void)get_attribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &found, &value);
		printf("%s%d=%lld", i > 0 ? "," : "", (int)type, (long long)value);
	}
	if (count == 0)
		putchar('-');
	for (int i = 0; i < 64; i++)
		destroy(knobs[i]);
}

static void
print_engine(cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t configuration, int filtered, cudnnStatus_t status,
             int64_t workspace)
{
	cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	int64_t index = -1, found;
	must(get_attribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &engine),
	     "engine");
	(void)get_attribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &found, &index);
	printf("%s %lld", mode == CUDNN_HEUR_MODE_FALLBACK ? "fallback" : "instant", (long long)index);
	print_knobs(configuration);
	print_numbers(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
	print_numbers(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
	printf(" %s", filtered ? "left_out" : "taken");
	if (status == CUDNN_STATUS_SUCCESS)
		printf(" %lld\n", (long long)workspace);
	else
		printf(" refused:%d\n", (int)status);
	destroy(engine);
}

static cudnnStatus_t
make_plan(cudnnBackendDescriptor_t configuration, int64_t *workspace)
{
	cudnnBackendDescriptor_t plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	int64_t found;
	set_one(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
	if (handle != NULL)
		set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	else
		set_one(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
	cudnnStatus_t status = finalize(plan);
	if (status == CUDNN_STATUS_SUCCESS)
		must(get_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &found, workspace),
		     "workspace");
	destroy(plan);
	return status;
}

/* The workspaces of the plans of a mode, at most `most`; how many. */
static int
plans(const struct call *call, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode, int engines, int64_t *out,
      int most)
{
	cudnnBackendDescriptor_t results[256], heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int64_t count = 0, given = 0;
	int made = 0;
	set_one(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	if (handle == NULL)
		set_one(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
	if (finalize(heuristics) != CUDNN_STATUS_SUCCESS)
		return 0;
	must(get_attribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL),
	     "count");
	for (int64_t i = 0; i < count && i < 256; i++)
		results[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	must(
		get_attribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &given, results),
		"results");
	for (int64_t i = 0; i < given && made < most; i++) {
		int filtered = is_filtered(call, results[i]);
		if (filtered && !engines)
			continue;
		cudnnStatus_t status = make_plan(results[i], &out[made]);
		if (engines)
			print_engine(mode, results[i], filtered, status, out[made]);
		if (status == CUDNN_STATUS_SUCCESS)
			made++;
	}
	return made;
}

static void
answer(const struct call *call, const char *how)
{
	int64_t workspaces[512];
	int engines = strcmp(how, "engines") == 0, all = engines || strcmp(how, "all") == 0;
	cudnnBackendDescriptor_t graph = make_graph(call);
	int count = plans(call, graph, CUDNN_HEUR_MODE_INSTANT, engines, workspaces, all ? 256 : 1);
	if (all || count == 0)
		count += plans(call, graph, CUDNN_HEUR_MODE_FALLBACK, engines, workspaces + count, all ? 256 : 1);
	if (!engines && count == 0)
		printf("none");
	for (int i = 0; !engines && i < count; i++)
		printf("%s%lld", i > 0 ? " " : "", (long long)workspaces[i]);
	puts("");
	fflush(stdout);
}

static void *
must_open(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "oracle: %s\n", dlerror());
		exit(1);
	}
	return library;
}

/* Without a driver cuDNN leaves its compiled engines out of every answer, and does not say so. */
static void *
open_library(const char *path)
{
	(void)must_open("libcuda.so.1");
	void *library = must_open(path);
	create = dlsym(library, "cudnnBackendCreateDescriptor");
	destroy = dlsym(library, "cudnnBackendDestroyDescriptor");
	finalize = dlsym(library, "cudnnBackendFinalize");
	set_attribute = dlsym(library, "cudnnBackendSetAttribute");
	get_attribute = dlsym(library, "cudnnBackendGetAttribute");
	return library;
}

static void
take_device(void *library)
{
	__typeof__(cudnnCreate) *create_handle = dlsym(library, "cudnnCreate");
	must(create_handle(&handle), "cudnnCreate");
}

static void
take_card(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t length = file != NULL ? fread(card, 1, sizeof(card) - 1, file) : 0;
	if (length == 0) {
		fprintf(stderr, "oracle: %s cannot be read\n", path);
		exit(2);
	}
	fclose(file);
	properties = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
	set(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)length, card);
	must(finalize(properties), "properties");
}

static int
read_numbers(int64_t *into, int count)
{
	long long number;
	for (int i = 0; i < count; i++) {
		if (scanf("%lld", &number) != 1)
			return 0;
		into[i] = number;
	}
	return 1;
}

static int
read_call(struct call *call)
{
	if (scanf("%d %d %d %d", &call->direction, &call->type, &call->alignment, &call->tf32) != 4)
		return 0;
	for (int i = 0; i < 3; i++)
		if (!read_numbers(call->sizes[i], 4) || !read_numbers(call->strides[i], 4))
			return 0;
	return read_numbers(call->padding, 2) && read_numbers(call->stride, 2) && read_numbers(call->dilation, 2);
}

int
main(int argc, char **argv)
{
	struct call call;
	if (argc < 3)
		return fprintf(stderr, "usage: oracle LIBCUDNN CARD.json|device [all|engines] <CALLS\n"), 2;
	void *library = open_library(argv[1]);
	if (strcmp(argv[2], "device") == 0)
		take_device(library);
	else
		take_card(argv[2]);
	while (read_call(&call))
		answer(&call, argc > 3 ? argv[3] : "first");
	return 0;
}
