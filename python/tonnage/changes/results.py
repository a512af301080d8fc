# SPDX-License-Identifier: Apache-2.0
"""What each change did and where, told in <run>/changes/<pid>.json.

The file is replaced atomically when something new is known, and at most every half second while only counters move.
A process that has nothing to tell (a loader's worker) writes none. No error of a change reaches the program: the
change is told as broken, and what it wraps goes on as without it.
"""

import functools
import json
import os
import sys
import time

SCHEMA = "tonnage.changes/1"
_EVERY = 0.5
_MAX_PLACES = 32

_changes = []
_pid = None
_last_write = 0.0
_written = False
_ranks = []  # of this process, once the program has joined a process group
facts = None  # a function that returns the survey's facts, set by survey.py


class Change:
    """One change that was asked for."""

    def __init__(self, name, value, row):
        self.id = name
        self.value = value
        self.row = row
        self.results = row.results if row is not None else "same"
        self.applied = False
        self.why_not = None
        self.places = []
        self.effective = 0
        self.acts = False  # while the program runs
        self.how = ""
        self.environment = {}
        self.arguments = {}
        self.patches = {}  # path -> Edits: what makes it permanent
        self.trials = {}  # path -> Edits: what runs, where that differs
        self.later = []  # functions that make patches of what was seen; called before writing

    def note(self, place, what, module=None):
        """The change does something at a place ({"file", "line", "function"} or None)."""
        row = {"file": None, "line": None, "function": None, **(place or {}), "module": module, "what": what}
        if self.why_not is None and row not in self.places and len(self.places) < _MAX_PLACES:
            self.places.append(row)
            self.applied = True
            self._changed()
        elif self.why_not is None and not self.applied:
            self.applied = True
            self._changed()

    def effect(self, count=1):
        """The change made a difference once more."""
        self.effective += count
        if self.effective == count:
            self._changed()
        elif self in _changes:
            write_sometimes()

    def cannot(self, reason):
        """The change cannot be applied; the first reason counts."""
        if self.why_not is None:
            self.why_not = reason
        self.applied = False
        self._changed()

    def broke(self, error):
        """An error of our own: the change is no saving."""
        self.cannot("failed: %s: %s" % (type(error).__name__, " ".join(str(error).split())[:200]))

    def weaken(self, promise):
        """The results are only as good as this."""
        from . import table

        worse = table.worse(self.results, promise)
        if worse != self.results:
            self.results = worse
            self._changed()

    def _changed(self):
        if self in _changes:  # else it is one that only looks: nobody is told
            changed()

    def guarded(self, function, otherwise=None):
        """Makes `function` a callback that never raises and sleeps once the change is out."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            if self.why_not is not None:
                return otherwise
            try:
                return function(*args, **kwargs)
            except Exception as error:
                self.broke(error)
                return otherwise

        call._torchdynamo_disable = True
        return call

    def edits(self, source):
        """The wishes of this change for a file: run and printed."""
        return _edits(self.patches, source)

    def trial_edits(self, source):
        """The wishes for a file that run only; what is printed then comes from `edits`."""
        return _edits(self.trials, source)

    def runs_as_printed(self):
        """True where all that it does is what its patch says: then the patch was tried as it stands."""
        return not self.acts and not self.trials

    def patch(self):
        """The unified diff that makes the change permanent, or None."""
        return _patch([self])

    def document(self):
        """One entry of the file."""
        if self.why_not is None:
            for function in self.later:
                self.guarded(function)()
        applied = self.applied and self.why_not is None
        reason = None if applied else self.why_not or "nothing in this program for it to change"
        return {
            "id": self.id,
            "title": self.row.title if self.row is not None else None,
            "value": self.value,
            "applied": applied,
            "found_nothing": not applied and self.why_not is None,
            "why_not": reason,
            "places": self.places,
            "effective": self.effective,
            "how": self.how,
            "environment": self.environment,
            "arguments": self.arguments,
            "patch": self.patch() if applied else None,
            "results": self.results,
        }


def _edits(table, source):
    from .source import Edits

    if source.path not in table:
        table[source.path] = Edits(source)
    return table[source.path]


def _patch(changes):
    from . import notebook
    from .source import Conflict, difference, render

    texts, paths = [], []
    for change in changes:
        paths.extend(path for path in change.patches if path not in paths)
    for path in sorted(paths):
        wishes = [change.patches[path] for change in changes if change.patches.get(path)]
        if wishes:
            try:
                texts.append((wishes[0].source, render(wishes[0].source, wishes)[0]))
            except Conflict:
                return None
    return "".join(difference(text, changed, folder_of_patches()) or "" for text, changed in notebook.gathered(texts)) or None


def folder_of_patches():
    """Where the command was given: names in patches are relative to it."""
    from _tonnage_guest import cells, origin

    return cells.notebook()[1] or origin.working_folder() or os.getcwd()


def start(changes):
    """Called once with all changes of this process."""
    import atexit

    global _pid
    _changes[:] = changes
    _pid = os.getpid()
    os.register_at_fork(after_in_child=_in_child)
    if any(change.id != "survey" and change.why_not is not None for change in changes):
        changed()
    atexit.register(finish)


def finish():
    """The last writing of a process."""
    if _written or _pid == os.getpid():
        write_now()


def _in_child():
    global _pid, _written
    _pid, _written = None, False
    del _ranks[:]


def changed():
    """Something new is known."""
    if _pid is not None:
        write_now()


def write_sometimes():
    """Something is known that has time."""
    if _pid is not None and time.monotonic() - _last_write >= _EVERY:
        write_now()


def write_now():
    """Writes the file."""
    global _last_write, _written
    from _tonnage_guest import record
    from _tonnage_guest.state import settings

    if not settings.run:
        return
    _last_write, _written = time.monotonic(), True
    try:
        data = json.dumps(document()).encode()
        record.write_file(os.path.join(settings.run, "changes"), "%d.json" % os.getpid(), data)
    except Exception:
        pass  # the run folder is gone: nobody reads


def _rank():
    """Which rank of a job this process is: of the group that it joined, else as its launcher says. None: of none."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            _ranks[:] = [distributed.get_rank()]
    except Exception:
        pass  # it is being taken down
    said = os.environ.get("RANK", "")
    return _ranks[0] if _ranks else int(said) if said.isdecimal() else None


def document():
    """The whole document."""
    from . import pace

    asked = [change for change in _changes if change.id != "survey"]
    told = [change.document() for change in asked]
    applied = [change for change in asked if change.applied and change.why_not is None]
    return {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "rank": _rank(),
        "changes": told,
        "patch": _patch(applied),
        "patch_was_run": all(change.runs_as_printed() for change in applied),
        "pace": pace.document(),
        "survey": facts() if facts is not None else None,
    }
