# SPDX-License-Identifier: Apache-2.0
"""Inference with weights in 16 bits. value: bf16 (default) or fp16."""

from . import weights

_TYPES = {"bf16": "torch.bfloat16", "fp16": "torch.float16"}
_HOW = "Convert the model before it moves to the device: `.to(%s)`; floating inputs as well."


def install(change):
    """Converts models that are moved."""
    kind = _TYPES.get(change.value or "bf16")
    if kind is None:
        change.cannot("knows bf16 and fp16 only")
        return
    weights.install(change, kind, _HOW % kind)
