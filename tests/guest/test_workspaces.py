# SPDX-License-Identifier: Apache-2.0
"""Which failed allocation is a library's workspace, of what the virtual GPU says that libraries have asked for."""

import os
import pathlib
import sys

import pytest

os.environ.setdefault("TONNAGE_RUN", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tonnage/guest"))
from _tonnage_guest import memory_log, virtual  # noqa: E402

MIB = 1 << 20


@pytest.mark.parametrize("wanted, requested, is_one", [
    ([], 64 * MIB, False),
    ([64 * MIB], 64 * MIB, True),
    ([64 * MIB], 32 * MIB, True),  # tried next, where the whole was too large
    ([64 * MIB - 5], 64 * MIB, True),  # in pieces of 2 MiB
    ([64 * MIB], 48 * MIB, False),
    ([3 * MIB, 64 * MIB], 64 * MIB, True),  # of another plan
    ([3 * MIB], 20 * MIB, True),  # a segment of small sizes
    ([64 * MIB, 3 * MIB], 20 * MIB, False),  # which tells nothing, but for the plan that was asked about last
    ([64 * MIB], 20 * MIB, False),
    ([64 * MIB], 2 * MIB, False),
])  # fmt: skip
def test_a_size_that_was_asked_for_or_a_half_of_it(monkeypatch, wanted, requested, is_one):
    def tell(sizes, most):
        for index, size in enumerate(wanted):
            sizes[index] = size
        return len(wanted)

    monkeypatch.setattr(virtual, "function", lambda name, *types: tell)
    assert memory_log.is_workspace(requested) is is_one
