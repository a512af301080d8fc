# SPDX-License-Identifier: Apache-2.0
"""Memory that stands in for weights which are not there (doc/design/0023-weights.md): asked of the preloaded library."""

import ctypes

from .state import settings

_absent = None


def is_stand_in(address, size):
    """True when the memory lies in a mapping of a stand-in: zeros, but for what is there and what the program wrote."""
    global _absent
    if _absent is None:
        _absent = _find()
    return _absent(address, size) != 0


def _find():
    try:
        function = ctypes.CDLL(None).tn_weights_absent
    except (OSError, AttributeError):
        return lambda address, size: 0
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int
    return function if settings.run else lambda address, size: 0
