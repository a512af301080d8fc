# SPDX-License-Identifier: Apache-2.0
"""What the site is made from: nothing of a manual page or a schema is lost, and every link leads somewhere. Without mkdocs."""

import html
import json
import posixpath
import re

import mdoc
import parts
import pytest
import schema
from transcripts import PAGES, ROOT

MANUALS = [path.name for path in parts.manuals()]
SCHEMAS = [path.name for path in parts.schemas()]


def visible(markdown):
    """The words of a page."""
    return html.unescape(re.sub(r"<[^>]*>", "", markdown))


@pytest.mark.parametrize("name", MANUALS)
def test_a_manual_page_is_whole(name):
    source = (ROOT / "doc/man" / name).read_text()
    shown = visible(mdoc.to_markdown(name, source))
    for line in source.splitlines():
        if not line.startswith("."):
            assert re.sub(r"\W+", " ", mdoc.plain(line)).strip() in re.sub(r"\W+", " ", shown), line
    for options in re.findall(r"(?m)^\.It (Fl .*)$", source):
        for option in re.findall(r"Fl -([a-z-]+)", options):
            assert re.search(rf"(?m)^.*--{option}\b.*$", shown), option
    assert not re.search(r"\\\(|\\-|\\&|(?m:^\.[A-Z][a-z]\b)", shown)
    titles = [title.capitalize() for title in re.findall(r"(?m)^\.Sh (.*)$", source) if title != "NAME"]
    assert re.findall(r"(?m)^## (.*?) \{", shown) == titles


def test_items_of_a_list_hold_their_own_lists():
    text = ".Nm x\n.Sh A\n.Bl -tag -width Ds\n.It Fl -one Ar a | b\nText\n.Pq Ql c d ,\nmore.\n.Pp\nSecond.\n.El\nAfter.\n"
    shown = mdoc.to_markdown("x", text)
    assert ":   Text (<code>c d</code>), more.\n\n    Second.\n" in shown and "\nAfter.\n" in shown


@pytest.mark.parametrize("line", [".Bd -literal", ".Xo", r"a \(zz b"])
def test_what_is_not_known_stops_the_build(line):
    with pytest.raises(mdoc.UnknownMacro):
        mdoc.to_markdown("x", f".Sh A\n{line}\n")


def names_of(value):
    """Every name of a field in a schema, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from names_of(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "properties":
                yield from inner
            yield from names_of(inner if key != "properties" else list(inner.values()))


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_whole(name):
    document = json.loads((ROOT / "doc/format" / name).read_text())
    shown = visible(schema.to_markdown(parts.name_of(parts.ROOT / name), document))
    fields = set(re.findall(r"(?m)^\| ([\w.-]+) \|", shown))
    assert set(names_of(document)) <= fields, set(names_of(document)) - fields


def site():
    """{page: its Markdown}, as mkdocs gets it."""
    own = {path.relative_to(PAGES).as_posix(): path.read_text() for path in PAGES.rglob("*.md")}
    whole = {**own, **{page: text for page, text in parts.generated().items() if text is not None}}
    return {page: parts.insert(text, page) for page, text in whole.items()}


def anchors(markdown):
    """What a link may name: ids that are written, and titles as Python-Markdown makes ids of them."""
    found = set(re.findall(r'id="([^"]+)"', markdown)) | set(re.findall(r"\{ #([\w-]+) \}", markdown))
    for title in re.findall(r"(?m)^#+ (.*?)(?: \{ #[\w-]+ \})?$", markdown):
        text = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", visible(title))).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", text))
    return found


def test_links_lead_somewhere():
    pages = site()
    files = set(pages) | set(parts.sources().values()) | {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.*")}
    known, lost, count = {page: anchors(text) for page, text in pages.items()}, [], 0
    for page, text in pages.items():
        text = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", text)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            if wanted not in files or anchor and anchor not in known[wanted]:
                lost.append(f"{page}: {target}")
    assert not lost and count > 100, (count, lost)


def test_every_page_has_its_place():
    places = (ROOT / "doc/site/mkdocs.yml").read_text()
    lost = [page for page in [path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")] if page not in places]
    assert lost == []


def test_statuses_that_are_promised_are_those_of_the_manual():
    promised = (PAGES / "stable.md").read_text()
    stated = {int(word) for row in re.findall(r"(?m)^\| ([\d, ]+) \|", promised) for word in row.split(",")}
    manual = set()
    for path in parts.manuals():
        statuses = re.search(r"(?ms)^\.Sh EXIT STATUS$(.*?)^\.Sh ", path.read_text())
        for line in re.findall(r"(?m)^\.It (\d[\d ,]*)$", statuses[1] if statuses else ""):
            manual |= {int(word) for word in re.findall(r"\d+", line)}
    assert stated == manual


def test_parts_that_are_missing_stop_the_build():
    for wanted in ("section README.md No such title", "nothing of the kind"):
        with pytest.raises(parts.MissingPart):
            parts.insert(f"<!-- insert: {wanted} -->", "a.md")
    with pytest.raises(parts.MissingPart):
        parts.relink("[x](no-such-file.md)", "README.md", "a.md")
    assert parts.relink("[x](LICENSE)", "README.md", "a.md") == "`LICENSE`"
