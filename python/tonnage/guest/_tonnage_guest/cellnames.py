# SPDX-License-Identifier: Apache-2.0
"""Which cell of a notebook a piece of code belongs to, by the name that IPython compiled it under.

IPython's names ("/tmp/ipykernel_7/123.py", "<ipython-input-4-...>") mean nothing to a person. Wherever a place is written
down, its file is the cell's name, "cell 4" or "cell 4 (run 2)", and the line is that of the cell. cells.py says what belongs
together.
"""

import re

_CELL = re.compile(r"cell \d+( \(run \d+\))?$")
_known = {}  # name of the code -> (name of the cell, lines of the cell before the code's first)


def name_of(number, run):
    """What a run of a cell is called."""
    return "cell %d" % number if run == 1 else "cell %d (run %d)" % (number, run)


def note(code_name, cell, before=0):
    """Code of this name belongs to a cell."""
    _known[code_name] = cell, before


def is_known(code_name):
    """True for code that belongs to a cell."""
    return code_name in _known


def place_of(code_name, line):
    """(name of the cell, its line), or None."""
    found = _known.get(code_name)
    return (found[0], line + found[1]) if found is not None else None


def lines_before(code_name):
    """Lines of the cell before the first of this code, or None for code that belongs to none."""
    found = _known.get(code_name)
    return found[1] if found is not None else None


def cell_of(stack):
    """The cell that was being run, by a stack of PyTorch's snapshot (innermost frame first); None: none, or unknown."""
    for frame in reversed(stack or ()):
        found = _known.get(frame.get("filename"))
        if found is not None:
            return found[0]
    return None


def name_frames(stacks):
    """Puts the cells in the place of IPython's names in stacks of PyTorch's snapshot, innermost frame first, and takes away the frames of
    Jupyter that run the cell. A frame may stand in several, and a stack, too."""
    if not _known:
        return
    for stack in stacks:
        outermost = -1
        for index, frame in enumerate(stack):
            found = place_of(frame.get("filename"), frame.get("line") or 0)
            if found is not None:
                frame["filename"], frame["line"] = found
            if is_cell(frame.get("filename") or ""):
                outermost = index
        if outermost >= 0:
            del stack[outermost + 1:]


def is_cell(file):
    """True for the name of a cell in the place of a file's."""
    return _CELL.match(file) is not None
