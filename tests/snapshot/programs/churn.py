# SPDX-License-Identifier: Apache-2.0
"""A random program that keeps its own books: `python churn.py FOLDER SEED OPERATIONS [LATE]`.

It allocates and frees tensors of all sizes, on two streams, in two pools, empties the cache and runs out of memory, and
takes a snapshot now and then. What PyTorch and the program itself say at these moments goes to books.json: PyTorch's
statistics, its blocks, and the bytes of the living tensors by category. The last snapshot, with metadata of what the tensors
were, goes to churn.pickle. With LATE the history is emptied halfway: the trace begins with blocks that it has not seen
being made.
"""

import json
import pathlib
import pickle
import random
import sys
import time

import torch

FOLDER = pathlib.Path(sys.argv[1])
RANDOM = random.Random(int(sys.argv[2]))
OPERATIONS = int(sys.argv[3])
LATE = sys.argv[4:] == ["late"]
KINDS = ["parameters", "gradients", "optimizer_state", "inputs", "activations", "temporaries"]
MIB = 1 << 20
SIZES = [(1, 3000), (3000, MIB), (MIB - 4096, MIB + 4096), (MIB, 10 * MIB), (10 * MIB - 4096, 10 * MIB + 4096),
         (10 * MIB, 60 * MIB)]


class Row:
    """What is noted of a tensor, without keeping it alive."""

    def __init__(self, tensor):
        self.size = tensor.numel()
        self.kind = RANDOM.choice(KINDS)
        self.seen = False  # by a look


class Books:
    """Tensors by kind, and what was seen."""

    def __init__(self):
        self.alive = []  # (tensor, its row)
        self.metadata = ["tonnage-metadata\t1"]
        self.moments = []
        self.pool = torch.cuda.MemPool()
        self.side = torch.cuda.Stream()

    def allocate(self):
        size = RANDOM.randint(*RANDOM.choice(SIZES))
        if RANDOM.random() < 0.2:
            with torch.cuda.use_mem_pool(self.pool):
                tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        else:
            tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        if RANDOM.random() < 0.2:
            tensor.record_stream(self.side)
        self.alive.append((tensor, Row(tensor)))

    def free(self, share):
        self.alive = [pair for pair in self.alive if RANDOM.random() >= share]

    def look(self):
        self.metadata.append(f"look\t{time.time_ns()}")
        for tensor, row in self.alive:
            if row.kind != "temporaries" and RANDOM.random() < 0.8:
                row.seen = True
                self.metadata.append(f"hold\t{row.kind}\t{tensor.data_ptr()}\t{row.size}\t")

    def forget(self):
        """The history begins here."""
        self.moments.clear()
        del self.metadata[1:]
        for _, row in self.alive:
            row.seen = False

    def moment(self):
        """What PyTorch says now. A look comes first: what it did not see is a temporary to the analysis."""
        self.look()
        snapshot = torch.cuda.memory._snapshot()
        stats = torch.cuda.memory_stats()
        blocks = [[block["address"], block["size"], block["requested_size"]] for segment in snapshot["segments"]
                  for block in segment["blocks"] if block["state"] == "active_allocated"]
        free = [block["size"] for segment in snapshot["segments"] for block in segment["blocks"]
                if block["state"] == "inactive"]
        self.moments.append({
            "events": len(snapshot["device_traces"][0]),
            "reserved": stats["reserved_bytes.all.current"], "allocated": stats["allocated_bytes.all.current"],
            "largest_free_block": max(free, default=0), "blocks": blocks, "alive": [row for _, row in self.alive],
        })
        return snapshot

    def by_category(self, moment):
        sums = dict.fromkeys(KINDS, 0)
        for row in moment.pop("alive"):
            sums[row.kind if row.seen else "temporaries"] += row.size
        return sums


def record():
    torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=100000)


def run_out():
    """PyTorch gives back its free segments before it gives up."""
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return
    raise SystemExit("4 TiB were given out")


def step(books):
    choice = RANDOM.random()
    if choice < 0.7:
        books.allocate()
    elif choice < 0.95:
        books.free(RANDOM.choice([0.02, 0.04, 0.3]))
    elif choice < 0.965:
        torch.cuda.empty_cache()
    elif choice < 0.97:
        run_out()
    else:
        books.moment()


def main():
    torch.zeros(1, device="cuda")
    if not LATE:
        record()
    books = Books()
    for number in range(OPERATIONS):
        step(books)
        if LATE and number == OPERATIONS // 2:
            record()
            books.forget()
    books.moment()
    snapshot = torch.cuda.memory._snapshot()
    snapshot["tonnage"] = "\n".join(books.metadata) + "\n"
    # A tensor's kind holds as long as it lives, whenever it was looked at: so this is summed up last.
    for moment in books.moments:
        moment["by_category"] = books.by_category(moment)
    (FOLDER / "books.json").write_text(json.dumps(books.moments))
    (FOLDER / "churn.pickle").write_bytes(pickle.dumps(snapshot))


if __name__ == "__main__":
    main()
