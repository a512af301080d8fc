# SPDX-License-Identifier: Apache-2.0
"""tonnage run as a command: bad input, exit statuses, what is printed where. No PyTorch; guests are fakes."""

import json
import os
import pathlib
import pty
import select
import subprocess
import sys

import pytest
from command import HERE, TONNAGE, UNDECIDED, fake_words

OOM = {
    "device": 0, "requested_bytes": 3 << 30, "free_bytes": 1 << 30, "allocated_bytes": 7 << 30,
    "reserved_bytes": 8 << 30, "largest_free_block_bytes": None, "step": 1, "phase": "forward",
    "at": {"file": "/x/model.py", "line": 88, "function": "forward"}, "backward": False,
    "stack": [
        {"file": "/e/lib/python3.11/site-packages/torch/nn/functional.py", "line": 5, "function": "linear"},
        {"file": "/x/model.py", "line": 88, "function": "forward"},
        {"file": "/x/train.py", "line": 41, "function": "<module>"},
    ],
    "message": "CUDA out of memory. Tried to allocate 3.00 GiB.", "computed": False,
}  # fmt: skip


def one_line(done):
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("tonnage: "), done.stderr
    return lines[0]


# ---- wrong usage ----


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], "no command given"),
        (["frobnicate"], 'unknown command "frobnicate"'),
        (["run"], "no program given"),
        (["run", "--gpu", "rtx3061", "--", "true"], "did you mean rtx3060"),
        (["run", "--gpu", "a100", "--", "true"], "did you mean a100-40 or a100-80?"),
        (["run", "--gpu", "voodoo", "--", "true"], "tonnage gpus lists"),
        (["run", "--gpu"], "needs a value"),
        (["run", "--gpus", "9", "--", "true"], "1 to 8"),
        (["run", "--gpus", "0", "--", "true"], "1 to 8"),
        (["run", "--memory", "12GB", "--", "true"], "12GiB"),
        (["run", "--memory", "-1", "--", "true"], "not a size"),
        (["run", "--memory", "0", "--", "true"], "must be above 0"),
        (["run", "--memory", "12", "--", "true"], "no card has only 12 bytes; sizes take a unit, as in 12GiB"),
        (["fix", "--memory", "12", "--", "true"], "no card has only 12 bytes; sizes take a unit, as in 12GiB"),
        (["run", "--memory", "99999999999999999999", "--", "true"], "too large"),
        (["run", "--other", "99GiB", "--gpu", "rtx3060", "--", "true"], "as large as the card"),
        (["run", "--steps", "-3", "--", "true"], "--steps"),
        (["run", "--steps", "0", "--", "true"], "--steps"),
        (["run", "--init", "maybe", "--", "true"], "--init"),
        (["run", "--values", "big", "--", "true"], "--values"),
        (["run", "--writes", "never", "--", "true"], "--writes"),
        (["run", "--frob", "--", "true"], "unknown option"),
        (["run", "--json", "/nonexistent/report.json", "--", "true"], "/nonexistent/report.json cannot be written"),
        (["run", "--snapshot", "/nonexistent/s.pickle", "--", "true"], "cannot be written"),
        (["run", "--json", "/", "--", "true"], "/ cannot be written"),
        (["gpus", "rtx3061"], "did you mean rtx3060"),
        (["gpus", "a", "b"], "one name"),
        (["gpus", "--probe", "--json"], "--probe stands alone"),
    ],
)
def test_wrong_usage_is_one_line_and_2(tonnage, words, expected):
    done = tonnage(*words)
    assert done.returncode == 2
    assert expected in one_line(done)
    assert tonnage.left_behind() == []


def test_program_that_is_not_there(tonnage):
    done = tonnage("run", "--", "no-such-program-anywhere")
    assert done.returncode == 127 and "program not found: no-such-program-anywhere" in one_line(done)
    assert tonnage("run", "--", "./none").returncode == 127
    assert tonnage.left_behind() == []


def test_program_that_cannot_be_executed(tonnage):
    plain = tonnage.cwd / "plain"
    plain.write_text("words")
    assert tonnage("run", "--", plain).returncode == 126
    assert tonnage("run", "--", tonnage.cwd).returncode == 126
    script = tonnage.cwd / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = tonnage("run", "--", script)
    assert done.returncode == 127 and "cannot be executed" in one_line(done)
    assert tonnage.left_behind() == []


def test_version_and_help(tonnage):
    assert tonnage("--version").stdout.startswith("tonnage ")
    for words in (["--help"], ["run", "--help"], ["gpus", "--help"]):
        done = tonnage(*words)
        assert done.returncode == 0 and done.stdout.startswith("usage: tonnage") and done.stderr == ""
        assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_full_output_is_our_own_failure(tonnage):
    done = tonnage("run", "--json", "/dev/full", "--", "true")
    assert done.returncode == 125
    assert tonnage.left_behind() == []


# ---- the program's own status and streams ----


@pytest.mark.parametrize("status", [1, 3, 77, 255])
def test_own_status(tonnage, status):
    done = tonnage("run", "--", "sh", "-c", f"exit {status}")
    assert done.returncode == status


@pytest.mark.parametrize("name, status", [("SEGV", 139), ("KILL", 137), ("ABRT", 134), ("TERM", 143)])
def test_ended_by_a_signal(tonnage, name, status):
    done = tonnage("run", "--", "sh", "-c", f"kill -{name} $$")
    assert done.returncode == status
    assert f"signal {status - 128}" in done.stderr
    assert tonnage.left_behind() == []


def test_streams_pass_through(tonnage):
    done = tonnage("run", "--quiet", "--", "sh", "-c", "cat; echo words >&2", input="from stdin\n")
    assert done.stdout == "from stdin\n" and done.stderr == "words\n"


def test_a_program_that_exits_at_once(tonnage, schema):
    """It used no card, so nothing is known of one."""
    done = tonnage("run", "--gpu", "rtx3060", "--json", "report.json", "--", "true")
    report = json.loads((tonnage.cwd / "report.json").read_text())
    schema("run", report)
    assert done.returncode == report["exit_status"] == UNDECIDED and report["verdict"] == "undecided"
    assert done.stderr.splitlines()[0] == "Undecided on NVIDIA GeForce RTX 3060 (11.75 GiB): the program never used a GPU"
    assert done.stderr.splitlines()[1].startswith("  To decide it  ")
    assert [row["id"] for row in report["findings"] if row["severity"] == "error"] == ["card_unused"]
    assert tonnage.left_behind() == [] and tonnage.processes() == []


def test_script_without_interpreter_line(tonnage):
    script = tonnage.cwd / "script"
    script.write_text("exit 5\n")
    script.chmod(0o755)
    assert tonnage("run", "--", "./script").returncode == 5


@pytest.mark.parametrize("length", [0, 200])
def test_a_socket_with_a_long_name_fits_below_the_temporary_folder(tonnage, length):
    """Ray's are 68 bytes longer than the folder's name, and a socket's whole name has 107."""
    folder = tonnage.cwd / ("x" * length)
    folder.mkdir(exist_ok=True)
    tonnage.env["TMPDIR"] = str(folder)
    words = ("import os, socket, tempfile; n = tempfile.gettempdir() + '/' + 'r' * 67; assert len(n) <= 107, n\n"
             "s = socket.socket(socket.AF_UNIX); s.bind(n); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect(n)\n"
             "print(os.path.realpath(os.environ['TMPDIR']) == os.environ['TONNAGE_RUN'] + '/scratch/tmp')")
    done = tonnage("run", "--", sys.executable, "-S", "-c", words)
    assert done.stdout == "True\n", done.stderr


def test_environment_of_the_program(tonnage):
    tonnage.env.update(LD_PRELOAD="", PYTHONPATH="/mine", MLFLOW_TRACKING_URI="https://example.org")
    words = "import json, os; print(json.dumps(dict(os.environ)))"
    done = tonnage("run", "--steps", "7", "--init", "real", "--", sys.executable, "-S", "-c", words)
    env = json.loads(done.stdout)
    assert env["TONNAGE_GPU"] == "virtual" and env["TONNAGE_STEPS"] == "7" and env["TONNAGE_INIT"] == "real"
    assert env["TONNAGE_WRITES"] == "scratch" and env["TONNAGE_VALUES"] == "small" and env["TONNAGE_SECONDS"] == "120"
    assert env["LD_PRELOAD"].endswith("/libtonnage-preload.so") and env["PYTHONPATH"].endswith(":/mine")
    assert env["TONNAGE_SNAPSHOT"] == "" and env["WANDB_MODE"] == "offline"
    assert env["MLFLOW_TRACKING_URI"].startswith("sqlite:///%s/scratch/tmp/" % env["TONNAGE_RUN"])
    assert env["TORCHINDUCTOR_CACHE_DIR"].endswith("/inductor") and "/tonnage/compile/" in env["TRITON_CACHE_DIR"]


def test_signals_reach_the_program_as_they_were(tonnage):
    words = "import signal as s; print(sorted(s.pthread_sigmask(s.SIG_BLOCK, [])), s.getsignal(s.SIGPIPE) is s.SIG_IGN)"
    done = tonnage("run", "--quiet", "--", sys.executable, "-I", "-c", words)
    assert done.stdout.strip() == "[] True"


# ---- verdicts, from faked guests ----


def test_stopped_when_settled(tonnage, schema):
    done, report = tonnage.fake("--gpu", "rtx3060", document={}, stop=1, steps=4)
    schema("run", report)
    assert done.returncode == 0 and report["verdict"] == "fits" and report["steps"]["stopped"] == "settled"
    assert report["peak"]["reserved_bytes"] == 4 << 20 and report["steps"]["seen"] == 4
    assert "4 steps with 1 input shape; stopped when memory had settled" in done.stderr
    assert done.stdout == "the program's own output\n"
    assert report["host"]["seconds"] < 10
    assert tonnage.left_behind() == [] and tonnage.processes() == []


def test_stopped_at_the_limit(tonnage):
    done, report = tonnage.fake(document={}, stop=2)
    assert done.returncode == 0 and report["steps"]["stopped"] == "limit"


def test_out_of_memory(tonnage, schema):
    done, report = tonnage.fake(
        "--gpu", "rtx3060", document={"out_of_memory": OOM, "out_of_memory_ended_process": True}, exit=1)
    schema("run", report)
    assert done.returncode == 10 and report["verdict"] == "out_of_memory" and report["exit_status"] == 10
    oom = report["out_of_memory"]
    assert oom["requested_bytes"] == 3 << 30 and oom["short_by_bytes"] == 2 << 30 and oom["at"]["line"] == 88
    assert oom["phase"] == "forward" and report["steps"]["stopped"] == "out_of_memory"
    lines = done.stderr.splitlines()
    assert lines[0] == "Does not fit on NVIDIA GeForce RTX 3060 (11.75 GiB)"
    assert "  Out of memory in the forward pass of step 1" in lines
    assert "  /x/train.py:41 → /x/model.py:88 forward" in lines
    assert "  asked 3.00 GiB, 1.00 GiB free: short by 2.00 GiB" in lines


def test_out_of_memory_reported_as_failure(tonnage):
    done, report = tonnage.fake(document={"out_of_memory": OOM}, exit=1)
    assert done.returncode == 10 and report["verdict"] == "out_of_memory"


def test_a_workspace_that_did_not_fit_is_the_librarys(tonnage, schema):
    """PyTorch tries cuDNN's plans in turn: that is no out-of-memory that the program handled."""
    row = {"file": "/x/net.py", "line": 3, "function": "f", "count": 1, "requested_bytes": 5 << 30, "workspace": True}
    done, report = tonnage.fake(document={"handled_out_of_memory": [row]}, exit=0)
    schema("run", report)
    assert report["handled_out_of_memory"][0]["by"] == "library"
    assert "1 library workspace did not fit" in done.stderr and "handled itself" not in done.stderr


def test_handled_out_of_memory_is_no_verdict(tonnage, schema):
    handled = [{"file": "/x/find.py", "line": 3, "function": "find", "count": 2, "requested_bytes": 5 << 30}]
    done, report = tonnage.fake(document={"handled_out_of_memory": handled}, exit=0)
    schema("run", report)
    assert done.returncode == 0 and report["verdict"] == "fits" and report["out_of_memory"] is None
    assert report["handled_out_of_memory"] == [{**handled[0], "by": "program"}]
    done, report = tonnage.fake(document={"handled_out_of_memory": handled}, exit=4)
    assert done.returncode == 4 and report["verdict"] == "failed"


def test_another_failure(tonnage, schema):
    raised = {"type": "ValueError", "message": "no \x1b[31mgood", "at": {"file": "/x/a.py", "line": 3, "function": "f"}}
    done, report = tonnage.fake(document={"exception": raised}, exit=1)
    schema("run", report)
    assert done.returncode == 1 and report["verdict"] == "failed" and report["exit_status"] == 1
    assert "/x/a.py:3" in done.stderr and "ValueError" in done.stderr and "\x1b" not in done.stderr


def test_without_torch(tonnage):
    missing = {"type": "ModuleNotFoundError", "message": "No module named 'torch'", "at": None}
    done, report = tonnage.fake(document={"torch": None, "cuda": None, "exception": missing}, exit=1)
    assert done.returncode == 2 and "has no PyTorch" in one_line(done) and report["exit_status"] == 2


def test_cpu_only_torch_is_not_run_to_its_end(tonnage):
    done, report = tonnage.fake(document={"torch": "2.11.0+cpu", "cuda": None}, sleep=50, timeout=20)
    assert done.returncode == 2 and "CPU-only build of PyTorch (2.11.0+cpu)" in one_line(done)
    assert report["verdict"] == "failed" and tonnage.processes() == []


def test_untested_torch_is_said(tonnage):
    done, report = tonnage.fake(document={"torch": "2.99.0+cu150"})
    assert done.returncode == 0 and report["findings"][0]["id"] == "untested_torch" and "2.99.0" in done.stderr


ODD = '{"schema": "tonnage.guest/1", "steps": 5, "devices": {"a": 1}, "handled_out_of_memory": [1, {"count": -4}]}'


@pytest.mark.parametrize("raw", ["", "{", "[]", "null", ODD])
def test_a_malformed_guest_file_does_not_matter(tonnage, schema, raw):
    done, report = tonnage.fake(raw=raw)
    schema("run", report)
    assert done.returncode == UNDECIDED


def test_snapshot_is_moved_out(tonnage):
    target = tonnage.cwd / "snapshot.pickle"
    done, report = tonnage.fake("--snapshot", target, snapshot=True, document={})
    assert done.returncode == 0 and target.read_bytes() == b"not a real snapshot" and report["snapshot"] == str(target)
    assert tonnage.left_behind() == []


def test_a_snapshot_elsewhere_is_not_believed(tonnage):
    target = tonnage.cwd / "snapshot.pickle"
    done, report = tonnage.fake("--snapshot", target, document={"snapshot": "/etc/hostname"})
    assert done.returncode == 0 and not target.exists() and report["snapshot"] is None


def test_scratch_is_kept_and_said(tonnage):
    """The overlay puts files there; here the program does so itself."""
    words = 'mkdir -p "$TONNAGE_RUN/scratch/files/a/b"; test -z "$1" || echo kept > "$TONNAGE_RUN/scratch/files/a/b/c"'
    report = tonnage.cwd / "report.json"
    done = tonnage("run", "--writes", "allow", "--json", report, "--", "sh", "-c", words, "sh", "")
    assert done.returncode == UNDECIDED and tonnage.left_behind() == []
    done = tonnage("run", "--json", report, "--", "sh", "-c", words, "sh", "file")
    scratch = json.loads(report.read_text())["scratch"]
    words = " ".join(done.stderr.split())
    assert done.returncode == UNDECIDED and f"what the program wrote is in {scratch} (5 B); nothing real" in words
    assert pathlib.Path(scratch, "a/b/c").read_text() == "kept\n"
    (folder,) = tonnage.temporary.iterdir()
    assert [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()] == ["scratch/files/a/b/c"]


def test_json_on_stdout(tonnage, schema):
    done = tonnage("run", "--quiet", "--json", "-", "--", "true")
    schema("run", json.loads(done.stdout))
    assert done.stderr == ""


def test_report_is_never_wide(tonnage):
    deep = "/x/" + "long-folder-name/" * 4 + "model.py"
    place = {"file": deep, "line": 1, "function": "f"}
    oom = {**OOM, "at": place, "stack": [place] * 5}
    done, _ = tonnage.fake(document={"out_of_memory": oom, "out_of_memory_ended_process": True}, exit=1)
    assert max(map(len, done.stderr.splitlines())) <= 100
    assert "\x1b" not in done.stderr


def test_plain_ascii_without_utf8(tonnage):
    tonnage.env["LC_ALL"] = "C"
    done, _ = tonnage.fake(document={"out_of_memory": OOM, "out_of_memory_ended_process": True}, exit=1)
    assert done.stderr.isascii() and "/x/train.py:41 -> /x/model.py:88 forward" in done.stderr


def read_terminal(terminal):
    output = b""
    while select.select([terminal], [], [], 10)[0]:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    return output.decode()


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_line_on_a_terminal(tonnage, quiet):
    master, slave = pty.openpty()
    options = ["--quiet"] if quiet else []
    process = tonnage.start("run", *options, "--", *fake_words(document={}, steps=3, sleep=1.5))
    process.wait()
    assert "tonnage: step" not in process.stderr.read()
    tonnage.env["TERM"] = "xterm"
    words = [*process.args]
    process = subprocess.Popen(words, env=tonnage.env, cwd=tonnage.cwd, stderr=slave, stdout=subprocess.DEVNULL)
    os.close(slave)
    output = read_terminal(master)
    assert process.wait() == 0
    assert ("tonnage: step 3, peak 0 B" in output) != quiet
    assert quiet or output.rindex("\r\x1b[K") > output.rindex("tonnage: step")
    assert quiet or "\x1b[1;32mFits on" in output


@pytest.mark.parametrize("steps", [0, 3])
def test_no_progress_line_before_the_words_of_a_program_at_work(tonnage, steps):
    master, slave = pty.openpty()
    tonnage.env["TERM"] = "xterm"
    words = [TONNAGE, "run", "--gpu", "rtx3060", "--", *fake_words(document={}, steps=steps, sleep=1.5)]
    process = subprocess.Popen(list(map(str, words)), env=tonnage.env, cwd=tonnage.cwd, stderr=slave, stdout=slave)
    os.close(slave)
    output = read_terminal(master)
    assert process.wait() == 0
    behind = output[output.index("the program's own output"):]  # until it is at work there may be one, however long that takes
    assert ("tonnage: step" in behind) == (steps == 0)


# ---- the catalogue ----


def test_gpus(tonnage, schema):
    done = tonnage("gpus", "--json")
    document = json.loads(done.stdout)
    schema("gpus", document)
    assert len(document["gpus"]) == 38
    card = next(gpu for gpu in document["gpus"] if "rtx3060" in gpu["aliases"])
    assert card["total_bytes"]["value"] == 12036 << 20 and card["context_bytes"]["certainty"] == "guess"
    table = tonnage("gpus").stdout.splitlines()
    assert len(table) == 39 and max(map(len, table)) <= 100
    card = tonnage("gpus", "NVIDIA H200").stdout
    assert "evidence" in card and max(map(len, card.splitlines())) <= 100


def test_probe_without_a_gpu(tonnage):
    done = tonnage("gpus", "--probe")
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 2 and "no NVIDIA" in one_line(done)


def test_real_gpu_without_one(tonnage):
    if tonnage("gpus", "--probe").returncode == 0:
        pytest.skip("this machine has a GPU")
    done = tonnage("run", "--gpu", "real", "--", "true")
    assert done.returncode == 2 and "no NVIDIA" in one_line(done)


def test_names_are_found_in_any_spelling(tonnage):
    for name in ("RTX3060", "NVIDIA GeForce RTX 3060", "rtx 3060", "GeForce RTX 3060"):
        assert tonnage("run", "--quiet", "--gpu", name, "--", "true").returncode == UNDECIDED


# ---- the time limit, and compiling ----

COMPILER = """
import os, sys, time
folder = os.path.join(os.environ["TONNAGE_RUN"], "guest")
os.makedirs(folder, exist_ok=True)
open(os.path.join(folder, "%d.compiling" % os.getpid()), "w").close()
ledger = os.path.join(os.environ["TONNAGE_RUN"], "ledger")
while True:  # what the supervisor has counted
    with open(ledger, "rb") as file:
        file.seek(64 + 8 * 7)
        if int.from_bytes(file.read(8), "little") >= 300:
            break
    time.sleep(0.02)
print("counted", flush=True)
"""


def test_compiling_is_counted_and_told_to_the_hook(tonnage):
    """The program ends once the ledger says that it has compiled for 0.3 s."""
    done = tonnage("run", "--", sys.executable, "-I", "-c", COMPILER)
    assert done.stdout == "counted\n"


def test_a_child_that_is_a_compiler_is_counted(tonnage):
    """A process called ninja; the hook of this one says nothing."""
    waits = COMPILER.replace('open(os.path.join(folder, "%d.compiling" % os.getpid()), "w").close()', "")
    ninja = tonnage.cwd / "ninja"
    ninja.symlink_to("/bin/sleep")
    assert "compiling" not in waits
    done = tonnage("run", "--", "sh", "-c", './ninja 60 & "$0" -I -c "$1"; kill $!', sys.executable, waits)
    assert done.stdout == "counted\n"


def test_no_more_is_counted_than_is_allowed(tonnage):
    """With a limit of 0 nothing is: the program ends after 100 looks."""
    looks = COMPILER.replace("while True:", "for _ in range(100):").replace("            break", "            sys.exit(3)")
    done = tonnage("run", "--compile-seconds", "0", "--", sys.executable, "-I", "-c", looks + "\nsys.exit(7)")
    assert done.returncode == 7


@pytest.mark.parametrize("words", [["--seconds", "0"], ["--seconds", "x"], ["--compile-seconds", "-1"], ["--seconds", "1.5"]])
def test_seconds_that_are_none(tonnage, words):
    done = tonnage("run", *words, "--", "true")
    assert done.returncode == 2 and "is a whole number of seconds" in one_line(done)


# ---- work that was refused ----

REFUSED = """
import ctypes, glob, os, sys
sys.path.insert(0, %r)
import fake_guest
fake_guest.take([["forward", 4 << 20]], None)
(path,) = glob.glob(os.path.join(os.environ["TONNAGE_LIB"], "vgpu", "lib%s.so*"))[:1]
print(ctypes.CDLL(path).%s(*[None] * 8))
fake_guest.write_word(6, int(sys.argv[1]))  # complete steps and passes
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize("library, call, passes, status, verdict", [
    ("cusolver", "cusolverDnCaxpyHost", 0, 0, "undecided"),  # swallowed, and nothing came after it
    ("cusolver", "cusolverDnCaxpyHost", 1, 0, "fits"),
    ("cusolver", "cusolverDnCaxpyHost", 0, 4, "failed"),  # of that, perhaps: the report explains it at once
    ("nvidia-ml", "nvmlDeviceGetSamples", 0, 0, "fits"),  # a monitor asks; no memory hangs on it
])  # fmt: skip
def test_work_that_was_refused(tonnage, library, call, passes, status, verdict):
    words = REFUSED % (str(HERE), library, call)
    done = tonnage("run", "--json", "report.json", "--", sys.executable, "-I", "-c", words, passes, status)
    report = json.loads((tonnage.cwd / "report.json").read_text())
    assert [row["name"] for row in report["coverage"]["refused_calls"]] == [call], done.stderr
    assert report["verdict"] == verdict and done.returncode == {"undecided": UNDECIDED}.get(verdict, status)
    told = [row for row in report["findings"] if call in row["what"]]
    assert [row["severity"] for row in told] == {"undecided": ["error"], "fits": ["hint"], "failed": ["warning"]}[verdict] * (
        library == "cusolver")  # fmt: skip
    if verdict == "failed":
        assert "a solver of cuSOLVER" in done.stderr.splitlines()[1]


@pytest.mark.parametrize("status, oom, verdict", [(0, False, "undecided"), (1, False, "undecided"), (1, True, "out_of_memory")])
def test_a_download_that_was_refused(tonnage, status, oom, verdict):
    """The wall leaves such a line: what the program did without the file says nothing, unless memory ended it."""
    document = {"out_of_memory": OOM, "out_of_memory_ended_process": True} if oom else {}
    words = ("import json, os, sys; sys.path.insert(0, %r); import fake_guest; "
             "open(os.path.join(os.environ['TONNAGE_RUN'], %r), 'a').write('download\\tweights.example\\n'); "
             "sys.argv[1:] = [%r]; fake_guest.main()"
             % (str(HERE), "state/held", json.dumps({"document": document, "exit": status})))  # fmt: skip
    done = tonnage("run", "--json", "report.json", "--", sys.executable, "-I", "-c", words)
    report = json.loads((tonnage.cwd / "report.json").read_text())
    assert report["verdict"] == verdict and done.returncode == {"undecided": UNDECIDED, "out_of_memory": 10}[verdict]
    if verdict == "undecided":
        assert "weights.example" in report["findings"][0]["what"] and "--network allow" in report["findings"][0]["do"]
