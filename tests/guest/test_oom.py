# SPDX-License-Identifier: Apache-2.0
"""Out-of-memories: their place, and which of them ended the process. On the FAKE allocator of fake_cuda.py."""

import pytest

FORKED = True  # ../fork_servers.py

HEAD = """\
import os, sys, threading
import torch, fake_cuda
fake_cuda.start()
fake_cuda.use(100)
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=.1)

def update():
    weight.sum().backward()
    optimizer.step()

def out():
    fake_cuda.run_out(1 << 30)

def swallowed():
    try:
        out()
    except RuntimeError:
        pass
"""


@pytest.mark.parametrize(
    "body, status, ended",
    [
        ("out()", 1, True),
        ("swallowed(); sys.exit(4)", 4, True),
        ("swallowed(); os._exit(4)", 4, True),
        ("swallowed(); raise ValueError('no batch size found')", 1, True),
        ("swallowed(); sys.exit(0)", 0, False),
        ("swallowed(); update(); sys.exit(4)", 4, False),
        ("sys.excepthook = lambda *a: None; out()", 1, True),
    ],
)
def test_what_ended_the_process(run_with, wheel, body, status, ended):
    done = run_with(wheel, HEAD + body)
    document = done.document
    assert done.status == status and document["out_of_memory_ended_process"] is ended, done.stderr
    assert document["hook_error"] is None
    assert done.words[4] == 1
    if "update" in body:
        assert document["out_of_memory"] is None
        handled = document["handled_out_of_memory"][0]
        assert handled["line"] == 13 and handled["count"] == 1 and handled["requested_bytes"] == 1 << 30
        return
    oom = document["out_of_memory"]
    assert (oom["at"]["line"], oom["at"]["function"]) == (13, "out")
    assert oom["requested_bytes"] == 1 << 30 and oom["free_bytes"] == 5 and oom["allocated_bytes"] == 100
    assert [row["function"] for row in oom["stack"][:2]] == ["run_out", "out"]
    assert oom["step"] == 1 and oom["backward"] is False


def test_tries_before_the_last_one_were_handled(run_with, wheel):
    done = run_with(wheel, HEAD + "swallowed(); update(); swallowed(); swallowed(); out()")
    document = done.document
    assert document["out_of_memory_ended_process"] and document["hook_error"] is None, done.stderr
    assert [(row["line"], row["count"]) for row in document["handled_out_of_memory"]] == [(13, 3)]
    assert document["out_of_memory"]["step"] == 2


def test_failed_tests_are_not_handled(run_with, wheel):
    done = run_with(wheel, HEAD + """
import unittest
class Case(unittest.TestCase):
    def test_a(self):
        out()
    def test_b(self):
        out()
    def test_c(self):
        update()
        swallowed()
        update()
unittest.main()
""")
    assert done.document["out_of_memory_ended_process"], done.stderr
    assert [row["count"] for row in done.document["handled_out_of_memory"]] == [1]


@pytest.mark.parametrize("body, fraction", [("return 0.25", 0.25), ("raise RuntimeError", None)])
def test_the_share_that_the_program_has_set_itself(run_with, wheel, body, fraction):
    done = run_with(wheel, HEAD + "def share(device):\n    %s\ntorch._C._cuda_getMemoryFraction = share\nout()" % body)
    assert done.document["out_of_memory"]["fraction"] == fraction and done.document["hook_error"] is None


def test_message_and_traceback(run_with, wheel):
    done = run_with(wheel, HEAD + "out()")
    assert done.document["out_of_memory"]["message"].startswith("CUDA out of memory. Tried")
    assert "_tonnage_guest" not in done.stderr and "sitecustomize" not in done.stderr
    assert done.document["exception"] is None


def test_phase_forward_and_backward(run_with, wheel):
    done = run_with(wheel, HEAD + """
class Net(torch.nn.Module):
    def forward(self, x):
        swallowed()
        return Bad.apply(x)

class Bad(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 1
    @staticmethod
    def backward(context, gradient):
        out()

loss = Net()(weight).sum()
import json, glob
path = glob.glob(os.environ["TONNAGE_RUN"] + "/guest/*.json")[0]
print(json.load(open(path))["out_of_memory"]["phase"])
loss.backward()
""")
    assert done.stdout == "forward\n", done.stderr
    oom = done.document["out_of_memory"]
    assert oom["phase"] == "backward" and oom["backward"] is True and done.document["out_of_memory_ended_process"]


def test_other_exception_has_its_place(run_with, wheel):
    done = run_with(wheel, HEAD + "def broken():\n    raise KeyError('x')\nbroken()")
    exception = done.document["exception"]
    assert exception["type"] == "KeyError" and exception["at"]["function"] == "broken"
    assert done.document["out_of_memory"] is None and not done.document["out_of_memory_ended_process"]


def test_the_message_of_an_exception_has_no_colours(run_with, wheel):
    done = run_with(wheel, HEAD + "raise ValueError('\\x1b[1;31m\\x1b]8;;https://a\\x07\\n(1) in [1m] \\x1b[0;31mWeights only\\x1b[0m load')")
    assert done.document["exception"]["message"] == "(1) in [1m] Weights only load"


RELAYED = """
import torch.multiprocessing as processes
from torch.utils.data import DataLoader

class Data:
    def __len__(self):
        return 4
    def __getitem__(self, index):
        raise KeyError(index)

def rank(number):
    if number == 1:
        raise ValueError("two of\\nthem")
"""


@pytest.mark.parametrize("last, function, message", [
    ("processes.start_processes(rank, nprocs=2, start_method='fork')", "rank", "Process 1 terminated with the following error: ValueError: two of"),
    ("list(DataLoader(Data(), num_workers=1))", "__getitem__", "Caught KeyError in DataLoader worker process 0: KeyError: 0"),
])  # fmt: skip
def test_an_exception_of_another_process_is_told_with_its_place(run_with, wheel, last, function, message):
    done = run_with(wheel, HEAD + RELAYED + last)
    exception = done.document["exception"]
    assert exception["message"] == message and exception["at"]["function"] == function, exception


def test_library_oom_without_observer(run_with, wheel):
    done = run_with(wheel, HEAD + "raise RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x')")
    oom = done.document["out_of_memory"]
    assert done.document["out_of_memory_ended_process"] and oom["requested_bytes"] is None
    assert oom["at"]["function"] == "<module>"


def test_reported_by_unittest(run_with, wheel):
    done = run_with(wheel, HEAD + """
import unittest
class Case(unittest.TestCase):
    def test_a(self):
        out()
    def test_b(self):
        update()
unittest.main()
""")
    assert done.status == 1 and done.document["out_of_memory_ended_process"]
    assert done.document["out_of_memory"]["at"]["line"] == 13


def test_snapshot_at_oom_and_own_recorder(run_with, wheel, tmp_path):
    target = tmp_path / "peak.pickle"
    done = run_with(wheel, HEAD + """
update()
out_before = torch.cuda.memory._snapshot()
assert out_before["device_traces"] == [[]] and out_before["segments"][0]["blocks"][0]["frames"] == []
torch.cuda.memory._record_memory_history(max_entries=7)
count = len(fake_cuda.recordings)
update()
assert len(fake_cuda.recordings) == count, "ours stays away"
assert torch.cuda.memory._snapshot()["device_traces"] == [[{"action": "alloc"}]]
torch.cuda.memory._record_memory_history(enabled=None)
update()
assert fake_cuda.recordings[-1][0] == "all", "ours is back"
assert torch.cuda.memory._snapshot()["device_traces"] == [[]]
out()
""", TONNAGE_SNAPSHOT=str(target))
    assert "AssertionError" not in done.stderr, done.stderr
    assert done.document["snapshot"] == str(target) + ".oom" and (tmp_path / "peak.pickle.oom").exists()
    assert target.exists() and done.document["out_of_memory"]["largest_free_block_bytes"] == 4096


# ---- an out-of-memory that the program got over ----

SURVIVED = """
def smaller():
    fake_cuda.use(8 << 20)

def step(size):
    try:
        out()
    except RuntimeError as error:
        %s
%s
"""


@pytest.mark.parametrize(
    "handler, after, ended",
    [
        # it went on with a smaller batch, and failed of something else
        ("smaller()", "step(1); raise ValueError('counts.max() of nothing')", False),
        ("smaller(); raise ValueError('the smaller batch fails')", "step(1)", False),
        ("smaller(); sys.exit(3)", "step(1)", False),
        ("smaller()", "step(1); step(2); sys.exit(3)", False),
        # it reported it
        ("raise ValueError('reduce the batch')", "step(1)", True),
        ("raise ValueError('reduce the batch') from None", "step(1)", True),
        ("smaller(); raise ValueError('even the smaller batch fails') from error", "step(1)", True),
        ("smaller(); raise", "step(1)", True),
        ("print('out of memory'); sys.exit(1)", "step(1)", True),
        ("fake_cuda.use(4096); sys.exit(1)", "step(1)", True),  # a loss that is read is no work
        ("smaller(); out()", "step(1)", True),
        ("smaller(); raise RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED')", "step(1)", True),
    ],
)
def test_what_the_program_got_over(run_with, wheel, handler, after, ended):
    document = run_with(wheel, HEAD + SURVIVED % (handler, after)).document
    assert document["out_of_memory_ended_process"] is ended and document["hook_error"] is None
    assert (document["out_of_memory"] is None) is not ended
    counts = [row["count"] for row in document["handled_out_of_memory"]]
    if not ended:
        assert counts == ([2] if "step(2)" in after else [1])
        assert document["exception"] is None or document["exception"]["type"] == "ValueError"
    else:
        assert counts == ([1] if handler.count("smaller(); out()") or "CUBLAS" in handler else [])


PYTEST = """
import pytest

def test_expected():
    with pytest.raises(torch.OutOfMemoryError):
        out()

def test_got_over():
    swallowed()
    assert sum([1]) == 2, "values are made up"
"""

UNITTEST = """
import unittest
class Case(unittest.TestCase):
    def test_expected(self):
        with self.assertRaises(torch.OutOfMemoryError):
            out()
    def test_fails(self):
        swallowed()
        self.assertEqual(1, 2)
if __name__ == "__main__":
    unittest.main()
"""


def test_one_that_a_test_expected_is_not_the_verdict(run_with, wheel, tmp_path):
    (tmp_path / "test_it.py").write_text(HEAD + PYTEST)
    document = run_with(wheel, ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]).document
    assert not document["out_of_memory_ended_process"] and document["out_of_memory"] is None
    assert [row["count"] for row in document["handled_out_of_memory"]] == [2]


def test_one_that_assertRaises_expected_is_not_the_verdict(run_with, wheel):
    done = run_with(wheel, HEAD + UNITTEST)
    assert done.status == 1 and not done.document["out_of_memory_ended_process"], done.stderr
    assert done.document["out_of_memory"] is None
    assert [row["count"] for row in done.document["handled_out_of_memory"]] == [2]


def test_one_that_a_test_failed_of_still_is(run_with, wheel, tmp_path):
    (tmp_path / "test_it.py").write_text(HEAD + PYTEST + "\ndef test_out():\n    out()\n\ndef test_last():\n    assert False\n")
    document = run_with(wheel, ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]).document
    assert document["out_of_memory_ended_process"] and document["out_of_memory"]["at"]["function"] == "out"
