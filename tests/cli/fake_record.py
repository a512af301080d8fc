# SPDX-License-Identifier: Apache-2.0
"""A snapshot as PyTorch's allocator and the guest's metadata would make it, from a few words: for tests without PyTorch."""

import pickle

BASE = 0x7F0000000000
MIB = 1 << 20
START_US = 1_700_000_000_000_000


def frames(line):
    return [{"filename": "/x/model.py", "line": line, "name": "forward"}]


def snapshot(holdings, reserved):
    """`holdings`: (category or None, bytes, line, label), made one after the other and all alive; one segment of `reserved`
    bytes holds them and a free block."""
    address, time = BASE, START_US
    trace = [{"action": "segment_alloc", "addr": BASE, "size": reserved, "stream": 0, "time_us": time, "frames": []}]
    blocks, holds = [], []
    for category, size, line, label in holdings:
        time += 10
        rounded = -(-size // 512) * 512
        trace.append({"action": "alloc", "addr": address, "size": size, "stream": 0, "time_us": time,
                      "frames": frames(line)})  # fmt: skip
        blocks.append({"address": address, "size": rounded, "requested_size": size, "state": "active_allocated",
                       "frames": frames(line)})  # fmt: skip
        if category:
            holds.append("hold\t%s\t%d\t%d\t%s" % (category, address, size, label))
        address += rounded
    left = BASE + reserved - address
    blocks.append({"address": address, "size": left, "requested_size": 0, "state": "inactive", "frames": []})
    used = reserved - left
    segment = {
        "device": 0, "address": BASE, "total_size": reserved, "allocated_size": used, "active_size": used,
        "requested_size": sum(row[1] for row in holdings), "stream": 0, "segment_type": "large",
        "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks,
    }  # fmt: skip
    metadata = ["tonnage-metadata\t1", "phase\t%d\t1\tforward" % (START_US * 1000), "look\t%d" % ((time + 5) * 1000), *holds, ""]
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": {}, "tonnage": "\n".join(metadata)}


def write(path, holdings, reserved):
    with open(path, "wb") as file:
        pickle.dump(snapshot(holdings, reserved), file)
