/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of weights: where the bytes of each tensor lie, from the part of the file that describes them. Two formats:
 *
 * safetensors   8 bytes, the length N of the header (little-endian); N bytes of JSON: an object with one member a tensor,
 *               {"dtype", "shape", "data_offsets": [begin, end]}, offsets counted from the header's end, and
 *               "__metadata__"; then the tensors without holes (github.com/huggingface/safetensors, README, "Format";
 *               the header is at most 100 MB there).
 * PyTorch zip   what torch.save writes since 1.6: a zip archive, nothing compressed, the bytes of each storage in an entry
 *               <archive>/data/<key> (pytorch/docs/source/notes/serialization.rst, "Serialized file format for
 *               torch.save"; zip and its 64-bit form: PKWARE's APPNOTE.TXT 4.3 and 4.5.3).
 *
 * Pure: reads through the caller's function, allocates nothing, keeps no state. Bytes come from files of others and are not
 * trusted: every figure is checked before it is used.
 */
#ifndef TN_BASE_WEIGHTS_FILE_H
#define TN_BASE_WEIGHTS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN__LONGEST_HEADER 100000000u

/* Called for each tensor (or storage) with the file's bytes [begin, end) that hold it. */
typedef void tn__tensor_bytes(void *context, uint64_t begin, uint64_t end);

/* `header` is the JSON, `start` where the tensors begin in the file. False when it is no such header. *end is then the
 * file's whole length. Members that nobody knows are passed over. */
bool tn__safetensors_scan(const char *header, size_t size, uint64_t start, tn__tensor_bytes *each, void *context,
                          uint64_t *end);

/* Reads `size` bytes at `at`; false when they are not all there. */
typedef bool tn__read_at(void *context, uint64_t at, void *buffer, size_t size);

/* A zip archive of `length` bytes as torch.save writes it. False when it is none, or one that was not understood. */
bool tn__torch_zip_scan(uint64_t length, tn__read_at *read, void *reader, tn__tensor_bytes *each, void *context);

#endif
