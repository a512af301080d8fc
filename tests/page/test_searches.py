# SPDX-License-Identifier: Apache-2.0
"""The pages of `tonnage fix` and `tonnage fit` on a fake program, in headless Chromium: what they show is what was found, and
they keep what holds for the page of a run."""

import fcntl
import json
import os
import pathlib
import subprocess
import sys

import page_rules
import pytest
import scenes

ROOT = pathlib.Path(__file__).resolve().parents[2]
TONNAGE = pathlib.Path(os.environ.get("TONNAGE", ROOT / "build/bin/tonnage"))
SMALL = ["--gpu", "rtx3060", "--memory", "1GiB"]


def row(name, title, *values):
    return {"id": name, "title": title, "results": "same_up_to_rounding", "values": list(values) or [None]}


SEARCHES = {
    "fix": (["fix", *SMALL],
            {"base": 1500, "batch": 64, "saves": {"zero_grad": 800, "checkpoint": 700, "foreach": 100}, "breaks": ["no_grad"],
             "times": {"checkpoint": 1.25}, "possible": [row("zero_grad", scenes.HOSTILE), row("checkpoint", "checkpoint", "1"),
                                                         row("foreach", "foreach"), row("no_grad", "no_grad")]}),
    "in_vain": (["fix", *SMALL], {"base": 1500, "saves": {"foreach": 100}, "possible": [row("foreach", "foreach")]}),
    "unchanged": (["fix", *SMALL], {"base": 100, "possible": []}),
    "fit": (["fit", *SMALL], {"base": 100, "sample": 14, "batch": 256}),
    "cards": (["fit", "--gpu", "rtx3060,t4"], {"base": 100, "sample": 140, "batch": 256}),
    "grid": (["fit", "--gpu", "rtx3060,t4", "--memory", "1GiB", "--batch", "64", "--vary", "batch=1..64", "--vary", "length=8..64:8"],
             '{"base": 10, "sample": {length}, "batch": 4}'),
}  # fmt: skip


@pytest.fixture(scope="session")
def searched(tmp_path_factory):
    """searched(name): the page of a search, made once for all processes of pytest, and its data."""
    folder, made = tmp_path_factory.getbasetemp(), {}
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def search(name):
        if name not in made:
            options, wish = SEARCHES[name]
            program = [sys.executable, "-I", "-X", "tonnage=off", str(ROOT / "tests/cli/fake_program.py"),
                       wish if isinstance(wish, str) else json.dumps(wish)]  # fmt: skip
            page = folder / f"search_{name}.html"
            with open(page.with_suffix(".lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not page.exists():
                    done = subprocess.run([TONNAGE, *options, "--html", page, "--", *program], capture_output=True, text=True, timeout=120)
                    assert page.exists(), done.stderr
            made[name] = page, page_rules.data_of(page.read_text())
        return made[name]

    return search


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_dark_and_by_ear(opened, searched, name, theme):
    """`opened` sees to it that nothing else is asked for and nothing is complained of."""
    page, data = searched(name)
    with opened(page, width=360, height=700, color_scheme=theme) as shown:
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= 360
        assert shown.colour("html") == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 31)"}[theme]
        shown.check_names()
        assert data["headline"]["title"] in shown.text("h1")
        assert shown.text("#about").count(dict(data["about"])["search"]) == 1
        for section in "time", "moment", "flame", "holders", "segments", "findings":
            assert not shown.tab.is_visible(f"#{section}")


def test_what_fits_and_what_does_not(opened, searched):
    page, data = searched("fix")
    fitting = [change for change in data["fix"]["changes"] if change["fits"]]
    others = [change for change in data["fix"]["changes"] if not change["fits"]]
    assert {change["id"] for change in others} == {"foreach", "no_grad"}
    with opened(page) as shown:
        items = shown.tab.locator("#changes li")
        assert items.count() == len(fitting) >= 2
        for number, change in enumerate(fitting):
            text = items.nth(number).inner_text()
            for words in change["title"], change["time"], change["results"], *change["how"].split("\n"):  # a paragraph each
                assert words in text
            assert ("the first that is enough" in text) == change["enough"]
            items.nth(number).locator("summary").click()
            assert items.nth(number).locator("pre").text_content() == change["patch"]
        assert f'tonnage fix --apply "{fitting[0]["id"]}" ' in shown.text("#headline .do")
        assert scenes.HOSTILE in shown.text("#changes") and shown.tab.evaluate("window.pwned") is None
        assert shown.tab.locator("img").count() == 0
        wide = shown.tab.eval_on_selector_all("#changes .fill", "bars => bars.map(bar => bar.getBoundingClientRect().width)")
        most = max(change["saved_bytes"] for change in fitting)
        for change, width in zip(fitting, wide):
            assert width == pytest.approx(max(wide) * change["saved_bytes"] / most, rel=0.02)
        assert [cells[:2] for cells in shown.rows("#in-vain")] == [[change["id"], change["outcome"]] for change in others]


def test_nothing_found_is_said(opened, searched):
    page, _ = searched("in_vain")
    with opened(page) as shown:
        assert "No change that was tried makes it fit" in shown.text("#changes")
        assert "the smallest card that fits it unchanged" in shown.text("#headline .do")
    page, _ = searched("unchanged")
    with opened(page) as shown:
        assert shown.text("h1").startswith("✓") and not shown.tab.is_visible("#changes") and shown.tab.locator("#headline .do").count() == 0


@pytest.mark.parametrize("name", ["fit", "cards"])
def test_the_curve_has_a_point_for_each_batch(opened, searched, name):
    page, data = searched(name)
    cards = data["fit"]["cards"]
    points = [[point for point in card["curve"] if point["peak_device_bytes"] is not None] for card in cards]
    with opened(page) as shown:
        pictures = shown.tab.locator("#batches svg")
        pictures.first.wait_for(state="attached")  # its data is unpacked first
        assert pictures.count() == len(cards)
        for number, card in enumerate(cards):
            picture = pictures.nth(number)
            assert picture.locator("circle").count() == sum(point["fits"] for point in points[number]) >= 1
            assert picture.locator("path").count() == sum(not point["fits"] for point in points[number]) >= 1
            assert str(card["largest_batch"]) in picture.locator("text").all_text_contents()
        shown.tab.eval_on_selector_all("#batches details", "nodes => nodes.forEach(node => { node.open = true; })")
        assert [cells[0] for cells in shown.rows("#batches")] == [
            str(point["batch"]) for card in cards for point in card["curve"]]
        assert shown.tab.locator("#batches h3").count() == (len(cards) if len(cards) > 1 else 0)


def test_multi_gpu_and_what_to_do_first(opened, searched):
    """What only some programs have: rows of more cards, a batch whose peak nobody knows, advice before the list."""
    data = json.loads(json.dumps(searched("in_vain")[1]))
    data["fix"]["multi_gpu"] = [{"cards": 4, "with": "FSDP", "estimated_device_bytes": 3 << 30}]
    data["headline"]["do"] = ["end the other process"]
    with opened(data) as shown:
        assert shown.tab.locator("#more-cards li").all_inner_texts() == ["4 with FSDP: about 3.00 GiB each"]
        assert "end the other process" in shown.text("#headline .do")
    data = json.loads(json.dumps(searched("fit")[1]))
    unknown = {"batch": 999, "peak_device_bytes": None, "fits": False, "outcome": "the program fails", "tried": True,
               "why_not": scenes.HOSTILE}  # fmt: skip
    data["fit"]["cards"][0]["curve"].append(unknown)
    with opened(data) as shown:
        shown.tab.click("#batches summary")
        assert shown.rows("#batches")[-1] == ["999", "unknown", f"the program fails: {scenes.HOSTILE}"]
        known = [point for point in data["fit"]["cards"][0]["curve"] if point["peak_device_bytes"] is not None]
        assert shown.tab.locator("#batches svg title").count() == len(known) >= 2


def test_a_grid_says_of_each_combination_whether_it_fits(opened, searched):
    """In words as well: a sign or a colour alone tells nobody who does not see it."""
    page, data = searched("grid")
    outcomes = {"fits": "fits", "out_of_memory": "does not fit"}
    with opened(page) as shown:
        assert not shown.tab.is_visible("#batches") and shown.tab.locator("#frontier table").count() == 2
        for number, card in enumerate(data["frontier"]["cards"]):
            rows = shown.tab.locator("#frontier table").nth(number).locator("tbody tr")
            assert rows.count() == len(card["rows"]) == 8
            for i, row in enumerate(card["rows"]):
                cells = rows.nth(i).locator("td.cell")
                told = [text.strip() for text in cells.all_text_contents()]
                assert rows.nth(i).locator("th").inner_text() == row["name"]
                for text, cell in zip(told, row["cells"], strict=True):
                    assert outcomes[cell["outcome"]] in text and ("follows from others" in text) != cell["tried"]
                assert row["largest"] in rows.nth(i).inner_text() and row["plan"] in rows.nth(i).inner_text()
