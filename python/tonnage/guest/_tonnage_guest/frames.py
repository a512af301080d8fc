# SPDX-License-Identifier: Apache-2.0
"""The user's place on a stack, and stacks.

A frame belongs to the user when its file is outside torch, the standard library and site-packages. A program that is
itself installed (`python -m pkg`) has no such frame: its innermost frame outside torch and the standard library is
taken then.
"""

import inspect
import sys
import threading

from . import cellnames, generated
from .origin import GENERATED, LIBRARY, OWN, SYSTEM, USER, absolute, is_users, kind  # noqa: F401 (asked of here)

MAX_STACK = 64


def caller(depth=0):
    """The frame that called the function which asks, `depth` further out; None where a thread has no such frame: those of
    autograd, of gloo and of the virtual GPU call us with none of Python's below."""
    try:
        return sys._getframe(depth + 2)
    except ValueError:
        return None


def describe(frame, line=None):
    """{"file", "line", "function"} of a frame."""
    code = frame.f_code
    if kind(code) is GENERATED:
        found = generated.place_of(code.co_filename, line if line is not None else frame.f_lineno)
        if found is not None:
            return dict(zip(("file", "line", "function"), found))
    file, number = site(frame, line)
    return {
        "file": file,
        "line": number,
        "function": getattr(code, "co_qualname", code.co_name),
    }


def site(frame, line=None):
    """(file, line) of a frame; a notebook's cell stands in the place of a file."""
    return site_of(frame.f_code, line if line is not None else frame.f_lineno)


def site_of(code, line):
    """As site(), for a line of a code object."""
    return cellnames.place_of(code.co_filename, line) or (absolute(code.co_filename), line)


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


def of_threads():
    """{thread: the innermost frame that is running in it}, of this one our caller's caller (or None). Nothing that lives in a frame may hold that
    frame: it would stay, with all frames outside it and what the program has in them, until Python next collects garbage."""
    running = sys._current_frames()
    running[threading.get_ident()] = caller(1)
    return running


def backward_caller():
    """The frame of the thread that sits in autograd's engine call (the main thread first), or None."""
    running = of_threads()
    main = threading.main_thread().ident
    for ident in sorted(running, key=lambda i: i != main):
        frame = running[ident]
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


def variables(frame):
    """A frame's variables. A function's f_locals is a copy before Python 3.13, which would keep the tensors in it alive: it is emptied again."""
    found = frame.f_locals
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return found
    result = dict(found)
    if sys.version_info < (3, 13):
        found.clear()
    return result


def file_of(frame):
    """The absolute file name of a frame."""
    return absolute(frame.f_code.co_filename)
