# SPDX-License-Identifier: Apache-2.0
"""The worst input first: samples that come late are known, and with --inputs longest their batch is the first one."""

import re

import fork_servers
import pytest
from conftest import HERE

FORKED = True  # ../fork_servers.py

WHEEL = "torch-2.11.0"
KINDS = {  # of programs/inputs.py: memory at which the usual batches fit and the largest does not, index, length, unit
    "plain": ("512MiB", 9731, 1024, "tokens"),
    "workers": ("512MiB", 9731, 1024, "tokens"),
    "buckets": ("400MiB", 9731, 1024, "items"),  # the sampler's own lengths
    "trainer": ("512MiB", 9731, 1024, "tokens"),
    "grouped": ("512MiB", 9731, 1024, "items"),
    "lightning": ("512MiB", 9731, 1024, "tokens"),
    "evaluation": ("180MiB", 51, 64**3, "voxels"),
}
TRAINERS = {"trainer", "grouped"}  # of transformers
# of programs/late_inputs.py: memory in MiB, index of the long sample, its length, unit
THREADS = {
    "t5_mid_run": (640, 3111, 2000, "tokens"), "preference_pairs": (640, 2222, 1500, "tokens"),
    "lora_seven_percent_in": (640, 4000, 2500, "tokens"), "speech_batches": (640, 1234, 3000, "frames"),
    "overlong_text": (640, 777, 800, "tokens"), "speech_synthesis": (640, 8888, 2500, "tokens"),
    "graphs": (440, 1717, 10000, "nodes"), "faces": (440, 1500, 700, "boxes"), "five_hundred_boxes": (440, 901, 640, "boxes"),
    "aerial": (440, 1111, 900, "boxes"), "instance_masks": (320, 700, 800, "boxes"), "volumes": (640, 51, 160**3, "voxels"),
}  # fmt: skip


def check_named(run, index, length, unit):
    assert run.verdict == "out_of_memory" and run.status == 10, run.explain()
    inputs = run.report["inputs"]
    assert (inputs["index"], inputs["longest_known"], inputs["unit"]) == (index, length, unit), run.explain()
    assert inputs["in_last_batch"] and inputs["looked"] == inputs["of"], run.explain()
    words = " ".join(run.stderr.split())
    assert re.search(r"the batch of \d+ holds sample %s with %s %s" % (f"{index:,}", f"{length:,}", unit), words), run.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_batch_comes_within_two_steps(tonnage, kind):
    memory, *known = KINDS[kind]
    imports = fork_servers.LIBRARIES if kind in TRAINERS else ()
    run = tonnage(WHEEL, ["programs/inputs.py", kind], "--memory=" + memory, "--inputs=longest", imports=imports)
    check_named(run, *known)
    if kind != "evaluation":
        assert run.report["steps"]["seen"] <= 1, run.explain()


def test_without_the_option_it_is_known(tonnage):
    """Of 60 samples all are looked at within the second that a look may take by default."""
    memory, index, length, unit = KINDS["evaluation"]
    run = tonnage(WHEEL, ["programs/inputs.py", "evaluation"], "--memory=" + memory)
    inputs = run.report["inputs"]
    assert run.verdict == "fits" and run.report["bound"] == "lower", run.explain()
    assert (inputs["index"], inputs["longest_known"], inputs["unit"]) == (index, length, unit), run.explain()
    assert inputs["longer"] and inputs["seen"] < inputs["of"] == inputs["looked"], run.explain()
    assert inputs["longest_seen"] < length and inputs["at"]["file"].endswith("inputs.py"), run.explain()
    assert "--inputs longest has it come first" in " ".join(run.stderr.split()), run.stderr


@pytest.mark.parametrize("name", THREADS)
def test_threads_in_which_the_input_that_kills_comes_late(tonnage, name):
    memory, *known = THREADS[name]
    run = tonnage(WHEEL, ["programs/late_inputs.py", name], f"--memory={memory}MiB", "--inputs=longest")
    check_named(run, *known)


def test_twelve_threads():
    assert len(THREADS) == 12 and all(f"def {name}()" in (HERE / "programs/late_inputs.py").read_text() for name in THREADS)


STREAM = """
import torch
from torch import nn

class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from (torch.randint(8000, (64 + i % 3,)) for i in range(400))

embed, head = nn.Embedding(8000, 64).cuda(), nn.Linear(64, 8000).cuda()
for batch in torch.utils.data.DataLoader(Stream(), collate_fn=lambda rows: nn.utils.rnn.pad_sequence(rows, True), batch_size=4):
    batch = batch.cuda()
    nn.functional.cross_entropy(head(embed(batch)).flatten(0, 1), batch.flatten()).backward()
"""


def test_data_that_cannot_be_looked_ahead_are_padded(tonnage, tmp_path):
    """Logits of 4 x 2,048 x 8,000 in 32 bits alone are 250 MiB; the option is advised where it was not given."""
    (tmp_path / "stream.py").write_text(STREAM)
    plain, padded = (tonnage(WHEEL, [str(tmp_path / "stream.py")], "--memory=4GiB", *words) for words in ((), ("--inputs=pad=2048",)))
    assert (plain.verdict, padded.verdict) == ("fits", "fits"), plain.explain() + padded.explain()
    assert plain.report["peak"]["allocated_bytes"] < 100 * 2**20 < 250 * 2**20 < padded.report["peak"]["allocated_bytes"], padded.explain()
    assert "cannot be looked ahead" in plain.stderr and "--inputs pad=N" in plain.stderr, plain.explain()
    assert "padded to 2048" in padded.stderr and "pad=N" not in padded.stderr, padded.explain()
