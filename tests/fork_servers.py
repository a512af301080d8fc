# SPDX-License-Identifier: Apache-2.0
"""Programs of tests forked from a process that has imported PyTorch (doc/design/0034-tests.md).

Importing torch is two seconds of a core, and most programs of the tests are over soon after. So each process of pytest keeps fork
servers, Python processes under the same hook that have imported torch and wait before their program's first statement; in a `make test` all
processes of pytest share those of `tonnage run` (fork_broker.py). Where a run's program is a plain script and its environment holds
nothing that is read while torch is imported, the program is forked:

    under `tonnage run`    by the fork server of `tonnage fix` itself (src/supervise/reaper_by_server.c, guest/forks.py): the run's
                           own folder, reaper, sandbox, ledger and virtual GPU are all made after the fork
    with the hook alone    forked/sitecustomize.py

What a program must not share with another, and what a test wants to see of a start, is started as ever; with TONNAGE_FRESH=1
everything is.
"""

import atexit
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import warnings

import fork_broker

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
GUEST = ROOT / "python/tonnage/guest"
CHILD = HERE / "forked"
READY_SECONDS = 300
IMPORTS = ("torch", "torch._dynamo")  # the second comes with torchvision, transformers and many others
TRAINERS = ("transformers.trainer", "transformers.models.llama.modeling_llama")
# What programs that begin with transformers or Lightning may find imported: of Lightning it is what takes longest, and not itself, since
# changes ask whether the program has it.
LIBRARIES = (*TRAINERS, "transformers.models.gpt2.modeling_gpt2", "torchmetrics")
NOTEBOOKS = ("torch", "nbclient", "ipykernel.kernelapp")  # of the runner of a notebook, and of its kernel
AT_IMPORT_OF_TORCH = ("OMP_NUM_THREADS",)  # of the environment of pytest, which differs from folder to folder
# Of the environment, what other libraries than torch read as they are imported, and what the hook has for them: a server with such a library is
# started with it, and one without has not read it yet.
OF_LIBRARIES = ("HF_HUB_OFFLINE", "HF_HOME", "HF_ENDPOINT", "HF_DATASETS_OFFLINE", "XDG_CACHE_HOME")
OF_COMPILERS = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")  # read by what only a program imports
OF_THE_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # read when CUDA is first used
BROKER = "TONNAGE_TEST_BROKER"  # the path of its socket (fork_broker.py)
MOST = 4  # servers of one process of pytest: each holds some 300 MiB
# Of the environment, what is read anew in a forked process: all else stands when torch is imported. KEEP_MORE is a program's own (vgpu/gate), and
# CUDA_VISIBLE_DEVICES no run has: its supervisor takes it out.
RENEWED = {"TONNAGE_STEPS", "TONNAGE_SECONDS", "TONNAGE_CHANGES", "TONNAGE_ASSUMPTIONS", "TONNAGE_NEED",
           "TONNAGE_VALUES", "TONNAGE_ASSUME", "TONNAGE_TRY", "TONNAGE_INPUTS", "TONNAGE_TRIAL", "TONNAGE_LAST_NEWS", "TONNAGE_EARLY",
           "TONNAGE_CUDNN", "TONNAGE_SNAPSHOT", "KEEP_MORE", "CUDA_VISIBLE_DEVICES",
           *OF_LIBRARIES, *OF_COMPILERS, *OF_THE_ALLOCATOR}  # fmt: skip

_lost = set()
_servers = {}  # what it was started with -> its server, the one used last at the end


def is_fresh():
    """True when every program is to be started by itself."""
    return os.environ.get("TONNAGE_FRESH", "") not in ("", "0")


def can_fork(words, environment, settings=()):
    """True where a program may be forked. words: its command line, a script, a notebook, a text or a module; environment:
    what is set for it; settings: names in it that a server can be started with."""
    plain = len(words) > 1 and (str(words[1]).endswith((".py", ".ipynb")) or str(words[1]) in ("-c", "-m"))
    plain = plain and not environment.get("TONNAGE_INPUTS", "").startswith("pad")  # torch's loader is changed for it at the import
    return not is_fresh() and plain and set(environment) <= RENEWED | set(settings)


class _Server:
    """A process and the socket that it listens at. RuntimeError where it cannot be forked."""

    def __init__(self, command, variable, environment):
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {**environment, variable: str(theirs.fileno())}
        with tempfile.TemporaryFile() as said:
            with theirs:
                self.process = subprocess.Popen(command, env=settings, pass_fds=[theirs.fileno()], process_group=0,
                                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)  # fmt: skip
            answer = self.answer(READY_SECONDS)
            said.seek(0)
            text = said.read().decode(errors="replace")
        if answer != "ready":
            self.close()
            raise RuntimeError(f"{command} is no fork server: {answer}\n{text}")

    def answer(self, seconds):
        """What it says next; "" when it has ended. TimeoutError."""
        self.channel.settimeout(seconds)
        return self.channel.recv(4096).decode()

    def close(self):
        self.channel.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _server(key, start, most=MOST):
    """The server of this key, started where there is none; None where it could not be, and never again."""
    server = _servers.pop(key, None)
    if server is not None and server.process.poll() is not None:
        server.close()
        server = None
    if server is None and key not in _lost:
        while len(_servers) >= most:
            _servers.pop(next(iter(_servers))).close()
        try:
            server = start()
        except (RuntimeError, TimeoutError) as error:
            _lost.add(key)
            warnings.warn(f"programs are started by themselves: {error}", stacklevel=2)
    if server is not None:
        _servers[key] = server
    return server


@atexit.register
def close():
    """Ends all servers."""
    while _servers:
        _servers.popitem()[1].close()


# ---- under `tonnage run` ----


# Of the options of `tonnage run`, what the hook looks at as torch is imported: the server is started with them, too. --weights=shape is asked
# for once, and so not among them.
AT_IMPORT = ("--no-detail", "--network=allow", "--init=real", "--weights=real", "--data=shape")
USUAL = ("--weights=auto", "--data=real")  # as without them


def knows(options):
    """True where a server can stand for these options of `tonnage run`, spelled --name=value."""
    names = {option.partition("=")[0] for option in AT_IMPORT}
    other = [option for option in options if option.partition("=")[0] in names and option not in (*AT_IMPORT, *USUAL)]
    early = any(option.startswith("--inputs=pad") for option in options)  # torch's loader is changed for it at the import
    return not other and not early and "--gpu=real" not in options and "real" not in options


def supervised(tonnage, python, options, imports=IMPORTS, settings=()):
    """The server behind runs of `tonnage run` with these options. settings: pairs of its environment, which the import has to see."""
    if "/torch-2.6." in python or "/torch-2.15." in python:  # as it is imported one puts a folder on sys.path, one tells of leaks at the end
        imports = tuple(name for name in imports if name != "torch._dynamo")
    kinds = tuple(option for option in AT_IMPORT if option in options)
    early = {name: os.environ[name] for name in AT_IMPORT_OF_TORCH if name in os.environ}
    wish = {"tonnage": str(tonnage), "python": python, "kinds": kinds, "imports": imports, "settings": {**early, **dict(settings)}}
    if BROKER not in os.environ:
        return started(wish, os.environ)
    server = fork_broker.lent(os.environ[BROKER], wish, os.environ)
    if server is None:
        warnings.warn(f"programs are started by themselves: no fork server for {wish}", stacklevel=2)
    return server


def started(wish, environment, most=MOST):
    """A server of this process. wish: what it is started with (supervised); environment: what else it is to have; most: servers at once."""

    def start():
        with tempfile.TemporaryDirectory(prefix="fork-server-") as folder:  # it is read before the first fork only
            script = pathlib.Path(folder) / "imports.py"
            script.write_text("import fork_imports\n" + "".join(f"import {name}\n" for name in wish["imports"]))
            command = [wish["tonnage"], "run", "--quiet", "--gpu=rtx3060", "--steps=all", *wish["kinds"], "--", wish["python"], str(script)]
            return _Server(command, "TONNAGE_FORKS", {**environment, "PYTHONPATH": str(CHILD), **wish["settings"]})

    return _server(json.dumps(wish), start, most)


def run_forked(tonnage, python, options, command, cwd, environment, keep=None, settings=(), ranks=False, imports=IMPORTS, **more):
    """As subprocess.run of `command`, a `tonnage run` with a plain script; None when the server did not fork. keep: a folder that
    outlives the run, for what the changes tell. settings: names of the environment that the import of torch has to see. ranks: so
    are the ranks that the program starts, or a notebook's kernel (forked/forked_ranks.py). imports: what the
    server has imported."""
    settings = (*settings, *(name for name in OF_LIBRARIES if name in environment and imports != IMPORTS))
    server = supervised(tonnage, python, options, imports, settings=tuple((name, environment[name]) for name in settings))
    if server is None:
        return None
    handle = server.channel.fileno()
    given = {**environment, "TONNAGE_FORKED_BY": str(handle), "TONNAGE_TEST_CWD": os.path.abspath(cwd)}
    if keep is not None:
        given["TONNAGE_TEST_KEEP"] = str(keep)
    if ranks:
        given["TONNAGE_TEST_RANKS"] = "1"
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    done = subprocess.run(command, cwd=cwd, env=given, pass_fds=[handle], process_group=0, **streams)
    said = done.stdout if done.stderr is None else done.stderr
    return None if done.returncode == 125 and "fork server" in said else done


# What only a screen of a forked run says (doc/design/0034-tests.md).
RAW_CALLS = r"(?m)^  +only what goes through the C library[^:]*: this\s+kernel cannot report\s+connections\n"

# Stands for `tonnage` on the PATH of a shell: a run of `python SCRIPT` or of a notebook is forked, where nothing is set that is read before the
# fork, and so are the trials of `fix`, which is told to start no server of its own.
STAND_IN = """#!/usr/bin/python3 -IS
import os, sys
words = sys.argv[1:]
program = words[words.index("--") + 1:] if "--" in words else []
options = words[:len(words) - len(program)]
names = {{word.partition("=")[0] for word in options}}
early = names & {{"--weights", "--data", "--writes", "--network", "--init", "--no-detail", "--ranks", "--nodes", "--request"}}
early |= {{name for name in os.environ if name.startswith("PYTORCH_")}} | {{word for word in options if word.removeprefix("--inputs=").startswith("pad")}}
script = program[:1] == ["python"] and program[1:2] and program[1].endswith(".py")
if words[:1] in (["run"], ["fix"]) and (script or words[-1].endswith(".ipynb")) and not early:
    os.setpgid(0, 0)
    os.environ["TONNAGE_TEST_CWD"] = os.getcwd()
    words[1:1] = ["--fresh"] * (words[0] == "fix")
else:
    os.environ.pop("TONNAGE_FORKED_BY", None)
os.execv({tonnage!r}, [{tonnage!r}, *words])
"""


def write_stand_in(path, tonnage):
    """Its environment has TONNAGE_FORKED_BY, the number of the handle of a server (supervised)."""
    path.write_text(STAND_IN.format(tonnage=str(tonnage)))
    path.chmod(0o755)


# ---- with the hook alone ----


def run_hooked(python, words, cwd, environment, settings=(), search=(), timeout=300, imports=IMPORTS):
    """As subprocess.run of [python, *words] in `environment`; None where it cannot be forked. settings: names of it that the import
    of torch has to see, so TONNAGE_RUN where that is "" and the hook does nothing; search: what PYTHONPATH has after the hook; imports: what
    the server has imported."""
    settings = (*settings, *(name for name in OF_LIBRARIES if name in environment and imports != IMPORTS))
    key = (python, tuple(sorted(settings)), tuple(search), imports)
    fixed = {name: environment[name] for name in settings}

    def start():
        path = os.pathsep.join(map(str, [GUEST, *search, CHILD]))
        with tempfile.TemporaryDirectory(prefix="fork-server-") as folder:
            (pathlib.Path(folder) / "ledger").write_bytes(b"\0" * 8192)
            given = {"TONNAGE_RUN": folder, "PYTHONPATH": path, "TONNAGE_TEST_IMPORTS": " ".join(imports),
                     "TONNAGE_TEST_FORKS": str(ROOT / "build/release/lib/tonnage/libtonnage-forks.so"), **fixed}
            return _Server([python, str(CHILD / "never_run.py")], "TONNAGE_TEST_SERVER", {**os.environ, **given})

    server = _server(key, start)
    if server is None:
        return None
    wish = {"environment": {**environment, "TONNAGE_TEST_CWD": os.path.abspath(cwd)}, "words": [python, *map(str, words)]}
    with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        socket.send_fds(server.channel, [json.dumps(wish).encode()], [nothing.fileno(), out.fileno(), errors.fileno()])
        pid = server.answer(READY_SECONDS)
        status = _status(server, int(pid), timeout) if pid else ""
        if not status:  # the server was ended
            return None
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(wish["words"], os.waitstatus_to_exitcode(int(status)), out.read(), errors.read())


def _status(server, pid, timeout):
    try:
        return server.answer(timeout)
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        server.answer(READY_SECONDS)
        raise subprocess.TimeoutExpired(f"process {pid}", timeout) from None
