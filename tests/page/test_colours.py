# SPDX-License-Identifier: Apache-2.0
"""The colours of categories differ for every kind of eye, in both themes; figures are CIE76 distances."""

import itertools
import pathlib
import re

import pytest

CSS = (pathlib.Path(__file__).resolve().parents[2] / "src/report/page/page.css").read_text()
ORDER = re.search(r"STACKED = \[(.*?)\]", (pathlib.Path(__file__).resolve().parents[2]
                                          / "src/report/page/data.js").read_text(), re.DOTALL).group(1)
STACKED = re.findall(r"'(\w+)'", ORDER)
# Machado, Oliveira and Fernandes 2009, severity 1.0: linear RGB as seen.
EYES = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
NEIGHBOURS, ANY = 25, 15


def colours(theme):
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", CSS)
    return {name: (light, dark)[theme == "dark"] for name, light, dark in found}


def linear(colour):
    values = (int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5))
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def lab(colour, eye):
    rgb = linear(colour)
    red, green, blue = (min(1, max(0, sum(a * b for a, b in zip(row, rgb)))) for row in EYES[eye])
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(left, right, eye):
    return sum((a - b) ** 2 for a, b in zip(lab(left, eye), lab(right, eye))) ** 0.5


def luminance(colour):
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(left, right):
    low, high = sorted((luminance(left), luminance(right)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eye", EYES)
def test_categories_differ(theme, eye):
    known = colours(theme)
    assert len(STACKED) == 15
    for left, right in itertools.combinations(STACKED, 2):
        near = STACKED.index(right) == STACKED.index(left) + 1
        seen = distance(known[f"c-{left}"], known[f"c-{right}"], eye)
        assert seen >= (NEIGHBOURS if near else ANY), f"{left} and {right}: {seen:.0f}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read(theme):
    known = colours(theme)
    for name in "ink", "soft", "bad", "good", "warn", "link":
        for ground in "page", "panel":
            assert contrast(known[name], known[ground]) >= 4.5, f"{name} on {ground}"
