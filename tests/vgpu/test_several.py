# SPDX-License-Identifier: Apache-2.0
"""Several programs on one card: what each held, counted by hand; which one ran out, beside whom; when the run ends."""

import json
import os
import subprocess
import sys

import jsonschema
import pytest
from conftest import HERE, MAIN, MIB, ROOT, TEMPORARY, TONNAGE, check_categories, python_of, run_tonnage

SMALL = 2 * MIB  # the segment of the small tensors
SHARER = str(HERE / "programs/sharer.py")
SCHEMA = json.loads((ROOT / "doc/format/run.schema.json").read_text())


def several(cwd, *programs, options=("--gpu=rtx3060",), forked=True, **more):
    """Each program is the arguments of sharer.py, or a list of whole words. forked: they may be (../forked/forked_several.py), where
    the process that starts them is not what is looked at."""
    python, words = python_of(MAIN), []
    for program in programs:
        words += [":::"] if words else []
        words += [python, SHARER, *program.split()] if isinstance(program, str) else program
    run = run_tonnage(options, words, cwd, forked=forked, **more)
    jsonschema.Draft202012Validator(SCHEMA).validate(run.report)
    if run.report["at_peak"]:
        parts = run.report["programs"]["items"]
        others = run.report["at_peak"]["by_category"]["other_processes"] or 0
        assert sum(part["at_peak"]["device_bytes"] for part in parts) + others == run.device_bytes, run.explain()
        for part in parts:
            for moment in ("at_peak", "at_out_of_memory"):
                held = part[moment]
                assert held is None or sum(filter(None, held["by_category"].values())) == held["device_bytes"], run.explain()
    return run


def test_both_fit_by_hand_count(tmp_path):
    wide = {"COLUMNS": "100"}
    run = several(tmp_path, "512", "256 after=first", "64 says=first", options=("--gpu=rtx3060", "--other=1GiB"), env=wide, forked=False)
    context = run.report["gpu"]["context_bytes"]
    held = [context + SMALL + size * MIB for size in (512, 256, 64)]
    assert run.status == 0 and run.verdict == "fits", run.explain()
    programs = run.report["programs"]
    assert [part["peak"]["device_bytes"] for part in programs["items"]] == held
    assert [part["at_peak"]["device_bytes"] for part in programs["items"]] == held
    assert run.device_bytes == sum(held) + 1024 * MIB == programs["together_bytes"]
    assert run.report["at_peak"]["by_category"]["context"] == 3 * context
    parts = run.report["at_peak"]["by_category"]  # of each the tensor that is held, the small one, and what the module makes of it
    assert (parts["temporaries"], parts["inputs"]) == (sum(4096 + size * MIB for size in (512, 256, 64)), 3 * 4096), run.explain()
    assert all(part["steps"]["passes"] > 8 and part["exit_status"] is None for part in programs["items"])
    assert run.report["steps"]["stopped"] == "settled" and programs["failing"] is None
    check_categories(run)
    assert "Fits on NVIDIA GeForce RTX 3060 (11.75 GiB): 3 programs at once, " in run.stderr
    assert "program 2 (python " in run.stderr
    again = subprocess.run([str(TONNAGE), "report", str(tmp_path / "tonnage-report.json"), "--text"], capture_output=True, text=True,
                           env={**os.environ, **wide})
    assert again.stdout == run.stderr[run.stderr.index("Fits on"):]


def test_each_alone_fits_and_both_do_not(tmp_path):
    python = python_of(MAIN)
    for size in ("8192", "5000"):
        assert run_tonnage(["--gpu=rtx3060"], [python, SHARER, size], tmp_path, forked=True).status == 0
    page = tmp_path / "page.html"
    run = several(tmp_path, "8192 says=first", "5000 after=first", options=("--gpu=rtx3060", f"--html={page}"), env={"TONNAGE_NEED": ""})
    context = run.report["gpu"]["context_bytes"]
    holder = context + SMALL + 8192 * MIB
    assert run.status == 10 and run.verdict == "out_of_memory", run.explain()
    programs, first = run.report["programs"], run.report["findings"][0]
    assert programs["failing"] == 2 and [part["out_of_memory"] for part in programs["items"]] == [False, True]
    assert [part["at_out_of_memory"]["device_bytes"] for part in programs["items"]] == [holder, context + SMALL]
    assert [part["exit_status"] for part in programs["items"]] == [None, 1]
    assert (first["id"], first["bytes"], run.report["out_of_memory"]["cause"]) == ("other_program", holder, "other_process")
    assert "program 1 (python" in first["what"] and "holds 8.13 GiB of the card" in first["what"], first
    assert [part["need_bytes"] for part in programs["items"]] == [context + 8192 * MIB + 8192, context + 5000 * MIB + 8192], programs
    assert "alone program 2 needs 5.01 GiB and fits" in first["what"], first
    assert run.report["out_of_memory"]["requested_bytes"] == 5000 * MIB
    assert run.report["out_of_memory"]["at"]["line"] == 32
    text = " ".join(run.stderr.split())
    assert f"tonnage fix --gpu rtx3060 --other {holder // MIB}MiB -- {python} {SHARER} 5000 after=first" in text
    assert "It was program 2 (python" in text and "--other" in text and "in total they need 13.1" in text
    check_categories(run)
    card = json.loads(page.read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0])["card"]
    assert (card["context_bytes"], card["other_processes_bytes"]) == (context, holder)  # of the program whose record the page shows


def test_too_large_by_itself_is_not_the_others_fault(tmp_path):
    run = several(tmp_path, "1024 says=first", "13000 after=first", env={"TONNAGE_NEED": ""})
    assert run.status == 10 and run.report["findings"][0]["id"] != "other_program", run.explain()


def test_one_that_ends_early_gives_its_memory_back(tmp_path):
    """What they hold is never held at once here; were it, it would not fit: the verdict stands, narrowly."""
    run = several(tmp_path, "8192 says=first passes=20", "8000 gone=first")
    programs = run.report["programs"]
    assert run.status == 0 and run.verdict == "fits" and run.report["narrowly"], run.explain()
    assert programs["items"][0]["exit_status"] == 0 and programs["items"][1]["exit_status"] is None
    assert run.device_bytes < programs["together_bytes"] == sum(part["peak"]["device_bytes"] for part in programs["items"])
    apart = next(item for item in run.report["findings"] if item["id"] == "peaks_apart")
    assert apart["bytes"] == programs["together_bytes"] - run.report["gpu"]["total_bytes"] and apart["severity"] == "warning"
    assert "all at their own peaks at once: 16.07 GiB" in run.stderr


def test_the_first_that_fails_ends_the_run_with_its_status(tmp_path):
    run = several(tmp_path, "64", "64 passes=3 status=7")
    assert run.status == 7 and run.verdict == "failed", run.explain()
    assert [part["exit_status"] for part in run.report["programs"]["items"]] == [None, 7]


def test_a_program_that_shows_nothing_leaves_it_undecided(tmp_path):
    run = several(tmp_path, "64", ["sleep", "1"])
    assert run.status == 12 and run.verdict == "undecided", run.explain()
    assert run.report["findings"][0]["id"] == "card_unused" and "program 2 (sleep 1) never used a GPU" in " ".join(run.stderr.split())
    code = "import torch, time; held = torch.ones(9, device='cuda'); time.sleep(1)"
    run = several(tmp_path, [python_of(MAIN), "-c", code], "64")
    assert run.status == 12 and run.report["findings"][0]["id"] == "no_step", run.explain()


def test_a_trainer_holds_its_memory_until_the_other_has_settled(tmp_path):
    """It settles long before, with a loader whose epochs would else be cut short, and neither ends nor lets go."""
    trainer = tmp_path / "trainer.py"
    trainer.write_text("""
import pathlib
import torch
data = torch.utils.data.TensorDataset(torch.ones(100000, 64))
weight = torch.ones(64, 64, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for epoch in range(1000):
    for step, (batch,) in enumerate(torch.utils.data.DataLoader(data, batch_size=8)):
        (batch.cuda() @ weight).sum().backward()
        optimizer.step()
        if step == 400:
            pathlib.Path("many").write_text("x")
""")
    run = several(tmp_path, [python_of(MAIN), str(trainer)], "64 after=many")
    assert run.status == 0, run.explain()
    trained, engine = run.report["programs"]["items"]
    assert trained["exit_status"] is None and engine["steps"]["passes"] > 8  # for which the trainer has come to its 400th step
    assert trained["steps"]["seen"] > 8  # as it was last told; the end comes between two of its records
    assert run.device_bytes == trained["peak"]["device_bytes"] + engine["peak"]["device_bytes"]


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/null")
def test_the_first_has_the_input_and_its_failure_ends_the_run(tmp_path):
    code = "import sys, torch; torch.ones(9, device='cuda'); sys.stderr.write('[%s]' % sys.stdin.read()); sys.exit(5)"
    wait = "import sys, time; sys.stdin.read() == '' or sys.exit(6); time.sleep(60)"
    run = several(tmp_path, [python_of(MAIN), "-c", code], [python_of(MAIN), "-c", wait], input="words", forked=False)
    assert run.status == 5 and run.verdict == "failed" and "[words]" in run.stderr, run.explain()
    assert [part["exit_status"] for part in run.report["programs"]["items"]] == [5, None]


def test_a_signal_reaches_all(tmp_path):
    """A terminal's Ctrl-C is everybody's; one that is sent to us alone is passed on to each."""
    code = "import os, signal, sys, time; signal.signal(15, lambda *_: (os.write(1, b'got %s\\n' % sys.argv[1].encode()), sys.exit(0))); os.write(1, b'up\\n'); time.sleep(60)"
    command = [str(TONNAGE), "run", "--gpu=rtx3060", "--", sys.executable, "-c", code, "1", ":::", sys.executable, "-c", code, "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"TMPDIR": TEMPORARY.name, "PATH": "/usr/bin:/bin"}) as running:
        assert [running.stdout.readline() for _ in range(2)] == ["up\n", "up\n"]
        running.terminate()
        rest, said = running.communicate(timeout=60)
    assert sorted(rest.split("\n")[:2]) == ["got 1", "got 2"] and running.returncode == 143, said
