#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for better weights of what frames tell of a phase, and says what they are worth on texts they were not fitted to.

    bench/explain_fit.py NAME=TEXTS.jsonl:LABELS.jsonl...

TEXTS has an object a line with `id` and `text`, LABELS one with `id`, `is_oom`, `frames` and `phase`. Each set in turn is left
out, weights are fitted to the others, beginning with those of src/message/phase_weights.def and with flat ones, and the set is
scored. Prints right phases of each set: with the weights as they are, and with those that were fitted without it.
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASE = ("error", "words", "figure", "plain", "array", "ranges")
KINDS = 4
FLAT = (1, 3, 3, 4)  # guess, word, name, entry
HIGHEST = 9
NAMES = {"UPDATE": "optimizer"}  # of phases whose name in the JSON is another one


def read(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line.strip()]


def build(folder):
    """The program that prints what frames tell."""
    program = folder / "evidence"
    sources = [ROOT / "bench/explain_evidence.c", *(ROOT / "src/message").glob("*.c"), *(ROOT / f"src/base/{name}.c" for name in BASE)]
    includes = [f"-I{ROOT / name}" for name in ("src", "include")]
    subprocess.run(["cc", "-O1", "-std=c11", "-D_GNU_SOURCE", *includes, *sources, "-o", program, "-lm"], check=True)
    return program


def evidence(program, folder, records):
    """For each record: its label, what is said, whether frames decide, and (phase, kind, frame) of all that frames tell."""
    paths = []
    for number, (_, text) in enumerate(records):
        paths.append(folder / str(number))
        paths[-1].write_text(text)
    lines = subprocess.run([program, *paths], check=True, capture_output=True, text=True).stdout.splitlines()
    found = []
    for (label, _), line in zip(records, lines, strict=True):
        said, *rest = line.split()
        told = [(phase, int(kinds).bit_length() - 1, int(frame)) for phase, kinds, frame in (word.split(":") for word in rest[1:])]
        found.append((label, said, bool(rest) and rest[0] == "frames", told))
    return found


def guess(record, weights):
    """As tn__place_tell does it: the heaviest, of equal ones the innermost; words near the error go before a mere guess."""
    _, said, decides, told = record
    if not decides:
        return said
    weight, _, phase = max(((weights[phase, kind], frame, phase) for phase, kind, frame in told), default=(0, 0, "-"))
    if weight <= 1 and said not in [phase for phase, _, _ in told]:
        return said
    return phase if weight > 0 else "-"


def right(records, weights):
    return sum(guess(record, weights) == record[0] for record in records)


def fit(records, weights):
    """Changes one weight after the other while that makes more phases right."""
    weights, best, chance = dict(weights), right(records, weights), random.Random(1)
    for _ in range(3):
        before, keys = best, list(weights)
        chance.shuffle(keys)
        for key in keys:
            for value in range(HIGHEST + 1):
                kept, weights[key] = weights[key], value
                count = right(records, weights)
                if count > best:
                    best = count
                else:
                    weights[key] = kept
        if best == before:
            break
    return weights


def weights_of_tree():
    weights = {}
    for row in re.findall(r"^PHASE\(([^)]*)\)", (ROOT / "src/message/phase_weights.def").read_text(), re.MULTILINE):
        phase, *values = row.split(", ")
        weights.update({(NAMES.get(phase, phase.lower()), kind): int(values[kind]) for kind in range(KINDS)})
    return weights


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="+", metavar="NAME=TEXTS:LABELS")
    arguments = parser.parse_args()
    sets, present = {}, weights_of_tree()
    flat = {(phase, kind): FLAT[kind] for phase, kind in present}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        program = build(folder)
        for named in arguments.sets:
            name, _, paths = named.partition("=")
            texts, labels = paths.split(":")
            text = {record["id"]: record["text"] for record in read(texts)}
            chosen = [label for label in read(labels) if label["id"] in text and label.get("is_oom") != "no" and label.get("frames", True)]
            sets[name] = evidence(program, folder, [(label["phase"] or "-", text[label["id"]]) for label in chosen])
    total = [0, 0, 0, 0]
    print("set: as it is, fitted without it from there, from flat weights, of")
    for name, records in sets.items():
        others = [record for other, found in sets.items() if other != name for record in found]
        row = [right(records, present), right(records, fit(others, present)), right(records, fit(others, flat)), len(records)]
        total = [a + b for a, b in zip(total, row)]
        print(f"{name}: " + " ".join(map(str, row)))
    print("all: " + " ".join(map(str, total)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
