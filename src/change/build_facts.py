#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C's table of changes from the one of python/tonnage/changes.

    build_facts.py TABLE.py OUTPUT.def

A line a change: CHANGE(id, title, results, conflicts, cost, parameters, gradients, state, activations, temporaries, rounding,
phases, choice), for src/change/facts.c. What a change needs and which values it offers depends on the program: the survey
tells these while it runs.
"""

import pathlib
import runpy
import sys

SHARES = ("parameters", "gradients", "state", "activations", "temporaries", "rounding")
RESULTS = {"same": "SAME", "same_up_to_rounding": "ROUNDING", "different_training": "DIFFERENT"}


def text(words):
    return '"%s"' % words.replace("\\", "\\\\").replace('"', '\\"')


def line(row):
    unknown = set(row.saves) - set(SHARES)
    if unknown:
        raise SystemExit(f"build_facts.py: {row.id} saves of {', '.join(sorted(unknown))}, which is no share of a peak")
    shares = ", ".join(str(row.saves.get(share, 0)) for share in SHARES)
    return "CHANGE(%s, %s, %s, %s, %d, %s, %s, %s)" % (
        row.id, text(row.title), RESULTS[row.results], text(" ".join(row.conflicts)), row.cost, shares,
        text(" ".join(row.phases)), row.choice.upper())


def main():
    rows = runpy.run_path(sys.argv[1])["ROWS"]
    pathlib.Path(sys.argv[2]).write_text(
        "/* Made by src/change/build_facts.py of python/tonnage/changes/table.py. */\n" + "\n".join(map(line, rows)) + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
