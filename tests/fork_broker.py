# SPDX-License-Identifier: Apache-2.0
"""Lends the fork servers of `tonnage run` to all processes of pytest of a `make test` (fork_servers.py): each is started once.

    fork_broker.py SOCKET

tools/run_tests.py starts it and holds its standard input; it ends, with its servers, when that is closed. A process of pytest
says what server it wants, in JSON, and is given the socket to it. Many may use one at a time: a run only sends to its server, a message
each, and hears of its process by other ways (src/supervise/reaper_by_server.c).
"""

import json
import os
import pathlib
import socket
import sys
import threading
import types

MOST = 12  # servers at once: each holds some 150 MiB of its own
_LARGEST = 1 << 20
_locks = {}  # what a server is started with -> held while it is started
_lock = threading.Lock()


def lent(path, wish, environment):
    """A server as fork_servers.started gives it, of which the caller has the channel only; None where it could not be started."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.connect(path)
        channel.send(json.dumps([wish, dict(environment)]).encode())
        _, handles, _, _ = socket.recv_fds(channel, 64, 1)
        return types.SimpleNamespace(channel=socket.socket(fileno=handles[0])) if handles else None


def _answer(channel):
    import fork_servers

    with channel:
        wish, environment = json.loads(channel.recv(_LARGEST))
        with _lock:
            its_own = _locks.setdefault(json.dumps(wish), threading.Lock())
        with its_own:
            server = fork_servers.started(wish, environment, MOST)
            if server is not None:
                socket.send_fds(channel, [b"lent"], [server.channel.fileno()])


def main():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        print("ready", flush=True)
        threading.Thread(target=_end_with_input, daemon=True).start()
        while True:
            threading.Thread(target=_answer, args=(listener.accept()[0],), daemon=True).start()


def _end_with_input():
    import fork_servers

    sys.stdin.read()
    fork_servers.close()
    pathlib.Path(sys.argv[1]).unlink(missing_ok=True)
    os._exit(0)


if __name__ == "__main__":
    main()
