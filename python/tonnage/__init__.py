# SPDX-License-Identifier: Apache-2.0
"""Tonnage: does a PyTorch program fit a GPU, and if not, where.

The work is done by the `tonnage` command. This package carries the guest hook (guest/), which the command puts in front
of the program's PYTHONPATH; it is not meant to be imported by programs.
"""

import os


def guest_folder():
    """The folder that the supervisor puts first on PYTHONPATH."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest")


with open(os.path.join(guest_folder(), "version")) as _file:  # the one place where it stands
    __version__ = _file.read().strip()


def load_ipython_extension(shell):
    """`%load_ext tonnage`: the magic %%tonnage."""
    from .magic import register

    register(shell)
