# SPDX-License-Identifier: Apache-2.0
"""Matrices that bitsandbytes has quantised to four bits, from a checkpoint of which only the headers are there.

What such a matrix was (its shape and type, the sizes of its blocks) bitsandbytes keeps as JSON in a small tensor beside it. Of a
file without values that tensor reads as zeros. What it would say is known otherwise: the shape from the layer that takes the
matrix, sizes of blocks from how many scales there are, the type from the largest tensor of the same files that is kept in a
floating type (embeddings, heads), and how it was quantised from the tensor's own name.
"""

import functools
import json
import os
import struct
import sys
import threading

from . import guard, imports
from .state import settings

_SETTINGS = "quant_state.bitsandbytes__"
_TYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_FRAMES = 6  # how far up a loader may hold the layer

_now = threading.local()  # the matrix that is being restored on this thread


def install():
    """Takes the two functions over as bitsandbytes is imported."""
    imports.watch("bitsandbytes.functional", guard.guarded(_watch_settings))
    imports.watch("bitsandbytes.nn.modules", guard.guarded(_watch_matrices))


def _watch_settings(module):
    original = module.unpack_tensor_to_dict

    @functools.wraps(original)
    def unpack_tensor_to_dict(tensor_data):
        try:
            return original(tensor_data)
        except ValueError:
            known = _settings() if not any(bytes(tensor_data.cpu().numpy())) else None
            if known is None:
                raise
            return known

    module.unpack_tensor_to_dict = unpack_tensor_to_dict


def _watch_matrices(module):
    original = module.Params4bit.__dict__["from_prequantized"].__func__

    @functools.wraps(original)
    def from_prequantized(cls, data, quantized_stats, *args, **kwargs):
        _now.matrix = data.numel() * data.element_size(), _sizes(quantized_stats), kwargs.get("module")
        try:
            return original(cls, data, quantized_stats, *args, **kwargs)
        finally:
            _now.matrix = None

    module.Params4bit.from_prequantized = classmethod(from_prequantized)


def _sizes(stats):
    """How many numbers each of the tensors beside a matrix has, by the last part of its name: no tensor is held."""
    return {name.rpartition(".")[2]: value.numel() for name, value in stats.items() if hasattr(value, "numel")}


def _settings():
    """What bitsandbytes would have packed; None where that cannot be told."""
    size, sizes, layer = getattr(_now, "matrix", None) or (0, {}, None)
    numbers, scales = 2 * size, sizes.get("absmax")
    kind = next((name.partition("__")[2] for name in sizes if name.startswith("bitsandbytes__")), None)
    shape, dtype = _shape(numbers, layer), _type_kept(settings.run)
    if not (scales and kind and shape and dtype):
        return None
    known = {"quant_type": kind, "blocksize": _block(numbers, scales), "dtype": dtype, "shape": shape}
    if sizes.get("nested_absmax"):
        known.update(nested_blocksize=_block(scales, sizes["nested_absmax"]), nested_dtype="float32", nested_offset=0.0)
    return known


def _block(numbers, blocks):
    """Sizes of blocks are powers of two; the last block may be short."""
    return 1 << (-(-numbers // blocks) - 1).bit_length()


def _shape(numbers, layer):
    """Of the layer that is said to take the matrix, else of one that a loader up the stack has at hand."""
    shape = _fits(layer, numbers)
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        frame = frame.f_back
        if shape is not None or frame is None:
            break
        shape = next(filter(None, (_fits(value, numbers) for value in frame.f_locals.values())), None)
    return shape


def _fits(layer, numbers):
    out, into = getattr(layer, "out_features", None), getattr(layer, "in_features", None)
    return [out, into] if type(out) is int and type(into) is int and out * into == numbers else None


@functools.lru_cache(maxsize=None)
def _type_kept(run):
    """The type of the largest floating tensor beside the quantised ones, in the files that are stood in for; None without any."""
    largest, found = 0, None
    for header in _headers(run):
        if not any(_SETTINGS in name for name in header):
            continue
        for name, row in header.items():
            begin, end = row.get("data_offsets", (0, 0))
            scales = "absmax" in name or "quant_map" in name
            if row.get("dtype") in _TYPES and not scales and end - begin > largest:
                largest, found = end - begin, _TYPES[row["dtype"]]
    return found


def _headers(run):
    try:
        with open(os.path.join(run, "state", "weights-names")) as names:
            paths = names.read().splitlines()
    except OSError:
        return
    for path in paths:
        try:
            with open(path, "rb") as file:
                header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        except (OSError, ValueError, struct.error):
            continue  # no safetensors
        yield header
