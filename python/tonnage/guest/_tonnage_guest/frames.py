# SPDX-License-Identifier: Apache-2.0
"""Whose code a frame is, the user's place, stacks.

A frame belongs to the user when its file is outside torch, the standard library and site-packages. A program that is
itself installed (`python -m pkg`) has no such frame: its innermost frame outside torch and the standard library is
taken then.
"""

import os
import sys

from . import generated

USER, LIBRARY, SYSTEM, OWN = range(4)  # LIBRARY: installed, but neither torch nor the standard library
GENERATED = 4  # by Inductor: the program's line behind it tells, where it is known (generated.py)
MAX_STACK = 64

_own = os.path.dirname(os.path.abspath(__file__)) + os.sep
_changes = os.path.join(os.path.dirname(_own[:-1].rpartition(os.sep)[0]), "changes") + os.sep
_stdlib = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_cwd = None  # at start: relative file names are relative to it
_kinds = {}


def start():
    """Notes the working folder."""
    global _cwd
    try:
        _cwd = os.getcwd()
    except OSError:
        _cwd = None


def caller(depth=0):
    """The frame that called the function which asks, `depth` further out; None where a thread has no such frame: those of
    autograd, of gloo and of the virtual GPU call us with none of Python's below."""
    try:
        return sys._getframe(depth + 2)
    except ValueError:
        return None


def own_folder():
    """The folder of this package, with a slash at its end."""
    return _own


def working_folder():
    """The working folder at start, or None."""
    return _cwd


def kind(code, globals_of_frame=None):
    """USER, LIBRARY, SYSTEM or OWN, by the code's file."""
    name = code.co_filename
    found = _kinds.get(name)
    if found is None:
        found = _kinds[name] = _classify(name)
    if found is USER and name[:1] == "<" and globals_of_frame is not None:
        # dataclasses and namedtuples compile under "<string>", too
        return USER if globals_of_frame.get("__name__") == "__main__" else LIBRARY
    return found


def kind_of_file(name):
    """As kind(), for a file by its name."""
    found = _kinds.get(name)
    if found is None:
        found = _kinds[name] = _classify(name)
    return found


def _classify(name):
    if generated.is_generated(name):
        return GENERATED
    if name[:1] == "<":
        return SYSTEM if name.startswith(("<frozen", "<eval_with_key", "<__array", "<torch")) else USER
    if name.startswith((_own, _changes)):
        return OWN
    for folder in ("/site-packages/", "/dist-packages/"):
        at = name.find(folder)
        if at >= 0:
            package = name[at + len(folder):].split("/", 1)[0]
            return SYSTEM if package in ("torch", "functorch", "torchgen", "triton") else LIBRARY
    if name.startswith(_stdlib):
        return SYSTEM
    return USER


def is_users(name):
    """True when a file is the user's."""
    return _classify(absolute(name)) is USER


def describe(frame, line=None):
    """{"file", "line", "function"} of a frame."""
    code = frame.f_code
    if kind(code) is GENERATED:
        found = generated.place_of(code.co_filename, line if line is not None else frame.f_lineno)
        if found is not None:
            return dict(zip(("file", "line", "function"), found))
    return {
        "file": absolute(code.co_filename),
        "line": line if line is not None else frame.f_lineno,
        "function": getattr(code, "co_qualname", code.co_name),
    }


def place(frame):
    """The user's innermost frame at or above `frame`, or None."""
    fallback = None
    while frame is not None:
        found = kind(frame.f_code, frame.f_globals)
        if found is USER or (found is GENERATED and generated.place_of(frame.f_code.co_filename, frame.f_lineno)):
            return frame
        if found is LIBRARY and fallback is None:
            fallback = frame
        frame = frame.f_back
    return fallback


def stack(frame, limit=MAX_STACK):
    """The frames from `frame` outwards, innermost first, ours left out."""
    result = []
    while frame is not None and len(result) < limit:
        if kind(frame.f_code) is not OWN:
            result.append(describe(frame))
        frame = frame.f_back
    return result


def place_of_traceback(trace):
    """As `place`, for a traceback: the innermost user's entry as a description, or None."""
    best = fallback = None
    while trace is not None:
        frame = trace.tb_frame
        found = kind(frame.f_code, frame.f_globals)
        if found is USER or (found is GENERATED and generated.place_of(frame.f_code.co_filename, trace.tb_lineno)):
            best = describe(frame, trace.tb_lineno)
        elif found is LIBRARY:
            fallback = describe(frame, trace.tb_lineno)
        trace = trace.tb_next
    return best or fallback


def backward_caller():
    """The frame of the thread that sits in autograd's engine call (the main thread first), or None."""
    import threading

    frames = sys._current_frames()
    main = threading.main_thread().ident
    for ident in sorted(frames, key=lambda i: i != main):
        frame = frames[ident]
        while frame is not None:
            if frame.f_code.co_name == "_engine_run_backward":
                return frame
            frame = frame.f_back
    return None


def strip_own(trace):
    """The traceback without our frames. They stand there only where a call of torch goes through us."""
    while trace is not None and kind(trace.tb_frame.f_code) is OWN and trace.tb_next is not None:
        trace = trace.tb_next
    entry = trace
    while entry is not None:
        after = entry.tb_next
        while after is not None and kind(after.tb_frame.f_code) is OWN:
            after = after.tb_next
        entry.tb_next = after
        entry = after
    return trace


def absolute(name):
    """The absolute name of a file; relative ones are relative to the working folder at start."""
    if name[:1] in ("/", "<") or _cwd is None:
        return name
    return os.path.normpath(os.path.join(_cwd, name))


def file_of(frame):
    """The absolute file name of a frame."""
    return absolute(frame.f_code.co_filename)
