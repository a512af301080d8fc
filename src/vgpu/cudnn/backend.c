/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend (graph) API's entry points, on top of the descriptor store.
 *
 * Rules from NVIDIA's API reference: attributes are set before and read after finalizing; a query with a requested
 * count of 0 or without an array gives the number of elements; descriptors are answered by filling descriptors that
 * the caller made. The reference lets the count be larger than what was requested; we then give the number that was
 * written, so that nobody reads what is not there.
 */
#include "vgpu/cudnn/api.h"
#include "dnn/wire.h"
#include "vgpu/cudnn/engine.h"

#include <string.h>

int
cudnnBackendCreateDescriptor(int type, struct tn__dnn_descriptor **descriptor)
{
	DNN_REQUIRE_POINTER(descriptor);
	if (!tn__dnn_descriptor_type_known(type))
		return tn__refuse("cudnn", "unknown backend descriptor", DNN_STATUS_NOT_SUPPORTED);
	struct tn__dnn_descriptor *made = tn__dnn_descriptor_new(type);
	DNN_REQUIRE(made != NULL, DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of memory");
	*descriptor = made;
	return DNN_STATUS_SUCCESS;
}

int
cudnnBackendDestroyDescriptor(struct tn__dnn_descriptor *descriptor)
{
	tn__dnn_descriptor_release(descriptor);
	return DNN_STATUS_SUCCESS;
}

/* For memory that the program allocated itself, which we never have: creating has initialized already. */
int
cudnnBackendInitialize(struct tn__dnn_descriptor *descriptor)
{
	DNN_REQUIRE_POINTER(descriptor);
	return DNN_STATUS_SUCCESS;
}

int
cudnnBackendFinalize(struct tn__dnn_descriptor *descriptor)
{
	DNN_REQUIRE_POINTER(descriptor);
	if (!descriptor->finalized)
		DNN_FORWARD(tn__dnn_finalize(descriptor));
	descriptor->finalized = true;
	return DNN_STATUS_SUCCESS;
}

int
cudnnBackendSetAttribute(struct tn__dnn_descriptor *descriptor, int name, int type, int64_t count, const void *elements)
{
	DNN_REQUIRE_POINTER(descriptor);
	DNN_REQUIRE(!descriptor->finalized, DNN_STATUS_NOT_INITIALIZED, "attribute %d set after finalizing", name);
	return tn__dnn_attribute_set(descriptor, name, type, count, elements);
}

static int
answer_descriptors(const struct tn__dnn_attribute *attribute, int64_t count, struct tn__dnn_descriptor *const *into)
{
	for (int64_t i = 0; i < count; i++)
		DNN_FORWARD(tn__dnn_descriptor_copy(into[i], ((struct tn__dnn_descriptor **)attribute->elements)[i]));
	return DNN_STATUS_SUCCESS;
}

static const struct tn__dnn_plan *
plan_of(const struct tn__dnn_descriptor *descriptor)
{
	bool is_plan = descriptor != NULL && descriptor->type == DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
	               descriptor->finalized;
	return is_plan ? descriptor->plan : NULL;
}

int
cudnnBackendGetAttribute(const struct tn__dnn_descriptor *descriptor, int name, int type, int64_t requested,
                         int64_t *count, void *elements)
{
	DNN_REQUIRE_POINTER(descriptor);
	DNN_REQUIRE(descriptor->finalized, DNN_STATUS_NOT_INITIALIZED, "attribute %d read before finalizing", name);
	DNN_REQUIRE(requested >= 0, DNN_STATUS_BAD_PARAM, "attribute %d: %lld elements requested", name,
	            (long long)requested);
	const struct tn__dnn_attribute *attribute = tn__dnn_attribute_any(descriptor, name);
	DNN_REQUIRE(attribute != NULL, DNN_STATUS_NOT_SUPPORTED, "attribute %d is not set", name);
	DNN_REQUIRE(attribute->type == type, DNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d has type %d", name,
	            attribute->type);
	if (requested == 0 || elements == NULL) {
		DNN_REQUIRE_POINTER(count);
		*count = attribute->count;
		return DNN_STATUS_SUCCESS;
	}
	int64_t given = requested < attribute->count ? requested : attribute->count;
	if (type == DNN_TYPE_BACKEND_DESCRIPTOR)
		DNN_FORWARD(answer_descriptors(attribute, given, elements));
	else if (given > 0)
		memcpy(elements, attribute->elements, (size_t)given * tn__dnn_element_bytes(type));
	if (name == DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
		tn__note_wanted(plan_of(descriptor) ? plan_of(descriptor)->workspace : 0);
	if (count != NULL)
		*count = given;
	return DNN_STATUS_SUCCESS;
}

int
cudnnGetExecutionPlanWorkspaceSize(const struct tn__dnn_handle *handle, const struct tn__dnn_descriptor *plan,
                                   const struct tn__dnn_descriptor *variant_pack, size_t *bytes)
{
	(void)variant_pack; /* overridden shapes do not change the model's answer */
	DNN_REQUIRE_POINTER(handle);
	DNN_REQUIRE_POINTER(bytes);
	DNN_REQUIRE(plan_of(plan) != NULL, DNN_STATUS_BAD_PARAM, "not a finalized plan");
	*bytes = plan_of(plan)->workspace;
	tn__note_wanted(*bytes);
	return DNN_STATUS_SUCCESS;
}

int
cudnnBackendExecute(const struct tn__dnn_handle *handle, const struct tn__dnn_descriptor *descriptor,
                    const struct tn__dnn_descriptor *variant_pack)
{
	const struct tn__dnn_plan *plan = plan_of(descriptor);
	DNN_REQUIRE_POINTER(handle);
	DNN_REQUIRE(plan != NULL, DNN_STATUS_BAD_PARAM, "not a finalized plan");
	DNN_REQUIRE(variant_pack != NULL && variant_pack->type == DNN_BACKEND_VARIANT_PACK_DESCRIPTOR &&
	                variant_pack->finalized,
	            DNN_STATUS_BAD_PARAM, "not a finalized variant pack");
	const struct tn__dnn_attribute *workspace = tn__dnn_attribute_find(variant_pack, DNN_ATTR_VARIANT_PACK_WORKSPACE,
	                                                                   DNN_TYPE_VOID_PTR);
	bool given = workspace != NULL && workspace->count == 1 && *(void *const *)workspace->elements != NULL;
	DNN_REQUIRE(given || plan->workspace == 0, DNN_STATUS_BAD_PARAM_NULL_POINTER,
	            "the plan needs %llu bytes of workspace", (unsigned long long)plan->workspace);
	if (given)
		tn__note_workspace(TN_LIBRARY_CUDNN, *(void *const *)workspace->elements, plan->workspace);
	const struct tn__dnn_graph *graph = &plan->graph;
	const struct tn_effort effort = tn__dnn_effort(graph->flops, graph->flops_type, graph->bytes, plan->engine);
	uint64_t nanoseconds = tn__dnn_graph_time(graph, plan->engine);
	const struct tn__dnn_attribute *tensors = tn__dnn_attribute_find(variant_pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS,
	                                                                 DNN_TYPE_VOID_PTR);
	const struct tn_written written = { tensors ? tensors->elements : NULL, tensors ? (size_t)tensors->count : 0, 0 };
	return tn__dnn_put_written(handle, nanoseconds + nanoseconds / 128 * (uint64_t)plan->rank, &effort, &written);
}
