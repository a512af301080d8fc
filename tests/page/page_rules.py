# SPDX-License-Identifier: Apache-2.0
"""What doc/format/page.md demands beyond the schema: lengths, indexes, sums. For the data of any writer.

    page_rules.py FILE.json...      says what is wrong, one line each; status 1 when anything is
"""

import itertools
import json
import sys

PLACED = ["parameters", "gradients", "optimizer_state", "activations", "inputs", "temporaries", "workspaces", "gathered",
          "communication", "other"]
ALLOCATED = [*PLACED, "rounding"]


def parts_of(page):
    """The text of a page before its data, the data as written, and the text after it."""
    before, rest = page.split('<script type="application/json" id="data">')
    return (before, *rest.split("</script>", 1))


def data_of(page):
    return json.loads(parts_of(page)[1])


def sums(differences):
    return list(itertools.accumulate(differences))


def columns(name, table, skip=()):
    """All arrays of a table have one length."""
    lengths = {key: len(values) for key, values in table.items() if isinstance(values, list) and key not in skip}
    if len(set(lengths.values())) > 1:
        yield f"{name}: columns of different lengths {lengths}"


def below(name, values, limit, least=0):
    wrong = [value for value in values if not least <= value < limit]
    if wrong:
        yield f"{name}: {wrong[0]} is not from {least} to {limit - 1}"


def rising(name, values, strictly=False):
    for before, after in zip(values, values[1:]):
        if after < before or strictly and after == before:
            yield f"{name}: {after} after {before}"
            return


def tables(data):
    strings, frames = len(data["strings"]), len(data["frames"]["line"])
    stacks, sites = len(data["stacks"]["frame"]), len(data["sites"]["at"])
    for name in "frames", "stacks", "sites", "intervals":
        yield from columns(name, data[name])
    yield from columns("small", data["small"], ("column", "bytes", "blocks"))
    if data["strings"][0] != "":
        yield "strings: the first is not empty"
    for name in "function", "file":
        yield from below(f"frames.{name}", data["frames"][name], strings)
    parents = sums(data["stacks"]["parent"])
    if parents[:1] != [0] or data["stacks"]["frame"][:1] != [-1]:
        yield "stacks: the first is not the empty one"
    if any(parent >= number for number, parent in enumerate(parents) if number):
        yield "stacks: a child before its parent"
    yield from below("stacks.frame", data["stacks"]["frame"][1:], frames)
    for name in "at", "user":
        yield from below(f"sites.{name}", data["sites"][name], frames, -1)
    yield from below("sites.stack", data["sites"]["stack"], stacks)
    for name, least in ("intervals", 0), ("small", -1):
        yield from below(f"{name}.site", data[name]["site"], sites, least)
        yield from below(f"{name}.label", data[name]["label"], strings)
        yield from below(f"{name}.category", data[name]["category"], len(PLACED))


def moments_of(line):
    first = sums(line["first"])
    return first, [state + more for state, more in zip(first, line["at"])]


def of_communicators(data):
    """What is `communication` and no block of PyTorch's."""
    return (data["card"] or {}).get("communication_bytes") or 0


def timeline(data):
    line = data["timeline"]
    yield from columns("timeline", line)
    first, moments = moments_of(line)
    for name, values in line["bytes"].items():
        if len(values) != len(first):
            yield f"timeline.bytes.{name}: {len(values)} columns of {len(first)}"
        yield from below(f"timeline.bytes.{name}", sums(values), 1 << 53)
        if not any(values):
            yield f"timeline.bytes.{name}: is always 0"
    if first[:1] != [0]:
        yield "timeline.first: does not begin at 0"
    yield from rising("timeline.first", first, True)
    for start, moment, end in zip(first, moments, [*first[1:], line["states"]]):
        if not start <= moment < end:
            yield f"timeline.at: {moment} is not of the column from {start} to {end - 1}"
    yield from below("timeline.phase", line["phase"], len(data["strings"]))
    allocated = [sum(row) for row in zip(*(sums(line["bytes"][name]) for name in ALLOCATED if name in line["bytes"]))]
    communicators = of_communicators(data)
    for column, held in enumerate(sums(line["bytes"].get("communication", []))):
        if held < communicators:
            yield f"timeline.bytes.communication: {held} in column {column}, the communicators hold {communicators}"
            break
    for column, (low, held) in enumerate(zip(sums(line["low"]), [held - communicators for held in allocated])):
        if not 0 <= low <= held:
            yield f"timeline.low: {low} in column {column}, whose moment has {held}"
            break
    yield from below("moments.column", [moment["column"] for moment in data["moments"]], len(first))


def alive(data):
    """For each column, {category: bytes} of what is listed as alive."""
    _, moments = moments_of(data["timeline"])
    names = [category["name"] for category in data["categories"]]
    changes = [dict() for _ in range(len(moments) + 1)]

    def change(column, category, size):
        changes[column][category] = changes[column].get(category, 0) + size

    rows = data["intervals"]
    place = {}
    for start, life, size, category in zip(sums(rows["from"]), rows["life"], rows["bytes"], rows["category"]):
        change(first_from(moments, start, place), category, size)
        if life:
            change(first_from(moments, start + life, place), category, -size)
    rows, at = data["small"], 0
    for category, count in zip(rows["category"], rows["changes"]):
        for column, size in zip(sums(rows["column"][at:at + count]), rows["bytes"][at:at + count]):
            change(column, category, size)
        at += count
    now = dict.fromkeys(range(len(names)), 0)
    for column in range(len(moments)):
        for category, size in changes[column].items():
            now[category] += size
        yield {names[category]: size for category, size in now.items()}


def first_from(moments, state, known):
    """The first column whose moment is not before a state."""
    if state not in known:
        low, high = 0, len(moments)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if moments[middle] < state else (low, middle)
        known[state] = low
    return known[state]


def listed(data):
    """What is alive adds up to the timeline."""
    rows = data["small"]
    if not sum(rows["changes"]) == len(rows["column"]) == len(rows["bytes"]) == len(rows["blocks"]):
        yield "small: the changes are not as many as the series say"
        return
    yield from rising("intervals.from", sums(data["intervals"]["from"]))
    line = data["timeline"]
    bytes_ = {name: sums(line["bytes"].get(name, [0] * len(line["at"]))) for name in PLACED}
    for column, found in enumerate(alive(data)):
        for name in PLACED:
            held = bytes_[name][column] - (of_communicators(data) if name == "communication" else 0)
            if found[name] != held and not (name == "other" and 0 <= found[name] < held):
                yield f"column {column}: {found[name]} bytes of {name} are listed, of {held}"
                return


def segments(data):
    for number, picture in enumerate(data["segments"]):
        name = f"segments[{number}]"
        rows, blocks = picture["segments"], picture["blocks"]
        yield from columns(f"{name}.segments", rows)
        yield from columns(f"{name}.blocks", blocks)
        yield from below(f"{name}.moment", [picture["moment"]], len(data["moments"]))
        yield from below(f"{name}.site", blocks["site"], len(data["sites"]["at"]), -1)
        yield from below(f"{name}.label", blocks["label"], len(data["strings"]))
        addresses, at = sums(rows["address"]), 0
        yield from rising(f"{name}.address", addresses, True)
        for address, size, count in zip(addresses, rows["size"], rows["blocks"]):
            filled = sum(blocks["size"][at:at + count])
            at += count
            if filled != size:
                yield f"{name}: the blocks of {address:#x} fill {filled} of {size} bytes"
        if at != len(blocks["size"]):
            yield f"{name}: {len(blocks['size'])} blocks, of which {at} belong to segments"


def rest(data):
    if data["comparison"]:
        lines = data["comparison"]["lines"]
        yield from columns("comparison.lines", lines)
        for name in "at", "user":
            yield from below(f"comparison.lines.{name}", lines[name], len(data["frames"]["line"]), -1)
    count = len(data["timeline"]["at"]) if data["timeline"] else 0
    yield from below("findings.column", [item["column"] for item in data["findings"] if item["column"] is not None],
                     count)


def without_timeline(data):
    if data["moments"] or data["intervals"]["from"] or data["small"]["changes"] or data["segments"]:
        yield "moments, intervals, small or segments without a timeline"


def complaints(data):
    """Yields what is wrong with data that fits the schema; what rests on wrong parts is not looked at."""
    for stage in [tables, *([timeline, listed] if data["timeline"] else [without_timeline]), segments, rest]:
        found = list(stage(data))
        yield from found
        if found:
            return


def main():
    status = 0
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            for complaint in complaints(json.load(file)):
                print(f"{name}: {complaint}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
