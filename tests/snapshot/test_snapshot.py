# SPDX-License-Identifier: Apache-2.0
"""Every figure of the C reader against Python's pickle, on real snapshots of real wheels."""

import copy
import json
import os
import pickle
import subprocess

import expected
import pytest

WHEELS = ["torch-2.6.0", "torch-2.11.0", "torch-2.15.0"]
FILES = ["dump", "protocol2", "protocol3", "protocol4", "protocol5", "segments", "cpp", "run"]


def with_stacks(dumped):
    """The dump with the numbers of stacks and frames replaced by what they stand for."""
    frames = [tuple(frame[:3]) for frame in dumped["frames"]]
    stacks = [[frames[number] for number in stack] for stack in dumped["stacks"]]
    for segment in dumped["segments"]:
        segment["stack"] = stacks[segment["stack"]]
        for block in segment["blocks"]:
            block[4] = stacks[block[4]]
    for trace in dumped["traces"]:
        for event in trace["events"]:
            event[4] = stacks[event[4]]
    return dumped


def compare(dumped, loaded):
    top = expected.top_of(loaded)
    dumped = with_stacks(dumped)
    assert dumped["totals"] == expected.totals_of(top)
    assert sorted(map(str, dumped["holders"])) == sorted(map(str, expected.holders_of(top)))
    assert [holder[0] for holder in dumped["holders"]] == sorted((h[0] for h in dumped["holders"]), reverse=True)
    assert dumped["segments"] == expected.segments_of(top)
    assert dumped["traces"] == expected.traces_of(top)
    assert dumped["annotations"] == expected.annotations_of(top)
    assert dumped["settings"] == expected.settings_of(top)
    assert dumped["out_of_memory"] == expected.out_of_memory_of(top)


def compare_file(dump, path):
    compare(dump(path), pickle.loads(path.read_bytes()))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("wheel", WHEELS)
def test_every_figure(dump, recorded, wheel, name):
    path = recorded(wheel) / f"{name}.pickle"
    loaded = expected.top_of(pickle.loads(path.read_bytes()))
    assert loaded["segments"]
    if name not in ("segments", "run"):
        assert len(loaded["device_traces"][0]) > 100
        assert expected.out_of_memory_of(loaded)
        assert expected.holders_of(loaded)[0][3].endswith("record.py")
    compare_file(dump, path)


@pytest.mark.parametrize("wheel", WHEELS)
def test_expandable_segments(dump, recorded, wheel):
    path = recorded(wheel, "expandable_segments:True,roundup_power2_divisions:4") / "dump.pickle"
    assert any(segment["is_expandable"] for segment in pickle.loads(path.read_bytes())["segments"])
    compare_file(dump, path)


@pytest.mark.parametrize("wheel", WHEELS)
def test_totals_are_those_of_memory_stats(dump, recorded, wheel):
    folder = recorded(wheel)
    totals = dump(folder / "protocol4.pickle")["totals"]
    stats = json.loads((folder / "stats.json").read_text())
    assert totals["reserved"] == stats["reserved_bytes.all.current"]
    assert totals["allocated"] == stats["allocated_bytes.all.current"]
    assert totals["active"] == stats["active_bytes.all.current"]
    assert totals["segments"] == stats["segment.all.current"]
    assert totals["live_blocks"] == stats["allocation.all.current"]


def test_stacks_are_kept_once(dump, recorded):
    dumped = dump(recorded("torch-2.11.0") / "dump.pickle")
    assert len({tuple(stack) for stack in dumped["stacks"]}) == len(dumped["stacks"])
    assert len({tuple(frame) for frame in dumped["frames"]}) == len(dumped["frames"])


# ---- forms that are made from a real one, or by hand ----


@pytest.fixture
def snapshot(recorded):
    return pickle.loads((recorded("torch-2.11.0") / "dump.pickle").read_bytes())


def check(dump, folder, loaded, protocol=4):
    path = folder / "made.pickle"
    path.write_bytes(pickle.dumps(loaded, protocol))
    compare_file(dump, path)


def test_filtered_by_somebody(dump, snapshot, tmp_path):
    """A list of a person's own comes first and holds entries of the trace, out of order."""
    trace = snapshot["device_traces"][0]
    check(dump, tmp_path, {"mine": trace[50:10:-1], **snapshot, "device_traces": [[], trace[20:80][::-1], trace[5:10]]})


def test_history_of_old_blocks(dump, snapshot, tmp_path):
    old = copy.deepcopy(snapshot["segments"])
    for segment in old:
        for block in segment["blocks"]:
            frames = block.pop("frames", [])
            requested = block.pop("requested_size")
            block.pop("address")
            if block["state"] != "inactive":
                block["history"] = [{"addr": 1, "real_size": requested, "frames": frames}, {"addr": 2, "real_size": 3}]
    check(dump, tmp_path, old)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_deep_stacks(dump, snapshot, tmp_path, protocol):
    """More frames than a pickler writes at a time, alike and not."""
    trace = snapshot["device_traces"][0]
    for number, entry in enumerate(trace[:8]):
        entry["frames"] = [{"name": f"f{depth}", "filename": "deep.py", "line": depth} for depth in range(999 + number)]
    trace[8]["frames"] = list(trace[7]["frames"]) * 3
    trace[9]["frames"] = trace[8]["frames"]
    check(dump, tmp_path, snapshot, protocol)


def test_unusual_texts_and_numbers(dump, snapshot, tmp_path):
    entry = snapshot["device_traces"][0][0]
    entry["user_metadata"] = 'näïve "quoted" \\ \n 名前 ' + "long " * 1000
    entry["compile_context"] = None
    entry["stream"] = (1 << 64) - 2  # 2^64 - 1 says "unknown"
    entry["addr"] = (1 << 63) + 512
    entry["new_key_of_later"] = [{"a": (1, 2, 3)}, None, 1.5]
    snapshot["segments"][0]["stream"] = -5
    check(dump, tmp_path, snapshot)


def test_many_events(dump, snapshot, tmp_path):
    """Several windows of the reader's buffer, by the Python pickler that never shares what is equal."""
    trace = snapshot["device_traces"][0]
    snapshot["device_traces"] = [copy.deepcopy(trace) for _ in range(20)]
    check(dump, tmp_path, snapshot)


# ---- hostile ----


class Harm:
    def __reduce__(self):
        return os.system, ("touch harmed",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_called(dump_program, tmp_path, protocol):
    path = tmp_path / "harm.pickle"
    path.write_bytes(pickle.dumps({"segments": [Harm()]}, protocol))
    done = subprocess.run([dump_program, path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "GLOBAL" in done.stderr and "byte " in done.stderr
    assert not (tmp_path / "harmed").exists()


def test_cycle(dump_program, tmp_path):
    ring = []
    ring.append(ring)
    path = tmp_path / "ring.pickle"
    path.write_bytes(pickle.dumps({"segments": ring}))
    done = subprocess.run([dump_program, path], capture_output=True, text=True)
    assert done.returncode == 1 and "malformed" in done.stderr


def test_cut_files(dump_program, recorded, tmp_path):
    """A real file cut at many places: a failure that names the offset."""
    whole = (recorded("torch-2.11.0") / "dump.pickle").read_bytes()
    path = tmp_path / "cut.pickle"
    for size in range(0, len(whole), len(whole) // 97):
        path.write_bytes(whole[:size])
        done = subprocess.run([dump_program, path], capture_output=True, text=True)
        assert done.returncode == 1, size
        assert "byte " in done.stderr
