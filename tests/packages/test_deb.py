# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built of this tree, without a complaint of lintian, installed into a fresh Debian, used there, removed and purged
so that nothing is left.

Takes some ten minutes and the network (`make long`). Debian only, as root: else it is skipped, loudly.
"""

import json
import os
import pathlib
import shutil
import sys

import pytest
from systems import ROOT, System, need, run

# What dpkg and ldconfig write about all packages: it changes with time, not with us.
BOOKS = ("/var/lib/dpkg", "/var/log", "/var/cache", "/etc/ld.so.cache", "/var/lib/apt", "/etc/.pwd.lock", "/tmp", "/root", "/run", "/gate")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The folder of the packages, of the tracked files as they are."""
    need("dpkg-buildpackage", "dh", "lintian")
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


def files_of(system):
    """{path: (size, target of a link)} of all that is there, but for the books."""
    found = {}
    for folder, names, files in os.walk(system.folder):
        inside = folder[len(str(system.folder)):]
        names[:] = [name for name in names if not f"{inside}/{name}".startswith((*BOOKS, "/proc", "/sys", "/dev"))]
        for name in [*files, *names]:
            path = pathlib.Path(folder) / name
            link = os.readlink(path) if path.is_symlink() else None
            size = path.lstat().st_size if path.is_file() and not link else 0
            if not f"{inside}/{name}".startswith(BOOKS):
                found[f"{inside}/{name}"] = (size, link)
    return found


def test_installed_used_removed_purged(packages, tmp_path):
    system = System(tmp_path / "root", "bookworm", ["libjansson4"])
    before = files_of(system)
    # This Python's environment, and a program, in their places.
    shown = {sys.prefix: sys.prefix, sys.base_prefix: sys.base_prefix, "/gate": ROOT / "tests/vgpu/gate"}
    archives = [path for path in packages.glob("*.deb") if "dbgsym" not in path.name]
    for path in archives:
        shutil.copy(path, system.folder / "tmp")
    names = sorted(path.name.partition("_")[0] for path in archives)
    assert names == ["libtonnage-dev", "libtonnage0", "tonnage"]
    system.chroot("dpkg", "-i", *(f"/tmp/{path.name}" for path in archives))

    version = (ROOT / "python/tonnage/guest/version").read_text()
    assert system.run("tonnage", "--version").stdout == f"tonnage {version}"
    fits = system.run("tonnage", "run", "--gpu", "rtx3060", "--json", "/tmp/run.json", "--", sys.executable, "/gate/train.py", shown=shown)
    assert fits.returncode == 0 and fits.stderr.startswith("Fits on NVIDIA GeForce RTX 3060"), fits.stderr
    assert json.loads((system.folder / "tmp/run.json").read_text())["peak"]["device_bytes"] > 0
    small = system.run("tonnage", "run", "--memory", "300MiB", "--writes", "allow", "--", sys.executable, "/gate/train.py", shown=shown)
    assert small.returncode == 10 and "Does not fit" in small.stderr, small.stderr
    for shell, path in (("bash", "bash-completion/completions/tonnage"), ("zsh", "zsh/vendor-completions/_tonnage"),
                        ("fish", "fish/vendor_completions.d/tonnage.fish")):  # fmt: skip
        assert (system.folder / "usr/share" / path).read_text() == system.run("tonnage", "completion", shell).stdout
    assert len(list((system.folder / "usr/share/man/man1").glob("tonnage*.1.gz"))) == len(list((ROOT / "doc/man").glob("*.1")))

    system.chroot("dpkg", "--remove", *names)
    system.chroot("dpkg", "--purge", *names)
    left = files_of(system)
    assert left == before, set(left.items()) ^ set(before.items())
    assert not list((system.folder / "var/lib/dpkg/info").glob("*tonnage*"))
