# SPDX-License-Identifier: Apache-2.0
"""The whole model, its gradients and the optimizer's state in bfloat16.

The model is converted before it goes to the device. Inputs of a floating type are converted by a hook of the model,
what it returns for them goes back to float32.
"""

from . import weights

_HOW = "Convert the model before it moves to the device: `.to(torch.bfloat16)`; floating inputs as well."


def install(change):
    """Converts models that are moved."""
    weights.install(change, "torch.bfloat16", _HOW)
