# SPDX-License-Identifier: Apache-2.0
"""The hook's start: what programs see of it, which is nothing."""

import json
import subprocess
import sys

import pytest
from conftest import FAKE, GUEST, HERE


def test_no_torch_no_trace(run_with):
    done = run_with(sys.executable, """
        import sys
        print(sys.path)
        print([name for name in sys.modules if "tonnage" in name])
        """)
    assert done.status == 0 and done.stderr == ""
    assert str(GUEST) not in done.stdout.splitlines()[0] and str(FAKE) in done.stdout
    assert "_tonnage_guest.record" not in done.stdout  # the heavy parts wait for torch
    assert done.documents == []


def test_next_sitecustomize_runs(run_with, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/sitecustomize.py").write_text("flag = 41 + 1\n")
    done = run_with(sys.executable, "import sitecustomize; print(sitecustomize.flag)", search=str(tmp_path / "other"))
    assert done.stdout == "42\n", done.stderr


def test_missing_torch_is_told(run_with, tmp_path):
    (tmp_path / "program.py").write_text("import torch\n")
    # -S: without site-packages there is no torch; the hook is started as site would
    start = "import sys; sys.path.insert(0, %r); import sitecustomize; import torch" % str(GUEST)
    done = run_with(sys.executable, ["-S", "-c", start])
    assert done.document["torch"] is None
    assert done.document["exception"]["type"] == "ModuleNotFoundError"


def test_failed_import_has_its_own_traceback(run_with, tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ValueError('broken')\n")
    program = "import torch\n"
    with_hook = run_with(sys.executable, program)
    without = run_with(sys.executable, program, TONNAGE_RUN="")
    assert with_hook.stderr == without.stderr and "broken" in with_hook.stderr


def test_torch_is_described(started, wheel):
    found, done = started
    assert found["loader"] == "SourceFileLoader"
    document = done.document
    assert document["schema"] == "tonnage.guest/1" and document["torch"] in wheel + document["torch"]
    assert document["cuda"] and document["cudnn"] >= 90000 and document["cuda_initialized"] is False
    assert document["hook_error"] is None and document["out_of_memory"] is None


def test_forked_worker_owns_nothing(started):
    found, done = started
    assert found["worker"] == 3 and done.document["exception"] is None


def test_error_of_a_sensor_is_its_alone(run_with, wheel):
    """The allocator's statistics are not what this torch's were: steps are counted all the same."""
    done = run_with(wheel, """
        import torch, fake_cuda, sys
        fake_cuda.start()
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=.1)
        torch._C._cuda_memoryStats = lambda device: {"odd": 1}
        for _ in range(3):
            weight.sum().backward()
            optimizer.step()
        print("went on")
        """, forked=True)  # fmt: skip
    assert done.status == 0 and done.stdout == "went on\n"
    document = done.document
    lost = {row["name"]: row for row in document["sensors"] if row["state"] == "lost"}
    lines = [line for line in done.stderr.splitlines() if line.startswith("tonnage:")]
    assert len(lines) == len(lost) and all("one sensor of the hook stopped" in line for line in lines)
    assert lost["allocator"]["error"].startswith("KeyError") and lost["allocator"]["costs"]
    assert document["hook_error"] is None and document["steps"]["seen"] == 3
    assert {"steps", "holders", "ending"} <= {row["name"] for row in document["sensors"] if row["state"] == "attached"}


_alone = {}  # wheel -> what it found


@pytest.fixture
def alone(wheel):
    """What programs/start.py prints without the hook."""
    if wheel not in _alone:
        words = [wheel, "-W", "error", HERE / "programs/start.py", "alone"]
        _alone[wheel] = json.loads(subprocess.run(words, capture_output=True, text=True, timeout=120).stdout)
    return _alone[wheel]


def test_cycles_are_looked_for_once_when_torch_is_imported(started):
    """Behind it as ever; where the program has switched that off it stays off."""
    found, _ = started
    assert found["full looks"] == 1 and found["collects"] and found["looks at cycles"] and not found["collects when switched off"]


def test_cycles_are_looked_for_as_often_as_in_torch_by_itself(started, alone):
    """Objects that a program makes between two full looks: until then its cycles hold memory of the card."""
    ours, torchs = started[0]["made"], alone["made"]
    assert 0.8 * torchs < ours < 1.25 * torchs


def test_an_optimizer_imports_the_compiler_in_torch_by_itself_only(started, alone):
    assert alone["compiler"] and not started[0]["compiler"]
