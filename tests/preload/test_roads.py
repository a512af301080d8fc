# SPDX-License-Identifier: Apache-2.0
"""Roads past the C library (roads.c: some 150 ways to write a file or to change its metadata by direct system calls), in a
whole `tonnage run`: nothing of a real tree may change, whichever road is taken, as root and as an ordinary user, from a
static and from a dynamic program, and with either of the kernel's walls missing as far as the other one goes.

Proof that a road leads somewhere: `test_roads_lead_somewhere` takes them without Tonnage.
"""
import array
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_overlay import HERE, NOBODY, ROOT, compile_c, fingerprint, make_tree  # noqa: E402

TONNAGE = ROOT / "build/bin/tonnage"
GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS

# Contents and names are Landlock's; without it these roads are open, and the report says so.
LANDLOCKS = {"open_write", "open_both", "open_append", "open_truncate", "open_old", "open_new", "open_how",
             "open_by_folder", "open_by_link", "open_hard_link", "reopen_read", "reopen_path", "creat", "truncate", "unlink",
             "unlinkat", "rmdir", "unlinkat_folder", "mkdir", "mkdirat", "symlink", "symlinkat", "bind", "nameless",
             "others_root", "others_folder", "ptrace", "other_memory", "others_descriptor", "setns", "old_unlink", "old_truncate",
             "old_creat", "old_symlink", "old_mkdir", "old_open", "open_direct", "open_dots", "open_slashes", "open_proc_cwd"}


@pytest.fixture(scope="session")
def programs():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tonnage-roads-"))
    folder.chmod(0o755)
    compile_c(folder / "static", [HERE / "roads.c"], "-static", "-pthread")
    compile_c(folder / "dynamic", [HERE / "roads.c"], "-pthread")
    compile_c(folder / "no-wall", [HERE / "no_wall.c"])
    yield folder
    shutil.rmtree(folder)


def state_of(tree):
    """fingerprint(), with the inodes' flags and the values of attributes."""
    seen = fingerprint(tree)
    for path in list(seen):
        flags = None
        if os.path.isfile(path) or os.path.isdir(path):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            word = array.array("L", [0])
            try:
                fcntl.ioctl(fd, GET_FLAGS, word)
                flags = word[0]
            except OSError:
                pass
            os.close(fd)
        values = [(name, os.getxattr(path, name, follow_symlinks=False))
                  for name in os.listxattr(path, follow_symlinks=False)]
        seen[path] += (flags, tuple(values))
    return seen


class Place:
    def __init__(self, folder, user):
        self.tree, self.temporary, self.user = folder / "tree", folder / "tmp", user
        self.tree.mkdir()
        self.temporary.mkdir()
        make_tree(self.tree)
        try:
            os.setxattr(self.tree / "old", "user.kept", b"1")
        except OSError:
            pass
        if user == "nobody":
            for path in [folder, *folder.rglob("*")]:
                os.lchown(path, NOBODY, NOBODY)
        self.before = state_of(self.tree)

    def run(self, command, wall=()):
        become = [] if self.user == "root" else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        environment = {**os.environ, "TMPDIR": str(self.temporary), "HOME": str(self.temporary),
                       "OUTSIDER": str(os.getpid())}
        report = self.temporary / "report.json"
        done = subprocess.run([*become, *map(str, wall), TONNAGE, "run", "--gpu", "t4", "--json", report, "--", *command],
                              cwd=self.tree, env=environment, capture_output=True, text=True, timeout=100)
        assert report.exists(), done.stderr
        return json.loads(report.read_text())["files"], done

    def changed(self):
        after = state_of(self.tree)
        return {path: (self.before.get(path), after.get(path))
                for path in {*self.before, *after} if self.before.get(path) != after.get(path)}


@pytest.fixture(params=["root", "nobody"])
def place(request):
    if request.param == "nobody" and (os.geteuid() != 0 or not shutil.which("setpriv")):
        pytest.skip("needs root and setpriv to become an ordinary user")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tonnage-roads-tree-"))
    folder.chmod(0o755)
    yield Place(folder, request.param)
    subprocess.run(["chattr", "-R", "-dA", folder], stderr=subprocess.DEVNULL)
    shutil.rmtree(folder)


def roads(programs):
    return subprocess.run([programs / "static"], capture_output=True, text=True, check=True).stdout.split()


def take(place, program, names, wall=()):
    """Takes each road in one run: what each of them said."""
    script = 'program=$1; shift; for road; do echo "$road $($program $road . 2>&1 && echo open)"; done'
    files, done = place.run(["sh", "-c", script, "sh", program, *names], wall)
    return files, dict(line.partition(" ")[::2] for line in done.stdout.splitlines() if line.partition(" ")[0] in names)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_no_road_changes_anything(programs, place, kind):
    names = roads(programs)
    assert len(names) >= 150
    files, said = take(place, programs / kind, names)
    assert place.changed() == {}
    assert set(said) == set(names) and files["walls"] == {"landlock": True, "raw_calls": True}
    assert files["refused"] > 20 and {"chmod", "utimensat"} <= {row["call"] for row in files["refusals"]}
    assert files["unseen_programs"] == ([kind] if kind == "static" else [])


def test_without_landlock_metadata_is_safe_and_the_rest_is_said(programs, place):
    names = [name for name in roads(programs) if name not in LANDLOCKS]
    files, _ = take(place, programs / "static", names, [programs / "no-wall", "landlock"])
    assert place.changed() == {} and files["walls"] == {"landlock": False, "raw_calls": True}


def test_without_seccomp_contents_are_safe_and_the_rest_is_said(programs, place):
    names = sorted(LANDLOCKS - {"setns"})
    files, _ = take(place, programs / "static", names, [programs / "no-wall", "seccomp"])
    assert place.changed() == {} and files["walls"] == {"landlock": True, "raw_calls": False}


def test_no_road_changes_anything_without_an_environment(programs, place):
    """`env -i`: neither the preloaded library nor the run's variables are there, in a program that the run starts."""
    names = roads(programs)
    script = 'program=$1; shift; for road; do env -i $program $road . 2>&1; done; true'
    files, _ = place.run(["sh", "-c", script, "sh", programs / "static", *names])
    assert place.changed() == {} and files["refused"] > 20


def test_a_missing_wall_is_said_at_the_end(programs, place):
    _, done = place.run(["true"], [programs / "no-wall", "both"])
    assert "changed no file" not in done.stderr and "nothing real was changed" not in done.stderr
    assert "neither Landlock nor seccomp" in done.stderr


def test_inside_another_run(programs, place):
    """A second listener is refused by the kernel (EBUSY): the walls stand without one."""
    inner = ["--", TONNAGE, "run", "--gpu", "t4", "--", "sh", "-c", "for r in $1; do $0 $r .; done", programs / "static",
             " ".join(roads(programs))]
    place.run(inner[1:])
    assert place.changed() == {}


@pytest.mark.parametrize("place", ["root"], indirect=True)
def test_roads_lead_somewhere(programs, place):
    """Without Tonnage a road that is tested here for metadata does change the tree: the test above proves something."""
    for name in ("chmod", "fchmodat2", "chown", "utimensat", "mknod_fifo", "rename", "open_write", "setflags"):
        subprocess.run([programs / "static", name, "."], cwd=place.tree, capture_output=True)
        assert place.changed() != {}, name
        place.before = state_of(place.tree)
        if name == "mknod_fifo":
            os.unlink(place.tree / "made")
        if name == "rename":
            os.rename(place.tree / "made", place.tree / "old")


@pytest.mark.parametrize("place", ["root"], indirect=True)
@pytest.mark.parametrize("name", [
    "old_utime", "old_rename", "old_truncate", "old_open", "old_symlink", "old_mkdir", "old_lchown", "old_link", "old_mknod", "old_creat",
    "old_unlink", "open_direct", "open_dots", "open_slashes", "open_proc_cwd", "chmod_dots", "chmod_proc_cwd", "chmod_thread_cwd",
    "chmod_proc_root", "chmod_relative", "chmod_special_bits", "chmod_parent", "chown_nofollow", "utimensat_proc", "utimensat_folder",
    "utimes_by_link", "link_into_run", "link_of_run", "folder_link_of_run", "rename_into_run", "exchange_with_run", "in_thread", "in_child",
    "chmod_dev_fd"])  # fmt: skip
def test_each_further_road_leads_somewhere(programs, place, name):
    subprocess.run([programs / "static", name, "."], cwd=place.tree, capture_output=True, env={**os.environ, "TMPDIR": str(place.temporary)})
    assert place.changed() != {}


# ---- what must go on working ----

def test_raw_calls_work_on_what_the_run_has_made(programs, place):
    program = """
import ctypes, os, stat
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    result = libc.syscall(ctypes.c_long(number), *words)
    return -ctypes.get_errno() if result < 0 else result
N = ctypes.c_long
here = N(-100)
open('fresh', 'w').write('x')
assert call(268, here, b'fresh', N(0o600)) == 0 and os.stat('fresh').st_mode & 0o777 == 0o600
assert call(316, here, b'fresh', here, b'old', N(0)) == 0 and open('old').read() == 'x' and not os.path.exists('fresh')
open('a', 'w').write('a')
assert call(316, here, b'a', here, b'big', N(1)) == -17
assert call(265, here, b'a', here, b'b', N(0)) == 0 and os.path.samefile('a', 'b')
fd = os.open('a', os.O_RDWR)
assert call(91, N(fd), N(0o640)) == 0 and os.stat('a').st_mode & 0o777 == 0o640
memory = os.memfd_create('m')
assert call(91, N(memory), N(0o600)) == 0
os.mkdir('d')
assert call(259, here, b'd/fifo', N(stat.S_IFIFO | 0o600), N(0)) == 0 and stat.S_ISFIFO(os.stat('d/fifo').st_mode)
assert call(268, here, b'nowhere', N(0o600)) == -2
assert call(268, here, b'tree', N(0o600)) == -13
here_is = os.environ['TMPDIR'].encode()
assert call(268, here, here_is, N(0o700)) == 0
"""
    files, done = place.run(["/usr/bin/python3", "-c", program])
    assert done.returncode == 12, done.stderr  # it ended well, and used no card
    assert place.changed() == {} and files["refused"] == 1


def test_modes_by_way_of_libc_ask_nobody(programs, place):
    """chmod, chattr, touch, mkfifo and mv through libc: none is refused, none is counted, all are seen."""
    script = """set -e
        chmod 700 old; test $(stat -c %a old) = 700; touch -d 2001-01-01 big; mkfifo f2; test -p f2
        mv old older; chown $(id -u) older; cp -a tree copy
        if chattr +d big 2>/dev/null; then lsattr big | grep -q d; fi"""
    files, done = place.run(["sh", "-c", script])
    assert done.returncode == 12, done.stderr
    assert place.changed() == {} and files["refused"] == 0


def test_handles_of_libc_itself(programs, place):
    """RTLD_DEEPBIND, dlmopen and libc by its path pass the overlay, and not the filter."""
    program = """
import ctypes, ctypes.util
def deep(mode):
    libc = ctypes.CDLL('libc.so.6', mode=mode, use_errno=True)
    return libc.chmod(b'old', 0o777)
assert deep(ctypes.RTLD_LOCAL) in (0, -1)
assert deep(8) in (0, -1)  # RTLD_DEEPBIND
own = ctypes.CDLL(None)
own.dlmopen.restype = own.dlsym.restype = ctypes.c_void_p
handle = own.dlmopen(ctypes.c_long(-1), b'libc.so.6', 2)
if handle:
    address = own.dlsym(ctypes.c_void_p(handle), b'chmod')
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)(address)(b'old', 0o777)
"""
    place.run(["/usr/bin/python3", "-c", program])
    assert place.changed() == {}
