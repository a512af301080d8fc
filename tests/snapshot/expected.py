# SPDX-License-Identifier: Apache-2.0
"""What the dump program must print for a snapshot, computed from what Python's pickle makes of the same file."""

import collections

ACTIONS = ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
           "snapshot", "oom", "annotate"]
STATES = {"inactive": 0, "active_allocated": 1, "active_pending_free": 2, "active_awaiting_free": 2}
WORD = 1 << 64


def top_of(loaded):
    return loaded if isinstance(loaded, dict) else {"segments": loaded}


def stack_of(item):
    return [(frame["name"], frame["filename"], frame["line"]) for frame in item.get("frames") or []]


def block_of(block, address):
    requested, stack = block.get("requested_size"), stack_of(block)
    if block.get("history"):
        requested, stack = block["history"][0]["real_size"], stack_of(block["history"][0])
    return [block.get("address", address), block["size"], requested, STATES[block["state"]], stack]


def blocks_of(segment):
    address = segment.get("address")
    for block in segment.get("blocks", []):
        row = block_of(block, address)
        address = row[0] + row[1]
        yield row


def segment_of(segment, host):
    pool = segment.get("segment_pool_id") or (None, None)
    stream = segment.get("stream")
    numbers = [segment.get(key) for key in ("address", "total_size", "allocated_size", "active_size", "requested_size")]
    return {"device": segment.get("device", 0), "host": host, "small": int(segment.get("segment_type") == "small"),
            "expandable": int(segment.get("is_expandable", False)), "stack": stack_of(segment),
            "numbers": [*numbers, None if stream is None else stream % WORD, *pool],
            "blocks": list(blocks_of(segment))}


def segments_of(top):
    return ([segment_of(segment, 0) for segment in top.get("segments", [])]
            + [segment_of(segment, 1) for segment in top.get("host_segments", [])])


def event_of(entry):
    action = ACTIONS.index(entry["action"]) if entry["action"] in ACTIONS else len(ACTIONS)
    pool = entry.get("pool_id") or (None, None)
    stream = entry.get("stream")
    return [action, entry.get("addr", entry.get("device_free")), entry.get("size"), entry.get("time_us", 0),
            stack_of(entry), None if stream is None else stream % WORD, *pool, entry.get("compile_context"),
            entry.get("user_metadata")]


def traces_of(top):
    traces = [{"device": device, "events": [event_of(entry) for entry in trace]}
              for device, trace in enumerate(top.get("device_traces", []))]
    if "host_traces" in top:
        traces.append({"device": -1, "events": [event_of(entry) for entry in top["host_traces"]]})
    return traces


def annotations_of(top):
    return [[note["name"], note["stage"] == "START", note["device"], note["time_us"]]
            for note in top.get("external_annotations", [])]


def settings_of(top):
    settings = {}
    for name, value in top.get("allocator_settings", {}).items():
        nested = value.items() if isinstance(value, dict) else [(None, value)]
        settings.update({name if inner is None else f"{name}.{inner}": item for inner, item in nested})
    return settings


def device_blocks(top):
    return [block for segment in top.get("segments", []) for block in blocks_of(segment)]


def totals_of(top):
    blocks = device_blocks(top)
    active = [block for block in blocks if block[3] in (1, 2)]
    live = [block for block in blocks if block[3] == 1]
    return {"reserved": sum(segment["total_size"] for segment in top.get("segments", [])),
            "allocated": sum(block[1] for block in live), "active": sum(block[1] for block in active),
            "requested": sum(block[1] if block[2] is None else block[2] for block in active),
            "largest_free_block": max((block[1] for block in blocks if block[3] == 0), default=0),
            "segments": len(top.get("segments", [])), "blocks": len(blocks), "live_blocks": len(live)}


def is_user(frame):
    file = frame[1]
    return file.endswith(".py") and "/site-packages/" not in file and "/lib/python3." not in file


def holders_of(top):
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for _, size, requested, state, stack in device_blocks(top):
        if state not in (1, 2):
            continue
        name, file, line = next(filter(is_user, stack), (None, None, 0))
        total = sums[file, line, name]
        total[0] += size
        total[1] += size if requested is None else requested
        total[2] += 1
    return [[*total, *place] for place, total in sums.items()]


def out_of_memory_of(top):
    found = [(entry["time_us"], device, index, entry) for device, trace in enumerate(top.get("device_traces", []))
             for index, entry in enumerate(trace) if entry["action"] == "oom"]
    if not found:
        return None
    _, device, index, entry = max(found, key=lambda row: row[:3])
    return [device, index, entry["size"], entry["device_free"]]
