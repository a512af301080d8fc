# SPDX-License-Identifier: Apache-2.0
"""Trials whose processes are forked from one that has imported PyTorch find what fresh processes find, to the byte; and so do
runs of tests that are forked (../fork_servers.py)."""

import json
import os
import re
import subprocess
import sys

import fork_servers
import pytest
from conftest import ENDS, MAIN, ROOT, TONNAGE, WHEELS, python_of, run_tonnage
from test_notebooks import cells_of, notebook_of

PROGRAM = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

data = DataLoader(TensorDataset(torch.zeros(96, 1024)), batch_size=32)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(1024, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 1024))
                              for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(30):
    for batch, in data:
        loss = model(batch.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
torch.save(model.state_dict(), "model.pt")
"""


@pytest.fixture
def fix(tmp_path):
    def run(wheel, *options, program=PROGRAM):
        (tmp_path / "train.py").write_text(program)
        command = [TONNAGE, "fix", "--quiet", "--gpu", "rtx3060", "--memory", "1200MiB", "--json", "fix.json", *options, "--",
                   python_of(wheel), "train.py"]  # fmt: skip
        done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert not (tmp_path / "model.pt").exists()
        return json.loads((tmp_path / "fix.json").read_text()), done.stderr

    return run


@pytest.mark.parametrize("wheel", WHEELS)
def test_a_fork_is_the_program(fix, monkeypatch, wheel):
    """A forked trial of the unchanged program has shown the same as a fresh one, else the others would not be forked; and so has one under
    a change that only says that it was applied."""
    monkeypatch.setenv("TONNAGE_TRY", "nothing")
    document, words = fix(wheel, "--seconds=1")
    assert document["not_forked_because"] is None and document["forked_trials"] == document["trials"] - 1 >= 3, words
    assert any(change["fits"] for change in document["changes"]), document
    row = next(change for change in document["changes"] if change["id"] == "nothing")
    assert (row["outcome"], row["saved_bytes"], row["needed_bytes"]) == ("no_help", 0, document["unchanged"]["needed_bytes"]), row


OTHERWISE = """\
import sys
forked = "torch" in sys.modules
import torch

held = torch.empty(1300 << 20, dtype=torch.uint8, device="cuda")
more = torch.empty((8 if forked else 4) << 20, dtype=torch.uint8, device="cuda")
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(10):
    model(torch.ones(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_what_a_fork_alone_takes_is_no_saving_and_no_loss(fix, monkeypatch):
    """As with garbage that Python's collector finds later there: a trial that acted on nothing is made again in a new process."""
    monkeypatch.setenv("TONNAGE_TRY", "nothing")
    document, words = fix("torch-2.11.0", "--seconds=1", program=OTHERWISE)
    assert document["not_forked_because"] is None and document["forked_trials"] >= 1, words
    row = next(change for change in document["changes"] if change["id"] == "nothing")
    assert (row["outcome"], row["saved_bytes"]) == ("no_help", 0), row


@pytest.mark.long
def test_forked_trials_find_what_fresh_ones_find(fix):
    forked, fresh = fix("torch-2.11.0", "--seconds", "0")[0], fix("torch-2.11.0", "--seconds", "0", "--fresh")[0]
    found, again = (
        {row["id"]: (row["outcome"], row["saved_bytes"], row["peak_reserved_bytes"], row["patch"]) for row in document["changes"]}
        for document in (forked, fresh)
    )
    both = found.keys() & again.keys()  # what is tried last depends on which trial ended first
    assert len(both) >= 5 and {name: found[name] for name in both} == {name: again[name] for name in both}


# One write for all: a rank of torchrun is started with -u, where print() writes each word on its own, among those of other ranks.
WHERE = """\
import os, sys, torch
where = (sys.argv, sys.orig_argv[1:], sys.path, __name__, globals().get("__file__"), os.getcwd(), sys._getframe().f_back)
started = sorted(name for name in os.environ if "FORK" in name or "TEST_" in name), torch.rand(1).shape, "torch" in sys.modules
sys.stdout.write(f"{where}\\n{started}\\n")
"""
RANK = """
model = torch.nn.Linear(512, 512).cuda(int(os.environ["LOCAL_RANK"]))
torch.distributed.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(8, 512, device=next(model.parameters()).device)).sum().backward()
    optimizer.step()
torch.distributed.destroy_process_group()
"""
WRITERS = "import safetensors.torch\nprint(torch._C.PyTorchFileWriter, safetensors.torch.serialize_file.__module__)\n"
FULL = "held = [torch.zeros(1 << 28, device='cuda') for _ in range(99)]"
RUNS = {  # name -> (words after Python, options)
    "script": (["train.py", "--lr", "1"], ["--steps=all"]),
    "settles": (["train.py"], ["--no-detail"]),
    "out_of_memory": (["full.py"], ["--gpu=rtx3060"]),
    "text": (["-c", WHERE + FULL, "-v", "word"], []),
    "fails": (["fails.py"], ["--writes=allow"]),
}


def without_times(report):
    """What a run must have in common with another of the same program. A forked one is asked about no call that passes libc."""
    host = {name: value for name, value in report["host"].items() if name not in ("seconds", "peak_rss_bytes")}
    network = {name: value for name, value in report["network"].items() if name != "raw_calls"}
    return {**report, "host": host, "network": network, "scratch": None}


@pytest.mark.parametrize("wheel, name", [(MAIN, name) for name in RUNS] + [pytest.param(end, "script", marks=pytest.mark.long) for end in ENDS])
def test_a_forked_run_is_the_run(tmp_path, monkeypatch, wheel, name):
    """Output, status and report, every figure and line of it."""
    made, fork = [], fork_servers.run_forked
    monkeypatch.setattr(fork_servers, "run_forked", lambda *words, **more: made.append(fork(*words, **more)) or made[-1])
    monkeypatch.delenv("TONNAGE_FRESH", raising=False)
    (tmp_path / "train.py").write_text(WHERE + PROGRAM.replace("range(30)", "range(3)"))
    (tmp_path / "full.py").write_text(WHERE + FULL)
    (tmp_path / "fails.py").write_text(WHERE + WRITERS + "print(torch.zeros(3, device='cuda'))\nraise KeyError('x')")
    words, options = RUNS[name]
    forked, fresh = (run_tonnage(options, [python_of(wheel), *words], tmp_path, forked=forked) for forked in (True, False))
    assert (forked.status, forked.stdout) == (fresh.status, fresh.stdout), forked.explain()
    if wheel == "torch-2.15.0":  # its import starts ldconfig: in the server
        assert (forked.report["files"]["unseen_programs"], fresh.report["files"].pop("unseen_programs")) == ([], ["ldconfig"])
        fresh.report["files"]["unseen_programs"] = []
    assert without_times(forked.report) == without_times(fresh.report), forked.explain()
    assert fresh.stdout.count("\n") >= 2 and len(made) == 1 and made[0] is not None


def test_a_server_is_lent_to_who_asks_for_the_same(tmp_path, monkeypatch):
    """As in `make test`, where all processes of pytest ask one broker (../fork_broker.py); it ends when its input does. What a server has
    imported makes no difference: here it is quickly imported."""
    monkeypatch.setattr(fork_servers, "IMPORTS", ("sqlite3",))
    command = [sys.executable, str(ROOT / "tests/fork_broker.py"), str(tmp_path / "broker")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdout.readline() == b"ready\n"
        monkeypatch.setenv(fork_servers.BROKER, str(tmp_path / "broker"))
        one, same, other = (fork_servers.supervised(TONNAGE, python_of(MAIN), (), imports) for imports in (("sqlite3",), ("sqlite3",), ("json",)))
        sockets = [os.fstat(server.channel.fileno()).st_ino for server in (one, same, other)]
        assert sockets[0] == sockets[1] != sockets[2]
        (tmp_path / "train.py").write_text("import sys\nprint('sqlite3' in sys.modules)\n")
        runs = [run_tonnage([], [python_of(MAIN), "train.py"], tmp_path, forked=True) for _ in range(2)]
        assert [run.stdout for run in runs] == ["True\n"] * 2, runs[0].explain()
        for server in (one, same, other):
            server.channel.close()  # else it does not see its broker's end, which is waited for
        broker.communicate()
    assert broker.returncode == 0 and not (tmp_path / "broker").exists()


CELLS = [WHERE + "print([name for name in os.environ if name.startswith('TONNAGE_CELLS')], os.getsid(0) == os.getpid(), os.isatty(0))",
         "x = torch.ones(8 << 20, device='cuda')\nx * 2", FULL, "print('goes on')"]  # fmt: skip


def test_a_forked_notebook_is_the_notebook(tmp_path, monkeypatch):
    """The runner and the kernel that Jupyter starts (../forked/forked_ranks.py). The kernel's own file and an address have other names each time."""
    made, fork = [], fork_servers.run_forked
    monkeypatch.setattr(fork_servers, "run_forked", lambda *words, **more: made.append(fork(*words, **more)) or made[-1])
    monkeypatch.delenv("TONNAGE_FRESH", raising=False)
    path = notebook_of(cells_of("".join(f"# %%\n{cell}\n" for cell in CELLS)), tmp_path / "notebook.ipynb")
    options = ["--gpu=rtx3060", "--python", python_of("prog-notebooks"), "--cells=1-2,2,3-4", "--keep-going"]
    forked, fresh = (run_tonnage(options, [path], tmp_path, forked=forked) for forked in (True, False))
    said, wanted = (re.sub(r"/[^ ']*/tmp\w+\.json|0x\w+", "", run.stdout) for run in (forked, fresh))
    assert (forked.status, said) == (fresh.status, wanted) and "goes on" in said, forked.explain()
    assert without_times(forked.report) == without_times(fresh.report), forked.explain()
    assert fresh.verdict == "out_of_memory" and len(made) == 1 and made[0] is not None


def of_ranks(report):
    """What two runs of one job have in common: not which rank was where when another had its peak, nor how the launcher is spelled."""
    kept = {name: value for name, value in without_times(report).items() if name not in ("regions", "program")}
    return {**kept, "ranks": [{**row, "pid": row["pid"] is not None} for row in report["ranks"]]}


@pytest.mark.parametrize("options", [["--gpus=2"], ["--gpus=4", "--ranks=0,3"]], ids=["all", "some"])
def test_forked_ranks_are_the_ranks(tmp_path, monkeypatch, options):
    """torchrun and what it starts (../forked/forked_ranks.py): output, status and report of each rank."""
    made, fork = [], fork_servers.run_forked
    monkeypatch.setattr(fork_servers, "run_forked", lambda *words, **more: made.append(fork(*words, **more)) or made[-1])
    monkeypatch.delenv("TONNAGE_FRESH", raising=False)
    count = options[0].partition("=")[2]
    (tmp_path / "train.py").write_text(WHERE + RANK)
    words = [python_of(MAIN), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", count, "train.py", "--lr", "1"]
    forked, fresh = (run_tonnage(["--gpu=rtx4090", "--steps=all", *options], words, tmp_path, {"OMP_NUM_THREADS": "1"}, forked=forked)
                     for forked in (True, False))  # fmt: skip
    assert (forked.status, sorted(forked.stdout.splitlines())) == (fresh.status, sorted(fresh.stdout.splitlines())), forked.explain()
    found, wanted = (of_ranks(run.report) for run in (forked, fresh))
    assert found == wanted, [name for name in wanted if found[name] != wanted[name]]
    assert fresh.status == 0 and len(fresh.report["ranks"]) == int(count) and len(made) == 1 and made[0] is not None
