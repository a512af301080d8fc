# SPDX-License-Identifier: Apache-2.0
"""What holds memory between the cells of a notebook: Out[n] (and _, __, ___), sys.last_traceback, and variables that keep what an
earlier run of a cell made.

Looked for when a cell ran out of memory, when one has been run again, and after the last; a traceback at the beginning of the next cell, since
the next error replaces it. Holders are found by a bounded walk over references; how many bytes are free without one is measured
(let_go.py).
"""

import ast
import functools
import gc
import re
import sys
import types

from . import guard, holds, left, let_go
from .state import state

_LEAST = 1 << 20  # bytes that are worth a word
_MOST_THINGS = 100000  # that a walk looks at
_MOST_MEASURED = 8  # holders, at one cell
_MOST_TOGETHER = 6
_CLOSED = (types.ModuleType, type, types.BuiltinFunctionType)  # what they refer to is not theirs
_OUTPUTS = re.compile(r"_+(\d*)$")


class _Before:
    """How a cell that is run again began, and what was found at earlier ones."""

    __slots__ = ("row", "values", "leftovers")

    def __init__(self):
        self.leftovers = {}  # what was said to keep memory of earlier runs of a cell: (kind, name) -> names of these runs
        self.restart()

    def restart(self):
        self.row = None
        self.values = {}  # name -> id of its value


_before = _Before()


class Holder:
    """Something that a notebook's user can let go of. It is known by its id, so that nothing here holds it, too."""

    __slots__ = ("kind", "name", "identity", "let_go", "reached", "graph")

    def __init__(self, kind, name, value, let_go):
        self.kind, self.name, self.identity, self.let_go = kind, name, id(value), let_go
        self.reached, self.graph = {}, False


# ---- when ----


@guard.guarded
def cell_began(cell):
    """What the last error keeps; and the variables that this cell is about to bind anew."""
    _before.restart()
    if not _is_ready(cell):
        return
    blocks = _blocks()
    if blocks is None:
        return
    _note_measured(_walked(_tracebacks(cell.shell), cell), blocks, cell, _forgetting(cell))
    if cell.run > 1:
        _note_bound(cell, blocks)


@guard.guarded
def cell_ended(cell, error):
    """What is held after it."""
    looks = cell.run > 1 or cell.last or _ran_out(error)
    if not _is_ready(cell) or not (looks or _before.leftovers):
        return
    blocks = _blocks()
    if blocks is None:
        return
    _drop_what_is_gone(blocks)
    if not looks:
        return
    _drop("output", "shown")
    clean = _forgetting(cell)
    outputs = _walked(_outputs(cell.shell), cell)
    _note_measured(outputs, blocks, cell, clean)
    if cell.run > 1:
        _note_rebound(cell, error)
        _note_leftovers(cell, blocks, clean)


def _drop_what_is_gone(blocks):
    """Memory that has been let go of meanwhile is nobody's fault."""
    for key, runs in tuple(_before.leftovers.items()):
        if sum(size for size, made_in in blocks.values() if made_in in runs) < _LEAST:
            del _before.leftovers[key]
            state.holders.pop(key, None)


def _drop(*kinds):
    for key in tuple(state.holders):
        if key[0] in kinds:
            del state.holders[key]


def _is_ready(cell):
    return state.cuda_initialized and cell.shell is not None


def _ran_out(error):
    return error is not None and state.final_oom is not None and bool(state.cells) and state.cells[-1]["failed"] is not None


def _blocks():
    found = left.snapshot()
    return left.Blocks(found).alive if found is not None else None


# ---- who ----


def _outputs(shell):
    """Values that IPython keeps since they were shown."""
    names = shell.user_ns
    kept = {}  # id of a value -> its name and itself
    for number, value in sorted((names.get("_oh") or {}).items()):
        kept.setdefault(id(value), ("Out[%s]" % number, value))
    for name in ("_", "__", "___"):
        value = _first(names.get(name), shell.user_ns_hidden.get(name))  # %reset out leaves the hidden one
        if value is not None and not isinstance(value, str):
            kept.setdefault(id(value), (name, value))
    while kept:
        identity, (name, value) = kept.popitem()
        kind = "output" if name.startswith("Out") else "shown"
        yield Holder(kind, name, value, functools.partial(_forget_output, shell, identity)), value


def _first(shown, hidden):
    return hidden if shown is None or isinstance(shown, str) else shown


def _forget_output(shell, identity):
    for table in (shell.user_ns.get("_oh") or {}, shell.user_ns, shell.user_ns_hidden):
        for name in [name for name, held in tuple(table.items()) if id(held) == identity and _is_output(name)]:
            del table[name]
    for name in ("_", "__", "___"):
        if id(getattr(shell.displayhook, name, None)) == identity:
            setattr(shell.displayhook, name, "")


def _is_output(name):
    return isinstance(name, int) or _OUTPUTS.match(name) is not None


def _tracebacks(shell):
    trace = getattr(sys, "last_traceback", None)
    if trace is not None:
        yield Holder("traceback", "sys.last_traceback", trace, functools.partial(_forget_error, shell)), trace


def _forget_error(shell):
    """All that the next error takes the place of. (traceback.clear_frames does not do: IPython has looked at the frames' f_locals, and before
    Python 3.13 a frame keeps what was shown.)"""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    for name in ("InteractiveTB", "SyntaxTB"):
        vars(getattr(shell, name, None) or types.SimpleNamespace()).pop("tb", None)


def _variables(shell, names=None):
    hidden = shell.user_ns_hidden
    for name, value in tuple(shell.user_ns.items()):
        if name not in hidden and not name.startswith("_") and (names is None or name in names):
            yield Holder("variable", name, value, functools.partial(shell.user_ns.pop, name, None)), value


def _walked(found, cell):
    """Those of the holders, given with their values, that lead to memory of a card."""
    closed = {id(cell.shell), id(cell.shell.user_ns), id(cell.shell.user_ns_hidden), id(sys.modules), id(vars(sys)), id(holds), id(_before)}
    holders = []
    for holder, value in found:
        _walk(holder, value, closed)
        if holder.graph or sum(holder.reached.values()) >= _LEAST:
            holders.append(holder)
    return holders


def _walk(holder, value, closed):
    tensor_class, seen, things = state.torch.Tensor, set(closed), [value]
    while things and len(seen) < _MOST_THINGS:
        thing = things.pop()
        if id(thing) in seen or isinstance(thing, _CLOSED):
            continue
        seen.add(id(thing))
        if isinstance(thing, dict) and "__builtins__" in thing:
            continue  # a module's
        if isinstance(thing, tensor_class):
            _reach(holder, thing)
        things.extend(gc.get_referents(thing))


def _reach(holder, tensor):
    holder.reached.update((address, size) for _, address, size, _ in holds.rows_of("", tensor, "", whole=True))
    holder.graph = holder.graph or (tensor.grad_fn is not None and tensor.is_cuda)


# ---- how much ----


def _forgetting(cell):
    """Lets go of what IPython keeps of the cell that ended last until the next one ends."""

    def forget():
        for result in (cell.result, getattr(cell.shell, "last_execution_result", None)):
            if result is not None:
                result.result = result.error_in_exec = None

    return forget


def _note_measured(holders, blocks, cell, clean=None):
    """Measures each by itself, the largest first."""
    order = sorted(holders, key=lambda holder: -sum(holder.reached.values()))
    for holder in order[:_MOST_MEASURED]:
        size = let_go.measure(clean, holder.let_go)
        if size is not None and size >= _LEAST:
            _note(_row(holder.kind, [holder.name], size, _made_in(holder, blocks), cell))


def _note(row):
    key = row["kind"], row["name"]
    old = state.holders.get(key)
    if old is None or row["bytes"] >= old["bytes"]:
        state.holders[key] = row


def _row(kind, names, size, made_in, cell):
    return {"kind": kind, "name": _joined(names), "bytes": size, "cell": made_in, "during": cell.name, "number": cell.number}


def _joined(names):
    return names[0] if len(names) == 1 else "%s and %s" % (", ".join(names[:-1]), names[-1])


def _made_in(holder, blocks):
    """The cell that made most of what a holder leads to, or None."""
    sizes = {}
    for (_, address), (size, made_in) in blocks.items():
        if made_in is not None and address in holder.reached:
            sizes[made_in] = sizes.get(made_in, 0) + size
    return max(sizes, key=sizes.get, default=None)


# ---- cells that are run again ----


def _note_bound(cell, blocks):
    """Variables that this cell binds, and whose values an earlier run of it made."""
    old = _of_earlier_runs(cell, blocks)
    holders = [holder for holder in _walked(_variables(cell.shell, _bound_by(cell.source)), cell) if old.keys() & holder.reached.keys()]
    if not holders or len(holders) > _MOST_TOGETHER:
        return
    holders, size = _fewest(holders, None)
    if size is not None and size >= _LEAST:
        _before.row = _row("rebound", [holder.name for holder in holders], size, _made_in(holders[0], blocks), cell)
        _before.values = {holder.name: holder.identity for holder in holders}


def _note_rebound(cell, error):
    """Old values of variables were there beside the new ones, or beside what was made for them: the old could have gone before."""
    names = cell.shell.user_ns
    bound_anew = all(names.get(name) is not None and id(names[name]) != value for name, value in _before.values.items())
    both = left.old_alive() if _ran_out(error) else left.old_beside_new()  # one request may have been too much
    if _before.row is not None and (bound_anew or error is not None) and both >= _LEAST:
        _note(_before.row)


def _note_leftovers(cell, blocks, clean):
    """What earlier runs of this cell made and is still alive: by whose leave?"""
    old = _of_earlier_runs(cell, blocks)
    if sum(old.values()) < _LEAST:
        return
    still = {name for name, value in _before.values.items() if id(cell.shell.user_ns.get(name)) == value}  # told already
    holders = [holder for holder in _walked(_variables(cell.shell), cell) if old.keys() & holder.reached.keys() and holder.name not in still]
    named = False
    for holder in holders[:_MOST_MEASURED]:
        size = let_go.measure(clean, holder.let_go)
        if size is not None and size >= _LEAST:
            _note_leftover(_row("variable", [holder.name], size, _made_in(holder, blocks), cell), cell)
            named = True
    if not named and 1 < len(holders) <= _MOST_TOGETHER:
        _note_together(holders, blocks, cell, clean)


def _note_together(holders, blocks, cell, clean):
    """None of them holds it alone: the fewest that do together."""
    holders, size = _fewest(holders, clean)
    if size is not None and size >= _LEAST:
        _note_leftover(_row("variables", [holder.name for holder in holders], size, _made_in(holders[0], blocks), cell), cell)


def _note_leftover(row, cell):
    _before.leftovers[row["kind"], row["name"]] = cell.earlier
    _note(row)


def _fewest(holders, clean):
    """As few of the holders as free what all of them do together, and those bytes."""
    whole = _measure_all(holders, clean)
    for holder in tuple(holders):
        fewer = [other for other in holders if other is not holder]
        if whole is not None and fewer and _measure_all(fewer, clean) == whole:
            holders = fewer
    return holders, whole


def _measure_all(holders, clean):
    def together():
        for holder in holders:
            holder.let_go()

    return let_go.measure(clean, together)


def _of_earlier_runs(cell, blocks):
    """{address: bytes} of what earlier runs of a cell made."""
    return {address: size for (_, address), (size, made_in) in blocks.items() if made_in in cell.earlier}


def _bound_by(source):
    """Names that a cell binds at its top level or below, by its text."""
    lines = ["" if line.lstrip()[:1] in ("%", "!", "?") else line for line in source.splitlines()]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
