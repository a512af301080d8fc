# SPDX-License-Identifier: Apache-2.0
"""Changes of data loaders, which free the computer's memory: what a loader is made with, the batches it gives, and the patch.
What they save is measured in tests/vgpu/test_host_memory.py."""

import pytest

PROGRAM = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Made(Dataset):
        def __len__(self):
            return 12
        def __getitem__(self, i):
            return torch.full((4,), float(i))

    class Own(DataLoader):
        pass

    def tell(loader):
        print("made", loader.num_workers, loader.prefetch_factor, loader.pin_memory, loader.persistent_workers)

    torch.manual_seed(1)
    ours = DataLoader(
        Made(),
        batch_size=4,
        shuffle=True,
        num_workers=2,
        prefetch_factor=3,
        persistent_workers=True,
    )
    placed = Own(Made(), 4, False, None, None, 1, None, True)
    small = DataLoader(Made(), 4)
    for loader in (ours, placed, small):
        tell(loader)
        print([batch[:, 0].tolist() for batch in loader])
"""
MADE_ONLY = PROGRAM.replace("        print([batch[:, 0].tolist() for batch in loader])\n", "")
AS_IT_IS = ["made 2 3 False True", "made 1 2 True False", "made 0 None False False"]


def made(outcome):
    return [line for line in outcome.stdout.splitlines() if line.startswith("made")]


def batches(outcome):
    return [line for line in outcome.stdout.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("asked, expected, results", [
    ("loader_prefetch=1", ["made 2 1 False True", "made 1 1 True False", AS_IT_IS[2]], "same"),
    ("loader_prefetch=2", ["made 2 2 False True", *AS_IT_IS[1:]], "same"),
    ("loader_pin", [AS_IT_IS[0], "made 1 2 False False", AS_IT_IS[2]], "same"),
    ("loader_workers=1", ["made 1 3 False True", *AS_IT_IS[1:]], "different_training"),
    ("loader_workers=0", ["made 0 None False False", "made 0 None True False", AS_IT_IS[2]], "different_training"),
])  # fmt: skip
def test_what_loaders_are_made_with(on_cpu, unchanged_on_cpu, asked, expected, results):
    """In the trial and by the patch; the batches and their order are those of the program."""
    before, after = unchanged_on_cpu(PROGRAM), on_cpu(PROGRAM, asked)
    assert made(before) == AS_IT_IS and len(batches(before)) == 3
    assert made(after) == expected and batches(after) == batches(before)
    entry = after.change(asked.partition("=")[0])
    assert entry["results"] == results and entry["how"].startswith("Make the DataLoader with ")
    assert entry["effective"] == sum(one != two for one, two in zip(AS_IT_IS, expected, strict=True))
    by_hand = on_cpu(PROGRAM, patch=entry["patch"])
    assert made(by_hand) == expected and batches(by_hand) == batches(before)


def test_no_patch_for_half_of_it(on_cpu):
    """One of two loaders is made where no call can be edited: words say it, and no patch does less than the trial."""
    for line in ("make = DataLoader\n    make(Made(), 4, num_workers=3)", "words = {'num_workers': 3}\n    DataLoader(Made(), 4, **words)"):
        entry = on_cpu(MADE_ONLY.replace("small = ", line + "\n    small = "), "loader_prefetch=1").change("loader_prefetch")
        assert entry["patch"] is None and entry["effective"] == 3 and "prefetch_factor=1" in entry["how"]


def test_the_program_has_it_so_already(on_cpu):
    """Nothing is applied where no loader has more."""
    for asked in ("loader_prefetch=3", "loader_workers=2"):
        entry = on_cpu(MADE_ONLY, asked).document["changes"][0]
        assert not entry["applied"] and entry["found_nothing"] and entry["patch"] is None


def test_values_that_are_none(on_cpu):
    for asked in ("loader_prefetch", "loader_prefetch=0", "loader_workers", "loader_workers=many"):
        assert "needs a number" in on_cpu(MADE_ONLY, asked).document["changes"][0]["why_not"]


TRAINER = """
    from transformers import TrainingArguments

    arguments = TrainingArguments("out", dataloader_num_workers=4, report_to="none", use_cpu=True)
    print("made", arguments.dataloader_num_workers, arguments.dataloader_prefetch_factor, arguments.dataloader_pin_memory)
"""


@pytest.mark.parametrize("asked, expected", [("loader_prefetch=1", "made 4 1 False"), ("loader_workers=1", "made 1 None False"),
                                             ("loader_pin", "made 4 None False")])  # fmt: skip
def test_trainers_arguments(on_cpu, asked, expected):
    after = on_cpu(TRAINER, asked)
    assert made(after) == [expected]
    assert made(on_cpu(TRAINER, patch=after.change(asked.partition("=")[0])["patch"])) == [expected]
