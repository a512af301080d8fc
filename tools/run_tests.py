#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test of the house and ends with one line, `N passed, N failed, N skipped`, summed over all of them.

    tools/run_tests.py [--long] [PART...]

Run it by a Python that has pytest (`make test` takes the environment torch-2.11.0). PARTS names what there is; naming
some runs only these. Ends with 1 when anything failed.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build/reports"
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


def run(command, **options):
    return subprocess.run([str(word) for word in command], cwd=ROOT, **options).returncode


def junit_of(part):
    REPORTS.mkdir(parents=True, exist_ok=True)
    path = REPORTS / f"{part}.xml"
    path.unlink(missing_ok=True)
    return path


def cmake_tests(tally, part, preset, *selection):
    """Builds a preset and runs its ctest entries."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    with open(REPORTS / f"{part}-configure.log", "w") as log:
        status = run(["cmake", "--preset", preset], stdout=log, stderr=subprocess.STDOUT)
    status = status or run(["cmake", "--build", "--preset", preset, "--", "--quiet"])
    if status:
        tally.add(f"{part}: the build failed", False)
        return
    report = junit_of(part)
    jobs = str(os.cpu_count() or 1)
    words = ["ctest", "--test-dir", ROOT / "build" / preset, "--output-on-failure", "--no-tests=error", "-j", jobs]
    tally.add_junit(part, report, run([*words, "--output-junit", report, *selection]))


def python_tests(tally, part, folder, *options):
    """Runs the pytest files and the shell tests (test_*.sh: status 0 passed, 77 skipped) of a folder."""
    scripts = sorted((ROOT / folder).glob("test_*.sh"))
    for script in scripts:
        status = run(["bash", script])
        print(f"{script.relative_to(ROOT)}: {'passed' if status == 0 else f'status {status}'}", flush=True)
        tally.add_status(f"{part}: {script.name}", status)
    if list((ROOT / folder).rglob("test_*.py")) or not scripts:
        report = junit_of(part)
        words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--junitxml={report}"]
        tally.add_junit(part, report, run([*words, *options, folder]))


def coverage(tally, part):
    """The tables of the virtual GPU against what the wheels import and look up."""
    for wheel in WHEELS:
        python = subprocess.run([ROOT / "tools/envs", "--path", wheel], capture_output=True, text=True).stdout.strip()
        environment = pathlib.Path(python).parent.parent
        words = [sys.executable, "tools/coverage.py", "--built", ROOT / "build/release/lib/tonnage/vgpu", environment]
        tally.add_status(f"{part}: {wheel}", run(words))


def other_compiler(tally, part):
    """All of it by clang, without a warning: the C tests, and real programs on what was built. Skipped, loudly, where
    clang cannot be had."""
    if not shutil.which("clang"):
        print("CLANG IS MISSING: what it builds is not tested. tools/deps test says what to install")
        tally.add_status(part, Tally.SKIPPED)
        return
    cmake_tests(tally, part, "clang")
    built = {**os.environ, "TONNAGE": str(ROOT / "build/clang/bin/tonnage")}
    report = junit_of(f"{part}-programs")
    words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--junitxml={report}"]
    tally.add_junit(part, report, run([*words, *parallel(), "tests/vgpu/test_no_harm.py"], env=built))


def fuzzing(tally, part, seconds, *options):
    """The fuzz targets, each for so many seconds; skipped, loudly, where clang cannot be had."""
    report = junit_of(part)
    status = run([sys.executable, "tools/fuzz.py", "--seconds", seconds, "--junit", report, *options])
    if status == Tally.SKIPPED:
        tally.add_status(part, status)
    else:
        tally.add_junit(part, report, status)


def parallel(more=0):
    """As many tests at once as there are cores, and some more where they wait for files and processes."""
    return ["-n", str(min(8, os.cpu_count() or 1) + more)]


def parts(long):
    """Name and action of each part, quick ones first."""
    more = ["--long"] if long else []
    yield "tools", lambda tally: python_tests(tally, "tools", "tests/tools", *parallel())
    yield "unit", lambda tally: cmake_tests(tally, "unit", "debug")
    yield "snapshot", lambda tally: python_tests(tally, "snapshot", "tests/snapshot", *parallel(), *more)
    yield "page", lambda tally: python_tests(tally, "page", "tests/page", *parallel())
    yield "asan", lambda tally: cmake_tests(tally, "asan", "asan")
    yield "fuzz", lambda tally: fuzzing(tally, "fuzz", *([3600, "--record"] if long else [60]))
    yield "tsan", lambda tally: cmake_tests(tally, "tsan", "tsan", "-R", "ledger|threads|core")
    yield "clang", lambda tally: other_compiler(tally, "clang")
    yield "coverage", lambda tally: coverage(tally, "coverage")
    yield "preload", lambda tally: python_tests(tally, "preload", "tests/preload", *parallel())
    yield "guest", lambda tally: python_tests(tally, "guest", "tests/guest", *parallel(), *more)
    yield "cli", lambda tally: python_tests(tally, "cli", "tests/cli", *parallel())
    yield "vgpu", lambda tally: python_tests(tally, "vgpu", "tests/vgpu", *parallel(1), *more)
    if long:
        yield "wheel", lambda tally: python_tests(tally, "wheel", "tests/wheel")
        yield "changes", lambda tally: python_tests(tally, "changes", "tests/changes", *parallel())
        yield "programs", lambda tally: tally.add_status("programs", run([sys.executable, "bench/programs/run.py"]))
        yield "repeats", lambda tally: tally.add_status("repeats", run([sys.executable, "bench/repeats/run.py", "--long"]))
        yield "accuracy", lambda tally: tally.add_status("accuracy", run([sys.executable, "bench/accuracy/run.py"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="with the tests that take hours")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    known = dict(parts(options.long))
    unknown = set(options.parts) - set(known)
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    tally = Tally()
    for name, action in known.items():
        if not options.parts or name in options.parts:
            started = time.monotonic()
            print(f"== {name}", flush=True)
            action(tally)
            print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    for failure in tally.failures:
        print(f"failed: {failure}")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
