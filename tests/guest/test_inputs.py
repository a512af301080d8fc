# SPDX-License-Identifier: Apache-2.0
"""Samples that have not come yet: how long they are, in which order batches come, and what must stay as it is."""

import ast
import json
import os
import pathlib
import sys

import pytest
from test_steps import HEAD, TRAIN

os.environ.setdefault("TONNAGE_RUN", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tonnage/guest"))
from _tonnage_guest import lengths, looks  # noqa: E402

FORKED = True  # ../fork_servers.py

DATA = """
import random
from torch.utils.data import DataLoader, Dataset, TensorDataset
class Texts(Dataset):
    calls = 0
    def __len__(self): return 40
    def __getitem__(self, i):
        Texts.calls += 1
        torch.rand(1), random.random()
        return torch.ones(80 if i == 33 else 2 + i % 5, dtype=torch.long)
def pad(rows): return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
def widths(loader, step=True):
    found = []
    for batch in loader:
        found.append(tuple(batch.shape))
        if step: update()
    return found
"""
PROGRAM = HEAD + TRAIN + DATA
LONGEST = {"TONNAGE_INPUTS": "longest"}


def inputs(done):
    assert done.status == 0 and done.document["hook_error"] is None, done.stderr
    assert not [row for row in done.document["sensors"] if row["state"] == "lost"], done.document["sensors"]
    return done.document["inputs"]


@pytest.mark.parametrize("trial", [False, True])
def test_the_program_is_as_without_us(run_with, wheel, trial):
    """By default nothing changes: order, random numbers, the data set's own state. Trials do not look at all."""
    program = PROGRAM + """
torch.manual_seed(1), random.seed(1)
print(widths(DataLoader(Texts(), 4, shuffle=True, collate_fn=pad)), Texts.calls, torch.rand(1).item(), random.random())
"""
    done = run_with(wheel, program, TONNAGE_TRIAL="1" if trial else "")
    alone = run_with(wheel, program, TONNAGE_RUN="")
    assert done.stdout == alone.stdout and "] 40 " in alone.stdout, done.stderr + alone.stderr
    found = inputs(done)
    assert (found["seen"], found["of"], found["looked"], found["order"]) == (40, 40, 0 if trial else 40, "as_is")
    if not trial:
        assert (found["longest_seen"], found["longest_known"], found["index"], found["unit"]) == (80, 80, 33, "tokens")


def test_what_was_not_seen_is_known(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
for i, batch in enumerate(DataLoader(Texts(), 4, collate_fn=pad)):
    update()
    if i == 2: break
""")
    found = inputs(done)
    assert (found["seen"], found["longest_seen"], found["longest_known"], found["longer"]) == (12, 6, 80, True)
    assert (found["shortest_known"], found["middle_known"]) == (2, 4)  # 2 to 6, eight of each but for the long one
    assert found["at"]["file"].endswith("program.py") and not found["in_last_batch"]


@pytest.mark.parametrize("options", ["shuffle=True", "shuffle=True, num_workers=2", "shuffle=True, num_workers=2, persistent_workers=True"])
def test_the_largest_comes_first_and_after_the_first_update(run_with, wheel, options):
    done = run_with(wheel, PROGRAM + f"""
torch.manual_seed(0)
if __name__ == "__main__":
    loader = DataLoader(Texts(), 4, collate_fn=pad, {options})
    print(widths(loader), len(loader))
    print(widths(loader))
""", **LONGEST)
    first, second = (ast.literal_eval(line.rpartition("]")[0] + "]") for line in done.stdout.splitlines())
    assert len(first) == len(second) == 10 and first[0] == first[1] == (4, 80), done.stdout
    assert second[0] == (4, 80) and second.count((4, 80)) == 1, "later epochs begin with their largest, once"
    found = inputs(done)
    assert found["order"] == "longest" and found["seen"] >= 20 and not found["longer"]
    assert found["largest_batch"]["reserved_bytes"] > 0


def test_a_rising_sequence_follows(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
class Rising(Texts):
    def __len__(self): return 400
    def __getitem__(self, i): return torch.ones(1 + i * 7 % 400, dtype=torch.long)
torch.manual_seed(0)
print([width for _, width in widths(DataLoader(Rising(), 1, shuffle=True, collate_fn=pad))])
""", **LONGEST)
    found = ast.literal_eval(done.stdout)
    first = next(i for i, width in enumerate(found) if width != 400)
    assert found[:2] == [400, 400] and first <= 4
    rising = found[first:first + 6]
    assert rising == sorted(rising) and len(set(rising)) == 6 and found[first + 6] == 400 and len(found) == 400
    assert len(found[first + 7:]) == len(set(found[first + 7:])), "each of the rest comes once"
    assert inputs(done)["longest_together"] is None, "a batch of one is the longest"


def test_accumulated_steps_and_evaluation(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
x = torch.ones(1, requires_grad=True)
torch.manual_seed(0)
found = []
for i, batch in enumerate(DataLoader(Texts(), 2, shuffle=True, collate_fn=pad)):
    found.append(batch.shape[1] == 80)
    (x * 2).sum().backward()
    if i % 6 == 5: update()
print(found[:8])
found = []
with torch.no_grad():
    for batch in DataLoader(Texts(), 2, collate_fn=pad): found.append(batch.shape[1] == 80)
print(found[0], sum(found) <= 4, len(found))
""", **LONGEST)
    assert done.stdout == f"{[True] * 7 + [False]}\nTrue True 20\n", done.stdout + done.stderr
    inputs(done)


@pytest.mark.parametrize("order, size, together", [("shuffle=True", 20, True), ("shuffle=False", 20, False)])
def test_the_longest_together_only_where_a_seed_can_make_them(run_with, wheel, order, size, together):
    """Graphs: a batch is as large as all its nodes."""
    done = run_with(wheel, PROGRAM + f"""
class Graph:
    def __init__(self, nodes): self.num_nodes = nodes
class Graphs(Texts):
    def __len__(self): return 400
    def __getitem__(self, i): return Graph(1000 if i % 40 == 0 else 10)
torch.manual_seed(0)
seen = []
def join(rows): seen.append(sum(row.num_nodes for row in rows)); return torch.ones(1)
widths(DataLoader(Graphs(), {size}, collate_fn=join, {order}))
print(max(seen), len(seen))
""", **LONGEST)
    found = inputs(done)
    assert (found["longest_together"] is not None) == together, found
    most, count = map(int, done.stdout.split())
    assert count == 20 and (most == 10 * 1000 + 10 * 10) == together, done.stdout
    assert found["unit"] == "nodes" and found["largest_batch"]["reserved_bytes"] > 0


SAYS = {  # what is not looked at, and why
    "its samples touch the card": """
class Bad(Texts):
    def __getitem__(self, i): return torch.cuda.current_stream() and torch.ones(3)
""",
    "its samples raise ValueError": """
import os
class Bad(Texts):
    mine = os.getpid()
    def __getitem__(self, i):
        if os.getpid() != self.mine: raise ValueError("no")
        return torch.ones(3)
""",
    "its samples open connections": """
import os, socket
class Bad(Texts):
    mine = os.getpid()
    def __getitem__(self, i):
        if os.getpid() != self.mine: socket.create_connection(("127.0.0.1", 9))
        return torch.ones(3)
""",
    "iterable data cannot be looked ahead": """
class Bad(torch.utils.data.IterableDataset):
    def __iter__(self): return iter([torch.ones(3)] * 8)
""",
}


@pytest.mark.parametrize("why", SAYS)
def test_why_not(run_with, wheel, why):
    use = "" if "card" in why else "\nfor batch in DataLoader(Bad(), 2): update()\n"
    use = use or "\ntry:\n    for batch in DataLoader(Bad(), 2): update()\nexcept Exception: pass\n"
    done = run_with(wheel, PROGRAM + SAYS[why] + use, **LONGEST)
    found = inputs(done)
    assert found["why_not"] == why and found["longest_known"] is None, (found, done.stderr)


def test_a_sample_that_hangs_ends_the_look_alone(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
import os, time
class Slow(Texts):
    mine = os.getpid()
    def __getitem__(self, i):
        if os.getpid() != self.mine: time.sleep(1000)
        return torch.ones(3)
for batch in DataLoader(Slow(), 2): update()
print("ended")
""", TONNAGE_SECONDS="5", **LONGEST)
    assert done.stdout == "ended\n" and inputs(done)["looked"] == 0


def test_errors_of_the_program_stay_its_own(run_with, wheel):
    """A sampler that raises does so when its turn comes, and the traceback has no frame of ours."""
    done = run_with(wheel, PROGRAM + """
class Sampler:
    def __len__(self): return 8
    def __iter__(self):
        yield from ([i, i + 1] for i in range(4))
        raise KeyError("the sampler's own")
count = 0
try:
    for batch in DataLoader(Texts(), batch_sampler=Sampler(), collate_fn=pad):
        update(); count += 1
except KeyError as error:
    print(count, error)
""", **LONGEST)
    assert done.stdout == "4 \"the sampler's own\"\n", done.stdout + done.stderr
    inputs(done)


TOLD = {  # data sets that tell by themselves, and what they tell
    "torch.ones(40, 7, dtype=torch.long)": (7, 40, "tokens"),
    "TensorDataset(torch.ones(40, 7, dtype=torch.long))": (7, 40, "tokens"),
    "[torch.ones(3 + (i == 9), dtype=torch.long) for i in range(40)]": (4, 40, "tokens"),
    "[{'text': 'a' * (1 + (i == 7)), 'label': 1} for i in range(40)]": (2, 40, "characters"),
    "torch.utils.data.Subset([torch.ones(3 + i) for i in range(40)], range(5))": (7, 5, "values"),
    "torch.utils.data.ConcatDataset([[torch.ones(3)] * 4, [torch.ones(9)] * 2])": (9, 6, "values"),
    "[(torch.ones(3, 4, 4 + i), 1) for i in range(8)]": (44, 8, "pixels"),
    "[(torch.ones(3, 4, 4), {'boxes': torch.ones(1 + i, 4)}) for i in range(8)]": (8, 8, "boxes"),
    "[torch.ones(1, 4, 4, 4 + i) for i in range(8)]": (176, 8, "voxels"),
    "[torch.ones(50 + i, 80) for i in range(8)]": (57, 8, "frames"),
}


@pytest.mark.parametrize("text", TOLD)
def test_what_data_sets_tell(run_with, wheel, text):
    done = run_with(wheel, PROGRAM + f"""
data = {text}
for batch in DataLoader(data, 1, collate_fn=lambda rows: rows): update()
""")
    found = inputs(done)
    assert (found["longest_known"], found["of"], found["unit"]) == TOLD[text], found
    assert found["looked"] == found["of"]


@pytest.mark.parametrize("collate, longer", [("pad", True), ("cut", False), ("fixed", False)])
def test_what_is_collated_may_not_follow_the_length(run_with, wheel, collate, longer):
    """Batches that are cut, or padded to a fixed length, are no larger for a longer sample."""
    done = run_with(wheel, PROGRAM + f"""
def cut(rows): return pad(rows)[:, :4]
def fixed(rows): return torch.nn.functional.pad(pad(rows), (0, 100 - max(map(len, rows))))
class Sorted(Texts):
    def __getitem__(self, i): return torch.ones(2 + 2 * i, dtype=torch.long)
for i, batch in enumerate(DataLoader(Sorted(), 4, collate_fn={collate})):
    update()
    if i == 4: break
""")
    found = inputs(done)
    assert found["longest_seen"] == 40 and found["longest_known"] == 80 and found["longer"] == longer


def test_pad(run_with, wheel):
    done = run_with(wheel, PROGRAM + """
class Pairs(Texts):
    def __getitem__(self, i): n = 2 + i % 5; return {"input_ids": torch.full((n,), 7), "mask": torch.ones(n, dtype=torch.bool), "y": i}
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self): return (Pairs()[i] for i in range(8))
def collate(rows): return {name: pad([row[name] for row in rows]) if name != "y" else torch.tensor([row["y"] for row in rows]) for name in rows[0]}
for batch in DataLoader(Stream(), 4, collate_fn=collate):
    update()
    print({name: tuple(value.shape) for name, value in batch.items()}, batch["input_ids"][0, -1].item(), batch["mask"].all(0)[-1].item())
for batch in DataLoader(TensorDataset(torch.ones(4, 3, dtype=torch.long), torch.ones(4)), 4): print(type(batch).__name__, [tuple(x.shape) for x in batch])
for batch in DataLoader(torch.ones(4, 3, 16, 16), 4): print(tuple(batch.shape))
""", TONNAGE_INPUTS="pad=12")
    shapes = {"input_ids": (4, 12), "mask": (4, 12), "y": (4,)}
    assert done.stdout == f"{shapes} 7 True\n" * 2 + "list [(4, 12), (4,)]\n(4, 3, 16, 16)\n", done.stdout + done.stderr
    found = inputs(done)
    assert found["order"] == "pad" and found["padded_to"] == 12 and found["padded_batches"] == 3


@pytest.mark.parametrize("piece", [1, 16, 24, 40, 4096])
def test_a_sample_is_looked_at_once_in_whatever_pieces_its_rows_come(piece):
    """A write of many rows is seen in part by who reads meanwhile, and the rows of one sample lie on both sides."""
    samples, look = 20, looks.Look(20, 60)
    os.write(look.words, b"".join(json.dumps({"path": path, "unit": "boxes"}).encode() + b"\n" for path in (".a", ".b", ".c")))
    rows = b"".join(looks._ROW.pack(index, path, index + path) for index in range(samples) for path in range(3))
    found = lengths.Lengths(samples, "samples")
    for at in range(0, len(rows), piece):
        os.write(look.rows, rows[at:at + piece])
        assert not look.take(found)
        assert found.looked <= samples
    os.write(look.words, b'{"end": ""}\n')
    assert look.take(found) and found.looked == samples
    assert [list(found.column(path, "boxes")) for path in (".a", ".b", ".c")] == [
        [index + number for index in range(samples)] for number in range(3)]
