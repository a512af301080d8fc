# SPDX-License-Identifier: Apache-2.0
"""Memory that stands in for weights which are not there (doc/design/0023-weights.md): asked of the preloaded library."""

import ctypes
import functools

from .state import settings


def is_stand_in(address, size):
    """True when the memory lies in a mapping of a stand-in: zeros, but for what is there and what the program wrote."""
    return _function()(address, size) != 0


@functools.lru_cache(maxsize=None)
def _function():
    try:
        function = ctypes.CDLL(None).tn_weights_absent
    except (OSError, AttributeError):
        return lambda address, size: 0
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int
    return function if settings.run else lambda address, size: 0
