# SPDX-License-Identifier: Apache-2.0
"""No change at all. A test of the comparison asks for it (TONNAGE_TRY=nothing): its trial must need what the program as it is
needs, to the byte."""


def install(change):
    """Is applied, and acts on nothing."""
    change.how = "Change nothing."
    change.note(None, "nothing")
