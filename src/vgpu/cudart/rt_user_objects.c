/* SPDX-License-Identifier: Apache-2.0 */
#include "vgpu/cudart/rt_user_objects.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "vgpu/cudart/rt.h"

struct user_object {
	void *data;
	cudaHostFn_t destroy;
	unsigned references;
};

struct retained {
	const void *owner; /* a graph or an executable */
	struct user_object *object;
	unsigned count;
};

static pthread_mutex_t retained_lock = PTHREAD_MUTEX_INITIALIZER;
static struct retained *retained;
static size_t retained_count, retained_capacity;

static bool
retain(const void *owner, struct user_object *object, unsigned count)
{
	if (!tn__array_room(&retained, &retained_capacity, retained_count + 1, sizeof(*retained), SIZE_MAX))
		return false;
	retained[retained_count++] = (struct retained){ .owner = owner, .object = object, .count = count };
	return true;
}

static void
unreference(struct user_object *object, unsigned count)
{
	pthread_mutex_lock(&retained_lock);
	object->references -= count < object->references ? count : object->references;
	bool last = object->references == 0;
	pthread_mutex_unlock(&retained_lock);
	if (!last)
		return;
	object->destroy(object->data);
	free(object);
}

void
tn__rt_release_objects(const void *owner)
{
	for (;;) {
		struct retained found = { 0 };
		pthread_mutex_lock(&retained_lock);
		for (size_t i = 0; i < retained_count && !found.owner; i++)
			if (retained[i].owner == owner) {
				found = retained[i];
				retained[i] = retained[--retained_count];
			}
		pthread_mutex_unlock(&retained_lock);
		if (!found.owner)
			return;
		unreference(found.object, found.count);
	}
}

void
tn__rt_share_objects(const void *executable, const void *graph)
{
	pthread_mutex_lock(&retained_lock);
	size_t count = retained_count;
	for (size_t i = 0; i < count; i++)
		if (retained[i].owner == graph && retain(executable, retained[i].object, 1))
			retained[i].object->references++;
	pthread_mutex_unlock(&retained_lock);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaUserObjectCreate(cudaUserObject_t *out, void *data, cudaHostFn_t destroy, unsigned int references,
                     unsigned int flags)
{
	if (!out || !destroy || references == 0)
		return rt(cudaErrorInvalidValue);
	struct user_object *object = malloc(sizeof(*object));
	if (!object)
		return rt(cudaErrorMemoryAllocation);
	*object = (struct user_object){ .data = data, .destroy = destroy, .references = references };
	*out = (cudaUserObject_t)object;
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	if (!object)
		return rt(cudaErrorInvalidValue);
	pthread_mutex_lock(&retained_lock);
	((struct user_object *)object)->references += count;
	pthread_mutex_unlock(&retained_lock);
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	if (!object)
		return rt(cudaErrorInvalidValue);
	unreference((struct user_object *)object, count);
	return cudaSuccess;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags)
{
	if (!graph || !object)
		return rt(cudaErrorInvalidValue);
	pthread_mutex_lock(&retained_lock);
	bool kept = retain(graph, (struct user_object *)object, count);
	if (kept && !(flags & cudaGraphUserObjectMove))
		((struct user_object *)object)->references += count;
	pthread_mutex_unlock(&retained_lock);
	return kept ? cudaSuccess : rt(cudaErrorMemoryAllocation);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count)
{
	return cudaUserObjectRelease(object, count);
}
