/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel that nobody knows can write: memory that an argument points at. How many arguments there are, and which of
 * them are plain numbers or point at what is only read, is told by the kernel's signature, which its mangled name carries
 * and the C++ runtime spells out (__cxa_demangle). How large a structure is, is told by the kernel's code (src/code). Where
 * that is not at hand it ends at the latest where the next argument begins, or after the 4 KiB that parameters may have
 * (32,764 bytes since CUDA 12.1, which PyTorch's multi_tensor_apply uses); what is looked at too much is taken to be written.
 *
 * Not seen: addresses that lie in device memory themselves. Without its code a launch whose arguments are not on the calling
 * thread's stack, where the stubs of the CUDA compiler have them, or whose kernel has no C++ name, can write anything.
 *
 * Called with the core lock held.
 */
#include "vgpu/core/reach.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "code/code.h"

#define PARAMETERS_MAX 64
#define PARAMETER_BYTES 4096
#define LARGE_PARAMETER_BYTES 32764

enum { SIGNATURE_UNREAD, SIGNATURE_KNOWN, SIGNATURE_UNKNOWN };

/* ---- signatures ---- */

typedef char *(*demangle_function)(const char *mangled, char *buffer, size_t *length, int *status);

static demangle_function
demangler(void)
{
	static demangle_function function;
	static bool asked;
	if (!asked) {
		asked = true;
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
		if (!library)
			library = dlopen("libstdc++.so.6", RTLD_LAZY);
		void *found = library ? dlsym(library, "__cxa_demangle") : NULL;
		memcpy(&function, &found, sizeof(function));
	}
	return function;
}

/* The text between the parentheses that a signature ends with, in place; NULL: there are none. */
static char *
parameters_of(char *signature)
{
	size_t depth = 0, at = strlen(signature);
	if (at == 0 || signature[at - 1] != ')')
		return NULL;
	signature[at - 1] = '\0';
	for (depth = 1; depth > 0 && at-- > 0;) {
		if (signature[at] == ')')
			depth++;
		else if (signature[at] == '(')
			depth--;
	}
	return depth == 0 ? signature + at + 1 : NULL;
}

static bool
ends_with(const char *text, size_t length, const char *end)
{
	size_t wanted = strlen(end);
	return length >= wanted && memcmp(text + length - wanted, end, wanted) == 0;
}

/* at::cuda::detail::TensorInfo with 64-bit sizes: an address, 25 sizes, 25 strides, and how many. */
#define TENSOR_INFO_BYTES 416

/* A parameter of at most eight bytes, one that describes a tensor, and one that points at what is only read. */
static void
classify(struct tn_kernel *kernel, size_t number, const char *type, size_t length)
{
	static const char *const plain[] = {
		"int",    "unsigned int", "long",        "unsigned long", "long long", "unsigned long long", "bool", "float",
		"double", "char",         "signed char", "unsigned char", "short",     "unsigned short"
	};
	while (length > 0 && *type == ' ') {
		type++;
		length--;
	}
	static const char info[] = "at::cuda::detail::TensorInfo<";
	bool small = ends_with(type, length, "*") || ends_with(type, length, "&");
	bool read = ends_with(type, length, " const*") || ends_with(type, length, " const&");
	static const char dims[] = "TensorDims<";
	read |= memmem(type, length, dims, sizeof(dims) - 1) !=
	        NULL; /* holds sizes, and what was on the stack beyond them */
	static const char iterator[] = "transform_iterator<";
	read |= memmem(type, length, iterator, sizeof(iterator) - 1) && memmem(type, length, " const*,", 8);
	bool tensor = length > sizeof(info) && strncmp(type, info, sizeof(info) - 1) == 0;
	read |= tensor &&
	        (ends_with(type, length, " const, unsigned int>") || ends_with(type, length, " const, unsigned long>"));
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		read |= strlen(plain[i]) == length && memcmp(type, plain[i], length) == 0;
	kernel->signature.small |= (uint64_t)(small || read) << number;
	kernel->signature.tensor |= (uint64_t)tensor << number;
	kernel->signature.read |= (uint64_t)read << number;
}

static bool
read_parameters(struct tn_kernel *kernel, const char *parameters)
{
	const char *from = parameters;
	int depth = 0;
	size_t number = 0;
	if (*parameters == '\0')
		return true;
	for (const char *at = parameters;; at++) {
		if (*at == '\0' || (*at == ',' && depth == 0)) {
			if (number == PARAMETERS_MAX)
				return false;
			classify(kernel, number++, from, (size_t)(at - from));
			from = at + 1;
		}
		if (*at == '\0')
			break;
		if (strchr("<([{", *at))
			depth++;
		else if (strchr(">)]}", *at))
			depth--;
	}
	kernel->signature.count = (unsigned char)number;
	return depth == 0;
}

static void
read_signature(struct tn_kernel *kernel)
{
	int status = -1;
	demangle_function demangle = strncmp(kernel->name, "_Z", 2) == 0 ? demangler() : NULL;
	char *signature = demangle ? demangle(kernel->name, NULL, NULL, &status) : NULL;
	char *parameters = signature && status == 0 ? parameters_of(signature) : NULL;
	bool known = parameters && read_parameters(kernel, parameters);
	if (!known)
		kernel->signature.read = 0;
	kernel->signature.state = known ? SIGNATURE_KNOWN : SIGNATURE_UNKNOWN;
	kernel->signature.large = strstr(kernel->name, "multi_tensor_apply") != NULL;
	free(signature);
}

/* ---- code ---- */

static void
note_sizes(struct tn_kernel *kernel, const struct tn_code *code)
{
	uint16_t sizes[TN_CODE_PARAMETERS_MAX];
	int count = tn__code_parameters(code, kernel->name, sizes);
	kernel->signature.asked = true;
	kernel->signature.sizes = count > 0 ? malloc((size_t)count * sizeof(*sizes)) : NULL;
	if (!kernel->signature.sizes)
		return;
	memcpy(kernel->signature.sizes, sizes, (size_t)count * sizeof(*sizes));
	kernel->signature.sized = (unsigned char)count;
}

struct tn_code *
tn__module_code_open(const void *image)
{
	struct tn_code *code = NULL;
	return tn__code_open(image, SIZE_MAX, &code) == TN_OK ? code : NULL;
}

void
tn__module_code_close(struct tn_code *code)
{
	tn__code_close(code);
}

void
tn__kernel_learn(struct tn_kernel *kernel, const struct tn_code *code)
{
	tn__lock();
	if (!kernel->signature.asked)
		note_sizes(kernel, code);
	tn__unlock();
}

/* Unpacking a cubin takes milliseconds: it is done once for all kernels in it. */
static void
ask_code(struct tn_kernel *kernel)
{
	struct tn_code *code = NULL;
	kernel->signature.asked = true;
	if (!kernel->code || !kernel->code->image || tn__code_open(kernel->code->image, SIZE_MAX, &code) != TN_OK)
		return;
	tn__kernels_of_locked(kernel->code, note_sizes, code);
	tn__code_close(code);
}

/* Whether the name leaves open how large a parameter is. */
static bool
is_open(const struct tn_kernel *kernel)
{
	uint64_t told = kernel->signature.small | kernel->signature.read | kernel->signature.tensor;
	size_t count = kernel->signature.count;
	return kernel->signature.state == SIGNATURE_UNKNOWN || (count > 0 && ~told << (PARAMETERS_MAX - count));
}

/* Whether the code tells it. */
static bool
is_sized(const struct tn_kernel *kernel)
{
	return kernel->signature.sizes &&
	       (kernel->signature.state == SIGNATURE_UNKNOWN || kernel->signature.sized == kernel->signature.count);
}

/* ---- arguments ---- */

/* The end of the calling thread's stack; 0: not known. */
static uintptr_t
stack_end(void)
{
	static _Thread_local __attribute__((tls_model("initial-exec"))) uintptr_t end;
	pthread_attr_t attributes;
	void *base;
	size_t size;
	if (end == 0 && pthread_getattr_np(pthread_self(), &attributes) == 0) {
		if (pthread_attr_getstack(&attributes, &base, &size) == 0)
			end = (uintptr_t)base + size;
		pthread_attr_destroy(&attributes);
	}
	return end;
}

/* Where an argument ends: as its code says; else with its type, with the next argument, with the room of parameters. */
static uintptr_t
end_of(const struct tn_kernel *kernel, const struct tn_launch *launch, size_t number, uintptr_t limit)
{
	uintptr_t from = (uintptr_t)launch->arguments[number];
	if (is_sized(kernel))
		return from + kernel->signature.sizes[number];
	uintptr_t bytes = kernel->signature.small >> number & 1    ? sizeof(uint64_t)
	                  : kernel->signature.tensor >> number & 1 ? TENSOR_INFO_BYTES
	                  : kernel->signature.large                ? LARGE_PARAMETER_BYTES
	                                                           : PARAMETER_BYTES;
	uintptr_t end = bytes < limit - from ? from + bytes : limit, list = (uintptr_t)launch->arguments;
	for (size_t i = 0; i < kernel->signature.count; i++) {
		uintptr_t next = (uintptr_t)launch->arguments[i];
		if (next > from && next < end)
			end = next;
	}
	return list > from && list < end ? list : end;
}

static bool
add(struct tn_reach *reach, uint64_t address)
{
	if (!tn__on_device(address) || (reach->count > 0 && reach->addresses[reach->count - 1] == address))
		return true;
	if (reach->count == TN_REACH_MAX)
		return false;
	reach->addresses[reach->count++] = address;
	return true;
}

static bool
are_on_stack(const struct tn_kernel *kernel, const struct tn_launch *launch, uintptr_t limit)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	for (size_t i = 0; i < kernel->signature.count; i++)
		if ((uintptr_t)launch->arguments[i] < here || (uintptr_t)launch->arguments[i] >= limit)
			return false;
	return limit > 0;
}

/* Reads up to the end of the thread's stack at most, beyond an argument whose size is not known: not for a sanitizer. */
__attribute__((no_sanitize("address"))) bool
tn__reach_of(struct tn_kernel *kernel, const struct tn_launch *launch, struct tn_reach *out)
{
	uintptr_t limit = stack_end();
	out->count = 0;
	if (!launch->arguments)
		return false;
	if (kernel->signature.state == SIGNATURE_UNREAD)
		read_signature(kernel);
	if (!kernel->signature.asked && is_open(kernel))
		ask_code(kernel);
	bool named = kernel->signature.state == SIGNATURE_KNOWN, sized = is_sized(kernel);
	if (!sized && !(named && are_on_stack(kernel, launch, limit)))
		return false;
	size_t count = sized ? kernel->signature.sized : kernel->signature.count;
	for (size_t i = 0; i < count; i++) {
		if (kernel->signature.read >> i & 1)
			continue;
		uintptr_t end = end_of(kernel, launch, i, limit), from = ((uintptr_t)launch->arguments[i] + 7) & ~(uintptr_t)7;
		for (uint64_t word; from + sizeof(word) <= end; from += sizeof(word)) {
			memcpy(&word, (const void *)from, sizeof(word));
			if (kernel->signature.small >> i & 1)
				tn__values_written_at(word);
			if (!add(out, word))
				return false;
		}
	}
	return true;
}
