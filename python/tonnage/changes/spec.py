# SPDX-License-Identifier: Apache-2.0
"""TONNAGE_CHANGES: "id[=value][,id[=value]...]".

A piece between commas that does not begin with the name of a change belongs to the value before it, so that values
may hold commas: alloc=max_split_size_mb:64,garbage_collection_threshold:0.8,batch=4 asks for two changes. Blanks around
commas do not count. src/change/change_list.c reads the same; tests/golden/changes/spelling.json holds both to it.
"""

from . import results, table


def split(text):
    """[(id, value or None)]; unknown names are kept."""
    found = []
    for piece in text.split(","):
        piece = piece.strip()
        name, equals, value = piece.partition("=")
        if name in table.BY_ID or name == "survey" or not found or found[-1][1] is None:
            if name:
                found.append([name, value if equals else None])
        else:
            found[-1][1] += "," + piece
    return [tuple(pair) for pair in found]


def parse(text):
    """The changes asked for. Those that cannot be are there, too, and say why."""
    changes = []
    for name, value in split(text):
        change = results.Change(name, value, table.BY_ID.get(name))
        if change.row is None and name != "survey":
            change.cannot("there is no change called %s" % name)
        elif any(name == other.id for other in changes):
            change.cannot("%s is asked for twice" % name)
        changes.append(change)
    living = [change for change in changes if change.why_not is None and change.row is not None]
    for one, two in table.clashes([change.id for change in living]):
        next(change for change in living if change.id == two).cannot("does not go together with %s" % one)
    return changes
