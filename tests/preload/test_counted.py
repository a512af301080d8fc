# SPDX-License-Identifier: Apache-2.0
"""What Landlock refuses of direct system calls is counted and named: opens for writing, and names made or removed. What it
allows, or what would have failed anyhow, is not counted; opening for reading, and all that goes through libc, asks nobody."""
import collections
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_roads import TONNAGE, place, programs  # noqa: E402,F401
from test_overlay import HERE, compile_c  # noqa: E402

# Roads of roads.c, and the call that Landlock refuses on each. The last ones are calls of 32-bit programs.
REFUSED = {
    "open_write": "openat", "open_both": "openat", "open_append": "openat", "open_truncate": "openat", "open_old": "open",
    "open_new": "openat", "open_how": "openat2", "open_by_folder": "openat", "open_by_link": "openat", "open_hard_link": "openat",
    "reopen_read": "openat", "reopen_path": "openat", "open_dots": "openat", "open_proc_cwd": "openat", "nameless": "openat",
    "creat": "creat", "truncate": "truncate", "unlink": "unlink", "unlinkat": "unlinkat", "rmdir": "rmdir",
    "unlinkat_folder": "unlinkat", "mkdir": "mkdir", "mkdirat": "mkdirat", "symlink": "symlink", "symlinkat": "symlinkat",
    "old_open": "open", "old_creat": "creat", "old_truncate": "truncate", "old_unlink": "unlink", "old_mkdir": "mkdir",
    "old_symlink": "symlink"}  # fmt: skip


@pytest.fixture(scope="session")
def told(programs):  # noqa: F811
    return compile_c(programs / "told", [HERE / "counted.c"], "-static")


@pytest.fixture
def roads(programs, tmp_path):  # noqa: F811
    """Without those of 32-bit programs where the kernel runs none."""
    old = subprocess.run([programs / "static", "old_mkdir", tmp_path], capture_output=True).returncode == 0
    return {road: call for road, call in REFUSED.items() if old or not road.startswith("old_")}


def counts(files):
    return collections.Counter({row["call"]: row["count"] for row in files["refusals"]})


def octal(flags):
    return f"{flags:o}"


def words_of(text):
    return " ".join(text.split())


# ---- what is counted ----

@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_what_landlock_refuses_is_counted(programs, place, roads, kind):  # noqa: F811
    script = 'program=$1; shift; for road; do $program $road . 2>&1 && echo open $road; done; true'
    files, done = place.run(["sh", "-c", script, "sh", programs / kind, *roads])
    assert "open " not in done.stdout and place.changed() == {}
    assert counts(files) == collections.Counter(roads.values()) and files["refused"] == len(roads)
    assert {row["program"] for row in files["refusals"]} == {kind}
    assert f"{len(roads)} changes of real files were refused (openat by {kind})" in words_of(done.stderr)


def test_one_refused_open_is_named(place, told):  # noqa: F811
    files, done = place.run([told, "open", octal(os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "old"])
    assert done.stdout == "Permission denied\n" and place.changed() == {}
    assert files["refusals"] == [{"call": "open", "program": "told", "count": 1}] and files["refused"] == 1
    said = words_of(done.stderr)
    assert "1 change of real files was refused (open by told)" in said
    assert "told calls the kernel without the C library: changes made that way outside the run are refused" in said


def test_a_handle_of_libc_itself_is_counted(place):  # noqa: F811
    """RTLD_DEEPBIND: a library's open goes past the overlay."""
    program = """
import ctypes, os
libc = ctypes.CDLL('libc.so.6', mode=8, use_errno=True)
own = ctypes.CDLL(None)
own.dlmopen.restype = own.dlsym.restype = ctypes.c_void_p
handle = own.dlmopen(ctypes.c_long(-1), b'libc.so.6', 2)
address = own.dlsym(ctypes.c_void_p(handle), b'open')
assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int)(address)(b'old', os.O_RDWR) == -1
"""
    files, done = place.run(["/usr/bin/python3", "-c", program])
    assert "Error" not in done.stderr and place.changed() == {}
    assert [(row["call"], row["count"]) for row in files["refusals"]] == [("openat", 1)]


# ---- what is not ----

def test_in_the_run_folder_all_is_allowed(programs, place, roads):  # noqa: F811
    script = """program=$1; shift; own=$TONNAGE_RUN/own
        for road; do
            rm -rf $own; mkdir $own $own/empty $own/tree; echo x > $own/old; ln $own/old $own/hard; ln -s old $own/link
            $program $road $own || echo refused $road
        done"""
    files, done = place.run(["sh", "-c", script, "sh", programs / "static", *roads])
    assert done.stdout == "" and files["refused"] == 0


def test_in_a_folder_of_the_scratch_all_is_allowed(place, told):  # noqa: F811
    """The working folder of a program that calls the kernel itself may be one that the run has made."""
    script = f"mkdir fresh; cd fresh; {told} openat {octal(os.O_WRONLY | os.O_CREAT)} made; test -f made; cat made"
    files, done = place.run(["sh", "-c", script])
    assert done.stdout == "open\n" and files["refused"] == 0 and place.changed() == {}


def test_what_fails_anyhow_or_changes_nothing_is_not_counted(place, told):  # noqa: F811
    (place.tree / "tree/inside").symlink_to("/dev/null")
    place.before = {}
    write, make = os.O_WRONLY, os.O_WRONLY | os.O_CREAT
    cases = [(write, "/dev/null", "open"), (write, "tree/inside", "open"), (write, "/proc/self/comm", "open"),
             (write, "absent", "No such"), (make, "nowhere/made", "No such"), (make | os.O_EXCL, "old", "File exists"),
             (write | os.O_PATH, "old", "open"), (write, "tree", "Is a"), (write | os.O_NOFOLLOW, "link", "Too many"),
             (os.O_RDONLY | os.O_CREAT, "old", "open"), (os.O_RDONLY, "old", "open"), (write | os.O_CREAT, "old/made", "Not a")]  # fmt: skip
    if place.user == "nobody":
        cases.append((write, "read-only", "Permission"))
        cases.append((make, "/etc/tonnage-made", "Permission"))
    for call in ("open", "openat", "openat2"):
        if call == "openat2":
            cases = [case for case in cases if not case[0] & os.O_PATH]  # which it takes for a mistake
        script = "\n".join(f"{told} {call} {octal(flags)} {path}" for flags, path, _ in cases)
        files, done = place.run(["sh", "-c", script])
        said = done.stdout.splitlines()
        assert [line for line, case in zip(said, cases) if not line.startswith(case[2])] == [] and len(said) == len(cases)
        assert files["refusals"] == [] and files["refused"] == 0


def test_inherited_output_is_not_counted(place, told):  # noqa: F811
    log = place.tree / "log"
    script = f"for name in /dev/stdout /proc/self/fd/1 {log}; do {told} openat {octal(os.O_WRONLY | os.O_APPEND)} $name; done"
    with open(log, "w") as out:
        subprocess.run([TONNAGE, "run", "--gpu", "t4", "--json", place.temporary / "report.json", "--", "sh", "-c", script], cwd=place.tree,
                       stdout=out, stderr=subprocess.PIPE, check=False, timeout=100)
    assert log.read_text() == "open\n" * 3
    assert '"refused": 0' in (place.temporary / "report.json").read_text()


def test_without_landlock_nothing_is_said_to_be_refused(programs, place, told):  # noqa: F811
    files, done = place.run([told, "openat", octal(os.O_WRONLY), "old"], [programs / "no-wall", "landlock"])
    assert done.stdout == "open\n" and files["refused"] == 0 and files["walls"]["landlock"] is False


# ---- who is asked ----

ASKED = """
import ctypes, os, signal, subprocess, sys, tempfile
told, reaper, run = sys.argv[1], os.getppid(), os.environ["TONNAGE_RUN"]
libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype, libc.fclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

def is_in(pid, state):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == state

def by_libc():
    open("new", "w").close(); open("old", "a").close(); os.close(os.open("big", os.O_RDWR)); os.truncate("big", 5)
    for mode in (b"w", b"a+", b"r+"):
        assert libc.fclose(libc.fopen(b"stream", mode)) == 0
    os.close(libc.creat(b"created", 0o600))
    os.mkdir("folder"); os.symlink("old", "folder/link"); os.rename("new", "folder/new"); os.unlink("folder/link")
    os.unlink("tree/c/four"); os.rmdir("tree/c")
    with tempfile.TemporaryDirectory() as there, tempfile.TemporaryFile() as one, tempfile.NamedTemporaryFile() as two:
        one.write(b"x"); two.write(b"x")
    subprocess.run(["sh", "-c", "echo x > fromshell; mkdir made; cp old made/copy; rm -r made; exec 2>/dev/null"], check=True)

signal.signal(signal.SIGALRM, lambda *_: sys.exit("somebody waits for the reaper"))
os.kill(reaper, signal.SIGSTOP)
try:
    while not is_in(reaper, "T"):
        os.sched_yield()
    signal.alarm(60)
    for call in ("open", "openat"):
        subprocess.run([told, call, "0", "old"], check=True)
    by_libc()
    asking = subprocess.Popen([told, "openat", f"{os.O_WRONLY | os.O_CREAT:o}", run + "/made"])
    while not (is_in(asking.pid, "S") and open(f"/proc/{asking.pid}/syscall").read().startswith("257 ")):
        assert asking.poll() is None
    print("asks", flush=True)
finally:
    os.kill(reaper, signal.SIGCONT)
assert asking.wait() == 0
"""


def test_reading_and_libc_ask_nobody(place, told):  # noqa: F811
    """All of it ends while the reaper is stopped; an open for writing that is not libc's waits for it."""
    files, done = place.run(["/usr/bin/python3", "-c", ASKED, told])
    assert done.stdout.split() == ["open", "open", "asks", "open"], done.stderr
    assert files["refused"] == 0 and place.changed() == {}


def test_streams_are_those_of_libc(programs, place):  # noqa: F811
    """What writes is opened by the overlay and not by fopen: mode by mode there is no difference."""
    streams = compile_c(programs / "streams", [HERE / "streams.c"])
    folder = place.temporary / "streams"
    (folder / "folder").mkdir(parents=True)
    if place.user == "nobody":
        subprocess.run(["chown", "-R", "65534:65534", folder], check=True)
    plain = subprocess.run([streams], cwd=folder, capture_output=True, text=True, check=True).stdout
    for name in ("there", "absent"):
        (folder / name).unlink(missing_ok=True)
    files, done = place.run(["sh", "-c", f"cd {folder} && {streams}"])
    assert "at 8, flags 2001" in plain and plain.count("\n") == 80
    assert done.stdout == plain and files["refused"] == 0 and [path.name for path in folder.iterdir()] == ["folder"]
