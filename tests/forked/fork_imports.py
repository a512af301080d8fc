# SPDX-License-Identifier: Apache-2.0
"""The first import of a server that `tonnage run` has started (TONNAGE_FORKS): its children run any script, not only its own."""

import sys

import forked_child
import forked_ranks
import forked_several

forks = sys.modules["_tonnage_guest.forks"]
_why_not = forks._why_not
_renew_libraries = forks._renew_libraries


def _why_not_now_that_all_is_imported():
    forked_child.keep_imported()
    return _why_not()


def _renew_libraries_and_keep(folder, net):
    _renew_libraries(folder, net)
    forked_child.keep_changes()


forks._why_not = _why_not_now_that_all_is_imported
forks._change_arguments = forked_child.become
forks._renew_libraries = forked_ranks.after(_renew_libraries_and_keep, forked_child.become)
forks._become_program = forked_several.instead(forks._become_program, forks)
