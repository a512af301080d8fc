# SPDX-License-Identifier: Apache-2.0
"""A small training program that writes its own memory snapshot in every form: `python record.py FOLDER`.

With `--plain` behind the folder it records and writes nothing itself.
"""

import ctypes
import json
import pathlib
import pickle
import sys

import torch

FOLDER = pathlib.Path(sys.argv[1])
# torch::cuda::_memory_snapshot_pickled(), with std::string of the new and of the old ABI.
NEW_STRING = "_ZN5torch4cuda24_memory_snapshot_pickledB5cxx11Ev"
OLD_STRING = "_ZN5torch4cuda24_memory_snapshot_pickledEv"


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.zeros(64, 512, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def use_streams():
    """Blocks that wait for another stream, and one of a private pool."""
    side = torch.cuda.Stream()
    waiting = torch.ones(1 << 20, device="cuda")
    with torch.cuda.stream(side):
        waiting.mul_(2)
    waiting.record_stream(side)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = torch.ones(1000, 1000, device="cuda")
    return kept, pool


def run_out():
    try:
        torch.empty(1 << 42, device="cuda")
    except torch.OutOfMemoryError:
        return
    raise SystemExit("4 TiB were given out")


def pickled_by_cpp():
    """What PyTorch's C++ function writes: a string by value, so its address is a hidden first argument."""
    library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib/libtorch_cuda.so"))
    words = (ctypes.c_uint64 * 4)()
    for name in NEW_STRING, OLD_STRING:
        function = getattr(library, name, None)
        if function:
            break
    function.restype, function.argtypes = None, [ctypes.c_void_p]
    function(ctypes.addressof(words))
    length = words[1] if name == NEW_STRING else ctypes.c_uint64.from_address(words[0] - 24).value
    return ctypes.string_at(words[0], length)


def record_history():
    try:
        torch.cuda.memory._record_memory_history(max_entries=100000, record_pinned_host_memory=True)
    except TypeError:  # not known before 2.15
        torch.cuda.memory._record_memory_history(max_entries=100000)


def main(plain):
    if not plain:
        record_history()
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, 3)
    pinned = torch.zeros(1000, pin_memory=True)
    kept = use_streams()
    run_out()
    if not plain:
        write_snapshots()
    (FOLDER / "done").write_text(f"{len(kept)} {len(pinned)}")


def write_snapshots():
    snapshot = torch.cuda.memory._snapshot()
    (FOLDER / "stats.json").write_text(json.dumps(torch.cuda.memory_stats()))
    torch.cuda.memory._dump_snapshot(str(FOLDER / "dump.pickle"))
    for protocol in 2, 3, 4, 5:
        (FOLDER / f"protocol{protocol}.pickle").write_bytes(pickle.dumps(snapshot, protocol))
    (FOLDER / "segments.pickle").write_bytes(pickle.dumps(torch.cuda.memory_snapshot()))
    (FOLDER / "cpp.pickle").write_bytes(pickled_by_cpp())


if __name__ == "__main__":
    main("--plain" in sys.argv)
