# SPDX-License-Identifier: Apache-2.0
"""The jobs of `tonnage validate`: small programs that use the memory of a card in the ways that programs do.

    python jobs.py --list     their names
    python jobs.py NAME       runs one, and writes what PyTorch and the driver counted into $TONNAGE_RUN/changes/

The command runs each on the real card and on its virtual copy. Nothing but PyTorch is needed, nothing is random but
lengths of a fixed seed, and no job asks for a computed value, so that both do the same. A job returns nothing, or a
list of rows (name, bytes, ...) that are compared one by one.
"""

import contextlib
import ctypes
import json
import os
import random
import sys

MIB = 1 << 20
JOBS = {}  # name: function, environment
UNREPEATED = []  # beginnings of counters that two runs of the job on one card do not share


def job(name, **environment):
    """Registers a function under a name, run with these environment variables."""

    def register(function):
        JOBS[name] = (function, environment)
        return function

    return register


def variants(table):
    """Registers a function once for each row: name, and what it is called with."""

    def register(function):
        for name, arguments in table.items():
            JOBS[name] = (lambda torch, arguments=arguments: function(torch, **arguments), {})
        return function

    return register


# ---- models ----


def residual_net(torch, width=64, stages=3):
    """Convolutions with batch norm and shortcuts; 224 x 224 pictures."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
                nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer),
            )  # fmt: skip
            same = stride == 1 and inner == outer
            self.shortcut = nn.Identity() if same else nn.Conv2d(inner, outer, 1, stride, bias=False)

        def forward(self, x):
            return torch.relu(self.body(x) + self.shortcut(x))

    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for stage in range(stages):
        outer = width << stage
        layers += [Block(outer if stage == 0 else outer >> 1, outer, 1 if stage == 0 else 2), Block(outer, outer, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width << (stages - 1), 1000))


def plain_net(torch):
    """Wide 3 x 3 convolutions with biases, and large linear layers."""
    nn, layers, inner = torch.nn, [], 3
    for outer in (64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0):
        layers += [nn.Conv2d(inner, outer, 3, 1, 1), nn.ReLU(inplace=True)] if outer else [nn.MaxPool2d(2)]
        inner = outer or inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(8192, 2048), nn.ReLU(), nn.Dropout(),
                         nn.Linear(2048, 1000))


def separable_net(torch):
    """Depthwise convolutions with an expansion."""
    nn = torch.nn
    layers, inner = [nn.Conv2d(3, 32, 3, 2, 1)], 32
    for outer, stride in ((64, 2), (64, 1), (128, 2), (128, 1), (256, 2)):
        wide = inner * 4
        layers += [nn.Conv2d(inner, wide, 1), nn.BatchNorm2d(wide), nn.SiLU(),
                   nn.Conv2d(wide, wide, 5, stride, 2, groups=wide), nn.BatchNorm2d(wide), nn.SiLU(),
                   nn.Conv2d(wide, outer, 1), nn.BatchNorm2d(outer)]  # fmt: skip
        inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000))


def u_net(torch):
    """Down and up again with transposed convolutions and concatenation."""
    nn = torch.nn

    def double(inner, outer):
        return nn.Sequential(nn.Conv2d(inner, outer, 3, 1, 1), nn.ReLU(), nn.Conv2d(outer, outer, 3, 1, 1), nn.ReLU())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (32, 64, 128, 256)
            self.down = nn.ModuleList(double(inner, outer) for inner, outer in zip((3, *widths), widths))
            self.up = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in widths[-2::-1])
            self.join = nn.ModuleList(double(2 * width, width) for width in widths[-2::-1])
            self.last = nn.Conv2d(32, 2, 1)

        def forward(self, x):
            kept = []
            for down in self.down:
                x = down(x if not kept else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for up, join, left in zip(self.up, self.join, kept[-2::-1]):
                x = join(torch.cat([up(x), left], 1))
            return self.last(x)

    return Net()


def decoder(torch, width=512, layers=4, heads=8, vocabulary=16000, backend=None, checkpointed=None):
    """A small GPT. `backend` is a member of torch.nn.attention.SDPBackend, `checkpointed` a value of use_reentrant."""
    nn, functional = torch.nn, torch.nn.functional
    from torch.utils.checkpoint import checkpoint

    def chosen():
        if backend is None:
            return contextlib.nullcontext()
        from torch.nn.attention import SDPBackend, sdpa_kernel

        return sdpa_kernel(getattr(SDPBackend, backend))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.body = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.mix(self.first(x)).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            with chosen():
                y = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.body(self.second(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.last = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens):
            x = self.words(tokens)
            for block in self.blocks:
                x = block(x) if checkpointed is None else checkpoint(block, x, use_reentrant=checkpointed)
            return self.head(self.last(x))

    return Net()


def pictures(torch, batch, size=224, dtype=None):
    return torch.randn(batch, 3, size, size, device="cuda", dtype=dtype)


def tokens(torch, batch, length, vocabulary=16000):
    return torch.randint(vocabulary, (batch, length), device="cuda")


def autocast(torch, dtype):
    """Autocast of the job. Leaving it, PyTorch frees the cast weights in the order of a table by their host addresses,
    which no two processes share: how often free blocks were joined is then no figure of the card."""
    UNREPEATED[:] = ["inactive_split"]
    return torch.autocast("cuda", getattr(torch, dtype))


def train(torch, net, batches, optimizer=None, context=contextlib.nullcontext, scaler=None, to_none=True):
    """A step for each batch; the loss needs no labels."""
    optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    for batch in batches:
        with context():
            loss = net(batch).float().square().mean()
        (scaler.scale(loss) if scaler else loss).backward()
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        optimizer.zero_grad(set_to_none=to_none)


# ---- convolutional networks ----

NETS = {"residual": residual_net, "plain": plain_net, "separable": separable_net, "u_net": u_net}


@variants({
    **{f"{net} fp32": {"net": net} for net in NETS},
    **{f"{net} tf32": {"net": net, "tf32": True} for net in ("residual", "u_net")},
    **{f"{net} fp16": {"net": net, "dtype": "float16"} for net in ("residual", "plain")},
    **{f"{net} autocast": {"net": net, "amp": "float16"} for net in NETS},
    **{f"{net} channels last": {"net": net, "amp": "float16", "last": True} for net in ("residual", "separable")},
    **{f"{net} benchmark": {"net": net, "benchmark": True} for net in ("residual", "plain", "u_net")},
    "residual bf16 autocast": {"net": "residual", "amp": "bfloat16"},
    "residual deterministic": {"net": "residual", "deterministic": True},
})  # fmt: skip
def convolutional(torch, net, dtype=None, amp=None, last=False, benchmark=False, tf32=False, deterministic=False):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = benchmark
    torch.backends.cudnn.deterministic = deterministic
    dtype = getattr(torch, dtype) if dtype else None
    model = NETS[net](torch).to("cuda", dtype)
    size = 128 if net == "u_net" else 224
    batch = pictures(torch, 8, size, dtype)
    if last:
        model, batch = model.to(memory_format=torch.channels_last), batch.to(memory_format=torch.channels_last)

    def context():
        return autocast(torch, amp) if amp else contextlib.nullcontext()

    train(torch, model, [batch] * 3, context=context, scaler=torch.amp.GradScaler("cuda") if amp == "float16" else None)


# inner, outer, kernel, stride, groups, size, batch
CONVOLUTIONS = [
    (3, 64, 7, 2, 1, 224, 8), (64, 64, 3, 1, 1, 56, 8), (64, 256, 1, 1, 1, 56, 8), (128, 128, 3, 2, 1, 56, 8),
    (256, 256, 3, 1, 1, 14, 32), (512, 512, 3, 1, 1, 7, 32), (512, 2048, 1, 1, 1, 7, 32), (96, 96, 7, 1, 96, 56, 8),
    (256, 256, 5, 2, 256, 28, 8), (64, 128, 3, 1, 4, 28, 16), (16, 16, 5, 1, 1, 112, 4), (3, 96, 4, 4, 1, 224, 8),
]  # fmt: skip


@variants({
    f"convolutions {dtype}{' last' * last}{' benchmark' * benchmark}":
        {"dtype": dtype, "last": last, "benchmark": benchmark}
    for dtype in ("float32", "float16") for last in (False, True) for benchmark in (False, True)
})  # fmt: skip
def convolutions(torch, dtype, last, benchmark):
    """What one convolution takes beyond its tensors, forward and backward: cuDNN's workspace."""
    torch.backends.cudnn.benchmark = benchmark
    layout = torch.channels_last if last else torch.contiguous_format
    rows = []
    for inner, outer, kernel, stride, groups, size, batch in CONVOLUTIONS:
        torch.cuda.empty_cache()
        layer = torch.nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False)
        layer = layer.to("cuda", getattr(torch, dtype)).to(memory_format=layout)
        data = torch.randn(batch, inner, size, size, device="cuda", dtype=getattr(torch, dtype))
        data = data.to(memory_format=layout).requires_grad_()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        out = layer(data)
        forward = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        out.backward(torch.ones_like(out))
        backward = torch.cuda.max_memory_allocated() - before
        rows.append([f"{inner}-{outer} k{kernel} s{stride} g{groups} {size}x{size} n{batch}", forward, backward])
        del layer, data, out
    return rows


# ---- transformers ----


@variants({
    **{f"attention {name}": {"backend": name.upper().replace(" ", "_"), "dtype": "bfloat16"}
       for name in ("math", "flash attention", "efficient attention", "cudnn attention")},
    "attention math fp32": {"backend": "MATH"},
    "attention efficient fp32": {"backend": "EFFICIENT_ATTENTION"},
    "attention as chosen": {"dtype": "float16"},
    "checkpointing": {"checkpointed": False},
    "checkpointing reentrant": {"checkpointed": True},
})  # fmt: skip
def transformer(torch, dtype=None, **settings):
    net = decoder(torch, **settings).to("cuda", getattr(torch, dtype) if dtype else None)
    train(torch, net, [tokens(torch, 4, 512)] * 3, torch.optim.AdamW(net.parameters(), lr=1e-4))


@variants({
    f"autocast {dtype}": {"dtype": dtype} for dtype in ("float16", "bfloat16")
})  # fmt: skip
def mixed(torch, dtype):
    net = decoder(torch).cuda()
    train(torch, net, [tokens(torch, 4, 512)] * 3, torch.optim.AdamW(net.parameters(), lr=1e-4),
          lambda: autocast(torch, dtype),
          torch.amp.GradScaler("cuda") if dtype == "float16" else None)  # fmt: skip


@variants({
    "AdamW foreach": {"kind": "AdamW", "foreach": True},
    "AdamW fused": {"kind": "AdamW", "fused": True},
    "AdamW one by one": {"kind": "AdamW", "foreach": False},
    "AdamW amsgrad": {"kind": "AdamW", "amsgrad": True},
    "SGD foreach": {"kind": "SGD", "momentum": 0.9, "foreach": True},
    "SGD one by one": {"kind": "SGD", "foreach": False},
    "RMSprop": {"kind": "RMSprop"},
    "Adagrad": {"kind": "Adagrad"},
})  # fmt: skip
def optimizers(torch, kind, **settings):
    net = decoder(torch, layers=2).cuda()
    train(torch, net, [tokens(torch, 2, 256)] * 3, getattr(torch.optim, kind)(net.parameters(), lr=1e-4, **settings))


@job("inference")
def inference(torch):
    net = decoder(torch).cuda().half().eval()
    with torch.inference_mode():
        for length in (64, 256, 512):
            net(tokens(torch, 8, length))


@job("encoder, fast path")
def encoder(torch):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda().eval()
    with torch.inference_mode():
        net(torch.randn(8, 256, 512, device="cuda"))


@job("multi-head attention")
def multi_head(torch):
    layer = torch.nn.MultiheadAttention(512, 8, batch_first=True).cuda()
    x = torch.randn(8, 256, 512, device="cuda", requires_grad=True)
    for _ in range(2):
        layer(x, x, x, need_weights=True)[0].sum().backward()


# ---- other layers ----


@variants({
    "LSTM": {"kind": "LSTM"},
    "LSTM with dropout": {"kind": "LSTM", "dropout": 0.3, "bidirectional": True},
    "GRU": {"kind": "GRU"},
})  # fmt: skip
def recurrent(torch, kind, **settings):
    net = getattr(torch.nn, kind)(256, 512, num_layers=2, batch_first=True, **settings).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(3):
        net(torch.randn(32, 100, 256, device="cuda"))[0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@job("embeddings and losses")
def embeddings(torch):
    functional = torch.nn.functional
    words = torch.nn.EmbeddingBag(50000, 128, mode="mean").cuda()
    head = torch.nn.Linear(128, 50000).cuda()
    labels = torch.randint(50000, (256,), device="cuda")
    for _ in range(2):
        scores = head(words(torch.randint(50000, (256, 20), device="cuda")))
        functional.cross_entropy(scores, labels).backward()


@job("sorting and reductions")
def sorting(torch):
    x = torch.randn(4 << 20, device="cuda")
    x.sort()
    x.view(1024, -1).topk(16)
    x.cumsum(0)
    x.view(1024, -1).softmax(1).argmax(1)
    x.view(64, -1).var(1)
    torch.randperm(100000, device="cuda")


@variants({
    f"products {dtype}": {"dtype": dtype} for dtype in ("float32", "float16", "bfloat16")
})  # fmt: skip
def products(torch, dtype):
    """cuBLAS and cuBLASLt: plain, batched, with a bias, and on a second stream."""
    dtype = getattr(torch, dtype)
    a, b = (torch.randn(1024, 1024, device="cuda", dtype=dtype) for _ in range(2))
    bias = torch.randn(1024, device="cuda", dtype=dtype)
    torch.mm(a, b)
    torch.nn.functional.linear(a, b, bias)
    torch.bmm(a.view(4, 256, 1024), b.view(4, 1024, 256))
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.mm(a, b)
        torch.addmm(bias, a, b)


# ---- what programs do with the allocator ----


@job("gradient accumulation")
def accumulation(torch):
    net = decoder(torch, layers=2).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        for _ in range(3):
            (net(tokens(torch, 2, 256)).square().mean() / 3).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


@job("gradients kept")
def gradients_kept(torch):
    net = decoder(torch, layers=2).cuda()
    train(torch, net, [tokens(torch, 2, 256)] * 3, to_none=False)


@job("variable lengths")
def variable_lengths(torch):
    net, lengths = decoder(torch, layers=2).cuda(), random.Random(7)
    train(torch, net, (tokens(torch, 4, lengths.randrange(16, 512)) for _ in range(24)))


@job("variable lengths, expandable segments", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
def expandable_lengths(torch):
    variable_lengths(torch)


@job("expandable segments", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
def expandable(torch):
    transformer(torch)


@job("split limit", PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64")
def split_limit(torch):
    variable_lengths(torch)


@job("rounding by power of two", PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:4")
def rounding(torch):
    variable_lengths(torch)


@job("garbage collection", PYTORCH_CUDA_ALLOC_CONF="garbage_collection_threshold:0.6")
def garbage_collection(torch):
    torch.cuda.set_per_process_memory_fraction(0.25)
    variable_lengths(torch)


@job("record_stream")
def record_stream(torch):
    side = torch.cuda.Stream()
    for _ in range(8):
        x = torch.empty(8 * MIB, device="cuda")
        with torch.cuda.stream(side):
            x.add_(1)
        x.record_stream(side)
        del x
        torch.cuda.synchronize()
        torch.empty(1024, device="cuda")


@job("pinned copies")
def pinned(torch):
    source = torch.empty(8 * MIB, pin_memory=True)
    for _ in range(4):
        target = source.to("cuda", non_blocking=True)
        target.to("cpu", non_blocking=True)
    torch.cuda.synchronize()


@job("cache emptied")
def cache_emptied(torch):
    net = decoder(torch, layers=2).cuda()
    for length in (256, 512, 128):
        train(torch, net, [tokens(torch, 4, length)] * 2)
        torch.cuda.empty_cache()


@job("CUDA graph")
def cuda_graph(torch):
    net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    data = torch.randn(256, 1024, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        net(data).square().mean().backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(3):
        graph.replay()


@job("double backward")
def double_backward(torch):
    net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 1)).cuda()
    x = torch.randn(256, 512, device="cuda", requires_grad=True)
    slope, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    slope.square().sum().backward()


@job("averaged copy")
def averaged_copy(torch):
    net = decoder(torch, layers=2).cuda()
    copy = torch.optim.swa_utils.AveragedModel(net)
    for _ in range(2):
        train(torch, net, [tokens(torch, 2, 256)])
        copy.update_parameters(net)


# ---- near the limit ----


@job("nearly full")
def nearly_full(torch):
    """All but 600 MiB is taken, so that the allocator has to give back and to try again."""
    free, _ = torch.cuda.mem_get_info()
    kept = torch.empty(max(free - 600 * MIB, MIB), dtype=torch.uint8, device="cuda")
    for size in (100, 180, 260, 340, 220):
        torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
    del kept


@job("out of memory, one request")
def one_request(torch):
    _, total = torch.cuda.mem_get_info()
    torch.empty(1024, device="cuda")
    torch.empty(total + MIB, dtype=torch.uint8, device="cuda")


@job("out of memory, growing")
def growing(torch):
    free, _ = torch.cuda.mem_get_info()
    kept = []
    while len(kept) < 64:
        kept.append(torch.empty(free // 40 // (2 * MIB) * (2 * MIB), dtype=torch.uint8, device="cuda"))


@job("out of memory, fragmented")
def fragmented(torch):
    free, _ = torch.cuda.mem_get_info()
    size = free // 64 // (2 * MIB) * (2 * MIB)
    kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(60)]
    del kept[::2]
    torch.empty(40 * size, dtype=torch.uint8, device="cuda")


@job("out of memory, by fraction")
def by_fraction(torch):
    torch.cuda.set_per_process_memory_fraction(0.1)
    _, total = torch.cuda.mem_get_info()
    torch.empty(total // 20, dtype=torch.uint8, device="cuda")
    torch.empty(total // 9, dtype=torch.uint8, device="cuda")


@job("out of memory, caught")
def caught(torch):
    _, total = torch.cuda.mem_get_info()
    size = 2 * total
    for _ in range(8):
        try:
            torch.empty(size, dtype=torch.uint8, device="cuda")
            break
        except torch.cuda.OutOfMemoryError:
            size //= 2


# ---- what is counted ----


class _Memory(ctypes.Structure):
    """nvmlMemory_t, as NVML's documents have it."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def nvml():
    """NVML, ready to be asked; None where there is none."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def card_used():
    """Bytes in use on the card as NVML says, by whomever; None where it cannot be known."""
    library, memory, handle = nvml(), _Memory(), ctypes.c_void_p()
    if library is None or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)):
        return None
    return memory.used if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0 else None


def driver_version():
    library, text = nvml(), ctypes.create_string_buffer(96)
    if library is None or library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text))):
        return None
    return text.value.decode()


def cudnn_properties():
    """The properties of card 0 as cuDNN writes them down (a device property descriptor, 9.8 and later); None where that
    cannot be had. They are what its heuristics can be asked with where there is no card."""
    descriptor_type, device_id, representation, int32, char = 38, 2700, 2702, 23, 24
    descriptor, index, count = ctypes.c_void_p(), ctypes.c_int32(0), ctypes.c_int64()
    text = ctypes.create_string_buffer(1 << 16)
    try:
        cudnn = ctypes.CDLL("libcudnn.so.9")
        if cudnn.cudnnBackendCreateDescriptor(descriptor_type, ctypes.byref(descriptor)):
            return None
    except (OSError, AttributeError):
        return None
    try:
        wrong = (
            cudnn.cudnnBackendSetAttribute(descriptor, device_id, int32, ctypes.c_int64(1), ctypes.byref(index))
            or cudnn.cudnnBackendFinalize(descriptor)
            or cudnn.cudnnBackendGetAttribute(descriptor, representation, char, ctypes.c_int64(len(text)),
                                              ctypes.byref(count), text)
        )  # fmt: skip
        return None if wrong else text.raw[: count.value].rstrip(b"\0").decode()
    finally:
        cudnn.cudnnBackendDestroyDescriptor(descriptor)


def segments(torch):
    """Sizes of the segments in the order in which PyTorch asked for them; given back ones are negative."""
    signs = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    return [signs[event["action"]] * event["size"] for event in trace if event["action"] in signs]


def run(name):
    """Runs a job and returns what was counted."""
    function, environment = JOBS[name]
    os.environ.update(environment)
    before = card_used()
    import torch

    torch.manual_seed(0)
    torch.cuda.init()
    torch.cuda.memory._record_memory_history("all", context=None, stacks="python", max_entries=1000000)
    result = {"job": name, "end": "done", "rows": None}
    try:
        result["rows"] = function(torch)
    except torch.cuda.OutOfMemoryError:
        result["end"] = "out_of_memory"
    except RuntimeError as error:  # such as an attention that this card has not
        result["end"] = "refused: " + str(error).splitlines()[0]
    torch.cuda.synchronize()
    used = card_used()
    return {
        **result,
        "device_bytes": None if before is None or used is None else used - before,
        "stats": {key: value for key, value in torch.cuda.memory_stats().items() if isinstance(value, int)},
        "unrepeated": UNREPEATED,
        "segments": segments(torch),
        "cudnn_properties": cudnn_properties() if name.startswith("convolutions") else None,
        "driver": driver_version(),
        "about": {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                  "gpu": torch.cuda.get_device_name(), "python": "%d.%d" % sys.version_info[:2]},
    }


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(JOBS))
        return
    folder = os.path.join(os.environ["TONNAGE_RUN"], "changes")
    result = run(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "kit.json"), "w") as file:
        json.dump({"schema": "tonnage.changes/1", "kit": result}, file)


if __name__ == "__main__":
    main()
