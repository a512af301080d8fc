# SPDX-License-Identifier: Apache-2.0
"""Files that are written past libc, where the write shield cannot see it (doc/design/0004-no-harm.md).

safetensors puts a finished file into its place by a direct system call. It gets a name inside the run folder instead,
and the last step is ours, through libc. Nothing is changed when the shield is off.
"""

import functools
import os

from . import imports
from .state import settings


def install():
    """Called once torch is imported."""
    if settings.run and os.environ.get("TONNAGE_WRITES") != "allow":
        imports.watch("safetensors", _watch_safetensors)


def _watch_safetensors(module):
    original = getattr(module, "serialize_file", None)
    if original is None:
        return

    @functools.wraps(original)
    def serialize_file(tensor_dict, filename, metadata=None):
        name = os.path.join(settings.run, "scratch/tmp", "safetensors-%d-%s" % (os.getpid(), os.urandom(4).hex()))
        try:
            original(tensor_dict, name, metadata)
            os.replace(name, filename)
        finally:
            if os.path.exists(name):
                os.unlink(name)

    module.serialize_file = serialize_file
