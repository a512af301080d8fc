# SPDX-License-Identifier: Apache-2.0
"""What the site is made of besides doc/site/pages: manual pages, schemas, notes and tables of the tree. Nothing is copied into
the tree; each page is made from its one source at build. Links between sources become links between pages; one that leads to a
file which has no page becomes the file's name. It knows nothing of mkdocs, so that tests can do without it."""

import csv
import json
import pathlib
import posixpath
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import mdoc  # noqa: E402
import schema  # noqa: E402


class MissingPart(Exception):
    pass


# source: page. Of README.md only the sections that pages ask for are shown.
SOURCES = {
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "design/contributing.md",
    "TESTING.md": "design/testing.md",
    "doc/glossary.md": "reference/glossary.md",
    "doc/what-runs.md": "reference/what-runs.md",
    "doc/repeats.md": "reference/repeats.md",
    "doc/format/metadata.md": "reference/format/metadata.md",
    "doc/format/page.md": "reference/format/page-data.md",
    "examples/README.md": "reference/examples.md",
    "doc/accuracy.svg": "assets/accuracy.svg",
}


WIDE = {"reference/what-runs.md"}  # their tables get the room of the contents


def sources():
    notes = {f"doc/design/{path.name}": f"design/{path.name}" for path in sorted((ROOT / "doc/design").glob("*.md"))}
    return {**SOURCES, **notes}


def manuals():
    return sorted((ROOT / "doc/man").glob("*.1"))


def schemas():
    return sorted((ROOT / "doc/format").glob("*.schema.json"))


def relink(text, source, page):
    """The links of a source as those of its page."""
    pages = sources()

    def replace(found):
        image, label, target = found[1], found[2], found[3]
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return found[0]
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if wanted == "doc/design":
            wanted = "doc/design/0001-house.md"
        if wanted in pages:
            link = posixpath.relpath(pages[wanted], posixpath.dirname(page) or ".")
            return f"{image}[{label}]({link}{'#' + anchor if anchor else ''})"
        if not (ROOT / wanted).exists():
            raise MissingPart(f"{source} links to {target}, which is not there")
        return label if label.startswith("`") else f"`{wanted}`"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", replace, text)


def spaced(text):
    """Lists that follow a paragraph without an empty line are lists here, too, as on GitHub."""
    return re.sub(r"(?m)^(?![ *\-|>0-9])(\S.*)\n(?=(?:\* |- |[0-9]+\. ))", r"\1\n\n", text)


def section(source, title):
    """A section of a Markdown file without its heading."""
    found = re.search(rf"(?ms)^## {re.escape(title)}\n(.*?)(?=^## |\Z)", (ROOT / source).read_text())
    if not found:
        raise MissingPart(f"{source} has no section '{title}'")
    return found[1].strip()


def results(name, columns):
    """Columns of a table of bench/results: {column: heading}."""
    lines = [line for line in (ROOT / f"bench/results/{name}.csv").read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    yield "| " + " | ".join(columns.values()) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(mdoc.quoted(str(row[column] or "")) for column in columns) + " |"


def insert(markdown, page):
    """The parts that a page asks for by a comment: a section of a file, a screen of the tests, a table of results."""

    def replace(found):
        what, *words = found[1].split(" ", 1)
        if what == "section":
            source, _, title = words[0].partition(" ")
            return relink(re.sub(r"(?m)^(?=\[\d+\] )", "\n", section(source, title)), source, page)
        if what == "screen":
            return "```text\n" + (ROOT / "tests/golden" / words[0]).read_text().rstrip("\n") + "\n```"
        if what == "results":
            name, _, columns = words[0].partition(" ")
            return "\n".join(results(name, dict(column.split("=") for column in columns.split(", "))))
        raise MissingPart(f"{page}: no such part: {found[1]}")

    return re.sub(r"<!-- insert: (.*?) -->", replace, markdown)


def title_of(path):
    """The word of a manual page in the navigation."""
    return path.stem.replace("tonnage-", "")


def name_of(path):
    """The word of a schema in the navigation."""
    return path.name.split(".")[0]


def generated():
    """Every page that is made from the tree: {page: its Markdown}; other files are {name: None} and stand in sources()."""
    made = {}
    for source, page in sources().items():
        path = ROOT / source
        head = "---\nhide: [toc]\n---\n\n" if page in WIDE else ""
        made[page] = head + spaced(relink(path.read_text(), source, page)) if path.suffix == ".md" else None
    for path in manuals():
        made[f"reference/{path.stem}.md"] = mdoc.to_markdown(path.stem, path.read_text())
    for path in schemas():
        made[f"reference/format/{name_of(path)}.md"] = schema.to_markdown(name_of(path), json.loads(path.read_text()))
    return made
