#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws results.csv: how far our peaks and the published estimator's are from the measured ones, row by row.

    bench/accuracy/figure.py       writes doc/accuracy.svg
"""

import csv
import math
import pathlib
import statistics

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent.parent / "doc/accuracy.svg"
LEAST, MOST = 0.01, 30.0  # percent, the ends of the axis; smaller errors stand at its beginning
LEFT, WIDTH, TOP, BAND = 190, 640, 34, 84
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
SERIES = (("error_percent", "Tonnage", "#1f6feb"), ("xmem_error_percent", "xMem, as published", "#b8860b"))
GROUPS = (
    ("transformers,", "batch 20 and more", lambda row: row["kind"] == "transformer" and int(row["batch_size"]) >= 20),
    ("transformers,", "smaller batches [1]", lambda row: row["kind"] == "transformer" and int(row["batch_size"]) < 20),
    ("convolutional nets", "", lambda row: row["kind"] == "cnn"),
)


def place(percent):
    share = math.log(max(LEAST, min(MOST, percent)) / LEAST) / math.log(MOST / LEAST)
    return LEFT + WIDTH * share


def text(x, y, words, **attributes):
    rest = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{rest}>{words}</text>'


def dot(x, y, radius, colour, opacity):
    return f'<circle cx="{x:.1f}" cy="{y}" r="{radius}" fill="{colour}" fill-opacity="{opacity}"/>'


def upright(x, top, bottom, colour, width):
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="{colour}" stroke-width="{width}"/>'


def draw_group(rows, top, first, second):
    yield text(LEFT - 12, top + BAND / 2 - 6, first, text_anchor="end")
    yield text(LEFT - 12, top + BAND / 2 + 10, second, text_anchor="end")
    for number, (field, _, colour) in enumerate(SERIES):
        errors = sorted(abs(float(row[field])) for row in rows if row[field])
        y = top + 22 + 30 * number
        for index, error in enumerate(errors):
            yield dot(place(error), y + (index * 7) % 15 - 7, 3, colour, 0.45)
        middle = statistics.median(errors)
        yield upright(place(middle), y - 12, y + 12, colour, 3)
        yield text(LEFT + WIDTH + 10, y + 4, f"median {middle:.2f} % of {len(errors)}", fill=colour)


def draw(rows):
    bottom = TOP + BAND * len(GROUPS)
    height = bottom + 64
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" font-family="sans-serif" font-size="13" '
           'fill="#333">')
    yield f'<rect width="1000" height="{height}" fill="#fff"/>'
    for number, (_, name, colour) in enumerate(SERIES):
        yield dot(LEFT + 6 + 120 * number, 14, 5, colour, 1)
        yield text(LEFT + 16 + 120 * number, 18, name)
    for tick in TICKS:
        yield upright(place(tick), TOP, bottom, "#ddd", 1)
        yield text(place(tick), bottom + 16, f"{tick:g} %", text_anchor="middle")
    for number, (first, second, belongs) in enumerate(GROUPS):
        group = [row for row in rows if belongs(row) and row["error_percent"]]
        yield from draw_group(group, TOP + BAND * number, first, second)
    yield text(LEFT, bottom + 36, "distance of the reserved peak from the measured one; a dot is a run, a bar the median")
    yield text(LEFT, bottom + 54, "[1] padded to lengths that nobody recorded: full length is assumed", fill="#777")
    yield "</svg>"


def main():
    with open(HERE / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    OUT.write_text("\n".join(draw(rows)) + "\n")
    print(OUT)


if __name__ == "__main__":
    main()
