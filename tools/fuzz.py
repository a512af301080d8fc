#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the fuzz targets with clang, libFuzzer and sanitizers, and runs each for a while.

    tools/fuzz.py [--seconds 60] [--junit FILE] [--record] [--minimise] [TARGET...]

A run starts from fuzz/corpus/TARGET and from what earlier runs found, which is kept in build/fuzz/found/TARGET. An
input that fails is written to build/reports/fuzz/ with its words; it belongs into fuzz/corpus/TARGET once it is
understood, where ctest replays it. --record writes the figures to bench/results/fuzz.csv. --minimise then adds to
fuzz/corpus the smallest set of short inputs that reaches more code. Ends with 77, loudly, where clang or its libFuzzer
is missing.
"""

import argparse
import concurrent.futures
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"
REPORTS = ROOT / "build/reports/fuzz"
RESULTS = ROOT / "bench/results/fuzz.csv"
COLUMNS = ["target", "seconds", "executions", "executions_per_second", "edges", "edges_of", "features", "corpus_files",
           "corpus_bytes", "failures"]  # fmt: skip
KEPT_BYTES = 2048  # longer inputs stay out of fuzz/corpus: they cost time at each replay
PEAK_MIB = 1024  # of the fuzzing process, coverage and quarantine included

# More inputs to start from, words that a mutation may insert, and the longest input made (what needs longer ones is
# replayed from the corpus).
SEEDS = {"message": [ROOT / "tests/golden/explain"]}
WORDS = {"pickle": ROOT / "src/trace/keys.def", "message": ROOT / "src/message/anchors.c",
         "metadata": ROOT / "src/analyze/metadata.c"}  # fmt: skip
LONGEST = 4096
SKIPPED = 77


def targets():
    return sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "fuzz").glob("fuzz_*.c"))


def has_fuzzer():
    probe = "int LLVMFuzzerTestOneInput(const unsigned char *b, unsigned long n) { return 0; }"
    command = ["clang", "-x", "c", "-fsanitize=fuzzer,address,undefined", "-o", os.devnull, "-"]
    try:
        return subprocess.run(command, input=probe.encode(), capture_output=True).returncode == 0
    except OSError:
        return False


def build(names):
    REPORTS.mkdir(parents=True, exist_ok=True)
    with open(REPORTS / "build.log", "w") as log:
        output = {"cwd": ROOT, "stdout": log, "stderr": subprocess.STDOUT}
        status = subprocess.run(["cmake", "--preset", "fuzz"], **output).returncode
        wanted = [f"fuzz_{name}" for name in names]
        status = status or subprocess.run(["cmake", "--build", BUILD, "--target", *wanted], **output).returncode
    if status:
        sys.exit(f"the fuzz targets cannot be built; see {REPORTS / 'build.log'}")


def quoted(word):
    return '"' + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word) + '"'


def dictionary(name):
    """The option with the string literals of the file that knows the target's words; for pickles with the opcode of a
    string; none for a target without words, since libFuzzer refuses an empty file."""
    if name not in WORDS:
        return []
    path = BUILD / f"{name}.dict"
    words = sorted(set(re.findall(r'"([^"\\\n%]{3,40})"', WORDS[name].read_text())))
    head = (lambda word: b"\x8c" + bytes([len(word)])) if name == "pickle" else lambda word: b""
    path.write_text("".join(quoted(head(word) + word.encode()) + "\n" for word in words))
    return [f"-dict={path}"]


def folders(name):
    """Where a target's inputs lie, that for new ones first."""
    found = BUILD / "found" / name
    found.mkdir(parents=True, exist_ok=True)
    corpus = ROOT / "fuzz/corpus" / name
    return [found, *([corpus] if corpus.is_dir() else []), *SEEDS.get(name, [])]


def figures(name, seconds, log, failures):
    """The figures that libFuzzer printed last."""
    row = dict.fromkeys(COLUMNS, "") | {"target": name, "seconds": seconds, "failures": failures}
    for key, pattern in (("executions", r"stat::number_of_executed_units: (\d+)"), ("edges", r"cov: (\d+)"),
                         ("executions_per_second", r"stat::average_exec_per_sec:\s+(\d+)"),
                         ("edges_of", r"\((\d+) inline 8-bit counters"), ("features", r"ft: (\d+)")):  # fmt: skip
        row[key] = (re.findall(pattern, log) or [""])[-1]
    inputs = [path for folder in folders(name)[:2] for path in folder.iterdir()]
    row["corpus_files"], row["corpus_bytes"] = len(inputs), sum(path.stat().st_size for path in inputs)
    return row


def fuzz(name, seconds):
    """Runs one target; returns its figures and the end of its words when it failed."""
    artifacts = REPORTS / f"{name}-"
    command = [BUILD / "fuzz" / f"fuzz_{name}", f"-max_total_time={seconds}", *dictionary(name),
               f"-max_len={LONGEST}", f"-rss_limit_mb={PEAK_MIB}", "-timeout=60", "-print_final_stats=1",
               f"-artifact_prefix={artifacts}", *folders(name)]  # fmt: skip
    with open(REPORTS / f"{name}.log", "w") as log:
        status = subprocess.run([str(word) for word in command], cwd=ROOT, stdout=log, stderr=log).returncode
    text = (REPORTS / f"{name}.log").read_text(errors="replace")
    return figures(name, seconds, text, int(status != 0)), text[-4000:] if status else ""


def minimise(name):
    """Adds to the kept corpus what reaches more code than it does, shortest first."""
    chosen = BUILD / "minimised" / name
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir(parents=True)
    kept = ROOT / "fuzz/corpus" / name
    kept.mkdir(parents=True, exist_ok=True)
    for path in kept.iterdir():
        shutil.copy(path, chosen)
    before = {path.name for path in chosen.iterdir()}
    subprocess.run([BUILD / "fuzz" / f"fuzz_{name}", "-set_cover_merge=1", "-use_counters=0",
                    f"-max_len={KEPT_BYTES}", chosen, BUILD / "found" / name], check=True, capture_output=True)  # fmt: skip
    for path in chosen.iterdir():
        if path.name not in before and path.stat().st_size <= KEPT_BYTES:
            shutil.copy(path, kept)


def write_junit(path, results):
    suite = xml.etree.ElementTree.Element("testsuite", name="fuzz")
    for row, words in results:
        case = xml.etree.ElementTree.SubElement(suite, "testcase", classname="fuzz", name=row["target"])
        if words:
            xml.etree.ElementTree.SubElement(case, "failure").text = re.sub(r"[^\t\n -~]", "?", words)
    xml.etree.ElementTree.ElementTree(suite).write(path)


def record(rows):
    old = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    new = {row["target"]: row for row in [*old, *rows]}
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for _, row in sorted(new.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of each target")
    parser.add_argument("--junit", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--minimise", action="store_true")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets()))
    options = parser.parse_args()
    names = options.targets or targets()
    if set(names) - set(targets()):
        parser.error(f"there are: {', '.join(targets())}")
    if not has_fuzzer():
        print("FUZZING IS SKIPPED: clang with libFuzzer is missing. tools/deps test says what to install (Debian 12: "
              "clang libclang-rt-14-dev; Ubuntu 22.04: clang; Ubuntu 24.04: clang libclang-rt-18-dev)")  # fmt: skip
        return SKIPPED
    build(names)
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        results = list(pool.map(lambda name: fuzz(name, options.seconds), names))
    for row, words in results:
        print("fuzz {target}: {executions} executions in {seconds} s ({executions_per_second} a second), {edges} of "
              "{edges_of} edges, corpus {corpus_files} files of {corpus_bytes} bytes, {failures} failures".format(**row))
        if words:
            print(words)
    if options.junit:
        write_junit(options.junit, results)
    if options.record:
        record([row for row, _ in results])
    if options.minimise:
        for name in names:
            minimise(name)
    return 1 if any(words for _, words in results) else 0


if __name__ == "__main__":
    sys.exit(main())
