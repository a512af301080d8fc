# SPDX-License-Identifier: Apache-2.0
"""Runs of several processes of which one was ended by an out-of-memory, and the run ended well all the same. Guests are
fakes; a shell runs them one after the other."""

import json
import shlex
import sys

import pytest
from command import HERE, fake_words

GIB = 1 << 30
PLACE = {"file": "/x/model.py", "line": 88, "function": "forward"}
OOM = {
    "device": 0, "requested_bytes": 3 * GIB, "free_bytes": GIB, "allocated_bytes": 9, "reserved_bytes": 9,
    "largest_free_block_bytes": None, "step": 1, "phase": "forward", "at": PLACE, "backward": False, "stack": [PLACE],
    "message": "CUDA out of memory.", "computed": False, "workspace": False,
}  # fmt: skip


def devices(reserved):
    row = {"index": 0, "allocated_peak": reserved, "reserved_peak": reserved, "requested_peak": reserved}
    return [{**row, "allocated": 1, "reserved": 1, "retries": 0, "ooms": 0}]


def big(line=88, reserved=9 * GIB, **fields):
    """A process that an out-of-memory ends."""
    oom = {**OOM, "at": {**PLACE, "line": line}}
    steps = {"seen": 0, "unit": None, "stopped": None, "input_shapes": 1, "batch_size": None, "not_seen": []}
    document = {"argv": ["/x/big.py"], "devices": devices(reserved), "steps": steps, "out_of_memory": oom,
                "out_of_memory_ended_process": True, **fields}  # fmt: skip
    return shlex.join(fake_words(document=document, exit=1))


def small(seen=3, reserved=GIB, exit=0, stop=0, **fields):
    """One that does its steps."""
    steps = {"seen": seen, "unit": "optimizer", "stopped": None, "input_shapes": 1, "batch_size": 8, "not_seen": []}
    document = {"argv": ["/x/small.py"], "devices": devices(reserved), "steps": steps, **fields}
    return shlex.join(fake_words(document=document, exit=exit, stop=stop))


@pytest.fixture
def script(tonnage, schema):
    """script(text): the text under `tonnage run -- sh -c`; returns the finished command and its report."""

    def run(text):
        report = tonnage.cwd / "report.json"
        done = tonnage("run", "--json", report, "--", "sh", "-c", text)
        document = json.loads(report.read_text())
        schema("run", document)
        return done, document

    return run


def fits_with(done, report, programs):
    """True when the report says "fits", and directly below that which processes were ended."""
    found = [row for row in report["findings"] if row["id"] == "ended_by_oom_inside"]
    assert done.returncode == 0 and report["verdict"] == "fits" and report["out_of_memory"] is None
    assert [row["severity"] for row in found] == ["error"] * programs
    assert [row["bytes"] for row in found] == [3 * GIB] * programs
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Fits on") and lines[1].startswith("  error: big.py was ended by an out-of-memory at")
    assert "3.00 GiB" in " ".join(lines[1:3]) and done.stderr.count("was ended by an out-of-memory") == programs
    return True


@pytest.mark.parametrize("text", ["{} || {}", "{}; {}"])
def test_one_that_was_tried_again(script, text):
    done, report = script(text.format(big(), small()))
    assert fits_with(done, report, programs=1)
    assert report["steps"]["seen"] == 3 and report["peak"]["reserved_bytes"] == GIB
    assert report["findings"][0]["at"] == {**PLACE, "backward": False}
    assert "model.py:88" in report["findings"][0]["what"]
    assert report["handled_out_of_memory"] == []


def test_several_tries(script):
    done, report = script(" || ".join([big(line=1), big(line=2), small()]))
    assert fits_with(done, report, programs=2)
    assert sorted(row["at"]["line"] for row in report["findings"]) == [1, 2]


def test_one_that_was_stopped_after_a_failure(script):
    done, report = script("%s || %s" % (big(), small(stop=1)))
    assert fits_with(done, report, programs=1)
    assert report["steps"]["stopped"] == "settled" and report["steps"]["seen"] == 3


def test_many_tries_leave_room_for_other_findings(script):
    done, report = script("; ".join([*(big() for _ in range(20)), small(torch="2.99.0+cu150")]))
    assert fits_with(done, report, programs=4)
    assert "untested_torch" in [row["id"] for row in report["findings"]]


NOT_TAKEN_UP = {
    "nothing": "true",
    "a process without a GPU": small(reserved=0),
    "one that ran out, too": big(reserved=GIB),
    "one that was there before": small(started=1.0),
    "one whose start is not known": small(started="x"),
}


@pytest.mark.parametrize("after", NOT_TAKEN_UP)
def test_one_that_nothing_followed(script, after):
    done, report = script("%s; %s; true" % (big(), NOT_TAKEN_UP[after]))
    assert done.returncode == 10 and report["verdict"] == "out_of_memory" and report["exit_status"] == 10
    assert report["out_of_memory"]["at"]["line"] == 88 and report["steps"]["seen"] == 0
    assert report["handled_out_of_memory"] == [] and report["peak"]["reserved_bytes"] == 9 * GIB
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Does not fit on") and "ended with status 0 all the same" in lines[1]
    assert [row["id"] for row in report["findings"] if row["severity"] == "warning"] == ["ended_with_zero"]


def test_the_last_one_counts(script):
    done, report = script("; ".join([big(line=1), small(), big(line=2, reserved=2 * GIB), "true"]))
    assert done.returncode == 10 and report["out_of_memory"]["at"]["line"] == 2


def test_a_script_that_passes_the_status_on(script):
    done, report = script("%s && %s" % (big(), small()))
    assert done.returncode == 10 and report["verdict"] == "out_of_memory" and "all the same" not in done.stderr
    assert "ended_with_zero" not in [row["id"] for row in report["findings"]]


def test_an_error_that_a_process_caught_stays_handled(script):
    done, report = script(small(out_of_memory=OOM))
    assert done.returncode == 0 and report["verdict"] == "fits" and report["findings"] == []
    assert report["handled_out_of_memory"][0]["line"] == 88 and "handled itself" in done.stderr


# ---- an out-of-memory, and a later failure of something else ----

LATER_FAILURES = {
    "another program that did its steps": (big(), small(exit=3), "failed"),
    "the same program, before its first step": (big(), small(seen=0, exit=3, argv=["/x/big.py"]), "failed"),
    "another program that did nothing": (big(), small(seen=0, exit=3), "out_of_memory"),
    "one that was caught and never got over": (small(), small(exit=3, out_of_memory=OOM), "out_of_memory"),
    "one that was caught by an earlier process": (small(out_of_memory=OOM), small(exit=3), "failed"),
}


@pytest.mark.parametrize("case", LATER_FAILURES)
def test_a_later_failure_is_not_an_earlier_out_of_memory(script, case):
    first, second, verdict = LATER_FAILURES[case]
    done, report = script("%s; %s" % (first, second))
    assert report["verdict"] == verdict and done.returncode == (3 if verdict == "failed" else 10)
    assert (report["out_of_memory"] is None) is (verdict == "failed")
    told = [row["id"] for row in report["findings"]].count("ended_by_oom_inside") + len(report["handled_out_of_memory"])
    assert told == (1 if verdict == "failed" else 0)


def test_the_failure_is_told_of_the_process_that_failed(script):
    error = {"type": "ValueError", "message": "the later one", "at": {**PLACE, "line": 7}}
    done, report = script("%s; %s" % (big(), small(exit=3, exception=error)))
    assert report["verdict"] == "failed" and "model.py:7 ValueError: the later one" in done.stderr


@pytest.mark.parametrize("after, status", [(4 << 20, 3), (0, 10)])
def test_a_program_without_a_hook_that_went_on(tonnage, after, status):
    """The card refuses it memory; it takes less, or nothing, and fails of something else, or of that."""
    words = ("import sys; sys.path.insert(0, %r); import fake_guest as f; f.take([['x', 1 << 20]], 100 << 30); "
             "f.take([['x', %d]], None); sys.exit(3)" % (str(HERE), after))  # fmt: skip
    assert tonnage("run", "--", sys.executable, "-I", "-c", words).returncode == status
