# SPDX-License-Identifier: Apache-2.0
"""Whether a report advises what its program already does: by a rule's condition, not by eye.

Two sources are held against the advice of a report: the condition that the report itself carries with each piece (`holds`),
and what the row of the table says that the program does (`follows`), which was written by hand and knows nothing of Tonnage.
"""

import re

# What makes a piece of advice void: its id, words that tell it in a finding of a build without ids, and what a row follows.
RULES = [
    ("checkpointing", r"torch\.utils\.checkpoint", {"checkpointing", "inference"}),
    ("autocast", r"\bautocast to\b", {"autocast", "16_bits"}),
    ("parameters_16_bits", r"16-bit parameters", {"16_bits", "8_bits", "4_bits"}),
    ("inference_16_bits", r"the model in 16 bits", {"16_bits", "8_bits", "4_bits"}),
    ("quantise", r"weights in 8 or 4 bits", {"8_bits", "4_bits"}),
    ("small_state", r"8-bit Adam", {"small_state", "inference", "lora"}),
    ("lora", r"\bLoRA\b", {"lora", "inference"}),
    ("accumulate", r"gradient accumulation", {"batch_of_one", "inference"}),
    ("smaller_batch", None, {"batch_of_one"}),
    ("fewer_workers", r"fewer data loader workers", {"no_loader"}),
    ("expandable", r"expandable_segments:True", {"expandable"}),
    ("no_grad", r"torch\.no_grad\(\)", {"inference"}),
]
VOID = {name: follows for name, _, follows in RULES}


def advice_of(report):
    """The pieces of a report: (id, its own condition or True)."""
    if "advice" in report:
        return [(piece["id"], piece["holds"]) for piece in report["advice"]]
    words = " ".join(finding.get("do") or "" for finding in report.get("findings") or [])
    return [(name, True) for name, pattern, _ in RULES if pattern and re.search(pattern, words)]


def check(row, report):
    """Why pieces of this report's advice are void."""
    follows = set(row.get("follows", []))
    for name, holds in advice_of(report or {}):
        if not holds:
            yield f"{row['name']}: {name}: its own condition does not hold"
        elif follows & VOID.get(name, set()):
            yield f"{row['name']}: {name}: the program has {', '.join(sorted(follows & VOID[name]))}"


def check_all(rows, results):
    return [line for row in rows if results.get(row["name"]) for line in check(row, results[row["name"]]["report"])]
