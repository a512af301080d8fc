# SPDX-License-Identifier: Apache-2.0
"""What holds the models and optimizers of earlier trainings, and how many bytes are free without it: looked for in a forked child, so that
nothing that the look does (variables of frames are shown, containers are emptied) is seen by the program.

From each model and optimizer the way is gone upwards, over what refers to it, to something that has a name: a variable of a module or of a
function that is running, a cache, an exception. What lets go of it is cut at the lowest place, and measured by itself (let_go.py).
"""

import ctypes
import functools
import gc
import json
import sys
import types
import weakref

from . import copies, frames, guard, holds, let_go, retainers, torchapi
from .state import state

_LEAST = 1 << 20  # bytes that are worth a word
_DEEPEST = 14
_WIDEST = 64  # things of one height
_MOST_THINGS = 3000  # on all ways up
_MOST_HOLDERS = 6
_MOST_SAMPLES = 4  # parameters that nothing of Python's owns
_SECONDS = 20.0
_CACHE = type(functools.lru_cache(lambda: None))


class _Holder:
    """Something with a name that leads to what earlier trainings left."""

    __slots__ = ("kind", "name", "place", "cuts", "of")

    def __init__(self, kind, name, place):
        self.kind, self.name, self.place = kind, name, place
        self.cuts = {}  # (id of what refers, id of what it refers to) -> what refers, that id
        self.of = {}  # number of a training -> whether what is held is an optimizer

    def at(self):
        """Its line."""
        file, code = self.place
        if self.kind == "study":
            return retainers.line_that_calls(file, "set_user_attr") or retainers.line_that_binds(file, self.name, code)
        return retainers.line_that_binds(file, self.name, code) if file else None

    def row(self, size):
        """What is told of it."""
        return _row(self.kind, self.name, self.at(), size, [(number, kind) for number, kinds in self.of.items() for kind in kinds])


@guard.alone
def look(over, frame):
    """Rows of what holds (number, parameters, optimizers), by weak references, of earlier trainings; None: unknown."""
    devices, torch = state.device_count, state.torch

    def answer():
        state.torch, state.device_count = torch, devices
        return json.dumps(_Search(over, frame, devices).rows()).encode()

    text = let_go.ask(answer, _SECONDS)
    return json.loads(text) if text else None


class _Search:
    """In the child. Of what is looked for there are weak references only, but on the way up."""

    def __init__(self, over, frame, devices):
        self.over, self.devices = over, devices
        self.running, self.variables, shown = _running_frames(frame)
        self.handled = _handled()
        self.modules = {id(vars(module)): module for module in tuple(sys.modules.values()) if isinstance(module, types.ModuleType)}
        self.holders = {}  # (kind, name, place) -> _Holder
        self.own = {id(self.running), id(self.variables), id(self.modules), id(self.holders), id(vars(self)), *shown}
        self.things = 0

    def rows(self):
        numbers = {}  # id of a parameter or an optimizer -> (number of its training, is it an optimizer)
        for number, parameters, optimizers in self.over:
            numbers.update((id(one()), (number, False)) for one in parameters if one() is not None)
            numbers.update((id(one()), (number, True)) for one in optimizers if one() is not None)
        gc.unfreeze()  # what a fork server has frozen refers to things, too
        before = _allocated(self.devices)
        gc.collect()
        garbage = before - _allocated(self.devices)
        left = {id(one()) for _, *both in self.over for refs in both for one in refs if one() is not None}
        rows = []
        if garbage >= _LEAST:
            rows.append(_row("garbage", "", None, garbage, [row for key, row in numbers.items() if key not in left]))
        self._climb(self._targets())
        return rows + self._measured()

    def _targets(self):
        """Weak references to what the ways up begin at, with the numbers of the trainings that they are of: optimizers; the outermost modules of
        parameters; parameters that no module owns."""
        owners = {}
        for module in holds.modules():
            for parameter in tuple(module._parameters.values()):
                if parameter is not None:
                    owners.setdefault(id(parameter), []).append(module)
        found, samples = {}, {}
        for number, parameters, optimizers in self.over:
            for optimizer in filter(None, (one() for one in optimizers)):
                found[id(optimizer)] = _Target(optimizer, number, True)
            given = {id(one) for optimizer in filter(None, (one() for one in optimizers)) for group in optimizer.param_groups for one in group["params"]}
            for parameter in (one() for one in parameters):
                if parameter is None:
                    continue
                for module in owners.get(id(parameter), ()):
                    root = copies.outermost(module)
                    found.setdefault(id(root), _Target(root, number, False))
                if id(parameter) not in owners and id(parameter) not in given and samples.setdefault(number, 0) < _MOST_SAMPLES:
                    samples[number] += 1
                    found[id(parameter)] = _Target(parameter, number, False)
        return list(found.values())

    def _climb(self, targets):
        """Notes every named holder above the targets, and the lowest links on the ways to it. Level by level, since each question who refers to
        something goes through all that Python's collector knows."""
        level, seen = {}, {}
        for target in targets:
            thing = target.reference()
            if thing is not None:
                level[id(thing)] = _Entry(thing, {}, {(target.number, target.optimizer)}, None)
        thing = None
        for _ in range(_DEEPEST):
            if not level:
                break
            level = self._above(level, seen)

    def _above(self, level, seen):
        """The next level: what refers to one and has no name itself; what has one is noted."""
        above = {}
        things = [entry.thing for entry in level.values()]
        hidden = {id(things), id(level), id(above), id(seen), *map(id, level.values()), *map(id, seen.values())}
        for identity, entry in level.items():
            seen[identity] = entry
            for frame, name in self.variables.get(identity, ()):
                self._note((entry.kind or entry.name_of_kind(), name, (frames.file_of(frame), frame.f_code)), entry.links_by(frame))
            if isinstance(entry.thing, BaseException) and identity in self.handled:
                self._note(("handled", "", (None, None)), entry.links)
        for referrer in gc.get_referrers(*things):
            if id(referrer) in hidden or id(referrer) in self.own or referrer is hidden or isinstance(referrer, _Entry):
                continue
            if isinstance(referrer, types.FrameType) and (id(referrer) in self.running or frames.kind(referrer.f_code) is frames.OWN):
                continue
            for thing in {id(one): one for one in gc.get_referents(referrer) if id(one) in level}.values():
                entry = level[id(thing)]
                key, links = self._named(referrer, thing, entry), entry.links_by(referrer)
                if key is not None:
                    self._note(key, links)
                elif not isinstance(referrer, (types.ModuleType, type)) and self.things < _MOST_THINGS:
                    self.things += 1
                    entry.lead_to(referrer, links, seen, above)
        if len(above) > _WIDEST:
            above = dict(list(above.items())[:_WIDEST])
        return above

    def _named(self, referrer, thing, entry):
        """The key (kind, name, place) of the holder that a referrer is, or None."""
        kind = entry.kind or entry.name_of_kind()
        if id(referrer) in self.modules:
            module = self.modules[id(referrer)]
            name = next((name for name, value in tuple(referrer.items()) if value is thing), None)
            file = getattr(module, "__file__", None)
            if name is None or not file:
                return None
            name = name if frames.is_users(file) else "%s.%s" % (module.__name__, name)
            return kind, name, (frames.absolute(file), None)
        if isinstance(referrer, _CACHE):
            made = getattr(referrer, "__wrapped__", None)
            code = getattr(made, "__code__", None)
            return "cache", getattr(made, "__qualname__", "a function"), (frames.absolute(code.co_filename) if code else None, code)
        if isinstance(referrer, type):
            file = getattr(sys.modules.get(referrer.__module__), "__file__", None)
            name = next((name for name, value in vars(referrer).items() if value is thing), None)
            return (kind, "%s.%s" % (referrer.__qualname__, name), (frames.absolute(file) if file else None, None)) if name else None
        return None

    def _note(self, key, links):
        if links:
            holder = self.holders.setdefault(key, _Holder(*key))
            for link, (referrer, of) in links.items():
                holder.cuts[link] = referrer, link[1]
                for number, optimizer in of:
                    holder.of.setdefault(number, set()).add(optimizer)

    def _measured(self):
        """A row for each holder that frees something by itself; one for the fewest that do together, where that is more. Variables that hold, for
        the time being, what something else keeps for longer are no holders of it."""
        holders = self._distinct()[:_MOST_HOLDERS]
        lasting = [holder for holder in holders if holder.kind != "variable"]
        kept = {number for holder in lasting for number in holder.of}
        passing = [holder for holder in holders if holder.kind == "variable" and holder.of.keys() <= kept]
        holders = [holder for holder in holders if holder not in passing]
        if not holders:
            return []
        first = self._letting_go(passing) if passing else None
        sizes = [let_go.measure(first, self._letting_go([holder])) or 0 for holder in holders]
        whole = sizes[0] if len(holders) == 1 else let_go.measure(first, self._letting_go(holders)) or 0
        if whole > sum(sizes) + _LEAST:
            return [self._together(holders, whole, first)]
        return [holder.row(size) for holder, size in zip(holders, sizes) if size >= _LEAST]

    def _distinct(self):
        """Of names for the same links one: of the program's own rather than a library's, and of a module rather than a function."""
        best = {}
        for holder in self.holders.values():
            file, code = holder.place
            rank = (file is None or not frames.is_users(file), code is not None and holder.kind != "cache")
            links = frozenset(holder.cuts)
            if links not in best or rank < best[links][0]:
                best[links] = rank, holder
        return [holder for _, holder in sorted(best.values(), key=lambda row: row[0])]

    def _together(self, holders, whole, first):
        for holder in tuple(holders):
            fewer = [other for other in holders if other is not holder]
            if fewer and let_go.measure(first, self._letting_go(fewer)) == whole:
                holders = fewer
        names = [holder.name for holder in holders]
        of = [(number, kind) for holder in holders for number, kinds in holder.of.items() for kind in kinds]
        name = names[0] if len(names) == 1 else "%s and %s" % (", ".join(names[:-1]), names[-1])
        return _row(holders[0].kind, name, holders[0].at(), whole, of)

    def _letting_go(self, holders):
        def let_all_go():
            for holder in holders:
                for referrer, identity in holder.cuts.values():
                    _let_go(referrer, identity)

        return let_all_go


class _Target:
    """Something that a way up begins at."""

    __slots__ = ("reference", "number", "optimizer")

    def __init__(self, thing, number, optimizer):
        self.reference, self.number, self.optimizer = weakref.ref(thing), number, optimizer


def _row(kind, name, at, size, of):
    return {"kind": kind, "name": name, "at": at, "bytes": size, "of": sorted({number for number, _ in of}),
            "optimizers": any(is_optimizer for _, is_optimizer in of)}


def _passes(thing):
    """The kind of holder that a way through this thing leads to, where it is a kind of its own."""
    if isinstance(thing, types.TracebackType):
        return "exception"
    return "study" if (type(thing).__module__ or "").startswith("optuna.") else None


class _Entry:
    """A thing on the ways up, with the lowest links below it that can be cut: (id of what refers, id of what it refers to) -> (what refers, the
    trainings and kinds that are cut off); and what is not cut off by any: (training, is it an optimizer)."""

    __slots__ = ("thing", "links", "bare", "kind")

    def __init__(self, thing, links, bare, kind):
        self.thing, self.links, self.bare, self.kind = thing, links, bare, kind

    def name_of_kind(self):
        """What a variable that refers to it holds: an earlier thing itself, or something that leads to it."""
        return "container" if self.links else "variable"

    def links_by(self, referrer):
        """The lowest links where a referrer is above."""
        if not self.bare or not _can_cut(referrer, self.thing):
            return self.links
        return {**self.links, (id(referrer), id(self.thing)): (referrer, frozenset(self.bare))}

    def lead_to(self, referrer, links, seen, above):
        """Puts the referrer into the next level, unless it has been there with as many links."""
        bare = self.bare if links is self.links else frozenset()
        known = above.get(id(referrer))
        if known is not None:
            known.links, known.bare = {**known.links, **links}, known.bare | bare
            return
        before = seen.get(id(referrer))
        if before is None or not (links.keys() <= before.links.keys() and bare <= before.bare):
            above[id(referrer)] = _Entry(referrer, dict(links), set(bare), self.kind or _passes(referrer))


# ---- letting go ----


def _can_cut(referrer, thing):
    kinds = (dict, list, set, types.FrameType, types.CellType, _CACHE)
    return isinstance(referrer, kinds) or id(thing) in map(id, getattr(referrer, "__dict__", {}).values())


def _let_go(referrer, identity):
    if isinstance(referrer, _CACHE):
        referrer.cache_clear()
    elif isinstance(referrer, types.FrameType):
        _unbind(referrer, identity)
    elif isinstance(referrer, types.CellType):
        referrer.cell_contents = None
    elif isinstance(referrer, list):
        referrer[:] = [None if id(one) == identity else one for one in referrer]
    elif isinstance(referrer, set):
        referrer -= {one for one in tuple(referrer) if id(one) == identity}
    else:
        table = referrer if isinstance(referrer, dict) else referrer.__dict__
        for name in [name for name, value in tuple(table.items()) if id(value) == identity]:
            table[name] = None
        for name in [name for name in tuple(table) if id(name) == identity]:
            del table[name]


def _unbind(frame, identity):
    """A variable of a function that is running, or was."""
    names = [name for name, value in tuple(frame.f_locals.items()) if id(value) == identity]
    for name in names:
        frame.f_locals[name] = None
    if sys.version_info < (3, 13) and frame.f_code.co_flags & 1:  # CO_OPTIMIZED: what was shown is a copy
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


# ---- frames ----


def _running_frames(frame):
    """Ids of the frames that are running; id of a value -> [(frame, name)] of variables of functions; ids of what was made for that.
    Python's collector does not know the frames of functions that are running."""
    running, variables, shown = set(), {}, set()
    for top in (frame, *frames.of_threads().values()):
        while top is not None:
            if id(top) not in running:
                running.add(id(top))
                names = top.f_locals
                if names is not top.f_globals and frames.kind(top.f_code) is not frames.OWN:
                    shown.add(id(names))
                    for name, value in tuple(names.items()):
                        if not name.startswith("."):
                            variables.setdefault(id(value), []).append((top, name))
            top = top.f_back
    return running, variables, shown


def _handled():
    """Ids of the exceptions that are being handled."""
    found, error = set(), sys.exc_info()[1]
    while error is not None and id(error) not in found:
        found.add(id(error))
        error = error.__context__
    return found


def _allocated(devices):
    stats = (torchapi.stats(index) for index in range(devices))
    return sum(found["allocated_bytes"]["all"]["current"] for found in stats if found)
