/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime: variables of the program that live on the device.
 */
#include <pthread.h>

#include "vgpu/cudart/rt.h"
#include "base/array.h"

struct symbol {
	const void *host;
	uint64_t address;
	size_t size;
};

static struct symbol *symbols;
static size_t symbol_count, symbol_capacity;
static pthread_mutex_t symbols_lock = PTHREAD_MUTEX_INITIALIZER;

void
tn__rt_note_symbol(const void *host, size_t size)
{
	pthread_mutex_lock(&symbols_lock);
	if (tn__array_room(&symbols, &symbol_capacity, symbol_count + 1, sizeof(*symbols), SIZE_MAX))
		symbols[symbol_count++] = (struct symbol){ .host = host, .size = size };
	pthread_mutex_unlock(&symbols_lock);
}

/* Variables belong to their module, whose bytes are part of the context's figure: only an address is made up. */
static cudaError_t
find_symbol(const void *host, uint64_t *address, size_t *size)
{
	cudaError_t result = cudaErrorInvalidSymbol;
	pthread_mutex_lock(&symbols_lock);
	for (size_t i = 0; i < symbol_count && result != cudaSuccess; i++) {
		struct symbol *symbol = &symbols[i];
		if (symbol->host != host)
			continue;
		if (!symbol->address && tn__vmm_reserve(((symbol->size >> 21) + 1) << 21, 0, 0, &symbol->address) != 0)
			break;
		*address = symbol->address;
		*size = symbol->size;
		result = cudaSuccess;
	}
	pthread_mutex_unlock(&symbols_lock);
	return result;
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetSymbolAddress(void **pointer, const void *symbol)
{
	uint64_t address;
	size_t size;
	RT_ENTER();
	cudaError_t result = pointer ? find_symbol(symbol, &address, &size) : cudaErrorInvalidValue;
	if (result == cudaSuccess)
		*pointer = (void *)(uintptr_t)address;
	return rt(result);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaGetSymbolSize(size_t *size, const void *symbol)
{
	uint64_t address;
	RT_ENTER();
	return rt(size ? find_symbol(symbol, &address, size) : cudaErrorInvalidValue);
}

static cudaError_t
copy_symbol(const void *symbol, void *host, size_t bytes, size_t offset, bool to_symbol, cudaStream_t stream,
            bool asynchronous)
{
	uint64_t address;
	size_t size;
	RT_ENTER();
	cudaError_t result = find_symbol(symbol, &address, &size);
	if (result != cudaSuccess || offset > size || bytes > size - offset)
		return rt(result != cudaSuccess ? result : cudaErrorInvalidValue);
	uint64_t device = address + offset, other = rt_handle(host);
	return rt(tn__copy(to_symbol ? device : other, to_symbol ? other : device, bytes, rt_handle(stream), asynchronous));
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	return copy_symbol(symbol, (void *)(uintptr_t)from, count, offset, true, 0, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind,
                        cudaStream_t stream)
{
	return copy_symbol(symbol, (void *)(uintptr_t)from, count, offset, true, stream, true);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyFromSymbol(void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	return copy_symbol(symbol, to, count, offset, false, 0, false);
}

TN_EXPORT cudaError_t CUDARTAPI
cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                          cudaStream_t stream)
{
	return copy_symbol(symbol, to, count, offset, false, stream, true);
}
