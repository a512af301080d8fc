# SPDX-License-Identifier: Apache-2.0
"""The site, built by `make site` and opened in a headless Chromium as files: nothing is asked for elsewhere, no page is wider than a
telephone, the search finds, and light and dark are as the system wants them. `make long` only."""

import subprocess

import browsers
import pytest
from conftest import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(["make", "--silent", "site", f"SITE={folder}"], cwd=ROOT, check=True)  # warnings are errors
    return folder


@pytest.fixture(scope="module")
def browser():
    with browsers.chromium() as browser:
        yield browser


def opened(browser, width, scheme):
    """A tab, and what it asked for or complained of."""
    tab, said = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page(), []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else said.append(request.url))
    return tab, said


@pytest.mark.parametrize("width, scheme", [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")])
def test_every_page(site, browser, width, scheme):
    tab, said = opened(browser, width, scheme)
    pages = set(site.rglob("*.html")) - {site / "404.html"}  # which only a server shows, from its root
    assert len(pages) > 70
    for path in sorted(pages):
        tab.goto(path.as_uri())
        assert said == [], path
        assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        assert tab.locator("h1").count() == 1, path
        assert tab.get_attribute("body", "data-md-color-scheme") == ("slate" if scheme == "dark" else "default")


def test_the_search_works_from_a_file(site, browser):
    tab, said = opened(browser, 1440, "light")
    tab.goto((site / "howto/index.html").as_uri())
    tab.click(".md-search__input")
    tab.keyboard.type("expandable_segments")
    tab.wait_for_selector('.md-search-result__link[href*="howto/fragmentation.html"]', timeout=20_000)
    assert said == []
