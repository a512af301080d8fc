# SPDX-License-Identifier: Apache-2.0
"""tools/check_rooms.py finds each kind of violation, and nothing in the house as it stands."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/check_rooms.py"


def check(root):
    done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
    return done.returncode, done.stdout


def house(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


GUEST = "python/tonnage/guest/_tonnage_guest"
LAWFUL = {
    "include/tonnage/status.h": "",
    "src/base/error.h": '#include "tonnage/status.h"\n',
    "src/device/ledger.h": '#include "base/error.h"\n',
    "src/base/taken.c": "int\ntn__taken(void)\n{\n}\n\nstatic int\ntn__own(void)\n{\n}\n",
    "src/device/taken.c": "static int\ntn__own(void)\n{\n}\n\nTN_EXPORT int\ntn_vgpu_taken(void)\n{\n}\n",
    "src/preload/sandbox.h": "",
    "src/supervise/start.c": '#include "device/ledger.h"\n#include "preload/sandbox.h"\n#include <stdio.h>\n',
    "src/vgpu/core/core.h": '#include "device/ledger.h"\n',
    "src/vgpu/nvml/nvml.c": '#include "vgpu/core/core.h"\n#include "cuda_runtime_api.h"\n',
    "src/vgpu/cudart/graph.h": "",
    "src/search/plan.h": "",
    "cli/main.c": '#include "tonnage/status.h"\n#include "cmd.h"\n',
    "cli/cmd.h": "",
    f"{GUEST}/events.py": "class Event: pass\n",
    f"{GUEST}/phases.py": "from . import events, metadata\n",
    f"{GUEST}/metadata.py": "",
    f"{GUEST}/settle.py": "from . import phases\n",
    f"{GUEST}/calls.py": "from . import events\n",
    f"{GUEST}/boot.py": "def start():\n    from . import calls, events, phases\n    events.began.subscribe(phases.began)\n",
}


def test_the_house_is_lawful():
    assert check(ROOT) == (0, "")


def test_a_lawful_house_passes(tmp_path):
    assert check(house(tmp_path, LAWFUL)) == (0, "")


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("src/base/bad.c", '\n#include "device/ledger.h"\n', "src/base/bad.c:2: base does not see device/ledger.h"),
        ("src/device/bad.c", '#include "vgpu/core/core.h"\n', "device does not see vgpu/core/core.h"),
        ("src/supervise/bad.c", '#  include "vgpu/core/core.h"\n', "supervise does not see vgpu/core/core.h"),
        ("src/trials/bad.c", '#include "search/plan.h"\n', "trials does not see search/plan.h"),
        ("src/vgpu/core/bad.c", '#include "preload/sandbox.h"\n', "vgpu does not see preload/sandbox.h"),
        ("src/vgpu/nvml/bad.c", '#include "vgpu/cudart/graph.h"\n', "vgpu/nvml does not see vgpu/cudart/graph.h"),
        ("src/vgpu/nvml/bad.c", '#include "../cudart/graph.h"\n', "vgpu/nvml does not see vgpu/cudart/graph.h"),
        ("src/preload/bad.c", '#include "device/ledger.h"\n', "preload does not see device/ledger.h"),
        ("cli/bad.c", '#include "base/error.h"\n', "cli does not see base/error.h"),
        ("src/gpu/error.h", "", "a header of this name stands in src/base/error.h, too"),
        ("src/attic/bad.c", "", "the room attic is not in the table"),
        ("src/base/bad.c", "int\ntn_bad(void)\n{\n}\n", "src/base/bad.c:1: tn_bad is not public: tn__bad, or static"),
        ("src/gpu/bad.c", "int\ntn__taken(void)\n{\n}\n", "tn__taken is also defined in src/base/taken.c:1"),
        (f"{GUEST}/attic.py", "", "attic.py: the module is in no layer"),
        (f"{GUEST}/loaders.py", "from .phases import enter\n", "loaders.py: sensors do not see recorders (phases)"),
        (f"{GUEST}/history.py", "def look():\n    from . import settle\n", "history.py: recorders do not see policy (settle)"),
        (f"{GUEST}/oom.py", "from . import events\nevents.began.subscribe(print)\n", "oom.py: boot.py alone subscribes"),
        (f"{GUEST}/oom.py", "def f():\n    global x\n" * 16, "16 `global` statements, at most 15"),
    ],
)
def test_a_violation_is_found(tmp_path, name, text, expected):
    status, output = check(house(tmp_path, {**LAWFUL, name: text}))
    assert status == 1 and expected in output and len(output.splitlines()) == 1


def test_a_circle_of_the_guest_is_found(tmp_path):
    """Imports inside functions count."""
    files = {**LAWFUL, f"{GUEST}/oom.py": "from . import peaks\n", f"{GUEST}/peaks.py": "def f():\n    from .oom import note\n"}
    assert check(house(tmp_path, files)) == (1, f"{GUEST}: a circle of imports: oom peaks\n")
