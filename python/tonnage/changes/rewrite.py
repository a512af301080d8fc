# SPDX-License-Identifier: Apache-2.0
"""Runs the user's files from changed source, with the same file names and line numbers.

Imported modules come through Python's own source loader, `python -m` and spawned processes through runpy. A script
given to Python by name is claimed by a path hook, as zip files are: Python then runs `__main__` from there. What
the script can see of that is put back in place by its first statement; two frames of runpy stand in tracebacks.

Files of the user only: neither torch, nor the standard library, nor installed packages are rewritten.
"""

import importlib.machinery
import importlib.util
import os
import sys

from . import cells
from . import source as sources

_rewriters = []  # (change, function)
_sources = {}  # path -> Source or None
_codes = {}  # path -> code or None
_scripts = set()  # paths of files that are run as `__main__` by others than Python itself
_PRELUDE = "__spec__ = None; __package__ = None"


def add(change, function):
    """function(change, source) puts the wishes of a change for a file into change.edits(source)."""
    _rewriters.append((change, function))


def source(path):
    """The Source of one of the user's files, or None."""
    if path not in _sources:
        _sources[path] = sources.read(path, not _is_script(path)) if _is_users(path) else None
    return _sources[path]


def _is_script(path):
    """True for the file that is run as `__main__`, as far as that is known yet."""
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    return script in ("", "-c", "-m") or path in _scripts or path == os.path.abspath(script)


def source_at(place):
    """The Source of the file of a place, or None."""
    return source(place["file"]) if place and place.get("file") else None


def code_of(path, main=False):
    """The code of a file with all changes, or None when none of them wants anything there."""
    path = os.path.abspath(path)
    if path not in _codes:
        _codes[path] = _attempt(_code, source(path), main)
    return _codes[path]


def tree_of(text):
    """The tree of a Source with all changes, or None when none of them wants anything there."""
    return _attempt(_tree, text)


def note(text):
    """A Source that is no file is known by its path."""
    _sources[text.path] = text


def install():
    """Lets Python find changed source; nothing happens where no change edits text."""
    if not _rewriters:
        return
    loader = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self, fullname):
        code = code_of(self.path) if isinstance(getattr(self, "path", None), str) else None
        return code if code is not None else original(self, fullname)

    loader.get_code = get_code
    sys.path_hooks.append(_Main)
    _install_runpy()
    cells.install(tree_of, note)


def _install_runpy():
    import runpy

    original = runpy._get_code_from_file

    def _get_code_from_file(*args):
        found = original(*args)
        _scripts.add(os.path.abspath(os.fsdecode(args[-1])))
        code = code_of(os.fsdecode(args[-1]))
        if code is None:
            return found
        return (code,) + found[1:] if isinstance(found, tuple) else code

    runpy._get_code_from_file = _get_code_from_file


class _Main:
    """Finder and loader of the script that Python was started with."""

    def __init__(self, path):
        script = sys.argv[0] if getattr(sys, "argv", None) else ""
        if not script or os.path.abspath(path) != os.path.abspath(script) or not os.path.isfile(path):
            raise ImportError("not the program's script")
        self.path = path
        self.code = code_of(path, main=True)
        if self.code is None:
            raise ImportError("nothing is changed in the program's script")

    def find_spec(self, name, target=None):
        """Only __main__; the script's folder takes the script's place on sys.path."""
        if name != "__main__":
            return None
        if sys.path and sys.path[0] == self.path:
            sys.path[0] = os.path.dirname(os.path.abspath(self.path))
        sys.path_importer_cache.pop(self.path, None)
        return importlib.util.spec_from_loader(name, self, origin=self.path)

    def get_code(self, name):
        """Part of the loader protocol."""
        return self.code

    def get_filename(self, name):
        """Part of the loader protocol."""
        return self.path

    def get_source(self, name):
        """The text as it stands on the disk."""
        return source(os.path.abspath(self.path)).text

    def is_package(self, name):
        """Part of the loader protocol."""
        return False

    def create_module(self, spec):
        """Part of the loader protocol."""

    def exec_module(self, module):
        """Part of the loader protocol."""
        exec(self.code, module.__dict__)


def _is_users(path):
    from _tonnage_guest import frames

    return path.endswith(".py") and frames.is_users(path)


def _attempt(make, text, *rest):
    try:
        return make(text, *rest) if text is not None else None
    except SyntaxError:
        return None  # Python says so itself
    except Exception as error:
        for change, function in _rewriters:
            change.broke(error)
        return None


def _code(text, main):
    tree = _tree(text, main)
    return compile(tree, text.path, "exec", dont_inherit=True) if tree is not None else None


def _tree(text, main=False):
    asked = [(change, _wishes(change, function, text)) for change, function in _rewriters if change.why_not is None]
    asked = [(change, edits) for change, edits in asked if edits]
    try:
        return _rendered(text, [edits for _, edits in asked], main)
    except (sources.Conflict, SyntaxError):  # what goes together comes in, in turn
        wishes = []
        for change, edits in asked:
            if _goes_with(change, text, wishes, edits):
                wishes.append(edits)
        return _rendered(text, wishes, main)


def _rendered(text, wishes, main):
    if not wishes:
        return None
    changed, origins = sources.render(text, wishes)
    if main:
        changed, origins = _with_prelude(text, changed, origins)
    return sources.changed_tree(text, changed, origins)


def _wishes(change, function, text):
    try:
        function(change, text)
    except sources.Conflict as error:
        change.patches.pop(text.path, None)
        change.trials.pop(text.path, None)
        change.places[:] = [place for place in change.places if place["file"] != text.path]
        if not change.places:
            change.cannot("%s: %s" % (os.path.basename(text.path), error))
        return None
    except SyntaxError:  # of the file
        raise
    except Exception as error:
        change.broke(error)
        return None
    return change.trials.get(text.path) or change.patches.get(text.path)


def _goes_with(change, text, wishes, edits):
    try:
        text.parse(sources.render(text, wishes + [edits])[0])
        return True
    except (sources.Conflict, SyntaxError) as error:
        change.cannot("%s: %s" % (os.path.basename(text.path), error))
        return False


def _with_prelude(text, changed, origins):
    """`__main__` of a script has no spec and no package."""
    edits = sources.Edits(sources.Source(text.path, changed))
    edits.insert_at_top(_PRELUDE)
    again, lines = sources.render(edits.source, [edits])
    return again, [origins[line - 1] for line in lines]
