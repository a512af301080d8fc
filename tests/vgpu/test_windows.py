# SPDX-License-Identifier: Apache-2.0
"""--host windows and wsl with a real PyTorch: what lies beside the card, to the byte, the switch that forbids it, and pinned memory."""

import json

import jsonschema
from conftest import MAIN, MIB, ROOT

FORKED = True
SCHEMA = json.loads((ROOT / "doc/format/run.schema.json").read_text())
DESKTOP = 800 * MIB


def check(run):
    jsonschema.Draft202012Validator(SCHEMA).validate(run.report)
    return run.report["system"]


def test_too_big_spills(tonnage):
    run = tonnage(MAIN, ["programs/sharer.py", "13000"], "--gpu=rtx3060", "--host=windows")
    system = check(run)
    total, context = run.report["gpu"]["total_bytes"], run.report["gpu"]["context_bytes"]
    assert run.device_bytes == context + DESKTOP + 2 * MIB + 13000 * MIB, run.explain()
    assert (run.status, run.verdict, run.report["exit_status"]) == (10, "spills", 10)
    assert system["spilled_bytes"] == run.device_bytes - total and system["fallback_limit_bytes"] is None
    first = run.report["findings"][0]
    assert (first["id"], first["severity"], first["bytes"]) == ("spills", "error", system["spilled_bytes"])
    assert run.report["steps"]["stopped"] == "settled" and run.report["out_of_memory"] is None
    text = " ".join(run.stderr.split())
    assert "would lie in the computer's memory, many times slower" in text and "Prefer No Sysmem Fallback" in text
    assert f"tonnage fix --gpu rtx3060 --other {DESKTOP // MIB}MiB -- " in text


def test_the_policy_forbids_it(tonnage):
    run = tonnage(MAIN, ["programs/sharer.py", "13000"], "--gpu=rtx3060", "--host=windows", "--sysmem-fallback=forbid")
    system = check(run)
    assert (run.status, run.verdict) == (10, "out_of_memory") and system["sysmem_fallback"] == "forbid", run.explain()
    assert "torch.OutOfMemoryError" in run.stderr
    assert run.report["out_of_memory"]["by_category"]["other_processes"] == DESKTOP


def test_more_than_half_of_the_computers_memory_is_refused(tonnage):
    run = tonnage(MAIN, ["programs/sharer.py", "21000"], "--gpu=rtx3060", "--host=windows", "--host-memory=16GiB", timeout=300)
    system = check(run)
    assert system["fallback_limit_bytes"] == 8192 * MIB and (run.status, run.verdict) == (10, "out_of_memory"), run.explain()


def test_what_fits_fits_beside_a_desktop(tonnage):
    run = tonnage(MAIN, ["programs/sharer.py", "512"], "--gpu=rtx3060", "--host=windows")
    system = check(run)
    assert run.status == 0 and system["spilled_bytes"] == 0, run.explain()
    assert run.report["at_peak"]["by_category"]["other_processes"] == DESKTOP
    display = next(part for part in run.report["uncertainty_parts"] if part["part"] == "display")
    assert [display["below_bytes"], display["above_bytes"]] == [DESKTOP - 384 * MIB, 2048 * MIB - DESKTOP]
    assert "Windows's desktop (guess)" in run.report["sources"]["at_peak.by_category.other_processes"]
    run = tonnage(MAIN, ["programs/sharer.py", "512"], "--gpu=rtx3060", "--host=windows", "--other=0")
    assert check(run)["display_bytes"] is None and run.report["at_peak"]["by_category"]["other_processes"] == 0


def test_pinned_memory_under_wsl(tonnage, tmp_path):
    program = tmp_path / "pins.py"
    program.write_text("""
import torch
held = [torch.empty(512 << 20, dtype=torch.uint8).pin_memory() for _ in range(3)]
module = torch.nn.ReLU()
small = torch.ones(1024, device="cuda")
with torch.no_grad():
    while True:
        module(small)
""")
    run = tonnage(MAIN, [str(program)], "--gpu=rtx3060", "--host=wsl", "--sysmem-fallback=forbid")
    system = check(run)
    assert run.status == 0 and system["pinned_limit_bytes"] == 1024 * MIB and system["pinned_bytes"] >= 1536 * MIB, run.explain()
    found = {item["id"] for item in run.report["findings"]}
    assert {"pinned_limit", "fallback_in_wsl"} <= found, run.explain()
