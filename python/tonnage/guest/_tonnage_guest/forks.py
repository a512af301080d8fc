# SPDX-License-Identifier: Apache-2.0
"""A fork server: imports what the program will import, then forks a process for each trial (doc/design/0010-trials.md).

The supervisor starts a Python process as for the program itself, with a socket's number in TONNAGE_FORKS. Before the
program's first statement this process imports what stands at the top of the script and of its modules, says "ready", and waits. For each
trial it forks a process that becomes the trial's reaper, and that one the program's process, which returns from here
into the interpreter and runs the script. Whatever of the run is read from the environment is read again there.

It refuses where forking is not safe: threads, a library that has used CUDA, a Python that is not the run's own program.
"""

import ast
import importlib
import os
import sys

from . import virtual

_LARGEST = 1 << 20
_DESCRIPTORS = 7
_MOST_FOLLOWED = 40  # modules of the program's own
_REAPER = "tonnage-reaper"  # TN_REAPER_NAME of src/supervise/internal.h
_exit = os._exit  # the program's own may be watched


class _Server:
    """The socket to the supervisor."""

    __slots__ = ("channel",)

    def __init__(self):
        self.channel = None


_server = _Server()


def serve(renewed):
    """Returns in the processes of trials only, after renewed() was called there. No other process may go on into the
    program, whatever goes wrong."""
    try:
        _serve()
    except BaseException:
        _exit(1)
    renewed()


def _serve():
    import socket

    _server.channel = socket.socket(fileno=int(os.environ.pop("TONNAGE_FORKS")))
    if not _is_the_program():
        _say("not the program is started by another")
        _exit(1)
    _let_arrow_fork()
    _import_what_it_begins_with()
    _say(_why_not() or "ready")
    while True:
        message, handles, _, _ = socket.recv_fds(_server.channel, _LARGEST, _DESCRIPTORS)
        if not message:
            _exit(0)
        words = message.split(b"\0")[:-1]
        if words[0] == b"import":
            _import_list(handles[0])
            _say(_why_not() or "ready")
        elif _fork(words[1:], handles):
            return
        _reap()


def _say(text):
    try:
        _server.channel.send(text.encode())
    except OSError:
        _exit(1)


def _is_the_program():
    """True when the reaper has started this Python, and no script or launcher in between."""
    try:
        with open("/proc/%d/comm" % os.getppid()) as file:
            return file.read().strip() == _REAPER
    except OSError:
        return False


# ---- imports ----


def _import_what_it_begins_with():
    """What the program imports at the top level of its script (`-m`: module, `-c`: text), and of the modules of its own that it imports there."""
    words = sys.orig_argv
    at = next((index for index, word in enumerate(words) if word in ("-m", "-c")), None) if sys.argv[0] in ("-m", "-c") else None
    if at is None:
        _import_top_of(_read(sys.argv[0]), os.path.dirname(os.path.abspath(sys.argv[0])), "", set())
    elif words[at] == "-c":
        _import_top_of(words[at + 1], os.getcwd(), "", set())
    else:
        seen = set()
        for name in (words[at + 1], words[at + 1] + ".__main__"):
            _follow(name, os.getcwd(), seen)


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _import_top_of(text, beside, package, seen):
    """Imports what a text does at its top level. Modules that lie in the folder `beside` are the program's own: not these, but what they
    import. `package` is the one that the text belongs to."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.Import):
            for name in node.names:
                _import_or_follow(name.name, (), beside, seen)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            parts = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            name = ".".join([part for part in parts if part] + ([node.module] if node.module else []))
            if name:
                _import_or_follow(name, [each.name for each in node.names], beside, seen)


def _import_or_follow(name, wanted, beside, seen):
    top = os.path.join(beside, name.partition(".")[0])
    if not (os.path.isdir(top) or os.path.exists(top + ".py")):
        _import(name, wanted)
        return
    for own in (name, *("%s.%s" % (name, each) for each in wanted)):
        _follow(own, beside, seen)


def _follow(name, beside, seen):
    """Imports what a module of the program's own does, and the packages around it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = os.path.join(beside, *parts[:count])
        is_package = os.path.isdir(path)
        path = os.path.join(path, "__init__.py") if is_package else path + ".py"
        if path not in seen and len(seen) < _MOST_FOLLOWED:
            seen.add(path)
            _import_top_of(_read(path), beside, ".".join(parts[:count] if is_package else parts[:count - 1]), seen)


def _import(name, wanted):
    try:
        module = importlib.import_module(name)
        for each in wanted:
            getattr(module, each, None)
    except Exception:
        pass  # the program will meet it, too


def _import_list(handle):
    """Modules that the program has imported by its end: lines "name<tab>file"."""
    with open(handle, encoding="utf-8") as file:
        file.seek(0)
        lines = file.read().splitlines()
    for line in lines:
        name, _, path = line.partition("\t")
        if name not in sys.modules and _is_at(name, path):
            _import(name, ())


def _is_at(name, path):
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
        return spec is not None and (spec.origin or "") == path
    except Exception:
        return False


def _let_arrow_fork():
    """jemalloc of pyarrow (datasets, pandas, ray) starts a thread when it is loaded, which alone would keep the program from
    being forked. It gives memory back in the background, and does so at calls instead without it (jemalloc's manual,
    background_thread). A trial's environment is its own again (_change_environment)."""
    name = "JE_ARROW_MALLOC_CONF"
    os.environ[name] = ",".join(filter(None, [os.environ.get(name), "background_thread:false"]))


# ---- forking ----


def _why_not():
    """Why this process cannot be forked; None when it can. Asked in a child: some pools of threads end at a fork."""
    child = os.fork()
    if child == 0:
        torch = sys.modules.get("torch")
        bad = torch is not None and (torch.cuda.is_initialized() or torch.cuda._is_in_bad_fork())
        _exit(1 if bad or not _renew_device() else 0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        return "not an import uses CUDA"
    if len(os.listdir("/proc/self/task")) > 1:
        return "not an import starts threads"
    return None


def _reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def _fork(words, handles):
    """Forks a trial's reaper, and that one the program's process. True there, False in the server."""
    words = [word.decode("utf-8", "surrogateescape") for word in words]
    binary, folder, group, net = words[0], words[1], int(words[2]), words[3] == "1"
    count = int(words[4])
    arguments = words[5:5 + count]
    variables = words[6 + count:]
    if os.fork() != 0:
        for handle in handles:
            os.close(handle)
        return False
    reaper = os.getpid()
    _server.channel.close()
    os.setpgid(0, group)
    program = os.fork()
    if program != 0:
        _become_reaper(binary, folder, handles, program, variables)
    _become_program(folder, handles, reaper, net, arguments, variables)
    return True


def _library():
    import ctypes

    return ctypes.CDLL(os.path.join(os.environ["TONNAGE_LIB"], "libtonnage-forks.so"))


def _become_reaper(binary, folder, handles, program, variables):
    life, news, lock, alive = handles[0], handles[1], handles[2], handles[6]
    for handle in (life, news, lock, alive):
        os.set_inheritable(handle, True)
    for handle in handles[3:6]:
        os.close(handle)
    words = [_REAPER, "__reaper", str(life), str(news), str(lock), str(program), folder]
    bare = [variable for variable in variables if not variable.startswith(("LD_PRELOAD=", "PYTHONPATH="))]
    # Not by os.execve: what this process starts is under the write overlay, and a reaper removes what is real.
    _library().tn_forks_execute(os.fsencode(binary), _row_of(words), _row_of(bare))
    _exit(125)


def _row_of(words):
    import ctypes

    return (ctypes.c_char_p * (len(words) + 1))(*(os.fsencode(word) for word in words), None)


def _become_program(folder, handles, reaper, net, arguments, variables):
    for target, handle in zip((0, 1, 2), handles[3:6]):
        os.dup2(handle, target)
    for handle in handles:
        os.close(handle)
    if _library().tn_forks_die_with(reaper) != 0 or _library().tn_forks_end_early() != 0:
        _exit(125)
    _change_environment(variables)
    _change_arguments(arguments)
    _renew_libraries(folder, net)
    temporary = sys.modules.get("tempfile")
    if temporary is not None:
        temporary.tempdir = None


def _change_environment(variables):
    new = dict(variable.partition("=")[::2] for variable in variables)
    for name in [name for name in os.environ if name not in new]:
        del os.environ[name]
    os.environ.update(new)


def _change_arguments(arguments):
    before = len(sys.orig_argv) - len(sys.argv) + 1  # words of Python's own: a trial may have more options, or fewer
    sys.argv[1:] = arguments[before:]
    sys.orig_argv[before:] = arguments[before:]


def _renew_libraries(folder, net):
    import ctypes

    overlay = ctypes.CDLL(os.path.join(os.environ["TONNAGE_LIB"], "libtonnage-preload.so"))
    if overlay.tn_preload_renew() != 0 or (net and _library().tn_forks_sandbox(os.fsencode(folder)) != 0):
        _exit(125)
    if not _renew_device():
        _exit(125)


def _renew_device():
    """The next call of the virtual GPU attaches to the run of this process. False when CUDA is in use."""
    import ctypes

    renew = virtual.function("tn_vgpu_renew", ctypes.c_int)
    return renew is None or renew() == 0
