# SPDX-License-Identifier: Apache-2.0
"""The write overlay, seen from outside: whatever a program does, the files that were there are afterwards byte for byte,
mode and time as before, while the program (and its children) see what they wrote.

Every case runs in four settings: plain, with the kernel's sandbox below (so that what escapes libc fails instead of passing
unseen), as an ordinary user, and in a sandbox without privileges. Cases stand in SHELL and PYTHON: a name, and a
program that fails when it does not see its own changes.
"""
import contextlib
import functools
import hashlib
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
HERE = pathlib.Path(__file__).parent
PRELOAD = pathlib.Path(os.environ.get("TONNAGE_PRELOAD", ROOT / "build/release/lib/tonnage/libtonnage-preload.so"))


# ---- what is tested ----

def compile_c(out, sources, *flags):
    command = ["cc", "-std=gnu17", "-O1", "-g", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE",
               f"-I{ROOT}/include", f"-I{ROOT}/src", *flags, "-o", str(out), *map(str, sources), "-ldl"]
    subprocess.run(command, check=True)
    return out


@pytest.fixture(scope="session")
def tools():
    """A folder that everybody may read, with the preloaded library and the small C programs."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tonnage-overlay-tools-"))
    folder.chmod(0o755)
    shutil.copy(PRELOAD, folder / "libtonnage-preload.so")
    compile_c(folder / "net", [HERE / "apply_sandbox.c", ROOT / "src/preload/sandbox.c", ROOT / "src/base/error.c", ROOT / "src/base/plain.c"])
    compile_c(folder / "static-write", [HERE / "static_write.c"], "-static")
    compile_c(folder / "descriptors", [HERE / "descriptors.c"])
    compile_c(folder / "old-names", [HERE / "old_names.c"])
    compile_c(folder / "sockets", [HERE / "sockets.c"])
    compile_c(folder / "threads", [HERE / "threads.c"], "-pthread")
    yield folder
    shutil.rmtree(folder)


@functools.cache
def python_for_everybody():
    """An interpreter that an ordinary user may run, or None."""
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env",
                               python, "-c", "import sqlite3, mmap"],
                              stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return python
    return None


@functools.cache
def has_landlock(tools):
    with tempfile.TemporaryDirectory() as run:
        return subprocess.run([tools / "net", run, "true"], stderr=subprocess.DEVNULL).returncode == 0


@functools.cache
def may_sandbox():
    return shutil.which("bwrap") and subprocess.run(
        ["bwrap", "--unshare-all", "--dev-bind", "/", "/", "true"], stderr=subprocess.DEVNULL).returncode == 0


# ---- the tree that must not change ----

def fingerprint(root):
    """Everything about each file below root that a program could harm."""
    seen = {}
    for folder, folders, files in os.walk(root):
        for path in [folder] + [os.path.join(folder, name) for name in files + folders]:
            st = os.lstat(path)
            content = None
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            seen[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_ino,
                          st.st_nlink, content, tuple(os.listxattr(path, follow_symlinks=False)))
    return seen


def make_tree(root):
    (root / "old").write_text("old content\n")
    (root / "script.sh").write_text("#!/bin/sh\necho from script\n")
    (root / "script.sh").chmod(0o755)
    (root / "read-only").write_text("read-only\n")
    (root / "read-only").chmod(0o444)
    (root / "big").write_bytes(bytes(range(256)) * 4096)
    with open(root / "sparse", "wb") as file:
        file.seek(2 << 20)
        file.write(b"end")
    for name in ("tree/a/b", "tree/c", "empty", "home"):
        (root / name).mkdir(parents=True)
    for name in ("tree/one", "tree/a/two", "tree/a/b/three", "tree/c/four", "home/.config"):
        (root / name).write_text(name + "\n")
    (root / "link").symlink_to("old")
    (root / "folder-link").symlink_to("tree/a")
    (root / "absolute-link").symlink_to(root / "tree/one")
    (root / "dangling").symlink_to("tree/to-come")
    os.link(root / "tree/one", root / "hard")
    os.mkfifo(root / "fifo")
    for path in sorted(root.rglob("*"), reverse=True):
        os.utime(path, (1_000_000_000, 1_000_000_001.25), follow_symlinks=False)
    with contextlib.closing(sqlite3.connect(root / "base.db")) as database:
        database.execute("create table t (x)")
        database.execute("insert into t values (1)")
        database.commit()


class Setting:
    def __init__(self, kind, tools, folder):
        self.kind, self.tools = kind, tools
        self.python = python_for_everybody() if kind == "nobody" else sys.executable
        self.work, self.run = folder / "work", folder / "run"
        self.work.mkdir()
        (self.run / "scratch/tmp").mkdir(parents=True)
        make_tree(self.work)
        if kind == "nobody":
            for path in [folder, self.run, self.work, *folder.rglob("*")]:
                os.lchown(path, NOBODY, NOBODY)

    def command(self, command):
        if self.kind == "net":
            return [self.tools / "net", self.run, *command]
        if self.kind == "nobody":
            return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
        if self.kind == "sandbox":
            return ["bwrap", "--unshare-all", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                    "--cap-drop", "ALL", "--chdir", self.work, *command]
        return command

    def environment(self, **more):
        own = {name: value for name, value in os.environ.items() if not name.startswith("TONNAGE_")}
        return {**own, "TONNAGE_RUN": str(self.run), "HOME": str(self.work / "home"), "WORK": str(self.work),
                "TMPDIR": str(self.run / "scratch/tmp"), "TOOLS": str(self.tools), "PYTHON": self.python,
                "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", **more}

    def start(self, command, **more):
        environment = self.environment(**more)
        preload = f"LD_PRELOAD={self.tools}/libtonnage-preload.so"
        return subprocess.run(self.command(["env", preload, *command]), cwd=self.work, env=environment, text=True,
                              capture_output=True, timeout=120)

    def upper(self, path):
        return pathlib.Path(str(self.run / "scratch/files") + str(path))


@pytest.fixture
def make_setting(tools):
    folders = []

    def make(kind):
        if kind == "nobody" and (os.geteuid() != 0 or not shutil.which("setpriv")):
            pytest.skip("needs root and setpriv to become an ordinary user")
        if kind == "nobody" and not python_for_everybody():
            pytest.skip("needs a Python that an ordinary user may run")
        if kind == "sandbox" and not may_sandbox():
            pytest.skip("needs bwrap, and a kernel that lets it")
        if kind == "net" and not has_landlock(tools):
            pytest.skip("needs a kernel with Landlock")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tonnage-overlay-"))
        folders.append(folder)
        setting = Setting(kind, tools, folder)
        setting.before = fingerprint(setting.work)
        return setting

    yield make
    for folder in folders:
        shutil.rmtree(folder)


def check(setting, done):
    assert fingerprint(setting.work) == setting.before
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tonnage:" not in done.stderr


# ---- the cases ----

SHELL = {
    "overwrite": r"""
        echo new > old; test $(cat old) = new; $PYTHON -c 'assert open("old").read() == "new\n"'""",
    "overwrite by absolute path": "echo new > $WORK/old; grep -qx new old",
    "overwrite in HOME": "echo new > ~/.config; grep -qx new ~/.config; echo x > ~/.other; grep -qx x $HOME/.other",
    "append": r"""
        echo more >> old; test "$(cat old)" = "$(printf 'old content\nmore')"
        """,
    "through a link": "echo new > link; grep -qx new old; test -L link; test $(readlink link) = old",
    "through an absolute link": "echo new > absolute-link; grep -qx new tree/one; grep -qx tree/one hard",
    "through a folder link": """
        echo new > folder-link/two; echo n > folder-link/n; grep -qx new tree/a/two; test -f tree/a/n""",
    "through a dangling link": "echo new > dangling; grep -qx new tree/to-come; test -L dangling",
    "through dot dot": "cd tree/a; echo new > ../../old; grep -qx new $WORK/old; cd ..; test $(pwd -P) = $WORK/tree",
    "through /proc and /dev": """
        exec 3< old; if { echo bad >> /proc/self/fd/3; } 2> /dev/null; then grep -qx bad old; fi
        echo x > /proc/self/cwd/new
        grep -qx x new; echo null > /dev/null; if test -w /dev/stdout; then echo out > /dev/stdout; fi""",
    "hard link": """
        ln old other; echo new > other; grep -qx new old; ln hard hard2; echo x >> hard2; tail -1 hard | grep -qx x""",
    "delete": """
        rm old link; not test -e old; not test -L link; not cat old 2> /dev/null
        echo again > old; grep -qx again old""",
    "delete a tree": """
        rm -r tree; not test -e tree; not test -e folder-link; mkdir tree; test -z "$(ls -A tree)"
        """,
    "delete by find": """
        find tree -type f -delete; test $(find tree -type f | wc -l) = 0; find tree -depth -delete; not ls tree 2>&-""",
    "rmdir": """
        not rmdir tree 2>&-; rmdir empty; not test -e empty; mkdir empty; mkdir -p x/y/z
        rmdir x/y/z x/y x; not test -e x""",
    "move": "mv old new; not test -e old; grep -qx 'old content' new; mv new old; grep -qx 'old content' old",
    "move over": """
        echo fresh > n; mv n old; grep -qx fresh old; mv big old; cmp -s old big && exit 1
        test $(wc -c < old) = 1048576""",
    "move a folder": """
        mv tree moved; not test -e tree; grep -qx tree/a/b/three moved/a/b/three; rm moved/one
        mv moved tree; not test -e tree/one; grep -qx tree/c/four tree/c/four; test $(find tree | wc -l) = 7""",
    "move a link": """
        mv link other; test -L other; test $(readlink other) = old; mv folder-link tree/c/
        ls tree/c/folder-link > /dev/null || true""",
    "exchange with a new folder": """
        mkdir fresh; echo 1 > fresh/1; mv tree save; mv fresh tree; test $(ls tree) = 1; test -f save/one""",
    "copy": """
        cp -a tree copy; diff -r tree copy; cp big old; cmp big old; cp -r tree/a/. empty
        grep -qx tree/a/two empty/two""",
    "sed in place": "sed -i s/old/new/ old; grep -qx 'new content' old; test $(ls | grep -c '^sed') = 0",
    "listing": r"""
        touch fresh tree/fresh; rm old tree/one; set -- *; for f; do test -e $f -o -L $f; done
        test "$(ls tree | tr '\n' ' ')" = 'a c fresh '; test "$(ls tree)" = "$(cd tree && ls)"; not grep -qx old <(ls)
        test "$(find tree | sort | tail -1)" = tree/fresh; test $(ls -d tr*) = tree""",
    "mode and times": """
        chmod 600 old; test $(stat -c %a old) = 600; chmod 700 tree; test $(stat -c %a tree) = 700
        touch -d 2001-01-01 tree/c; test $(stat -c %Y tree/c) = $(date -d 2001-01-01 +%s); touch big
        test $(stat -c %Y big) != 1000000001
        chmod -R go-rwx tree; test $(stat -c %a tree/a/b/three) = 600; test $(stat -c %a tree/a/b) = 700""",
    "metadata is kept": """
        echo x >> script.sh; test $(stat -c %a script.sh) = 755; ./script.sh | grep -qx 'from script'""",
    "sparse copy": "echo x >> sparse; test $(stat -c %s sparse) = 2097157; test $(du -k sparse | cut -f1) -lt 1024",
    "truncate": "truncate -s 3 old; test $(cat old) = old; : > big; not test -s big",
    "fifo passes": "rm fifo; mkfifo fifo; (echo through > fifo &) ; grep -qx through fifo",
    "new programs": r"""
        printf '#!/bin/sh\necho $0 $1; . $(dirname $0)/tree/lib\n' > prog; echo 'echo lib' > tree/lib; chmod +x prog
        test "$(./prog x)" = "./prog x
lib"; test "$($WORK/prog x | tail -1)" = lib; cp /bin/echo my-echo; test $(./my-echo hi) = hi
        PATH=$WORK:$PATH; test $(my-echo ho) = ho
        test "$($PYTHON -c 'import subprocess; subprocess.run(["my-echo", "py"])')" = py""",
    "inside a new folder": """
        mkdir -p new/deep; cd new/deep; test $(pwd) = $WORK/new/deep; test $(/bin/pwd) = $WORK/new/deep
        test $($PYTHON -c 'import os; print(os.getcwd())') = $WORK/new/deep; echo a > f
        cat ../deep/f $WORK/new/deep/f > ../g
        cat ../../old > h; grep -q old h; cd ../..; test $(realpath new/deep/../g) = $WORK/new/g
        test $(realpath old) = $WORK/old""",
    "empty environment": """
        env -i /bin/sh -c 'echo new > old'; grep -qx new old; env -u LD_PRELOAD sh -c 'rm old'; not test -e old""",
    "read-only file": """
        if [ -w read-only ]; then echo x >> read-only; elif { echo x >> read-only; } 2>&-; then exit 1; fi
        rm -f read-only
        not test -e read-only""",
    "descriptors": "$TOOLS/descriptors old; $TOOLS/descriptors tree",
    "old names": "$TOOLS/old-names",
    "sockets": "$TOOLS/sockets $WORK/s; $TOOLS/sockets $WORK/tree/a/$(printf %060d 0)",
    "threads": "$TOOLS/threads tree",
    "many writers": """
        for i in $(seq 40); do (echo $i >> old; echo $i > tree/$i; mv tree/$i tree/n$i) & done; wait
        test $(wc -l < old) = 41; test $(ls tree | wc -l) = 43""",
    "tar": "tar cf all.tar tree; rm -r tree; tar xf all.tar; grep -qx tree/a/two tree/a/two",
    "git": """
        git init -q repo; cd repo; git config user.email a@b; git config user.name n; cp ../old .; git add old
        git commit -qm one
        git mv old new; git commit -qm two; git checkout -q HEAD~1; test -f old
        git status --porcelain | wc -l | grep -qx 0; git gc -q""",
    "sqlite command": """
        sqlite3 base.db 'insert into t values (2)'; test $(sqlite3 base.db 'select sum(x) from t') = 3
        sqlite3 base.db 'pragma journal_mode=wal' 'insert into t values (4)' > /dev/null
        test $(sqlite3 base.db 'select sum(x) from t') = 7""",
}

PYTHON = {
    "open": """
        with open('old', 'w') as f: f.write('new')
        assert open('old').read() == 'new' and os.path.getsize('old') == 3
        with open('old', 'r+') as f: f.seek(1); f.write('EW')
        assert open('link').read() == 'nEW'
        with open('old', 'a+') as f: f.write('!'); f.seek(0); assert f.read() == 'nEW!'
        try: open('old', 'x'); assert False
        except FileExistsError: pass
        try: open('nowhere/x', 'w'); assert False
        except FileNotFoundError: pass
        try: open('tree', 'w'); assert False
        except IsADirectoryError: pass
        try: open('old/x', 'w'); assert False
        except NotADirectoryError: pass""",
    "second process": """
        open('old', 'w').write('one'); os.mkdir('fresh'); open('fresh/f', 'w').write('two')
        code = ("import os; assert open('old').read() == 'one' and os.listdir('fresh') == ['f']\\n"
                "open('old', 'w').write('three')")
        subprocess.run([sys.executable, '-c', code], check=True)
        subprocess.run([sys.executable, '-c', code.replace('one', 'three')], check=True, env={})
        assert open('old').read() == 'three'
        assert subprocess.run(['cat', 'f'], cwd='fresh', capture_output=True).stdout == b'two'""",
    "replace": """
        with tempfile.NamedTemporaryFile('w', delete=False) as f: f.write('new')
        os.replace(f.name, 'old'); assert open('old').read() == 'new' and not os.path.exists(f.name)
        with tempfile.NamedTemporaryFile('w', dir='.', delete=False) as f: f.write('newer')
        os.replace(f.name, os.path.abspath('old')); assert open('old').read() == 'newer'
        os.rename('tree/a', 'tree/z'); assert sorted(os.listdir('tree')) == ['c', 'one', 'z']
        try: os.rename('tree/c', 'tree/z'); assert False
        except OSError as e: assert e.errno == errno.ENOTEMPTY
        os.replace('old', os.path.join(tempfile.gettempdir(), 'gone')); assert not os.path.exists('old')""",
    "shutil": """
        shutil.copytree('tree', 'copy'); shutil.rmtree('tree'); assert not os.path.exists('tree')
        shutil.move('copy', 'tree'); assert open('tree/a/b/three').read() == 'tree/a/b/three\\n'
        shutil.copy2('big', 'old'); assert os.path.getmtime('big') == os.path.getmtime('old')
        shutil.rmtree('tree/a'); assert sorted(os.listdir('tree')) == ['c', 'one']
        shutil.make_archive('tree', 'zip', 'tree'); shutil.unpack_archive('tree.zip', 'out')
        assert os.listdir('out/c') == ['four']""",
    "tempfile": """
        with tempfile.TemporaryDirectory(dir='.') as d:
            p = pathlib.Path(d, 'x'); p.write_text('y'); assert os.listdir(d) == ['x']
        assert not os.path.exists(d)
        with tempfile.TemporaryFile(dir='.') as f: f.write(b'1'); f.seek(0); assert f.read() == b'1'
        with tempfile.TemporaryFile() as f: f.write(b'1')
        with tempfile.NamedTemporaryFile(dir='tree') as f: assert os.path.basename(f.name) in os.listdir('tree')
        assert sorted(os.listdir('tree')) == ['a', 'c', 'one']""",
    "pathlib": """
        p = pathlib.Path('tree/a/two'); p.write_text('x'); assert p.read_text() == 'x'; p.unlink()
        assert not p.exists()
        p.touch(); assert p.stat().st_size == 0; p.chmod(0o640); assert p.stat().st_mode & 0o777 == 0o640
        q = pathlib.Path('n/m'); q.mkdir(parents=True); (q / 'l').symlink_to('../../old')
        assert (q / 'l').read_text() == 'old content\\n'
        (q / 'l').write_text('w')
        assert pathlib.Path('old').read_text() == 'w' and (q / 'l').resolve() == pathlib.Path('old').resolve()
        assert sorted(map(str, pathlib.Path('.').glob('**/l'))) == ['n/m/l']; p.rename('n/p')
        assert pathlib.Path('n/p').is_file()
        pathlib.Path('hard2').hardlink_to('old') if sys.version_info >= (3, 10) else os.link('old', 'hard2')
        assert os.path.samefile('hard2', 'old'); os.makedirs('n/m', exist_ok=True)
        os.makedirs('tree/a', exist_ok=True)""",
    "walk": """
        open('tree/new', 'w').close(); os.mkdir('tree/a/d'); open('tree/a/d/e', 'w').close(); os.unlink('tree/one')
        seen = sorted(os.path.join(d, f) for d, _, fs in os.walk('tree') for f in fs)
        assert seen == ['tree/a/b/three', 'tree/a/d/e', 'tree/a/two', 'tree/c/four', 'tree/new'], seen
        byfd = sorted(os.path.join(d, f) for d, _, fs, fd in os.fwalk('tree') for f in fs if os.stat(f, dir_fd=fd))
        assert byfd == seen
        for entry in os.scandir('tree'): assert entry.inode() == entry.stat().st_ino == os.stat(entry.path).st_ino
        import glob; assert sorted(glob.glob('tree/*')) == ['tree/a', 'tree/c', 'tree/new']
        fd = os.open('tree', os.O_RDONLY); assert sorted(os.listdir(fd)) == ['a', 'c', 'new']
        assert os.fstat(fd).st_ino == os.stat('tree').st_ino and os.fstat(fd).st_mtime == os.stat('tree').st_mtime
        os.mkdir('sub', dir_fd=fd); os.rename('new', 'sub/new', src_dir_fd=fd, dst_dir_fd=fd)
        assert os.path.exists('tree/sub/new')
        sub = os.open('sub', os.O_RDONLY, dir_fd=fd); os.unlink('new', dir_fd=sub); assert os.listdir(sub) == []
        os.fchdir(sub); assert os.getcwd() == os.environ['WORK'] + '/tree/sub'; os.chdir('../..')
        assert os.path.exists('old')""",
    "import what was written": """
        sys.path.insert(0, os.getcwd() + '/tree'); sys.dont_write_bytecode = False
        try: import fresh_module; assert False
        except ImportError: pass
        open('tree/fresh_module.py', 'w').write('x = 1'); import fresh_module; assert fresh_module.x == 1
        assert os.path.exists('tree/__pycache__')""",
    "mmap": """
        with open('big', 'r+b') as f:
            m = mmap.mmap(f.fileno(), 0); m[:4] = b'MMAP'; m.flush(); m.close()
        assert open('big', 'rb').read(5) == b'MMAP\\x04'
        with open('old', 'rb') as f:
            try: mmap.mmap(f.fileno(), 0, prot=mmap.PROT_WRITE | mmap.PROT_READ); assert False
            except PermissionError: pass
            m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY); m[:3] = b'xxx'
        assert open('old').read() == 'old content\\n'""",
    "sqlite module": """
        db = sqlite3.connect('base.db'); db.execute('insert into t values (2)'); db.commit(); db.close()
        assert sqlite3.connect('base.db').execute('select sum(x) from t').fetchone() == (3,)
        db = sqlite3.connect('base.db'); db.execute('pragma journal_mode=wal'); db.execute('delete from t'); db.commit()
        assert sqlite3.connect('base.db').execute('select count(*) from t').fetchone() == (0,)""",
    "attributes": """
        st = os.stat('old'); os.utime('old', (1, 2))
        assert os.stat('old').st_mtime == 2 and os.stat('old').st_size == st.st_size
        fd = os.open('big', os.O_RDONLY); os.fchmod(fd, 0o600); os.utime(fd, (3, 4))
        assert os.stat('big').st_mtime == 4
        assert os.stat('big').st_mode & 0o777 == 0o600
        if os.geteuid() == 0 and 'sandbox' != os.environ['SETTING']:
            os.chown('old', 1, 2); assert os.stat('old').st_uid == 1; os.fchown(fd, 1, 1)
            assert os.stat('big').st_gid == 1; os.chown('tree', 1, 1); assert os.stat('tree').st_uid == 1
            os.lchown('link', 5, 5); assert os.lstat('link').st_uid == 5
        try: os.setxattr('tree/one', 'user.x', b'1'); assert os.getxattr('tree/one', 'user.x') == b'1'
        except OSError as e: assert e.errno == errno.ENOTSUP
        os.truncate('tree/one', 2); assert open('tree/one').read() == 'tr'
        assert os.access('old', os.W_OK) and os.access('tree', os.W_OK) and not os.access('none', os.F_OK)""",
    "spawn and streams": """
        actions = [(os.POSIX_SPAWN_OPEN, 1, 'old', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)]
        pid = os.posix_spawn('/bin/echo', ['echo', 'spawned'], {}, file_actions=actions); os.waitpid(pid, 0)
        assert open('old').read() == 'spawned\\n'
        os.system('echo system > old'); assert open('old').read() == 'system\\n'
        with os.popen('cat > old', 'w') as p: p.write('popen')
        assert open('old').read() == 'popen'
        pid = os.fork()
        if pid == 0: open('old', 'w').write('forked'); os._exit(0)
        os.waitpid(pid, 0); assert open('old').read() == 'forked'""",
    "multiprocessing": """
        import multiprocessing
        def work(i):
            open('tree/%d' % i, 'w').write(str(i)); os.replace('tree/%d' % i, 'tree/w%d' % i)
            return os.path.exists('tree/w%d' % i)
        with multiprocessing.get_context('fork').Pool(4) as pool: assert all(pool.map(work, range(50)))
        assert len(os.listdir('tree')) == 53""",
    "numpy-like memmap of a new file": """
        with open('m', 'w+b') as f: f.truncate(1 << 20); mmap.mmap(f.fileno(), 0)[5:6] = b'x'
        assert os.path.getsize('m') == 1 << 20 and open('m', 'rb').read(6)[5:] == b'x'""",
}

# bash's own "!" does not end a script that was started with -e.
NOT = 'not() { if "$@"; then echo "unexpected: $*" >&2; exit 1; fi; }; '
PREAMBLE = "import errno, mmap, os, pathlib, shutil, sqlite3, subprocess, sys, tempfile\n"
KINDS = ("plain", "net", "nobody", "sandbox")


def dedent(code):
    return "\n".join(line[8:] if line.startswith("        ") else line for line in code.split("\n"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SHELL)
def test_shell(make_setting, name, kind):
    if name == "sqlite command" and not shutil.which("sqlite3"):
        pytest.skip("needs sqlite3")
    setting = make_setting(kind)
    check(setting, setting.start(["bash", "-ec", NOT + SHELL[name]], SETTING=kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PYTHON)
def test_python(make_setting, name, kind):
    setting = make_setting(kind)
    check(setting, setting.start([setting.python, "-c", PREAMBLE + dedent(PYTHON[name])], SETTING=kind))


# ---- outside the table ----

def test_written_files_lie_in_scratch(make_setting):
    setting = make_setting("plain")
    check(setting, setting.start(["bash", "-ec", "echo new > old; rm big"]))
    assert setting.upper(setting.work / "old").read_text() == "new\n"
    assert (setting.run / "state/removed").read_text() == f"{setting.work}/big\n"


def test_allow_lifts_it(make_setting):
    setting = make_setting("plain")
    done = setting.start(["sh", "-c", "echo new > old"], TONNAGE_WRITES="allow")
    assert done.returncode == 0 and (setting.work / "old").read_text() == "new\n"


def test_run_folder_and_devices_pass(make_setting):
    setting = make_setting("net")
    program = "echo x > $TONNAGE_RUN/guest.json; echo t > $TMPDIR/t; f=/dev/shm/tonnage-$$; echo s > $f; rm $f"
    check(setting, setting.start(["bash", "-ec", program]))
    assert (setting.run / "guest.json").read_text() == "x\n"
    assert (setting.run / "scratch/tmp/t").read_text() == "t\n"


def test_inherited_output_passes(make_setting, tmp_path):
    setting = make_setting("plain")
    out = tmp_path / "out"
    with open(out, "w") as file:
        subprocess.run(["env", f"LD_PRELOAD={setting.tools}/libtonnage-preload.so", "bash", "-c",
                        "echo one; echo two > /dev/stdout; cat >> /proc/self/fd/1 <<< three"], stdout=file, check=True,
                       env=setting.environment(), cwd=setting.work)
    assert "three" in out.read_text()


def test_static_program_is_stopped_by_the_net(make_setting):
    setting = make_setting("net")
    done = setting.start([setting.tools / "static-write", setting.work / "old"])
    assert fingerprint(setting.work) == setting.before
    assert (done.returncode, done.stderr) == (1, "Permission denied\n")
    done = setting.start([setting.tools / "static-write", setting.run / "scratch/tmp/x"])
    assert done.returncode == 0


@pytest.mark.parametrize("run", ["/nowhere/at/all", "/proc", "/dev/null"])
def test_a_broken_overlay_says_so_and_writes_fail(make_setting, run):
    setting = make_setting("plain")
    program = """if { echo new > old; } 2> /dev/null; then exit 3; fi; rm -f old 2> /dev/null && exit 4
mv big b 2> /dev/null && exit 5; mkdir n 2> /dev/null && exit 6; chmod 1 big 2> /dev/null && exit 7
env -i sh -c 'echo new > old' 2> /dev/null && exit 9; touch big 2> /dev/null && exit 8; cat old; echo > /dev/null"""
    done = setting.start(["bash", "-c", program], TONNAGE_RUN=run)
    assert fingerprint(setting.work) == setting.before
    assert (done.returncode, done.stdout) == (0, "old content\n")
    assert all(line.startswith("tonnage: ") for line in done.stderr.splitlines()) and done.stderr


def test_another_users_files_stay_refused(make_setting):
    setting = make_setting("nobody")
    os.chown(setting.work / "old", 0, 0)
    os.chown(setting.work / "tree", 0, 0)
    setting.before = fingerprint(setting.work)
    program = "import os\n" + "".join(
        f"try: {attempt}; raise SystemExit({attempt!r})\nexcept PermissionError: pass\n" for attempt in
        ("open('old', 'w')", "open('tree/new', 'w')", "os.unlink('tree/one')", "os.rename('tree/one', 'x')",
         "os.chmod('old', 0o777)", "os.mkdir('/tonnage-none')", "open('/etc/passwd', 'a')"))
    check(setting, setting.start([setting.python, "-c", program]))


def test_nothing_written_costs_no_copy(make_setting):
    setting = make_setting("plain")
    check(setting, setting.start(["bash", "-ec", "cat old > /dev/null; ls -R . > /dev/null; test -r big"]))
    assert list((setting.run / "scratch/files").iterdir()) == []
