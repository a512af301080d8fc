# SPDX-License-Identifier: Apache-2.0
"""The hook on the virtual GPU, where the allocator is PyTorch's own. Skipped, and said so, before `make build`."""

import pickle
import subprocess

import pytest

FORKED = True  # ../fork_servers.py

TRAIN = """\
import torch
from torch import nn
net = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(net.parameters())

def update(batch=64):
    net(torch.randn(batch, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()

"""


def test_peaks_outlive_resets(virtual, wheel):
    done = virtual(wheel, TRAIN + """
update(8192)
high = torch.cuda.max_memory_allocated()
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() < high
update()
print(high)
""")
    device = done.document["devices"][0]
    assert device["allocated_peak"] == int(done.stdout) and device["requested_peak"] <= device["allocated_peak"]
    assert done.words[0] == 2 and done.words[1] == device["allocated_peak"]


def test_backward_names_its_caller(virtual, wheel):
    done = virtual(wheel, """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
out = net(torch.randn(4000, 1024, device="cuda"))
hold = torch.empty(torch.cuda.mem_get_info()[0] - (24 << 20), dtype=torch.uint8, device="cuda")

def back(loss):
    loss.backward()  # line 10

back(out.sum())
""")
    document = done.document
    oom = document["out_of_memory"]
    assert done.status == 1 and document["out_of_memory_ended_process"] and "_tonnage_guest" not in done.stderr
    assert oom["backward"] and oom["phase"] == "backward" and oom["step"] == 1
    assert (oom["at"]["line"], oom["at"]["function"]) == (9, "back")
    assert 0 < oom["free_bytes"] < oom["requested_bytes"] and oom["message"].startswith("CUDA out of memory")


@pytest.mark.parametrize("place, phase", [("forward", "forward"), ("build", "build"), ("optimizer", "optimizer")])
def test_phases(virtual, wheel, place, phase):
    body = {
        "forward": "with torch.no_grad(): x = torch.ones(1 << 21, 512, device='cuda')\nnet.train()(x)",
        "build": "nn.Sequential(*[nn.Linear(16384, 16384) for _ in range(20)]).to('cuda')",
        "optimizer": "big = nn.Parameter(torch.zeros(1 << 28, device='cuda'))\n"
                     "big.grad = torch.zeros_like(big)\n"
                     "torch.cuda.set_per_process_memory_fraction(.25)\n"
                     "torch.optim.AdamW([big]).step()",
    }[place]  # fmt: skip
    done = virtual(wheel, TRAIN + body)
    assert done.document["out_of_memory_ended_process"], done.stderr
    assert done.document["out_of_memory"]["phase"] == phase, done.document["out_of_memory"]


def test_batch_finder_is_handled(virtual, wheel):
    done = virtual(wheel, TRAIN + """
batch = 1 << 25
while True:
    try:
        update(batch)
        break
    except torch.cuda.OutOfMemoryError:
        optimizer.zero_grad()
        batch //= 4
update(batch)
""")
    assert done.status == 0 and done.document["out_of_memory"] is None
    handled = done.document["handled_out_of_memory"]
    assert sum(row["count"] for row in handled) >= 2 and all(row["line"] == 7 for row in handled)


def test_history_in_windows_and_the_programs_own(virtual, wheel, tmp_path):
    target = tmp_path / "run/peak.pickle"  # the write overlay passes the run folder through
    done = virtual(wheel, TRAIN + """
def events():
    snapshot = torch.cuda.memory._snapshot()
    return sum(map(len, snapshot["device_traces"]))

for _ in range(4): update()
assert events() == 0, "ours is not to be seen"
torch.cuda.memory._record_memory_history(max_entries=100000)
update()
one = events()
update()
assert events() > 1.8 * one > 0, "theirs is not emptied by ours"
torch.cuda.memory._record_memory_history(enabled=None)
assert events() == 0
for _ in range(3): update()
update(1024)
""", TONNAGE_SNAPSHOT=str(target))
    assert done.status == 0, done.stderr
    assert done.document["snapshot"] == str(target)
    snapshot = pickle.loads(target.read_bytes())
    events = sum(map(len, snapshot["device_traces"]))
    assert 0 < events < 1000, "ours is on again, from the end of the first step after theirs"
    assert any(event.get("frames") for event in snapshot["device_traces"][0] if event["action"] == "alloc")


def test_snapshots_of_growth_get_rarer(virtual, wheel, tmp_path):
    target = tmp_path / "run/peak.pickle"
    done = virtual(wheel, TRAIN + """
import os
kept, seen, known = [], [], None
for step in range(60):
    update()
    kept.append(torch.zeros(1 << 18, device="cuda"))
    written = os.stat(os.environ["TONNAGE_SNAPSHOT"]).st_ino if os.path.exists(os.environ["TONNAGE_SNAPSHOT"]) else None
    if written != known:
        seen.append(step)
        known = written
print("written at", *seen)
""", TONNAGE_SNAPSHOT=str(target), TONNAGE_STEPS="all")
    assert done.status == 0, done.stderr
    written = [int(word) for word in done.stdout.split("written at")[1].split()]
    gaps = [after - before for before, after in zip(written, written[1:])]
    assert 3 <= len(written) <= 8 and gaps == sorted(gaps), done.stdout
    snapshot = pickle.loads(target.read_bytes())
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]
              if block["state"] == "active_allocated" and block["requested_size"] == 1 << 20 and block["frames"]]
    assert len([block for block in blocks if block["frames"][0]["line"] == 16]) >= 59, "the last peak is shown in the end"


def test_out_of_memories_of_one_moment_are_one_snapshot(virtual, wheel, tmp_path):
    done = virtual(wheel, """
import os, torch
kept = [torch.zeros(1 << 18, device="cuda")]

def fail():
    try:
        torch.zeros(1 << 40, device="cuda")
    except torch.cuda.OutOfMemoryError:
        about = os.stat(os.environ["TONNAGE_SNAPSHOT"] + ".oom")
        return about.st_ino, about.st_mtime_ns

first = [fail() for _ in range(20)]
kept.append(torch.zeros(1 << 18, device="cuda"))
then = [fail() for _ in range(20)]
print("snapshots", len(set(first)), len(set(then)), len(set(first + then)))
""", TONNAGE_SNAPSHOT=str(tmp_path / "run/peak.pickle"))
    assert done.status == 0 and "snapshots 1 1 2" in done.stdout, done.stderr


def test_generation_ends(virtual, wheel):
    done = virtual(wheel, """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
net = GPT2LMHeadModel(GPT2Config(n_layer=2)).cuda().eval()
for _ in range(2):
    ids = torch.randint(0, 50000, (2, 8), device="cuda")
    print(net.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0).shape)
""")
    assert done.stdout.count("[2, 28]") == 2, done.stderr
    assert done.document["steps"]["seen"] == 40 and done.document["steps"]["unit"] == "forward"
    assert done.document["computed_reads"][0]["line"] == 7


SAVING = """
import torch
net = torch.nn.Linear(64, 64, device="cuda")
net(torch.randn(8, 64, device="cuda")).sum().backward()
torch.save(net.state_dict(), "new.pt")
torch.save(net.state_dict(), "old.pt", _use_new_zipfile_serialization=False)
saved = 2
try:
    from safetensors.torch import save_file
except ImportError:
    pass
else:
    save_file(net.state_dict(), "net.safetensors")
    saved += 1
net.weight.grad.sum().item()
print(saved)
"""


def test_values_that_are_saved_are_not_read_back(virtual, wheel):
    done = virtual(wheel, SAVING, TONNAGE_WRITES="allow")
    assert [row["line"] for row in done.document["computed_reads"]] == [15], done.stderr
    assert done.document["computed_reads_saved"] == 2 * int(done.stdout)  # weight and bias


MASKED = """
import torch
net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    out = net(torch.randn(256, 64, device="cuda"))
    out[torch.randn(256, device="cuda").sigmoid() > 0.5].sum().backward()  # indexes again on autograd's thread
    optimizer.step()
    optimizer.zero_grad()
"""


def test_values_read_on_a_thread_without_python_belong_to_the_backward_pass(virtual, wheel):
    done = virtual(wheel, MASKED)
    assert done.status == 0 and "hook stopped" not in done.stderr, done.stderr
    assert done.document["hook_error"] is None and done.document["steps"]["seen"] == 3
    assert {row["line"] for row in done.document["computed_reads"]} == {7}, done.document["computed_reads"]


def test_failed_test_is_told(virtual, wheel, tmp_path):
    (tmp_path / "test_it.py").write_text(TRAIN + """
def test_a():
    update(1 << 26)
def test_b():
    update()
""")
    if subprocess.run([wheel, "-c", "import pytest"], capture_output=True).returncode != 0:
        pytest.skip("this environment has no pytest")
    done = virtual(wheel, ["-m", "pytest", "-q", "test_it.py"])
    assert done.status == 1 and done.document["out_of_memory_ended_process"]
    assert done.document["steps"]["seen"] == 1


def test_compiled_module_does_not_warn(virtual, wheel):
    done = virtual(wheel, """
import torch, warnings
net = torch.nn.Linear(4, 4).cuda()
compiled = torch.compile(net, backend="eager")
with warnings.catch_warnings():
    warnings.simplefilter("error")
    compiled(torch.ones(2, 4, device="cuda"))
""")
    assert done.status == 0, done.stderr
