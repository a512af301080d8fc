# SPDX-License-Identifier: Apache-2.0
"""The first import of a server that `tonnage run` has started (TONNAGE_FORKS): its children run any script, not only its own."""

import sys

import forked_child

sys.modules["_tonnage_guest.forks"]._change_arguments = forked_child.become
