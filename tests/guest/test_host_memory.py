# SPDX-License-Identifier: Apache-2.0
"""What data loaders hold ready, where --host-memory asks: told, and the program is as it is without us."""

import textwrap

from test_steps import HEAD, TRAIN

FORKED = True  # ../fork_servers.py

PROGRAM = HEAD + TRAIN + """
from torch.utils.data import DataLoader, Dataset
class Made(Dataset):
    def __len__(self): return 24
    def __getitem__(self, i): return {"x": torch.full((256,), float(i)), "text": "words"}, i
class Own(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
torch.manual_seed(5)
loader = Own(Made(), 4, shuffle=True, num_workers=2, prefetch_factor=3, persistent_workers=True)
plain = DataLoader(Made(), 2)
for epoch in range(2):
    print([labels.tolist() for _, labels in loader])
    print(sum(float(row["x"].sum()) for row, _ in plain))
"""


def test_rows_and_the_program_as_it_is(run_with, wheel):
    """Nobody looks here, so that the queue is waited for in vain, and the run goes on."""
    done = run_with(wheel, PROGRAM, TONNAGE_HOST_MEMORY="1", TONNAGE_SECONDS="4")
    bare = run_with(wheel, PROGRAM, TONNAGE_RUN="")
    assert done.status == 0 and done.stdout == bare.stdout and done.stdout.count("[") > 4, done.stderr + bare.stderr
    document = next(each for each in done.documents if each["loaders"])
    assert not [row for row in document["sensors"] if row["state"] == "lost"], document["sensors"]
    workers, alone = sorted(document["loaders"], key=lambda row: -row["workers"])
    assert (workers["workers"], workers["ahead"], workers["batch_size"], workers["full"]) == (2, 3, 4, False)
    assert workers["batch_bytes"] == 4 * 256 * 4 + 4 * 8 and len(workers["pids"]) == 2
    assert (alone["workers"], alone["ahead"], alone["batch_bytes"], alone["pids"]) == (0, 0, 2 * 256 * 4 + 2 * 8, [])
    lines = textwrap.dedent(PROGRAM).splitlines()
    assert lines[workers["at"]["line"] - 1].startswith("loader = Own(") and lines[alone["at"]["line"] - 1].startswith("plain")


def test_nothing_unless_asked(run_with, wheel):
    done = run_with(wheel, PROGRAM)
    assert done.status == 0 and all(each["loaders"] == [] for each in done.documents)


COLLECTED = HEAD + TRAIN + """
import gc, weakref
from torch.utils.data import DataLoader
class Thing: pass
gc.unfreeze()  # a forked one has frozen objects
thing = Thing()
thing.itself, gone = thing, weakref.ref(thing)
loader = DataLoader(torch.ones(64, 4), 4, num_workers=2)
gc.collect()
if FREEZES:
    gc.freeze()
for _ in range(30):
    gc.collect(1)
del thing
for number, _ in enumerate(loader):
    if number == 0:
        print(gc.get_count()[2] < 30, gc.get_freeze_count() > 0)
print(gone() is None)
gc.collect()
print(gone() is None)
"""


def test_a_full_collection_that_is_due_does_not_copy_what_workers_share(run_with, wheel):
    """It is put off, and takes garbage as ever where it comes; what the program has frozen stays so."""
    program, asked = COLLECTED.replace("FREEZES", "False"), {"TONNAGE_HOST_MEMORY": "1", "TONNAGE_SECONDS": "4"}
    done = run_with(wheel, program, **asked)
    assert done.status == 0 and done.stdout.split() == ["True", "False", "False", "True"], done.stdout + done.stderr
    done = run_with(wheel, program)
    assert done.status == 0 and done.stdout.split() == ["False", "False", "False", "True"], done.stdout + done.stderr
    done = run_with(wheel, COLLECTED.replace("FREEZES", "True"), **asked)
    assert done.status == 0 and done.stdout.split()[:2] == ["False", "True"], done.stdout + done.stderr
