# SPDX-License-Identifier: Apache-2.0
"""Model writer of the page's data (doc/format/page.md): plain, and the measure for the one in C.

A Trace is fed with what a program does; `write` turns it into the JSON object. Nothing here knows the page.
"""

import bisect
import itertools

CATEGORIES = [("parameters", "parameters"), ("gradients", "gradients"), ("optimizer_state", "optimizer state"),
              ("activations", "activations"), ("inputs", "inputs"), ("temporaries", "temporaries"),
              ("workspaces", "workspaces"), ("gathered", "gathered"),
              ("communication", "communication"), ("other", "other"), ("rounding", "rounding"), ("cached", "cached, unused"),
              ("context", "CUDA context"), ("libraries", "libraries"), ("other_processes", "other processes")]
NUMBER = {name: number for number, (name, _) in enumerate(CATEGORIES)}
PLACED = NUMBER["other"] + 1  # categories below this have a place
ROUNDING, CACHED, CONTEXT, LIBRARIES, COMMUNICATION = (
    NUMBER[name] for name in ("rounding", "cached", "context", "libraries", "communication"))
MOST_COLUMNS, MOST_INTERVALS, MOST_CHANGES, MOST_BLOCKS, MOST_LINES = 2000, 20_000, 100_000, 20_000, 2000
MIB = 1 << 20
NEVER = 1 << 62


def differences(values):
    before = 0
    out = []
    for value in values:
        out.append(value - before)
        before = value
    return out


class Table:
    """Rows, each once, by number."""

    def __init__(self, *rows):
        self.rows, self.numbers = [], {}
        for row in rows:
            self.add(row)

    def add(self, row):
        number = self.numbers.setdefault(row, len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number


class Block:
    __slots__ = ("address", "size", "live", "segment", "before", "after", "interval")

    def __init__(self, address, size, segment, before=None, after=None):
        self.address, self.size, self.segment = address, size, segment
        self.before, self.after, self.live, self.interval = before, after, False, None


class Allocator:
    """Best fit with splitting and merging in two pools, much as PyTorch does it; segments are never given back."""

    def __init__(self):
        self.free = {True: [], False: []}
        self.segments, self.reserved, self.top, self.serial = [], 0, 0x7F0000000000, 0

    def allocate(self, size):
        small = size <= MIB
        pool = self.free[small]
        at = bisect.bisect_left(pool, (size, 0))
        if at < len(pool):
            block = pool.pop(at)[2]
        else:
            block = self.new_segment(size, small)
        if block.size - size >= (512 if small else MIB):
            rest = Block(block.address + size, block.size - size, block.segment, block, block.after)
            if block.after:
                block.after.before = rest
            block.after, block.size = rest, size
            bisect.insort(pool, (rest.size, rest.address, rest))
        block.live = True
        return block

    def new_segment(self, size, small):
        total = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        block = Block(self.top, total, len(self.segments))
        self.segments.append((self.top, total, small, block))
        self.top += total
        self.reserved += total
        return block

    def release(self, block):
        pool = self.free[self.segments[block.segment][2]]
        block.live = False
        for other in (block.before, block.after):
            if other is not None and not other.live:
                del pool[bisect.bisect_left(pool, (other.size, other.address))]
        if block.after is not None and not block.after.live:
            block.size += block.after.size
            block.after = block.after.after
        if block.before is not None and not block.before.live:
            before = block.before
            before.size += block.size
            before.after = block.after
            block = before
        if block.after is not None:
            block.after.before = block
        bisect.insort(pool, (block.size, block.address, block))


class Trace:
    """What a program did. `alloc` and `free` are events; the state after them is numbered."""

    def __init__(self, card=None, context=0, libraries=0, communication=0):
        self.card, self.context, self.libraries, self.communication = card, context, libraries, communication
        self.strings = Table("")
        self.frames, self.stacks, self.sites = Table(), Table((0, -1)), Table()
        self.allocator = Allocator()
        self.intervals = []  # [from, until, bytes, category, site, label, size of its block, block]
        self.events = []     # interval number, or its complement when freed
        self.device, self.allocated = [0], [0]
        self.device[0] = self.beside
        self.live = 0
        self.metadata = [(0, 0, 0)]  # state, step, phase
        self.pictures = {}

    # ---- places ----

    def frame(self, function, file, line, kind=0):
        return self.frames.add((self.strings.add(function), self.strings.add(file), line, kind))

    def stack(self, *frames):
        """Outermost first."""
        number = 0
        for frame in frames:
            number = self.stacks.add((number, frame))
        return number

    def site(self, *frames, backward=False):
        """Of a stack, outermost first: its place is the innermost frame that is not torch's."""
        outside = [frame for frame in frames if self.frames.rows[frame][3] < 2]
        own = [frame for frame in frames if self.frames.rows[frame][3] == 0]
        at = outside[-1] if outside else -1
        user = own[-1] if own and own[-1] != at else -1
        return self.sites.add((at, user, int(backward), self.stack(*frames)))

    # ---- events ----

    @property
    def beside(self):
        """What the device holds and PyTorch's allocator does not."""
        return self.context + self.libraries + self.communication

    @property
    def state(self):
        return len(self.events)

    def now(self, step, phase):
        self.metadata.append((self.state, step, self.strings.add(phase)))

    def alloc(self, size, category, site, label=""):
        block = self.allocator.allocate(-(-size // 512) * 512)
        number = block.interval = len(self.intervals)
        self.events.append(number)
        self.intervals.append([self.state, NEVER, size, NUMBER[category], site, self.strings.add(label), block.size,
                               block])
        self.live += block.size
        self.note()
        return number

    def free(self, number):
        interval = self.intervals[number]
        self.events.append(~number)
        interval[1] = self.state
        self.live -= interval[6]
        self.allocator.release(interval[7])
        interval[7] = None
        self.note()

    def note(self):
        self.device.append(self.allocator.reserved + self.beside)
        self.allocated.append(self.live)

    def picture(self):
        """Keeps how the segments stand now, for a moment of this state."""
        self.pictures[self.state] = [(address, total, small, list(walk(first)))
                                     for address, total, small, first in self.allocator.segments]

    def peak(self):
        return self.fullest(0, self.state + 1)

    def fullest(self, start, end):
        """The first of the states that hold the most."""
        return -max(zip(self.device[start:end], self.allocated[start:end], range(-start, -end, -1)))[2]


def walk(block):
    while block is not None:
        yield block.size, block.interval if block.live else None
        block = block.after


# ---- writing ----

def share_out(trace, named):
    """First states and moments of the columns."""
    states = trace.state + 1
    count = min(states, MOST_COLUMNS)
    edges = [*(number * states // count for number in range(count)), states]

    moments = {start: trace.fullest(start, end) for start, end in zip(edges, edges[1:])}
    for state in named:
        column = bisect.bisect_right(edges, state) - 1
        if moments[edges[column]] != state:
            cut = sorted({edges[column], state, state + 1, edges[column + 1]})
            edges[column:column + 2] = cut
            moments.update((start, trace.fullest(start, end)) for start, end in zip(cut, cut[1:]))
    return edges[:-1], [moments[start] for start in edges[:-1]], edges


def at_moments(trace, moments):
    """Bytes by category at each moment."""
    now = [0] * len(CATEGORIES)
    now[CONTEXT], now[LIBRARIES], now[COMMUNICATION] = trace.context, trace.libraries, trace.communication
    wanted = {}
    state = 0
    events = iter(trace.events)
    for moment in moments:
        for number in itertools.islice(events, moment - state):
            interval = trace.intervals[number if number >= 0 else ~number]
            sign = 1 if number >= 0 else -1
            now[interval[3]] += sign * interval[2]
            now[ROUNDING] += sign * (interval[6] - interval[2])
        state = moment
        now[CACHED] = trace.device[moment] - trace.context - trace.libraries - sum(now[:CACHED])
        wanted[moment] = list(now)
    return [wanted[moment] for moment in moments]


def write_timeline(trace, first, moments, edges):
    by_moment = at_moments(trace, moments)
    starts = [state for state, _, _ in trace.metadata]
    metadata = [trace.metadata[bisect.bisect_right(starts, moment) - 1] for moment in moments]
    by_category = {name: [row[number] for row in by_moment] for number, (name, _) in enumerate(CATEGORIES)}
    return {
        "states": trace.state + 1,
        "first": differences(first),
        "at": [moment - start for moment, start in zip(moments, first)],
        "time_us": differences([moment * 7 for moment in moments]),
        "step": differences([step for _, step, _ in metadata]),
        "phase": [phase for _, _, phase in metadata],
        "bytes": {name: differences(values) for name, values in by_category.items() if any(values)},
        "low": differences([min(trace.allocated[start:end]) for start, end in zip(edges, edges[1:])]),
    }


def write_alive(trace, moments):
    """The tables `intervals` and `small`."""
    seen = []
    for interval in trace.intervals:
        begin, end = bisect.bisect_left(moments, interval[0]), bisect.bisect_left(moments, interval[1])
        if begin < end:
            seen.append((interval, begin, end))
    seen.sort(key=lambda row: (-row[0][2], row[0][0]))
    large = sorted((interval for interval, _, _ in seen[:MOST_INTERVALS]), key=lambda row: row[0])
    series = {}
    for interval, begin, end in seen[MOST_INTERVALS:]:
        changes, labels = series.setdefault((interval[3], interval[4]), ({}, []))
        labels.append(interval[5])
        for column, sign in (begin, 1), (end, -1):
            if column < len(moments):
                change = changes.setdefault(column, [0, 0])
                change[0] += sign * interval[2]
                change[1] += sign
    intervals = {
        "smallest_bytes": min((row[2] for row in large), default=0),
        "from": differences([row[0] for row in large]),
        "life": [0 if row[1] == NEVER else row[1] - row[0] for row in large],
        "bytes": [row[2] for row in large],
        "category": [row[3] for row in large],
        "site": [row[4] for row in large],
        "label": [row[5] for row in large],
    }
    return intervals, write_small(join_least(series))


def peak_of(changes):
    return max(itertools.accumulate(changes[column][0] for column in sorted(changes)))


def join_least(series):
    count = sum(len(changes) for changes, _ in series.values())
    for key in sorted(series, key=lambda key: peak_of(series[key][0])):
        if count <= MOST_CHANGES:
            break
        changes, _ = series.pop(key)
        joined, _ = series.setdefault((key[0], -1), ({}, [0]))
        count -= len(changes) + len(joined)
        for column, (size, blocks) in changes.items():
            change = joined.setdefault(column, [0, 0])
            change[0] += size
            change[1] += blocks
        count += len(joined)
    return series


def write_small(series):
    rows = sorted(series.items())
    return {
        "category": [category for (category, _), _ in rows],
        "site": [site for (_, site), _ in rows],
        "label": [labels[0] for _, (_, labels) in rows],
        "changes": [len(changes) for _, (changes, _) in rows],
        "column": [step for _, (changes, _) in rows for step in differences(sorted(changes))],
        "bytes": [changes[column][0] for _, (changes, _) in rows for column in sorted(changes)],
        "blocks": [changes[column][1] for _, (changes, _) in rows for column in sorted(changes)],
    }


def write_segments(trace, picture, moment):
    kept, left, blocks = [], [], 0
    for segment in sorted(picture, key=lambda row: -sum(size for size, number in row[3] if number is None)):
        blocks += len(segment[3])
        (kept if blocks <= MOST_BLOCKS else left).append(segment)
    kept.sort()
    rows = [(size, number) for segment in kept for size, number in segment[3]]
    live = [None if number is None else trace.intervals[number] for _, number in rows]
    return {
        "moment": moment,
        "segments": {
            "address": differences([segment[0] for segment in kept]),
            "size": [segment[1] for segment in kept],
            "kind": [int(segment[2]) for segment in kept],
            "stream": [0] * len(kept),
            "blocks": [len(segment[3]) for segment in kept],
        },
        "blocks": {
            "size": [size for size, _ in rows],
            "state": [0 if interval is None else 1 for interval in live],
            "category": [-1 if interval is None else interval[3] for interval in live],
            "site": [-1 if interval is None else interval[4] for interval in live],
            "label": [0 if interval is None else interval[5] for interval in live],
        },
        "left_out": {"segments": len(left), "bytes": sum(segment[1] for segment in left)},
    }


def write(trace, named, **words):
    """The object. `named`: [(name, words, state, out-of-memory fields or {})]; `words` replace the empty ones."""
    first, moments, edges = share_out(trace, [state for _, _, state, _ in named])
    intervals, small = write_alive(trace, moments)
    nothing = {"requested_bytes": None, "free_bytes": None, "largest_free_block_bytes": None}
    states = [state for _, _, state, _ in named]
    pictures = [(states.index(state), picture) for state, picture in trace.pictures.items() if state in states]
    return {
        "schema": "tonnage.page/1", "tool": "0.1.0", "title": "", "about": [],
        "headline": {"verdict": None, "title": "", "lines": [], "at": [], "why": None, "do": []},
        "notes": [], "inferred": False, "device": 0, "devices": [0],
        "card": trace.card and {"name": trace.card[0], "total_bytes": trace.card[1], "context_bytes": trace.context,
                                "libraries_bytes": trace.libraries, "communication_bytes": trace.communication,
                                "other_processes_bytes": None},
        "findings": [], "regions": [], "assumptions": [], "network": None,
        "categories": [{"name": name, "words": text} for name, text in CATEGORIES],
        "strings": trace.strings.rows,
        "frames": dict(zip(("function", "file", "line", "kind"), map(list, zip(*trace.frames.rows)))),
        "stacks": {"parent": differences([parent for parent, _ in trace.stacks.rows]),
                   "frame": [frame for _, frame in trace.stacks.rows]},
        "sites": dict(zip(("at", "user", "backward", "stack"), map(list, zip(*trace.sites.rows)))),
        "timeline": write_timeline(trace, first, moments, edges),
        "moments": [{"name": name, "words": text, "column": moments.index(state), **nothing, **more}
                    for name, text, state, more in named],
        "intervals": intervals, "small": small,
        "segments": [write_segments(trace, picture, moment) for moment, picture in sorted(pictures)],
        "comparison": None, "fix": None, "fit": None, "frontier": None,
        **words,
    }
