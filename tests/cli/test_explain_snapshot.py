# SPDX-License-Identifier: Apache-2.0
"""`tonnage explain --snapshot`: an error text and a memory snapshot, joined. Snapshots are written here, by hand."""

import gzip
import json
import pickle
import re

import pytest

MIB = 1 << 20
GIB = 1 << 30
BASE = 0x7F0000000000
TEXT = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU {device} has a total capacity of "
    "11.75 GiB of which 100.00 MiB is free. Including non-PyTorch memory, this process has 11.65 GiB memory in use. Of "
    "the allocated memory 10.00 GiB is allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated.\n"
)


class Trace:
    """The history of one segment, block by block; the snapshot is as the last event left it."""

    def __init__(self, total):
        self.total, self.events, self.blocks = total, [], {}
        self.add("segment_alloc", BASE, total, "train")

    def add(self, action, address, size, function, line=7):
        where = "device_free" if action == "oom" else "addr"
        frames = [{"name": "empty", "filename": "/opt/lib/python3.11/site-packages/torch/functional.py", "line": 3},
                  {"name": function, "filename": "/work/train.py", "line": line}]  # fmt: skip
        self.events.append({"action": action, where: address, "size": size, "stream": 0, "frames": frames,
                            "time_us": 1000 + len(self.events)})  # fmt: skip

    def alloc(self, offset, size, function, line):
        self.add("alloc", BASE + offset, size, function, line)
        self.blocks[offset] = (size, self.events[-1]["frames"])

    def free(self, offset):
        size, _ = self.blocks.pop(offset)
        self.add("free_requested", BASE + offset, size, "free")
        self.add("free_completed", BASE + offset, size, "free")

    def pieces(self):
        at = 0
        for offset, (size, frames) in sorted(self.blocks.items()):
            if offset > at:
                yield {"address": BASE + at, "size": offset - at, "requested_size": 0, "state": "inactive"}
            yield {"address": BASE + offset, "size": size, "requested_size": size, "state": "active_allocated",
                   "frames": frames}  # fmt: skip
            at = offset + size
        if at < self.total:
            yield {"address": BASE + at, "size": self.total - at, "requested_size": 0, "state": "inactive"}

    def snapshot(self, **settings):
        live = sum(size for size, _ in self.blocks.values())
        segment = {"device": 0, "address": BASE, "total_size": self.total, "allocated_size": live, "active_size": live,
                   "requested_size": live, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                   "is_expandable": False, "frames": [], "blocks": list(self.pieces())}  # fmt: skip
        return {"segments": [segment], "device_traces": [self.events],
                "allocator_settings": {"expandable_segments": False, **settings}}  # fmt: skip


def in_pieces():
    """Every other of ten blocks of 1 GiB is free, and 3 GiB are wanted."""
    trace = Trace(10 * GIB)
    for block in range(10):
        trace.alloc(block * GIB, GIB, "keep" if block % 2 else "drop", 20 + block % 2)
    for block in range(0, 10, 2):
        trace.free(block * GIB)
    trace.add("oom", 100 * MIB, 3 * GIB, "want", 41)
    return trace


def full():
    trace = Trace(10 * GIB)
    for block in range(9):
        trace.alloc(block * GIB, GIB, "layer", 30)
    trace.alloc(9 * GIB, GIB // 2, "head", 31)
    trace.add("oom", 100 * MIB, 3 * GIB, "want", 41)
    return trace


@pytest.fixture
def explain(tonnage, schema):
    """explain(snapshot, text): the JSON and what a person reads."""

    def run(snapshot, text=None, pack=lambda data: data, width=100):
        (tonnage.cwd / "s.pickle").write_bytes(pack(pickle.dumps(snapshot)))
        words = ["explain", "--snapshot", "s.pickle"]
        if text is not None:
            (tonnage.cwd / "error.log").write_text(text)
            words.append("error.log")
        shown, found = tonnage(*words), tonnage(*words, "--json=-")
        assert (shown.returncode, shown.stderr, found.returncode, found.stderr) == (0, "", 0, "")
        assert max(len(line) for line in shown.stdout.splitlines()) <= width
        document = json.loads(found.stdout)
        schema("explain", document)
        return document, shown.stdout

    return run


def test_fragmentation(explain):
    document, shown = explain(in_pieces().snapshot(), TEXT.format(asked="3.00 GiB", device=0))
    snapshot = document["snapshot"]
    assert len(document["errors"]) == 1
    assert (snapshot["error"], snapshot["moment"], snapshot["device_index"]) == (0, "out_of_memory", 0)
    assert snapshot["requested_bytes"] == 3 * GIB
    assert snapshot["free_bytes"] == 100 * MIB
    assert snapshot["reserved_bytes"] == 10 * GIB
    assert snapshot["allocated_bytes"] == 5 * GIB
    assert snapshot["largest_free_block_bytes"] == GIB
    assert sum(snapshot["by_category"].values()) == 10 * GIB
    assert snapshot["inferred"] is True
    assert snapshot["likely_cause"] == "fragmentation"
    assert "expandable_segments:True" in snapshot["do"][0]
    assert (snapshot["at"]["line"], snapshot["at"]["function"]) == (41, "want")
    assert [(row["line"], row["bytes"], row["blocks"]) for row in snapshot["holders"]] == [(21, 5 * GIB, 5)]
    assert "5.00 GiB is cached and unused, enough for the 3.00 GiB asked for" in " ".join(shown.split())
    assert "largest free block 1.00 GiB" in shown
    assert "asked by: /work/train.py:41 want" in shown


def test_fragmentation_with_expandable_segments(explain):
    document, _ = explain(in_pieces().snapshot(expandable_segments=True))
    assert document["snapshot"]["expandable_segments"] is True
    assert "on already" in document["snapshot"]["do"][0]


def test_a_full_card(explain):
    """The text alone would say fragmentation: 1.5 GiB are idle in it. The snapshot knows better."""
    document, shown = explain(full().snapshot(), TEXT.format(asked="3.00 GiB", device=0).replace("1.50", "4.50"))
    snapshot = document["snapshot"]
    assert document["errors"][0]["likely_cause"] == "fragmentation"
    assert snapshot["likely_cause"] == "model_or_batch_too_big"
    assert [(row["line"], row["bytes"]) for row in snapshot["holders"]] == [(30, 9 * GIB), (31, GIB // 2)]
    assert "train.py:30" in snapshot["do"][0]
    assert "counts before its likely cause" in shown


def test_what_was_freed_later_was_held_then(explain):
    trace = full()
    for block in range(9):
        trace.free(block * GIB)
    snapshot = explain(trace.snapshot())[0]["snapshot"]
    assert snapshot["moment"] == "out_of_memory"
    assert snapshot["allocated_bytes"] == 9 * GIB + GIB // 2
    assert snapshot["holders"][0]["bytes"] == 9 * GIB


def test_the_failed_request_of_the_text_is_found(explain):
    """Three requests failed, the program got over two; the text is of the second."""
    trace = Trace(10 * GIB)
    trace.add("oom", 1, 20 * GIB, "first", 51)
    trace.alloc(0, GIB, "keep", 20)
    trace.add("oom", 2, 30 * GIB, "second", 52)
    trace.alloc(GIB, GIB, "keep", 20)
    trace.add("oom", 3, 40 * GIB, "third", 53)
    log = "nothing\n" + TEXT.format(asked="30.00 GiB", device=0)
    snapshot = explain(trace.snapshot(), log)[0]["snapshot"]
    assert (snapshot["error"], snapshot["requested_bytes"], snapshot["at"]["line"]) == (0, 30 * GIB, 52)
    assert snapshot["allocated_bytes"] == GIB
    assert snapshot["likely_cause"] == "too_big_single_request"
    assert explain(trace.snapshot())[0]["snapshot"]["at"]["line"] == 53


@pytest.mark.parametrize("asked, device", [("3.10 GiB", 0), ("3.00 GiB", 1)])
def test_a_text_of_another_failure(explain, asked, device):
    document, shown = explain(full().snapshot(), TEXT.format(asked=asked, device=device))
    assert document["snapshot"]["error"] is None
    assert document["snapshot"]["requested_bytes"] == 3 * GIB
    assert "may be of different failures" in " ".join(shown.split())


def test_small_requests_are_printed_as_segments(explain):
    """PyTorch's message says 20.00 MiB where 5 MiB were asked for."""
    trace = full()
    trace.add("oom", 7, 5 * MIB, "small", 61)
    snapshot = explain(trace.snapshot(), TEXT.format(asked="20.00 MiB", device=0))[0]["snapshot"]
    assert (snapshot["error"], snapshot["at"]["line"]) == (0, 61)
    assert snapshot["largest_free_block_bytes"] == GIB // 2
    assert "another stream or pool" in snapshot["reason"]


def test_no_failed_request(explain):
    trace = Trace(2 * GIB)
    trace.alloc(0, GIB, "keep", 20)
    document, shown = explain(trace.snapshot())
    snapshot = document["snapshot"]
    assert (snapshot["moment"], snapshot["requested_bytes"], snapshot["likely_cause"]) == ("end", None, "unknown")
    assert snapshot["holders"][0]["bytes"] == GIB
    assert "has no failed request" in shown


def test_without_a_trace(explain):
    """Segments alone, as torch.cuda.memory_snapshot() gives them."""
    snapshot = explain(full().snapshot()["segments"])[0]["snapshot"]
    assert (snapshot["moment"], snapshot["allocated_bytes"]) == ("end", 9 * GIB + GIB // 2)
    assert snapshot["holders"][0]["line"] == 30


def test_a_text_without_errors(explain):
    document, shown = explain(full().snapshot(), "all is well\n")
    assert document["errors"] == []
    assert document["snapshot"]["error"] is None
    assert "No out-of-memory error in this text" in shown
    assert "asked for 3.00 GiB" in shown


def test_compressed(explain):
    assert explain(full().snapshot(), pack=gzip.compress)[0] == explain(full().snapshot())[0]


def test_hostile_names(explain):
    trace = full()
    for event in trace.events:
        event["frames"][1]["filename"] = "/work/\x1b[31m\n" + "x" * 5000 + '"<script>\\.py'
    document, shown = explain(trace.snapshot(), width=350)  # a path stays whole, up to 300 bytes
    assert "<script>" in document["snapshot"]["at"]["file"]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown)


def test_the_text_from_standard_input(tonnage):
    (tonnage.cwd / "s.pickle").write_bytes(pickle.dumps(full().snapshot()))
    text = TEXT.format(asked="3.00 GiB", device=0)
    done = tonnage("explain", "-", "--snapshot=s.pickle", "--json", "out.json", input=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tonnage.cwd / "out.json").read_text())["snapshot"]["error"] == 0
    assert "Out of memory on GPU 0" in done.stdout and "The snapshot: GPU 0" in done.stdout


@pytest.mark.parametrize("content, words", [
    (None, "cannot open"), (b"", "byte 0: the file is empty"), (b"no pickle", "byte 0: not a pickle"),
    (pickle.dumps(full().snapshot())[:-9], "the file ends in the middle"),
    (gzip.compress(pickle.dumps([]), mtime=0)[:-1], "the gzip data ends in the middle"),
])  # fmt: skip
def test_snapshots_that_cannot_be_read(tonnage, content, words):
    if content is not None:
        (tonnage.cwd / "s.pickle").write_bytes(content)
    done = tonnage("explain", "--snapshot", "s.pickle")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tonnage: explain: .*s\.pickle.*\n", done.stderr)
    assert words in done.stderr


def test_wrong_usage(tonnage):
    done = tonnage("explain", "--snapshot")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--snapshot wants a file" in done.stderr


def test_a_snapshot_is_not_written_over(tonnage):
    data = pickle.dumps(full().snapshot())
    (tonnage.cwd / "s.pickle").write_bytes(data)
    done = tonnage("explain", "--snapshot", "s.pickle", "--json=s.pickle")
    assert done.returncode == 2
    assert (tonnage.cwd / "s.pickle").read_bytes() == data
