# SPDX-License-Identifier: Apache-2.0
"""Whatever is killed or interrupted: no process, no shared memory and no file of a run is left. Guests are fakes."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from command import TONNAGE, UNDECIDED, fake_words, wait_until

DAEMON = """
import os, sys, time
for depth in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(100)
        time.sleep(100)
open("ready", "w").close()
time.sleep(float(sys.argv[1]))
"""


def daemons(tonnage, seconds=100):
    """Starts a program with nine processes below it, some in sessions of their own and some orphaned."""
    process = tonnage.start("run", "--writes", "allow", "--", sys.executable, "-I", "-c", DAEMON, str(seconds))
    assert wait_until(lambda: (tonnage.cwd / "ready").exists())
    return process


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def reaper_of(process):
    """The reaper, once it is there."""
    children = wait_until(lambda: children_of(process.pid))
    assert len(children) == 1
    return children[0]


def program_of(process):
    return wait_until(lambda: children_of(reaper_of(process)))[0]


def nothing_left(tonnage):
    assert wait_until(lambda: not tonnage.processes()), tonnage.processes()
    assert wait_until(lambda: not tonnage.left_behind()), tonnage.left_behind()
    return True


def test_children_that_outlive_the_program_are_ended(tonnage):
    start = time.monotonic()
    process = daemons(tonnage, seconds=0.1)
    assert process.wait(20) == UNDECIDED and time.monotonic() - start < 10
    assert nothing_left(tonnage)


def test_children_get_a_moment_to_finish(tonnage):
    done = tonnage("run", "--writes", "allow", "--", "sh", "-c", "(sleep 0.3; echo late > late) &")
    assert done.returncode == UNDECIDED and (tonnage.cwd / "late").read_text() == "late\n"


def test_killed_supervisor(tonnage):
    process = daemons(tonnage)
    process.kill()
    assert process.wait(10) == -9
    assert nothing_left(tonnage)


def test_killed_reaper(tonnage):
    process = daemons(tonnage)
    os.kill(reaper_of(process), signal.SIGKILL)
    assert process.wait(20) == 125
    assert "reaper process of the run was killed" in process.stderr.read()
    assert nothing_left(tonnage)


def test_killed_program(tonnage):
    process = daemons(tonnage)
    os.kill(program_of(process), signal.SIGKILL)
    assert process.wait(20) == 137
    assert nothing_left(tonnage)


def test_killed_together_leaves_an_orphan_that_the_next_start_removes(tonnage):
    process = tonnage.start("run", "--", *fake_words(document={}, sleep=100))
    folder = tonnage.folder()
    reaper = reaper_of(process)
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(reaper, signal.SIGKILL)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    assert wait_until(lambda: not tonnage.processes())  # the program's parent-death signal
    assert folder.exists()
    assert tonnage("run", "--", "true").returncode == UNDECIDED
    assert nothing_left(tonnage)


def test_a_living_run_is_no_orphan(tonnage):
    process = tonnage.start("run", "--", *fake_words(document={}, sleep=3))
    folder = tonnage.folder()
    assert tonnage("run", "--", "true").returncode == UNDECIDED
    assert folder.exists() and process.wait(20) == 0
    assert nothing_left(tonnage)


def test_folders_of_others_stay(tonnage):
    kept = tonnage.temporary / f"tonnage-{os.getuid()}-kept12/scratch/files"
    kept.mkdir(parents=True)
    foreign = tonnage.temporary / "tonnage-999999-abcdef"
    foreign.mkdir()
    (foreign / "lock").touch()
    locked = tonnage.temporary / f"tonnage-{os.getuid()}-locked"
    locked.mkdir()
    with open(locked / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tonnage("run", "--", "true").returncode == UNDECIDED
        assert kept.exists() and foreign.exists() and locked.exists()


def test_folders_of_starts_that_were_killed_before_they_had_a_lock_are_removed(tonnage):
    empty, early, held, full = (tonnage.temporary / f"tonnage-{os.getuid()}-{name}" for name in ("e", "f", "g", "h"))
    for folder in (empty, early, held, full):
        folder.mkdir()
    for folder in (early, held, full):
        (folder / "lock.new").touch()
    (full / "precious").touch()
    with open(held / "lock.new", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tonnage("run", "--", "true").returncode == UNDECIDED
        assert not empty.exists() and not early.exists() and held.exists() and (full / "precious").exists()


@pytest.mark.parametrize("name, status", [("SIGINT", 130), ("SIGTERM", 143)])
def test_signal_to_the_supervisor_is_passed_on(tonnage, schema, name, status):
    report = tonnage.cwd / "report.json"
    process = tonnage.start("run", "--json", report, "--", *fake_words(document={}, steps=2, sleep=100))
    tonnage.folder()
    assert process.stdout.readline() == "the program's own output\n"
    process.send_signal(getattr(signal, name))
    assert process.wait(10) == status
    document = json.loads(report.read_text())
    schema("run", document)
    assert document["steps"]["stopped"] == "interrupted" and document["peak"]["reserved_bytes"] == 4 << 20
    assert "Interrupted: no verdict" in process.stderr.read()
    assert nothing_left(tonnage)


def test_a_program_that_ignores_ctrl_c_is_ended(tonnage):
    words = "trap '' INT TERM; echo ready; while :; do sleep 0.2; done"
    process = tonnage.start("run", "--", "sh", "-c", words)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)  # the second one does not wait
    assert process.wait(10) == 130
    assert nothing_left(tonnage)


WATCHERS = """
import os, select, signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
first = os.fork()
if first == 0:
    time.sleep(100)
for _ in range(40):
    if os.fork() == 0:
        select.select([os.pidfd_open(first)], [], [])
        open("seen", "w").close()
        time.sleep(100)
time.sleep(0.5)
print("ready", flush=True)
time.sleep(100)
"""


def test_no_process_sees_another_one_go(tonnage):
    """It would say so on the program's own screen (multiprocessing's resource_tracker), though nothing is wrong."""
    process = tonnage.start("run", "--writes", "allow", "--", sys.executable, "-I", "-c", WATCHERS)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130 and nothing_left(tonnage)
    assert not (tonnage.cwd / "seen").exists()


def test_ctrl_c_on_a_terminal_reaches_the_program_once(tonnage):
    """In a session of its own with a terminal, the line discipline sends the signal to all of the foreground group."""
    script = tonnage.cwd / "count.py"
    script.write_text(
        "import signal, sys, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\n"
        "time.sleep(1.0) or time.sleep(0.5)\n"
        "print('seen', len(seen), flush=True)\n"
    )
    driver = (
        "import os, pty, sys, time\n"
        "pid, terminal = pty.fork()\n"
        "if pid == 0:\n"
        "    os.execv(sys.argv[1], sys.argv[1:])\n"
        "text = b''\n"
        "while b'ready' not in text: text += os.read(terminal, 1000)\n"
        "os.write(terminal, b'\\x03')\n"
        "try:\n"
        "    while True: text += os.read(terminal, 1000)\n"
        "except OSError: pass\n"
        "print(text.decode()); sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    command = [sys.executable, "-c", driver, str(TONNAGE), "run", "--", sys.executable, "-I", str(script)]
    done = subprocess.run(command, env=tonnage.env, cwd=tonnage.cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stdout + done.stderr
    assert "seen 1" in done.stdout and "Interrupted" in done.stdout
    assert nothing_left(tonnage)


def test_ignored_signals_stay_ignored(tonnage):
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = tonnage.start("run", "--", *fake_words(sleep=1.0), preexec_fn=ignore)
    tonnage.folder()
    process.send_signal(signal.SIGHUP)
    assert process.wait(20) == UNDECIDED


def shared_memory():
    top = pathlib.Path("/dev/shm")
    return {path.name for path in top.iterdir()}


def own_shared_memory(folder):
    """Names in what a run has of /dev/shm for itself."""
    return {path.name for path in (pathlib.Path("/dev/shm") / folder.name / "files").iterdir()}


LEAKS = """
import ctypes, mmap, os, sys, time
names = ["torch_%d_123_0" % os.getpid(), "sem.mp-tonnage1", "psm_tonnage1"]
kept = []
for name in names:
    fd = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 4096)
    kept.append(mmap.mmap(fd, 4096))
    os.close(fd)
print("ready", flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("who", ["supervisor", "reaper", "interrupted"])
def test_shared_memory_of_killed_processes_is_removed(tonnage, who):
    foreign = pathlib.Path("/dev/shm/sem.mp-not-ours-%d" % os.getpid())
    foreign.touch()
    try:
        before = shared_memory()
        process = tonnage.start("run", "--", "sh", "-c", "trap '' INT; \"$0\" -I -c \"$1\"", sys.executable, LEAKS)
        assert process.stdout.readline() == "ready\n"
        folder = pathlib.Path("/dev/shm") / tonnage.folder().name
        assert len(own_shared_memory(folder)) == 3
        if who == "interrupted":
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
        else:
            os.kill(process.pid if who == "supervisor" else reaper_of(process), signal.SIGKILL)
        process.wait(20)
        assert nothing_left(tonnage)
        mine = {name for name in shared_memory() - before if "tonnage1" in name or name.endswith("_123_0")}
        assert not folder.exists() and mine == set() and foreign.exists()
    finally:
        foreign.unlink()


def test_a_closed_terminal_does_not_leave_a_folder(tonnage):
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen([str(TONNAGE), "run", "--", "true"], env=tonnage.env, cwd=tonnage.cwd, stderr=write)
    os.close(write)
    assert process.wait(20) == UNDECIDED
    assert nothing_left(tonnage)


def test_peak_rss_of_the_largest_process(tonnage):
    report = tonnage.cwd / "report.json"
    words = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', 'x = bytearray(150 << 20)'])"
    assert tonnage("run", "--json", report, "--", sys.executable, "-I", "-c", words).returncode == UNDECIDED
    peak = json.loads(report.read_text())["host"]["peak_rss_bytes"]
    assert 150 << 20 < peak < 220 << 20
