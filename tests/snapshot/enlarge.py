#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots of any size out of a real one: `enlarge.py REAL TARGET BYTES` prints the sums that a reader must find.

The trace is repeated with other addresses and times, in the opcodes of Python's pickler (every dict and list
memoised, batches of 1000), which are streamed: no more than one round is ever held.
"""

import json
import pathlib
import pickle
import struct
import sys

BATCH = 1000
SHIFT = 1 << 24  # of the addresses, each round
WORD = 1 << 64
ACTIONS = ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
           "segment_unmap", "snapshot", "oom", "annotate"]  # fmt: skip
MOVING = {"addr", "device_free", "time_us"}


class Writer(pickle._Pickler):
    """The pickler in Python, which lets opcodes be written between what it saves."""

    def __init__(self, file):
        super().__init__(file, 4)
        self.write(pickle.PROTO + bytes([4]))

    def reference(self, thing):
        """The opcodes that refer to something saved before."""
        return self.get(self.memo[id(thing)][0])


def keep(writer, trace):
    """Saves once what all events share, as a list under a key of its own; returns {value: opcodes}."""
    strings = {text: None for event in trace for pair in event.items() for text in pair if isinstance(text, str)}
    frames = {id(frame): frame for event in trace for frame in event.get("frames", ())}
    shared = [*strings, *frames.values()]
    writer.save("shared")
    writer.save(shared)
    known = {text: writer.reference(text) for text in shared[: len(strings)]}
    return known, {number: writer.reference(frame) for number, frame in frames.items()}


class Round:
    """One round of the trace as bytes, with the places of what changes from round to round."""

    def __init__(self, trace, strings, frames):
        self.events = len(trace)
        self.fields, self.ends = [], []
        self.length = trace[-1]["time_us"] - trace[0]["time_us"] + 1
        template = bytearray()
        for event in trace:
            template += pickle.EMPTY_DICT + pickle.MEMOIZE + pickle.MARK
            for key, value in event.items():
                template += strings[key]
                if key == "frames":
                    template += pickle.EMPTY_LIST + pickle.MEMOIZE
                    if value:
                        template += pickle.MARK + b"".join(frames[id(frame)] for frame in value) + pickle.APPENDS
                elif key in MOVING:
                    template += pickle.LONG1 + b"\x08"
                    self.fields.append((len(template), value, self.length if key == "time_us" else SHIFT))
                    template += bytes(8)
                elif isinstance(value, str):
                    template += strings[value]
                else:
                    template += plain(value)
            template += pickle.SETITEMS
            self.ends.append(len(template))
        self.template = template

    def bytes_of(self, number):
        for place, value, step in self.fields:
            struct.pack_into("<q", self.template, place, value + number * step)
        return self.template


def plain(value):
    """Numbers, None and tuples: never shared, as PyTorch makes them."""
    if isinstance(value, tuple):
        return b"".join(map(plain, value)) + pickle.TUPLE2 + pickle.MEMOIZE
    return pickle.dumps(value, 2)[2:-1]


def write_rounds(file, one, rounds):
    """The events of all rounds in batches; a batch ends with a round or with its thousandth event."""
    for number in range(rounds):
        data = memoryview(one.bytes_of(number))
        start = 0
        for first in range(0, one.events, BATCH):
            end = one.ends[min(first + BATCH, one.events) - 1]
            file.write(pickle.MARK)
            file.write(data[start:end])
            file.write(pickle.APPENDS)
            start = end


def sums(trace, rounds, length, host):
    """What the dump program must print, by arithmetic; the host's events stand there once."""
    def total(key, step):
        once = sum(event.get(key, 0) for event in trace)
        shifted = sum(key in event for event in trace) * step * rounds * (rounds - 1) // 2
        return (once * rounds + shifted + sum(event.get(key, 0) for event in host)) % WORD

    def count(number):
        return sum(map(number, trace)) * rounds + sum(map(number, host))

    actions = [count(lambda event, action=action: event["action"] == action) for action in ACTIONS]
    return {"addresses": (total("addr", SHIFT) + total("device_free", SHIFT)) % WORD, "sizes": total("size", 0),
            "times": total("time_us", length), "frames": count(lambda event: len(event.get("frames", ()))),
            "actions": [*actions, count(lambda event: 1) - sum(actions)]}  # fmt: skip


def enlarge(real, target, size):
    """Writes a snapshot of about `size` bytes; returns the sums."""
    top = pickle.loads(pathlib.Path(real).read_bytes())
    trace = top.pop("device_traces")[0]
    with open(target, "wb") as file:
        writer = Writer(file)
        file.write(pickle.EMPTY_DICT + pickle.MEMOIZE + pickle.MARK)
        writer.memo[id(top)] = len(writer.memo), top
        strings, frames = keep(writer, trace)
        for key, value in top.items():
            writer.save(key)
            writer.save(value)
        writer.save("device_traces")
        one = Round(trace, strings, frames)
        rounds = max(1, round((size - file.tell()) / len(one.template)))
        file.write(pickle.EMPTY_LIST + pickle.MEMOIZE + pickle.EMPTY_LIST + pickle.MEMOIZE)
        write_rounds(file, one, rounds)
        file.write(pickle.APPEND + pickle.SETITEMS + pickle.STOP)
    return sums(trace, rounds, one.length, top.get("host_traces", []))


if __name__ == "__main__":
    print(json.dumps(enlarge(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
