# SPDX-License-Identifier: Apache-2.0
"""A fork server with the guest hook and without a supervisor: Python imports this when the hook has started, and hands over.

What is asked for comes through a socket (../fork_servers.py): working directory, environment and command line as JSON, with the
three standard streams. Answers are the process's id and, once it has ended, its status.
"""

import json
import os
import sys

_exit = os._exit  # the hook watches the other one


def _serve():
    """Returns in the processes of programs only."""
    import ctypes
    import importlib
    import socket

    import forked_child

    channel = socket.socket(fileno=int(os.environ.pop("TONNAGE_TEST_SERVER")))
    library = ctypes.CDLL(os.environ.pop("TONNAGE_TEST_FORKS"))
    for name in os.environ.pop("TONNAGE_TEST_IMPORTS").split():
        importlib.import_module(name)
    forked_child.keep_imported()
    _fork_once()  # OpenBLAS's threads end at a fork
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("an import has started threads: this process cannot be forked")
    channel.send(b"ready")
    while True:
        message, handles, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            _exit(0)
        pid = os.fork()
        if pid == 0:
            channel.close()
            library.tn_forks_end_early()
            return forked_child, json.loads(message), handles
        for handle in handles:
            os.close(handle)
        channel.send(b"%d" % pid)
        channel.send(b"%d" % os.waitpid(pid, 0)[1])


def _fork_once():
    pid = os.fork()
    if pid == 0:
        _exit(0)
    os.waitpid(pid, 0)


def _become(forked_child, wish, handles):
    for target, handle in enumerate(handles):
        os.dup2(handle, target)
        os.close(handle)
    os.environ.clear()
    os.environ.update(wish["environment"])
    forked_child.become(wish["words"])
    if "_tonnage_guest" in sys.modules:
        _tell_hook()


def _tell_hook():
    from _tonnage_guest import boot

    if os.environ.get("TONNAGE_GPU") == "virtual":
        from _tonnage_guest import forks

        forks._renew_libraries(os.environ["TONNAGE_RUN"], False)
    boot._renewed()
    if os.environ.get("TONNAGE_CHANGES"):
        boot._load_changes(os.environ["TONNAGE_CHANGES"])


try:
    _become(*_serve())
except BaseException:
    sys.excepthook(*sys.exc_info())
    sys.stderr.flush()
    _exit(125)
