# SPDX-License-Identifier: Apache-2.0
"""What a snapshot of PyTorch's cannot know by itself, kept for one window of its history (doc/format/metadata.md).

Others put facts here as they happen, as tuples: text is made only when a snapshot is written. A window that begins keeps
the phase in force and the last look at what tensors are, since what they tell of may be freed in the new window.
"""

import time

from . import memory_log
from .state import state

now = time.time_ns  # the clock of the snapshot's times

_MAX_LABEL = 80
_MAX_PATH = 1000
_LASTING = ("deleted", "load_state_dict", "memory_fraction", "zero_grad")  # calls that outlast a window,
_MOST_LASTING = 16  # so many of them
_MOST_GATHERED = 64  # groups that may still be whole when a window begins

phases = []  # (time, step, name)
looks = []  # (time, [(category, address, bytes, label)])
gathers = []  # as looks, of parameters that are gathered for a while
passes = []  # (time, number, does it create a graph, [(id, sequence, bytes, evidence, view, name)])
runs = []  # (time, node's id); appended to by hooks on autograd's nodes
graphs = []  # (began, ended, freed, graph): of a call, which no backward pass has used (unused.py)
steps = []  # (time, number, allocated)
out_of_memories = []  # (time, device, requested)
calls = []  # (time, name, file, line, function)


def new_window():
    """Forgets what an emptied history has no use for."""
    del phases[:-1]
    del looks[:-1]
    del gathers[:-_MOST_GATHERED]
    lasting = {row[1:]: row for row in calls if row[1] in _LASTING}  # of each place the last
    calls[:] = sorted(lasting.values())[-_MOST_LASTING:]
    for rows in (passes, runs, graphs, steps, out_of_memories):
        del rows[:]


def text(unused):
    """The lines for the snapshot, sorted by time within a kind; `unused`: rows of graphs."""
    lines = ["tonnage-metadata\t1"]
    lines.extend("phase\t%d\t%d\t%s" % row for row in phases)
    for time_ns, rows in sorted(looks + gathers, key=lambda look: look[0]):
        lines.append("look\t%d" % time_ns)
        lines.extend("hold\t%s\t%d\t%d\t%s" % (category, address, size, escaped(label))
                     for category, address, size, label in rows)
    for time_ns, number, creates, nodes in passes:
        lines.append("backward\t%d\t%d\t%d" % (time_ns, number, creates))
        lines.extend("node\t%d\t%d\t%d\t%d\t%d\t%s" % row for row in nodes)
    lines.extend("run\t%d\t%d" % row for row in runs)
    lines.extend("graph\t%d\t%d\t%d\t%s\t%d\t%s" % (began, ended, freed, escaped(file, _MAX_PATH), line, escaped(function))
                 for began, ended, freed, file, line, function in unused)
    lines.extend("library\t%d\t%s\t%d\t%d" % row for row in memory_log.workspaces())
    lines.extend("step\t%d\t%d\t%d" % row for row in steps)
    lines.extend("oom\t%d\t%d\t%d" % row for row in out_of_memories)
    lines.extend("call\t%d\t%s\t%s\t%d\t%s" % (time_ns, name, escaped(file, _MAX_PATH), line, escaped(function))
                 for time_ns, name, file, line, function in calls)
    if state.batch_size is not None:
        lines.append("batch\t%d" % state.batch_size)
    lines.append("")
    return "\n".join(lines)


def escaped(words, longest=_MAX_LABEL):
    """A text as one field."""
    words = words[:longest]
    for character, code in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        words = words.replace(character, code)
    return words
