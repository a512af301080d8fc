#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test of the house and ends with one line, `N passed, N failed, N skipped`, summed over all of them.

    tools/run_tests.py [--long] [PART...]

Run it by a Python that has pytest (`make test` takes the environment torch-2.11.0). PART is one of jobs() below; naming
some runs only these, and the builds that they need. Several run at once; what each prints is shown when it has ended, and is kept
in build/reports/PART.log. Ends with 1 when anything failed.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build/reports"
PROGRAMS = ["snapshot_dump", "snapshot_moment", "page_build"]  # that tests of Python start
WITH_THREADS = ["test_ledger", "test_threads", "test_core", "test_fault_core"]  # what tsan is for
WHEELS = ["torch-2.6.0", "torch-2.11.0", "torch-2.15.0"]


class Tally:
    """What was counted so far."""

    SKIPPED = 77  # the status of a script that could not test anything

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def add_status(self, name, status):
        if status == self.SKIPPED:
            self.skipped += 1
        else:
            self.add(name, status == 0)

    def add(self, name, passed):
        self.passed += passed
        self.failed += not passed
        if not passed:
            self.failures.append(name)

    def add_all(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def add_junit(self, part, path, status):
        """Adds a JUnit file; a part that failed without saying which test did counts as one failure."""
        failed_before = self.failed
        if path.exists():
            for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
                self.add_case(part, case)
        if status != 0 and self.failed == failed_before:
            self.add(f"{part}: status {status}", False)

    def add_case(self, part, case):
        kinds = {child.tag for child in case}
        if "skipped" in kinds:
            self.skipped += 1
        else:
            name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
            self.add(f"{part}: {name}", not kinds & {"failure", "error"} and case.get("status") != "fail")


class Job:
    """Something to run beside other jobs: a build, or tests of one kind. What it prints comes when it has ended."""

    def __init__(self, name, action, after=(), processes=1):
        self.name, self.action, self.after = name, action, set(after)
        self.processes = processes  # that work; 0 where it waits most of the time: one such at a time, beside the others
        self.tally = Tally()
        self.out = None  # a file, while it runs

    def run(self, *command, **options):
        words = [str(word) for word in command]
        return subprocess.run(words, cwd=ROOT, stdout=self.out, stderr=subprocess.STDOUT, **options).returncode

    def print(self, text):
        self.out.write(text + "\n")
        self.out.flush()


def junit_of(name):
    path = REPORTS / f"{name}.xml"
    path.unlink(missing_ok=True)
    return path


def build(job, preset, *targets):
    """Builds a preset, or some of its targets; what is tested with it waits for this."""
    with open(REPORTS / f"{preset}-configure.log", "w") as log:
        status = subprocess.run(["cmake", "--preset", preset], cwd=ROOT, stdout=log, stderr=log).returncode
    wanted = ["--target", *targets] if targets else []
    status = status or job.run("cmake", "--build", "--preset", preset, *wanted, "--", "--quiet")
    if status:
        job.tally.add(f"{job.name}: the build failed", False)


def c_tests(job, preset, *selection):
    """The ctest entries of a preset that is built."""
    report = junit_of(job.name)
    status = job.run("ctest", "--test-dir", ROOT / "build" / preset, "--output-on-failure", "--no-tests=error", "-j",
                     os.cpu_count() or 1, "--output-junit", report, *selection)  # fmt: skip
    job.tally.add_junit(job.name, report, status)


def pytest(job, name, *words, **options):
    report = junit_of(name)
    status = job.run(sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--junitxml={report}", *words,
                     **options)  # fmt: skip
    job.tally.add_junit(job.name, report, status)


def python_tests(job, folder, *options):
    """Runs the pytest files and the shell tests (test_*.sh: status 0 passed, 77 skipped) of a folder."""
    scripts = sorted((ROOT / folder).glob("test_*.sh"))
    for script in scripts:
        status = job.run("bash", script)
        job.print(f"{script.relative_to(ROOT)}: {'passed' if status == 0 else f'status {status}'}")
        job.tally.add_status(f"{job.name}: {script.name}", status)
    if list((ROOT / folder).rglob("test_*.py")) or not scripts:
        pytest(job, job.name, *options, folder)


def coverage(job):
    """The tables of the virtual GPU against what the wheels import and look up."""
    for wheel in WHEELS:
        python = subprocess.run([ROOT / "tools/envs", "--path", wheel], capture_output=True, text=True).stdout.strip()
        environment = pathlib.Path(python).parent.parent
        built = ROOT / "build/release/lib/tonnage/vgpu"
        status = job.run(sys.executable, "tools/coverage.py", "--built", built, environment)
        job.tally.add_status(f"{job.name}: {wheel}", status)


def clang_tests(job):
    """The C tests, and real programs on what clang has built."""
    c_tests(job, "clang")
    built = {**os.environ, "TONNAGE": str(ROOT / "build/clang/bin/tonnage")}
    pytest(job, f"{job.name}-programs", *parallel(), "tests/vgpu/test_no_harm.py", env=built)


def without_clang(job):
    job.print("CLANG IS MISSING: what it builds and warns of is not tested. tools/deps test says what to install")
    job.tally.add_status(job.name, Tally.SKIPPED)


def fuzzing(job):
    """The fuzz targets, each for an hour; skipped, loudly, where clang cannot be had."""
    report = junit_of(job.name)
    status = job.run(sys.executable, "tools/fuzz.py", "--seconds", 3600, "--record", "--junit", report)
    if status == Tally.SKIPPED:
        job.tally.add_status(job.name, status)
    else:
        job.tally.add_junit(job.name, report, status)


CORES = os.cpu_count() or 1
MOST = min(8, CORES)  # processes of one pytest
FEW = max(1, MOST // 2)


def parallel(count=MOST):
    """As many tests at once."""
    return ["-n", str(count), "--dist", "worksteal"] if count > 1 else []


def jobs(long):
    """What `make test` runs, what takes longest first."""
    more = ["--long"] if long else []

    def tests(name, *options, after=(), processes=FEW):
        return Job(name, lambda job: python_tests(job, f"tests/{name}", *parallel(processes or FEW), *options), after, processes)

    yield tests("vgpu", *more, processes=MOST)
    # One build with the sanitizers, by clang where there is one: what it warns of and what its sanitizers see comes on top of what GCC, which
    # has built what the other tests run, sees. All four combinations are for `make long`.
    has_clang = shutil.which("clang") is not None
    by = "asan-clang" if has_clang else "asan"
    yield Job("build-asan", lambda job: build(job, by))
    yield Job("asan", lambda job: c_tests(job, by), ["build-asan"])
    if not has_clang:
        yield Job("clang", without_clang)
    elif long:
        yield Job("build-gcc", lambda job: build(job, "asan"))
        yield Job("gcc", lambda job: c_tests(job, "asan"), ["build-gcc"])
        yield Job("build-clang", lambda job: build(job, "clang"))
        yield Job("clang", clang_tests, ["build-clang"])
    yield tests("changes", *more)
    yield tests("guest", *more)
    yield tests("cli", processes=0)
    yield tests("preload", processes=0)
    yield Job("build-programs", lambda job: build(job, "release", *PROGRAMS))
    yield tests("snapshot", *more, after=["build-programs"])
    yield tests("page", after=["build-programs"])
    yield tests("tools")
    yield tests("site", *more)
    yield Job("build-tsan", lambda job: build(job, "tsan", *WITH_THREADS))
    yield Job("tsan", lambda job: c_tests(job, "tsan", "-R", "|".join(WITH_THREADS)), ["build-tsan"])
    yield Job("coverage", coverage)


def long_jobs():
    """What `make long` runs after that, one after another."""
    yield Job("fuzz", fuzzing)
    yield Job("wheel", lambda job: python_tests(job, "tests/wheel"))
    yield Job("packages", lambda job: python_tests(job, "tests/packages"))
    yield Job("cluster", lambda job: python_tests(job, "tests/cluster"))
    for name, *words in (["programs", "bench/programs/run.py"], ["repeats", "bench/repeats/run.py", "--long"],
                         ["accuracy", "bench/accuracy/run.py"]):  # fmt: skip
        yield Job(name, lambda job, words=words: job.tally.add_status(job.name, job.run(sys.executable, *words)))


class Schedule:
    """Jobs side by side: the first in the list that waits for no other begins when one has ended and there is room for its processes.
    At once there are as many as cores, and one more, which works while a test of another waits: with twice as many each took a fifth
    more of a core, and all of them as long."""

    AT_ONCE = CORES + 1

    def __init__(self, wanted, at_once):
        self.waiting = list(wanted)
        names = {job.name for job in wanted}
        for job in self.waiting:
            job.after &= names
        self.room = {True: at_once, False: 1}  # of jobs that work, and that wait
        self.changed = threading.Condition()
        self.ended = set()
        self.workers = [threading.Thread(target=self._work, daemon=True) for _ in range(at_once + 1)]

    def run(self):
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            worker.join()

    def _work(self):
        while True:
            with self.changed:
                while (job := self._next()) is None:
                    if not self.waiting:
                        return
                    self.changed.wait()
            try:
                run_job(job)
            finally:
                with self.changed:
                    self.ended.add(job.name)
                    self.room[job.processes > 0] += job.processes or 1
                    self.changed.notify_all()

    def _next(self):
        for job in self.waiting:
            if job.after <= self.ended and (job.processes or 1) <= self.room[job.processes > 0]:
                self.waiting.remove(job)
                self.room[job.processes > 0] -= job.processes or 1
                return job
        return None


def run_job(job):
    started = time.monotonic()
    with open(REPORTS / f"{job.name}.log", "w+") as job.out:
        try:
            job.action(job)
        except Exception:
            job.tally.add(f"{job.name}: {traceback.format_exc()}", False)
        job.out.seek(0)
        text = job.out.read().rstrip("\n")
    print(f"== {job.name}\n{text}\n== {job.name}: {time.monotonic() - started:.0f} s".replace("\n\n", "\n"), flush=True)


def chosen(parser, all_jobs, names):
    """The jobs of these names, and the builds that they need."""
    known = {job.name: job for job in all_jobs}
    unknown = set(names) - set(known)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    wanted = set(names).union(*(known[name].after for name in names)) if names else set(known)
    return [job for job in all_jobs if job.name in wanted]


@contextlib.contextmanager
def fork_broker():
    """Meanwhile the processes of pytest share their fork servers (tests/fork_broker.py)."""
    with tempfile.TemporaryDirectory(prefix="tests-of-tonnage-") as folder:
        path = pathlib.Path(folder) / "broker"
        broker = subprocess.Popen([sys.executable, ROOT / "tests/fork_broker.py", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if broker.stdout.readline():  # else each has its own
            os.environ["TONNAGE_TEST_BROKER"] = str(path)
        try:
            yield
        finally:
            os.environ.pop("TONNAGE_TEST_BROKER", None)
            broker.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="with the tests that take hours")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    if options.long:
        os.environ.setdefault("TONNAGE_FRESH", "1")  # tests/fork_servers.py: each program is started by itself
    REPORTS.mkdir(parents=True, exist_ok=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each pytest would compile all its tests anew: a second of tests/vgpu, and of tests/cli
    # A program under tonnage writes no byte code: it would compile the hook in each process.
    subprocess.run([sys.executable, "-m", "compileall", "-q", ROOT / "python/tonnage"], stdout=subprocess.DEVNULL)
    side_by_side = list(jobs(options.long))
    one_by_one = list(long_jobs()) if options.long else []
    wanted = chosen(parser, side_by_side + one_by_one, options.parts)
    with fork_broker():
        Schedule([job for job in wanted if job in side_by_side], Schedule.AT_ONCE).run()
    Schedule([job for job in wanted if job in one_by_one], 1).run()
    tally = Tally()
    for job in wanted:
        tally.add_all(job.tally)
    for failure in tally.failures:
        print(f"failed: {failure}")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
