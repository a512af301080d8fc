# SPDX-License-Identifier: Apache-2.0
"""Requests to a server as steps (doc/design/0037-requests.md): who sends them says when each begins and has ended.

A thread waits at a socket in the run's folder. It is there only in a run with --request, and in a process that uses CUDA. While the sender waits for an
answer the server has nothing to do, so what is read here is what the request has left.

    begin NUMBER WHICH      WHICH: of the list, from 1
    end NUMBER HOW          HOW: well, refused, dropped
    finish                  no other follows

Each is answered by bytes that are allocated, the peak where it is a new one (else -1), and a word: more, settled, oom.
"""

import _thread
import os
import socket

from . import ending, growth, guard, history, oom, peaks, phases, record, settle, steps
from .state import settings, state

_O_PATH = getattr(os, "O_PATH", 0o10000000)


class _Link:
    """The connection to the sender."""

    __slots__ = ("socket", "seen", "highest")

    def __init__(self):
        self.socket = None
        self.seen = 0  # out-of-memories before the request
        self.highest = 0  # peak of PyTorch's allocator at the end of the one before


_link = _Link()


def start():
    """CUDA is in use in this process."""
    if not settings.requests or _link.socket is not None:
        return
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    folder = os.open(settings.run, _O_PATH | os.O_CLOEXEC)  # its name may be longer than an address of a socket
    try:
        link.connect("/proc/self/fd/%d/requests" % folder)
    except OSError:
        link.close()
        return
    finally:
        os.close(folder)
    _link.socket = link
    _thread.start_new_thread(_wait, (link, os.getpid()))


def leave():
    """In a forked child, which has no such thread."""
    if _link.socket is not None:
        _link.socket.close()
        _link.socket = None


def _wait(link, pid):
    try:
        while os.getpid() == pid:
            words = link.recv(256).decode("ascii", "replace").split()
            if not words:
                return
            link.send(("%d %d %s" % (_hear(words) or (-1, -1, "more"))).encode())
    except OSError:
        pass  # the run is over, or the program has closed what is not its own


@guard.guarded
def _hear(words):
    if words[0] == "begin":
        return _begins(int(words[1]), "request %s" % words[2])
    if words[0] == "end":
        return _ends(int(words[1]), words[2] == "well")
    return _finishes()


def _begins(number, name):
    if state.open_oom is not None:
        oom.progress()  # the server has got over it, or it would not listen
    state.request = number
    _link.seen = state.ooms_seen
    state.regions.setdefault(name, None)
    phases.name_region(name)
    return -1, -1, "more"


def _ends(number, well):
    """A request is over; where it ran out of memory and was not answered well, that is the end."""
    phases.name_region(None)
    found = state.open_oom or (state.pending_ooms[-1] if state.pending_ooms else None)
    if state.ooms_seen > _link.seen and not well and found is not None:
        ending.request_failed(found)
        record.write_now()
        return growth.allocated_now(), -1, "oom"
    if state.ooms_seen > _link.seen:
        oom.progress()
    state.request = number
    peaks.read()
    before, _link.highest = _link.highest, peaks.highest()[0]
    if well:
        steps.request_ended(number)
    word = "settled" if well and settle.has_settled() else "more"
    return growth.allocated_now(), _link.highest if _link.highest > before else -1, word


def _finishes():
    """What is known is written, in case the server does not end in a way that is heard of."""
    peaks.read(everywhere=True)
    peaks.tell_ledger()
    history.finish()
    settle.flush_program()
    settle.flush_changes()
    record.write_now()
    return growth.allocated_now(), -1, "more"
