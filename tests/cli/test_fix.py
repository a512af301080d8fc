# SPDX-License-Identifier: Apache-2.0
"""tonnage fix and tonnage fit on a fake program, without PyTorch: the search, the list, the files, what is left behind."""

import json
import os
import re
import shlex
import signal
import sys

import page_rules
import pytest
from command import FAKES, HERE, wait_until

MIB = 1 << 20
CARD = 1024  # MiB, of which the context takes some


def row(name, results="same", values=(None,)):
    return {"id": name, "title": "title of %s" % name, "results": results, "values": list(values)}


def words(wish, *more):
    return [*FAKES, str(HERE / "fake_program.py"), json.dumps(wish), *more]


@pytest.fixture
def fix(tonnage, schema):
    """fix(wish, *options) -> (finished command, validated document)"""

    def run(wish, *options, command="fix", more=(), **start):
        out = tonnage.cwd / "out.json"
        out.unlink(missing_ok=True)
        done = tonnage(command, "--gpu", "rtx3060", "--memory", "%dMiB" % CARD, "--json", out, *options, "--",
                       *words(wish, *more), timeout=120, **start)  # fmt: skip
        document = json.loads(out.read_text()) if out.exists() else None
        if document is not None:
            schema(document["schema"].partition("/")[0].partition(".")[2], document)
        assert tonnage.left_behind() == [] and tonnage.processes() == [], done.stderr
        return done, document

    return run


def by_id(document):
    return {change["id"]: change for change in document["changes"]}


def test_what_fits_is_first_and_its_saving_is_to_the_byte(fix):
    wish = {"base": 1500, "saves": {"zero_grad": 800, "foreach": 100},
            "possible": [row("foreach", "same_up_to_rounding"), row("zero_grad")]}  # fmt: skip
    done, document = fix(wish, "--jobs", "1")  # else the other may have been tried beside it
    assert done.returncode == 0, done.stderr
    first = document["changes"][0]
    assert first["id"] == "zero_grad" and first["fits"] and first["enough"] and first["saved_bytes"] == 800 * MIB
    assert first["margin_bytes"] == CARD * MIB - first["peak_device_bytes"] > 0
    assert first["how"] == "Do zero_grad." and first["step_time_ratio"] is None is first["step_time_range"]
    assert by_id(document)["foreach"]["outcome"] == "not_enough"
    assert by_id(document)["foreach"]["saved_bytes"] is None  # that it is not enough the card has said, and something else is
    assert document["unchanged"]["missing_bytes"] == 1500 * MIB + (document["gpu"]["context_bytes"]) - CARD * MIB
    assert "title of zero_grad" in done.stderr and "Do zero_grad." in done.stderr
    assert 'tonnage fix --apply "zero_grad" --gpu rtx3060 --memory 1GiB' in " ".join(done.stderr.split())
    assert "words of the program" not in done.stderr


def test_what_keeps_the_results_is_marked_and_stands_before_what_saves_more(fix):
    wish = {"base": 1500, "saves": {"autocast": 1200, "checkpoint": 800},
            "possible": [row("autocast", "different_training"), row("checkpoint", "same_up_to_rounding")],
            "results": {"autocast": "different_training", "checkpoint": "same_up_to_rounding"}}  # fmt: skip
    done, document = fix(wish)
    assert [change["id"] for change in document["changes"]] == ["checkpoint", "autocast"]
    assert [change["enough"] for change in document["changes"]] == [True, False]
    assert [change["results"] for change in document["changes"]] == ["same_up_to_rounding", "different_training"]


def test_a_promise_that_a_trial_weakens_is_weakened_in_the_list(fix):
    wish = {"base": 1500, "saves": {"accumulate": 800}, "results": {"accumulate": "different_training"},
            "possible": [row("accumulate", "same_up_to_rounding", ["2"])]}  # fmt: skip
    done, document = fix(wish)
    assert document["changes"][0]["results"] == "different_training" and not document["changes"][0]["enough"]


def test_the_fewest_pieces_of_a_batch_that_are_enough_come_first(fix):
    wish = {"base": 1500, "batch": 64, "saves": {"accumulate": 800},
            "possible": [row("accumulate", "same_up_to_rounding", ["2", "4"])]}  # fmt: skip
    done, document = fix(wish)
    assert document["changes"][0]["id"] == "accumulate=2" and document["changes"][0]["enough"]


def test_two_that_are_too_little_are_tried_together(fix):
    wish = {"base": 1500, "saves": {"zero_grad": 300, "checkpoint": 350},
            "possible": [row("zero_grad"), row("checkpoint", values=["1"])]}  # fmt: skip
    done, document = fix(wish)
    assert done.returncode == 0, done.stderr
    first = document["changes"][0]
    assert sorted(first["combination"]) == ["checkpoint=1", "zero_grad"] and first["saved_bytes"] == 650 * MIB
    assert first["how"].count("\n") == 1 and first["enough"]


def test_the_time_of_a_step_is_told_and_orders_the_list(fix):
    """checkpoint usually costs more than accumulate; here it is the other way round, and the list says so."""
    wish = {"base": 1500, "batch": 64, "saves": {"accumulate": 800, "checkpoint": 800},
            "times": {"accumulate": 2, "checkpoint": 1.25},
            "possible": [row("accumulate", values=["2"]), row("checkpoint", values=["1"])]}  # fmt: skip
    done, document = fix(wish)
    assert [change["id"] for change in document["changes"]] == ["checkpoint=1", "accumulate=2"]
    assert [round(change["step_time_ratio"], 2) for change in document["changes"]] == [1.25, 2]
    for change in document["changes"]:
        low, high = change["step_time_range"]
        assert low <= change["step_time_ratio"] <= high
    assert "1.2x the time (1.2-1.3)" in done.stderr and "2.0x the time (1.9-2.1)" in done.stderr


def test_time_is_compared_for_the_same_samples(fix):
    """Half the batch in half the time is as fast."""
    wish = {"base": 100, "sample": 20, "batch": 64, "times": {"batch": 0.5}, "possible": [row("batch", "different_training")]}
    done, document = fix(wish)
    change = by_id(document)["batch=32"]
    assert change["fits"] and round(change["step_time_ratio"], 2) == 1


def test_three_are_tried_when_no_two_are_enough(fix):
    wish = {"base": 2000, "saves": {"zero_grad": 400, "checkpoint": 400, "foreach": 400},
            "possible": [row("zero_grad"), row("checkpoint", values=["1"]), row("foreach")]}  # fmt: skip
    done, document = fix(wish)
    assert done.returncode == 0 and len(document["changes"][0]["combination"]) == 3, done.stderr


def test_what_breaks_the_program_or_does_not_apply_is_no_saving(fix):
    wish = {"base": 1500, "saves": {"zero_grad": 800, "no_grad": 800}, "breaks": ["zero_grad"], "refuses": ["no_grad"],
            "possible": [row("zero_grad"), row("no_grad"), row("detach")]}  # fmt: skip
    done, document = fix(wish)
    assert done.returncode == 10
    outcomes = {name: (change["outcome"], change["fits"]) for name, change in by_id(document).items()}
    assert outcomes == {"zero_grad": ("broke", False), "no_grad": ("not_applied", False), "detach": ("no_help", False)}
    assert by_id(document)["zero_grad"]["why_not"] == "ValueError: it broke"
    assert by_id(document)["no_grad"]["why_not"] == "nothing to act on"
    assert "No change that was tried makes it fit" in done.stderr
    for line in ("Broke the program: zero_grad", "Not applicable: no_grad", "No help: detach"):
        assert line in done.stderr


def test_a_change_that_acts_on_nothing_saves_nothing(fix):
    """Where tensors ask for less all the same, the program did not do the same twice: that is said, and it is no saving."""
    wish = {"base": 1500, "saves": {"zero_grad": 800}, "inert": ["zero_grad", "detach"],
            "possible": [row("zero_grad"), row("detach")]}  # fmt: skip
    done, document = fix(wish)
    assert done.returncode == 10, done.stderr
    outcomes = {name: (change["outcome"], change["fits"]) for name, change in by_id(document).items()}
    assert outcomes == {"zero_grad": ("unknown", False), "detach": ("no_help", False)}
    assert by_id(document)["detach"]["saved_bytes"] == 0
    assert "it changed nothing" in by_id(document)["zero_grad"]["why_not"]
    assert "does not behave the same twice" in " ".join(done.stderr.split())


OWN = {**row("option_accumulate", "same_up_to_rounding", ["--batch-size 32 --accumulate 2", "--batch-size 16 --accumulate 4"]),
       "pieces": [2, 4]}  # fmt: skip
UPDATES = {"updates": 8, "samples": 64, "tokens": None, "backward": 1, "loss_share": 1.0, "learning_rates": [0.1, 0.05],
           "passes": [[[1, 1], [1, 1]], [[1, 1], [1, 1], [1, 1]]]}  # fmt: skip


def test_the_programs_own_options_come_first_as_a_line_to_copy(fix):
    """Before what is quicker and has to be written into the program; the line, run as it stands, takes what was shown."""
    wish = {"base": 100, "sample": 20, "batch": 64, "saves": {"zero_grad": 800},
            "possible": [row("zero_grad"), OWN]}  # fmt: skip
    done, document = fix(wish, more=["--name", "x", "--batch-size", "64"])
    first = document["changes"][0]
    assert first["id"] == "option_accumulate=--batch-size 32 --accumulate 2" and first["enough"]
    assert first["command"].endswith(" --name x --batch-size 32 --accumulate 2"), first["command"]
    assert first["saved_bytes"] == 32 * 20 * MIB and by_id(document)["zero_grad"]["command"] is None
    assert first["command"][-50:] in " ".join(done.stderr.split())


def test_a_batch_is_cut_no_more_than_it_must_be(fix):
    """Also where the card has room for what is needed and yet it does not fit, so that nothing tells how much is missing."""
    wish = {"base": 100, "sample": 20, "batch": 64,
            "possible": [{**OWN, "values": ["--batch-size %d --accumulate %d" % (64 // k, k) for k in (2, 4, 8)],
                          "pieces": [2, 4, 8]}]}  # fmt: skip
    document = fix(wish, more=["--name", "x", "--batch-size", "64"])[1]
    assert document["changes"][0]["id"] == "option_accumulate=--batch-size 32 --accumulate 2"


@pytest.mark.parametrize("words, given, command", [
    ("loader.batch_size=4", ["loader.batch_size=8", "+name=x"], "loader.batch_size=4 +name=x"),
    ("loader.batch_size=4", ["+name=x"], "+name=x loader.batch_size=4"),
    ("BATCH 4 --accumulate 2", ["--opts", "BATCH", "8"], "--opts BATCH 4 --accumulate 2"),
    ("--amp env:LENGTH=512", [], "--amp"),
    ("--batch_size=4", ["--batch_size=8"], "--batch_size=4"),
])
def test_how_options_are_written(fix, words, given, command):
    """key=value in the place of the key; a variable of the environment before the command; the trial gets the words, too."""
    wish = {"base": 1500, "saves": {"option_batch": 800}, "possible": [{**row("option_batch", values=[words]), "pieces": [2]}]}
    first = fix(wish, more=["--name", "x", *given])[1]["changes"][0]
    assert first["fits"] and first["command"].endswith(" " + command), first["command"]
    assert first["command"].startswith("env LENGTH=512 " if "env:" in words else sys.executable)


def test_a_value_in_a_file_is_a_patch_and_no_command(fix):
    words = "file:conf.yaml:train.batch_size=4"
    wish = {"base": 1500, "saves": {"option_batch": 800}, "possible": [{**row("option_batch", values=[words]), "pieces": [2]}]}
    done, document = fix(wish, more=["--name", "x", "conf.yaml"])
    first = document["changes"][0]
    assert first["fits"] and first["command"] is None and first["patch"] and words in first["id"]
    assert "tonnage fix --apply" in done.stderr


def test_an_option_is_not_offered_where_it_would_not_arrive(fix):
    """A script that starts the program: only what stands in the environment or in a file reaches it."""
    wish = {"base": 1500, "saves": {"option_batch": 800}, "command_line": ["other"],
            "possible": [{**row("option_batch", values=["--batch 4", "env:BATCH=2"]), "pieces": [2, 4]}]}  # fmt: skip
    tried = [change["id"] for change in fix(wish)[1]["changes"]]
    assert tried == ["option_batch=env:BATCH=2"]


@pytest.mark.parametrize("other, why", [
    ({"samples": 32, "elements": 32 * 22}, "an update uses 32 samples, 64 when unchanged"),
    ({"samples": 128, "elements": 64 * 22, "samples_of_call": 64}, None),  # sequences that have time first: the batch is the other dimension
    ({"samples": 128, "elements": 64 * 22, "samples_of_call": 128}, "an update uses 128 samples, 64 when unchanged"),
    ({"samples": 128, "elements": 128 * 22, "samples_of_call": 64}, "an update uses 128 samples, 64 when unchanged"),
    ({"passes": [[[1, 1]], [[2, 1], [2, 1]]]}, "the backward passes of an update and of its gradients are 1 and 2, 1 and 1 when unchanged"),
    ({"passes": [[[1, 1], [1, 2]], []]}, "there are 2 backward passes from update to update, 1 when unchanged"),
    ({"loss_share": 2.0}, "the losses of an update are weighted 2 times, 1 times when unchanged"),
    ({"learning_rates": [0.1, 0.1]}, "the learning rate of update 2 is 0.1, 0.05 when unchanged"),
    ({"products": [[8, 64, 8]]}, "the loss compares the samples of a batch with each other (a product of 64 x 64)"),
    ({"products": [[64, 8, 64]]}, "the loss compares the samples of a batch with each other (a product of 64 x 64)"),
    ({"products": [[8, 64, 64]]}, None),
    ({"products": [[64, 64, 64], [8, 64, 8]]}, None),
    ({}, None),
])
def test_a_change_is_held_to_the_updates_that_it_promises(fix, other, why):
    """What made other updates is no longer offered as the same, and says why."""
    before = {**UPDATES, "products": [[64, 64, 64]], "elements": 64 * 22, "samples_of_call": 64}
    wish = {"base": 1500, "saves": {"zero_grad": 800}, "pace": {"": before, "zero_grad": {**before, **other}},
            "possible": [row("zero_grad")]}  # fmt: skip
    first = fix(wish)[1]["changes"][0]
    assert first["fits"] and first["enough"] == (why is None)
    assert first["results"] == ("same" if why is None else "different_training")
    assert (why or "Do zero_grad.") in first["how"]


def test_the_programs_own_batch_comes_next_where_pieces_are_another_training(fix):
    """Also when time is up by then, and before what may keep the results."""
    wish = {"base": 1500, "saves": {"accumulate": 800, "option_batch": 800, "foreach": 50}, "sleep": 1,
            "pace": {"": UPDATES, "accumulate": {**UPDATES, "samples": 32}},
            "possible": [row("accumulate", "same_up_to_rounding", ["2"]), row("foreach", "same_up_to_rounding"),
                         {**row("option_batch", "different_training", ["--batch-size 32"]), "pieces": [2]}]}  # fmt: skip
    _, document = fix(wish, "--seconds", "1", "--jobs", "1", more=["--name", "x", "--batch-size", "64"])
    found = {change["id"].partition("=")[0]: change for change in document["changes"]}
    assert found["accumulate"]["results"] == "different_training"
    assert found["option_batch"]["fits"] and found["option_batch"]["trial"] == found["accumulate"]["trial"] + 1, document["changes"]


@pytest.mark.parametrize("second, outcome, results, words", [
    ({}, "fits", "same", "Do zero_grad."),
    ({"pace": {"": UPDATES, "zero_grad": UPDATES}}, "fits", "same", "Do zero_grad."),
    ({"pace": {"": UPDATES, "zero_grad": {**UPDATES, "samples": 16}}}, "fits", "different_training",
     "on rank 1 an update uses 16 samples, 64 when unchanged"),
    ({"pace": {"": {**UPDATES, "samples": 16}, "zero_grad": {**UPDATES, "samples": 16}}}, "fits", "same", "Do zero_grad."),
    ({"row": {"results": "different_training"}}, "fits", "different_training", "Do zero_grad."),
    ({"row": {"applied": False, "found_nothing": True}}, "fits", "same", "Do zero_grad."),
    ({"row": {"applied": False, "why_not": "failed: KeyError: 'x'"}}, "not_applied", "same", "on rank 1: failed: KeyError: 'x'"),
])  # fmt: skip
def test_every_rank_keeps_what_a_change_promises(fix, second, outcome, results, words):
    """Each rank is held to its own updates, the weakest promise counts, and a change that one rank could not take is none."""
    wish = {"base": 1500, "saves": {"zero_grad": 800}, "pace": {"": UPDATES, "zero_grad": UPDATES}, "second": second,
            "possible": [row("zero_grad")]}  # fmt: skip
    first = fix(wish)[1]["changes"][0]
    assert (first["outcome"], first["results"]) == (outcome, results), first
    assert words in (first["how"] if outcome == "fits" else first["why_not"]), first


@pytest.mark.parametrize("patch, kept", [(None, True), ("--- c\n+++ d\n@@ -1 +1 @@\n-other\n+b\n", False)])
def test_a_patch_on_which_ranks_do_not_agree_is_none(fix, patch, kept):
    """Each rank saw a part of the places: what one of them would write is not the whole change."""
    wish = {"base": 1500, "saves": {"zero_grad": 800}, "second": {"patch": patch}, "possible": [row("zero_grad")]}
    first = fix(wish)[1]["changes"][0]
    assert first["fits"] and (first["patch"] is not None) == kept, first


def test_the_title_counts_the_cards(fix):
    done, document = fix({"base": 1500, "saves": {"zero_grad": 800}, "possible": [row("zero_grad")]}, "--gpus", "2")
    shown = " ".join(done.stderr.split())
    assert "Does not fit on 2 x NVIDIA GeForce RTX 3060 (1.00 GiB each): it needs" in shown and "on the fullest" in shown


def test_an_error_of_the_programs_own_is_nobody_elses(fix):
    """What it ends with unchanged, once memory is enough, no change has brought about; another exception one has."""
    wish = {"base": 1500, "saves": {"zero_grad": 800, "no_grad": 800}, "own": True, "breaks": ["no_grad"],
            "possible": [row("zero_grad"), row("no_grad")]}  # fmt: skip
    done, document = fix(wish)
    assert done.returncode == 10 and document["unchanged"]["own_error"] == "IndexError: its own"
    outcomes = {name: change["outcome"] for name, change in by_id(document).items()}
    assert outcomes == {"zero_grad": "own_error", "no_grad": "broke"}
    assert "With enough memory, the unchanged program ends by itself: IndexError: its own" in " ".join(done.stderr.split())
    assert "Broke the program: no_grad" in done.stderr and "Broke the program: zero_grad" not in done.stderr


def page_of(tonnage, schema, name):
    """The data of a page, which keeps the format of every page."""
    data = page_rules.data_of((tonnage.cwd / name).read_text())
    schema("page", data)
    assert list(page_rules.complaints(data)) == []
    return data


def test_the_page_shows_everything_that_was_tried(fix, tonnage, schema):
    odd = dict(row("zero_grad"), title="title of <b>zero_grad</b> & more")
    wish = {"base": 1500, "saves": {"zero_grad": 800, "foreach": 100}, "breaks": ["no_grad"],
            "possible": [row("foreach", "same_up_to_rounding"), odd, row("no_grad")]}  # fmt: skip
    done, document = fix(wish, "--html", "list.html")
    assert done.returncode == 0, done.stderr
    data = page_of(tonnage, schema, "list.html")
    assert data["headline"]["verdict"] == "out_of_memory" and data["headline"]["title"] in done.stderr
    assert data["headline"]["do"][0].startswith('tonnage fix --apply "zero_grad"') and "".join(data["headline"]["do"][0].split()) in "".join(done.stderr.split())
    assert data["headline"]["do"][1].startswith("or the smallest card that fits it unchanged")
    assert "%d trials" % document["trials"] in dict(data["about"])["search"]
    shown = {change["id"]: change for change in data["fix"]["changes"]}
    assert list(shown) == [change["id"] for change in document["changes"]]
    for name, change in by_id(document).items():
        for key in ("title", "fits", "enough", "margin_bytes", "how", "patch", "why_not"):
            assert shown[name][key] == change[key], (name, key)
    assert shown["zero_grad"]["saved_bytes"] == 800 * MIB and shown["zero_grad"]["enough"]
    assert shown["zero_grad"]["title"] == "title of <b>zero_grad</b> & more"
    assert (shown["foreach"]["outcome"], shown["foreach"]["saved_bytes"]) == ("not enough", None)  # something else is


def test_the_page_says_what_broke_the_program(fix, tonnage, schema):
    wish = {"base": 1500, "saves": {"foreach": 100}, "breaks": ["no_grad"], "possible": [row("foreach", "same_up_to_rounding"), row("no_grad")]}
    done, document = fix(wish, "--html", "list.html")
    shown = {change["id"]: change for change in page_of(tonnage, schema, "list.html")["fix"]["changes"]}
    assert (shown["foreach"]["outcome"], shown["foreach"]["saved_bytes"]) == ("not enough", 100 * MIB)
    assert (shown["no_grad"]["outcome"], shown["no_grad"]["saved_bytes"]) == ("broke the program", None)


def test_the_page_of_a_batch_shows_the_curve(fix, tonnage, schema):
    done, document = fix({"base": 100, "sample": 14, "batch": 256}, "--html", "curve.html", command="fit")
    assert done.returncode == 0, done.stderr
    data = page_of(tonnage, schema, "curve.html")
    (card,), (told,) = data["fit"]["cards"], document["cards"]
    assert data["headline"]["title"].startswith("Batch %d fits" % told["largest_batch"])
    assert len(card["curve"]) == len(told["curve"]) >= 2
    for point, seen in zip(card["curve"], told["curve"]):
        assert {key: point[key] for key in ("batch", "peak_device_bytes", "tried")} == {
            key: seen[key] for key in ("batch", "peak_device_bytes", "tried")}
        assert point["fits"] == (seen["verdict"] == "fits")


@pytest.mark.parametrize("vary", [False, True])
def test_a_batch_that_the_program_gives_up_does_not_fit(fix, vary):
    """It handles the out-of-memory, says so and ends with status 0, as benchmarks and sweeps do."""
    wish = {"base": 100, "sample": 14, "batch": 4}
    options, more = (["--vary", "batch=1..64"], ["{batch}"]) if vary else ([], [])
    answers = []
    for gives_up in (False, True):
        (card,) = fix({**wish, "gives_up": gives_up}, *options, command="fit", more=more)[1]["cards"]
        if vary:
            answers.append(card["rows"])
        else:  # two run at a time: which others are tried, timing decides
            seen = {point["batch"]: point["verdict"] for point in card["curve"]}
            answers.append((card["largest_batch"], seen[card["largest_batch"]], seen[card["largest_batch"] + 1]))
    assert answers[0] == answers[1] and (vary or answers[0][1:] == ("fits", "out_of_memory"))


def test_every_command_writes_the_same_page(fix, tonnage):
    """But for their data: one style, one script, one policy."""
    tonnage.fake("--html", "run.html")
    fix({"base": 1500, "saves": {"zero_grad": 800}, "possible": [row("zero_grad")]}, "--html", "fix.html")
    fix({"base": 100, "sample": 14, "batch": 256}, "--html", "fit.html", command="fit")
    run, *others = (page_rules.parts_of((tonnage.cwd / (name + ".html")).read_text()) for name in ("run", "fix", "fit"))
    for before, written, after in others:
        assert (before, after) == (run[0], run[2]) and "<" not in written


def test_a_page_that_cannot_be_written_is_said_before_the_first_trial(tonnage):
    done = tonnage("fix", "--html", "/nowhere/list.html", "--", *words({}))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "/nowhere/list.html" in done.stderr


def test_other_processes_are_the_first_cure_whatever_it_saves(fix):
    wish = {"base": 600, "saves": {"zero_grad": 590}, "possible": [row("zero_grad")]}
    done, document = fix(wish, "--other", "500MiB")
    assert [change["id"] for change in document["changes"]] == ["end_other_processes", "zero_grad"]
    assert document["changes"][0]["remedy"] and document["changes"][0]["saved_bytes"] == 500 * MIB
    assert document["changes"][0]["patch"] is None


def test_what_is_wrong_and_no_change_cures_is_said_before_the_list(fix):
    """Want of room is cured by the list itself."""
    wish = {"base": 1500, "saves": {"zero_grad": 800}, "possible": [row("zero_grad")]}
    done, document = fix(wish)
    assert document["unchanged"]["do_first"] is None and "First" not in done.stderr
    own_limit = {"free_bytes": 1 << 40, "message": "GPU 0 has 1.00 TiB free. 900.00 MiB allowed; Of the allocated memory"}
    done, document = fix({**wish, "base": 850, "oom": own_limit}, "--other", "200MiB")
    assert document["unchanged"]["do_first"].startswith("raise the limit that the program has set itself")
    assert done.stderr.index("  First ") < done.stderr.index("title of zero_grad")


def test_the_margin_must_stay_free(fix):
    wish = {"base": 1500, "saves": {"zero_grad": 650, "checkpoint": 900},
            "possible": [row("zero_grad"), row("checkpoint", values=["1"])]}  # fmt: skip
    assert by_id(fix(wish)[1])["zero_grad"]["fits"]
    document = fix(wish, "--margin", "10%")[1]
    assert not by_id(document)["zero_grad"]["fits"] and by_id(document)["checkpoint=1"]["fits"]
    assert by_id(document)["checkpoint=1"]["margin_bytes"] >= document["margin_wanted_bytes"] == CARD * MIB // 10


def test_a_program_that_fits_needs_nothing(fix):
    done, document = fix({"base": 100, "possible": [row("zero_grad")]})
    assert done.returncode == 0 and document["verdict"] == "fits" and document["changes"] == []
    assert "as it is" in done.stderr


def test_a_program_that_fails_is_its_own_failure(fix):
    done, document = fix({"base": 100, "fails": 7})
    assert done.returncode == 7 and document["verdict"] == "failed"
    assert "words of the program" in done.stderr


def test_the_patch_and_the_change_are_applied_by_number_and_by_name(fix, tonnage):
    wish = {"base": 1500, "saves": {"zero_grad": 800}, "possible": [row("zero_grad")]}
    patch = tonnage.cwd / "p.diff"
    done, document = fix(wish, "--patch", patch, "--apply", "1")
    assert done.returncode == 0 and patch.read_text() == document["changes"][0]["patch"]
    assert "Fits on" in done.stderr and "running with zero_grad" in done.stderr
    done, document = fix(wish, "--apply", "zero_grad", "--quiet")
    assert done.returncode == 0 and document is None and "words of the program" in done.stderr


def test_a_change_by_name_writes_its_patch_or_says_why_not(fix, tonnage):
    wish = {"base": 1500, "saves": {"zero_grad": 800}, "possible": [row("zero_grad")]}
    _, document = fix(wish, "--patch", tonnage.cwd / "listed.diff")
    patch = tonnage.cwd / "named.diff"
    done, _ = fix(wish, "--apply", "zero_grad", "--patch", patch)
    assert done.returncode == 0 and patch.read_text() == document["changes"][0]["patch"]
    nothing = tonnage.cwd / "none.diff"
    done, _ = fix({**wish, "refuses": ["checkpoint"]}, "--apply", "checkpoint=1", "--patch", nothing)
    assert "checkpoint=1 has no patch" in done.stderr and not nothing.exists()


def test_the_patch_is_that_of_the_first_change_or_of_none(fix, tonnage):
    """Not of another one further down, which may be another training."""
    other = {"patch": "--- c\n+++ d\n@@ -1 +1 @@\n-other\n+b\n"}  # ranks do not agree: it has none
    path = tonnage.cwd / "first.diff"
    done, _ = fix({"base": 1500, "saves": {"zero_grad": 800}, "second": other, "possible": [row("zero_grad")]}, "--patch", path)
    assert "zero_grad has no patch: " in done.stderr and not path.exists()


def test_a_change_that_does_not_apply_proves_nothing(fix):
    """Also where nobody could apply it, and the program fits as it is; with --quiet, too."""
    done, _ = fix({"base": 100, "refuses": ["checkpoint"]}, "--apply", "checkpoint=1", "--quiet")
    assert done.returncode == 2 and "tonnage: checkpoint was not applied: nothing to act on" in done.stderr
    done, _ = fix({"base": 100, "idle": ["checkpoint"]}, "--apply", "checkpoint=1,zero_grad")
    assert done.returncode == 12 and "checkpoint was not applied" not in done.stderr
    done, _ = fix({"base": 1500, "refuses": ["checkpoint"]}, "--apply", "checkpoint=1")
    assert done.returncode == 10 and "checkpoint was not applied" in done.stderr


def test_commands_that_follow_and_requests_are_checked(tonnage):
    for words, said in (
        (["--then", " "], "--then needs a command"),
        (["--then", "/nowhere/python x.py"], "/nowhere/python"),
        (["--repeat", "3"], "--repeat goes with --request"),
        (["--request", "x.http", "--then", "true"], "--then does not go with --request"),
        (["--request", "x.http", "--steps", "3"], "--steps does not go with --request"),
        (["--results", "there", "--then", "true"], "leave --then and --request out"),
    ):
        done = tonnage("fix", "--gpu", "rtx3060", *words, "--", "true")
        assert done.returncode in (2, 127) and said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_of_commands_that_follow_all_have_to_fit(fix, tonnage):
    """The second does not fit as it is, and under one of two changes; the third takes less. What is saved is the second's."""
    possible = [row("zero_grad"), row("foreach", "same_up_to_rounding")]
    second, third = ({"base": base, "saves": {"zero_grad": 800, "foreach": 100}, "possible": possible} for base in (1500, 850))
    then = [option for wish in (second, third) for option in ("--then", shlex.join(map(str, words(wish))))]
    done, document = fix({"base": 300}, *then)
    assert done.returncode == 0, done.stderr
    assert by_id(document)["zero_grad"]["saved_bytes"] == 800 * MIB and by_id(document)["foreach"]["outcome"] == "not_enough"
    assert json.dumps(second) in document["unchanged"]["command"].replace("\\", "")
    assert "Where" in done.stderr and done.stderr.count("--then") == 2
    done, document = fix({"base": 300}, "--then", shlex.join(map(str, words(third))))
    assert done.returncode == 0 and document["verdict"] == "fits" and document["changes"] == []


def test_trials_do_not_meet(fix, tonnage):
    """Each has its own port and TMPDIR, and the same seed of hashes."""
    program = "import os; open(os.environ['TMPDIR'] + '/x', 'x'); assert os.environ['PYTHONHASHSEED'] == '0'; print(1 / 0)"
    done = tonnage("fix", "--gpu", "rtx3060", "--", sys.executable, "-I", "-c", program + "; int(os.environ['MASTER_PORT'])")
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_search_tells_what_it_knows_and_leaves_nothing(tonnage, sent):
    wish = {"base": 1500, "sleep": 60, "possible": []}
    process = tonnage.start("fix", "--gpu", "rtx3060", "--memory", "1GiB", "--", *words(wish))
    assert wait_until(lambda: len(list(tonnage.temporary.glob("tonnage-*/guest/*.json"))) >= 1)
    process.send_signal(sent)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + sent and "Interrupted" in err
    assert tonnage.left_behind() == [] and tonnage.processes() == []


def test_a_killed_search_leaves_nothing(tonnage):
    wish = {"base": 1500, "sleep": 60, "possible": []}
    process = tonnage.start("fix", "--gpu", "rtx3060", "--memory", "1GiB", "--", *words(wish))
    assert wait_until(lambda: len(list(tonnage.temporary.glob("tonnage-*/guest/*.json"))) >= 1)
    process.kill()
    process.communicate(timeout=30)
    assert wait_until(lambda: tonnage.left_behind() == [] and tonnage.processes() == [])


def test_wrong_usage(tonnage):
    for options in (["--gpu", "rtx9"], ["--margin", "200%"], ["--jobs", "0"], ["--apply", "0"], ["--seconds", "x"], []):
        tail = ["--", "true"] if options else []
        done = tonnage("fix", *options, *tail)
        assert done.returncode == 2 and done.stderr.startswith("tonnage: "), (options, done.stderr)
    assert tonnage("fix", "--gpu", "rtx3060", "--", "no-such-program").returncode == 127
    assert tonnage("fit", "--batch", "0", "--", "true").returncode == 2
    assert tonnage("fit", "--help").returncode == tonnage("fix", "--help").returncode == 0


# ---- fit ----


def largest(base, sample, context, total, margin=0):
    return int((total * (1 - margin) - context - base * MIB) // (sample * MIB))


def test_fit_finds_the_largest_batch_through_the_loader(fix):
    wish = {"base": 100, "sample": 14, "batch": 256}
    done, document = fix(wish, command="fit")
    card = document["cards"][0]
    context = card["peak_device_bytes"] - card["peak_reserved_bytes"]
    assert done.returncode == 0 and card["largest_batch"] == largest(100, 14, context, CARD * MIB)
    assert card["accumulation"]["micro_batch"] * card["accumulation"]["steps"] == 256 == document["batch"]
    assert card["accumulation"]["micro_batch"] <= card["largest_batch"]
    tried = {point["batch"]: point["verdict"] for point in card["curve"] if point["tried"]}
    assert tried[card["largest_batch"]] == "fits" and tried[card["largest_batch"] + 1] == "out_of_memory"
    assert document["smallest_card"] is not None and document["trials"] <= 6
    # Less than a batch is left, which is less than what is not known of the context: 30 % of it, and 64 MiB of kernels.
    assert card["narrowly"] is True and card["margin_bytes"] < 14 * MIB
    assert "narrowly: the peak may be up to %.1f MiB higher" % (context * 0.3 / MIB + 64) in " ".join(done.stderr.split())


@pytest.mark.parametrize("wide, narrow", [(800, 620), (None, 620)])
def test_what_fits_narrowly_is_enough_only_where_nothing_else_is(fix, wide, narrow):
    """The room that is left must be more than what is not known of the peak: then it is the first that is enough."""
    saves = {"zero_grad": narrow, "foreach": wide or 1}
    wish = {"base": 1500, "saves": saves, "possible": [row("zero_grad"), row("foreach", "same_up_to_rounding")],
            "results": {"foreach": "same_up_to_rounding"}}  # fmt: skip
    done, document = fix(wish)
    found = by_id(document)
    assert found["zero_grad"]["fits"] and found["zero_grad"]["narrowly"] and "narrowly" in done.stderr
    assert found["foreach"]["narrowly"] is False
    assert found["foreach"]["enough"] is bool(wide) and found["zero_grad"]["enough"] is not bool(wide)


@pytest.mark.parametrize("cache, narrowly", [(250, False), (0, True)])
def test_what_fits_narrowly_is_tried_with_less_memory(fix, cache, narrowly):
    """Cache that would be given back is no want of room; what is needed is. Some 50 MiB are left, 103 are not known."""
    wish = {"base": 1500, "saves": {"zero_grad": 900 if cache else 660}, "cache": cache, "possible": [row("zero_grad")]}
    done, document = fix(wish)
    first = document["changes"][0]
    assert first["fits"] and first["trial"] == 1
    assert first["narrowly"] is narrowly and ("narrowly" in done.stderr) is narrowly
    assert (first["fits_with_less_bytes"] is None) is narrowly and ("it was seen to fit with" in done.stderr) is not narrowly


def test_fit_finds_the_largest_batch_through_an_argument(fix):
    wish = {"base": 100, "sample": 14}
    done, document = fix(wish, "--batch", "100", command="fit", more=["{batch}"])
    card = document["cards"][0]
    context = card["peak_device_bytes"] - card["peak_reserved_bytes"]
    assert card["largest_batch"] == largest(100, 14, context, CARD * MIB) and document["batch_set_by"] == "argument"
    assert card["accumulation"] == {"micro_batch": 50, "steps": 2}


def test_fit_leaves_the_margin_free(fix):
    wish = {"base": 100, "sample": 14, "batch": 64}
    document = fix(wish, "--margin", "10%", command="fit")[1]
    card = document["cards"][0]
    context = card["peak_device_bytes"] - card["peak_reserved_bytes"]
    assert card["largest_batch"] == largest(100, 14, context, CARD * MIB, 0.1)
    assert card["margin_bytes"] >= card["margin_wanted_bytes"] > 0


def test_fit_says_when_no_batch_fits(fix):
    done, document = fix({"base": 2000, "sample": 14, "batch": 4}, command="fit")
    assert done.returncode == 10 and document["cards"][0]["largest_batch"] == 0
    assert document["cards"][0]["accumulation"] is None and "No batch fits" in done.stderr


def test_fit_wants_a_batch_that_it_can_set(fix):
    done, document = fix({"base": 100}, command="fit")
    assert done.returncode == 2 and "{batch}" in done.stderr


def test_fit_for_several_cards_is_a_table(tonnage, schema):
    wish = {"base": 1000, "sample": 700, "batch": 8}
    out = tonnage.cwd / "out.json"
    done = tonnage("fit", "--gpu", "rtx3060,a100-40", "--json", out, "--", *words(wish))
    document = json.loads(out.read_text())
    schema("fit", document)
    assert [card["gpu"] for card in document["cards"]] == ["rtx3060", "a100-40"]
    batches = [card["largest_batch"] for card in document["cards"]]
    assert 0 < batches[0] < batches[1], done.stderr
    for card in document["cards"]:  # a batch may fit one and not the other
        table = done.stderr.split(f"Batches on {card['name']}")[1].split("Batches on")[0]
        assert re.search(rf"batch {card['largest_batch']} .* fits$", table, re.M), done.stderr
    assert tonnage.left_behind() == []


# ---- a program that shows nothing ----


@pytest.mark.parametrize("words", [["fix", "--json", "out.json", "--", "true"], ["fit", "--", "sh", "-c", ": {batch}"]])
def test_a_program_that_shows_nothing_is_undecided(tonnage, schema, words):
    done = tonnage(words[0], "--gpu", "rtx3060", *words[1:])
    assert done.returncode == 12 and "undecided: the program never used a GPU" in done.stderr, done.stderr
    if words[0] == "fix":
        report = json.loads((tonnage.cwd / "out.json").read_text())
        schema("fix", report)
        assert report["verdict"] == "undecided" and report["changes"] == []


def test_a_change_whose_trial_shows_nothing_never_fits(tonnage, schema):
    """Under this change the program uses no card and ends with 0, as one does that a change made to do nothing."""
    wish = {"base": 13000, "batch": 8, "possible": [row("foreach")], "saves": {"foreach": 5000}, "idle": ["foreach"]}
    command = [sys.executable, "-I", str(HERE / "fake_program.py"), json.dumps(wish)]
    done = tonnage("fix", "--gpu", "rtx3060", "--json", "out.json", "--", *command)
    report = json.loads((tonnage.cwd / "out.json").read_text())
    schema("fix", report)
    assert done.returncode == 10 and report["verdict"] == "nothing_fits", done.stderr
    (change,) = [one for one in report["changes"] if one["id"] == "foreach"]
    assert change["outcome"] == "unknown" and not change["fits"] and "never used a GPU" in change["why_not"]


@pytest.mark.parametrize("command", ["fix", "fit"])
@pytest.mark.parametrize("share, selected", [("none", 0), ("0.25", 250), ("full", 1000)])
def test_every_trial_assumes_what_was_asked_for(fix, command, share, selected):
    more = ["{batch}"] if command == "fit" else []
    done, document = fix({"base": 400, "selected": 1000, "sample": 1}, "--assume", share, command=command, more=more)
    fits = 400 + selected < CARD - 200
    if command == "fix":
        assert done.returncode == (0 if fits else 10), done.stderr
    else:
        largest = document["cards"][0]["largest_batch"]
        assert (largest or 0) == pytest.approx(max(0, CARD - 130 - 400 - selected), abs=8), done.stderr


def test_a_share_that_is_none_is_refused(tonnage):
    for command in ("fix", "fit"):
        done = tonnage(command, "--assume", "most", "--", "true")
        assert done.returncode == 2 and "--assume" in done.stderr and len(done.stderr.splitlines()) == 1


# ---- standard input ----


INPUT = {"input": "1\nno\n", "base": 1500, "saves": {"zero_grad": 300, "checkpoint": 350},
         "possible": [row("zero_grad"), row("checkpoint", values=["1"])]}  # fmt: skip


def check_input(done, document):
    assert done.returncode == 0 and document["trials"] >= 4, done.stderr
    assert {change["outcome"] for change in document["changes"]} == {"fits", "not_enough"}


@pytest.mark.parametrize("options", [[], ["--fresh"]])
def test_each_trial_reads_a_file_on_standard_input_from_where_it_stands(fix, tmp_path, options):
    """And the file stands there still: a shell's loop that reads it goes on."""
    file = tmp_path / "answers"
    file.write_text("head\n1\nno\n")
    with open(file, "rb", buffering=0) as stream:
        stream.seek(5)
        check_input(*fix(INPUT, *options, stdin=stream))
        assert stream.read() == b"1\nno\n"


@pytest.mark.parametrize("text", ["1\nno\n", "a line of many\n" * 4000])
def test_each_trial_reads_what_was_piped_in(fix, text):
    """As much as a pipe holds; and the pipe holds it still."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as stream:
        os.write(writing, text.encode())
        os.close(writing)
        check_input(*fix({**INPUT, "input": text}, stdin=stream))
        assert b"".join(iter(lambda: stream.read(1 << 16), b"")) == text.encode()


def test_a_pipe_that_nobody_closes_is_no_input(fix):
    """A command of a service often has one; what stands in it may be half of what comes."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as stream, open(writing, "wb", buffering=0) as other:
        check_input(*fix({**INPUT, "input": ""}, stdin=stream))
        other.write(b"1\n")
        check_input(*fix({**INPUT, "input": ""}, stdin=stream))
        assert stream.read(10) == b"1\n"


def test_results_that_are_kept_are_of_a_program_without_input(fix, tmp_path):
    file = tmp_path / "answers"
    file.write_text("1\n")
    with open(file) as stream:
        check_input(*fix({**INPUT, "input": ""}, "--results", tmp_path / "results", stdin=stream))
