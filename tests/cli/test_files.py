# SPDX-License-Identifier: Apache-2.0
"""The program's files in a whole run: the scratch folder's disk, its limit, holes, shared memory, inherited output, what is
said at the end, and `tonnage clean`."""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

import pytest
from command import TONNAGE

UNDECIDED = 12  # a program that uses no card


def words_of(text):
    return " ".join(text.split())


def run_json(tonnage, *words, **more):
    report = tonnage.cwd / "report.json"
    done = tonnage("run", "--json", report, *words, **more)
    return json.loads(report.read_text()), done


# ---- the disk ----

ZEROS = """
import os, sys
block = bytes(64 << 20)
with open("write", "wb") as f:
    f.write(b"head"); f.write(block); f.write(b"tail")
with open("write", "rb") as f:
    assert f.read(4) == b"head" and f.seek(4 + len(block)) and f.read() == b"tail"
with open("over", "wb") as f:
    f.write(b"x" * (8 << 20)); f.seek(1 << 20); f.write(bytes(4 << 20))
data = open("over", "rb").read()
assert data == b"x" * (1 << 20) + bytes(4 << 20) + b"x" * (3 << 20)
fd = os.open("at", os.O_RDWR | os.O_CREAT)
assert os.pwrite(fd, block, 5) == len(block) and os.fstat(fd).st_size == 5 + len(block)
assert os.lseek(fd, 0, os.SEEK_CUR) == 0
assert os.writev(fd, [b"abc", block, b"z"]) == len(block) + 4 and os.lseek(fd, 0, os.SEEK_CUR) == len(block) + 4
assert os.pread(fd, 4, 0) == b"abc\\0" and os.pread(fd, 1, len(block) + 3) == b"z"
with open("append", "wb") as f: f.write(b"x")
with open("append", "ab") as f: f.write(block)
assert os.path.getsize("append") == 1 + len(block)
os.unlink("append")
import ctypes
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fopen(b"stream", b"wb"))
buffer = ctypes.create_string_buffer(32 << 20)
libc.fwrite.restype = ctypes.c_size_t
assert libc.fwrite(b"one", ctypes.c_size_t(1), ctypes.c_size_t(3), stream) == 3
assert libc.fwrite(buffer, ctypes.c_size_t(4), ctypes.c_size_t(8 << 20), stream) == 8 << 20
assert libc.fwrite(b"two", ctypes.c_size_t(1), ctypes.c_size_t(3), stream) == 3
libc.fclose(stream)
with open("stream", "rb") as f:
    data = f.read()
assert data == b"one" + bytes(32 << 20) + b"two"
import shutil
shutil.copyfile("write", "copy")
assert open("copy", "rb").read() == open("write", "rb").read()
"""


def test_zeros_take_no_disk_and_read_the_same(tonnage):
    report, done = run_json(tonnage, "--", sys.executable, "-c", ZEROS)
    assert done.returncode == UNDECIDED, done.stderr
    files = report["files"]
    assert files["scratch_bytes"] > 220 << 20 and files["scratch_disk_bytes"] < 6 << 20
    assert "MiB on the disk); nothing real was changed" in words_of(done.stderr)


def test_the_limit_is_enospc_and_a_finding(tonnage):
    program = """
import os
try:
    with open("big", "wb", buffering=0) as f:
        for i in range(60): f.write(os.urandom(1 << 20))
    raise SystemExit("no limit")
except OSError as e:
    assert e.errno == 28, e
os.unlink("big")
with open("again", "wb", buffering=0) as f: f.write(os.urandom(10 << 20))
"""
    report, done = run_json(tonnage, "--scratch", "20MiB", "--", sys.executable, "-c", program)
    assert done.returncode == UNDECIDED, done.stderr
    assert report["files"]["full"] and report["files"]["limit_bytes"] == 20 << 20
    assert report["files"]["scratch_disk_bytes"] <= 20 << 20
    assert "scratch_full" in [row["id"] for row in report["findings"] if row["severity"] == "error"]


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()

    def mount(size):
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder]).returncode != 0:
            pytest.skip("needs to mount a tmpfs")
        return folder

    yield mount
    subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL)


def test_a_full_disk_is_said(tonnage, small_disk):
    environment = {**tonnage.env, "TMPDIR": str(small_disk("16M"))}
    report = tonnage.cwd / "report.json"
    program = "import os\nwith open('big', 'wb') as f: f.write(os.urandom(40 << 20))"
    done = subprocess.run([TONNAGE, "run", "--json", report, "--", sys.executable, "-c", program], cwd=tonnage.cwd,
                          env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "No space left on device" in done.stderr and "signal" not in done.stderr
    files = json.loads(report.read_text())
    assert files["files"]["full"] and "scratch_full" in [row["id"] for row in files["findings"]]


@pytest.mark.parametrize("size", ["3M", "128k"])
def test_a_disk_too_small_to_begin_is_one_line(tonnage, small_disk, size):
    environment = {**tonnage.env, "TMPDIR": str(small_disk(size))}
    done = subprocess.run([TONNAGE, "run", "--", "true"], cwd=tonnage.cwd, env=environment, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1 and "is full" in done.stderr
    assert list(pathlib.Path(environment["TMPDIR"]).iterdir()) == []


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_a_limit_on_files_is_a_plain_error(tonnage, limit):
    done = subprocess.run([TONNAGE, "run", "--", "true"], cwd=tonnage.cwd, env=tonnage.env, capture_output=True, text=True,
                          timeout=60, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 125 and "ulimit -f" in done.stderr and len(done.stderr.splitlines()) == 1
    assert tonnage.left_behind() == []


# ---- inherited output ----

@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/2"])
@pytest.mark.parametrize("how", [">>", "tee -a"])
def test_output_into_a_file_may_be_opened_again(tonnage, name, how):
    log = tonnage.cwd / "log"
    script = f"echo word {how} {name}" if how == ">>" else f"echo word | tee -a {name}"
    with open(log, "a") as file:
        done = subprocess.run([TONNAGE, "run", "--quiet", "--", "sh", "-c", script], cwd=tonnage.cwd, env=tonnage.env,
                              stdout=file, stderr=file, timeout=60)
    assert done.returncode == UNDECIDED and "word\n" in log.read_text() and "denied" not in log.read_text()


# ---- shared memory ----

def test_shared_memory_of_others_is_theirs(tonnage):
    name = f"tonnage-test-{os.getpid()}"
    theirs = pathlib.Path("/dev/shm") / name
    theirs.write_text("theirs")
    gone = theirs.with_name(name + "-gone")
    gone.write_text("theirs, too")
    program = f"""
import multiprocessing, os
from multiprocessing import shared_memory
open({str(theirs)!r}, "w").write("mine")
assert open({str(theirs)!r}).read() == "mine"
os.unlink({str(gone)!r})
assert not os.path.exists({str(gone)!r})
block = shared_memory.SharedMemory(create=True, size=1 << 20)
block.buf[:4] = b"made"
def child(name, semaphore):
    other = shared_memory.SharedMemory(name)
    assert bytes(other.buf[:4]) == b"made"
    other.close()
    semaphore.release()
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    semaphore = context.Semaphore(0)
    process = context.Process(target=child, args=(block.name, semaphore))
    process.start()
    assert semaphore.acquire(timeout=20)
    process.join()
    assert process.exitcode == 0
    assert os.stat("/dev/shm/" + block.name).st_dev == os.stat("/dev/shm").st_dev, "it is memory still"
    block.close(); block.unlink()
"""
    before = {path.name for path in pathlib.Path("/dev/shm").iterdir()}
    try:
        (tonnage.cwd / "shared.py").write_text(program)
        done = tonnage("run", "--", sys.executable, "shared.py")
        assert done.returncode == UNDECIDED, done.stderr
        assert theirs.read_text() == "theirs" and gone.read_text() == "theirs, too"
        left = {path.name for path in pathlib.Path("/dev/shm").iterdir()} - before
        assert not [name for name in left if name.startswith(("psm_", "sem.mp-"))]
    finally:
        theirs.unlink()
        gone.unlink()


# ---- tonnage clean ----

def test_clean(tonnage, schema):
    done = tonnage("run", "--", "sh", "-c", "head -c 3000000 /dev/urandom > kept")
    kept = next(tonnage.temporary.glob("tonnage-*"))
    orphan = tonnage.temporary / f"tonnage-{os.getuid()}-orphan"
    (orphan / "state").mkdir(parents=True)
    (orphan / "lock").touch()
    foreign = tonnage.temporary / "tonnage-other"
    foreign.mkdir()
    process = tonnage.start("run", "--", "sleep", "100")
    running = next(path for path in iter(lambda: tonnage.folder(), None) if path not in (kept, orphan))
    orphan.mkdir(exist_ok=True)  # a run that starts removes orphans
    (orphan / "lock").touch()
    listed = json.loads(tonnage("clean", "--dry-run", "--json").stdout)
    schema("clean", listed)
    rows = {row["path"]: row for row in listed["folders"] if row["kind"] != "cache"}
    mine = {path: row["kind"] for path, row in rows.items() if path.startswith(str(tonnage.temporary))}
    assert mine == {str(kept): "scratch", str(orphan): "orphan", str(running): "running"}
    assert kept.exists() and rows[str(kept)]["disk_bytes"] > 2_900_000 and listed["freed_bytes"] > 2_900_000
    done = tonnage("clean")
    assert done.returncode == 0 and "removed" in done.stdout and "freed" in done.stdout and "in use" in done.stdout
    assert not kept.exists() and not orphan.exists() and running.exists() and foreign.exists()
    process.terminate()
    process.wait(20)


def test_clean_lists_what_has_an_odd_name(tonnage, schema):
    """Neither JSON nor a terminal takes the name as it is; the folder is told and removed like any other."""
    odd = os.fsencode(tonnage.temporary) + b"/tonnage-%d-\xff\x1b[2Jodd" % os.getuid()
    os.mkdir(odd)
    os.mkdir(odd + b"/state")
    open(odd + b"/lock", "x").close()
    listed = json.loads(tonnage("clean", "--dry-run", "--json").stdout)
    schema("clean", listed)
    (row,) = [row for row in listed["folders"] if row["path"].endswith("odd")]
    assert row["kind"] == "orphan" and row["removable"] and not row["removed"]
    done = tonnage("clean")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("orphan")]
    assert line.endswith("odd  removed") and "\x1b" not in line and not os.path.exists(odd)


def test_clean_says_that_nothing_is_left(tonnage):
    done = tonnage("clean", "--nothing")
    assert done.returncode == 2 and "unknown option" in done.stderr
    assert tonnage("clean").returncode == 0


# ---- what is said at the end ----

def test_programs_past_the_library_are_named(tonnage):
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    source = tonnage.cwd / "s.c"
    source.write_text('#include <sys/stat.h>\n#include <stdlib.h>\n'
                      'int main(int n, char **a) { return n > 1 && chmod(a[1], 0777); }\n')
    subprocess.run(["cc", "-static", "-o", tonnage.cwd / "static-tool", source], check=True)
    real = tonnage.cwd / "real"
    real.touch(0o600)
    report, done = run_json(tonnage, "--", "sh", "-c", "./static-tool; ./static-tool real")
    assert report["files"]["unseen_programs"] == ["static-tool"] and real.stat().st_mode & 0o777 != 0o777
    assert report["files"]["refused"] == 1
    assert report["files"]["refusals"] == [{"call": "chmod", "program": "static-tool", "count": 1}]
    said = words_of(done.stderr)
    assert "1 change of real files was refused (chmod by static-tool)" in said
    assert "static-tool calls the kernel without the C library" in said and "changed no file" not in said
