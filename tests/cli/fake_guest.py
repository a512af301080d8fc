# SPDX-License-Identifier: Apache-2.0
"""A FAKE of a program with the guest hook: writes what a guest would write, so that the supervisor's part can be tested
without PyTorch. Run it with `python -I -S -X tonnage=off`, so that the real hook stays out.

    fake_guest.py '{"document": {...}, "stop": 1, "exit": 3, "sleep": 60}'

document: fields that replace those of an empty guest document; stop: the ledger's stop_reason (then it waits to be
ended); steps: the ledger's step counter; snapshot: leave a file for --snapshot; take: [[region, bytes]] to take of the
virtual card, refused: bytes that it must refuse then; record: {"peak": [holdings, reserved], "oom": ...}, snapshots as fake_record.py makes them.
"""

import sys

sys.dont_write_bytecode = True  # -I does not take it from the environment

import ctypes
import json
import os
import struct
import time

GUEST_OFFSET = 64  # src/device/ledger.h: struct tn_ledger_guest
STEPS, STOP_REASON, STOP_PID = 0, 3, 5
STARTED = time.time()
OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation


def empty_document():
    return {
        "schema": "tonnage.guest/1", "pid": os.getpid(), "parent": os.getppid(), "argv": sys.argv[:1], "rank": None,
        "started": STARTED, "written": time.time(),
        "python": "3.11.0", "torch": "2.11.0+cu130", "cuda": "13.0", "cudnn": 91900, "cuda_initialized": True,
        "steps": {"seen": 4, "unit": "optimizer", "stopped": None, "input_shapes": 1,
                  "batch_size": None, "not_seen": []},
        "devices": [{"index": 0, "allocated_peak": 3 << 20, "reserved_peak": 4 << 20, "requested_peak": 2 << 20,
                     "allocated": 1, "reserved": 4 << 20, "retries": 0, "ooms": 0}],
        "out_of_memory": None, "out_of_memory_ended_process": False, "handled_out_of_memory": [],
        "computed_reads": [], "exception": None, "init_skipped": {"tensors": 0, "bytes": 0},
        "snapshot": None, "peak_snapshot": None, "oom_snapshot": None, "growth": None, "regions": {},
        "fast_forward_failed": None, "hook_error": None, "seconds": {"imports": 0.1, "after_imports": 0.1},
    }  # fmt: skip


def write_word(index, value):
    with open(os.path.join(os.environ["TONNAGE_RUN"], "ledger"), "r+b") as ledger:
        ledger.seek(GUEST_OFFSET + 8 * index)
        ledger.write(struct.pack("<Q", value))


def take(rows, refused):
    """Takes memory of the card as PyTorch would, in named regions, and does not give it back."""
    library = os.environ["TONNAGE_LIB"]
    runtime = ctypes.CDLL(os.path.join(library, "vgpu", "libcudart.so.13"))
    enter = ctypes.CDLL(os.path.join(library, "libtonnage-vgpu.so")).tn_vgpu_enter_region
    if rows:
        runtime.cudaFree(None)  # the context
    for region, size in rows:
        enter(region.encode())
        if size == 0:
            continue
        address = ctypes.c_void_p()
        status = runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
        assert status == 0, status
    if refused:
        status = runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(refused))
        assert status == OUT_OF_MEMORY, status


def write_records(records, document):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import fake_record

    for name, record in records.items():
        path = os.path.join(os.environ["TONNAGE_RUN"], "guest", "%d.%s" % (os.getpid(), name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        document["%s_snapshot" % name] = path
        if record == "broken":
            with open(path, "wb") as file:
                file.write(b"\x80\x04no")
        else:
            fake_record.write(path, *record)


def main():
    wish = json.loads(sys.argv[1])
    take(wish.get("take", []), wish.get("refused"))
    write_records(wish.get("record", {}), wish.get("document", {}))
    if wish.get("snapshot"):
        with open(os.environ["TONNAGE_SNAPSHOT"] + ".oom", "wb") as out:
            out.write(b"not a real snapshot")
        wish["document"] = {**wish["document"], "snapshot": out.name}
    if "document" in wish:
        path = os.path.join(os.environ["TONNAGE_RUN"], "guest", "%d.json" % os.getpid())
        with open(path + ".part", "w") as out:
            json.dump({**empty_document(), **wish["document"]}, out)
        os.replace(path + ".part", path)
    if "raw" in wish:
        with open(os.path.join(os.environ["TONNAGE_RUN"], "guest", "1.json"), "w") as out:
            out.write(wish["raw"])
    write_word(STEPS, wish.get("steps", 0))
    print("the program's own output", flush=True)
    if wish.get("stop"):
        write_word(STOP_PID, os.getpid())
        write_word(STOP_REASON, wish["stop"])
        time.sleep(60)
    time.sleep(wish.get("sleep", 0))
    if wish.get("signal"):
        os.kill(os.getpid(), wish["signal"])
    os._exit(wish.get("exit", 0))


if __name__ == "__main__":
    main()
