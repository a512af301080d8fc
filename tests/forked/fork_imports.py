# SPDX-License-Identifier: Apache-2.0
"""The first import of a server that `tonnage run` has started (TONNAGE_FORKS): its children run any script, not only its own."""

import sys

import forked_child
import forked_ranks

forks = sys.modules["_tonnage_guest.forks"]
forks._change_arguments = forked_child.become
forks._renew_libraries = forked_ranks.after(forks._renew_libraries, forked_child.become)
