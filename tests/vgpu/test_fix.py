# SPDX-License-Identifier: Apache-2.0
"""`tonnage fix` and `tonnage fit` on real programs: what they print, done by hand to a copy, fits, and saves what was shown
to the byte."""

import re
import shlex
import shutil
import socket
import subprocess
import textwrap
import tomllib

import pytest
from conftest import ROOT, python_of, run_tonnage
from searches import search

EXAMPLES = ROOT / "examples"
ENVIRONMENT = "torch-2.11.0"
QUICK = {"zero_grad_late.py", "fragmented.py"}


def command(name, options, program, cwd, arguments=(), env=None):
    """The finished command and its document."""
    return search(name, ["--gpu=rtx3060", *options], [python_of(ENVIRONMENT), program, *arguments], cwd, env)


@pytest.fixture
def copy(tmp_path):
    """A copy of the examples, to be patched."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("demo", "__pycache__"))
    return folder


def check_again(again, change, unchanged):
    """The program with the change made by hand: it fits, and takes what was shown. What a program that grows would take
    as it is, nobody knows; where room is not what is missing, nothing is saved."""
    assert again.verdict == "fits", again.explain()
    assert again.report["peak"]["reserved_bytes"] == change["peak_reserved_bytes"], again.explain()
    peak = again.report["peak"]
    needed = peak["device_bytes"] - peak["reserved_bytes"] + peak["allocated_bytes"]
    assert needed == change["needed_bytes"], again.explain()
    assert (change["saved_bytes"] is None) == (unchanged["missing_bytes"] is None), again.explain()
    if change["saved_bytes"] is not None:
        assert unchanged["needed_bytes"] - needed == change["saved_bytes"], again.explain()


def remedies():
    for row in tomllib.loads((EXAMPLES / "examples.toml").read_text())["example"]:
        if "remedy" in row:
            metadata = [] if row["program"] in QUICK else [pytest.mark.long]
            yield pytest.param(row, id=" ".join([row["program"], *row.get("arguments", [])]), marks=metadata)


def done_by_hand(change, copy, row):
    """The options, arguments and environment of a run after what was printed was done to the copy."""
    options, arguments, environment = row.get("options", []), row.get("arguments", []), {}
    argument = re.match(r"Run the program with (--\S+) (\d+)", change["how"])
    if change["patch"]:
        subprocess.run(["patch", "-p1", "--silent"], cwd=copy, check=True, input=change["patch"], text=True)
    elif change["command"]:
        words = shlex.split(change["command"])
        arguments = words[words.index(row["program"]) + 1 :]
    elif argument:
        arguments = [*arguments, *argument.groups()]
    elif change["id"] == "end_other_processes":
        options = []
    else:
        environment = dict([change["how"].split()[1].split("=", 1)])
    return options, arguments, environment


@pytest.mark.parametrize("row", list(remedies()))
def test_the_cure_done_by_hand_fits_and_saves_what_was_shown(copy, row):
    """The printed patch, argument or setting."""
    patch, program = copy / "fix.patch", row["program"]
    options = ["--seconds=20", "--patch", str(patch), *row.get("options", [])]
    done, document = command("fix", options, program, copy, row.get("arguments", []))
    first = next((change for change in document["changes"] if change["fits"]), None)
    assert done.returncode == 0 and first["id"] == row["remedy"], done.stderr[-6000:]
    assert bool(document["unchanged"]["do_first"]) == row.get("advised", False), done.stderr[-6000:]
    assert first["enough"] == (first["results"] != "different_training"), done.stderr[-6000:]
    least = 0 if first["id"] == "memory_fraction" else 1  # a limit of the program's own: it takes what it took
    assert first["saved_bytes"] is None or first["saved_bytes"] >= least, done.stderr[-6000:]
    assert not first["patch"] or patch.read_text() == first["patch"]
    options, arguments, environment = done_by_hand(first, copy, row)
    again = run_tonnage(["--gpu", "rtx3060", *options], [python_of(ENVIRONMENT), program, *arguments], copy, environment,
                        forked=True)  # fmt: skip
    check_again(again, first, document["unchanged"])


INERT = [("finetune.py", ["--batch", "48", "--length", "512"], []), ("big_batch_resnet.py", [], []), ("zero_grad_late.py", [], []),
         ("random_lengths.py", [], []), ("kv_cache.py", [], []), ("adam_state.py", [], [])]  # fmt: skip


@pytest.mark.parametrize("program, arguments, options",
                         [pytest.param(*row, marks=[] if row[0] == "zero_grad_late.py" else [pytest.mark.long], id=row[0])
                          for row in INERT])  # fmt: skip
def test_a_change_that_does_nothing_saves_nothing(copy, monkeypatch, program, arguments, options):
    """The same program under a change that only says that it was applied: both sides need the same to the byte."""
    monkeypatch.setenv("TONNAGE_TRY", "nothing")
    done, document = command("fix", ["--seconds=1", *options], program, copy, arguments)
    row = next(change for change in document["changes"] if change["id"] == "nothing")
    assert row["outcome"] == "no_help" and row["saved_bytes"] == 0, done.stderr[-6000:]
    assert row["needed_bytes"] == document["unchanged"]["needed_bytes"], done.stderr[-6000:]


LATE = """
    import torch
    from torch import nn

    net = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(4):
        net(torch.randn(8192, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    net.eval()
    net(torch.randn(32768, 1024, device="cuda"))  # with a graph that nobody needs
"""


def test_a_trial_comes_as_far_as_what_it_is_compared_with(copy, monkeypatch):
    """Memory runs out in the first steps, and the evaluation behind the last one needs more: a change that only says that it was applied
    saves nothing."""
    monkeypatch.setenv("TONNAGE_TRY", "nothing")
    (copy / "late.py").write_text(textwrap.dedent(LATE))
    done, document = command("fix", ["--seconds=1", "--memory=740MiB"], "late.py", copy, [])
    assert document["unchanged"]["at"] == "late.py:8", done.stderr[-6000:]
    row = next(change for change in document["changes"] if change["id"] == "nothing")
    assert row["saved_bytes"] == 0, done.stderr[-6000:]
    assert row["needed_bytes"] == document["unchanged"]["needed_bytes"] > 1 << 30, done.stderr[-6000:]


LATE_ROUND = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    net = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.zeros(32, 4, 1024)), batch_size=16)
    for epoch in range(60):
        for (batch,) in loader:
            net(batch.cuda().repeat(1, 128, 1)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if epoch == 50:
            net(torch.randn(32768, 1024, device="cuda"))  # with a graph that nobody needs
"""


def test_what_comes_late_is_planned_with(tmp_path):
    """Rounds repeat, and the first changes are tried while the rest is waited for; then one round brings a larger peak, of which a smaller
    batch takes nothing. Nothing of what was tried before stays, and each trial comes as far as that round."""
    (tmp_path / "late.py").write_text(textwrap.dedent(LATE_ROUND))
    done, document = command("fix", ["--seconds=1", "--memory=800MiB"], "late.py", tmp_path, [])
    assert document["unchanged"]["needed_bytes"] > 1 << 30, done.stderr[-6000:]
    first, *others = document["changes"]
    assert first["id"].startswith("unused_graphs=late.py:") and first["outcome"] == "fits", done.stderr[-6000:]
    pieces = [row["outcome"] for row in others if row["id"].startswith("accumulate=")]
    assert pieces and "fits" not in pieces, done.stderr[-6000:]


LATE_LENGTH = """
    import random
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    lengths = [random.Random(n).randrange(64, 256) for n in range(400)]
    lengths[24] = 1024


    class Texts(Dataset):
        def __len__(self): return len(lengths)
        def __getitem__(self, i): return torch.zeros(lengths[i], dtype=torch.long)


    layers = [nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(12)]
    net = nn.Sequential(nn.Embedding(1000, 512), *layers, nn.Linear(512, 1000)).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for batch in DataLoader(Texts(), batch_size=8, collate_fn=lambda rows: nn.utils.rnn.pad_sequence(rows, batch_first=True)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(batch.cuda()).flatten(0, 1), batch.cuda().flatten()).backward()
        optimizer.step()
"""


def test_trials_that_took_the_first_batch_for_all_are_made_again(tmp_path):
    """Batches are read once for each size as long as nobody knows that they differ. In the fourth is a text of 1,024, with which two pieces
    do not fit; of the first batch they do. There is no second epoch in which a trial that had passed it would meet it."""
    (tmp_path / "texts.py").write_text(textwrap.dedent(LATE_LENGTH))
    done, document = command("fix", ["--seconds=1", "--memory=320MiB"], "texts.py", tmp_path, [])
    outcomes = {row["id"]: row["outcome"] for row in document["changes"]}
    assert document["unchanged"]["needed_bytes"] > 600 << 20 and outcomes["accumulate=8"] == "fits", done.stderr[-6000:]
    assert "fits" not in (outcomes.get("accumulate=2"), outcomes.get("accumulate=4")), done.stderr[-6000:]


@pytest.mark.long
def test_the_largest_batch_of_a_real_program(copy):
    """Against the next: seen by plain runs."""
    done, document = command("fit", [], "finetune.py", copy, ["--batch", "{batch}", "--length", "512"])
    largest = document["cards"][0]["largest_batch"]
    assert done.returncode == 0 and largest > 1, done.stderr[-6000:]
    for batch, verdict in ((largest, "fits"), (largest + 1, "out_of_memory")):
        program = [python_of(ENVIRONMENT), "finetune.py", "--batch", str(batch), "--length", "512"]
        run = run_tonnage(["--gpu", "rtx3060"], program, copy)
        assert run.verdict == verdict, run.explain()


MEETING = """
    import os, sys, torch, torch.distributed, torch.multiprocessing

    def work(rank, port):
        torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:" + port, rank=rank, world_size=2)
        number = torch.ones(1)
        torch.distributed.all_reduce(number)
        os.write(1, f"met {int(number)}{os.linesep}".encode())  # one write: the other rank's does not come between

    if __name__ == "__main__":
        torch.multiprocessing.spawn(work, (sys.argv[1],), 2)
"""


@pytest.mark.parametrize("is_trial", [True, False])
def test_ranks_of_a_trial_meet_at_its_own_port_whatever_the_program_names(tmp_path, monkeypatch, is_trial):
    """The named one is taken, as by a trial beside it. A run that is no trial takes the port that is named."""
    (tmp_path / "meet.py").write_text(textwrap.dedent(MEETING))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        if is_trial:
            with socket.create_server(("127.0.0.1", 0)) as free:
                monkeypatch.setenv("TONNAGE_PORT", str(free.getsockname()[1]))
        words = [python_of(ENVIRONMENT), "meet.py", str(taken.getsockname()[1])]
        run = run_tonnage(["--gpu=rtx3060"], words, tmp_path, forked=True)
    assert run.stdout.count("met 2") == (2 if is_trial else 0), run.explain()
    assert is_trial or "EADDRINUSE" in run.stderr, run.explain()


UNFROZEN = """
    import time, torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    import _tonnage_guest.fast_forward as fast_forward

    now = [time.monotonic()]
    fast_forward._clock = lambda: now[0]  # rounds of 0.2 s, however fast the machine is
    backbone = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(20))).cuda().requires_grad_(False)
    head = nn.Linear(1024, 8).cuda()
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(40960, 1024)), batch_size=4096)
    for epoch in range(1000):
        if epoch == 40:
            backbone.requires_grad_(True)
        for batch, in loader:
            optimizer.zero_grad()
            loss = head(backbone(batch.cuda())).mean()
            loss.backward()
            optimizer.step()
        now[0] += 0.2
"""


def test_a_backbone_that_is_unfrozen_late(tmp_path):
    """Round 41 comes after more than a quarter of the time limit, and before its end: the card itself is asked that far, and so is then the survey."""
    (tmp_path / "late.py").write_text(textwrap.dedent(UNFROZEN))
    done, document = command("fix", ["--memory=700MiB", "--seconds=20"], "late.py", tmp_path, env={"TONNAGE_SECONDS": "24"})
    first = document["changes"][0]
    assert document["verdict"] == "fits_changed" and document["unchanged"]["missing_bytes"] > 0, done.stderr[-6000:]
    assert first["fits"] and first["results"] != "different_training" and first["steps_seen"] > 45, done.stderr[-6000:]
    done, document = command("fix", ["--memory=700MiB"], "late.py", tmp_path, env={"TONNAGE_SECONDS": "6"})
    assert document["verdict"] == "fits" and "what round 41 of this loop is the first to do (epoch == 40)" in document["unchanged"]["not_seen"]
