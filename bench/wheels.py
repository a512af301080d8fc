#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdicts of every job of tests/vgpu on every supported wheel, as a table.

    bench/wheels.py [--wheel 2.6.0]... [--from JUNIT.xml]

Runs tests/vgpu/test_verdicts.py with all its long tests (or takes the JUnit file of such a run) and writes
bench/results/wheels.csv: what the job needs, its verdict on a card just above that and with 80 % of it, the versions of
the packages that it imports, and the seconds of its run on a large card. Rows of wheels that were not run stay.
"""

import argparse
import ast
import csv
import datetime
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from places import ENVIRONMENTS, ROOT

JOBS = ROOT / "tests/vgpu/jobs"
WHEELS = ["2.6.0", "2.11.0", "2.15.0"]
PACKAGES = ["torch", "torchvision", "transformers", "accelerate", "peft", "lightning"]
RECORDED = ["peak_device_bytes", "needed_bytes", "verdict_just_above", "verdict_at_80_percent", "seconds"]
FIELDS = ["wheel", "job", "test", *RECORDED, *PACKAGES]


def run_tests(wheels):
    """The JUnit tree of the verdict tests of these wheels."""
    python = ENVIRONMENTS / "torch-2.11.0/bin/python"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "wheels.xml"
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--long", f"--junitxml={report}"]
        subprocess.run([python, *words, "-k", " or ".join(wheels), "tests/vgpu/test_verdicts.py"], cwd=ROOT)
        return xml.etree.ElementTree.parse(report)


def versions(wheel):
    """Package and version of what an environment holds."""
    code = "import importlib.metadata as m\nfor d in m.distributions(): print(d.metadata['Name'], d.version)"
    done = subprocess.run([ENVIRONMENTS / wheel / "bin/python", "-c", code], capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def imported(job):
    """The packages that a job imports itself."""
    names = {"torch"}
    for node in ast.walk(ast.parse((JOBS / f"{job}.py").read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    return names


def lines_of(tree):
    """One line for each test that ran."""
    held = {}
    for case in tree.getroot().iter("testcase"):
        line = {item.get("name"): item.get("value") for item in case.iter("property")}
        if "wheel" not in line:
            continue
        wheel = line["wheel"]
        held.setdefault(wheel, versions(wheel))
        wanted = imported(line["job"])
        line.update((name, held[wheel].get(name, "")) for name in PACKAGES if name in wanted)
        line["test"] = "failed" if case.find("failure") is not None or case.find("error") is not None else "passed"
        yield line


def kept_lines(path):
    """The lines of earlier runs by wheel and job."""
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        reader = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(line["wheel"], line["job"]): line for line in reader}


def order(key):
    return [int(part) for part in key[0].removeprefix("torch-").split(".")], key[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", action="append", choices=WHEELS, help="only this one; may be repeated")
    parser.add_argument("--from", dest="junit", type=pathlib.Path, metavar="JUNIT.xml", help="of tests that have run")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/wheels.csv")
    options = parser.parse_args()
    wheels = options.wheel or WHEELS
    tree = xml.etree.ElementTree.parse(options.junit) if options.junit else run_tests(wheels)
    day = next((suite.get("timestamp", "")[:10] for suite in tree.getroot().iter("testsuite")), "")
    results, new = kept_lines(options.output), list(lines_of(tree))
    results.update(((line["wheel"], line["job"]), line) for line in new)
    with open(options.output, "w", newline="") as file:
        file.write(f"# By bench/wheels.py, {day or datetime.date.today()}: tests/vgpu/test_verdicts.py --long,\n")
        file.write("# `tonnage run --gpu a100-80`; a job's packages are those that it imports itself.\n")
        file.write("# Seconds are of the first run that fits, whatever else the machine did; host_cost.csv has the speed.\n")
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(results[key] for key in sorted(results, key=order))
    passed = sum(line["test"] == "passed" for line in new)
    print(f"{passed} of {len(new)} verdicts right on {', '.join(wheels)}")
    return 0 if new and passed == len(new) else 1


if __name__ == "__main__":
    sys.exit(main())
