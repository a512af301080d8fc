#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The transcripts of the documentation: what a page says that a command prints.

    tests/site/transcripts.py --write [--long] PAGE...    writes what the commands print now into the pages

A fenced block of the kind `console` is a transcript: each line that begins with "$ " is run by bash in a folder of the page's own,
where `tonnage` is the built command, `python` has PyTorch, .venv has Jupyter's kernel, too, and examples/ is a copy of the tree's. A fenced block with a title
(```python title="train.py") is a file of that folder. `<!-- long -->` before a transcript leaves it to `make long`.

What a command prints must be what stands below it, but for seconds, folders of runs, the page's own folder, the frames of
tracebacks and the second half of PyTorch's sentence, which pages cut. torchrun, transformers and tqdm are told in the
environment to be quiet, and Tonnage's own limits of time are lifted, so that a busy machine prints what an idle one does.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import fork_servers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
ENVIRONMENTS = pathlib.Path(os.environ.get("TONNAGE_ENVS", pathlib.Path.home() / ".cache/tonnage/envs"))
PYTHON = ENVIRONMENTS / "torch-2.11.0/bin/python"
PAGES = ROOT / "doc/site/pages"
FENCE = re.compile(r'(?ms)^(?P<before>[^\n]*)\n```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$')
HOME = "/home/me/job"


@dataclasses.dataclass
class Block:
    """A file of the page's folder, or commands and what they print."""

    kind: str
    title: str
    text: str
    long: bool
    span: tuple

    @property
    def commands(self):
        """[(command, what is printed)]; a line that ends with a backslash goes on, behind "> "."""
        found = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append([line[2:], []])
            elif line.startswith("> ") and not found[-1][1]:
                found[-1][0] += "\n" + line[2:]
            else:
                found[-1][1].append(line)
        return [(command, "\n".join(lines)) for command, lines in found]


def pages():
    return [ROOT / "README.md", *sorted(PAGES.rglob("*.md"))]


def columns(page):
    """The width of the terminal: README.md is read as wide as screens are, the site's pages beside their contents."""
    return 100 if page.name == "README.md" else 80


def blocks(text):
    for found in FENCE.finditer(text):
        yield Block(found["kind"], found["title"], found["text"], found["before"] == "<!-- long -->", found.span("text"))


def cut(text):
    """What pages leave out: frames of tracebacks, and how PyTorch's sentence goes on."""
    text = re.sub(r"(?m)^(Traceback \(most recent call last\):)\n(?:[ \t]+.*\n)+", r"\1\n  ...\n", text)
    return re.sub(r"(?m)^(\S*OutOfMemoryError: CUDA out of memory\. .*? GiB)(?: |$).*$", r"\1 ...", text)


def masked(text):
    """What may differ from run to run, made equal."""
    text = re.sub(r"/tmp/tonnage-[\w-]+", "/tmp/tonnage-N", cut(text))
    text = re.sub(r"\b\d+(?:\.\d+)? (s|ms)\b", r"N \1", text)
    paragraphs = []
    for line in (line.rstrip() for line in text.strip("\n").splitlines()):
        if paragraphs and indent(paragraphs[-1][0]) > 0 and indent(line) == indent(paragraphs[-1][0]) + 2:
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line])
    return "\n".join(unwrapped(lines) for lines in paragraphs)


def indent(line):
    return len(line) - len(line.lstrip(" "))


def unwrapped(lines):
    """A paragraph as one line where it has seconds in it: how many digits they have decides where a line ends."""
    if any(re.search(r"\bN m?s\b", line) for line in lines):
        return " ".join([lines[0], *(line.strip() for line in lines[1:])])
    return "\n".join(lines)


class Folder:
    """The folder of a page, in which its commands are run; forked: runs of a plain script are (../fork_servers.py)."""

    def __init__(self, path, width, forked=False):
        self.path, self.status = path, 0
        shutil.copytree(ROOT / "examples", path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        (path / ".venv").symlink_to(ENVIRONMENTS / "prog-notebooks")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TONNAGE", "PYTORCH", "CUDA"))}
        self.environment = {**kept, "PATH": f"{TONNAGE.resolve().parent}:{PYTHON.parent}:{os.environ['PATH']}", "COLUMNS": str(width),
                            "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1",
                            "OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1",
                            "TONNAGE_SECONDS": "900", "TONNAGE_NEED": "900"}  # fmt: skip
        self.forks = forked
        if forked:
            folder = path.parent / "bin"
            folder.mkdir()
            fork_servers.write_stand_in(folder / "tonnage", TONNAGE.resolve())
            self.environment["PATH"] = f"{folder}:{self.environment['PATH']}"

    def _server(self, command):
        """What its program is forked from, None where nothing is; and what is told to it besides."""
        if not self.forks:
            return None, {}
        if ".ipynb" in command:
            python = str(ENVIRONMENTS / "prog-notebooks/bin/python")
            return fork_servers.supervised(TONNAGE, python, (), fork_servers.NOTEBOOKS, self._seen_early(["OMP_NUM_THREADS"])), {"TONNAGE_TEST_RANKS": "1"}
        early = ["LC_ALL", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE", "TQDM_DISABLE"]
        return fork_servers.supervised(TONNAGE, str(PYTHON), (), settings=self._seen_early(early)), {}

    def _seen_early(self, names):
        """Of the environment, what Python, torch and tqdm read when they start."""
        return tuple((name, self.environment[name]) for name in names)

    def write(self, block):
        path = self.path / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)

    def run(self, command, timeout=900):
        """What the command prints, both outputs in one; `echo $?` is the status of the one before."""
        script = f"(exit {self.status}); {command.replace('tonnage fix ', 'tonnage fix --seconds=0 ')}"
        server, environment = self._server(command) if "tonnage " in command else (None, {})
        handles = () if server is None else (server.channel.fileno(),)
        environment = {**self.environment, **environment, **{"TONNAGE_FORKED_BY": str(handle) for handle in handles}}
        done = subprocess.run(["bash", "-c", script], cwd=self.path, env=environment, stdin=subprocess.DEVNULL, text=True,
                              pass_fds=handles, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)  # fmt: skip
        self.status = done.returncode
        printed = done.stdout.replace(str(self.path.resolve()), HOME).replace(str(self.path), HOME)
        printed = re.sub(r"\x1b\[[0-9;]*m", "", printed)
        return as_of_its_own_server(re.sub(fork_servers.RAW_CALLS, "", printed)) if handles else printed


def as_of_its_own_server(printed):
    """A search that is lent a server has not had the trial by which its own is checked."""
    return re.sub(r"\b\d+(?= trials on a virtual GPU)", lambda count: str(int(count[0]) + 1), printed)


def played(text, folder, wanted):
    """Yields (block, [(command, written, printed)]) for each transcript that is wanted, in the order of the page."""
    for block in blocks(text):
        if block.title:
            folder.write(block)
        elif block.kind == "console" and wanted(block):
            yield block, [(command, written, folder.run(command)) for command, written in block.commands]


def rewritten(text, folder, wanted):
    """The page with what the commands print now."""
    for block, lines in reversed(list(played(text, folder, wanted))):
        shown = ""
        for command, _, printed in lines:
            continued = command.replace("\n", "\n> ")
            shown += f"$ {continued}\n" + cut(printed).strip("\n") + ("\n" if printed.strip("\n") else "")
        text = text[: block.span[0]] + shown + text[block.span[1] :]
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", required=True)
    parser.add_argument("--long", action="store_true", help="the long ones, too")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    for page in options.pages:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "job"
            folder.mkdir()
            page.write_text(rewritten(page.read_text(), Folder(folder, columns(page)), lambda block: options.long or not block.long))


if __name__ == "__main__":
    main()
