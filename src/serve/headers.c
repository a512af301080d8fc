/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of a checkpoint's folder: headers of safetensors files, the index, or what the architecture says. Only headers are read,
 * so that files of header alone (a run's stand-ins) are as good as whole ones.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/figure.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/strings.h"
#include "base/weights_file.h"
#include "serve/architecture.h"
#include "serve/tensors.h"

#define LARGEST_INDEX (64u << 20)

void
tn__weights_add(struct tn_weights_list *list, const struct tn_served_model *model, const struct tn_tensor *tensor)
{
	struct tn_tensor_row row = tn__tensor_row(model, tensor);
	if (row.split == TN_SPLIT_ABSENT || row.bytes == 0)
		return;
	if (!tn__array_room(&list->rows, &list->capacity, list->count + 1, sizeof(*list->rows), TN_TENSORS_MOST)) {
		list->no_memory = true;
		return;
	}
	list->rows[list->count++] = row;
}

void
tn__weights_free(struct tn_weights_list *list)
{
	free(list->rows);
	list->rows = NULL;
	list->count = list->capacity = 0;
}

/* Bytes of one tensor of a file, from its numbers; false where they are too many or negative. */
static bool
read_shape(const json_t *shape, struct tn_tensor *tensor)
{
	int64_t numbers = 1;
	tensor->dimensions = 0;
	for (size_t i = 0; i < json_array_size(shape); i++) {
		json_int_t size = json_integer_value(json_array_get(shape, i));
		if (!json_is_integer(json_array_get(shape, i)) || size < 0 || (size > 0 && numbers > INT64_MAX / 64 / size))
			return false;
		numbers *= size;
		if (tensor->dimensions < TN_TENSOR_DIMENSIONS)
			tensor->shape[tensor->dimensions++] = size;
		else
			tensor->shape[TN_TENSOR_DIMENSIONS - 1] *= size;
	}
	return json_is_array(shape);
}

static tn_status
read_tensor(const char *path, const char *name, const json_t *value, struct tn_tensor *tensor, int64_t *stored)
{
	const char *type = tn__json_borrow_text(value, "dtype");
	const json_t *offsets = json_object_get(value, "data_offsets");
	json_int_t begin = json_integer_value(json_array_get(offsets, 0)),
			   end = json_integer_value(json_array_get(offsets, 1));
	snprintf(tensor->name, sizeof(tensor->name), "%s", name);
	snprintf(tensor->type, sizeof(tensor->type), "%s", type != NULL ? type : "");
	tensor->count = 1;
	bool sound = type != NULL && read_shape(json_object_get(value, "shape"), tensor) && json_array_size(offsets) == 2 &&
	             begin >= 0 && end >= begin;
	TN_RETURN_IF(!sound, TN_FORMAT, "the header of \"%s\" is damaged at the tensor \"%.80s\": copy the file again",
	             path, name);
	*stored += end - begin;
	return TN_OK;
}

static tn_status
read_header_json(const char *path, const json_t *header, const struct tn_served_model *model,
                 struct tn_weights_list *list)
{
	const char *name;
	json_t *value;
	TN_RETURN_IF(!json_is_object(header), TN_FORMAT, "the header of \"%s\" holds no object: copy the file again", path);
	json_object_foreach((json_t *)header, name, value) {
		struct tn_tensor tensor = { 0 };
		if (strcmp(name, "__metadata__") == 0)
			continue;
		TN_FORWARD_IF_ERROR(read_tensor(path, name, value, &tensor, &list->stored_bytes));
		tn__weights_add(list, model, &tensor);
	}
	return list->no_memory ? tn__fail(TN_LIMIT, "\"%s\" has more tensors than are looked at", path) : TN_OK;
}

static tn_status
read_header_text(FILE *file, const char *path, const struct tn_served_model *model, struct tn_weights_list *list)
{
	unsigned char head[8];
	uint64_t length = 0;
	TN_RETURN_IF(fread(head, 1, sizeof(head), file) != sizeof(head), TN_FORMAT,
	             "\"%s\" is too short for safetensors: copy the file again", path);
	for (int i = 7; i >= 0; i--)
		length = length << 8 | head[i];
	TN_RETURN_IF(length < 2 || length > TN__LONGEST_HEADER, TN_FORMAT,
	             "\"%s\" is no safetensors file: its header would have %" PRIu64
	             " bytes (a Git LFS pointer, or a broken copy)",
	             path, length);
	char *text = malloc((size_t)length);
	TN_RETURN_IF(text == NULL, TN_NO_MEMORY, "out of host memory");
	json_t *header = NULL;
	json_error_t error = { 0 };
	bool whole = fread(text, 1, (size_t)length, file) == length;
	if (whole)
		header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
	free(text);
	TN_RETURN_IF(!whole, TN_FORMAT, "\"%s\" ends inside its header: copy the file again", path);
	TN_RETURN_IF(header == NULL, TN_FORMAT, "the header of \"%s\" is damaged: copy the file again", path);
	tn_status status = read_header_json(path, header, model, list);
	json_decref(header);
	return status;
}

tn_status
tn__header_read(const char *path, const struct tn_served_model *model, struct tn_weights_list *list)
{
	FILE *file = fopen(path, "rb");
	TN_RETURN_IF(file == NULL, TN_IO, "cannot read \"%s\": %s", path, strerror(errno));
	tn_status status = read_header_text(file, path, model, list);
	fclose(file);
	list->files++;
	return status;
}

/* What else lies in the folder, for those who look for safetensors in vain. */
struct folder {
	json_t *index;    /* of safetensors, or NULL */
	bool has_files;   /* safetensors of any name */
	bool has_sharded; /* model-00001-of-00002.safetensors */
	bool has_pickles, has_gguf;
};

static tn_status
read_index(const char *path, json_t **index)
{
	FILE *file = fopen(path, "rb");
	json_error_t error;
	TN_RETURN_IF(file == NULL, TN_IO, "cannot read \"%s\": %s", path, strerror(errno));
	bool small = fseek(file, 0, SEEK_END) == 0 && ftell(file) >= 0 && ftell(file) <= (long)LARGEST_INDEX;
	rewind(file);
	*index = small ? json_loadf(file, 0, &error) : NULL;
	fclose(file);
	TN_RETURN_IF(!json_is_object(*index), TN_FORMAT, "\"%s\" is no index of weights: copy the file again", path);
	return TN_OK;
}

static void
look_at_name(const char *name, struct folder *folder)
{
	if (tn__ends_with(name, ".safetensors")) {
		folder->has_files = true;
		folder->has_sharded |= strstr(name, "-of-") != NULL;
	}
	folder->has_pickles |= tn__ends_with(name, ".bin") || tn__ends_with(name, ".pt") || tn__ends_with(name, ".pth");
	folder->has_gguf |= tn__ends_with(name, ".gguf");
}

static tn_status
look_into(const char *path, struct folder *folder)
{
	DIR *directory = opendir(path);
	char index[PATH_MAX] = "";
	TN_RETURN_IF(directory == NULL, TN_IO, "cannot read the folder \"%s\": %s", path, strerror(errno));
	for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
		look_at_name(entry->d_name, folder);
		if (tn__ends_with(entry->d_name, ".safetensors.index.json"))
			snprintf(index, sizeof(index), "%s/%s", path, entry->d_name);
	}
	closedir(directory);
	return index[0] != '\0' ? read_index(index, &folder->index) : TN_OK;
}

/* Mistral's own file holds the same weights once more, under other names: engines take the sharded ones. */
static bool
is_wanted(const char *name, const struct folder *folder)
{
	return tn__ends_with(name, ".safetensors") && !(folder->has_sharded && strncmp(name, "consolidated", 12) == 0);
}

static int
by_name(const void *first, const void *second)
{
	return strcmp(*(char *const *)first, *(char *const *)second);
}

/* The names of the safetensors files, sorted; freed with free_names. */
static char **
list_files(const char *path, const struct folder *folder, size_t *count)
{
	DIR *directory = opendir(path);
	char **names = NULL;
	size_t capacity = 0;
	*count = 0;
	for (struct dirent *entry = directory != NULL ? readdir(directory) : NULL; entry != NULL;
	     entry = readdir(directory))
		if (is_wanted(entry->d_name, folder) && tn__array_room(&names, &capacity, *count + 1, sizeof(*names), 65536)) {
			names[*count] = strdup(entry->d_name);
			*count += names[*count] != NULL;
		}
	if (directory != NULL)
		closedir(directory);
	if (*count > 0)
		qsort(names, *count, sizeof(*names), by_name);
	return names;
}

/* Does the index name a file that is not there? */
static bool
misses_files(const json_t *index, char *const *names, size_t count, char missing[96])
{
	const char *tensor;
	json_t *file;
	json_object_foreach(json_object_get(index, "weight_map"), tensor, file) {
		const char *name = json_string_value(file);
		if (name == NULL || (count > 0 && bsearch(&name, names, count, sizeof(*names), by_name) != NULL))
			continue;
		snprintf(missing, 96, "%s", name);
		tn__make_plain(missing, '?');
		return true;
	}
	return false;
}

static void
visit_known(void *context, const struct tn_tensor *tensor)
{
	struct {
		struct tn_weights_list *list;
		const struct tn_served_model *model;
	} *to = context;
	tn__weights_add(to->list, to->model, tensor);
}

struct measure {
	int64_t bytes;
};

/* As a file would store them: shared embeddings once, every number in its own type. */
static void
measure_known(void *context, const struct tn_tensor *tensor)
{
	int64_t numbers = tensor->count;
	for (int i = 0; i < tensor->dimensions; i++)
		numbers *= tensor->shape[i];
	((struct measure *)context)->bytes += numbers * tn__type_bits(tensor->type) / 8;
}

static void
use_architecture(const struct tn_served_model *model, struct tn_weights_list *list)
{
	struct {
		struct tn_weights_list *list;
		const struct tn_served_model *model;
	} to = { list, model };
	struct measure measure = { 0 };
	if (!tn__architecture_tensors(model, visit_known, &to, list->problem))
		return;
	(void)tn__architecture_tensors(model, measure_known, &measure, list->problem);
	list->source = TN_WEIGHTS_ARCHITECTURE;
	list->stored_bytes = measure.bytes;
}

/* The index has the sum; shapes come from the architecture where its sum agrees. */
static void
use_index(const json_t *index, const struct tn_served_model *model, struct tn_weights_list *list)
{
	int64_t total = tn__json_read_figure(json_object_get(index, "metadata"), "total_size");
	use_architecture(model, list);
	if (list->source == TN_WEIGHTS_ARCHITECTURE && (total == list->stored_bytes || total == TN_NO_FIGURE)) {
		list->source = TN_WEIGHTS_INDEX;
		return;
	}
	if (total == TN_NO_FIGURE)
		return;
	if (list->source == TN_WEIGHTS_ARCHITECTURE)
		snprintf(list->problem, sizeof(list->problem),
		         "the index says %" PRId64 " bytes, the architecture %" PRId64 ": the index is taken", total,
		         list->stored_bytes);
	list->count = 0;
	list->stored_bytes = total;
	if (!tn__array_room(&list->rows, &list->capacity, 1, sizeof(*list->rows), TN_TENSORS_MOST))
		return;
	list->rows[list->count++] = (struct tn_tensor_row){ .bytes = total, .split = TN_SPLIT_UNKNOWN };
	list->source = TN_WEIGHTS_TOTAL;
}

static tn_status
use_files(const char *path, char *const *names, size_t count, const struct tn_served_model *model,
          struct tn_weights_list *list)
{
	char file[PATH_MAX];
	list->stored_bytes = 0;
	for (size_t i = 0; i < count; i++) {
		TN_RETURN_IF(snprintf(file, sizeof(file), "%s/%s", path, names[i]) >= (int)sizeof(file), TN_NOT_FOUND,
		             "\"%s\" is too long for a path", path);
		TN_FORWARD_IF_ERROR(tn__header_read(file, model, list));
	}
	list->source = TN_WEIGHTS_HEADERS;
	return TN_OK;
}

static void
say_what_lies_there(const struct folder *folder, struct tn_weights_list *list)
{
	if (list->source != TN_WEIGHTS_UNKNOWN || (!folder->has_pickles && !folder->has_gguf))
		return;
	snprintf(list->problem, sizeof(list->problem),
	         "the weights are in %s files, whose sizes are not read: convert them to safetensors",
	         folder->has_gguf ? "GGUF" : "pickled (.bin)");
}

static tn_status
read_sources(const char *path, const struct tn_served_model *model, const struct folder *folder,
             struct tn_weights_list *list)
{
	size_t count = 0;
	char missing[96], **names = list_files(path, folder, &count);
	tn_status status = TN_OK;
	bool incomplete = folder->index != NULL && misses_files(folder->index, names, count, missing);
	if (count > 0 && !incomplete) {
		status = use_files(path, names, count, model, list);
	} else if (folder->index != NULL) {
		use_index(folder->index, model, list);
		if (count > 0 && list->problem[0] == '\0')
			snprintf(list->problem, sizeof(list->problem), "%s is missing: sizes come from the index", missing);
	} else {
		use_architecture(model, list);
	}
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return status;
}

tn_status
tn__weights_read(const char *path, const struct tn_served_model *model, struct tn_weights_list *out)
{
	struct folder folder = { 0 };
	*out = (struct tn_weights_list){ .stored_bytes = TN_NO_FIGURE };
	tn_status status = look_into(path, &folder);
	if (status == TN_OK)
		status = read_sources(path, model, &folder, out);
	if (status == TN_OK)
		say_what_lies_there(&folder, out);
	json_decref(folder.index);
	return status;
}
