# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built of this tree, without a complaint of lintian, installed into a fresh Debian, used there, removed and purged
so that nothing is left.

Takes some ten minutes and the network (`make long`). Debian only, as root: else it is skipped, loudly.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ["dpkg-buildpackage", "dh", "lintian", "debootstrap", "bwrap"]
MIRROR = "http://deb.debian.org/debian"
# What dpkg and ldconfig write about all packages: it changes with time, not with us.
BOOKS = ("/var/lib/dpkg", "/var/log", "/var/cache", "/etc/ld.so.cache", "/var/lib/apt", "/etc/.pwd.lock", "/tmp", "/root", "/run", "/gate")


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The folder of the packages, of the tracked files as they are."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"THE DEBIAN PACKAGES ARE NOT TESTED: {', '.join(missing) or 'root'} is missing")
    tree = tmp_path_factory.mktemp("deb") / "tonnage"
    for name in run("git", "-C", ROOT, "ls-files").stdout.splitlines():
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    environment = {**os.environ, "TONNAGE_CUDA_HEADERS": str(ROOT / "build/headers"), "DEB_BUILD_OPTIONS": "parallel=2"}
    built = run("dpkg-buildpackage", "-b", "-us", "-uc", cwd=tree, env=environment)
    assert built.returncode == 0, built.stderr[-4000:]
    return tree.parent


def test_lintian_has_nothing_to_say(packages):
    [changes] = packages.glob("*.changes")
    done = run("lintian", "--allow-root", "--display-info", "--display-experimental", "--fail-on", "none", changes)
    assert done.stdout == "" and done.returncode == 0, done.stdout + done.stderr


def test_another_program_is_built_with_the_library(packages, tmp_path):
    for package in ("libtonnage0", "libtonnage-dev"):
        [archive] = packages.glob(f"{package}_*.deb")
        run("dpkg", "-x", archive, tmp_path, check=True)
    [folder] = tmp_path.glob("usr/lib/*/pkgconfig")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(folder), "PKG_CONFIG_SYSROOT_DIR": str(tmp_path)}
    flags = run("pkg-config", "--cflags", "--libs", "tonnage", env=environment, check=True).stdout.split()
    program = tmp_path / "what_was_alive"
    run("cc", next(tmp_path.rglob("what_was_alive.c")), "-o", program, *flags, check=True)
    needed = run("readelf", "-d", program).stdout
    assert "libtonnage.so.0" in needed
    done = run(program, "/dev/null", env={**os.environ, "LD_LIBRARY_PATH": str(folder.parent)})
    assert "error while loading" not in done.stderr


class System:
    """A fresh Debian in a folder."""

    def __init__(self, folder):
        self.folder = folder
        made = run("debootstrap", "--variant=minbase", "--include=libjansson4", "bookworm", folder, MIRROR)
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]

    def dpkg(self, *words):
        done = run("chroot", self.folder, "dpkg", *words, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files(self):
        """{path: (size, target of a link)} of all that is there, but for the books."""
        found = {}
        for folder, names, files in os.walk(self.folder):
            inside = folder[len(str(self.folder)):]
            names[:] = [name for name in names if not f"{inside}/{name}".startswith((*BOOKS, "/proc", "/sys", "/dev"))]
            for name in [*files, *names]:
                path = pathlib.Path(folder) / name
                link = os.readlink(path) if path.is_symlink() else None
                size = path.lstat().st_size if path.is_file() and not link else 0
                if not f"{inside}/{name}".startswith(BOOKS):
                    found[f"{inside}/{name}"] = (size, link)
        return found

    def run(self, *words):
        """In it, without a network, with this Python's environment, and a program, in their places."""
        shown = [sys.prefix, sys.base_prefix]
        binds = [word for path in shown for word in ("--ro-bind", path, path)]
        return run("bwrap", "--bind", self.folder, "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/dev/shm", *binds,
                   "--ro-bind", ROOT / "tests/vgpu/gate", "/gate", "--chdir", "/tmp", "--unshare-net", "--clearenv",
                   "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/root", "--setenv", "LC_ALL", "C.UTF-8", *words,
                   timeout=300)  # fmt: skip


def test_installed_used_removed_purged(packages, tmp_path):
    system = System(tmp_path / "root")
    before = system.files()
    archives = [path for path in packages.glob("*.deb") if "dbgsym" not in path.name]
    for path in archives:
        shutil.copy(path, system.folder / "tmp")
    names = sorted(path.name.partition("_")[0] for path in archives)
    assert names == ["libtonnage-dev", "libtonnage0", "tonnage"]
    system.dpkg("-i", *(f"/tmp/{path.name}" for path in archives))

    version = (ROOT / "python/tonnage/guest/version").read_text()
    assert system.run("tonnage", "--version").stdout == f"tonnage {version}"
    fits = system.run("tonnage", "run", "--gpu", "rtx3060", "--json", "/tmp/run.json", "--", sys.executable, "/gate/train.py")
    assert fits.returncode == 0 and fits.stderr.startswith("Fits on NVIDIA GeForce RTX 3060"), fits.stderr
    assert json.loads((system.folder / "tmp/run.json").read_text())["peak"]["device_bytes"] > 0
    small = system.run("tonnage", "run", "--memory", "300MiB", "--writes", "allow", "--", sys.executable, "/gate/train.py")
    assert small.returncode == 10 and "Does not fit" in small.stderr, small.stderr
    for shell, path in (("bash", "bash-completion/completions/tonnage"), ("zsh", "zsh/vendor-completions/_tonnage"),
                        ("fish", "fish/vendor_completions.d/tonnage.fish")):  # fmt: skip
        assert (system.folder / "usr/share" / path).read_text() == system.run("tonnage", "completion", shell).stdout
    assert len(list((system.folder / "usr/share/man/man1").glob("tonnage*.1.gz"))) == len(list((ROOT / "doc/man").glob("*.1")))

    system.dpkg("--remove", *names)
    system.dpkg("--purge", *names)
    left = system.files()
    assert left == before, set(left.items()) ^ set(before.items())
    assert not list((system.folder / "var/lib/dpkg/info").glob("*tonnage*"))
