# SPDX-License-Identifier: Apache-2.0
"""In a launcher that was forked from a fork server of the tests (../fork_servers.py): its ranks are forked, too; in the runner of a
notebook its kernel.

Before the launcher's first statement a process is split off from it, the nursery, which has imported torch, belongs to the run, and
waits. Where the launcher starts Python with a script, or Jupyter's kernel, by subprocess.Popen, the nursery forks that process instead.
It is the launcher's child as any other: the process in between ends at once, and Linux gives its child to the launcher.
So is a script forked that is no rank, where the launcher sets TONNAGE_TEST_CHILD for it.
Everything else is started as ever. The nursery ends when the launcher has.
"""

import ctypes
import importlib
import json
import os
import socket
import subprocess
import sys

_WISH = "TONNAGE_TEST_RANKS"
_CHILD = "TONNAGE_TEST_CHILD"
_CWD = "TONNAGE_TEST_CWD"
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_LARGEST = 1 << 20
_KERNEL = ["-m", "ipykernel_launcher"]
_exit = os._exit  # the hook watches the other one
_start = subprocess.Popen._execute_child
_prctl = ctypes.CDLL(None).prctl


def after(renew, become):
    """forks._renew_libraries of a server, which then knows of ranks and starts the nursery where it is wished for. become: forked_child.become"""

    def renew_and_split(folder, net):
        renew(folder, net)
        _know_ranks_run()
        if os.environ.pop(_WISH, None) is not None:
            _split(become)

    return renew_and_split


def _know_ranks_run():
    """Of a job of which not all are: the server knew of none. What it has imported by then is watched now, all else as it is imported."""
    from _tonnage_guest import absent, points

    absent._ranks = absent._read(os.environ.get("TONNAGE_RANKS", ""))
    for point in points.TABLE if absent._ranks else ():
        if point.lost == points._ABSENT and point.module in sys.modules:
            points._attach(point, sys.modules[point.module])


def _split(become):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    launcher = os.getpid()
    if os.fork() == 0:
        ours.close()
        rank = None
        try:
            rank = _nurse(theirs, launcher)
            theirs.close()
            _become(become, *rank)
        except BaseException:
            if rank is not None:
                sys.excepthook(*sys.exc_info())
            _exit(125)
        return  # into the interpreter, as the rank
    theirs.close()
    subprocess.Popen._execute_child = _by_nursery(ours)


def _nurse(channel, launcher):
    """Returns in ranks only."""
    while True:
        message, handles, _, _ = socket.recv_fds(channel, _LARGEST, 3)
        if not message:
            _exit(0)
        between = os.fork()
        if between == 0:
            between = os.getpid()
            if os.fork() != 0:
                _exit(0)
            while os.getppid() == between:
                os.sched_yield()
            wish = json.loads(message)
            if wish["session"]:
                os.setsid()
            channel.send(b"%d" % os.getpid())
            if os.getppid() != launcher:
                _exit(125)
            return wish, handles
        for handle in handles:
            os.close(handle)
        os.waitpid(between, 0)


def _become(become, wish, handles):
    for target, handle in enumerate(handles):
        os.dup2(handle, target)
        os.close(handle)
    os.environ.clear()
    os.environ.update(wish["environment"])
    words = wish["words"]
    if words[1] == "-u":
        sys.stdout.reconfigure(write_through=True)
        sys.stderr.reconfigure(write_through=True)
    os.environ[_CWD] = wish["cwd"]
    become([words[0], *words[2 if words[1] == "-u" else 1:]])
    sys.orig_argv[:] = words
    if words[1:3] == _KERNEL:
        _know_cells()
    elif os.environ.pop(_CHILD, None) is None:
        _know_rank()


def _know_rank():
    """As the hook's start does in a rank: the nursery had the launcher's environment."""
    from _tonnage_guest import absent, draws, state

    state.settings.__init__(os.environ)
    state.state.rank = int(os.environ["RANK"])
    if state.settings.gpu == "virtual":
        draws.renew()
    absent.look()


def _know_cells():
    """What a kernel reads of its environment as it is started: the cells, for the hook, and whose child it is."""
    from _tonnage_guest import cells

    cells._seen.__init__()
    importlib.reload(sys.modules["ipykernel.kernelapp"])


# ---- in the launcher ----


def _by_nursery(channel):
    """What stands for Popen._execute_child there."""

    def start(process, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell, *more):
        pipes, rest = more[:6], more[6:]  # rest: restore_signals, gid, gids, uid, umask, start_new_session, process_group
        words = [os.fspath(word) for word in args] if isinstance(args, (list, tuple)) else []
        plain = preexec_fn is None and not pass_fds and not shell and executable is None
        plain = plain and rest[1:5] == (None, None, None, -1) and rest[6:] in ((-1,), ())
        if not plain or not _is_ours(words, os.environ if env is None else env):
            return _start(process, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell, *more)
        wish = {"words": words, "environment": dict(os.environ if env is None else env), "cwd": os.path.abspath(cwd or "."),
                "session": bool(rest[5])}  # fmt: skip
        _prctl(_SUBREAPER, 1, 0, 0, 0)
        try:
            streams = [own if pipe == -1 else pipe for own, pipe in enumerate(pipes[end] for end in (0, 3, 5))]  # the child's ends
            socket.send_fds(channel, [json.dumps(wish).encode()], streams)
            pid = channel.recv(64)
        finally:
            _prctl(_SUBREAPER, 0, 0, 0, 0)
        if not pid:
            raise RuntimeError("the nursery of the tests has ended")
        process._close_pipe_fds(*pipes)
        process.pid, process._child_created = int(pid), True

    return start


def _is_ours(words, environment):
    """True for Python with a script, as torchrun starts it, or a launcher of the tests, and for a kernel, in the environment of this run."""
    same = all(environment.get(name) == os.environ.get(name) for name in ("TONNAGE_RUN", "LD_PRELOAD", "PYTHONPATH"))
    script = words[2:3] if words[1:2] == ["-u"] else words[1:2]
    rank = ("RANK" in environment or _CHILD in environment) and bool(script) and script[0].endswith(".py")
    return same and words[:1] == [sys.executable] and (rank or words[1:3] == _KERNEL)
