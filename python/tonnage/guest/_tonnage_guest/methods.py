# SPDX-License-Identifier: Apache-2.0
"""Replaces methods of torch.Tensor without a frame of ours in tracebacks.

What stands in the class is a descriptor. Looked up on the class it gives torch's own method, the very object, so that
torch's tables keyed by functions go on working. Looked up on a tensor it asks `concerns(tensor)`, and gives ours only
to those tensors, torch's own bound method to all others: those calls run as without us.
"""

import functools

from . import guard, held, imports
from .state import state


class Method:
    """The descriptor."""

    __slots__ = ("original", "concerns", "replacement")

    def __init__(self, original, concerns, replacement):
        self.original = original
        self.concerns = concerns
        self.replacement = replacement

    def __get__(self, tensor, owner=None):
        if tensor is None:
            return self.original
        try:
            concerned = self.concerns(tensor)
        except Exception:
            concerned = False  # a tensor without storage, or one that answers in its own way
        if concerned:
            return functools.partial(self.replacement, self.original, tensor)
        return self.original.__get__(tensor, owner)


class Noticed:
    """A descriptor that tells `notice(tensor)` when a method is looked up on a tensor, and gives torch's own."""

    __slots__ = ("original", "notice")

    def __init__(self, original, notice):
        self.original = original
        self.notice = notice

    def __get__(self, tensor, owner=None):
        if tensor is None:
            return self.original
        self.notice(tensor)
        return self.original.__get__(tensor, owner)


def notice(cls, name, function):
    """Calls function(tensor) before a method that `cls` inherits or has is called, or merely looked up."""
    original = getattr(cls, name, None)
    if original is not None and not isinstance(cls.__dict__.get(name), (Method, Noticed)):
        setattr(cls, name, Noticed(original, function))


def put(cls, name, concerns, replacement):
    """Replaces a method that `cls` inherits or has. replacement(original, tensor, *args, **kwargs)."""
    original = getattr(cls, name, None)
    if original is None or isinstance(cls.__dict__.get(name), Method):
        return
    setattr(cls, name, Method(original, concerns, replacement))


def wrapping(make):
    """Attaches to a place of torch (points.py) by putting make(original) there."""

    def attach(owner, name):
        setattr(owner, name, make(getattr(owner, name)))

    attach.__module__ = make.__module__
    return attach


def take_back(cls, name):
    """The class is as before."""
    method = cls.__dict__.get(name)
    if not isinstance(method, Method):
        return
    delattr(cls, name)
    if getattr(cls, name, None) is not method.original:
        setattr(cls, name, method.original)


def watch_network():
    """Notes whether the program asks for a connection: what was sent once must not be sent again by another run."""
    imports.watch("socket", guard.guarded(_watch_sockets))


def _watch_sockets(module):
    # Where there is a network wall it knows of every connection, whatever program made it (src/supervise/network.c).
    for name in ("sendto",) if held.walled() else ("connect", "connect_ex", "sendto"):
        notice(module.socket, name, _connects)


def _connects(socket):
    if socket.family.name != "AF_UNIX":
        state.connected = True
