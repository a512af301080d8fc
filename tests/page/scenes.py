# SPDX-License-Identifier: Apache-2.0
"""Programs as far as memory sees them: what the pages of the tests show."""

import contextlib
import gc
import random

import page_data
from page_data import MIB, NUMBER, Trace

GIB = 1 << 30
HOSTILE = "</script><script>window.pwned=1</script>\"'<img src=x onerror=window.pwned=2>&amp;.py"


def place(file, line, function, backward=False):
    return {"file": file, "line": line, "function": function, "backward": backward}


class Training:
    """A transformer that is trained; each block of the model has lines of its own. Frees what each phase frees."""

    def __init__(self, trace, layers, unit, extra=0, train="/home/ada/finetune/train.py",
                 model="/home/ada/finetune/model.py", seed=7):
        self.trace, self.layers, self.unit, self.extra = trace, layers, unit, extra
        self.random = random.Random(seed)
        self.train, self.model = train, model
        self.parameters, self.gradients, self.states, self.sites = [], [], [], {}

    def frames(self, kind):
        trace, model, train = self.trace, self.model, self.train
        main = trace.frame("<module>", train, 118)
        fit = trace.frame("fit", train, 41)
        call = trace.frame("_call_impl", "/usr/lib/python3/torch/nn/modules/module.py", 1776, 2)
        forward = trace.frame("GPT.forward", model, 131)
        block = trace.frame("Block.forward", model, 88)
        linear = trace.frame("Linear.forward", "/usr/lib/python3/torch/nn/modules/linear.py", 125, 2)
        rows = {
            "build": (main, trace.frame("build", train, 22), trace.frame("Block.__init__", model, 61)),
            "attention": (main, fit, call, forward, call, block, call,
                          trace.frame("Attention.forward", model, 52), linear),
            "mlp": (main, fit, call, forward, call, block, call, trace.frame("MLP.forward", model, 29), linear),
            "norm": (main, fit, call, forward, call, block, trace.frame("LayerNorm.forward", model, 84)),
            "loss": (main, fit, trace.frame("loss", train, 47)),
            "batch": (main, fit, trace.frame("to_device", train, 38)),
            "step": (main, trace.frame("update", train, 55),
                     trace.frame("_multi_tensor_adam", "/usr/lib/python3/torch/optim/adam.py", 640, 2)),
            "rope": (main, fit, call, forward, call, block,
                     trace.frame("apply_rotary", "/usr/lib/python3/site-packages/rotary/embed.py", 77, 1)),
        }
        return rows[kind]

    def site(self, kind, backward=False, line=None):
        """The site of a piece of work; with a line, of a helper of its own that this calls."""
        key = kind, backward, line
        if key not in self.sites:
            frames = self.frames(kind)
            if line is not None:
                frames += self.trace.frame(f"helper_{line}", self.model, 200 + line),
            self.sites[key] = self.trace.site(*frames, backward=backward)
        return self.sites[key]

    def build(self):
        self.trace.now(0, "build")
        for layer in range(self.layers):
            for name, share in ("attn.weight", 4), ("attn.bias", 0.01), ("mlp.weight", 8), ("mlp.bias", 0.01):
                size = int(self.unit * share) + 4
                self.parameters.append((size, f"h.{layer}.{name}"))
                self.trace.alloc(size, "parameters", self.site("build"), f"h.{layer}.{name}")

    def forward(self, step, until=None):
        trace = self.trace
        trace.now(step, "forward")
        kept = [trace.alloc(self.unit // 4, "inputs", self.site("batch"), "input_ids")]
        for layer in range(self.layers):
            for kind, share in ("norm", 1), ("attention", 6), ("rope", 0.5), ("mlp", 4):
                if until is not None and trace.allocator.reserved > until:
                    return kept
                size = int(self.unit * share * self.random.uniform(0.9, 1.1))
                passing = trace.alloc(size, "temporaries", self.site(kind))
                kept.append(trace.alloc(size, "activations", self.site(kind), f"h.{layer}"))
                small = [trace.alloc(512 * self.random.randint(1, 40), "temporaries",
                                     self.site(kind, line=self.random.randrange(120))) for _ in range(self.extra)]
                for number in [passing, *small]:
                    trace.free(number)
        kept.append(trace.alloc(self.unit * 3, "activations", self.site("loss"), "logits"))
        return kept

    def backward(self, step, kept):
        trace = self.trace
        trace.now(step, "backward")
        for number in reversed(kept):
            passing = trace.alloc(trace.intervals[number][2], "temporaries", self.site("mlp", True))
            trace.free(number)
            trace.free(passing)
            if len(self.gradients) < len(self.parameters) and self.random.random() < 0.9:
                size, label = self.parameters[-1 - len(self.gradients)]
                self.gradients.append(trace.alloc(size, "gradients", self.site("attention", True), label))
        while len(self.gradients) < len(self.parameters):
            size, label = self.parameters[-1 - len(self.gradients)]
            self.gradients.append(trace.alloc(size, "gradients", self.site("attention", True), label))

    def update(self, step):
        trace = self.trace
        trace.now(step, "optimizer")
        if not self.states:
            for size, label in self.parameters:
                for name in "exp_avg", "exp_avg_sq":
                    self.states.append(trace.alloc(size, "optimizer_state", self.site("step"), f"{name} {label}"))
        passing = [trace.alloc(size, "temporaries", self.site("step")) for size, _ in self.parameters[:40]]
        for number in passing + self.gradients:
            trace.free(number)
        self.gradients.clear()

    def steps(self, count, first=1):
        for step in range(first, first + count):
            self.backward(step, self.forward(step))
            self.update(step)


def repeat_with_picture(make, state):
    """Makes a trace again, and keeps a picture of the segments as it passes a state."""
    seen = []

    class Watched(Trace):
        def note(self):
            super().note()
            if self.state == state:
                self.picture()

    make(Watched, seen)
    return seen[0]


def out_of_memory(hostile=False):
    """Three steps of a model on a 12 GB card; the fourth, with a longer batch, runs out in its forward pass."""
    limit = int(11.75 * GIB)
    names = {"train": HOSTILE, "model": "/tmp/" + HOSTILE} if hostile else {}

    def make(kind, seen):
        trace = kind(("NVIDIA GeForce RTX 3060", limit), int(0.13 * GIB), 72 * MIB)
        job = Training(trace, 24, 7 * MIB, extra=2, **names)
        job.build()
        job.steps(3)
        job.unit = 15 * MIB
        job.forward(4, limit - int(0.62 * GIB))
        seen.append(trace)

    seen = []
    make(Trace, seen)
    peak = seen[0].peak()
    trace = repeat_with_picture(make, peak)
    trace.picture()
    free = limit - trace.device[-1]
    requested = free + 108 * MIB
    train, model = names.get("train", "/home/ada/finetune/train.py"), names.get("model", "/home/ada/finetune/model.py")
    at = [place(train, 41, "fit"), place(model, 88, "Block.forward"), place(model, 52, "Attention.forward")]
    named = [("out_of_memory", "Out of memory", trace.state,
              {"requested_bytes": requested, "free_bytes": free, "largest_free_block_bytes": 18 * MIB}),
             ("peak", "Peak", peak, {})]
    return trace, page_data.write(
        trace, named, title="train.py: does not fit on RTX 3060",
        about=[["command", "tonnage run --gpu rtx3060 -- python train.py"], ["PyTorch", "2.11.0, CUDA 12.8"]],
        headline={"verdict": "out_of_memory", "title": "Does not fit on NVIDIA GeForce RTX 3060 (11.75 GiB)",
                  "lines": ["Out of memory in the forward pass of step 4",
                            f"asked {requested // MIB} MiB, {free // MIB} MiB free: short by 108.0 MiB"],
                  "at": at, "why": "the batch: each sample adds 0.86 GiB of activations",
                  "do": ["a smaller batch: 6 would fit",
                         "tonnage fix --gpu rtx3060 -- python train.py tries what else would help"]},
        notes=["kernels do not run on a virtual GPU: 2 computed values were read back (train.py:44)"],
        findings=[
            {"id": "activations_of_attention", "severity": "error", "bytes": 3 * GIB, "at": at[2],
             "what": "attention keeps its scores for the backward pass",
             "do": "use scaled_dot_product_attention, which does not", "sure": "seen", "column": 4},
            {"id": "optimizer_temporaries", "severity": "warning", "bytes": 400 * MIB, "at": place(train, 55, "update"),
             "what": "the optimizer works on all tensors at once", "do": "foreach=False", "sure": None, "column": None},
            {"id": "cached_unused", "severity": "hint", "bytes": 210 * MIB, "at": None,
             "what": "cached memory that no request fits", "do": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
             "sure": "inferred", "column": None}],
        regions=[{"name": name, "peak_device_bytes": int(size * GIB), "peak_reserved_bytes": int((size - 0.2) * GIB), "peak_taken_bytes": int(size * GIB),
                  "left_bytes": None, "at": at[0]} for name, size in (("forward", 11.7), ("backward", 7.9), ("optimizer", 8.2))],
        assumptions=[{"at": at[2], "what": "count", "value": "300 of 1200", "bytes_hanging": 90 * MIB},
                     {"at": at[0], "what": "number", "value": "0.5", "bytes_hanging": 0},
                     {"at": at[0], "what": "truth", "value": "true, then false", "bytes_hanging": None}],
        network={"mode": "closed", "raw_calls": False, "download_refused": "weights.example.org",
                 "held_back": [{"what": "call", "name": "wandb", "count": 3},
                               {"what": "connection", "name": "api.example.org", "count": 1}]})


def sharded():
    """A rank of several: communicators beside PyTorch's allocator, buckets in it, both for communication. Parts of the program, of
    which one took no memory itself."""
    trace = Trace(("NVIDIA H100 80GB HBM3", 80 * GIB), int(0.5 * GIB), 0, 288 * MIB)
    job = Training(trace, 6, 7 * MIB)
    job.build()
    trace.alloc(25 * MIB, "communication", job.site("build"), "DDP's buckets")
    job.steps(2)
    at = place(job.train, 41, "fit")
    peak = trace.peak()

    def part(name, taken, device):
        return {"name": name, "peak_device_bytes": device, "peak_reserved_bytes": device - trace.beside, "peak_taken_bytes": taken,
                "left_bytes": None, "at": at}

    most = trace.device[peak]
    parts = [part("build", GIB, GIB), part("forward", most, most), part("optimizer", 2 * GIB, most), part("save", 0, most)]
    return trace, page_data.write(trace, [("peak", "Peak", peak, {}), ("end", "End", trace.state, {})], title="rank 0", regions=parts)


def long_run(events, layers=12, extra=3, unit=2 * MIB):
    """A run of about so many events that fits and settles; its categories are guessed."""

    def make(kind, seen):
        trace = kind(("NVIDIA A100-SXM4-80GB", 80 * GIB), 500 * MIB, 0)
        job = Training(trace, layers, unit, extra=extra)
        job.build()
        step = 1
        while trace.state < events:
            job.steps(1, step)
            step += 1
        seen.append(trace)

    seen = []
    make(Trace, seen)
    trace = seen[0]
    peak = trace.peak()
    trace.picture()
    return trace, page_data.write(
        trace, [("peak", "Peak", peak, {}), ("end", "End", trace.state, {})], title="snapshot.pickle",
        inferred=True,
        headline={"verdict": "fits", "title": "Fits on NVIDIA A100-SXM4-80GB (79.15 GiB)",
                  "lines": [f"peak {trace.device[peak] / GIB:.2f} GiB"], "at": [], "why": None, "do": []})


def with_comparison(data):
    """The same page with what --diff would say against a run in which the activations were recomputed."""
    column = data["moments"][0]["column"]
    after = [sum(data["timeline"]["bytes"].get(category["name"], [0])[:column + 1])
             for category in data["categories"]]
    before = list(after)
    before[NUMBER["activations"]] = int(after[NUMBER["activations"]] * 1.9)
    before[NUMBER["gradients"]] = 0
    count = min(40, len(data["frames"]["line"]))
    data["comparison"] = {
        "before": "yesterday.json", "after": "today.json", "bytes": {"before": before, "after": after},
        "lines": {"category": [number % 6 for number in range(count)], "at": list(range(count)), "user": [-1] * count,
                  "backward": [number % 2 for number in range(count)],
                  "before": [number * 40 * MIB for number in range(count)],
                  "after": [(count - number) * 30 * MIB for number in range(count)],
                  "before_blocks": list(range(count)), "after_blocks": [3] * count}}
    return data


def fragmented():
    """Six segments that are nearly empty: five are kept by one small block each, one by nothing."""
    trace = Trace(("Tesla T4", int(14.74 * GIB)), 0, 0)
    work = trace.site(trace.frame("work", "/srv/job/work.py", 5))
    keep = trace.site(trace.frame("keep", "/srv/job/leak.py", 12))
    trace.now(1, "forward")
    passing = []
    for number in range(6):
        passing.append(trace.alloc(9 * MIB, "temporaries", work))
        last = trace.alloc(3 * MIB // 2, "activations", keep, f"kept {number}")
        passing.append(trace.alloc(19 * MIB // 2, "temporaries", work))
    for number in [*passing, last]:
        trace.free(number)
    trace.picture()
    return trace, page_data.write(trace, [("end", "End", trace.state, {})], title="fragmented")


@contextlib.contextmanager
def without_collections():
    """Lists that all stay: nothing is gained by looking for cycles in them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@without_collections()
def busiest(events, alive=15_000, sites=2500, seed=11):
    """Everything at its limit: short and long lives, all sizes, many lines and many names."""
    dice = random.Random(seed)
    trace = Trace(("NVIDIA H200", 139 * GIB), 500 * MIB, 20 * MIB)
    base = [trace.frame(f"call_{number}", f"/srv/project/package_{number % 40}/module_{number}.py", number)
            for number in range(400)]
    places = [trace.site(*(dice.choice(base) for _ in range(dice.randint(4, 14))), backward=number % 3 == 0)
              for number in range(sites)]
    names = [name for name, _ in page_data.CATEGORIES[:7]]
    draw = dice.random
    living = []
    while trace.state < events:
        if trace.state % 3000 == 0:
            trace.now(trace.state // 3000 + 1, ("forward", "backward", "optimizer")[trace.state // 3000 % 3])
        if len(living) > alive * draw():
            at = int(draw() * len(living)) if draw() < 0.05 else -1 - int(draw() * min(20, len(living)))
            living[at], living[-1] = living[-1], living[at]
            trace.free(living.pop())
        else:
            label = f"layer.{int(draw() * 9000)}.weight" if draw() < 0.5 else ""
            living.append(trace.alloc(int(512 * 2 ** (14 * draw())), names[int(draw() * len(names))], places[int(draw() * sites)], label))
    trace.picture()
    return trace, page_data.write(trace, [("peak", "Peak", trace.peak(), {}), ("end", "End", trace.state, {})],
                                  title="busiest")
