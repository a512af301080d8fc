# SPDX-License-Identifier: Apache-2.0
"""What every byte was for, from a faked guest's record and a real ledger: categories, holders, growth, regions."""

import json
import shlex
import sys

import pytest
from command import fake_words
from test_cli import OOM

MIB = 1 << 20
CONTEXT = 130 * MIB  # rtx3060
HOLDINGS = [
    ["parameters", 8 * MIB - 100, 10, "weight"],
    ["activations", 4 * MIB, 88, ""],
    ["activations", 3 * MIB, 88, ""],
    [None, MIB, 90, ""],
]
AT_OOM = [["activations", MIB, 88, ""]] * 17 + [[None, MIB, 90, ""]]
RECORD = [HOLDINGS, 20 * MIB]


def devices(reserved):
    return [{"index": 0, "allocated_peak": 16 * MIB, "reserved_peak": reserved, "requested_peak": 15 * MIB}]


def document(**fields):
    return {"devices": devices(20 * MIB), **fields}


def known(by_category):
    return {name: value for name, value in by_category.items() if value}


def run(tonnage, schema, *options, **wish):
    done, report = tonnage.fake("--gpu", "rtx3060", *options, **wish)
    schema("run", report)
    return done, report


def test_categories_of_the_peak(tonnage, schema):
    done, report = run(tonnage, schema, document=document(), stop=1, take=[["forward", 20 * MIB]], record={"peak": RECORD})
    assert done.returncode == 0
    peak = report["at_peak"]
    assert known(peak["by_category"]) == {
        "parameters": 8 * MIB - 100, "activations": 7 * MIB, "temporaries": MIB, "rounding": 100, "cached": 4 * MIB,
        "context": CONTEXT}  # fmt: skip
    assert sum(peak["by_category"].values()) == report["peak"]["device_bytes"] == 20 * MIB + CONTEXT
    assert None not in peak["by_category"].values()
    assert peak["phase"] == "forward" and peak["step"] == 1
    holder = next(row for row in peak["holders"] if row["category"] == "activations")
    assert (holder["bytes"], holder["blocks"], holder["file"], holder["line"]) == (7 * MIB, 2, "/x/model.py", 88)
    assert [row["bytes"] for row in peak["holders"]] == sorted((row["bytes"] for row in peak["holders"]), reverse=True)
    lines = done.stderr.splitlines()
    (row,) = [line for line in lines if line.startswith("    activations ")]
    assert "7.0" in row and "/x/model.py:88 forward" in row


def test_what_pytorch_does_not_explain_is_other(tonnage, schema):
    """The program took 6 MiB past PyTorch, in the same process."""
    _, report = run(tonnage, schema, document=document(), stop=1, take=[["forward", 20 * MIB], ["forward", 6 * MIB]],
                    record={"peak": RECORD})  # fmt: skip
    assert report["at_peak"]["by_category"]["other"] == 6 * MIB
    assert sum(report["at_peak"]["by_category"].values()) == report["peak"]["device_bytes"]
    assert "held most" in report["sources"]["at_peak.by_category"]


def test_two_processes_on_one_card(tonnage, schema):
    """The record is of one of them; what the other one holds is other."""
    wish = {"document": document(), "take": [["forward", 20 * MIB]], "record": {"peak": RECORD}, "sleep": 2}
    one = shlex.join(fake_words(**wish))
    path = tonnage.cwd / "report.json"
    done = tonnage("run", "--gpu", "rtx3060", "--json", path, "--", "sh", "-c", f"{one} & {one}; wait")
    report = json.loads(path.read_text())
    schema("run", report)
    by_category = report["at_peak"]["by_category"]
    assert done.returncode == 0 and report["peak"]["device_bytes"] == 2 * (CONTEXT + 20 * MIB)
    assert by_category["other"] == 20 * MIB and by_category["context"] == 2 * CONTEXT
    assert by_category["parameters"] == 8 * MIB - 100 and sum(by_category.values()) == report["peak"]["device_bytes"]


def test_a_record_that_contradicts_the_ledger_is_said(tonnage, schema):
    done, report = run(tonnage, schema, document=document(), stop=1, take=[["forward", 10 * MIB]], record={"peak": RECORD})
    by_category = report["at_peak"]["by_category"]
    assert by_category["parameters"] is None and by_category["other"] == 10 * MIB and report["at_peak"]["holders"] == []
    assert [row["id"] for row in report["findings"]] == ["categories_do_not_add_up"]
    assert done.returncode == 0 and "contradict each other" in done.stderr


def test_a_broken_record_is_said(tonnage, schema):
    done, report = run(tonnage, schema, document=document(), stop=1, take=[["forward", 20 * MIB]], record={"peak": "broken"})
    assert done.returncode == 0 and report["findings"][0]["id"] == "record_unreadable"
    assert report["at_peak"]["by_category"]["parameters"] is None


@pytest.mark.parametrize("path", ["/etc/passwd", "%(run)s/../x", ""])
def test_only_records_inside_the_run_are_read(tonnage, schema, path):
    _, report = run(tonnage, schema, document=document(peak_snapshot=path), stop=1, take=[["forward", 20 * MIB]])
    assert report["findings"] == [] and report["at_peak"]["by_category"]["parameters"] is None


def test_no_detail(tonnage, schema):
    done, report = run(tonnage, schema, "--no-detail", document=document(), stop=1, take=[["forward", 20 * MIB]])
    assert report["at_peak"]["by_category"]["other"] == 20 * MIB and "the program" in done.stderr
    words = "import os; print(os.environ['TONNAGE_DETAIL'])"
    assert tonnage("run", "--quiet", "--no-detail", "--", sys.executable, "-S", "-c", words).stdout == "0\n"
    assert tonnage("run", "--quiet", "--", sys.executable, "-S", "-c", words).stdout == "1\n"


def test_the_end_of_the_record_is_the_out_of_memory(tonnage, schema):
    """The card of 152 MiB refuses the last 4; PyTorch held 20 then, the cause follows from what it was for."""
    oom = {**OOM, "requested_bytes": 4 * MIB, "free_bytes": 2 * MIB, "allocated_bytes": 16 * MIB,
           "reserved_bytes": 20 * MIB, "phase": "backward"}  # fmt: skip
    done, report = run(
        tonnage, schema, "--memory", "152MiB", exit=1, take=[["forward", 20 * MIB]], refused=4 * MIB,
        document=document(out_of_memory=oom, out_of_memory_ended_process=True,
                          steps={"seen": 0, "unit": "optimizer", "stopped": None, "input_shapes": 1, "batch_size": 17}),
        record={"oom": [AT_OOM, 20 * MIB]})  # fmt: skip
    found = report["out_of_memory"]
    assert done.returncode == 10 and found["cause"] == "model_or_batch_too_big"
    assert known(found["by_category"]) == {
        "activations": 17 * MIB, "temporaries": MIB, "cached": 2 * MIB, "context": CONTEXT}  # fmt: skip
    assert sum(found["by_category"].values()) == 150 * MIB
    assert found["holders"][0]["line"] == 88
    # the peak is in the same record
    assert known(report["at_peak"]["by_category"]) == known(found["by_category"])
    reason = report["findings"][0]
    assert reason["id"] == "batch_too_big" and reason["severity"] == "error" and reason["at"]["line"] == 88
    assert "each of its 17 samples adds 1.0 MiB of activations" in reason["what"]
    assert f"  Why   {reason['what']}" in done.stderr


def test_the_computers_own_memory(tonnage, schema):
    raised = {"type": "RuntimeError", "message": "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate",
              "at": {"file": "/x/a.py", "line": 3, "function": "f"}}  # fmt: skip
    done, report = run(tonnage, schema, document=document(exception=raised), exit=1)
    assert report["verdict"] == "failed" and [row["id"] for row in report["findings"]] == ["host_ram"]
    assert report["findings"][0]["at"]["line"] == 3 and "the computer's own memory was full" in done.stderr


GROWTH = {"unit": "step", "bytes": MIB, "first": 3, "last": 40, "allocated": 15 * MIB, "peak": 20 * MIB, "of": None,
          "at": {"file": "/x/leak.py", "line": 31, "function": "train"}}  # fmt: skip


def test_growth_is_a_verdict(tonnage, schema):
    done, report = run(tonnage, schema, "--memory", "1130MiB", document=document(growth=GROWTH), stop=2,
                       take=[["forward", 20 * MIB]], record={"peak": RECORD})  # fmt: skip
    assert done.returncode == 10 and report["verdict"] == "grows" and report["exit_status"] == 10
    at = {**GROWTH["at"], "backward": False}
    assert report["growth"] == {"unit": "step", "bytes_per_unit": MIB, "full_at": 40 + 980, "at": at,
                                "first": 3, "last": 40}
    assert report["findings"][0]["id"] == "growth" and report["findings"][0]["at"] == at
    lines = done.stderr.splitlines()
    assert lines[0].endswith(": full at step 1,020")
    assert "  Memory grows by 1.0 MiB with each step (seen from step 3 to 40)" in lines and "  /x/leak.py:31 train" in lines


@pytest.mark.parametrize("of, verdict", [(1019, "fits"), (1020, "grows")])
def test_growth_that_ends_in_time(tonnage, schema, of, verdict):
    done, report = run(tonnage, schema, "--memory", "1130MiB", document=document(growth={**GROWTH, "of": of}), stop=2,
                       take=[["forward", 20 * MIB]])  # fmt: skip
    assert report["verdict"] == verdict and done.returncode == (0 if verdict == "fits" else 10)
    assert report["growth"]["full_at"] == 1020


def test_regions_and_what_was_not_seen(tonnage, schema):
    place = {"file": "/x/train.py", "line": 5, "function": "main"}
    steps = {"seen": 4, "unit": "optimizer", "stopped": "settled", "input_shapes": 1, "not_seen": ["later epochs"]}
    done, report = run(tonnage, schema, document=document(regions={"forward": place}, steps=steps),
                       take=[["build", 8 * MIB], ["forward", 12 * MIB], ["other", 2 * MIB], ["save", 0]])  # fmt: skip
    assert [row["name"] for row in report["regions"]] == ["build", "forward", "other", "save"]
    assert [row["peak_reserved_bytes"] for row in report["regions"]] == [8 * MIB, 20 * MIB, 22 * MIB, 22 * MIB]
    assert [row["peak_device_bytes"] - CONTEXT for row in report["regions"]] == [8 * MIB, 20 * MIB, 22 * MIB, 22 * MIB]
    assert report["regions"][1]["at"] == {**place, "backward": False} and report["regions"][0]["at"] is None
    assert report["steps"]["not_seen"] == ["later epochs"] and report["steps"]["stopped"] == "settled"
    # on the screen only what took memory itself: the rest lived on what was there
    assert "  Peaks: build 138 · forward 150 MiB" in done.stderr.splitlines()
    assert "  Not seen: later epochs" in done.stderr.splitlines()


def test_a_fast_forward_that_the_program_fails_in(tonnage, schema):
    steps = {"seen": 9, "unit": "optimizer", "stopped": "settled", "input_shapes": 1, "not_seen": ["saving"]}
    done, report = run(tonnage, schema, document=document(steps=steps, fast_forward_failed="ValueError: too few"), exit=1)
    assert done.returncode == 0 and report["verdict"] == "fits" and report["findings"][0]["id"] == "fast_forward_failed"
    assert "ValueError: too few" in done.stderr
    _, report = run(tonnage, schema, document=document(fast_forward_failed="ValueError: too few"), exit=1)
    assert report["verdict"] == "failed"


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_as_wide_as_the_terminal(tonnage, columns):
    tonnage.env["COLUMNS"] = str(columns)
    done, _ = tonnage.fake(document=document(), stop=1, take=[["forward", 20 * MIB]], record={"peak": RECORD})
    widest = max(map(len, done.stderr.splitlines()))
    assert widest <= min(columns, 100)


ODD = [
    {"growth": 5}, {"growth": {"bytes": -1}}, {"growth": {"bytes": 1}}, {"steps": {"not_seen": [1, None, "x"]}},
    {"steps": {"not_seen": 7}}, {"regions": [1]}, {"regions": {"forward": 3}}, {"peak_snapshot": 5}, {"devices": [1]},
    {"fast_forward_failed": []},
]  # fmt: skip


@pytest.mark.parametrize("fields", ODD)
def test_odd_fields_count_as_unknown(tonnage, schema, fields):
    done, report = run(tonnage, schema, document=document(**fields), stop=1, take=[["forward", 20 * MIB]])
    assert done.returncode == 0 and report["verdict"] == "fits"
