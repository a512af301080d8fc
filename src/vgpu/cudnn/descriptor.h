/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend API's descriptors: one generic store of typed attributes for every descriptor type.
 *
 * Invariants: a finalized descriptor never changes, unless the program lets a query answer into it; an attribute that
 * holds descriptors keeps them alive (they are counted), so that the program may destroy its own handles in any
 * order; descriptors form no cycle, since only finalized ones can be put into another.
 * Must not know: what an attribute means, beyond which descriptor type its number belongs to.
 */
#ifndef TN_VGPU_CUDNN_DESCRIPTOR_H
#define TN_VGPU_CUDNN_DESCRIPTOR_H

#include "vgpu/cudnn/dnn.h"

struct tn__dnn_attribute {
	int name, type;
	int64_t count;
	void *elements; /* NULL when count is 0 */
	struct tn__dnn_attribute *next;
};

enum { DNN_RANK_UNLISTED = -1 }; /* it is no engine that the real one names (unlisted.h) */

struct tn__dnn_descriptor {
	int type; /* cudnnBackendDescriptorType_t */
	_Atomic int references;
	bool finalized;
	bool real;      /* engines and configurations: known to the real cuDNN, not to the model */
	int mode, rank; /* configurations of the real one: of which heuristics, and their place in its order */
	struct tn__dnn_attribute *attributes;
	void *plan; /* execution plans: what execute.c computed when it was finalized; freed with the descriptor */
};

/* A new descriptor with one reference; NULL without memory. `type` must be known. */
struct tn__dnn_descriptor *tn__dnn_descriptor_new(int type);
/* Gives one reference back; NULL is allowed. */
void tn__dnn_descriptor_release(struct tn__dnn_descriptor *descriptor);
bool tn__dnn_descriptor_type_known(int type);

/* Sets or replaces an attribute. Checks name and type against the descriptor's, and that contained descriptors are
 * finalized; not whether this descriptor is: callers do. */
int tn__dnn_attribute_set(struct tn__dnn_descriptor *descriptor, int name, int type, int64_t count,
                          const void *elements);

/* Finds an attribute that has the type asked for, else NULL. */
const struct tn__dnn_attribute *tn__dnn_attribute_find(const struct tn__dnn_descriptor *descriptor, int name, int type);
/* The same, whatever its type is. */
const struct tn__dnn_attribute *tn__dnn_attribute_any(const struct tn__dnn_descriptor *descriptor, int name);

/* One element of an attribute. The first two give `otherwise` when it is not set. */
int64_t tn__dnn_int64(const struct tn__dnn_descriptor *descriptor, int name, int64_t otherwise);
bool tn__dnn_boolean(const struct tn__dnn_descriptor *descriptor, int name, bool otherwise);
struct tn__dnn_descriptor *tn__dnn_child(const struct tn__dnn_descriptor *descriptor, int name);

/* Makes `target` (same type; what it held is dropped) a finalized copy of `source`. */
int tn__dnn_descriptor_copy(struct tn__dnn_descriptor *target, const struct tn__dnn_descriptor *source);

#endif
