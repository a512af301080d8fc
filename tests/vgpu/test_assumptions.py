# SPDX-License-Identifier: Apache-2.0
"""Values that only a kernel would know: likely ones, what is listed of them, and another one where the program fails."""

import pathlib
import subprocess

import pytest
from conftest import MAIN, WHEELS, python_of

FORKED = True  # ../fork_servers.py

TABLE = """\
import torch
x = torch.randn(40, 50, device="cuda")
mask = x > 0.5
ids = torch.randint(0, 7, (1000,), device="cuda")

def same(found, wanted):
    assert found == wanted, (found, wanted)

same((mask.nonzero().shape, x[mask].shape, x.masked_select(mask).shape), ((2000, 2), (2000,), (2000,)))
same([len(part) for part in torch.where(mask)], [2000, 2000])
same((torch.randn(3_000_000, device="cuda") > 0).nonzero().shape, (3_000_000, 1))
same((ids.unique().shape, torch.unique_consecutive(ids).shape, torch.unique(ids.view(-1, 2), dim=0).shape), ((1000,), (1000,), (500, 2)))
same([len(part) for part in ids.unique(return_counts=True)], [1000, 1000])
same((mask.sum().item(), mask.all().item(), mask.any().item()), (2000, True, True))
same((x.isnan().any().item(), x.isinf().any().item(), torch.isfinite(x).all().item()), (False, False, True))
same((torch.allclose(x, x + 1), torch.equal(x, x + 1)), (True, True))
boxes = torch.rand(9, 4, device="cuda")
assert (boxes[:, 2:] >= boxes[:, :2]).all() and not (boxes[:, 2:] <= boxes[:, :2]).any()
assert x.min() >= 0 and 0 < x.norm().item() < 10 and 0 < x.mean().item() < 10
assert not (ids[-1] == 2).item() and not torch.isin(ids, torch.tensor([3, 4], device="cuda")).any()
same((x.argmax().item(), x[:, 0].topk(2).indices.tolist(), torch.multinomial(x.abs(), 1)[0].tolist()), (0, [0, 1], [0]))
same(torch.repeat_interleave(torch.arange(3, device="cuda"), torch.tensor([1, 2, 3], device="cuda")).shape, (6,))
same(torch.repeat_interleave(ids.clamp(0)).shape, (1000,))
known = torch.arange(10, device="cuda")
same(known[known > 6].shape, (3,))
same((torch.arange(10, device="cuda") < 4).nonzero().shape, (4, 1))
routed = ids.float().histc(8, 0, 7).tolist()
same(sum(routed), 1000)
print("as likely")
"""

# As balanced samplers of detectors draw: of all that are candidates, a fixed number.
SAMPLED = """\
import torch
def draw(count):
    candidates = torch.where(torch.randn(3000, device="cuda") > 0)[0]
    mask = torch.zeros(3000, dtype=torch.uint8, device="cuda")
    mask[candidates[torch.randperm(candidates.numel(), device="cuda")[:count]]] = 1
    return mask
positive, negative = draw(128), draw(384)
both = torch.where(positive | negative)[0]
many = torch.where(torch.cat([positive, positive]))[0]
print("drawn", len(both), len(many), (negative > 0).sum().item() and len(torch.where(negative)[0]))
"""

TWICE = """\
import torch
x = torch.randn(300, 64, device="cuda", requires_grad=True)
n = (x[:, 0] == x[:, 1]).sum()
found = [bool(n), n.item()]
y = torch.nn.functional.gelu(x @ torch.randn(64, 64, device="cuda")).sort(1)[0].cumsum(0)
y.sum().backward()
assert found[0] and n.item() == found[1] == 300 == len(torch.zeros(n, device="cuda")), (found, n.item())
n = (x[:, 0] != x[:, 1]).sum() * 0 + 7  # another tensor, in the same memory perhaps
del y
print("the same")
"""

SELECTED = """\
import torch
rows = torch.randn(1 << 20, device="cuda")
kept = rows[rows.sigmoid() > 0.5]
wide = torch.zeros(len(kept), 16, device="cuda")
print("rows", len(kept))
"""

AFTER_THE_PEAK = """\
import sys, torch
print("begins", len(sys.stdin.read()))
rows = torch.randn(1 << 20, device="cuda")
large = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
early = (rows[:8].sigmoid() > 0.5).sum().item() if "early" in sys.argv else 0
del large
torch.empty(1 << 20, device="cuda")
print("right", (rows.sigmoid() > 0.5).sum().item())
later = torch.empty(512 << 20 if "late" in sys.argv else 64 << 20, dtype=torch.uint8, device="cuda")
"""

FAILS = """\
import sys, torch
x = torch.randn(8, 8, device="cuda")
print("begins", len(sys.stdin.read()), flush=True)
open("written.txt", "a").write("once")
assert len(open("written.txt").read()) == 4
if not (x.sum() < 0).item():
    raise ValueError("positive")
held = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
print("ends")
"""

ENDLESS = """\
import torch
x = torch.randn(8, 8, device="cuda")
while x.norm() > 1e-6:
    x = x * 0.5
while not (x.sum(1) > 100).any():
    x = x * 0.5
print("ended")
"""


@pytest.mark.parametrize("wheel", WHEELS)
def test_what_is_read_is_likely(tonnage, wheel):
    run = tonnage(wheel, ["-c", TABLE], "--steps=all")
    assert "as likely" in run.stdout, run.explain()


@pytest.mark.parametrize("share, rows", [("full", 1 << 20), ("none", 0), ("0.25", 1 << 18)])
def test_how_much_is_selected_can_be_said(tonnage, share, rows):
    run = tonnage(MAIN, ["-c", SELECTED], "--steps=all", f"--assume={share}")
    assert f"rows {rows}\n" in run.stdout, run.explain()
    (count,) = [row for row in run.report["assumptions"] if row["what"] == "count"]
    assert (count["line"], count["value"]) == (3, f"{rows} of {1 << 20}"), run.explain()
    assert run.report["bound"] == {"full": "upper"}.get(share, "lower"), run.explain()
    if share == "full":  # 16 numbers for each row, at the least
        assert count["bytes_hanging"] >= (1 << 20) * 64, run.explain()
        assert "at most" in run.stderr.splitlines()[0], run.explain()


@pytest.mark.parametrize("words, hanging, bound", [([], {8: 0}, None), (["early"], {5: 0, 8: 0}, None), (["late"], {8: None}, "upper")])
def test_nothing_hangs_on_a_count_that_was_read_after_the_peak(tonnage, words, hanging, bound):
    """The input is a pipe, so that no second run can tell: what is known is known from this one."""
    run = tonnage(MAIN, ["-c", AFTER_THE_PEAK, *words], "--steps=all", input="words")
    assert "right 1048576" in run.stdout, run.explain()
    assert {row["line"]: row["bytes_hanging"] for row in run.report["assumptions"]} == hanging, run.explain()
    assert run.report["bound"] == bound, run.explain()


def test_a_program_that_fails_of_a_value_is_run_again_with_another(tonnage, tmp_path):
    typed = tmp_path / "typed"
    typed.write_text("words")
    with typed.open() as given:
        run = tonnage(MAIN, ["-c", FAILS], "--steps=all", f"--html={tmp_path / 'page.html'}", stdin=given)
    assert run.stdout == "begins 5\n", "nothing is shown twice"
    assert run.report["retry"] == {"runs": 1, "file": "<string>", "line": 6, "what": "truth", "value": "true"}, run.explain()
    assert run.device_bytes > 100 << 20 and "passed when" in run.stderr, run.explain()
    assert "104857600" in (tmp_path / "page.html").read_text(), "the page has the record of the run that passed"
    (written,) = pathlib.Path(run.report["scratch"]).rglob("written.txt")
    assert written.read_text() == "once"


def test_a_program_whose_input_is_gone_is_not_run_again(tonnage):
    run = tonnage(MAIN, ["-c", FAILS], "--steps=all", input="words")
    assert run.verdict == "failed" and run.status == 1 and run.report["retry"] is None, run.explain()


def test_a_line_that_is_asked_for_ever_gets_another_value(tonnage):
    run = tonnage(MAIN, ["-c", ENDLESS], "--steps=all")
    assert "ended" in run.stdout, run.explain()
    found = {row["line"]: row["value"] for row in run.report["assumptions"]}
    assert found == {3: "true, then false", 5: "false, then true"}, run.explain()


def test_everything_selected_is_as_if_the_sizes_were_known(tonnage):
    """Faster R-CNN: the peak with all that can be selected is that of a program whose selections are written as ranges."""
    runs = [tonnage(MAIN, ["programs/detection.py", word], "--steps=all", "--gpu=a100-40") for word in ("as_is", "forced")]
    assert all("trained" in run.stdout for run in runs), runs[0].explain() + runs[1].explain()
    assert runs[0].report["peak"]["allocated_bytes"] == runs[1].report["peak"]["allocated_bytes"], runs[0].explain()
    assert runs[0].report["bound"] == "upper"


def test_a_program_that_may_have_sent_something_is_not_run_again(tonnage):
    """The wall is asked, which knows of every process: here a child without a hook sends before the first kernel."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        child = "import socket; socket.create_connection(('127.0.0.1', %d)).send(b'x')" % server.getsockname()[1]
        program = "import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-S', '-c', %r], check=True)\n" % child + FAILS
        run = tonnage(MAIN, ["-c", program], "--steps=all")
    assert run.verdict == "failed" and run.report["retry"] is None, run.explain()


def test_a_program_whose_connection_was_refused_is_run_again(tonnage):
    program = FAILS.replace("held =", "import socket\nif socket.socket().connect_ex(('192.0.2.1', 9)) == 0: raise OSError('sent')\nheld =")
    program = program.replace("if not (x.sum()", "import socket\nassert socket.socket().connect_ex(('192.0.2.1', 9)) != 0\nif not (x.sum()")
    run = tonnage(MAIN, ["-c", program], "--steps=all")
    assert run.report["retry"] is not None and run.report["network"]["held_back"], run.explain()


def test_everything_selected_has_the_shapes_of_the_cpu(tonnage):
    """The same wheel on the CPU, which computes, with the same selection: what a forward and a backward pass hold at
    most is equal, to the byte, over all tensors that operations make."""
    run = tonnage(MAIN, ["programs/detection.py", "shapes"], "--steps=all", "--gpu=a100-40", "--no-detail")
    program = pathlib.Path(__file__).parent / "programs/detection.py"
    words = [python_of(MAIN), str(program), "shapes", "cpu", "forced"]
    wanted = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600).stdout.splitlines()[0]
    assert wanted.startswith("shapes 5") and wanted in run.stdout, run.explain()


def test_what_a_sampler_draws_is_what_it_is_documented_to_draw(tonnage):
    run = tonnage(MAIN, ["-c", SAMPLED], "--steps=all")
    assert "drawn 512 256 384" in run.stdout, run.explain()
    counts = [row["value"] for row in run.report["assumptions"] if row["what"] == "count"]
    assert "512 of 512" in counts and "256 of 256" in counts, run.explain()


def test_what_was_read_stays_until_something_writes_there(tonnage):
    run = tonnage(MAIN, ["-c", TWICE], "--steps=all")
    assert "the same" in run.stdout, run.explain()


def test_what_is_read_to_print_a_tensor_is_no_assumption(tonnage):
    program = "import torch\nx = torch.randn(64, 1 << 10, device='cuda')\nprint(x)\nmask = x > 0\n"
    printed = tonnage(MAIN, ["-c", program], "--gpu=rtx3060")
    assert printed.report["assumptions"] == [] and printed.report["bound"] is None, printed.explain()
    assert "tensor(" in printed.stdout and printed.report["coverage"]["computed_values_read"], printed.explain()
    counted = tonnage(MAIN, ["-c", program + "x[mask]"], "--gpu=rtx3060")
    assert [row["what"] for row in counted.report["assumptions"]] == ["count"], counted.explain()
