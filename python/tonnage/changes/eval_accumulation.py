# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer moves the outputs of an evaluation to the host after each batch, not all at its end."""

from . import arguments


def install(change):
    """Sets eval_accumulation_steps where the user has not."""
    arguments.hugging_face(change, _wish)


def _wish(fields):
    return {"eval_accumulation_steps": 1} if fields.eval_accumulation_steps is None else {}
