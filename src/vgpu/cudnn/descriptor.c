/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of descriptors and attributes: see descriptor.h.
 */
#include "vgpu/cudnn/descriptor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dnn/wire.h"

enum { MOST_ELEMENTS = 1 << 24 }; /* no real descriptor holds more; keeps sizes far from overflow */

static const struct {
	int type, first, last;
} ranges[] = {
#define DNN_RANGE(name, number, first, last) { number, first, last },
	DNN_BACKEND_LIST(DNN_RANGE) DNN_LATER_BACKEND_LIST(DNN_RANGE)
#undef DNN_RANGE
};
enum { RANGES = sizeof(ranges) / sizeof(ranges[0]) };

bool
tn__dnn_descriptor_type_known(int type)
{
	for (int i = 0; i < RANGES; i++) {
		if (ranges[i].type == type)
			return true;
	}
	return false;
}

static bool
belongs(int type, int name)
{
	for (int i = 0; i < RANGES; i++) {
		if (ranges[i].type == type && name >= ranges[i].first && name <= ranges[i].last)
			return true;
	}
	return false;
}

struct tn__dnn_descriptor *
tn__dnn_descriptor_new(int type)
{
	struct tn__dnn_descriptor *descriptor = calloc(1, sizeof(*descriptor));
	if (descriptor == NULL)
		return NULL;
	descriptor->type = type;
	atomic_init(&descriptor->references, 1);
	return descriptor;
}

static void
free_attribute(struct tn__dnn_attribute *attribute)
{
	if (attribute->type == DNN_TYPE_BACKEND_DESCRIPTOR) {
		struct tn__dnn_descriptor **children = attribute->elements;
		for (int64_t i = 0; i < attribute->count; i++)
			tn__dnn_descriptor_release(children[i]);
	}
	free(attribute->elements);
	free(attribute);
}

static void
free_attributes(struct tn__dnn_attribute *attribute)
{
	for (struct tn__dnn_attribute *next; attribute != NULL; attribute = next) {
		next = attribute->next;
		free_attribute(attribute);
	}
}

void
tn__dnn_descriptor_release(struct tn__dnn_descriptor *descriptor)
{
	if (descriptor == NULL || atomic_fetch_sub(&descriptor->references, 1) != 1)
		return;
	free_attributes(descriptor->attributes);
	free(descriptor->plan);
	free(descriptor);
}

/* Contained descriptors must be there and finalized. */
static int
check_children(int64_t count, struct tn__dnn_descriptor *const *children)
{
	for (int64_t i = 0; i < count; i++) {
		DNN_REQUIRE(children[i] != NULL, DNN_STATUS_BAD_PARAM_NULL_POINTER, "a contained descriptor is null");
		DNN_REQUIRE(children[i]->finalized, DNN_STATUS_BAD_PARAM_NOT_FINALIZED,
		            "a contained descriptor is not finalized");
	}
	return DNN_STATUS_SUCCESS;
}

static int
check_attribute(const struct tn__dnn_descriptor *descriptor, int name, int type, int64_t count, const void *elements)
{
	DNN_REQUIRE(belongs(descriptor->type, name), DNN_STATUS_BAD_PARAM, "attribute %d is none of descriptor type %d",
	            name, descriptor->type);
	DNN_REQUIRE(tn__dnn_element_bytes(type) != 0, DNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "unknown attribute type %d",
	            type);
	DNN_REQUIRE(count >= 0 && count <= MOST_ELEMENTS, DNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute %d: %lld elements",
	            name, (long long)count);
	DNN_REQUIRE(count == 0 || elements != NULL, DNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: no elements", name);
	return type == DNN_TYPE_BACKEND_DESCRIPTOR ? check_children(count, elements) : DNN_STATUS_SUCCESS;
}

static struct tn__dnn_attribute *
new_attribute(int name, int type, int64_t count, const void *elements)
{
	size_t bytes = (size_t)count * tn__dnn_element_bytes(type);
	struct tn__dnn_attribute *attribute = calloc(1, sizeof(*attribute));
	if (attribute == NULL)
		return NULL;
	if (bytes != 0 && (attribute->elements = malloc(bytes)) == NULL) {
		free(attribute);
		return NULL;
	}
	attribute->name = name;
	attribute->type = type;
	attribute->count = count;
	if (bytes != 0)
		memcpy(attribute->elements, elements, bytes);
	if (type == DNN_TYPE_BACKEND_DESCRIPTOR) {
		struct tn__dnn_descriptor **children = attribute->elements;
		for (int64_t i = 0; i < count; i++)
			atomic_fetch_add(&children[i]->references, 1);
	}
	return attribute;
}

int
tn__dnn_attribute_set(struct tn__dnn_descriptor *descriptor, int name, int type, int64_t count, const void *elements)
{
	DNN_FORWARD(check_attribute(descriptor, name, type, count, elements));
	struct tn__dnn_attribute *attribute = new_attribute(name, type, count, elements);
	DNN_REQUIRE(attribute != NULL, DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of memory");
	for (struct tn__dnn_attribute **link = &descriptor->attributes; *link != NULL; link = &(*link)->next) {
		if ((*link)->name != name)
			continue;
		struct tn__dnn_attribute *old = *link;
		*link = old->next;
		free_attribute(old);
		break;
	}
	attribute->next = descriptor->attributes;
	descriptor->attributes = attribute;
	return DNN_STATUS_SUCCESS;
}

const struct tn__dnn_attribute *
tn__dnn_attribute_any(const struct tn__dnn_descriptor *descriptor, int name)
{
	const struct tn__dnn_attribute *attribute = descriptor == NULL ? NULL : descriptor->attributes;
	while (attribute != NULL && attribute->name != name)
		attribute = attribute->next;
	return attribute;
}

const struct tn__dnn_attribute *
tn__dnn_attribute_find(const struct tn__dnn_descriptor *descriptor, int name, int type)
{
	const struct tn__dnn_attribute *attribute = tn__dnn_attribute_any(descriptor, name);
	return attribute != NULL && attribute->type == type ? attribute : NULL;
}

int64_t
tn__dnn_int64(const struct tn__dnn_descriptor *descriptor, int name, int64_t otherwise)
{
	const struct tn__dnn_attribute *attribute = tn__dnn_attribute_find(descriptor, name, DNN_TYPE_INT64);
	return attribute == NULL || attribute->count == 0 ? otherwise : *(const int64_t *)attribute->elements;
}

bool
tn__dnn_boolean(const struct tn__dnn_descriptor *descriptor, int name, bool otherwise)
{
	const struct tn__dnn_attribute *attribute = tn__dnn_attribute_find(descriptor, name, DNN_TYPE_BOOLEAN);
	return attribute == NULL || attribute->count == 0 ? otherwise : *(const uint8_t *)attribute->elements != 0;
}

struct tn__dnn_descriptor *
tn__dnn_child(const struct tn__dnn_descriptor *descriptor, int name)
{
	const struct tn__dnn_attribute *attribute = tn__dnn_attribute_find(descriptor, name, DNN_TYPE_BACKEND_DESCRIPTOR);
	return attribute == NULL || attribute->count == 0 ? NULL : *(struct tn__dnn_descriptor **)attribute->elements;
}

int
tn__dnn_descriptor_copy(struct tn__dnn_descriptor *target, const struct tn__dnn_descriptor *source)
{
	DNN_REQUIRE(target != NULL, DNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor to copy into");
	DNN_REQUIRE(target->type == source->type, DNN_STATUS_BAD_PARAM, "descriptor of type %d where %d is needed",
	            target->type, source->type);
	struct tn__dnn_attribute *old = target->attributes;
	target->attributes = NULL;
	free_attributes(old);
	const struct tn__dnn_attribute *attribute = source->attributes;
	for (; attribute != NULL; attribute = attribute->next)
		DNN_FORWARD(
			tn__dnn_attribute_set(target, attribute->name, attribute->type, attribute->count, attribute->elements));
	target->real = source->real;
	target->mode = source->mode;
	target->rank = source->rank;
	target->finalized = true;
	return DNN_STATUS_SUCCESS;
}
