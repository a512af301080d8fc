# SPDX-License-Identifier: Apache-2.0
"""The virtual GPU of this process, called through ctypes. None where there is none (--gpu real)."""

import ctypes
import os

from .state import settings

TEXT, NUMBER = ctypes.c_char_p, ctypes.c_int


class _Library:
    """What was loaded."""

    __slots__ = ("handle",)

    def __init__(self):
        self.handle = None


_library = _Library()


def library():
    """libtonnage-vgpu.so, or None."""
    if _library.handle is None and settings.gpu == "virtual" and settings.library:
        path = os.path.join(settings.library, "libtonnage-vgpu.so")
        if os.path.exists(path):
            _library.handle = ctypes.CDLL(path)
    return _library.handle


def function(name, result, *arguments):
    """A function of the library with its types set, or None."""
    found = getattr(library(), name, None)
    if found is not None:
        found.restype, found.argtypes = result, arguments
    return found
