# SPDX-License-Identifier: Apache-2.0
"""Pages made by the C template, opened in a headless Chromium."""

import contextlib
import fcntl
import json
import os
import pathlib
import subprocess

import browsers
import pytest
import scenes

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def page_build():
    """Path of the program of build.c, built where it is missing."""
    named = os.environ.get("TONNAGE_PAGE_BUILD")
    if named:
        return pathlib.Path(named)
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build/.page_build.lock", "w") as lock:  # workers of pytest-xdist
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (ROOT / "build/release/build.ninja").exists():
            subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", "--preset", "release", "--target", "page_build"], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
    return ROOT / "build/release/tests/page_build"


@pytest.fixture(scope="session")
def build(page_build, tmp_path_factory):
    """build(data): the path of its page."""
    folder = tmp_path_factory.mktemp("pages")

    def make(data):
        path = folder / f"{len(list(folder.iterdir()))}.html"
        text = data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode()
        with open(path, "wb") as out:
            subprocess.run([page_build], input=text, stdout=out, check=True, timeout=60)
        return path

    return make


@pytest.fixture(scope="session")
def scene():
    """scene(name): the trace and the data of a scene, made once."""
    made = {}
    makers = {
        "out_of_memory": scenes.out_of_memory,
        "hostile": lambda: scenes.out_of_memory(hostile=True),
        "fragmented": scenes.fragmented,
        "sharded": scenes.sharded,
        "long": lambda: scenes.long_run(30_000),
        "busiest": lambda: scenes.busiest(1_000_000),
    }

    def get(name):
        if name not in made:
            made[name] = makers[name]()
        return made[name]

    return get


@pytest.fixture(scope="session")
def browser():
    with browsers.chromium() as browser:
        yield browser


WATCH = """
window.violations = [];
addEventListener('securitypolicyviolation', (event) => window.violations.push(event.violatedDirective));
"""


class Shown:
    """A page in a tab, and what it complained of."""

    def __init__(self, tab):
        self.tab, self.complaints, self.requests = tab, [], []
        tab.set_default_timeout(10_000)
        tab.on("console", lambda message: self.complaints.append(message.text))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.add_init_script(WATCH)

    def open(self, path, width, height, color_scheme):
        """Shows a page as a new tab does."""
        self.tab.set_viewport_size({"width": width, "height": height})
        self.tab.emulate_media(media="null", color_scheme=color_scheme)
        self.tab.mouse.move(0, 0)
        self.complaints.clear()
        self.requests.clear()
        self.tab.goto(path.as_uri())

    def check(self, path):
        assert self.complaints == []
        assert self.requests == [path.as_uri()], "something else was asked for"
        assert self.tab.evaluate("window.violations") == []

    def check_names(self):
        """For a screen reader: controls, pictures and regions are labelled, headings do not skip a level."""
        nameless = self.tab.evaluate("""() => [...document.querySelectorAll(
            'button, input, canvas, svg, [role=img], [role=tree], [role=treeitem], [role=region], [role=group]')]
            .filter((node) => node.getClientRects().length > 0)
            .filter((node) => !(node.ariaLabel || node.textContent.trim() || node.labels?.length))
            .map((node) => node.outerHTML)""")
        assert nameless == []
        levels = self.tab.eval_on_selector_all("h1, h2, h3", "nodes => nodes.map(node => Number(node.tagName[1]))")
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after - before <= 1 for before, after in zip(levels, levels[1:]))
        assert self.tab.get_attribute("html", "lang") == "en"

    @property
    def column(self):
        """Of the moment shown; the first one appears with the frame after the page has loaded."""
        return int(self.tab.wait_for_function("() => document.documentElement.dataset.column").json_value())

    def wait_for(self, column):
        self.tab.wait_for_function("column => document.documentElement.dataset.column === String(column)", arg=column)

    def text(self, selector):
        return self.tab.inner_text(selector)

    def rows(self, selector):
        """Texts of the cells of a table's visible rows."""
        return self.tab.eval_on_selector_all(f"{selector} tbody tr", "rows => rows.filter(row => row.offsetParent)"
                                             ".map(row => [...row.cells].map(cell => cell.innerText.trim()))")

    def colour(self, selector, what="backgroundColor"):
        return self.tab.eval_on_selector(selector, f"node => getComputedStyle(node).{what}")


@pytest.fixture(scope="session")
def free_tabs():
    """Tabs whose page nobody looks at any more: another page in one costs half of what a new tab does. Pages keep nothing."""
    return []


@pytest.fixture
def opened(browser, build, free_tabs):
    """`with opened(data) as shown:` a page; at its end, that nothing was complained of and nothing else asked for."""

    @contextlib.contextmanager
    def show(data, width=1280, height=900, color_scheme="light"):
        path = data if isinstance(data, pathlib.Path) else build(data)
        shown = free_tabs.pop() if free_tabs else Shown(browser.new_context().new_page())
        shown.open(path, width, height, color_scheme)
        yield shown
        shown.check(path)
        free_tabs.append(shown)

    return show
