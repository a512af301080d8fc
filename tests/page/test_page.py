# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium: what a person does with it, and that it says what the data says."""

import copy
import time

import page_rules
import pytest
import scenes
from page_data import CATEGORIES, NUMBER

LEFT, RIGHT = 62, 14  # of the plot in its canvas


def words_of(size):
    for unit, name, digits in (1 << 30, "GiB", 2), (1 << 20, "MiB", 1), (1024, "KiB", 1):
        if size >= unit:
            return f"{size / unit:.{digits}f} {name}"
    return f"{size} B"


def by_category(data, column):
    """{words: bytes} of a column, without what is 0."""
    bytes_ = {text: sum(data["timeline"]["bytes"].get(name, [])[:column + 1]) for name, text in CATEGORIES}
    return {text: size for text, size in bytes_.items() if size}


def point_of(shown, data, column):
    """Where the moment of a column lies on the picture."""
    _, moments = page_rules.moments_of(data["timeline"])
    shown.tab.locator("#chart").scroll_into_view_if_needed()
    box = shown.tab.locator("#chart").bounding_box()
    share = (moments[column] + 0.5) / data["timeline"]["states"]
    return box["x"] + LEFT + share * (box["width"] - LEFT - RIGHT), box["y"] + 200


def says(shown, data, column):
    """The readout, the table and the flame graph show that column."""
    shown.wait_for(column)  # they come with a frame
    held = by_category(data, column)
    total = sum(held.values())
    readout = {row[0]: row[1] for row in shown.rows("#readout")}
    assert {text: size for text, size in readout.items() if size != "0 B"} == {
        text: words_of(size) for text, size in held.items()}
    assert words_of(total) in shown.text("#moment-told")
    assert shown.text("#holders .tabled:not([hidden]) .counted").endswith(f", {words_of(total)}")
    boxes = shown.tab.eval_on_selector_all("#flame .box[aria-level='2']", "boxes => boxes.map(box => box.ariaLabel)")
    told = {box.rsplit(", ", 1)[0] for box in boxes if " more: " not in box}
    assert told <= {f"{text}: {words_of(size)}" for text, size in held.items()}
    assert len(told) >= sum(size > total / 500 for size in held.values())


def test_headline_and_findings(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        assert shown.text("h1").endswith("Does not fit on NVIDIA GeForce RTX 3060 (11.75 GiB)")
        told = shown.text("#headline")
        for line in [*data["headline"]["lines"], *data["headline"]["do"], data["headline"]["why"], data["notes"][0],
                     "train.py:41 fit → model.py:88 Block.forward → model.py:52 Attention.forward"]:
            assert line in told
        first, *more = shown.tab.locator("#findings li").all_inner_texts()
        assert first.startswith("error") and "model.py:52 Attention.forward" in first and "3.00 GiB" in first
        assert "/home/ada/finetune/model.py:52" in first and len(more) == 2
        assert shown.tab.title() == "Does not fit on NVIDIA GeForce RTX 3060 (11.75 GiB) · Tonnage"


def test_opens_at_the_moment_that_matters_most(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        assert shown.column == data["moments"][0]["column"]
        says(shown, data, shown.column)


def test_click_tells_what_was_alive(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        for column in 300, 1500, 40:
            shown.tab.mouse.click(*point_of(shown, data, column))
            shown.tab.wait_for_function("wanted => Math.abs(document.documentElement.dataset.column - wanted) < 8",
                                        arg=column)
            says(shown, data, shown.column)


def test_keys_move_the_moment_and_speak(opened, scene):
    _, data = scene("out_of_memory")
    count = len(data["timeline"]["at"])
    with opened(data) as shown:
        shown.tab.focus("#chart")
        for key, column in [("Home", 0), ("ArrowRight", 1), ("PageUp", 101), ("Shift+ArrowRight", 121),
                            ("ArrowLeft", 120), ("End", count - 1), ("ArrowRight", count - 1)]:
            shown.tab.keyboard.press(key)
            shown.wait_for(column)
        shown.tab.keyboard.press("Home")
        shown.wait_for(0)
        assert shown.tab.get_attribute("#chart", "aria-valuenow") == "0"
        spoken = shown.tab.get_attribute("#chart", "aria-valuetext")
        assert spoken.startswith("event ") and words_of(sum(by_category(data, 0).values())) in spoken
        says(shown, data, 0)


def test_named_moments_and_steps(opened, scene):
    _, data = scene("out_of_memory")
    steps = list(page_rules.sums(data["timeline"]["step"]))
    with opened(data) as shown:
        shown.tab.click("#moment button:text-is('Peak')")
        shown.wait_for(data["moments"][1]["column"])
        assert shown.tab.get_attribute("#moment button:text-is('Peak')", "aria-pressed") == "true"
        shown.tab.focus("#chart")
        shown.tab.keyboard.press("Home")
        shown.wait_for(0)
        for step in 1, 2, 3:
            shown.tab.click("#moment button[aria-label='A step on']")
            shown.wait_for(steps.index(step))
        shown.tab.click("#moment button[aria-label='A step back']")
        shown.wait_for(steps.index(2))


def test_drag_looks_closer_and_comes_back(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        before = shown.column
        x, y = point_of(shown, data, 200)
        shown.tab.mouse.move(x, y)
        shown.tab.mouse.down()
        shown.tab.mouse.move(x + 100, y, steps=4)
        shown.tab.mouse.up()
        shown.tab.wait_for_selector("#whole", state="visible")
        assert shown.column == before, "a drag is no click"
        shown.tab.mouse.click(x, y)
        shown.tab.wait_for_function("before => document.documentElement.dataset.column !== String(before)", arg=before)
        assert 200 < shown.column < 420
        shown.tab.click("#whole")
        shown.tab.wait_for_selector("#whole", state="hidden")


def test_picture_as_a_table(opened, scene):
    _, data = scene("long")
    with opened(data) as shown:
        shown.tab.click("#chart-table summary")
        rows = shown.rows("#chart-table")
        peak = data["moments"][0]["column"]
        held = by_category(data, peak)
        (row,) = [row for row in rows if row[1].startswith("Peak")]
        assert row[2] == words_of(sum(held.values()))
        assert sorted(row[3:]) == sorted([*map(words_of, held.values()), *["0 B"] * (len(row) - 3 - len(held))])
        assert 40 <= len(rows) <= 70


def test_flame_graph(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        parameters = words_of(by_category(data, shown.column)["parameters"])
        box = "#flame .box[aria-label^='Block.__init__']"
        assert parameters in shown.tab.get_attribute(box, "aria-label")
        assert "model.py:61" in shown.tab.get_attribute(box, "aria-label")
        assert shown.tab.locator("#flame .box[aria-label^='_call_impl']").count() == 0
        shown.tab.check("#flame input[type=checkbox]")
        assert shown.tab.locator("#flame .box[aria-label^='_call_impl']").count() > 0
        shown.tab.uncheck("#flame input[type=checkbox]")
        narrow = shown.tab.locator(box).bounding_box()["width"]
        shown.tab.click(box)
        assert shown.tab.locator(box).bounding_box()["width"] > 3 * narrow
        shown.tab.keyboard.press("ArrowUp")
        focused = "document.activeElement.ariaLabel"
        assert shown.tab.evaluate(focused).startswith("build")
        shown.tab.keyboard.press("Escape")
        assert shown.tab.locator(box).bounding_box()["width"] == pytest.approx(narrow, abs=1)
        assert shown.tab.evaluate(focused).startswith("everything")
        for key, name in ("ArrowDown", ("optimizer state", "cached")), ("ArrowRight", ("optimizer state", "cached")):
            shown.tab.keyboard.press(key)
            assert shown.tab.evaluate(focused).startswith(name)
        shown.tab.keyboard.press("Enter")
        assert shown.tab.locator("#flame button").is_visible()


def test_backward_is_named(opened, scene):
    _, data = scene("long")
    with opened(data) as shown:
        assert any("backward of model.py" in row[4] for row in shown.rows("#holders"))
        assert shown.tab.locator("#flame .box[aria-label^='its backward pass']").count() > 0


def test_search_and_sorting(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        everything = shown.rows("#holders")
        assert [row[3] for row in everything][:1] == ["optimizer state"]
        shown.tab.fill("#holders input", "ATTENTION activ")
        (row,) = shown.rows("#holders")
        assert row[3] == "activations" and row[4].endswith("model.py:52 Attention.forward")
        assert shown.text("#holders .counted").startswith(f"1 of {len(everything)} rows")
        shown.tab.fill("#holders input", "no such name")
        assert shown.rows("#holders") == []
        shown.tab.fill("#holders input", "")
        assert shown.rows("#holders") == everything
        shown.tab.click("#holders th button:text-is('For')")
        names = [row[3] for row in shown.rows("#holders")]
        assert names == sorted(names, key=str.lower)
        assert shown.tab.get_attribute("#holders th:nth-child(4)", "aria-sort") == "ascending"
        shown.tab.click("#holders th button:text-is('For')")
        assert [row[3] for row in shown.rows("#holders")] == sorted(names, key=str.lower, reverse=True)


def test_one_line_is_one_row(opened, scene):
    """Also where it was called by several stacks: the row opens to each."""
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        before = shown.rows("#holders")
    split = copy.deepcopy(data)
    sites, of_blocks = split["sites"], split["intervals"]["site"]
    site = max(set(of_blocks), key=of_blocks.count)
    for column in sites.values():
        column.append(column[site])
    sites["stack"][-1] = next(stack for stack in sites["stack"] if stack not in (0, sites["stack"][site]))
    places = [i for i, of in enumerate(of_blocks) if of == site]
    for i in places[: len(places) // 2]:
        of_blocks[i] = len(sites["stack"]) - 1
    with opened(split) as shown:
        assert shown.rows("#holders") == before
        counts = []
        for i in range(len(before)):
            opener = shown.tab.locator("#holders .opener").nth(i)
            if opener.count():
                opener.click()
                counts.append(shown.tab.locator("#holders .stack").count())
                opener.click()
        assert sorted(counts)[-1] == 2 and counts.count(2) == 1


def test_rows_open_to_their_stack(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        shown.tab.fill("#holders input", "attention")
        button = shown.tab.locator("#holders .opener").first
        button.focus()
        shown.tab.keyboard.press("Enter")
        assert button.get_attribute("aria-expanded") == "true"
        frames = shown.tab.locator("#holders .stack li").all_inner_texts()
        assert frames[0].startswith("Linear.forward /usr/lib/python3/torch")
        assert frames[-1] == "<module> /home/ada/finetune/train.py:118"
        shown.tab.keyboard.press("Enter")
        assert shown.tab.locator("#holders .stack").count() == 0


def test_each_large_block(opened, scene):
    trace, data = scene("out_of_memory")
    with opened(data) as shown:
        shown.tab.click("#holders button:has-text('Each block')")
        living = [row for row in trace.intervals if row[0] <= trace.state < row[1]]
        assert shown.text("#holders .tabled:not([hidden]) .counted").startswith(f"{len(living)} blocks")
        shown.tab.fill("#holders .tabled:not([hidden]) input", "h.3.mlp.weight exp_avg_sq")
        ((size, *_, label, begin, end),) = [[row[0], *row] for row in shown.rows("#holders")]
        (found,) = [row for row in living if trace.strings.rows[row[5]] == "exp_avg_sq h.3.mlp.weight"]
        assert (size, label) == (words_of(found[2]), "exp_avg_sq h.3.mlp.weight")
        assert (begin, end) == (f"{found[0]:,}", "the end")


def test_more_rows_on_demand(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        shown.tab.click("#holders button:has-text('Each block')")
        assert len(shown.rows("#holders")) == 40
        shown.tab.click("#holders .tabled:not([hidden]) button.more")
        assert len(shown.rows("#holders")) == 240


def test_segments_and_what_pins_them(opened, scene):
    _, data = scene("fragmented")
    with opened(data) as shown:
        note = shown.text("#segments .help")
        assert "6 segments, 120.0 MiB; 112.5 MiB of it free, the largest free piece 20.0 MiB." in note
        assert "5 segments are mostly free and cannot be given back: 92.5 MiB, pinned by 5 blocks" in note
        told = shown.text("#map-told")
        assert "held by 1.5 MiB activations kept 0" in told and "leak.py:12 keep" in told
        shown.tab.click("#segments summary")
        rows = shown.rows("#segments")
        pinned = [row for row in rows if row[4] == "yes"]
        assert len(rows) == 6 and len(pinned) == 5
        assert all("leak.py:12 keep" in row[5] for row in pinned)
        free = [float(row[0].split()[0]) for row in rows]
        assert free == [20.0, *[18.5] * 5]
        assert [row[5] for row in rows if row not in pinned] == ["nothing: it could be given back"]


def test_segments_by_key_and_click(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        shown.tab.focus("#map")
        shown.tab.keyboard.press("Home")
        first = shown.text("#map-told")
        assert first.startswith(f"Segment {data['segments'][0]['segments']['address'][0]:#x}: ")
        assert shown.tab.get_attribute("#map", "aria-valuetext").startswith("segment 1 of ")
        shown.tab.keyboard.press("ArrowRight")
        second = shown.text("#map-told")
        assert second != first
        shown.tab.click("#map", position={"x": 12, "y": 10})
        assert shown.text("#map-told") == first


def test_segments_follow_the_moment(opened, scene):
    data = copy.deepcopy(scene("out_of_memory")[1])
    with opened(data) as shown:
        pressed = "#segments button[aria-pressed=true]"
        assert shown.text(pressed) == "Out of memory"
        shown.tab.click("#moment button:text-is('Peak')")
        shown.wait_for(data["moments"][1]["column"])
        assert shown.text(pressed) == "Peak"
        shown.tab.click("#segments button:text-is('Out of memory')")
        assert "Asked for" in shown.text("#segments .help")


def test_comparison(opened, scene):
    data = scenes.with_comparison(copy.deepcopy(scene("out_of_memory")[1]))
    before, after = (data["comparison"]["bytes"][key][NUMBER["activations"]] for key in ("before", "after"))
    with opened(data) as shown:
        rows = {row[0]: row[1:4] for row in shown.rows("#comparison .changes")}
        assert rows["activations"] == [words_of(before), words_of(after), f"−{words_of(before - after)}"]
        assert rows["parameters"][2] == "0"
        shown.tab.fill("#comparison input", "loss")
        lines = shown.rows("#comparison .tabled")
        assert lines and all("loss" in row[5] for row in lines)
        shown.tab.fill("#comparison input", "")
        changes = [row[0] for row in shown.rows("#comparison .tabled")]
        assert len(changes) == 40 and any(row.startswith("+") for row in changes)


def pixels(shown):
    return shown.tab.evaluate("document.getElementById('chart').toDataURL()")


def test_dark_by_the_system_and_by_the_switch(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as light, opened(data, color_scheme="dark") as dark:
        page = light.colour("html"), dark.colour("html")
        drawn = pixels(light), pixels(dark)
        assert page == ("rgb(255, 255, 255)", "rgb(20, 24, 31)")
        assert drawn[0] != drawn[1]
        light.tab.click("#theme button:text-is('Dark')")
        assert light.colour("html") == page[1] and pixels(light) == drawn[1]
        dark.tab.click("#theme button:text-is('Light')")
        assert dark.colour("html") == page[0] and pixels(dark) == drawn[0]
        dark.tab.click("#theme button:text-is('Auto')")
        assert dark.colour("html") == page[1]


def test_print_is_light_and_whole(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data, color_scheme="dark") as shown:
        shown.tab.click("#theme button:text-is('Dark')")
        shown.tab.emulate_media(media="print")
        assert shown.colour("html", "colorScheme") == "light" and shown.colour("html") == "rgb(255, 255, 255)"
        shown.tab.wait_for_function("() => getComputedStyle(document.getElementById('theme')).display === 'none'")
        for selector in "h1", "#findings", "#chart", "#flame .flames", "#holders table", "#map":
            assert shown.tab.locator(selector).first.is_visible(), selector
        for selector in "#holders .tools", "#moment .switch", "#chart-table":
            assert not shown.tab.locator(selector).first.is_visible(), selector
        assert len(shown.tab.pdf()) > 20_000


def test_hostile_names_are_only_text(opened, scene):
    _, data = scene("hostile")
    with opened(data) as shown:
        shown.tab.click("#holders button:has-text('Each block')")
        shown.tab.click("#holders .tabled:not([hidden]) .opener >> nth=0")
        shown.tab.click("#segments summary")
        shown.tab.hover("#flame .box[aria-level='3'] >> nth=0")
        assert shown.tab.evaluate("window.pwned") is None
        assert shown.tab.locator("img").count() == 0
        assert shown.tab.locator("script").count() == 2
        assert scenes.HOSTILE + ":41 fit" in shown.text("#headline .chain")
        assert scenes.HOSTILE in shown.text("#holders .stack")


def test_policy_holds(browser, build, scene):
    """The rules of the page would stop what a name could smuggle in."""
    context = browser.new_context()
    tab = context.new_page()
    tab.add_init_script("window.violations = [];"
                        "addEventListener('securitypolicyviolation', e => violations.push(e.effectiveDirective))")
    tab.goto(build(scene("hostile")[1]).as_uri())
    stopped = tab.evaluate("""() => {
        const script = document.createElement('script');
        try { script.textContent = 'window.pwned = 1'; document.body.append(script); } catch (error) { }
        try { document.body.innerHTML = '<img src=x onerror="window.pwned = 2">'; } catch (error) { }
        return window.pwned;
    }""")
    assert stopped is None
    tab.evaluate("fetch('http://localhost:1/').catch(() => 0)")
    tab.wait_for_function("() => violations.includes('connect-src')")
    context.close()


def test_page_without_a_recording(opened, scene):
    data = copy.deepcopy(scene("out_of_memory")[1])
    nothing = {key: [] for key in ("from", "life", "bytes", "category", "site", "label")}
    data.update(timeline=None, moments=[], intervals={"smallest_bytes": 0, **nothing}, segments=[], card=None,
                small={key: [] for key in data["small"]})
    data["findings"][0]["column"] = None
    with opened(data) as shown:
        assert shown.tab.locator("#findings li").count() == 3
        for name in "time", "flame", "holders", "segments", "moment":
            assert not shown.tab.locator(f"#{name}").is_visible()


def test_page_of_one_moment(opened):
    """What a run's JSON knows: one column, and holders without blocks of their own."""
    data = scenes.fragmented()[1]
    last = by_category(data, len(data["timeline"]["at"]) - 1)
    data["timeline"].update(states=1, first=[0], at=[0], time_us=None, step=[0], phase=[0], low=[0], bytes={
        name: [last[text]] for name, text in CATEGORIES if text in last})
    data["moments"][0]["column"] = 0
    data["segments"] = []
    held = last["activations"]
    data["intervals"] = {"smallest_bytes": 0, **{key: [] for key in data["intervals"] if key != "smallest_bytes"}}
    data["small"] = {"category": [NUMBER["activations"]], "site": [1], "label": [0], "changes": [1], "column": [0],
                     "bytes": [held], "blocks": [5]}
    assert list(page_rules.complaints(data)) == []
    with opened(data) as shown:
        (row,) = [row for row in shown.rows("#holders") if row[3] == "activations"]
        assert row[0] == words_of(held) and row[2] == "5" and "leak.py:12 keep" in row[4]


def test_communicators_are_no_blocks(opened, scene):
    """Their bytes count in `communication` and have no line; what PyTorch holds for it has one."""
    trace, data = scene("sharded")
    column = data["moments"][0]["column"]
    with opened(data) as shown:
        says(shown, data, column)
        rows = {row[0]: row[4] for row in shown.rows("#holders") if row[3] == "communication"}
        assert rows[words_of(trace.communication)] == "no line of a program" and "model.py:61 Block.__init__" in rows["25.0 MiB"]


def test_parts_show_what_they_took_themselves(opened, scene):
    _, data = scene("sharded")
    with opened(data) as shown:
        rows = {row[0]: row for row in shown.rows("#regions")}
        assert list(rows) == ["build", "forward", "optimizer", "save"]
        most = words_of(data["regions"][1]["peak_device_bytes"])
        assert [rows[name][1] for name in rows] == ["1.00 GiB", most, "2.00 GiB", "nothing new"]
        assert [rows[name][3] for name in rows] == ["1.00 GiB", most, most, most]


LETTERS = "(() => { window.texts = []; const pen = CanvasRenderingContext2D.prototype, draw = pen.fillText;" \
          "pen.fillText = function (said, x, y) { texts.push([said, x, this.measureText(said).width, this.textAlign]); draw.apply(this, arguments) } })()"


@pytest.mark.parametrize("name", ["out_of_memory", "sharded"])  # the card's limit in the picture, and above it
@pytest.mark.parametrize("width", [360, 400, 1280])
def test_labels_of_the_picture_are_whole(opened, scene, name, width):
    data = scene(name)[1]
    with opened(data, width=width, height=700) as shown:
        shown.tab.evaluate(LETTERS)
        shown.tab.locator("#chart").press("ArrowLeft")
        shown.tab.wait_for_function("() => texts.some(([said]) => said === 'event')")  # the whole picture
        wide = shown.tab.evaluate("document.getElementById('chart').clientWidth")
        texts = shown.tab.evaluate("texts")
    assert any(words_of(data["card"]["total_bytes"]) in said for said, *_ in texts), texts
    for said, x, length, align in texts:
        begin = x - {"left": 0, "right": length, "center": length / 2}[align]
        assert begin >= 0 and begin + length <= wide, (said, begin, length, wide)


@pytest.mark.parametrize("name", ["out_of_memory", "hostile", "sharded"])
def test_narrow_pages_do_not_overflow(opened, scene, name):
    with opened(scene(name)[1], width=360, height=700) as shown:
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_everything_has_a_name(opened, scene):
    """For a screen reader: controls, pictures and regions are labelled, headings do not skip a level."""
    data = scenes.with_comparison(copy.deepcopy(scene("out_of_memory")[1]))
    with opened(data) as shown:
        shown.check_names()
        shown.tab.keyboard.press("Tab")
        assert shown.tab.evaluate("document.activeElement.textContent") == "Skip to the result"
        reached = set()
        for _ in range(60):
            shown.tab.keyboard.press("Tab")
            reached.add(shown.tab.evaluate("document.activeElement.id || document.activeElement.className"))
        assert {"chart", "map"} <= reached


def test_findings_lead_to_their_moment(opened, scene):
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        shown.tab.click("#findings button")
        shown.wait_for(data["findings"][0]["column"])


CLICK = """([x, y]) => new Promise((done) => {
    const chart = document.getElementById('chart'), before = document.documentElement.dataset.column;
    const at = { clientX: x, clientY: y, button: 0, pointerId: 1, bubbles: true };
    chart.setPointerCapture = () => {};
    const start = performance.now();
    new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))))
        .observe(document.documentElement, { attributeFilter: ['data-column'] });
    chart.dispatchEvent(new PointerEvent('pointerdown', at));
    chart.dispatchEvent(new PointerEvent('pointerup', at));
})"""


def test_a_million_events(opened, scene, build):
    """Small, quick to open, and a click is answered within a second with all that was alive."""
    trace, data = scene("busiest")
    assert trace.state >= 1_000_000 and list(page_rules.complaints(data)) == []
    path = build(data)
    assert path.stat().st_size < 5_000_000
    start = time.monotonic()
    with opened(path) as shown:
        shown.wait_for(data["moments"][0]["column"])
        assert time.monotonic() - start < 5
        for share in 0.3, 0.6, 0.9:
            column = int(share * len(data["timeline"]["at"]))
            milliseconds = shown.tab.evaluate(CLICK, list(point_of(shown, data, column)))
            print(f"a click took {milliseconds:.0f} ms")
            assert milliseconds < 1000
            assert abs(shown.column - column) < 30
            says(shown, data, shown.column)
        joined = shown.tab.locator("#flame .box.joined[aria-level='3']").first
        count = int(joined.get_attribute("aria-label").split()[0])
        joined.click()
        assert shown.tab.locator("#flame .box[aria-level='4']").count() > count / 10


def test_what_was_assumed_and_what_was_held_back(opened, scene):
    """Each row of the object is a row of the page; without any of them there is no such part."""
    _, data = scene("out_of_memory")
    with opened(data) as shown:
        rows = {name: shown.tab.eval_on_selector_all("#%s tbody tr" % name, "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
                for name in ("assumptions", "network")}  # fmt: skip
        assert [row[1:] for row in rows["assumptions"]] == [
            ["count", "300 of 1200", "90.0 MiB"], ["number", "0.5", "none"], ["truth", "true, then false", "unknown"]]
        assert [[row[0], row[2]] for row in rows["network"]] == [["wandb", "3"], ["api.example.org", "1"]]
        text = shown.tab.text_content("#network")
        assert "weights.example.org" in text and "bypass the C library were not held back" in text
    nothing = {"mode": "closed", "held_back": [], "raw_calls": True, "download_refused": None}
    with opened({**data, "assumptions": [], "network": nothing}) as shown:
        assert not shown.tab.is_visible("#assumptions") and not shown.tab.is_visible("#network")
