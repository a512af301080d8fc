# SPDX-License-Identifier: Apache-2.0
"""A patch that is to be printed, tried as it stands: the program runs from the patched text, and nothing else is changed.

What acts while the program runs, such as a batch in pieces, writes its patch from what it has seen. Whether the patch does the same is
known once it was run. `TONNAGE_PATCH` holds the patch, as source.difference() has made it.
"""

import re

from . import source as sources

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+")


def add_to(changes, patch):
    """Adds the change that makes these edits, and has rewrite.py make them."""
    from . import results, rewrite

    change = results.Change("patch", None, None)
    hunks = _hunks_of(patch)

    def edit(change, text):
        rows = hunks.get(sources.name_in_patches(text.path, results.folder_of_patches()))
        if rows is not None:
            _edit(change, text, rows)

    changes.append(change)
    rewrite.add(change, edit)


def _hunks_of(patch):
    """{name of a file: [(line, sign, text)]}: rows of its hunks. The line is the one of the file that a row is, or stands in front of."""
    found, rows, line = {}, None, 0
    for row in patch.split("\n"):
        if row.startswith("--- a/"):
            rows = found.setdefault(row[len("--- a/"):], [])
        elif row.startswith("@@ "):
            first, count = _HUNK.match(row).groups()
            line = int(first) + (count == "0")  # behind it, where it has no line of the file
        elif rows is not None and row[:1] in (" ", "-", "+") and not row.startswith("+++ b/"):
            rows.append((line, row[0], row[1:].rstrip("\r")))
            line += row[0] != "+"
    return found


def _edit(change, text, rows):
    edits = change.edits(text)
    for line, sign, row in rows:
        if sign == "+":
            if line <= len(text.lines):
                edits.before.setdefault(line, []).append(row)
            else:
                edits.after.setdefault(len(text.lines), []).append((0, [row]))
        elif text.lines[line - 1] != row:
            raise sources.Conflict("line %d is not what the patch says" % line)
        elif sign == "-":
            edits.removed.add(line)
    change.note({"file": text.path, "line": rows[0][0]}, "the patch is applied")
    change.effect()
