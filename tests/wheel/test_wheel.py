# SPDX-License-Identifier: Apache-2.0
"""The wheel that tools/wheel/build makes: what it needs, that it is the same each time, and that it works where it is installed.

Takes some minutes and the network once (`make long`). Debian and Ubuntu only, where apt has the libraries' sources.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/wheel"
LIBRARIES = ("jansson", "libzstd", "lz4", "zlib")


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


def build(root, folder):
    made = run(root / "tools/wheel/build", folder)
    assert made.returncode == 0, made.stderr
    return pathlib.Path(made.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


def pythons():
    """One interpreter of each supported version: from PATH, or of pyenv."""
    found = {}
    roots = [pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"]
    for minor in range(9, 14):
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *(path for root in roots for path in root.glob(f"3.{minor}.*/bin/{name}"))]
        for candidate in filter(None, candidates):
            if run(candidate, "-c", "import ensurepip, venv").returncode == 0:
                found[name] = candidate
                break
    return found


def install(wheel, python, folder):
    """Into an environment of its own, without the network; the command's path."""
    assert run(python, "-m", "venv", folder).returncode == 0
    done = run(folder / "bin/pip", "install", "--no-index", "--disable-pip-version-check", wheel, cwd="/")
    assert done.returncode == 0, done.stderr
    return folder / "bin/tonnage"


def check(*words):
    return run(BUILD / "venv/bin/python", ROOT / "tools/wheel/check.py", *words)


def test_it_needs_glibc_alone(wheel):
    done = check(wheel)
    assert done.returncode == 0 and "ELF files" in done.stdout, done.stderr


def test_one_that_needs_more_is_refused(wheel, tmp_path):
    """The same wheel with the checkout's own program in it, which needs the distribution's jansson and newer glibc."""
    other = tmp_path / wheel.name
    shutil.copy(wheel, other)
    with zipfile.ZipFile(other, "a") as archive:
        archive.write(ROOT / "build/release/bin/tonnage", "other/tonnage")
    done = check(other)
    assert done.returncode == 1
    assert "other/tonnage needs libjansson.so.4" in done.stderr and "asks for GLIBC_2.3" in done.stderr
    assert check("--glibc", "2.17", wheel).returncode == 1, "a limit that is too old is not kept"


def test_it_brings_the_licences_of_what_is_inside(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {pathlib.PurePath(name).name for name in archive.namelist() if "/licenses/" in name}
    assert names >= {"LICENSE", *LIBRARIES}


def test_the_same_commit_gives_the_same_wheel(wheel, tmp_path):
    """Built again from a clone in another folder, with nothing of the first build but the sources' archives."""
    if run("git", "-C", ROOT, "status", "--porcelain").stdout:
        pytest.fail("the checkout has changes that no clone has: commit them first")
    clone = tmp_path / "clone"
    assert run("git", "clone", "--quiet", ROOT, clone).returncode == 0
    (clone / "build/wheel").mkdir(parents=True)
    shutil.copytree(BUILD / "sources", clone / "build/wheel/sources")
    again = build(clone, tmp_path / "again")
    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(wheel.read_bytes()).digest()


@pytest.mark.parametrize("python", sorted(pythons()))
def test_it_works_with_each_python(wheel, python, tmp_path):
    command = install(wheel, pythons()[python], tmp_path / "an environment")
    cards = run(command, "gpus")
    assert cards.returncode == 0 and "rtx3060" in cards.stdout
    nothing = run(command, "run", "--", "/bin/true")
    assert nothing.returncode == 12 and "never used a GPU" in nothing.stderr
    plugin = run(tmp_path / "an environment/bin/python", "-c", "import tonnage.pytest_plugin")
    assert plugin.returncode == 0 or "pytest" in plugin.stderr, plugin.stderr


def test_a_verdict_of_what_is_installed_equals_the_checkouts(wheel, tmp_path):
    import json

    command = install(wheel, sys.executable, tmp_path / "an environment")
    program = tmp_path / "train.py"
    program.write_text("import torch\nmodel = torch.nn.Linear(4096, 4096).cuda()\noptimizer = torch.optim.AdamW(model.parameters())\n"
                       "for _ in range(9):\n    model(torch.randn(64, 4096, device='cuda')).sum().backward()\n    optimizer.step()\n")  # fmt: skip
    peaks = []
    for one in (command, ROOT / "build/release/bin/tonnage"):
        done = run(one, "run", "--gpu", "rtx3060", "--json", tmp_path / "run.json", "--", sys.executable, program, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        peaks.append(json.loads((tmp_path / "run.json").read_text())["peak"])
    assert peaks[0] == peaks[1]


def test_it_runs_without_being_installed(wheel):
    """By uv, from the file, without the network."""
    environments = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))
    uvx = shutil.which("uvx") or environments / ".uv/bin/uvx"
    if not pathlib.Path(uvx).exists():
        pytest.skip("UV IS MISSING: tools/envs makes one with any environment prog-*")
    done = run(uvx, "--offline", "--no-config", "--from", wheel, "tonnage", "--version")
    assert (done.returncode, done.stdout) == (0, f"tonnage {(ROOT / 'python/tonnage/guest/version').read_text()}"), done.stderr


def test_it_leaves_nothing(wheel, tmp_path):
    folder = tmp_path / "an environment"
    install(wheel, sys.executable, folder)
    assert run(folder / "bin/pip", "uninstall", "--yes", "tonnage").returncode == 0
    assert not [path for path in folder.rglob("*tonnage*")]
