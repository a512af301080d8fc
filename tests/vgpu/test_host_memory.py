# SPDX-License-Identifier: Apache-2.0
"""--host-memory on real loaders: our figure against what the kernel counts for the same processes, a real queue that is
full, pinned blocks, and a fix that fits."""

import json
import os
import pathlib
import shutil
import subprocess
import threading
import time

import pytest
from conftest import HERE, MAIN, MIB, TEMPORARY, TONNAGE, python_of

PROGRAM = HERE / "programs/loader_memory.py"
IMPORTS = HERE / "programs/anonymous_memory.py"
BATCH = 32 * MIB


class Group:
    """A control group of our own: anonymous and shared memory of all that runs in it, as the kernel counts them."""

    def __init__(self):
        for root, names in (("/sys/fs/cgroup/memory", ("total_rss", "total_shmem")), ("/sys/fs/cgroup", ("anon", "shmem"))):
            self.folder, self.names = pathlib.Path(root, "tonnage-test-%d" % os.getpid()), names
            try:
                self.folder.mkdir()
                self.now()
                return
            except (OSError, KeyError):
                shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None  # it cannot be made here

    def now(self):
        rows = dict(line.split() for line in (self.folder / "memory.stat").read_text().splitlines() if len(line.split()) == 2)
        return sum(int(rows.get(name, rows[name.replace("total_", "")])) for name in self.names)

    def run(self, command, **options):
        """The finished command, and the most that it and its children held; None: unknown."""
        if self.folder is None:
            return subprocess.run(command, capture_output=True, text=True, timeout=300, **options), None
        most, over = [0], threading.Event()

        def watch():
            while not over.is_set():
                most[0] = max(most[0], self.now())
                time.sleep(0.005)

        def enter():
            (self.folder / "cgroup.procs").write_text("0")

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            done = subprocess.run(command, preexec_fn=enter, capture_output=True, text=True, timeout=300, **options)
        finally:
            over.set()
            watcher.join()
        return done, most[0]

    def close(self):
        for _ in range(100 if self.folder is not None else 0):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.05)


def words(name, limit, out, *options, program=PROGRAM, arguments=()):
    return [str(TONNAGE), name, "--gpu=rtx3060", f"--host-memory={limit}", "--json", str(out), *options, "--",
            python_of(MAIN), str(program), *map(str, arguments)]  # fmt: skip


ENVIRONMENT = {**os.environ, "TMPDIR": TEMPORARY.name, "TONNAGE_NEED": "0"}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """counted(workers, prefetch): the finished run of the program, its report, and the most that the kernel has counted for it (None: no
    control group can be made). Each is made once."""
    made = {}

    def run(*arguments):
        if arguments not in made:
            folder = tmp_path_factory.mktemp("counted")
            group = Group()
            try:
                done, most = group.run(words("run", "8GiB", folder / "run.json", arguments=arguments), cwd=folder, env=ENVIRONMENT)
            finally:
                group.close()
            made[arguments] = done, json.loads((folder / "run.json").read_text()), most
        return made[arguments]

    return run


@pytest.mark.parametrize("workers, prefetch", [(2, 2), pytest.param(4, 4, marks=pytest.mark.long), (6, 1)])
def test_as_the_kernel_counts(counted, workers, prefetch):
    """Within 5 % of what the kernel counts for all processes of the same run, workers' shared pages once; and the queue is full, which
    it would never be with a card that takes no time."""
    done, report, measured = counted(workers, prefetch)
    host = report["host"]
    assert done.returncode == 0, done.stderr
    if measured is None:
        pytest.skip("no control group with a memory controller can be made here")
    assert abs(host["peak_bytes"] - measured) < 0.05 * measured, (host["peak_bytes"] / MIB, measured / MIB)
    loader = host["loaders"][0]
    assert loader["full"] and (loader["workers"], loader["ahead"], loader["batch_bytes"]) == (workers, prefetch, BATCH)
    assert loader["at"]["line"] == 1 + PROGRAM.read_text().splitlines().index("loader = DataLoader(")
    assert host["at_peak"]["shared_bytes"] >= workers * prefetch * BATCH
    kinds = [row["kind"] for row in host["at_peak"]["processes"]]
    assert kinds.count("loader_worker") == workers and kinds.count("program") == 1
    assert f"{workers} workers x {prefetch} batch" in done.stderr


def test_what_libraries_hold_is_counted_where_they_are_stood_in_for(tmp_path):
    """A program that has imported torch has as much anonymous memory as without us, where it would lack what cuBLASLt holds."""
    bare = subprocess.run([python_of(MAIN), str(IMPORTS)], check=True, capture_output=True, text=True)
    done = subprocess.run(words("run", "8GiB", tmp_path / "run.json", program=IMPORTS), cwd=tmp_path, env=ENVIRONMENT,
                          capture_output=True, text=True)  # fmt: skip
    held, real = (next(int(line.split()[1]) for line in text.splitlines() if line.startswith("anonymous "))
                  for text in (done.stdout, bare.stdout))  # fmt: skip
    assert abs(held - real) < 0.05 * real, (held / MIB, real / MIB, done.stderr)


def test_pinned_blocks_are_there_at_once(tmp_path):
    """Each batch that is ready lies in a pinned block of the program."""
    out = tmp_path / "run.json"
    subprocess.run(words("run", "8GiB", out, arguments=(2, 3, "pin")), cwd=tmp_path, env=ENVIRONMENT, check=True,
                   capture_output=True)  # fmt: skip
    host = json.loads(out.read_text())["host"]
    assert host["loaders"][0]["pins"] and host["at_peak"]["pinned_bytes"] >= 2 * 3 * BATCH
    assert host["at_peak"]["anonymous_bytes"] > host["at_peak"]["pinned_bytes"] + 64 * MIB


def test_pinned_blocks_above_the_limit_are_not_touched_and_count(tmp_path):
    """With the limit below what is pinned, blocks are touched as far as they stay below it, and all of them count."""
    out = tmp_path / "run.json"
    done = subprocess.run(words("run", "100MiB", out, program=HERE / "programs/pin_by_driver.py"), cwd=tmp_path, env=ENVIRONMENT,
                          capture_output=True, text=True)  # fmt: skip
    report = json.loads(out.read_text())
    assert done.returncode == 11 and report["verdict"] == "over_host_memory", done.stderr
    held = report["host"]["at_peak"]
    assert held["anonymous_bytes"] >= held["pinned_bytes"] >= 2 * 3 * BATCH
    assert 3 * BATCH < held["processes"][0]["anonymous_bytes"] < 4 * BATCH, held


def test_a_fix_that_fits(counted, tmp_path):
    """The first change that is enough fits, and the program patched by it fits the same computer."""
    shutil.copy(PROGRAM, tmp_path / "train.py")
    out, patch = tmp_path / "out.json", tmp_path / "change.patch"
    peak = counted(2, 2)[1]["host"]["peak_bytes"]
    limit = peak - BATCH  # of 4 that are ready
    done = subprocess.run(words("fix", limit, out, "--seconds=1", "--jobs=1", "--patch", str(patch), program="train.py", arguments=(2, 2)),
                          cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)  # fmt: skip
    document = json.loads(out.read_text())
    assert done.returncode == 0 and document["verdict"] == "fits_changed", done.stdout + done.stderr
    assert document["unchanged"]["host_memory_bytes"] == limit
    # one worker is enough: none is not tried
    assert [row["id"] for row in document["changes"]] == ["loader_prefetch=1", "loader_workers=1"]
    first = document["changes"][0]
    assert first["id"] == "loader_prefetch=1" and first["fits"] and first["enough"] and first["results"] == "same"
    # 2 of 4 are not ready
    assert 1.5 * BATCH < first["saved_bytes"] < 2.2 * BATCH and first["margin_bytes"] > 0
    subprocess.run(["patch", "-p1", "-i", str(patch)], cwd=tmp_path, check=True, capture_output=True)
    assert "prefetch_factor=1" in (tmp_path / "train.py").read_text()
    again = subprocess.run(words("run", limit, out, program="train.py", arguments=(2, 2)), cwd=tmp_path, env=ENVIRONMENT,
                           capture_output=True, text=True)  # fmt: skip
    assert again.returncode == 0, again.stderr
    loader = json.loads(out.read_text())["host"]["loaders"][0]
    assert (loader["workers"], loader["ahead"], loader["full"]) == (2, 1, True)
